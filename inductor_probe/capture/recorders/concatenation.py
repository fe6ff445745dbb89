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
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees, watches
from inductor_probe.capture.recorders.decision_log import cause_of_branch, test_at, tests_of

_CAT = "cat"
_ELEMENTS, _PARTS = "pointwise_cat(", "TensorBox(ir.ConcatKernel."
"""What it returns."""
_ALONE = "len(inputs) == ?"
_COUNT, _COMPUTED = "len(inputs) <= ?", "any((should_lower_cat_input(?"
_FUSED, _POINTWISE, _SHARED = "fuse_pointwise_use", "pointwise_uses", "has_multi_consumers"


@watches("torch._inductor.lowering", _CAT)
class Concatenation(Recorder):
    """Records how an FX node was lowered, where that was by `cat`."""

    KIND = "concatenation"

    @sees("torch._inductor.graph", "GraphLowering.call_function", follows=True)
    def lowered(self, call: Call, graph: Any, *_: Any, **__: Any) -> None:
        """Record it by the branch in which `cat` returned."""
        path = call.path_of(_CAT)
        made = path.exit.value if path is not None and path.exit is not None else None
        if path is None or path.exit is None or made is None or not made.text.startswith((_ELEMENTS, _PARTS)):
            return
        node = graph.current_node
        joined = node.args[0] if node.args and isinstance(node.args[0], (list, tuple)) else ()
        counted = path.tested(_ALONE)  # torch pads by `cat`, too: no list is joined then
        operands: Operands = {"operands": counted.values[0] if counted is not None else len(joined)}
        code = cause_of_branch(path, self.KIND, _CAT, "")
        if not code:
            code, more = _behind_all(path, joined)
            cause = Cause(code, operands | more, tuple(test_at(path, one) for one in path.all()[:1]))
        else:
            is_alone = code == "read-pointwise" and not path.held(_FUSED)
            cause = Cause("all-computed" if is_alone else code, operands, tests_of(path))
        place = replace(test_at(path, path.all()[0]).place, line=path.exit.line)
        is_computed = made.text.startswith(_ELEMENTS)
        self.record(
            "element-by-element" if is_computed else "in-parts", cause, place, (node.name,), subject_type="fx"
        )


def _behind_all(path: CallPath, joined: Sequence[Any]) -> tuple[str, Operands]:
    """Return why none of the branches was taken: by the last of the tests, and what went into it."""
    if path.held(_SHARED):
        shared = (one.name for one in joined if len(getattr(one, "users", ())) > 1)
        return "operand-read-elsewhere", {"shared": tuple(dict.fromkeys(shared))}
    computed = path.held(_COMPUTED)
    too_many = [one for one in path.all() if matches(one.text, _COUNT) and not one.truth]
    if computed is None and too_many:
        first = too_many[-1]  # of operands of any number of operations
        setting = first.text.rpartition("config.")[2] if "config." in first.text else ""
        return "many-operands", {"limit": first.values[1], **({"setting": setting} if setting else {})}
    if computed is False:
        return "operands-in-memory", {}
    return "not-read-pointwise" if path.held(_POINTWISE) is False else "unlisted-test", {}
