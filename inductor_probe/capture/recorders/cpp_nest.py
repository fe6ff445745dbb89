"""What is seen while inductor generates one C++ loop nest, for the recorders of its decisions.

torch/_inductor/codegen/cpp.py, `CppKernelProxy.codegen_functions`, generates the scalar kernel of a group of
nodes, asks `TilingSelect.select_tiling` for factors and loops, and generates vector kernels for these. It is
wrapped once here; each recorder of a kind gets the `Nest` when the function has returned.

Who is asked about:

- Nodes of the scheduler. Where an outer loop fusion is undone (`CppScheduling.codegen_outer_loop_node`) the
  same nodes are asked again, and only the code of the last answer is kept.
- Loop bodies of a template, which have no nodes of their own. Those of `CppScheduling.codegen_template` are
  the template's and its epilogues'; others belong to a candidate that max-autotune tries.
"""

from __future__ import annotations

import functools
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees
from inductor_probe.capture.recorders.decision_log import DecisionLog, names_of, printed
from inductor_probe.model.decision import Outcome, TorchFrame

_CPP = "torch._inductor.codegen.cpp"
_SELECT = "TilingSelect._select_tiling_indices"
_COUNTED_USES = ("contig_vars_list", "non_contig_stride_const", "non_contig_stride_other")
"""Its variables: a loop as often as it is contiguous, and the loops that are strided elsewhere."""
_INDEXED = {"load": 2, "store": 2, "index_expr": 1, "value_expr": 1}
"""Operations that are checked for contiguity, and which argument is the index."""
_COUNTS = {"operations": "op_num > ?", "non_contiguous": "non_contig_indexing_op_num >= ?"}


class Access(Struct, frozen=True):
    """A load, a store, or an index that is a value, of a node; `stride` along the loop in question."""

    node: str
    operation: str
    buffer: str
    index: str
    stride: str
    contiguous: bool


MOST_ACCESSES = 8
"""Accesses that are named in a decision; all are counted."""


def first_accesses(accesses: Sequence[Access]) -> Operands:
    """Return the first accesses, in tuples of equal lengths."""
    first = accesses[:MOST_ACCESSES]
    return {
        "nodes": tuple(access.node for access in first),
        "node_operations": tuple(access.operation for access in first),
        "buffers": tuple(access.buffer for access in first),
        "indices": tuple(access.index for access in first),
        "strides": tuple(access.stride for access in first),
    }


class LoopUses(Struct, frozen=True):
    """How often a loop is contiguous in the accesses of a nest, and whether it is strided in others.

    `constant_stride`: somewhere by a number or a size; `other_stride`: somewhere by what is neither.
    """

    contiguous: int = 0
    constant_stride: bool = False
    other_stride: bool = False


@dataclass
class Nest:
    """One call of `codegen_functions`.

    Attributes:
        cpp: torch's module. proxy: the `CppKernelProxy`. functions, sizes: its arguments.
        place: of `codegen_functions`. tiling_place: of `select_tiling`, None if it was not asked.
        answer: factors, loops, and from torch 2.12 what was counted. loop_place, candidates, factor: of
            `_select_tiling_indices`, with what it answered and the lanes for which it was asked.
        tiling_path, loop_path: which way these two went. inner_paths: what `codegen_functions` called.
        uses: of each loop variable. accesses: those that `select_tiling` checks.
        template: names of the nodes of the template that is being generated, if any.
    """

    cpp: Any
    proxy: Any
    functions: Sequence[Any]
    sizes: Sequence[Any]
    place: TorchFrame
    template: tuple[str, ...] = ()
    tiling_place: TorchFrame | None = None
    loop_place: TorchFrame | None = None
    tiling_path: CallPath | None = None
    loop_path: CallPath | None = None
    inner_paths: Sequence[CallPath] = ()
    answer: Sequence[Any] = ()
    candidates: list[int] = field(default_factory=list)
    factor: int = 0
    uses: dict[int, LoopUses] = field(default_factory=dict)
    accesses: list[Access] = field(default_factory=list)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the scheduler nodes; a template's loop bodies have none."""
        return tuple(name for name in map(node_name, self.functions) if name)

    @property
    def bodies(self) -> list[tuple[str, Any]]:
        """Name of the node, empty in a template, and loop body, of each function."""
        return [*zip(map(node_name, self.functions), self.cpp._get_loop_body(self.functions), strict=True)]

    @property
    def written(self) -> tuple[str, ...]:
        """Buffers that the loop bodies store to."""
        blocks = (block for _, body in self.bodies for block in _blocks(body))
        stores = (node.args[1] for block in blocks for node in block.graph.nodes if node.target == "store")
        return tuple(dict.fromkeys(str(name) for name in stores))

    def size(self, loop: int) -> Any:
        """Return the number of iterations of a loop: an integer of sympy, or an expression."""
        return self.proxy.call_ranges[loop]

    def loop_name(self, loop: int) -> str:
        """Return the variable of a loop as the C++ text has it."""
        return printed(self.proxy.itervars[loop])

    @property
    def kernels(self) -> list[Any]:
        """The kernels that are in the text: that of full vectors of a loop of 3 has no iteration."""
        return [
            kernel
            for kernel in self.proxy.kernels
            if not any(start == end for start, end in kernel.active_ranges.values())
        ]

    @property
    def counts(self) -> Operands:
        """How many operations `select_tiling` counted, and how many non-contiguous accesses among them.

        Torch 2.11 tells no number that it did not compare: 35 such accesses are enough, of how many ever.
        """
        if len(self.answer) > 2:  # since torch 2.12
            stats = self.answer[2]
            counted = (stats.op_counter, stats.non_contig_indexing_op_counter)
            return dict(zip(_COUNTS, (sum(one.values()) for one in counted), strict=True))
        path = self.tiling_path
        tests = {name: path.tested(text) for name, text in _COUNTS.items()} if path is not None else {}
        return {name: int(one.values[0]) for name, one in tests.items() if one is not None}

    @property
    def tiled(self) -> list[int]:
        """The loops that are vectorised; none where the nest is scalar."""
        return list(self.answer[1]) if self.answer else []


class Nests(Recorder):
    """The nests that are being generated: a template's nest may be generated within another.

    `listeners` are called with each that is.
    """

    KIND = "vectorisation"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self.listeners: list[Callable[[Nest], None]] = []
        self._open: list[Nest] = []
        self._template: tuple[str, ...] = ()

    @property
    def now(self) -> Nest | None:
        """The nest that is being generated now."""
        return self._open[-1] if self._open else None

    @sees(_CPP, "CppKernelProxy.codegen_functions", watches=True, nested=("_tail_vec_worthwhile",))
    def generated(self, call: Call, proxy: Any, functions: Any, sizes: Any) -> Iterator[None]:
        """Let the listeners see a nest."""
        nest = Nest(sys.modules[_CPP], proxy, functions, sizes, call.place, self._template)
        self._open.append(nest)
        try:
            yield
        finally:
            self._open.pop()
        nest.inner_paths = call.path.inner if call.path is not None else ()
        for listener in self.listeners:
            self.log.safely(listener, nest)

    @sees(_CPP, "CppScheduling.codegen_template")
    def template(
        self, _: Call, __: Any, template: Any, epilogues: Any, *___: Any, **____: Any
    ) -> Iterator[None]:
        """Name the nodes of a template while it is generated."""
        nodes = [node for fused in (template, *epilogues) for node in fused.get_nodes()]
        before, self._template = self._template, names_of(nodes)
        try:
            yield
        finally:
            self._template = before

    @sees(_CPP, _SELECT, watches=True, nested=(_SELECT.rpartition(".")[2],))
    def loops_selected(self, call: Call, _: object, *more: Any) -> None:
        """Keep the candidates of a nest, and what was counted of its loops."""
        if nest := self.now:
            nest.loop_place, nest.loop_path, nest.candidates = call.place, call.path, list(call.result)
            nest.factor, nest.uses = int(more[-1]), _uses(call.path)

    @sees(_CPP, "TilingSelect.select_tiling", watches=True)
    def tiling_selected(self, call: Call, *_: object) -> None:
        """Keep the answer of a nest, and the accesses that were checked for it."""
        if nest := self.now:
            nest.tiling_place, nest.tiling_path, nest.answer = call.place, call.path, call.result
            if len(nest.candidates) == 1:  # of two loops it checks no access
                _count_accesses(nest)


class OfNests(Recorder):
    """Records decisions about nests: `record_nest` is called with each that was generated."""

    KIND = "vectorisation"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self.nests = Nests.of(log)
        self.nests.listeners.append(self.record_nest)

    @abstractmethod
    def record_nest(self, nest: Nest) -> None:
        """Record what was decided about a nest."""

    def answer(
        self, nest: Nest, question: str, outcome: Outcome | None, cause: Cause | None, place: TorchFrame
    ) -> None:
        """Record an answer about a nest; a later one to the question about the same nodes takes its place.

        Both are None where there is nothing to decide: that of an earlier generation is forgotten.
        """
        nodes = nest.nodes
        names = nodes or nest.template
        written = () if names else nest.written
        # A template has several nests, each with an answer of its own.
        key = None if names and not nodes else (question, nodes or ("try", written))
        if outcome is None or cause is None:
            self.log.forget(self.KIND, key)
        elif names:
            self.record(outcome, cause, place, names, key=key)
        else:
            self.record(outcome, cause, place, written, subject_type="buffer", key=key, speculative=True)


def node_name(function: Any) -> str:
    """Return the name of the node that `CppKernelProxy.codegen_nodes` has bound, empty for a loop body.

    With local buffers `LocalBufferContext.localize_function` wraps the bound function, as `original_fn`.
    """
    bound = getattr(function, "original_fn", function)
    arguments = bound.args if isinstance(bound, functools.partial) else ()
    return str(arguments[0].get_name()) if arguments and hasattr(arguments[0], "get_name") else ""


def _blocks(body: Any) -> Iterator[Any]:
    yield body.root_block
    yield from body.subblocks.values()


def _uses(path: CallPath | None) -> dict[int, LoopUses]:
    """Return what `_select_tiling_indices` counted of each loop.

    For example the indices 64*d0 + d1 and d0 + 64*d1 make each of the two loops contiguous once, and strided
    by a constant once.
    """
    counted = [path.variables.get(name, ()) for name in _COUNTED_USES] if path is not None else []
    loops = sorted({loop for among in counted for loop in among})
    return {
        loop: LoopUses(counted[0].count(loop), *(loop in among for among in counted[1:])) for loop in loops
    }


def _count_accesses(nest: Nest) -> None:
    """Keep which node each access belongs to that `select_tiling` checks.

    This asks each of them once more: torch counts in a loop, and what it tested is the sum (`counts`).
    """
    proxy = nest.proxy
    depth, variables = proxy.reduction_depth, proxy.itervars
    loop = variables[nest.candidates[0]]
    for name, body in nest.bodies:
        for block in _blocks(body):
            indices: dict[str, Any] | None = None
            for node in block.graph.nodes:
                if not isinstance(node.target, str):
                    continue
                target = node.target
                if target not in _INDEXED:
                    continue
                indices = indices or block.body.indexing_from_args((variables[:depth], variables[depth:]))
                index = indices[node.args[_INDEXED[target]].args[0]]
                stride = nest.cpp.stride_at_vec_range(index, loop, nest.factor)
                is_value = target in ("index_expr", "value_expr")
                contiguous = bool(stride.is_number if is_value else stride.is_number and stride in (0, 1))
                buffer = "" if is_value else str(node.args[1])
                nest.accesses.append(
                    Access(name, target, buffer, printed(index), printed(stride), contiguous)
                )
