"""Whether the convolutions of a graph are made channels-last: graph.py, `GraphLowering.decide_layout_opt`.

It is asked once for a graph, before lowering, and returns behind the first of its conditions that holds. It
is watched, and so are the functions in it that say of what sort a convolution is. For example, one
convolution in inference on a GPU, of 8 channels to 8: all its flops are those of small convolutions, which
torch weighs 0.783, so that `weighted_flops <= total_flops` holds: channels-last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees
from inductor_probe.capture.recorders.decision_log import cause_of_branch, tests_of

_PLACE = "GraphLowering.decide_layout_opt"
_SORTS = {"is_grouped": "grouped", "is_small_channel": "small", "is_in_out_channel": "narrowing"}
"""Functions that it asks of each convolution, and what those are for which they say yes."""
_COUNT, _NODES, _FLOPS = "nconv == ?", "len(list(gm.graph.nodes)) >= ?", "weighted_flops <= ?"
_SMALL = "n.args[1].meta['val'].size(?) <= ?"


class LayoutOpt(Recorder):
    """Records what is decided for an entire graph."""

    KIND = "layout"

    @sees("torch._inductor.graph", _PLACE, watches=True, nested=tuple(_SORTS))
    def decided(self, call: Call, module: Any, **_: object) -> None:
        """Record it of a graph that has convolutions."""
        path, nodes = call.path, [node for node in module.graph.nodes if node.op == "call_function"]
        named = [node for node in nodes if "convolution" in str(node.target)]
        if not named:
            return
        values = [node.args[0].meta["val"] for node in named]
        devices = {str(value.device.type) for value in values if hasattr(value, "device")}
        count = path.tested(_COUNT) if path is not None else None
        code = cause_of_branch(path, "layout", _PLACE, "convolution-channels")
        operands: Operands = {
            "convolutions": (int(count.values[0]) if count is not None else 0) or len(named),
            "device": ", ".join(sorted(devices)),
            **(_compared(path, code, named) if path is not None else {}),
        }
        cause = Cause(code, operands, tests_of(path))
        outcome: Any = "channels-last" if call.result else "unchanged"
        self.record(outcome, cause, call.place, subject_type="graph", key="graph")


def _compared(path: CallPath, cause: str, convolutions: Sequence[Any]) -> Operands:
    """Return what torch compared, and of what sort the convolutions are for which it asked."""
    answers = [(one, sort) for one in path.inner if (sort := _SORTS.get(one.sites.function.split(".")[-1]))]
    if cause == "few-convolutions" and (nodes := path.tested(_NODES)):
        return dict(zip(("nodes", "nodes_limit"), nodes.values, strict=True))
    if cause == "convolution-flops" and (flops := path.tested(_FLOPS)):
        sorts = Counter(_sorts_in_order(answers))
        weighted, total = (round(float(value)) for value in flops.values)
        return {
            "weighted_flops": weighted,
            "flops": total,
            "sorts": tuple(f"{count} {sort}" for sort, count in sorted(sorts.items())),
        }  # fmt: skip
    if cause in ("grouped-convolution", "narrowing-convolution"):
        # `any` asks one after the other, up to the first: that is the one, if no other kinds were counted.
        asked = sum(sort == cause.partition("-")[0] for _, sort in answers)
        forward = [node for node in convolutions if str(node.target) == "aten.convolution.default"]
        return {"nodes_of_fx": (forward[asked - 1].name,)} if 0 < asked <= len(forward) else {}
    if cause == "small-convolutions":
        seen = [test for one, _ in answers if (test := one.tested(_SMALL))]
        return {"channels_limit": seen[0].values[1]} if seen else {}
    return {}


def _sorts_in_order(answers: Sequence[tuple[CallPath, str]]) -> Iterator[str]:
    """Yield the sort of each convolution: torch asks of which it is until one of its functions says yes."""
    last = [*_SORTS.values()][-1]
    for path, sort in answers:
        decided = path.deciding()
        if decided and all(test.truth for test in decided):
            yield sort
        elif sort == last:
            yield "other"
