"""What this file measures."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Bench:
    """A graph: its wrapper and kernels by name in `namespace`, where variants are found as `NAME_v2`, `_v3`.

    `aten_graph` makes the graph as a module of aten operations, None (and `no_reference` why) without one.
    """

    graph: str
    kernels: list[str]
    make_inputs: Callable[[int], list[Any]]
    aten_graph: Callable[[], Any] | None
    no_reference: str
    namespace: dict[str, Any]

    def variants(self) -> list[Variant]:
        """Return the edited copies in this file: of the wrapper, then of each kernel."""
        copies = [Variant(name, name) for name in self._copies("call")]
        for kernel in self.kernels:
            copies += [Variant(name, "call", {kernel: name}) for name in self._copies(kernel)]
        return copies

    def _copies(self, name: str) -> list[str]:
        return [copy for copy in self.namespace if re.fullmatch(rf"{name}_v\d+", copy)]


@dataclass
class Variant:
    """A version of the code: run `entry` with each kernel in `swaps` replaced by its copy."""

    name: str
    entry: str = "call"
    swaps: dict[str, str] = field(default_factory=dict)

    def run(self, bench: Bench, inputs: list[Any]) -> list[Any]:
        """Run it on `inputs` and return its outputs."""
        kept = {kernel: bench.namespace[kernel] for kernel in self.swaps}
        bench.namespace.update({kernel: bench.namespace[copy] for kernel, copy in self.swaps.items()})
        try:
            return list(bench.namespace[self.entry](list(inputs)))  # it empties the list that it is given
        finally:
            bench.namespace.update(kept)
