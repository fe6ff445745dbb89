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
    `kind` and `sizes` are what `make_inputs` is asked for.
    """

    graph: str
    kernels: list[str]
    make_inputs: Callable[..., list[Any]]
    aten_graph: Callable[[], Any] | None
    no_reference: str
    namespace: dict[str, Any]
    kind: str = "random"
    sizes: dict[str, int] = field(default_factory=dict)

    def inputs(self, seed: int) -> list[Any]:
        """Return fresh inputs.

        Raises:
            InputsError: there are none of that kind or of those sizes.
        """
        return self.make_inputs(seed, self.kind, self.sizes)

    def variants(self) -> list[Variant]:
        """Return the edited copies in this file that must be right: of the wrapper, then of each kernel."""
        copies = [Variant(name, name) for name in self._copies("call")]
        for kernel in self.kernels:
            copies += [Variant(name, "call", {kernel: name}) for name in self._copies(kernel)]
        return copies

    def ablations(self) -> dict[str, str]:
        """Return the copies that compute something else on purpose, and what each leaves out."""
        return dict(self.namespace.get("ABLATIONS", {}))

    def ablations_of(self, kernel: str) -> list[str]:
        """Return those of a kernel."""
        return [name for name in self.ablations() if re.fullmatch(rf"{kernel}_v\d+", name)]

    def _copies(self, name: str) -> list[str]:
        found = [copy for copy in self.namespace if re.fullmatch(rf"{name}_v\d+", copy)]
        return [copy for copy in found if copy not in self.ablations()]


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
