"""A graph with its kernels, and the edited copies of them that this file holds."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Call: TypeAlias = "Callable[[], object]"  # of a kernel or wrapper, with its arguments bound


@dataclass
class Bench:
    """A graph: its wrapper and kernels by name in `namespace`, where variants are found as `NAME_v2`, `_v3`.

    `aten_graph` makes the graph as a module of aten operations, None (and `no_reference` why) without one.
    `kind` and `sizes` are what `make_inputs` is asked for. `missing` are the kernels and library calls that
    take a constant that cannot be had, with the reason; None until the constants are set.
    """

    graph: str
    kernels: list[str]
    make_inputs: Callable[..., list[Any]]
    aten_graph: Callable[[], Any] | None
    no_reference: str
    namespace: dict[str, Any]
    kind: str = "random"
    sizes: dict[str, int] = field(default_factory=dict)
    missing: dict[str, str] | None = None

    def inputs(self, seed: int) -> list[Any]:
        """Return fresh inputs.

        Raises:
            InputsError: there are none of that kind or of those sizes.
        """
        return self.make_inputs(seed, self.kind, self.sizes)

    def variants(self) -> list[Variant]:
        """Return the edited copies in this file that must be right: of the wrapper, then of each kernel.

        A kernel that takes a constant that cannot be had is not judged, nor is the wrapper then.
        """
        missing = self.missing or {}
        variants = [] if missing else [Variant(name, name) for name in self._copies("call")]
        for kernel in (name for name in self.kernels if name not in missing):
            variants += [Variant(name, "call", {kernel: name}) for name in self._copies(kernel)]
        return variants

    def ablations(self) -> dict[str, str]:
        """Return the copies that compute something else on purpose, and what each leaves out."""
        return dict(self.namespace.get("ABLATIONS", {}))

    def _copies(self, name: str) -> list[str]:
        copies = [copy for copy in self.namespace if re.fullmatch(rf"{name}_v\d+", copy)]
        return [copy for copy in copies if copy not in self.ablations()]


@dataclass
class Variant:
    """A version of the code: run `entry` with each kernel in `swaps` replaced by its copy."""

    name: str
    entry: str = "call"
    swaps: dict[str, str] = field(default_factory=dict)

    @property
    def wrapper(self) -> str:
        """The wrapper of the same number: `call_v3` for the kernel `k_v3`."""
        return "call" + self.name[self.name.rindex("_v") :]

    def run(self, bench: Bench, inputs: list[Any]) -> list[Any]:
        """Run it on `inputs` and return its outputs."""
        with replaced(bench.namespace, {name: bench.namespace[copy] for name, copy in self.swaps.items()}):
            return list(bench.namespace[self.entry](list(inputs)))  # it empties its list


@contextmanager
def replaced(namespace: dict[str, Any], values: Mapping[str, Any]) -> Iterator[None]:
    """Give names other values for a while: with `{"k": k_v2}`, `call` launches the copy of `k`."""
    originals = {name: namespace[name] for name in values}
    namespace.update(values)
    try:
        yield
    finally:
        namespace.update(originals)


def unedited(bench: Bench) -> set[str]:
    """Return the variants whose text is that of their originals: `k_v2 = f('k_v2')` beside `k = f('k')`.

    Timing one would time its original. An unedited `call_v2` launches the copies of its number: it counts
    as edited if one of those was edited.
    """
    path = bench.namespace.get("__file__")
    if path is None:
        return set()
    linecache.checkcache(path)
    source = "".join(linecache.getlines(path))  # the text that runs, also where the file was changed since
    lines, texts = source.split("\n"), dict[str, str]()
    for node in ast.parse(source).body:
        match node:
            case (
                ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)])
            ):
                texts[name] = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    copies: dict[str, dict[str, str]] = {}  # by number: the original of each copy
    for name in texts:
        if copy := re.fullmatch(r"(\w+?)_v(\d+)", name):
            copies.setdefault(copy[2], {})[name] = copy[1]
    names = set[str]()
    for number, originals in copies.items():
        word = re.compile(rf"\b({'|'.join(originals.values())})_v{number}\b")
        same = {copy for copy, name in originals.items() if word.sub(r"\1", texts[copy]) == texts.get(name)}
        names |= same if same == set(originals) else same - {f"call_v{number}"}
    return names & {variant.name for variant in bench.variants()}
