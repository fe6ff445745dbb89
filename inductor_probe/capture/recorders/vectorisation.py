"""Whether each C++ loop nest is vectorised, and why: `TilingSelect.select_tiling` decides, and logs nothing.

torch/_inductor/codegen/cpp.py, `CppKernelProxy.codegen_functions`, generates the scalar kernel, asks
`TilingSelect` for factors and loops, and generates vector kernels for these. For example channels-last uint8
hflip, loops `x0: 4096, x1: 3`, is asked for the loop x1 (its accesses have stride 1), and refused there:
3 < 16 / 4 and 2 operations < 10. Each question is answered once more when an outer loop fusion is undone
(`CppScheduling.codegen_outer_loop_node`): the last answer for the same nodes is the one whose code is kept.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inductor_probe.capture.recorders.decision_log import DecisionLog, place_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame

KIND: DecisionKind = "vectorisation"

# The thresholds are literals in TilingSelect.select_tiling, the same in torch 2.11 and 2.13.
_COUNT_LIMIT = 35
_SHARE_LIMIT = 0.12
_OPERATIONS_LIMIT = 10
_UNCOUNTED = ("ops", "output", "constant", "get_index")
_INDEXED = {"load": 2, "store": 2, "index_expr": 1, "value_expr": 1}
"""Operations that are checked for contiguity, and which argument is the index."""


@dataclass
class _Question:
    """What is seen while `codegen_functions` runs; `place`: of `select_tiling`, None if it was not asked."""

    place: TorchFrame | None = None
    candidates: list[int] = field(default_factory=list)
    factor: int | None = None
    answer: Sequence[Any] = ()
    functions: Sequence[Any] = ()
    sizes: Sequence[Any] = ()


class _Recorder:
    def __init__(self, cpp: Any, log: DecisionLog) -> None:
        self._cpp = cpp
        self._log = log
        self._open: list[_Question] = []

    def around_codegen(self, codegen: Callable[..., Any]) -> Callable[..., Any]:
        """Return `codegen_functions` so that what it decided is recorded when it has returned."""
        place = place_of(codegen)

        def codegen_and_record(proxy: Any, functions: Any, sizes: Any) -> Any:
            self._open.append(_Question(functions=functions, sizes=sizes))
            try:
                result = codegen(proxy, functions, sizes)
                self._log.safely(self._record, proxy, place, self._open[-1])
            finally:
                self._open.pop()
            return result

        return codegen_and_record

    def tiling_selected(
        self, place: TorchFrame, result: Any, _select: object, functions: Any, sizes: Any
    ) -> None:
        """Remember what `select_tiling` answered: factors, loops, and from torch 2.12 what it counted."""
        if self._open:
            self._open[-1].place, self._open[-1].answer = place, result

    def loops_selected(
        self, _: TorchFrame, result: Any, _select: object, functions: Any, sizes: Any, factor: Any
    ) -> None:
        """Remember the loops that `_select_tiling_indices` offers, and the width for which it did."""
        if self._open:
            self._open[-1].candidates, self._open[-1].factor = list(result), int(factor)

    def _record(self, proxy: Any, place: TorchFrame, question: _Question) -> None:
        subjects = _nodes(question.functions)
        cause, operands = self._cause(proxy, question)
        outcome: Outcome = "vectorised" if cause in ("one-dimension", "two-dimensions") else "scalar"
        self._log.record(
            KIND, (subjects,), outcome, cause, question.place or place,
            operands=operands, key=subjects or None, speculative=not subjects,
        )  # fmt: skip

    def _cause(self, proxy: Any, question: _Question) -> tuple[CauseCode, dict[str, Operand]]:
        if not proxy.itervars:
            return "no-loops", {}
        if not proxy.picked_vec_isa:
            return "no-vector-isa", {}
        isa: dict[str, Operand] = {"isa": str(proxy.picked_vec_isa)}
        bodies = self._cpp._get_loop_body(question.functions)
        dtypes = self._cpp._get_dtype_from_loopbodies(bodies)
        other = sorted(str(dtype).removeprefix("torch.") for dtype in dtypes - self._vectorisable())
        if other:
            return "dtype-not-vectorisable", {"dtypes": tuple(other)}
        factors, loops = question.answer[:2]
        names = [str(proxy.itervars[index]) for index in loops or question.candidates]
        operations, non_contiguous = self._counts(proxy, question, bodies)
        refused = sum(non_contiguous.values())
        counts: dict[str, Operand] = {"operations": operations, "non_contiguous": refused}
        if len(loops) == 2:
            return "two-dimensions", {"loops": tuple(names), "factor": int(factors[0]), **isa}
        size = proxy.call_ranges[(loops or question.candidates)[0]]
        inner: dict[str, Operand] = {"loop": names[0], "range": _size(size)}
        if loops:
            return "one-dimension", {**inner, "factor": int(factors[0]), **counts, **isa}
        share = refused / operations if operations else 0.0
        if refused >= _COUNT_LIMIT or share >= _SHARE_LIMIT:
            kinds = {f"{name}s": non_contiguous[name] for name in _INDEXED if non_contiguous[name]}
            return "non-contiguous-accesses", {
                "loop": names[0], **counts, "share": round(share, 4),
                "count_limit": _COUNT_LIMIT, "share_limit": _SHARE_LIMIT, **kinds,
            }  # fmt: skip
        factor = question.factor or 0
        return "short-inner-range", {
            **inner, "range_limit": factor / 4, "factor": factor, "operations": operations,
            "operations_limit": _OPERATIONS_LIMIT,
        }  # fmt: skip

    def _vectorisable(self) -> set[Any]:
        return set(self._cpp.VECTORIZABLE_DTYPES)

    def _counts(
        self, proxy: Any, question: _Question, bodies: Iterable[Any]
    ) -> tuple[int, Mapping[str, int]]:
        """Return how many operations torch counted, and how many non-contiguous ones of each kind."""
        if len(question.answer) > 2:
            stats = question.answer[2]
            return sum(stats.op_counter.values()), Counter(stats.non_contig_indexing_op_counter)
        # torch 2.11 keeps its counts to itself: count as select_tiling does.
        depth, variables = proxy.reduction_depth, proxy.itervars
        operations, non_contiguous = 0, Counter[str]()
        loop = variables[question.candidates[0]]
        for body in bodies:
            for block in (body.root_block, *body.subblocks.values()):
                for node in block.graph.nodes:
                    if not isinstance(node.target, str):
                        continue
                    operations += not (node.target.startswith("masked_subblock") or node.target in _UNCOUNTED)
                    if node.target not in _INDEXED or len(question.candidates) != 1:
                        continue
                    indices = block.body.indexing_from_args((variables[:depth], variables[depth:]))
                    index = indices[node.args[_INDEXED[node.target]].args[0]]
                    stride = self._cpp.stride_at_vec_range(index, loop, question.factor)
                    known = stride if stride.is_number else None
                    is_expression = node.target in ("index_expr", "value_expr")
                    if known is None if is_expression else known not in (0, 1):
                        non_contiguous[node.target] += 1
        return operations, non_contiguous


def _nodes(functions: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the nodes that `codegen_nodes` has bound; a template's loop bodies have none."""
    bound = [function.args[0] for function in functions if isinstance(function, functools.partial)]
    return tuple(node.get_name() for node in bound if hasattr(node, "get_name"))


def _size(size: Any) -> int | str:
    return int(size) if getattr(size, "is_number", True) else str(size)


def _hook(cpp: Any, log: DecisionLog) -> None:
    recorder = _Recorder(cpp, log)
    wrap(cpp, "CppKernelProxy.codegen_functions", recorder.around_codegen)
    wrap(cpp, "TilingSelect.select_tiling", log.observed(recorder.tiling_selected))
    wrap(cpp, "TilingSelect._select_tiling_indices", log.observed(recorder.loops_selected))


HOOKS = {"torch._inductor.codegen.cpp": _hook}
