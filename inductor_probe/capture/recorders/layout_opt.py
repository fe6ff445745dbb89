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
from inductor_probe.capture.recorders.decision_log import DecisionLog, cause_of_branch, tests_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, Operand, TorchFrame

_PLACE = "GraphLowering.decide_layout_opt"
_SORTS = {"is_grouped": "grouped", "is_small_channel": "small", "is_in_out_channel": "narrowing"}
"""Functions that it asks of each convolution, and what those are for which they say yes."""
_COUNT, _NODES, _FLOPS = "nconv == ?", "len(list(gm.graph.nodes)) >= ?", "weighted_flops <= ?"
_SMALL = "n.args[1].meta['val'].size(?) <= ?"


def hook_layout_opt(graph: Any, log: DecisionLog) -> None:
    """Watch what decides for an entire graph."""

    def decided(place: TorchFrame, path: CallPath | None, result: bool, module: Any, **_: object) -> None:
        _decided(log, place, path, result, module)

    log.watch(graph, _PLACE, *_SORTS)
    wrap(graph, _PLACE, log.followed(decided))


def _decided(log: DecisionLog, place: TorchFrame, path: CallPath | None, result: bool, module: Any) -> None:
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    named = [node for node in calls if "convolution" in str(node.target)]
    if not named:
        return
    values = [node.args[0].meta["val"] for node in named]
    devices = {str(value.device.type) for value in values if hasattr(value, "device")}
    count = path.tested(_COUNT) if path is not None else None
    operands: dict[str, Operand] = {
        "convolutions": (int(count.values[0]) if count is not None else 0) or len(named),
        "device": ", ".join(sorted(devices)),
    }
    cause = cause_of_branch(path, "layout", _PLACE, "convolution-channels")
    if path is not None:
        operands |= _compared(path, cause, named)
    log.record(
        "layout", (), "channels-last" if result else "unchanged", cause, place, operands=operands,
        subject_type="graph", key="graph", tests=tests_of(path),
    )  # fmt: skip


def _compared(path: CallPath, cause: CauseCode, convolutions: Sequence[Any]) -> dict[str, Operand]:
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
