"""An answer as an issue for PyTorch: with its program and versions, and no name of a machine."""

from __future__ import annotations

import ast
import getpass
import platform
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.api.accuracy import Accuracy, accuracy
from inductor_probe.api.on_disk import causes_of
from inductor_probe.api.rows import Causes
from inductor_probe.api.session import Graph, Run
from inductor_probe.api.trials import Trials
from inductor_probe.api.verbs import Target, open_run, open_target
from inductor_probe.api.whatif import WhatIf
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.files import read_text
from inductor_probe.model.accuracy import GraphAccuracy, WrongValue
from inductor_probe.model.cause import Cause
from inductor_probe.model.issue import MOST_LINES, Issue, IssueProgram, IssueValue
from inductor_probe.model.reduction import REDUCED_HEAD
from inductor_probe.model.timing import Element
from inductor_probe.options.programs import AccuracyOptions
from inductor_probe.options.verb import Progress
from inductor_probe.report.pages.issue import issue_markdown
from inductor_probe.report.pages.whatif import whatif_sentence
from inductor_probe.report.units import counted
from inductor_probe.report.words.accuracy import layer_sentence, right_when_text, verdict_sentence

_RUNS = 3
_SCALAR = ("scalar ", "inductor.cpp.simdlen=")
"""How changes begin that turn off vectors."""
_RUNNABLE = "fx_graph_runnable.py"
_VERSIONS = ("torch", "triton", "python", "cxx", "inductor_probe")
_OF_MACHINE = ("cpu", "vector_bits", "threads", "gpu")
_FORWARD = re.compile(r"^    def forward\(.*?(?=^\S|^    def |\Z)", re.DOTALL | re.MULTILINE)
_CALL = re.compile(r"^compiled\((.*)\)$", re.MULTILINE)
_FREED = re.compile(r";  (?:\w+ = )+None$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*#.*\n|\s+#.*$", re.MULTILINE)


def issue_of(
    answer: Accuracy | WhatIf | Causes | Trials,
    command: str = "",
    *,
    target: Target = None,
    progress: Progress | None = None,
) -> str:
    """Return an answer as markdown, in the form that PyTorch's template for bugs of torch.compile asks for.

    What is wrong is judged twice more, so that the report says in how many of three runs it was.

    Args:
        answer: of `accuracy`, `whatif` with one candidate, or `why`.
        command: that gave it. target: whose decisions `why` was asked about, the latest run if left out.
        progress: hears of the further runs.

    Raises:
        ProbeError: nothing is wrong, or was decided: there is nothing to report.
    """
    return issue_markdown(_issue(answer, command, target, progress or Progress()))


def _issue(answer: object, command: str, target: Target, progress: Progress) -> Issue:
    match answer:
        case Accuracy():
            return _of_accuracy(answer, command, progress)
        case WhatIf():
            return _of_whatif(answer, command)
        case Causes():
            opened = open_target(target)
            return _of_causes(answer, command, opened.run if isinstance(opened, Graph) else opened)
    raise ProbeError(
        "an issue is about one candidate", "choose one of those that were tried, and report that"
    )


def _of_accuracy(answer: Accuracy, command: str, progress: Progress) -> Issue:
    record = answer.record
    if record.verdict != "wrong":
        raise ProbeError(f"there is nothing to report: {verdict_sentence(record)}")
    run = open_run(record.run)
    wrong = 1
    for number in range(2, _RUNS + 1):
        progress(f"judging it once more, {number} of {_RUNS}")
        again = accuracy(AccuracyOptions(run, budget=20.0, tries=False), progress=progress)
        wrong += again.record.verdict == "wrong"
    pairs = [(graph, value) for graph in record.graphs for value in graph.wrong]
    values = [value for _, value in pairs] + list(record.wrong)
    first = values[0] if values else None
    what = (
        f"{first.operator or 'a program'} gives wrong values when it is compiled" if first else "wrong values"
    )
    program = _program(run, pairs[0][0].graph if pairs else None)
    return _with_run(
        run,
        title=f"[inductor] {what}",
        expected="the compiled call computes what eager does, as far as rounding explains",
        actual=(verdict_sentence(record), *(f"Layer: {layer_sentence(value)}" for value in values)),
        program=_checked(program),
        keep="wrong",
        values=tuple(_values(answer, values)),
        wrong=wrong,
        runs=_RUNS,
        causes=tuple(_about(run, pairs)),
        turns=tuple(_turns(values)),
        command=command,
        bisector=_bisector(program),
    )


def _values(answer: Accuracy, values: Sequence[WrongValue]) -> Iterator[IssueValue]:
    for value in values:
        index = str(list(value.index)) if value.index else ""
        name = f"{value.operator}, {value.buffer or value.fx}{index}"
        yield _row(name, value.eager, value.compiled, value.reference)
    for call in answer.record.calls:
        for checked in call.values:
            if checked.verdict == "wrong":
                index = str(list(checked.index)) if checked.index else ""
                yield _row(f"{checked.name}{index}", checked.eager, checked.compiled, checked.reference)


def _row(name: str, *values: Element) -> IssueValue:
    texts = ["-" if one is None else f"{one:.9g}" if isinstance(one, float) else str(one) for one in values]
    return IssueValue(name, *texts)


def _turns(values: Sequence[WrongValue]) -> Iterator[str]:
    for value in values:
        for change in value.right_when:
            checked = "" if change.checked else " (not compared)"
            yield f"right with {right_when_text(change)}{checked}"
        for name in value.not_right_when:
            yield f"wrong with {name}, too"


def _about(run: Run, pairs: Sequence[tuple[GraphAccuracy, WrongValue]]) -> Iterator[Cause]:
    """Yield the decisions about what is wrong that a change turned, or else those that were missed."""
    for graph, value in pairs:
        dumped = next((one for one in run.graphs if one.name == graph.graph), None)
        names = [name for name in (value.node, value.buffer) if name]
        if dumped is None or not names:
            continue
        try:
            causes = causes_of(dumped, names[:1]).causes
        except NotFoundError:
            continue  # a name of the graph of FX alone, of which nothing was decided
        scalar = any(change.name.startswith(_SCALAR) for change in value.right_when)
        kinds = {"vectorisation"} if scalar else set()
        yield from [one for one in causes if one.topic in kinds] or [one for one in causes if one.direct][:2]


def _of_whatif(answer: WhatIf, command: str) -> Issue:
    graph = next((one for one in answer.graphs if one.asked or not one.correct), None) or next(
        iter(answer.graphs), None
    )
    if graph is None:
        raise ProbeError("there is nothing to report: no graph of B computes what one of A does")
    a = answer.runs[0]
    run = open_run(a.path)
    call = graph.call
    side = next((one for one in run.graphs if one.name == graph.diff.a.name), None)
    decided = [change.a or change.b for change in graph.asked]
    causes = causes_of(side).causes if side else ()
    wrong = ", ".join(f"{one.name} is wrong" for one in graph.wrong_calls)
    return _with_run(
        run,
        title=f"[inductor] {answer.candidate or 'another way to compile it'}: {wrong or _verdict(call)}",
        expected="inductor decides for the faster of two ways that compute the same"
        if not wrong
        else "both ways compute what the graph does",
        actual=tuple(whatif_sentence(one, answer.candidate) for one in answer.graphs),
        program=_program(run, graph.diff.a.name),
        keep="wrong" if wrong else "",
        causes=tuple(one for one in causes if one.decision is not None and one.decision in decided),
        turns=(f"turned by {answer.candidate.command}",) if answer.candidate else (),
        command=command,
        bisector=_bisector(_program(run, None)) if wrong else "",
    )


def _verdict(call: object) -> str:
    from inductor_probe.model.comparison import Comparison

    if not isinstance(call, Comparison):
        return "not timed"
    return f"{call.verdict}, {call.ratio:.3f}x the time ({call.low:.3f} to {call.high:.3f})"


def _of_causes(answer: Causes, command: str, run: Run) -> Issue:
    causes = [cause for row in answer for cause in row.causes]
    missed = [cause for cause in causes if cause.kind in ("missed", "hazard")] or causes
    if not missed:
        raise ProbeError("there is nothing to report: nothing was decided about it")
    decision = missed[0].decision
    topic, of_kind = missed[0].topic or "decision", missed[0].kind if missed is not causes else ""
    return _with_run(
        run,
        title=" ".join(filter(None, ("[inductor]", topic, of_kind, decision.cause if decision else ""))),
        expected=f"another decision ({topic}), or that what torch compares below is as it should be",
        actual=(f"{counted(len(missed), 'decision')} of inductor, with the values that torch compared.",),
        program=_program(run, answer[0].graph),
        keep=f"'expect: --cause {decision.cause}'" if decision and decision.cause else "",
        causes=tuple(missed),
        command=command,
    )


def _with_run(run: Run, **fields: object) -> Issue:
    """Return an issue with what the manifest of a run says, and the names that are to stand nowhere in it."""
    manifest = run.manifest
    versions, machine = (
        (dict(manifest.versions), dict(manifest.machine)) if manifest is not None else ({}, {})
    )
    facts = [(name, versions[name]) for name in _VERSIONS if name in versions]
    facts += [(name.replace("_", " "), machine[name]) for name in _OF_MACHINE if name in machine]
    names = {platform.node(), machine.get("host", ""), Path.home().name, _user(), *platform.node().split(".")}
    return Issue(**fields, versions=tuple(facts), secrets=tuple(sorted(names - {"", "root"})))  # type: ignore[arg-type]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without an entry for this number
        return ""


def _program(run: Run, graph: str | None) -> IssueProgram | None:
    """Return what `probe reduce` made of the script, the script where it is short, or the graph."""
    script = Path(run.manifest.script) if run.manifest else None
    if script is not None:
        small = Path(f"{script.stem}_small.py")
        for path in (small, script.with_name(small.name), script):
            if (text := _text(path)) is None:
                continue
            is_reduced = f'"""{REDUCED_HEAD}' in text[:200]
            if path != script and (not is_reduced or script.name not in text[:200]):
                continue
            program = _as_program("reduced" if is_reduced else "script", path.name, text)
            if path != script or program.lines <= MOST_LINES:
                return program
    dumped = next((one for one in run.graphs if graph in (None, one.name)), None)
    text = _text(dumped.path / _RUNNABLE) if dumped else None
    if text is None or (forward := _FORWARD.search(text)) is None:
        return None
    code = _FREED.sub("", _COMMENT.sub("", forward[0]))
    body = "\n".join(line[4:] for line in code.split("\n") if line.strip())
    return IssueProgram("graph", script.name if script else "SCRIPT", body, len(body.split("\n")))


def _text(path: Path) -> str | None:
    try:
        return read_text(path)
    except ProbeError:
        return None


def _as_program(kind: str, name: str, text: str) -> IssueProgram:
    """Return a text without the docstring of its file, and count its lines of code."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        body = []
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        text = "\n".join(text.split("\n")[body[0].end_lineno or 0 :]).lstrip("\n")
    lines = sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in text.split("\n"))
    return IssueProgram(kind, name, text, lines)  # type: ignore[arg-type]  # one of its two kinds


def _checked(program: IssueProgram | None) -> IssueProgram | None:
    """Return a reduced program with a last line that fails where the call is wrong."""
    if program is None or program.kind != "reduced":
        return program
    text = _CALL.sub(r"torch.testing.assert_close(compiled(\1), function(\1))", program.text)
    return replace(program, text=text)


def _bisector(program: IssueProgram | None) -> str:
    """Return the command of torch's bisector: it chooses backends by `TORCH_BISECT_BACKEND`, and compiles."""
    name = program.name if program and program.kind != "graph" else "SCRIPT"
    return f"python -m torch._inductor.compiler_bisector run python {shlex.quote(name)}"
