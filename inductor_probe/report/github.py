"""A result as GitHub Actions shows it: annotations beside lines, and a summary of the job.

    ::error title=probe expect::--vectorised FAILS: op0 has a loop nest that is not vectorised
    ::warning file=model.py,line=12,title=probe check::...

The commands are those of "Workflow commands for GitHub Actions": `%`, line ends, and in properties `:` and
`,` are escaped. GitHub shows ten annotations of a kind for each step, and takes a summary of 1 MiB; what is
more is cut here, with a line that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.accuracy import AccuracyOutput
from inductor_probe.model.cause import Cause, WhyOutput
from inductor_probe.model.diff import DiffOutput
from inductor_probe.model.expectation import ExpectOutput
from inductor_probe.model.op_check import OpCheckOutput
from inductor_probe.model.output import Output
from inductor_probe.model.perf import CompareOutput, PerfOutput
from inductor_probe.model.remark import RemarkKind
from inductor_probe.model.span import own_lines
from inductor_probe.report.document import Document
from inductor_probe.report.markdown import markdown_blocks
from inductor_probe.report.pages.why import cause_sentence
from inductor_probe.report.units import counted
from inductor_probe.report.visible import visible
from inductor_probe.report.words.accuracy import value_sentence
from inductor_probe.report.words.expect import checked_sentence
from inductor_probe.report.words.op_check import failure_sentence
from inductor_probe.report.words.perf import compared_sentence, problem_sentence, row_failure_sentence

MOST_ANNOTATIONS = 10
MOST_BYTES = 1 << 20
_LONGEST = 2000
_ROOM = 200
"""Bytes of a summary for the line that says how much was cut."""
_LEVELS: Mapping[RemarkKind, Level] = {"hazard": "error", "missed": "warning", "analysis": "notice"}
"""Of what the compiler decided; what went well is beside no line."""
_ESCAPED = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTIES = {**_ESCAPED, ":": "%3A", ",": "%2C"}


Level: TypeAlias = Literal["error", "warning", "notice"]


class Annotation(Struct, frozen=True):
    """What is shown beside a line of a file, or of the job where no line is known.

    Attributes:
        rule: of which it is a case: kind and cause of a decision, `fusion/few-shared-bytes`; else the verb.
    """

    level: Level
    message: str
    path: Path | None = None
    line: int = 0
    rule: str = ""


def annotations_of(output: Output) -> Iterator[Annotation]:  # noqa: PLR0912 - a verb each
    """Yield what failed or was missed, in the order of the verb's own ranking, and what could not be read."""
    match output:
        case ExpectOutput():
            for outcome in output.outcomes:
                if outcome.standing != "holds":
                    level: Level = "error" if outcome.standing == "fails" else "warning"
                    graph = f"{outcome.graph}: " if outcome.graph else ""
                    yield Annotation(level, f"{graph}{checked_sentence(outcome)}")
        case WhyOutput():
            yield from (_of_cause(row.graph, cause) for row in output.rows for cause in row.causes
                        if cause.kind in _LEVELS)  # fmt: skip
        case CompareOutput():
            for row in output.rows[: output.regressions]:
                yield Annotation("error", compared_sentence(row))
        case AccuracyOutput():
            yield from _wrong_values(output)
        case DiffOutput():
            for sentence in () if output.diff.equal else output.summary:
                yield Annotation("warning", sentence)
        case PerfOutput():
            yield from _failed_rows(output)
        case OpCheckOutput():
            for failure in output.checks.failures:
                yield Annotation("error", f"{failure.operator}: {failure_sentence(failure)}")
    for problem in output.problems:
        span = problem.span
        yield Annotation("warning", problem.message, span.path if span else None, span.first if span else 0)


def _of_cause(graph: str, cause: Cause) -> Annotation:
    line = next(iter(own_lines(cause.sources)), None)
    code = cause.decision.cause if cause.decision else cause.remark.code if cause.remark else ""
    return Annotation(
        _LEVELS[cause.kind],
        f"{graph}: {cause_sentence(cause)}",
        Path(line.path) if line else None,
        line.line if line else 0,
        "/".join(filter(None, (cause.topic, code))),
    )


def _wrong_values(output: AccuracyOutput) -> Iterator[Annotation]:
    inner = [(f"{graph.graph}: ", value) for graph in output.graphs for value in graph.wrong]
    for graph, value in [("", value) for value in output.wrong] + inner:
        text = f"{graph}{value.operator or 'the program'} is wrong: {value_sentence(value)}"
        line = value.user_line
        yield Annotation("error", text, Path(line.file) if line else None, line.line if line else 0)


def _failed_rows(output: PerfOutput) -> Iterator[Annotation]:
    for row in output.rows:
        where = f"{row.key.scenario} {row.key.case}"
        if row.failure is not None:
            yield Annotation("error", f"{where}: {row_failure_sentence(row.failure)}")
        for facts in (column.facts for column in row.columns):
            if facts.problem in ("wrong", "failed"):
                yield Annotation("error", f"{where}, {facts.name}: {problem_sentence(facts)}")


def annotation_lines(annotations: Iterable[Annotation], title: str, folder: Path) -> Iterator[str]:
    """Yield the command of each annotation; the tenth of a kind says how many more there are.

    `folder` is that of the repository: paths in it are given relative to it, as GitHub wants them.
    """
    of_level: dict[Level, list[Annotation]] = {"error": [], "warning": [], "notice": []}
    for annotation in annotations:
        of_level[annotation.level].append(annotation)
    for level, found in of_level.items():
        shown: Sequence[Annotation] = found
        if len(found) > MOST_ANNOTATIONS:
            more = counted(len(found) - MOST_ANNOTATIONS + 1, f"more {level}")
            note = Annotation(found[0].level, f"and {more}")
            shown = [*found[: MOST_ANNOTATIONS - 1], note]
        for annotation in shown:
            properties = {"title": title}
            if annotation.path is not None:
                path = annotation.path
                relative = path.relative_to(folder) if path.is_relative_to(folder) else path
                properties |= {"file": str(relative), "line": str(max(annotation.line, 1))}
            text = ",".join(f"{key}={_escaped(value, _IN_PROPERTIES)}" for key, value in properties.items())
            yield f"::{level} {text}::{_escaped(visible(annotation.message[:_LONGEST]), _ESCAPED)}"


def summary_text(document: Document, title: str, room: int = MOST_BYTES) -> str:
    """Return a document as a section of the summary of a job, of at most `room` bytes.

    Whole blocks stay: half a table, or a fence that is not closed, would garble what follows.
    """
    blocks = [f"## {title}", *markdown_blocks(document)]
    kept, size = 0, _ROOM
    for block in blocks:
        size += len(block.encode()) + 2
        if size > room:
            break
        kept += 1
    if kept < len(blocks):
        blocks[kept:] = [f"{counted(len(blocks) - kept, 'block')} left out: GitHub takes 1 MiB of a step."]
    return "\n\n".join(blocks) + "\n\n"


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(letter, letter) for letter in text)
