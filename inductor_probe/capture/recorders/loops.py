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
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from inductor_probe.capture.branches import CallPath, calls
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    debug_folder,
    inductor_caller,
    named,
    path_of,
    place_of,
    size_of,
)
from inductor_probe.capture.recorders.loop_votes import (
    MOST_ACCESSES,
    LoopsApart,
    MergeQuestion,
    OrderQuestion,
    kept_apart,
    merge_decided,
    order_decided,
    votes_of,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame, TorchTest

KIND: DecisionKind = "loops"

_MERGES = "SizeVarAllocator._simplify_loops_impl"
_Question = tuple[Literal["order", "merge", "division"], bool]
"""What is decided of a loop body; whether of its reduced loops."""
_Made = dict[_Question, int]
_Decided = tuple[Outcome, CauseCode, dict[str, Operand]]


@dataclass
class _Seen:
    """What was asked while loops of a node are made: of the others first, of the reduced ones second."""

    is_reduction: bool = False
    variables: Sequence[Any] = ()
    orders: dict[bool, OrderQuestion | None] = field(default_factory=dict)
    merges: dict[bool, MergeQuestion] = field(default_factory=dict)


class _Recorder:
    """Numbers of decisions: `made` by loop body, `latest` by node, `numbers` by all that they say."""

    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._open: list[_Seen] = []
        self._apart: MutableMapping[Any, Mapping[tuple[int, int], LoopsApart]] = weakref.WeakKeyDictionary()
        self._made: MutableMapping[Any, _Made] = weakref.WeakKeyDictionary()
        self._folder: str | None = None
        self._latest: dict[tuple[int, str], _Made] = {}
        self._numbers: dict[object, int] = {}

    def hook_ir(self, ir: Any, log: DecisionLog) -> None:
        """Wrap what makes loops of a buffer."""
        wrap(ir, "ComputedBuffer.simplify_and_reorder", self._around_simplify)
        wrap(ir, "ComputedBuffer._apply_loop_reordering", self._around_reordering)

    def hook_scheduler(self, scheduler: Any, log: DecisionLog) -> None:
        """Wrap what picks an order, and what changes loops of a node."""
        log.watch(scheduler, "pick_loop_order", "index_cmp")
        wrap(scheduler, "pick_loop_order", log.followed(self._order_picked))
        wrap(scheduler, "SchedulerNode.apply_new_loop_order", self._around_new_order)
        wrap(scheduler, "SchedulerNode.merge_loops", self._around_merge)
        if hasattr(scheduler.SchedulerNode, "restore_loop_state"):  # torch 2.11 takes nothing back
            wrap(scheduler, "SchedulerNode.restore_loop_state", log.observed(self._restored))

    def hook_sizes(self, sizevars: Any, log: DecisionLog) -> None:
        """Wrap what merges loops. It is a function of each instance, with a cache of what it gave."""
        log.watch(sizevars, _MERGES, "can_merge_dims")
        wrap(sizevars, _MERGES, log.followed(self._asked))
        wrap(sizevars, "SizeVarAllocator.make_simplify_loops_cache", self._around_make_simplify)

    def _asked(self, _: TorchFrame, path: CallPath | None, result: Any, *__: Any) -> None:
        self._apart[result[-1]] = kept_apart(path)

    def _around_make_simplify(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def make_observed(sizevars: Any) -> Callable[..., Any]:
            simplify = make(sizevars)

            @functools.wraps(simplify)
            def simplify_and_see(variables: Any, sizes: Any, indices: Any) -> Any:
                result = simplify(variables, sizes, indices)
                if self._open:
                    self._log.safely(self._merged, result, variables, sizes)
                return result

            return simplify_and_see

        return make_observed

    def _merged(self, result: Any, variables: Any, sizes: Any) -> None:
        seen = self._open[-1]
        if inductor_caller().f_code.co_name not in ("simplify_and_reorder", "merge_loops"):
            return
        sizes_left, _, prune = result
        left = prune(list(range(len(sizes))))
        is_reduction = bool(seen.merges)
        apart = self._apart.get(prune, {})
        seen.merges[is_reduction] = MergeQuestion(variables, sizes, sizes_left, left, apart)

    def _around_reordering(self, reorder: Callable[..., Any]) -> Callable[..., Any]:
        def reorder_and_see(*args: Any, **kwargs: Any) -> Any:
            if self._open:
                self._open[-1].is_reduction = bool(self._open[-1].orders)
                self._open[-1].orders[self._open[-1].is_reduction] = None
                self._open[-1].variables = args[0] if args else kwargs["index_vars"]
            return reorder(*args, **kwargs)

        return reorder_and_see

    def _order_picked(
        self, _: TorchFrame, path: CallPath | None, order: Any, strides: Any, sizes: Any, *more: Any
    ) -> None:
        if not (self._open and self._open[-1].orders):
            return
        seen, config = self._open[-1], sys.modules["torch._inductor.config"]
        votes = votes_of(path)
        if not config.pick_loop_orders:
            pick = inspect.unwrap(sys.modules["torch._inductor.scheduler"].pick_loop_order)
            with config.patch(pick_loop_orders=True), calls() as made:
                pick(strides, sizes, *more)
            votes = votes_of(path_of(pick, made))
        names = tuple(_named(variable) for variable in seen.variables)
        question = OrderQuestion(names, strides, sizes, tuple(reversed(order)), votes)
        seen.orders[seen.is_reduction] = question

    def _around_simplify(self, simplify: Callable[..., Any]) -> Callable[..., Any]:
        place = place_of(simplify)

        def simplify_and_record(buffer: Any, *args: Any, **kwargs: Any) -> Any:
            self._open.append(_Seen())
            try:
                result = simplify(buffer, *args, **kwargs)
            finally:
                seen = self._open.pop()
            self._log.safely(self._simplified, place, seen, (buffer, *result), *args, **kwargs)
            return result

        return simplify_and_record

    def _simplified(
        self, place: TorchFrame, seen: _Seen, made_of: tuple[Any, Any, Any],
        extra_indexing_constraints: Any = None, recompute_sizes_body_func: Any = None,
    ) -> None:  # fmt: skip
        buffer, sizes, body = made_of
        name = buffer.get_operation_name()
        made: _Made = {}
        if recompute_sizes_body_func is not None:  # the order and the other loops stay
            made |= self._latest.get((id(_graph()), name), {})
            decided = _division(buffer, recompute_sizes_body_func, sizes[0])
            self._add(made, ("division", False), name, place, decided)
            self._now(name, body, made)
            return
        default = buffer.get_default_sizes_body()[1]  # torch keeps it
        for is_reduction, order in seen.orders.items():
            if order is not None and sum(bool(size != 1) for size in order.sizes) > 1:
                question: _Question = ("order", is_reduction)
                ordered, tests = _order(buffer, default, order, is_reduction)
                self._add(made, question, name, place, ordered, tests=tests)
        for is_reduction, merge in seen.merges.items():
            merged, tests = _merge(default, merge, is_reduction)
            self._add(made, ("merge", is_reduction), name, place, merged, tests=tests)
        self._now(name, body, made)

    def _add(
        self,
        made: _Made,
        question: _Question,
        name: str,
        place: TorchFrame,
        decided: _Decided | None,
        *,
        tests: tuple[TorchTest, ...] = (),
    ) -> None:
        if decided is None:
            return
        outcome, cause, operands = decided
        self._forget_other_graphs()
        key = (id(_graph()), name, question, outcome, cause, tuple(operands.items()))
        number = self._numbers.get(key)
        if number is None:
            number = self._log.record(KIND, ((name,),), outcome, cause, place, operands=operands, tests=tests)
        if number is not None:
            made[question] = self._numbers[key] = number

    def _now(self, name: str, body: Any, made: _Made) -> None:
        """Let `made` be the decisions about a node whose body is now `body`: all others were tried only."""
        self._forget_other_graphs()
        before = self._latest.get((id(_graph()), name), {})
        for number in set(before.values()) - set(made.values()):
            self._log.revise(number, speculative=True)
        for number in set(made.values()) - set(before.values()):
            self._log.revise(number, speculative=False)
        self._latest[id(_graph()), name] = made
        self._made[body] = made

    def _forget_other_graphs(self) -> None:
        folder = debug_folder()
        if folder != self._folder:
            self._folder, self._latest, self._numbers = folder, {}, {}

    def _restored(self, _: TorchFrame, __: None, node: Any, *___: Any) -> None:
        made = self._made.get(node._body)
        if made is not None:
            self._now(node.get_name(), node._body, made)

    def _around_new_order(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        def apply_and_record(node: Any, order: Sequence[int]) -> Any:
            before = dict(self._made.get(node._body, {}))
            result = apply(node, order)
            self._log.safely(self._reordered, node, before, order)
            return result

        return apply_and_record

    def _reordered(self, node: Any, made: _Made, order: Sequence[int]) -> None:
        frame = inductor_caller()
        if frame.f_code.co_name != "reorder_loops_by_dep_pair":
            made.pop(("order", False), None)  # for a mix-order reduction, whose fusion is what was decided
            self._now(node.get_name(), node._body, made)
            return
        operands: dict[str, Operand] = {
            "order": tuple(f"d{dim}" for dim in order),
            "loops": tuple(str(size_of(size)) for size in node._sizes[0]),
            "buffer": str(frame.f_locals["self_dep"].name),
        }
        trying = frame.f_back
        if trying is not None and "node1" in trying.f_locals:
            pair = [trying.f_locals[which] for which in ("node1", "node2")]
            partners = [one.get_name() for one in pair if node.get_name() not in one.get_operation_names()]
            operands |= {"partner": partners[0]} if partners else {}
        decided: _Decided = ("reordered", "order-of-partner", operands)
        self._add(made, ("order", False), node.get_name(), _place(frame), decided)
        self._now(node.get_name(), node._body, made)

    def _around_merge(self, merge: Callable[..., Any]) -> Callable[..., Any]:
        place = place_of(merge)

        def merge_and_record(node: Any) -> Any:
            body = node._body
            self._open.append(_Seen())
            try:
                result = merge(node)
            finally:
                seen = self._open.pop()
            self._log.safely(self._node_merged, place, seen, node, body)
            return result

        return merge_and_record

    def _node_merged(self, place: TorchFrame, seen: _Seen, node: Any, body: Any) -> None:
        made = {key: number for key, number in self._made.get(body, {}).items() if key[0] != "merge"}
        for is_reduction, merge in seen.merges.items():
            decided, tests = _merge(body, merge, is_reduction)
            self._add(made, ("merge", is_reduction), node.get_name(), place, decided, tests=tests)
        self._now(node.get_name(), node._body, made)


def _order(
    buffer: Any, body: Any, question: OrderQuestion, is_reduction: bool
) -> tuple[_Decided | None, tuple[TorchTest, ...]]:
    config = sys.modules["torch._inductor.config"]
    accesses = [f"{how} {name}" for how, name, _ in _accesses(body, stores_first=True)]
    operands: dict[str, Operand] = {
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
        return None, ()  # the batch of Triton's own matrix product is the outermost loop in any case
    (outcome, cause, more), tests = order_decided(question, is_on=bool(config.pick_loop_orders))
    return (outcome, cause, operands | more), tests


def _merge(
    body: Any, question: MergeQuestion, is_reduction: bool
) -> tuple[_Decided | None, tuple[TorchTest, ...]]:
    accesses = _accesses(body)

    def access_of(index: Any) -> dict[str, Operand]:
        access = next(((how, buffer) for how, buffer, one in accesses if one == index), None)
        if access is None:
            return {"index": _named(index)}
        return {"index": _named(index), "does": access[0], "buffer": access[1]}

    decided = merge_decided(question, access_of, _named)
    if decided is None:
        return None, ()
    (outcome, cause, operands), tests = decided
    if (
        outcome == "separate"
        and "index" in operands
        and operands["index"] not in [*map(_named, body.indexing_exprs.values())]
    ):
        partner = _partner()
        cause = "loops-of-partner"
        operands |= {"partner": partner} if partner else {}
    return (outcome, cause, operands | ({"reduced": True} if is_reduction else {})), tests


def _division(buffer: Any, loop_split: Any, left: Sequence[Any]) -> _Decided:
    """Return the loop that `CppScheduling.try_loop_split` divides, and by what: they are in its closure."""
    values = inspect.getclosurevars(loop_split).nonlocals
    (sizes, _), _, (variables, _) = buffer.get_default_sizes_body()
    size = sizes[variables.index(values["split_var"])]
    return "divided", "divided-index", {
        "loop": _named(values["split_var"]), "range": size_of(size),
        "divisor": size_of(values["split_number"]), "loops": tuple(str(size_of(size)) for size in left),
    }  # fmt: skip


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


def _graph() -> Any:
    return sys.modules["torch._inductor.virtualized"].V.graph


@functools.lru_cache(maxsize=4096, typed=True)
def _named(index: Any) -> str:
    """Return the text of a dimension or of an index: `d0` for what torch calls `q0` here alone."""
    return re.sub(r"\bq(?=\d)", "d", str(index))


def _place(frame: Any) -> TorchFrame:
    file, name = named(frame.f_code)
    return TorchFrame(file or "", name, frame.f_code.co_firstlineno)


_recorder = functools.cache(_Recorder)
"""One a log: the modules of torch that it hooks share it."""

HOOKS = {
    "torch._inductor.ir": lambda ir, log: _recorder(log).hook_ir(ir, log),
    "torch._inductor.scheduler": lambda scheduler, log: _recorder(log).hook_scheduler(scheduler, log),
    "torch._inductor.sizevars": lambda sizevars, log: _recorder(log).hook_sizes(sizevars, log),
}
