"""What came of expectations: a line each, and below one that fails what torch decided otherwise, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.expectation import Checked, Standing
from inductor_probe.model.remark import RemarkKind
from inductor_probe.report.document import Block, Facts, Heading, Line, RemarkLine
from inductor_probe.report.pages.why import cause_facts, cause_sentence
from inductor_probe.report.words.expect import checked_sentence, summary_sentence
from inductor_probe.report.words.remarks import failure_sentence, sentence

_KINDS: dict[Standing, RemarkKind] = {"holds": "passed", "fails": "missed", "unknown": "hazard"}


def expect_page(outcomes: Sequence[Checked]) -> Iterator[Block]:
    """Yield the expectations of the run, then those of each graph, and one sentence."""
    for graph in dict.fromkeys(one.graph for one in outcomes):
        if graph is not None:
            yield Heading((graph, "bold"))
        for one in outcomes:
            if one.graph == graph:
                yield RemarkLine(_KINDS[one.standing], checked_sentence(one))
                yield from _otherwise(one)
    yield Line((summary_sentence(outcomes), "bold"))


def _otherwise(checked: Checked) -> Iterator[Block]:
    """Yield the decisions that are not as expected, each with what it rests on; else what the dump shows."""
    for cause in checked.causes:
        names = " + ".join(subject.name for subject in cause.subjects)
        text = cause_sentence(cause)
        yield Line(text if cause.decision or cause.subjects[0].name in text else f"{names}: {text}", 2)
        yield Facts(cause_facts(cause))
    if not checked.causes:
        for remark in checked.remarks:
            of_run = remark.code in ("compile-failed", "unfinished-compile")
            yield Line(failure_sentence(remark) if of_run else sentence(remark), 2)
