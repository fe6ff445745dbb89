"""A graph with its kernels, and the copies of them that this file holds."""

from __future__ import annotations

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
            nor is the wrapper then. None until the constants are set: only `probe` can.
        donated: inputs, by position, that a call may write to: nothing reads them after it.
    """

    def __init__(self, names: dict[str, Any], sizes: Mapping[str, int] | None = None) -> None:
        self.namespace, self.sizes = names, dict(sizes or {})
        self.graph, self.no_reference = str(names["GRAPH"]), str(names["NO_REFERENCE"])
        self.kernels: list[str] = names["KERNELS"]
        self.aten_graph: Callable[[], Any] | None = names.get("AtenGraph")
        self.maker: Callable[[int], Any] = Inputs
        self.missing: dict[str, str] | None = None
        self.donated: set[int] = set(names.get("DONATED", ()))

    def inputs(self, seed: int) -> list[Any]:
        """Return fresh inputs."""
        return list(self.namespace["make_inputs"](self.maker(seed), **self.sizes))

    def variants(self, *names: str) -> list[str]:
        """Return the copies of the wrapper and of each kernel, or of `names`, that have to be right."""
        copies = [name for name in self.namespace if name not in self.namespace.get("ABLATIONS", ())]
        originals = names or ("call", *self.kernels)
        return [copy for name in originals for copy in copies if re.fullmatch(rf"{name}_v\d+", copy)]

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
