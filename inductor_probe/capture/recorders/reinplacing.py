"""Which operators that return a changed copy write into the value itself, and what kept others from it.

`reinplace_inplaceable_ops_core` may let `index_put`, scatters into views, and custom operators that change
their arguments write where the argument is, if nothing can see that. torch logs how many bytes it missed for
custom operators, and nothing else. Its conditions are repeated here on the graph that it is given:

    arg0_1 -> index_put -> output                  copied: the caller keeps arg0_1
    arg0_1 -> index_put -> copy_(arg0_1)           in place: the caller wants it changed
    add -> index_put, add -> mul after it          copied: mul reads what would be changed
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from inductor_probe.capture.recorders.askers import operator_of
from inductor_probe.capture.recorders.decision_log import DecisionLog, UnknownPathError, place_of, source_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame

KIND: DecisionKind = "rewrite"

_INPUTS = ("placeholder", "get_attr")
_SIZES = (
    "aten.sym_size.int", "aten.sym_stride.int", "aten.sym_numel.default", "aten.sym_storage_offset.default",
)  # fmt: skip
_COPY = "aten.copy_.default"
_CLONES = "only_clone_these_tensors"

Cause = tuple[CauseCode, dict[str, Operand]]


class _Candidate(Struct, frozen=True):
    """A node that could write into `argument`, what speaks about it, and its operator as it was."""

    node: Any
    argument: Any
    index: int
    target: Any
    operator: str
    cause: Cause


class _Graph:
    """The nodes of an FX graph by what they share memory with, and where they stand."""

    def __init__(self, graph: Any, reinplace: Any) -> None:
        self._reinplace = reinplace
        storage = self._storage = reinplace.get_node_storage
        self._position = {node: position for position, node in enumerate(graph.nodes)}
        self._sharing: dict[Any, list[Any]] = {}
        self._copied_back: dict[Any, Any] = {}
        for node in graph.nodes:
            self._sharing.setdefault(storage(node), []).append(node)
            if str(node.target) == _COPY and node.args[0].op in _INPUTS:
                self._copied_back.setdefault(node.args[0], node)

    def cause(self, node: Any, argument: Any) -> Cause:
        """Return what decides whether `node` may write into `argument`: `can_inplace`, in its order."""
        storage = self._storage(argument)
        if storage is None:
            raise UnknownPathError("an argument without a storage")
        sharing = [view for view in self._sharing[storage] if self._overlap(argument, view)]
        if argument.op in _INPUTS:
            copied_back = self._copied_back.get(argument)
            if copied_back is None:
                return "input-not-mutated", {"argument": argument.name}
            reader = self._later_reader(node, argument, sharing, copied_back)
            return self._read(argument, reader) or ("copied-back", {"argument": argument.name})
        if inputs := [other.name for other in sharing if other.op in _INPUTS]:
            copied_back = self._copied_back_by_view(node, argument)
            if copied_back is None:
                return "view-of-input", {"argument": argument.name, "input": inputs[0]}
            of = copied_back.args[0]
            reader = self._later_reader(node, of, sharing, copied_back)
            given = {"argument": argument.name, "input": of.name}
            return self._read(argument, reader) or ("copied-back", given)
        reader = self._later_reader(node, argument, sharing, None)
        return self._read(argument, reader) or ("not-read-later", {"argument": argument.name})

    def _copied_back_by_view(self, node: Any, argument: Any) -> Any:
        """Return what copies the result into the input that the argument is a view of; None on torch 2.11.

        `_is_layout_preserving_view_copy_back`: all of the input, where it lies. Not asked of symbolic sizes.
        """
        view_base = getattr(self._reinplace, "_get_view_base", None)
        if view_base is None or not hasattr(self._reinplace, "_is_layout_preserving_view_copy_back"):
            return None
        copied_back = self._copied_back.get(view_base(argument))
        if copied_back is None or view_base(copied_back.args[1]) is not node:
            return None
        pairs = ((node, argument), (copied_back.args[1], copied_back.args[0]))
        return copied_back if all(_lie_alike(first, second) for first, second in pairs) else None

    def _overlap(self, argument: Any, view: Any) -> bool:
        """Whether two values of one storage have an element in common; not asked of symbolic sizes."""
        values = [argument.meta["val"], view.meta["val"]]
        if view is argument or not all(map(_is_static, values)):
            return True
        return len(self._reinplace.compute_overlapping_tensors(values)) != 0

    def _read(self, argument: Any, reader: Any) -> Cause | None:
        if reader is None:
            return None
        return "read-later", {"argument": argument.name, "reader": reader.name}

    def _later_reader(self, node: Any, argument: Any, sharing: list[Any], before: Any) -> Any:
        last = self._position[before] if before is not None else None
        for view in sharing:
            for user in view.users:
                position = self._position[user]
                is_between = position > self._position[node] and (last is None or position < last)
                overwrites = str(user.target) == _COPY and user.args[0] is argument
                if is_between and not overwrites and not self._asks_sizes(user):
                    return user
        return None

    def _asks_sizes(self, user: Any) -> bool:
        """Whether a node, or all that read a view that it makes, reads no element."""
        if str(user.target) in _SIZES:
            return True
        return self._reinplace._is_view_op(user.target) and all(map(self._asks_sizes, user.users))


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log

    def around(self, reinplace: Callable[..., Any]) -> Callable[..., Any]:
        """Return `reinplace_inplaceable_ops_core` so that the graph is looked at before and after."""
        place = place_of(reinplace)

        def look_and_reinplace(graph: Any) -> Any:
            candidates: list[_Candidate] = []
            self._log.safely(self._look, graph, candidates)
            result = reinplace(graph)
            for candidate in candidates:
                self._log.safely(self._record, place, candidate)
            return result

        return look_and_reinplace

    def _look(self, graph: Any, candidates: list[_Candidate]) -> None:
        reinplace: Any = sys.modules["torch._inductor.fx_passes.reinplace"]
        found = [(node, *one) for node in graph.nodes for one in _arguments(node, reinplace)]
        if not found:
            return
        facts = _Graph(graph, reinplace)
        for node, index, argument in found:
            cause = facts.cause(node, argument)
            candidates.append(_Candidate(node, argument, index, node.target, _operator(node), cause))

    def _record(self, place: TorchFrame, one: _Candidate) -> None:
        cause, operands = one.cause
        clones = one.node.meta.get(_CLONES)
        in_place = one.index not in clones if clones is not None else one.node.target is not one.target
        if in_place != (cause in ("copied-back", "not-read-later")):
            if not _is_static(one.argument.meta["val"]):
                return  # torch looked at overlaps that are not asked here
            if in_place or clones is not None:
                raise UnknownPathError(f"{one.node.name}: {cause}, and in place is {in_place}")
            if _is_refused_as_overlapping(one):
                raise UnknownPathError(f"{one.node.name}: copied, since it would read what it writes")
            cause = "scatter-fused"  # `should_reinplace_scatter`: the only other condition
        operands = {
            "nodes": (one.node.name,),
            "operators": (one.operator,),
            "sources": tuple(filter(None, [source_of(one.node)])),
            **operands,
        }
        self._log.record(
            KIND, ((one.node.name,),), "in-place" if in_place else "copied", cause, place,
            operands={name: value for name, value in operands.items() if value},
            subject_type="fx",
        )  # fmt: skip


def _is_refused_as_overlapping(one: _Candidate) -> bool:
    """Whether an argument overlaps with itself, or with what is written: asked since torch 2.14 and 2.15."""
    reinplace: Any = sys.modules["torch._inductor.fx_passes.reinplace"]
    if sys.modules["torch"]._debug_has_internal_overlap(one.argument.meta["val"]) == 1:
        return True
    if "get_node_storage" not in reinplace.should_reinplace_scatter.__code__.co_names:
        return False
    storage = reinplace.get_node_storage(one.argument)
    others = (other for other in one.node.all_input_nodes if other is not one.argument)
    return any(storage == reinplace.get_node_storage(other) for other in others)


def _arguments(node: Any, reinplace: Any) -> Iterator[tuple[int, Any]]:
    """Yield which argument of a node it could write into, with its index among those that could."""
    operation = reinplace.inplaceable_ops.get(node.target) if callable(node.target) else None
    if operation is not None:
        mutated = getattr(operation, "mutated_args", None) or (operation.mutated_arg,)
        for index in mutated[:1]:
            if not isinstance(node.args[index], (list, tuple)):  # a list (`all_reduce_coalesced`) as below
                yield index, node.args[index]
    elif getattr(node.target, "__name__", "") == "auto_functionalized_v2":
        for index, base in enumerate(node.kwargs.get("_all_bases", ())):
            if not isinstance(base, (list, tuple)):
                yield index, base


def _operator(node: Any) -> str:
    """Return what a node calls; of a custom operator that changes its arguments that operator."""
    name = operator_of(node)
    return str(node.args[0]) if name.startswith("auto_functionalized") else name


def _lie_alike(first: Any, second: Any) -> bool:
    """Whether the values of two nodes have the same static sizes, strides and offset."""
    values = [first.meta["val"], second.meta["val"]]
    one, other = ((*value.size(), *value.stride(), value.storage_offset()) for value in values)
    return all(map(_is_static, values)) and one == other


def _is_static(value: Any) -> bool:
    return all(isinstance(size, int) for size in (*value.size(), *value.stride(), value.storage_offset()))


HOOKS = {
    "torch._inductor.fx_passes.reinplace": lambda module, log: wrap(
        module, "reinplace_inplaceable_ops_core", _Recorder(log).around
    )
}
