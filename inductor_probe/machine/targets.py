"""GPUs that inductor can generate code for on a machine that has none: a TOML file each.

Those in `gpus/` come with the package; another file is given by its path (`--target my_gpu.toml`), in the
same format. Each figure stands in a group that names the document which it is from:

    name = "h200"
    device = "NVIDIA H200"
    capability = "9.0"

    [[figures]]
    source = "NVIDIA H200 Tensor Core GPU, data sheet, H200 SXM"
    memory_gb_per_s = 4800

What decides code was compared with a real GPU for the h200 only (`benchmarks/gpu/simulated.py`).
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, cast

from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError, near_names
from inductor_probe.files import read_text
from inductor_probe.model.gpu_target import FIGURES, OPTIONAL_FIGURES, PRODUCT_TYPES, GpuTarget, ProductType

if sys.version_info >= (3, 11):
    import tomllib
else:  # the same library, before it was Python's own
    import tomli as tomllib

BLOCK_THREADS = 1024
WARP_THREADS = 32
SHARED_BLOCK_BYTES = 48 << 10
"""What a block has of shared memory without asking for more."""

_SHIPPED = Path(__file__).with_name("gpus")
_ENDING = ".toml"
_HEAD = ("name", "device", "capability", "figures")
_OF_GROUP = ("source", "tflops", *FIGURES)
_LARGEST, _MOST_DOTS = 64 << 10, 100
"""Of a file in bytes, and in a line of it: memory grows with the square of a dotted key's parts."""
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


def target_names() -> tuple[str, ...]:
    """Return the names of the targets that come with the package."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob(f"*{_ENDING}")))


def find_gpu_target(name: str) -> GpuTarget:
    """Return the target of that name, or that a TOML file describes.

    Raises:
        NotFoundError: there is none, or no such file.
        ProbeError, UnreadableError: the file describes none; says where and what is missing.
    """
    if name.endswith(_ENDING):
        return read_target(Path(name))
    if name.lower() not in target_names():
        near = near_names(name.lower(), target_names())
        raise NotFoundError(
            f"no target {name!r}",
            f"{near or ''} Another GPU is described by a file: --target my_gpu.toml".strip(),
        )
    return _shipped(name.lower())


def target_of_device(device: str | None) -> GpuTarget | None:
    """Return the target that a driver calls so; None where none that comes with the package is."""
    targets = map(_shipped, target_names())
    return next((target for target in targets if target.device == device), None)


def target_of_capability(capability: tuple[int, int]) -> GpuTarget | None:
    """Return a target of a compute capability, which says what its multiprocessors have; None without one."""
    targets = map(_shipped, target_names())
    return next((target for target in targets if target.compute_capability == capability), None)


@functools.cache
def _shipped(name: str) -> GpuTarget:
    return read_target(_SHIPPED / f"{name}{_ENDING}")


def read_target(path: Path) -> GpuTarget:
    """Read a target's file.

    Raises:
        NotFoundError, UnreadableError: there is no such file, or it is no text.
        ProbeError: it is not TOML, or something in it is missing, unknown or no such figure.
    """
    text = read_text(path, largest=_LARGEST)
    lines = text.split("\n")
    try:
        for number, line in enumerate(lines, 1):
            if line.count(".") > _MOST_DOTS:
                raise ValueError(f"more than {_MOST_DOTS} dots (at line {number}, column 1)")
        data = tomllib.loads(text)
    except RecursionError:
        raise UnreadableError(f"{path}: it is nested too deeply", "the file is to be TOML") from None
    except ValueError as error:  # TOMLDecodeError is one; a number of more than 4,300 digits is another
        message = str(error)
        at = _AT_LINE.search(message)
        place = f"{path}:{at[1]}" if at else str(path)
        raise UnreadableError(f"{place}: {_AT_LINE.sub('', message)}", "the file is to be TOML") from error
    return _File(path, lines).target(data)


@dataclass
class _File:
    """Makes a target of a file, and says where in it something is wrong."""

    path: Path
    lines: list[str]
    figures: dict[str, int | float] = field(default_factory=dict)
    rates: dict[ProductType, float] = field(default_factory=dict)

    def target(self, data: dict[str, Any]) -> GpuTarget:
        self._known(data, _HEAD)
        head = {name: self._text(data, name) for name in _HEAD if name != "figures"}
        if not _CAPABILITY.fullmatch(head["capability"]):
            self._refuse(
                f'capability = "{head["capability"]}" cannot be a compute capability',
                "write 9.0",
                "capability",
            )
        groups = data.get("figures")
        if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
            self._refuse("it has no groups of figures", "write [[figures]], with a source each", "figures")
        sources = tuple(self._group(group) for group in cast("list[dict[str, Any]]", groups))
        missing = [name for name in FIGURES if name not in (*self.figures, *OPTIONAL_FIGURES)]
        missing += [] if self.rates else ["tflops"]
        if missing:
            what = ", ".join(missing)
            self._refuse(
                f"{what} {'is' if len(missing) == 1 else 'are'} missing", "each GPU needs all figures"
            )
        return GpuTarget(**head, **self.figures, tflops=tuple(self.rates.items()), sources=sources)  # type: ignore[arg-type]  # all figures, each of its type

    def _group(self, group: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
        """Take in the figures of one source; return it with their names."""
        name = next((name for name in group if name != "source"), "figures")
        if "source" not in group:
            self._refuse(f"{name} is in a group without a source", 'write source = "..." in it', name)
        source = self._text(group, "source")
        self._known(group, _OF_GROUP)
        names = []
        for name, type_ in FIGURES.items():
            if name in group:
                self._once(name, self.figures)
                self.figures[name] = self._number(group[name], name, whole=type_ is int)
                names.append(name)
        rates = group.get("tflops", {})
        if not isinstance(rates, dict):
            self._refuse("tflops has to be a table", "write tflops = { float16 = 989.4 }", "tflops")
        self._known(rates, PRODUCT_TYPES)
        for kind in PRODUCT_TYPES:
            if kind in rates:
                self._once(kind, self.rates)
                self.rates[kind] = self._number(rates[kind], kind)
                names.append(kind)
        return source, tuple(names)

    def _known(self, table: dict[str, Any], names: Iterable[str]) -> None:
        names = tuple(names)
        for name in table:
            if name not in names:
                self._refuse(f"there is no figure {name}", near_names(name, names), name)

    def _once(self, name: str, figures: Iterable[str]) -> None:
        if name in figures:
            places = [number for number, line in self._lines_of(name)]
            self._refuse(f"{name} is given twice", "keep one", line=places[1] if len(places) > 1 else None)

    def _text(self, table: dict[str, Any], name: str) -> str:
        value = table.get(name)
        if not isinstance(value, str) or not value.strip():
            what = f"{name} is missing" if value is None else f"{name} has to be text"
            self._refuse(what, f'write {name} = "..."', name)
        return value

    def _number(self, value: Any, name: str, *, whole: bool = False) -> int | float:
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < float("inf"):
            kind = "a whole number" if whole else "a number"
            self._refuse(f"{name} = {value!r} is not {kind} above 0", None, name)
        return value if whole else float(value)

    def _lines_of(self, name: str) -> Iterator[tuple[int, str]]:
        key = re.compile(rf"(?:^|[\[{{,.\s]){re.escape(name)}\s*[\]=.]")
        for number, line in enumerate(self.lines, 1):
            if key.search(line.partition("#")[0]):
                yield number, line

    def _refuse(
        self, what: str, hint: str | None, name: str | None = None, line: int | None = None
    ) -> NoReturn:
        if line is None and name is not None:
            line = next((number for number, _ in self._lines_of(name)), None)
        raise ProbeError(f"{self.path}{f':{line}' if line else ''}: {what}", hint)
