"""A graph with its kernels, and the edited copies of them that this file holds."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from inductor_probe.harness.inputs import Inputs

Call: TypeAlias = "Callable[[], object]"  # of a kernel or wrapper, with its arguments bound


class Bench:
    """The names of a bench file: what it has for a graph, its kernels and copies of them (`NAME_v2`, `_v3`).

    Attributes:
        aten_graph: makes the graph as a module of aten operations; None, and `no_reference` why, without one.
        missing: kernels and library calls that take a constant that cannot be had, and why: none is judged,
            nor is the wrapper then. None until the constants are set.
    """

    def __init__(self, names: dict[str, Any], sizes: Mapping[str, int] | None = None) -> None:
        self.namespace, self.sizes = names, dict(sizes or {})
        self.graph: str = names["GRAPH"]
        self.kernels: list[str] = names["KERNELS"]
        self.no_reference: str = names["NO_REFERENCE"]
        self.aten_graph: Callable[[], Any] | None = names.get("AtenGraph")
        self.maker: Callable[[int], Any] = Inputs
        self.missing: dict[str, str] | None = None

    def inputs(self, seed: int) -> list[Any]:
        """Return fresh inputs."""
        return list(self.namespace["make_inputs"](self.maker(seed), **self.sizes))

    def variants(self, *names: str) -> list[str]:
        """Return the copies of the wrapper and of each kernel, or of `names`, that have to be right."""
        copies = [name for name in self.namespace if name not in self.namespace.get("ABLATIONS", ())]
        missing = ("call", *self.missing) if self.missing else ()
        known = [name for name in names or ("call", *self.kernels) if name not in missing]
        return [copy for name in known for copy in copies if re.fullmatch(rf"{name}_v\d+", copy)]

    def run(self, name: str, inputs: list[Any]) -> list[Any]:
        """Run `call` on `inputs`, or a copy of it, or `call` with a kernel's copy; return the outputs."""
        with replaced(self.namespace, {original_of(name): self.namespace[name]}):
            return list(self.namespace["call"](list(inputs)))  # it empties its list


def original_of(name: str) -> str:
    """Return what `name` is a copy of, itself if it is none: `k` for `k_v2`."""
    return re.sub(r"_v\d+$", "", name)


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

    An unedited `call_v2` launches the copies of its number: it counts as edited if one of those was edited.
    """
    lines, texts = linecache.getlines(bench.namespace.get("__file__", "")), dict[str, str]()
    for node in ast.parse("".join(lines)).body:
        name = str(getattr(node, "name", "") or getattr(getattr(node, "targets", [None])[0], "id", ""))
        texts[name] = "".join(lines[node.lineno - 1 : node.end_lineno])
    edited = set[str]()
    for name in texts:
        number = name[len(original_of(name)) :]
        pair = [re.sub(rf"{number}\b", "", texts.get(copy, "")) for copy in (name, original_of(name))]
        edited |= {name, f"call{number}"} if pair[0] != pair[1] else set()
    return {name for name in bench.variants() if name in texts and name not in edited}
