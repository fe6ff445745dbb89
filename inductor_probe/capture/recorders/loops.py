"""The loops of each node: in which order, which of them are merged into one, which one is divided.

torch/_inductor/ir.py, `ComputedBuffer.simplify_and_reorder`: loops get the order that most accesses ask for
(`pick_loop_order`), and neighbours become one where no index tells them apart (`_simplify_loops`). On a GPU
that is done after fusion (scheduler.py, `SchedulerNode.merge_loops`), since a pair may be fused if the loops
of one get the order of the other (`reorder_loops_by_dep_pair`). For example `x.t() + 1` of a contiguous
4096 x 64 tensor has the loops 4096, 64 with the strides of what it reads, in another order than its shape.

The C++ backend fuses `(4, 3, 271, 456)` with `(4, 3, 123576)` if both compute as many elements: the node of
fewer loops is made anew with the indices of the other (`_align_compatible_range_nodes`), so that they stay
apart. `CppScheduling.try_loop_split` divides a loop by the divisor in an index. What was tried for a pair and
taken back (`restore_loop_state`) is speculative.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
import weakref
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from inductor_probe.capture.branches import CallPath, calls
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    debug_folder,
    frame_at,
    inductor_caller,
    path_of_name,
    size_of,
    virtual_graph,
)
from inductor_probe.capture.recorders.loop_votes import (
    MOST_ACCESSES,
    Decided,
    MergeQuestion,
    OrderQuestion,
    merge_decided,
    order_decided,
    votes_of,
)
from inductor_probe.model.decision import TorchFrame

_IR, _SCHEDULER, _SIZES = "torch._inductor.ir", "torch._inductor.scheduler", "torch._inductor.sizevars"
_MERGES = "SizeVarAllocator._simplify_loops_impl"
_Question = tuple[Literal["order", "merge", "division"], bool]
"""What is decided of a loop body; whether of its reduced loops."""
_Made = dict[_Question, int]


@dataclass
class _Seen:
    """What was asked while loops of a node are made: of the others first, of the reduced ones second."""

    is_reduction: bool = False
    variables: Sequence[Any] = ()
    orders: dict[bool, OrderQuestion | None] = field(default_factory=dict)
    merges: dict[bool, MergeQuestion] = field(default_factory=dict)


class LoopChanges(Recorder):
    """Numbers of decisions: `_made` by loop body, `_latest` by node, `_numbers` by all that they say."""

    KIND = "loops"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._open: list[_Seen] = []
        self._paths: MutableMapping[Any, CallPath | None] = weakref.WeakKeyDictionary()
        self._made: MutableMapping[Any, _Made] = weakref.WeakKeyDictionary()
        self._folder: str | None = None
        self._latest: dict[tuple[int, str], _Made] = {}
        self._numbers: dict[object, int] = {}

    @sees(_SIZES, _MERGES, watches=True, nested=("can_merge_dims",))
    def asked(self, call: Call, *_: Any) -> None:
        """Remember the way that torch went, by what `_simplify_loops` returns: it has a cache."""
        self._paths[call.result[-1]] = call.path

    @sees(_SIZES, "SizeVarAllocator.make_simplify_loops_cache")
    def made_cached(self, call: Call, _: Any) -> None:
        """See each call of what merges loops: it is a function of each instance."""
        simplify = call.result

        @functools.wraps(simplify)
        def simplify_and_see(variables: Any, sizes: Any, indices: Any) -> Any:
            result = simplify(variables, sizes, indices)
            if self._open:
                self.log.safely(self._merged, result, variables, sizes)
            return result

        call.result = simplify_and_see

    def _merged(self, result: Any, variables: Any, sizes: Any) -> None:
        seen = self._open[-1]
        if inductor_caller().f_code.co_name not in ("simplify_and_reorder", "merge_loops"):
            return
        sizes_left, _, prune = result
        left = prune(list(range(len(sizes))))
        path = self._paths.get(prune)
        seen.merges[bool(seen.merges)] = MergeQuestion(variables, sizes, sizes_left, left, path)

    @sees(_IR, "ComputedBuffer._apply_loop_reordering")
    def reordering(self, _: Call, index_vars: Any, *__: Any, **___: Any) -> Iterator[None]:
        """See that an order is asked for: of the others first, of the reduced ones second."""
        if self._open:
            seen = self._open[-1]
            seen.is_reduction = bool(seen.orders)
            seen.orders[seen.is_reduction] = None
            seen.variables = index_vars
        yield

    @sees(_SCHEDULER, "pick_loop_order", watches=True, nested=("index_cmp",))
    def order_picked(self, call: Call, strides: Any, sizes: Any, *more: Any) -> None:
        """Keep the order that was picked, and the votes; without the setting they are counted here."""
        if not (self._open and self._open[-1].orders):
            return
        seen, config = self._open[-1], sys.modules["torch._inductor.config"]
        votes = votes_of(call.path)
        if not config.pick_loop_orders:
            pick = inspect.unwrap(sys.modules[_SCHEDULER].pick_loop_order)
            with config.patch(pick_loop_orders=True), calls() as made:
                pick(strides, sizes, *more)
            votes = votes_of(path_of_name(call.function, made))
        names = tuple(_named(variable) for variable in seen.variables)
        question = OrderQuestion(names, strides, sizes, tuple(reversed(call.result)), votes)
        seen.orders[seen.is_reduction] = question

    @sees(_IR, "ComputedBuffer.simplify_and_reorder")
    def simplified(
        self, call: Call, buffer: Any, extra_indexing_constraints: Any = None,
        recompute_sizes_body_func: Any = None,
    ) -> Iterator[None]:  # fmt: skip
        """Record in which order the loops of a buffer are, and which of them are one."""
        seen = _Seen()
        self._open.append(seen)
        try:
            yield
        finally:
            self._open.pop()
        sizes, body = call.result
        name, place = buffer.get_operation_name(), call.place
        made: _Made = {}
        if recompute_sizes_body_func is not None:  # the order and the other loops stay
            made |= self._latest.get((id(virtual_graph()), name), {})
            divided = _division(buffer, recompute_sizes_body_func, sizes[0])
            self._add(made, ("division", False), name, place, ("divided", divided))
            self._now(name, body, made)
            return
        default = buffer.get_default_sizes_body()[1]  # torch keeps it
        for is_reduction, order in seen.orders.items():
            if order is not None and sum(bool(size != 1) for size in order.sizes) > 1:
                decided = _order(buffer, default, order, is_reduction)
                self._add(made, ("order", is_reduction), name, place, decided)
        for is_reduction, merge in seen.merges.items():
            self._add(made, ("merge", is_reduction), name, place, _merge(default, merge, is_reduction))
        self._now(name, body, made)

    def _add(
        self, made: _Made, question: _Question, name: str, place: TorchFrame, decided: Decided | None
    ) -> None:
        if decided is None:
            return
        outcome, cause = decided
        self._forget_other_graphs()
        key = (id(virtual_graph()), name, question, outcome, cause.code, tuple(cause.operands.items()))
        number = self._numbers.get(key)
        if number is None:
            number = self.record(outcome, cause, place, (name,))
        if number is not None:
            made[question] = self._numbers[key] = number

    def _now(self, name: str, body: Any, made: _Made) -> None:
        """Let `made` be the decisions about a node whose body is now `body`: all others were tried only."""
        self._forget_other_graphs()
        before = self._latest.get((id(virtual_graph()), name), {})
        for number in set(before.values()) - set(made.values()):
            self.log.revise(number, speculative=True)
        for number in set(made.values()) - set(before.values()):
            self.log.revise(number, speculative=False)
        self._latest[id(virtual_graph()), name] = made
        self._made[body] = made

    def _forget_other_graphs(self) -> None:
        folder = debug_folder()
        if folder != self._folder:
            self._folder, self._latest, self._numbers = folder, {}, {}

    @sees(_SCHEDULER, "SchedulerNode.restore_loop_state", may_lack=True)  # torch 2.11 takes nothing back
    def restored(self, _: Call, node: Any, *__: Any) -> None:
        """See that loops are as they were before a trial."""
        made = self._made.get(node._body)
        if made is not None:
            self._now(node.get_name(), node._body, made)

    @sees(_SCHEDULER, "SchedulerNode.apply_new_loop_order")
    def reordered(self, _: Call, node: Any, order: Sequence[int]) -> Iterator[None]:
        """Record that loops got the order of another node's."""
        made = dict(self._made.get(node._body, {}))
        yield
        self._reordered(node, made, order)

    def _reordered(self, node: Any, made: _Made, order: Sequence[int]) -> None:
        frame = inductor_caller()
        if frame.f_code.co_name != "reorder_loops_by_dep_pair":
            made.pop(("order", False), None)  # for a mix-order reduction, whose fusion is what was decided
            self._now(node.get_name(), node._body, made)
            return
        operands: Operands = {
            "order": tuple(f"d{dim}" for dim in order),
            "loops": tuple(str(size_of(size)) for size in node._sizes[0]),
            "buffer": str(frame.f_locals["self_dep"].name),
        }
        trying = frame.f_back
        if trying is not None and "node1" in trying.f_locals:
            pair = [trying.f_locals[which] for which in ("node1", "node2")]
            partners = [one.get_name() for one in pair if node.get_name() not in one.get_operation_names()]
            operands |= {"partner": partners[0]} if partners else {}
        place = frame_at(frame.f_code, frame.f_code.co_firstlineno)
        decided: Decided = "reordered", Cause("order-of-partner", operands)
        self._add(made, ("order", False), node.get_name(), place, decided)
        self._now(node.get_name(), node._body, made)

    @sees(_SCHEDULER, "SchedulerNode.merge_loops")
    def node_merged(self, call: Call, node: Any) -> Iterator[None]:
        """Record which loops of a node are merged after fusion."""
        body, seen = node._body, _Seen()
        self._open.append(seen)
        try:
            yield
        finally:
            self._open.pop()
        made = {key: number for key, number in self._made.get(body, {}).items() if key[0] != "merge"}
        for is_reduction, merge in seen.merges.items():
            decided = _merge(body, merge, is_reduction)
            self._add(made, ("merge", is_reduction), node.get_name(), call.place, decided)
        self._now(node.get_name(), node._body, made)


def _order(buffer: Any, body: Any, question: OrderQuestion, is_reduction: bool) -> Decided | None:
    config = sys.modules["torch._inductor.config"]
    accesses = [f"{how} {name}" for how, name, _ in _accesses(body, stores_first=True)]
    operands: Operands = {
        "sizes": tuple(str(size_of(size)) for size in question.sizes),
        "loops": tuple(str(size_of(question.sizes[dim])) for dim in question.order),
        "order": tuple(question.names[dim] for dim in question.order),
        "accesses": tuple(
            f"{access} ({', '.join(map(str, strides))})"
            for access, strides in zip(accesses, question.strides, strict=False)
        )[:MOST_ACCESSES],
        "count": len(question.strides),
    }  # fmt: skip
    if is_reduction:
        operands["reduced"] = True
    if buffer.get_reduction_type() == "dot" and len(question.sizes) == 3 and question.order[0] != 0:
        return None  # the batch of Triton's own matrix product is the outermost loop in any case
    outcome, cause = order_decided(question, is_on=bool(config.pick_loop_orders))
    return outcome, cause.behind(operands)


def _merge(body: Any, question: MergeQuestion, is_reduction: bool) -> Decided | None:
    accesses = _accesses(body)

    def access_of(index: Any) -> Operands:
        access = next(((how, buffer) for how, buffer, one in accesses if one == index), None)
        if access is None:
            return {"index": _named(index)}
        return {"index": _named(index), "does": access[0], "buffer": access[1]}

    decided = merge_decided(question, access_of, _named)
    if decided is None:
        return None
    outcome, cause = decided
    index = cause.operands.get("index") if outcome == "separate" else None
    if index is not None and index not in [*map(_named, body.indexing_exprs.values())]:
        partner = _partner()
        cause = cause._replace(code="loops-of-partner").also({"partner": partner} if partner else {})
    return outcome, cause.also({"reduced": True} if is_reduction else {})


def _division(buffer: Any, loop_split: Any, left: Sequence[Any]) -> Cause:
    """Return the loop that `CppScheduling.try_loop_split` divides, and by what: they are in its closure."""
    values = inspect.getclosurevars(loop_split).nonlocals
    (sizes, _), _, (variables, _) = buffer.get_default_sizes_body()
    size = sizes[variables.index(values["split_var"])]
    return Cause("divided-index", {
        "loop": _named(values["split_var"]), "range": size_of(size),
        "divisor": size_of(values["split_number"]), "loops": tuple(str(size_of(size)) for size in left),
    })  # fmt: skip


def _accesses(body: Any, *, stores_first: bool = False) -> list[tuple[str, str, Any]]:
    """Return what a body does to which buffer at which index, as `LoopBody.get_write_exprs` finds it."""
    usage = body.memory_usage
    kinds = sys.modules["torch._inductor.loop_body"].MemoryUsageType
    stores = [("write of", entry) for kind in (kinds.STORE, kinds.STORE_REDUCTION) for entry in usage[kind]]
    loads = [("read of", entry) for entry in usage[kinds.LOAD]]
    both = [*stores, *loads] if stores_first else [*loads, *stores]
    return [(how, str(entry.buffer_name), body.indexing_exprs[entry.index_name]) for how, entry in both]


def _partner() -> str | None:
    """Return the node that loops are made to agree with: `_align_compatible_range_nodes` has both."""
    frame = inductor_caller()
    while frame.f_back is not None:
        if frame.f_code.co_name in ("_align_compatible_range_nodes", "fuse") and "ref_node" in frame.f_locals:
            return str(frame.f_locals["ref_node"].get_name())
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=4096, typed=True)
def _named(index: Any) -> str:
    """Return the text of a dimension or of an index: `d0` for what torch calls `q0` here alone."""
    return re.sub(r"\bq(?=\d)", "d", str(index))
