"""Whether a program is right; of what is wrong the values, lines, layer, and what makes it right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from inductor_probe.model.accuracy import (
    AccuracyOutput,
    CheckedCall,
    CheckedValue,
    CodeLine,
    GraphAccuracy,
    WrongValue,
)
from inductor_probe.model.timing import Element
from inductor_probe.report.document import Block, Cell, Column, Facts, Line, RemarkLine, Table
from inductor_probe.report.units import counted
from inductor_probe.report.words.accuracy import (
    cost_sentences,
    layer_sentence,
    off_sentence,
    off_text,
    right_when_text,
    simulated_sentence,
    value_sentence,
    verdict_sentence,
)

_MOST_VALUES = 6
_NO_GPU = ("NVIDIA driver", "CUDA enabled", "CUDA-capable device")
"""What torch says where a script asks for a GPU, and there is none."""


def accuracy_page(record: AccuracyOutput) -> Iterator[Block]:
    """Yield the verdict, what is wrong in each graph, and the values of calls that are not right."""
    yield Line((verdict_sentence(record), "bold"))
    for graph in record.graphs:
        for value in graph.wrong:
            yield from _wrong(value, graph)
    for value in record.wrong:
        yield from _wrong(value, None)
    named = {graph.graph for graph in record.graphs if graph.wrong}
    for call in record.calls:
        yield from _call(call, {*call.graphs} & named, elsewhere=bool(record.wrong))
    if record.simulated:
        yield RemarkLine("analysis", simulated_sentence(record))
    for text in record.not_judged:
        yield RemarkLine("missed", f"not judged: {text}")
    if record.problem:
        yield RemarkLine("missed", record.problem)
        if not record.simulated and any(words in record.problem for words in _NO_GPU):
            yield Line(("  --target h100 simulates a GPU", "dim"))


def _wrong(value: WrongValue, graph: GraphAccuracy | None) -> Iterator[Block]:
    held = f"{value.buffer} of {value.node}" if value.buffer else ""
    where = ", ".join(filter(None, (_place(value.user_line), held)))
    of = f" of {value.part_of}" if value.part_of else ""
    name = f"{graph.graph} is wrong: " if graph else ""
    text = f"{name}{value.operator or 'the program'}{of}{f' ({where})' if where else ''}"
    at = f"{value.user_line.file}:{value.user_line.line}" if value.user_line else ""
    yield RemarkLine("hazard", text, at=at)
    kernel = (
        f"{value.kernel}, {_place(value.kernel_line)}: {value.kernel_line.text}" if value.kernel_line else ""
    )
    line = f"{_place(value.user_line)}: {value.user_line.text}" if value.user_line else ""
    yield Facts(
        (
            ("values", value_sentence(value)),
            ("off by", off_sentence(value)),
            ("your line", line),
            ("kernel", kernel or value.kernel),
            ("layer", layer_sentence(value)),
            ("right when", "; ".join(map(right_when_text, value.right_when))),
            *(("costs", text) for text in cost_sentences(value)),
            ("wrong with", ", ".join(value.not_right_when) if not value.right_when else ""),
            ("not tried", f"{', '.join(value.not_tried)}: no time was left" if value.not_tried else ""),
        )
    )


def _call(call: CheckedCall, graphs: set[str], *, elsewhere: bool) -> Iterator[Block]:
    """Yield the values of a call that are not right; of one that is, what was compared.

    Args:
        graphs: of the call, in which something wrong was found. elsewhere: it was found above all graphs.
    """
    where = f" ({Path(call.where).name})" if call.where else ""
    several = f"call {call.call} of {call.calls} judged" if call.calls > 1 else f"call {call.call}"
    if call.verdict == "right":
        yield Line(
            f"{call.name}{where} is right: {counted(call.calls, 'call')} judged, "
            f"{counted(call.elements, 'element')} a call"
        )
    else:
        yield Line(f"{call.name}{where}, {several}{f', with {call.inputs}' if call.inputs else ''}:")
        # What is wrong in a backward is no reason for what a forward gives.
        is_forward = elsewhere or any("_backward_" not in name for name in graphs)
        follows = [
            value
            for value in call.values
            if value.verdict == "wrong" and (is_forward or (graphs and value.name.startswith("gradient")))
        ]
        if follows:
            yield Line(("  what follows from that: " + ", ".join(value.name for value in follows), "dim"))
        shown = tuple(value for value in call.values if value not in follows)
        if shown:
            yield _values(shown[:_MOST_VALUES])
        if (rest := len(shown) - _MOST_VALUES) > 0:
            yield Line((f"  {rest} more: --json has all", "dim"))
    for name in call.not_in_float64:
        yield Line((f"  {name} does not run in float64: what it gives counts as exact", "dim"))
    for code, value in call.remarks:
        if code == "strides":
            yield Line((f"  {value}: strides differ from eager's", "dim"))


def _values(values: Sequence[CheckedValue]) -> Table:
    rows: list[list[Cell]] = [
        [
            f"  {value.name}",
            value.verdict,
            value.why,
            _element(value.eager),
            _element(value.compiled),
            _element(value.reference),
            off_text(value.eager_off),
            off_text(value.compiled_off),
        ]
        for value in values
    ]
    columns = (
        Column("  value", fold="middle", least=12),
        Column("verdict", fold="never"),
        Column("why", fold="never", rank=1),
        Column("eager", right=True, fold="never"),
        Column("compiled", right=True, fold="never"),
        Column("float64", right=True, fold="never", rank=2),
        Column("eager is off", right=True, fold="never", rank=3),
        Column("compiled is off", right=True, fold="never", rank=3),
    )
    return Table(columns, rows)


def _element(value: Element) -> str:
    return f"{value:.9g}" if isinstance(value, float) else "-" if value is None else str(value)


def _place(line: CodeLine | None) -> str:
    return f"{Path(line.file).name}:{line.line}" if line else ""
