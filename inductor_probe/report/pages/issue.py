"""An issue for PyTorch: in the order of its template for bugs of torch.compile (`pt2-bug-report.yml`).

Describe the bug (with a minimal reproducer, ablation and what was found out), error logs, versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from inductor_probe.model.issue import MOST_LINES, Issue, IssueProgram
from inductor_probe.report.document import Block, Code, Column, Facts, Fold, Heading, Line, RemarkLine, Table
from inductor_probe.report.markdown import to_markdown
from inductor_probe.report.pages.why import cause_facts, cause_sentence

_MOST_CAUSES = 6
_OF_DUMP = ("dump", "at stake")
"""Facts of a decision that say where it stands in a dump that the reader has not."""
_PATH = re.compile(r"(?<![\w./:<-])~?/(?:[\w.+@-]+/)+(?P<name>[\w.+@-]+)|(?<![\w./:<-])~?/(?:[\w.+@-]+/){2,}")
_PACKAGES = re.compile(r".*/(?:site|dist)-packages/")
_SHORTEST = 3
"""A shorter name of a machine or a user is a word of programs, too."""


def issue_markdown(issue: Issue) -> str:
    """Return the report as it is pasted: no path, name of a machine or of a user stands in it."""
    return without_machine(to_markdown(issue_page(issue)), issue.secrets)


def without_machine(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return a text with names of files for absolute paths, and `...` for names of machines and users."""

    def name(match: re.Match[str]) -> str:
        path = match[0]
        in_package = _PACKAGES.sub("", path)
        return in_package if in_package != path else match["name"] or PurePosixPath(path).name

    text = _PATH.sub(name, text)
    for secret in sorted({one for one in secrets if len(one) >= _SHORTEST}, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "...", text)
    return text


def issue_page(issue: Issue) -> Iterator[Block]:
    """Yield what is wrong, the program, what is expected, values, decisions, ablation, and versions."""
    yield Heading(issue.title)
    yield Heading("🐛 Describe the bug")
    for line in issue.actual:
        yield Line(line)
    yield Facts(
        (
            ("expected", issue.expected),
            ("seen in", f"{issue.wrong} of {issue.runs} runs" if issue.runs else ""),
        )
    )
    if issue.program is not None:
        yield from _program(issue.program, issue.keep)
    if issue.values:
        columns = [Column(""), *(Column(name, right=True) for name in ("eager", "compiled", "float64"))]
        yield Table(columns, [[one.name, one.eager, one.compiled, one.reference] for one in issue.values])
    for cause in issue.causes[:_MOST_CAUSES]:
        yield RemarkLine(cause.kind, cause_sentence(cause))
        yield Facts([fact for fact in cause_facts(cause) if fact[0] not in _OF_DUMP])
    if (rest := len(issue.causes) - _MOST_CAUSES) > 0:
        yield Line(f"{rest} further decisions: the command below lists them")
    if issue.turns:
        yield Heading("Ablation")
        yield Facts([(str(number), turn) for number, turn in enumerate(issue.turns, start=1)])
    if issue.bisector:
        yield Line("torch's own bisector, of a program that ends with an error where values are wrong:")
        yield Code(issue.bisector, "sh")
    yield Heading("Versions")
    yield Facts((*issue.versions, ("command", issue.command)))
    yield Line("Please add what python -m torch.utils.collect_env prints.")


def _program(program: IssueProgram, keep: str) -> Iterator[Block]:
    code = Code(program.text, "python")
    if program.lines <= MOST_LINES:
        yield code
        return
    what = "the operators of the graph" if program.kind == "graph" else program.name
    yield Fold(f"{what}, {program.lines} lines", lambda: [code])
    if keep:
        yield Line(f"not reduced yet: probe reduce {program.name} --keep {keep} makes a program of few lines")
