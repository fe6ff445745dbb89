"""Which operators that return a changed copy write into the value itself, and what kept others from it.

`reinplace_inplaceable_ops_core` may let `index_put`, scatters into views, and custom operators that change
their arguments write where the argument is, if nothing can see that. torch logs how many bytes it missed for
custom operators, and nothing else. It is watched, with the functions in it that it asks:

    arg0_1 -> index_put -> output                  copied: the caller keeps arg0_1
    arg0_1 -> index_put -> copy_(arg0_1)           in place: the caller wants it changed
    add -> index_put, add -> mul after it          copied: mul reads what would be changed
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.askers import operator_of
from inductor_probe.capture.recorders.base import Call, Cause, Recorder, sees
from inductor_probe.capture.recorders.decision_log import cause_of_branch, source_of, tests_of
from inductor_probe.model.decision import TorchFrame

_MODULE = "torch._inductor.fx_passes.reinplace"
_PASS, _ASKED, _USES = "reinplace_inplaceable_ops_core", "can_inplace", "any_use_of_views_after_node"
_SCATTER = "should_reinplace_scatter"
_CLONES = "only_clone_these_tensors"


class _Candidate(Struct, frozen=True):
    """A node that could write into `argument`, and its target and operator as they were."""

    node: Any
    argument: Any
    index: int
    target: Any
    operator: str


class Reinplacing(Recorder):
    """Looks at the graph before and after."""

    KIND = "rewrite"

    @sees(_MODULE, _PASS, follows=True)
    def reinplaced(self, call: Call, graph: Any) -> Iterator[None]:
        """Record of each node that could write into an argument whether it does."""
        module: Any = sys.modules[_MODULE]
        candidates = [
            _Candidate(node, argument, index, node.target, _operator(node))
            for node in graph.nodes
            for index, argument in _arguments(node, module)
        ]
        if candidates:  # they are large: to watch them costs some milliseconds
            self.log.watch(module, _PASS, _ASKED, _USES)
            self.log.watch(module, _SCATTER)
        yield
        asked = call.path.inner if call.path is not None else []
        for candidate in candidates:
            self.log.safely(self._record, call.place, candidate, asked)

    def _record(self, place: TorchFrame, one: _Candidate, asked: Sequence[CallPath]) -> None:
        clones = one.node.meta.get(_CLONES)
        in_place = one.index not in clones if clones is not None else one.node.target is not one.target
        cause = _cause(one, asked, in_place=in_place)
        operands = {
            "nodes": (one.node.name,),
            "operators": (one.operator,),
            "sources": tuple(filter(None, [source_of(one.node)])),
            "argument": one.argument.name,
            **cause.operands,
        }
        cause = cause._replace(operands={name: value for name, value in operands.items() if value})
        self.record("in-place" if in_place else "copied", cause, place, (one.node.name,), subject_type="fx")


def _cause(one: _Candidate, asked: Sequence[CallPath], *, in_place: bool) -> Cause:
    """Return why a node writes into its argument or not: by what `can_inplace` said of them."""
    place = next((place for place, path in enumerate(asked) if _is_about(path, one)), None)
    if place is None:
        return Cause("unlisted-test")
    path = asked[place]
    tests = tests_of(path)
    reads_later = path.held(f"{_USES}(?")
    if reads_later is None:
        code = cause_of_branch(path, "rewrite", "fx_passes/reinplace.py")
        sharing = path.variables.get("shared_view_nodes", ())
        inputs = [view.name for view in sharing if not (view.all_input_nodes or view._erased)]
        return Cause(code, {"input": inputs[0]} if code == "view-of-input" and inputs else {}, tests)
    if reads_later:
        return Cause("read-later", {"reader": path.inner[-1].variables["user"].name}, tests)
    if not in_place:  # all that is asked beside
        scatter = next((after for after in asked[place + 1 :][:1] if after.sites.function == _SCATTER), None)
        is_fused = scatter is not None and scatter.exit is not None and not scatter.exit.within
        return Cause("scatter-fused" if is_fused else "unlisted-test", {}, tests_of(scatter))
    if path.variables.get("copy_node") is None:
        return Cause("not-read-later", {}, tests)
    given = path.variables.get("mutated_arg_base")  # of a view
    return Cause("copied-back", {"input": given.name} if given is not None else {}, tests)


def _is_about(path: CallPath, one: _Candidate) -> bool:
    variables = path.variables
    is_asked = path.sites.function == f"{_PASS}.{_ASKED}"
    return is_asked and variables["node"] is one.node and variables["mutated_arg"] is one.argument


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
