"""What an artifact assumes held against a machine: pure, so that any machine can be asked about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from inductor_probe.model.portable import Assumption, Host, Judged, Standing, Subject
from inductor_probe.reader.assumptions import FEATURES

_ORDER: tuple[Standing, ...] = ("broken", "unknown", "holds", "caller")
_VECTOR_FEATURES = ("avx", "amx", "fma", "f16c", "sve")
_DRIVERS = {"CUDA 11": 450, "CUDA 12": 525, "CUDA 13": 580}
"""The least driver for each CUDA, from its release notes, table CUDA Toolkit and Minimum Required Driver."""


def judged(assumptions: Iterable[Assumption], host: Host) -> tuple[Judged, ...]:
    """Return each assumption with what the machine has, broken ones first."""
    rows = [_RULES[one.about](one, host) for one in assumptions]
    return tuple(sorted(rows, key=lambda row: _ORDER.index(row.standing)))


def _row(one: Assumption, holds: bool | None, here: str | None, missing: Iterable[str] = ()) -> Judged:
    standing: Standing = "unknown" if holds is None else "holds" if holds else "broken"
    return Judged(assumption=one, standing=standing, here=here or "not known", missing=tuple(missing))


def _same(one: Assumption, here: str | None) -> Judged:
    return _row(one, None if here is None else one.value.lower() == here.lower(), here)


def _instructions(one: Assumption, host: Host) -> Judged:
    features = [feature for word in one.value.split() for feature in _features(word)]
    if not host.instructions or not features:
        return _row(one, None, None)
    missing = [feature for feature in dict.fromkeys(features) if feature not in host.instructions]
    return _row(one, not missing, f"without {', '.join(missing)}" if missing else "all of them", missing)


def _features(name: str) -> tuple[str, ...]:
    """Return the features of an instruction set of torch's, or that a flag of a compiler names; else none."""
    feature = re.sub(r"[-_.]", "", name.lower())
    return FEATURES.get(name.upper(), (feature,) if feature.startswith(_VECTOR_FEATURES) else ())


def _width(one: Assumption, host: Host) -> Judged:
    if host.vector_bits is None:
        return _row(one, None, None)
    bits = int(one.value)
    holds = bits == host.vector_bits if one.exact else bits <= host.vector_bits
    return _row(one, holds, f"{host.vector_bits} bits")


def _threads(one: Assumption, host: Host) -> Judged:
    return _row(one, int(one.value) <= host.processors, f"{host.processors} processors")


def _libc(one: Assumption, host: Host) -> Judged:
    if host.libc is None:
        return _row(one, None, None)
    return _row(one, _numbers(one.value) <= _numbers(host.libc), f"glibc {host.libc}")


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:2]]


def _device(one: Assumption, host: Host) -> Judged:
    kind, _, index = one.value.partition(":")
    if kind == "cpu":
        return _row(one, True, "cpu")
    holds = int(index or 0) < host.gpus if kind == "cuda" else None
    return _row(one, holds, f"{host.gpus} GPU{'' if host.gpus == 1 else 's'}" if host.gpus else "no GPU")


def _driver(one: Assumption, host: Host) -> Judged:
    least = _DRIVERS.get(one.value)
    if not host.gpus:
        return _row(one, False, "no GPU")
    if host.driver is None or least is None:
        return _row(one, None, host.driver)
    return _row(one, _numbers(host.driver)[0] >= least, f"driver {host.driver}")


def _gpu(value: Callable[[Host], str | None]) -> Callable[[Assumption, Host], Judged]:
    def rule(one: Assumption, host: Host) -> Judged:
        return _same(one, value(host)) if host.gpus else _row(one, False, "no GPU")

    return rule


def _capability(one: Assumption, host: Host) -> Judged:
    """A package writes 9.0 as `90` (`CudaInterface.get_compute_capability`)."""
    value = f"{one.value[:-1]}.{one.value[-1]}" if re.fullmatch(r"\d{2,3}", one.value) else one.value
    row = _gpu(lambda host: host.capability)(replace(one, value=value), host)
    return replace(row, assumption=one)


def _installed(version: Callable[[Host], str | None]) -> Callable[[Assumption, Host], Judged]:
    def rule(one: Assumption, host: Host) -> Judged:
        here = version(host)
        if host.elsewhere:
            return _row(one, None, None)
        if here is None:
            return _row(one, False, "not installed")
        if one.value == "installed" or _numbers(one.value) == _numbers(here):
            return _row(one, True, here)
        return _row(one, None, here)

    return rule


def _caller(one: Assumption, host: Host) -> Judged:
    return Judged(assumption=one, standing="caller")


def _native(one: Assumption, host: Host) -> Judged:
    """`-march=native` lets a compiler use whatever its own machine had; nothing in the artifact says what."""
    return _row(one, None, None)


_RULES: Mapping[Subject, Callable[[Assumption, Host], Judged]] = {
    "platform": lambda one, host: _same(one, host.platform),
    "architecture": lambda one, host: _same(one, host.architecture),
    "instructions": _instructions,
    "vector width": _width,
    "threads": _threads,
    "C library": _libc,
    "device": _device,
    "compute capability": _capability,
    "multiprocessors": _gpu(lambda host: None if host.multiprocessors is None else str(host.multiprocessors)),
    "driver": _driver,
    "triton": _installed(lambda host: host.triton),
    "torch": _installed(lambda host: host.torch),
    "machine code": _native,
    "strides": _caller,
    "alignment": _caller,
}
