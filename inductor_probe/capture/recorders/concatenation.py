"""Whether a concatenation is computed element by element, or its operands are written into one buffer.

torch/_inductor/lowering.py, `cat`; nothing of it is logged. `ConcatKernel.create` lets each operand be
written into its part of a buffer, by loops of its own: what reads the result reads memory. `pointwise_cat`
makes one expression of all operands, each under a mask, which is fused with what reads it. For example
`torch.cat((x, -x), -1).argmax(-1)` on a CPU writes both halves, and reads them again: `cpu_device` holds, and
torch asks nothing more. For a GPU it asks how many operands there are, and who reads operands and result.

`cat` is watched: the branch in which it returned is the cause, and behind all branches the last test. Where
it calls torch (`fallback.py`), or has a single operand, nothing is concatenated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from inductor_probe.capture.branches import CallPath, matches
from inductor_probe.capture.recorders.decision_log import DecisionLog, cause_of_branch, test_at, tests_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame

KIND: DecisionKind = "concatenation"

_CAT = "cat"
_ELEMENTS, _PARTS = "pointwise_cat(", "TensorBox(ir.ConcatKernel."
"""What it returns."""
_ALONE = "len(inputs) == ?"
_COUNT, _COMPUTED = "len(inputs) <= ?", "any((should_lower_cat_input(?"
_FUSED, _POINTWISE, _SHARED = "fuse_pointwise_use", "pointwise_uses", "has_multi_consumers"


class _Recorder:
    def __init__(self, log: DecisionLog) -> None:
        self._log = log

    def lowered(
        self, _: TorchFrame, path: CallPath | None, __: object, graph: Any, *___: Any, **____: Any
    ) -> None:
        """Record how an FX node was lowered, where that was by `cat`."""
        made = path.exit.value if path is not None and path.exit is not None else None
        if path is None or path.exit is None or made is None or not made.text.startswith((_ELEMENTS, _PARTS)):
            return
        outcome: Outcome = "element-by-element" if made.text.startswith(_ELEMENTS) else "in-parts"
        node = graph.current_node
        joined = node.args[0] if node.args and isinstance(node.args[0], (list, tuple)) else ()
        cause = cause_of_branch(path, KIND, _CAT, "")
        counted = path.tested(_ALONE)  # torch pads by `cat`, too: no list is joined then
        operands: dict[str, Operand] = {"operands": counted.values[0] if counted is not None else len(joined)}
        tests = tests_of(path)
        if not cause:
            cause, more = _behind_all(path, joined)
            operands |= more
            tests = tuple(test_at(path, one) for one in path.all()[:1])
        elif cause == "read-pointwise" and not _held(path, _FUSED):
            cause = "all-computed"
        place = replace(test_at(path, path.all()[0]).place, line=path.exit.line)
        self._log.record(
            KIND, ((node.name,),), outcome, cause, place, operands=operands, subject_type="fx", tests=tests
        )


def _behind_all(path: CallPath, joined: Sequence[Any]) -> tuple[CauseCode, dict[str, Operand]]:
    """Return why none of the branches was taken: by the last of the tests, and what went into it."""
    if _held(path, _SHARED):
        shared = (one.name for one in joined if len(getattr(one, "users", ())) > 1)
        return "operand-read-elsewhere", {"shared": tuple(dict.fromkeys(shared))}
    computed, pointwise = path.tested(_COMPUTED), path.tested(_POINTWISE)
    too_many = [one for one in path.all() if matches(one.text, _COUNT) and not one.truth]
    if computed is None and too_many:
        first = too_many[-1]  # of operands of any number of operations
        setting = first.text.rpartition("config.")[2] if "config." in first.text else ""
        return "many-operands", {"limit": first.values[1], **({"setting": setting} if setting else {})}
    if computed is not None and not computed.truth:
        return "operands-in-memory", {}
    return ("not-read-pointwise" if pointwise is not None and not pointwise.truth else "unlisted-test"), {}


def _held(path: CallPath, name: str) -> bool:
    seen = path.tested(name)
    return seen is not None and seen.truth


def _hook_lowering(lowering: Any, log: DecisionLog) -> None:
    log.watch(lowering, _CAT)


def _hook_graph(graph: Any, log: DecisionLog) -> None:
    wrap(graph, "GraphLowering.call_function", log.followed(_Recorder(log).lowered, _CAT))


HOOKS = {"torch._inductor.lowering": _hook_lowering, "torch._inductor.graph": _hook_graph}
