"""What torch's trace log says of the time of compiles: regions, metrics, the cache, runs of compilers.

Torch times regions (`dynamo_timed` of torch/_dynamo/utils.py) and writes the begin and the end of each, with
the id of the compile, as an event of Chromium's trace format (`ChromiumEventLogger`):

    V1128 17:13:11.58 31835 torch/_dynamo/utils.py:2350] {"chromium_event": {}, "frame_id": 0, ...}
        {"name": "entire_frame_compile", "ts": 1795885991583760.2, "args": {"compile_id": "0/0"}, "ph": "B"}

Regions of one id are inside of each other. Those without an id are of threads in which C++ compilers run
beside each other: begins and ends do not say which belong together. What those compiled, and how long, is in
artifacts that `probe` adds to the log (`capture/compilers.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from inductor_probe.files import object_of
from inductor_probe.model.compile_log import (
    CompileLog,
    Frame,
    KeyPart,
    LoggedBuild,
    LoggedCache,
    LoggedSpecialisation,
    Region,
)
from inductor_probe.model.compile_time import BUILD_ARTIFACT, kernel_digest
from inductor_probe.model.record import collected
from inductor_probe.reader.logs.trace import log_lines
from inductor_probe.reader.output_code import parse_output_code

_LONGEST_PAYLOAD = 1 << 24
_CACHE = re.compile(r"(?:fx_graph|autograd)_cache_(\w+)")
_NO_ID = "None"


def read_compile_log(log: Path) -> CompileLog:
    """Read a trace log."""
    reader = _Reader()
    for header, payload in _entries(log):
        key = next(key for key in _KEYS if key in header)
        getattr(reader, _KEYS[key])(header, payload)
    return reader.log()


class _Reader:
    """Takes the entries of a log in their order: a method for each kind, which `_KEYS` names."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._regions: list[Region] = []
        self._metrics: list[Mapping[str, Any]] = []
        self._caches: list[LoggedCache] = []
        self._builds: list[LoggedBuild] = []
        self._kernels: list[tuple[str, tuple[str, str]]] = []
        self._guards: list[tuple[str, str]] = []
        self._specialisations: list[LoggedSpecialisation] = []
        self._starts: list[tuple[str, tuple[Frame, ...]]] = []
        self._files: dict[object, str] = {}
        self._last = 0.0

    def log(self) -> CompileLog:
        """Return all of it; what is left open the process ended within."""
        while self._open:
            self._regions.append(_close(self._open, self._last, ended=False))
        return CompileLog(
            regions=tuple(self._regions),
            metrics=tuple(self._metrics),
            caches=tuple(self._caches),
            builds=tuple(self._builds),
            kernels=collected(self._kernels),
            guards=tuple(self._guards),
            specialisations=tuple(self._specialisations),
            starts=tuple(self._starts),
        )

    def metrics(self, header: Mapping[str, Any], _: str) -> None:
        if isinstance(one := header["compilation_metrics"], dict):
            self._metrics.append(one)
            self._builds += _triton_builds(one)

    def file_name(self, header: Mapping[str, Any], _: str) -> None:
        """Take the number by which frames name a file."""
        match header["str"]:
            case [str(name), int(number)]:
                self._files[number] = name

    def start(self, header: Mapping[str, Any], _: str) -> None:
        if isinstance(one := header["dynamo_start"], dict):
            self._starts.append((_compile_id(header), _frames(one.get("stack"), self._files)))

    def specialisation(self, header: Mapping[str, Any], _: str) -> None:
        """Take what `ShapeEnv._set_replacement` of torch/fx/experimental/symbolic_shapes.py logs."""
        if isinstance(one := header["symbolic_shape_specialization"], dict):
            sources = one.get("sources")
            names = tuple(map(str, sources)) if isinstance(sources, list) else ()
            frames = _frames(one.get("user_stack"), self._files)
            made = LoggedSpecialisation(_compile_id(header), names, str(one.get("value")), frames)
            self._specialisations.append(made)

    def guards(self, header: Mapping[str, Any], payload: str) -> None:
        self._guards.append((_compile_id(header), payload))

    def code(self, header: Mapping[str, Any], payload: str) -> None:
        self._kernels += [(digest, (name, _compile_id(header))) for digest, name in _kernels(payload)]

    def artifact(self, header: Mapping[str, Any], payload: str) -> None:
        one = header["artifact"]
        if (
            isinstance(one, dict)
            and one.get("name") == BUILD_ARTIFACT
            and (build := _build(object_of(payload)))
        ):
            self._builds.append(build)

    def event(self, _: Mapping[str, Any], payload: str) -> None:
        if not (event := object_of(payload)):
            return
        name, compile_id, time, args = _event(event)
        self._last = max(self._last, time)
        if event.get("ph") == "i" and (cache := _CACHE.fullmatch(name)):
            self._caches.append(_cache(cache[1], compile_id, time, args))
        elif compile_id != _NO_ID and event.get("ph") == "B":
            self._open.append(_Open(name, compile_id, time))
        elif compile_id != _NO_ID and event.get("ph") == "E":
            self._regions += _closed(self._open, name, compile_id, time)


_KEYS = {
    "chromium_event": "event",
    "compilation_metrics": "metrics",
    "str": "file_name",
    "dynamo_start": "start",
    "symbolic_shape_specialization": "specialisation",
    "inductor_output_code": "code",
    "dynamo_cpp_guards_str": "guards",
    "artifact": "artifact",
}
"""Kinds of entries that are read, each by the method of `_Reader` of that name."""


def _frames(stack: object, files: Mapping[object, str]) -> tuple[Frame, ...]:
    """Read a stack, whose files are numbers of texts that were logged before."""
    frames = [one for one in stack if isinstance(one, dict)] if isinstance(stack, list) else []
    return tuple(
        Frame(
            files.get(one.get("filename"), ""), one.get("line", 0), str(one.get("name")),
            str(one.get("loc") or ""),
        )
        for one in frames
        if isinstance(one.get("line"), int) and isinstance(one.get("filename"), int)
    )  # fmt: skip


def _kernels(text: str) -> Iterator[tuple[str, str]]:
    """Yield digests and names of the C++ kernels in a wrapper."""
    for kernel in parse_output_code(text, Path("output_code.py")).kernels:
        if kernel.backend == "cpp" and (digest := kernel_digest(kernel.source)):
            yield digest, kernel.name


class _Open(Struct):
    """A region whose end has not come; `inside` are the seconds of those in it."""

    name: str
    compile_id: str
    begin: float
    inside: float = 0.0


def _closed(open_: list[_Open], name: str, compile_id: str, time: float) -> Iterator[Region]:
    """End the innermost region of a name and id, and what is left open in it, which an exception ended."""
    if any((one.name, one.compile_id) == (name, compile_id) for one in open_):
        while (open_[-1].name, open_[-1].compile_id) != (name, compile_id):
            yield _close(open_, time, ended=False)
        yield _close(open_, time, ended=True)


def _close(open_: list[_Open], time: float, *, ended: bool) -> Region:
    one = open_.pop()
    seconds = max(time - one.begin, 0.0)
    if open_:
        open_[-1].inside += seconds
    own = max(seconds - one.inside, 0.0)
    return Region(one.name, one.compile_id, one.begin, seconds, own, len(open_), ended)


def _entries(log: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield headers that matter here, each with the text that is indented below it."""
    keys = [f'"{name}"' for name in _KEYS if name != "artifact"] + [f'"{BUILD_ARTIFACT}"']
    header: Mapping[str, Any] | None = None
    payload: list[str] = []
    size = 0
    for line in log_lines(log):
        if line.startswith("\t"):
            size += len(line)
            if header is not None and size <= _LONGEST_PAYLOAD:
                payload.append(line[1:])
            continue
        if header is not None:
            yield header, "".join(payload)
        text = line.partition("] ")[2]
        header = object_of(text) if line.startswith("V") and any(key in text for key in keys) else None
        if header is not None and not any(key in header for key in _KEYS):
            header = None
        payload, size = [], 0
    if header is not None:
        yield header, "".join(payload)


def _compile_id(header: Mapping[str, Any]) -> str:
    return f"{header.get('frame_id')}/{header.get('frame_compile_id')}"


def _event(event: Mapping[str, Any]) -> tuple[str, str, float, Mapping[str, Any]]:
    """Return name, id of the compile, seconds, and arguments of an event."""
    args, time = event.get("args"), event.get("ts")
    args = args if isinstance(args, dict) else {}
    seconds = time / 1e6 if isinstance(time, (int, float)) else 0.0
    return str(event.get("name")), str(args.get("compile_id", _NO_ID)), seconds, args


def _cache(result: str, compile_id: str, time: float, args: Mapping[str, Any]) -> LoggedCache:
    """Read an answer of `AOTAutogradCache` or `FxGraphCache`: parts of a key are `[digest] name: value`."""
    parts: dict[str, KeyPart] = {}
    components = args.get("components")
    for text in components if isinstance(components, list) else ():
        digest, _, rest = str(text).partition("] ")
        part, _, value = rest.partition(": ")
        parts[part] = KeyPart(digest.lstrip("["), value)
    reason = args.get("cache_bypass_reason")
    return LoggedCache(compile_id, time, result, str(reason or ""), parts)


def _build(facts: Mapping[str, Any] | None) -> LoggedBuild | None:
    seconds = (facts or {}).get("seconds")
    if facts is None or not isinstance(seconds, (int, float)):
        return None
    return LoggedBuild(str(facts.get("kind")), "c++", float(seconds), str(facts.get("digest", "")))


def _triton_builds(metrics: Mapping[str, Any]) -> Iterator[LoggedBuild]:
    """Read `triton_kernel_compile_times_us`: a JSON text of names and microseconds, the longest few."""
    text = metrics.get("triton_kernel_compile_times_us")
    try:
        rows = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        rows = []
    for row in rows if isinstance(rows, list) else ():
        match row:
            case [str(name), int() | float() as microseconds]:
                compile_id = str(metrics.get("compile_id"))
                yield LoggedBuild("kernel", "triton", microseconds / 1e6, kernel=name, compile_id=compile_id)
            case _:
                continue
