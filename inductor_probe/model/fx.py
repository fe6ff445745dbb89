"""FX graphs as `fx_graph_*.py` print them, and what torch notes beside them: provenance, its settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

from inductor_probe.model.record import Compared
from inductor_probe.model.span import Problem, SourceLine, Span


class FxNode(Compared, frozen=True):
    """One node: `target(args)`, with its printed type (`f32[4, 3]`) and the user's line it came from.

    `target` is `[]` for an item (`getitem = var_mean[0]`), `self` for an attribute of the module, and the
    operator for arithmetic on sizes. `arguments` is the text it is applied to, `inputs` the nodes named
    there, each once.
    """

    name: str
    target: str
    type: str | None
    source: SourceLine | None
    arguments: str = ""
    inputs: tuple[str, ...] = ()
    span: Span | None = None


class FxGraph(Struct, frozen=True, dict=True):
    """The graph's nodes in order, its inputs and the names of what it returns (None for a None output).

    Nodes of subgraphs (branches of `cond`, bodies of loops) follow, with the name of their subgraph before
    their own as inductor puts it before what it makes of them: `true_graph_0_add`. `subgraph_inputs` are what
    those take.
    """

    inputs: tuple[FxNode, ...]
    nodes: tuple[FxNode, ...]
    outputs: tuple[str | None, ...]
    problems: tuple[Problem, ...] = ()
    subgraph_inputs: tuple[FxNode, ...] = ()

    def node(self, name: str) -> FxNode | None:
        """Return the node called `name`."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, FxNode]:
        return {node.name: node for node in reversed(self.nodes)}


FX_NAMES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8",
    "complex64": "c64", "complex128": "c128", "bool": "b8",
}  # fmt: skip

FX_DTYPES = {short: dtype for dtype, short in FX_NAMES.items()}


def fx_dtype(dtype: str) -> str:
    """Return the name that FX graphs print, or the name itself where there is none (`float8_e5m2`)."""
    return FX_NAMES.get(dtype, dtype)


def short_dtype(dtype: str) -> str:
    """Return the same for a cast in a formula, where `bool(x)` says more than `b8(x)`."""
    return dtype if dtype == "bool" else fx_dtype(dtype)


Names = Mapping[str, tuple[str, ...]]


class Provenance(Compared, frozen=True):
    """`inductor_provenance_tracking_node_mappings.json`.

    Attributes:
        kernels: kernel or library call -> FX nodes after the passes, the launches of a kernel joined.
        launches: the same by launch (`cpp_fused_add_0:3`; the number is in the comment above the launch).
            Empty where torch does not number them (2.8 and before).
        pre_to_post: FX node before the passes -> FX nodes after them.
    """

    kernels: Names
    launches: Names
    pre_to_post: Names
    span: Span | None = None
    problems: tuple[Problem, ...] = ()


class Runnable(Struct, frozen=True):
    """The torch that made a dump, and how it was set.

    Attributes:
        torch_version: as printed.
        settings: torch's configuration where it is not the default, in order: its full name
            (`torch._inductor.config.cpp.simdlen`) and the value's text.
        environment: variables that are set in the program (torch 2.9 and later).
        symbols: symbolic sizes with what they were (`s77 = 3`; torch 2.11 and later).
    """

    torch_version: str | None
    settings: tuple[tuple[str, str], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    symbols: tuple[tuple[str, int], ...] = ()
    problems: tuple[Problem, ...] = ()
