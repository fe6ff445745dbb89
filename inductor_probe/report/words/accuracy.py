"""Sentences about right and wrong results."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from inductor_probe.model.accuracy import (
    ALONE,
    BESIDE,
    FREEZING,
    PARTITION,
    AccuracyOutput,
    AccuracyStep,
    Layer,
    Off,
    RightWhen,
    WrongValue,
)
from inductor_probe.report.units import counted
from inductor_probe.report.words.own_call import cost_sentence, why_no_own_call

_LAYERS: dict[Layer, str] = {
    "dynamo": "dynamo traced another program",
    "joint-graph": "AOTAutograd made another graph of it",
    "decomposition": "its decomposition computes something else",
    "pass": "a pass over the graph of FX changed it",
    "lowering": "the loop body of the IR is wrong already",
    "scheduling": "the loop body is right, and its code alone; its fusion, order or memory is not",
    "codegen": "the loop body is right, the generated code is not",
    "compiler": "the generated code is right when it is compiled without optimisation",
}
_SHOWN_STEPS = (
    "graph of FX",
    "loop body",
    "call of a library",
    "kernel",
    ALONE,
    BESIDE,
    "the same, compiled again",
)


def verdict_sentence(record: AccuracyOutput) -> str:
    """Say whether the script is right."""
    judged = counted(sum(call.calls for call in record.calls), "call")
    wrong = sum(len(graph.wrong) for graph in record.graphs) + len(record.wrong)
    match record.verdict:
        case None:
            return "Nothing could be judged."
        case "right":
            return f"Right: {judged} judged."
        case "rounding":
            return f"Rounding: {judged} judged; what differs from eager is explained by rounding."
        case "undecided":
            return f"Undecided: {judged} judged; eager itself gives other values each time."
        case _:
            found = f"{counted(wrong, 'operator')} found" if wrong else "which operator was not found"
            return f"Wrong: {judged} judged, {found}."


def simulated_sentence(record: AccuracyOutput) -> str:
    """Say what ran in the place of a GPU."""
    return (
        f"{record.simulated} was simulated: triton's interpreter ran its kernels, and the CPU what libraries "
        "compute; what Triton and ptxas make of a kernel was not judged"
    )


def value_sentence(value: WrongValue) -> str:
    """Say what the first wrong element is, and should be."""
    index = list(value.index) if value.index else ""
    name = value.buffer or value.fx or "value"
    many = f"; {value.wrong} of {value.elements} elements are wrong" if value.elements > 1 else ""
    values = [f"{one:.9g}" if isinstance(one, float) else one for one in (value.eager, value.compiled)]
    exact = f"{value.reference:.12g}" if isinstance(value.reference, float) else value.reference
    return f"{name}{index}: eager {values[0]}, compiled {values[1]}, float64 {exact}{many}"


def off_text(off: Off | None) -> str:
    """Return an error in units in the last place, and relative."""
    if off is None:
        return "-"
    shown = [f"{one:.3g}" if isinstance(one, float) else str(one) for one in (off.ulp, off.relative)]
    return f"{shown[0]} ulp ({shown[1]})"


def off_sentence(value: WrongValue) -> str:
    """Say how far both are from the float64 value; nothing of integers."""
    if value.compiled_off is None or value.eager_off is None:
        return ""
    return f"compiled {off_text(value.compiled_off)}, eager {off_text(value.eager_off)}"


def layer_sentence(value: WrongValue) -> str:
    """Say which layer makes a value wrong, with what was seen at each step."""
    text = _LAYERS[value.layer]
    seen_at = {step.place: step.verdict for step in value.steps}
    if "call of a library" in seen_at:
        text = "a function of a library is called, and gives something else"
    elif value.cause == PARTITION:
        text = "the joint graph is right, and was divided into a forward and a backward that are not"
    elif value.cause == FREEZING:
        text = "parameters became constants when it was compiled"
    elif value.layer == "codegen" and not value.operator:
        text = "by exclusion: what comes before inductor's code is right; what is wrong in that was not found"
    elif value.layer == "codegen" and seen_at.get("loop body") != "right":
        text = "the graph of FX is right, the kernel is not; of the loop body it is not known"
    if value.cause and value.cause not in (FREEZING, PARTITION):
        text = f"{text}: {'pattern ' if value.is_pattern else ''}{value.cause}"
    steps = [step for step in value.steps if step.place in _SHOWN_STEPS and step.value]
    seen = "; ".join(map(_step, steps))
    return f"{value.layer}, {text}{f' ({seen})' if seen else ''}"


def right_when_text(change: RightWhen) -> str:
    """Say which change makes it right."""
    alone = "" if change.by == "program" else ", its kernel alone"
    match change.kind:
        case "decomposition":
            text = f"{change.setting} is not decomposed"
        case "pattern":
            text = f"pattern {change.setting} is left out"
        case "fallback":
            text = f"{change.setting} is called as a function of ATen"
        case "flip":
            text = f"--{change.flip}"
        case "variable":
            text = change.name
        case _:
            text = f"--set {change.name}"
    return f"{text}{alone}"


def cost_sentences(value: WrongValue) -> Iterator[str]:
    """Say of each change that was timed what it costs."""
    for change in value.right_when:
        if change.cost is not None:
            yield cost_sentence(change.cost, right_when_text(replace(change, by="program")))
        elif change.not_timed is not None:
            yield why_no_own_call(change.not_timed, f"calls with {change.name}")


def _step(step: AccuracyStep) -> str:
    if step.place == "the same, compiled again":
        return f"compiled again after the script, {step.value} {'are' if ', ' in step.value else 'is'} right"
    if step.place == BESIDE:
        return f"or it is one of what it is computed from there: {step.value}"
    if step.verdict == "unknown":
        return f"the {step.place} was {step.value}"
    if step.place == ALONE:
        return f"{step.place} give {step.value}"
    return f"the {step.place} gives {step.value}"
