"""Why: the decisions about a subject, each with its evidence and what turns it; the ledger of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from inductor_probe.catalogue.templates import listed
from inductor_probe.model.cause import Cause, GraphCauses
from inductor_probe.model.decision import DECISION_KINDS, Decision
from inductor_probe.model.record import grouped
from inductor_probe.model.remark import RemarkKind
from inductor_probe.model.span import own_lines
from inductor_probe.report.document import (
    Block,
    Cell,
    Column,
    Facts,
    Heading,
    Inline,
    Line,
    Name,
    Piece,
    RemarkLine,
    Table,
    apart,
    by_graph,
    first_place,
    place,
    remark_lines,
    source_text,
)
from inductor_probe.report.units import bytes_text, counted, duration, first_names
from inductor_probe.report.words.assembly import compiler_sentence
from inductor_probe.report.words.decisions import (
    change_text,
    code_text,
    kind_words,
    operand_texts,
    place_text,
    sentence,
    short_cause,
    short_change,
    short_setting,
    tests_texts,
)
from inductor_probe.report.words.remarks import sentence as remark_sentence

_MOST_PAGES = 5
"""Groups of nodes whose decisions are shown with their evidence; further ones are rows of a table."""
_LAST = 10**9
_PAIR = 2
_MOST_ROWS = 30
_MOST_WELL = 10
"""Rows of what went well, where nothing else is to be shown; more are behind `--all`."""
_MOST_NAME = 40
_MOST_CALLERS = 3
_MOST_LINES = 3
_MOST_TESTS = 3
_MOST_FX = 12
_MOST_GONE = 6
_KNOWN = {"read": " (read in the dump)", "inferred": " (inferred)"}
"""Behind a decision that was not recorded as torch took it."""
_SIGNS = {"missed": ("missed", "bold red"), "hazard": ("hazard", "bold red"), "passed": ("passed", "green")}


def why_pages(rows: Sequence[GraphCauses], *, everything: bool = False) -> Iterator[Block]:
    """Yield an answer for each graph; with `everything` lists to their end."""
    if any(row.asked for row in rows):
        yield from by_graph((row.graph, _page(row, everything)) for row in rows)
    else:
        yield from apart(_ledger(row, everything) for row in rows)


def _page(row: GraphCauses, everything: bool) -> Iterator[Block]:
    yield from remark_lines(row.compile_failed)
    if row.became:
        yield Line([(row.asked[0].name, "bold"), f": {became_text(row.became, row.gone)}"])
    if not row.causes:
        yield Line(nothing_text(row))
    shown = row.causes if everything else _first(row)
    groups = grouped(shown, lambda one: (one.nodes, one.knowledge) if one.nodes else one.subjects)
    of_kernel = row.asked[0].type == "kernel"  # whose nests are many: what went well there is a sentence
    ordered = _in_order(groups.values()) if of_kernel else list(groups.values())
    yield from apart(_group(group, everything, first=not of_kernel) for group in ordered)
    if rest := [cause for cause in row.causes if cause not in shown]:
        yield Line()
        yield Line((f"{counted(len(rest), 'further decision')}:", "bold"))
        yield _table(_rows(rest), everything)
    yield from _compiler(row)
    yield from _missing(row)


def became_text(became: Sequence[str], gone: Sequence[str]) -> str:
    """Say where an operator is that the FX graph does not have, or what it was until passes took that out."""
    there = [name for name in became if name not in gone]
    past = f"{first_names(gone, _MOST_GONE)}, which passes folded, replaced or removed"
    if not there:
        return f"no FX node calls it; it became {past}"
    text = f"no FX node calls it; in its place: {first_names(there, _MOST_FX)}"
    return f"{text}; before: {past}" if gone else text


def nothing_text(row: GraphCauses) -> str:
    """Say that nothing was decided about a subject, and what was looked for."""
    names = " and ".join(subject.name for subject in row.asked) or row.graph
    looked_for = [kind for kind in row.looked_for if kind in row.recorded]
    kinds = ", ".join(map(kind_words, looked_for))
    tried = (
        f"; {counted(row.tried, 'attempt')} {'was' if row.tried == 1 else 'were'} not kept"
        if row.tried
        else ""
    )
    if row.problems:
        return f"nothing about {names} is among the decisions that could be read"
    if not looked_for:
        return f"nothing is recorded about {names}{tried}"
    return f"nothing was decided about {names}: looked for {kinds}{tried}"


def _first(row: GraphCauses) -> Sequence[Cause]:
    """Return the decisions that are shown whole: those about the subject itself, and what was missed.

    Of decisions about the same nodes that read alike it is the first, as the values of a formula have them by
    the dozen.
    """
    heads: dict[object, Cause] = {}
    for cause in row.causes:
        heads.setdefault((cause.kind, cause.topic, row_text(cause), cause.nodes), cause)
    distinct = [*heads.values()]
    first = [cause for cause in distinct if _is_missed(cause)]
    if any(
        not cause.direct for cause in row.causes
    ):  # a name that has decisions of its own: no line, no operator
        first = [cause for cause in distinct if cause.direct or _is_missed(cause)]
    abouts = dict.fromkeys(cause.nodes or cause.subjects for cause in first or distinct)
    of_page = [*abouts][:_MOST_PAGES]
    return [cause for cause in first or distinct[:_MOST_PAGES] if (cause.nodes or cause.subjects) in of_page]


def _in_order(groups: Iterable[list[Cause]]) -> list[list[Cause]]:
    """Return the loop nests of a kernel as they stand in its text, and then what is about no nest."""
    return sorted(groups, key=lambda group: min((cause.nest or _LAST for cause in group), default=_LAST))


def _is_missed(cause: Cause) -> bool:
    return cause.kind in ("missed", "hazard")


def _group(causes: Sequence[Cause], everything: bool, *, first: bool) -> Iterator[Block]:
    """Yield decisions about the same nodes: what each rests on, what changes it, and then the nodes.

    What was not missed, and nothing changes, is a sentence, but for the first if `first`.
    """
    for cause in causes:
        yield RemarkLine(cause.kind, cause_sentence(cause), at=first_place(cause.sources))
        if everything or _is_missed(cause) or cause.changes or (first and cause is causes[0]):
            yield Facts([*_facts(cause), *change_facts(cause)])
    yield Facts(_nodes(causes))


def cause_sentence(cause: Cause) -> str:
    """Return what was decided, and why; of what was not recorded, what the dump shows."""
    if cause.decision is not None:
        text = sentence(cause.decision, [subject.name for subject in cause.subjects])
        return f"{text}{_KNOWN.get(cause.knowledge, '')}"
    return remark_sentence(cause.remark) if cause.remark else ""


def cause_facts(cause: Cause) -> list[tuple[str, Inline]]:
    """Return what a decision rests on, what would change it, and what it is about."""
    return [*_facts(cause), *change_facts(cause), *_nodes([cause])]


def _facts(cause: Cause) -> Iterator[tuple[str, Inline]]:
    decision = cause.decision
    if decision is None:
        yield "known", f"{cause.knowledge} in the dump, which does not record the decision"
        return
    yield decision.knowledge, ", ".join(operand_texts(decision))
    yield "tested", listed(tests_texts(decision), _MOST_TESTS)
    yield "decided in", place_text(decision)
    yield "called by", " < ".join(frame.function for frame in decision.stack[:_MOST_CALLERS])
    yield "asked", f"{decision.times} times; the last answer counts" if decision.times > 1 else ""


def _nodes(causes: Sequence[Cause]) -> Iterator[tuple[str, Inline]]:
    """Yield what decisions about the same nodes have in common."""
    first = causes[0]
    weightiest = max(causes, key=lambda cause: (cause.stake, cause.cost or 0))
    of_nest = next((cause for cause in causes if cause.nest is not None), first)
    yield "at stake", _stake(weightiest)
    yield "kernel", _kernels(of_nest)
    yield "FX nodes", first_names(first.fx, 6)
    places = dict.fromkeys(place(span) for cause in (of_nest, *causes) for span in cause.evidence)
    yield "dump", first_names(tuple(places), _MOST_LINES)
    lines = [source_text(line) for line in own_lines(first.sources)]
    more = [f"and {counted(len(lines) - _MOST_LINES, 'more line')}"] if len(lines) > _MOST_LINES else []
    yield "from", "\n".join([*lines[:_MOST_LINES], *more])


def change_facts(cause: Cause) -> Iterator[tuple[str, Inline]]:
    """Yield what would change a decision."""
    for number, change in enumerate(cause.changes):
        if cause.decision is not None:
            yield "or by" if number else "changed by", change_text(change, cause.decision)


def _stake(cause: Cause) -> str:
    of_nests = any("loop nest" in name for name, _ in cause.times)
    of = ("its loop nest" if of_nests else "its kernel") + ("s" if len(cause.times) > 1 else "")
    parts = [f"{duration(cause.seconds)} of {of}" if cause.seconds is not None else ""]
    if cause.cost is not None:
        shared = cause.decision is not None and len(cause.decision.subjects) == 2 == len(cause.subjects)
        parts.append(f"{bytes_text(cause.cost)} {'used by both' if shared else 'read and written'}")
    return ", ".join(filter(None, parts))


def _kernels(cause: Cause) -> Inline:
    pieces: list[Piece] = []
    for name in cause.kernels[:3]:
        pieces += [", ", Name(name)] if pieces else [Name(name)]
    pieces += [f" and {len(cause.kernels) - 3} more"] if len(cause.kernels) > 3 else []
    return [*pieces, f", loop nest {cause.nest}"] if cause.nest is not None else pieces


def _ledger(row: GraphCauses, everything: bool) -> Iterator[Block]:
    counts = Counter(cause.kind for cause in row.causes)
    parts = [f"{counts[kind]} {kind}" for kind in ("hazard", "missed", "analysis", "passed") if counts[kind]]
    what = "decision" if row.recorded else "conclusion"
    total = counted(len(row.causes), what) + (f" ({', '.join(parts)})" if parts else "")
    total += "" if row.recorded else ", no recorded decision"
    tried = f", {row.tried} tried and not kept" if row.tried else ""
    yield Heading([(row.graph, "bold"), f"  {total}{tried}"])
    yield from remark_lines(row.compile_failed)
    if row.causes:
        rows = _rows(row.causes)
        yield _answer(rows)
        well = [one for one in rows if one.cause.kind == "passed"]
        shown = [one for one in rows if one not in well]
        if everything or (not shown and len(rows) <= _MOST_WELL) or len(row.looked_for) < len(DECISION_KINDS):
            shown, well = rows, []
        if shown:
            yield _table(shown, everything)
        if well:
            count = sum(len(one.about) for one in well)
            yield Line((f"--all shows {counted(count, 'decision')} more, which went well", "dim"), 2)
    else:
        yield Line(nothing_text(row), 2)
    yield from _of_graph(row, everything)
    yield from _compiler(row)
    yield from _missing(row)


def _of_graph(row: GraphCauses, everything: bool) -> Iterator[Block]:
    """Yield what was decided about the graph as a whole, which no name in it asks for."""
    causes = [cause for cause in row.causes if {subject.type for subject in cause.subjects} == {"graph"}]
    if not causes:
        return
    if len(row.looked_for) < len(DECISION_KINDS):
        yield Line()
        yield from apart(_group([cause], everything, first=True) for cause in causes)
        return
    kinds = ",".join(dict.fromkeys(cause.topic for cause in causes if cause.topic))
    yield Line((f"probe why --kind {kinds} says more of what was decided about the graph as a whole", "dim"))


class _Folded(Struct, frozen=True):
    """Decisions of one row: the weightiest, whom all are about, the bytes and times of them all.

    `alike` is False where they have the same cause with other numbers.
    """

    cause: Cause
    about: tuple[str, ...]
    cost: int | None
    seconds: float | None
    stake: float
    alike: bool


def _fold(causes: Iterable[Cause]) -> list[_Folded]:
    """Fold decisions of one cause, as the values of a formula and the layers of a network have them.

    What was missed stands apart where its numbers differ. What is at stake counts once for the same nodes and
    the same kernel: `inlined: a single user` of ten values of op1 is what op1 moves.
    """
    groups: dict[object, list[Cause]] = {}
    for cause in causes:
        decision = cause.decision
        code = (
            row_text(cause) if decision is None or _is_missed(cause) else (decision.outcome, decision.cause)
        )
        groups.setdefault((cause.kind, cause.topic, code), []).append(cause)
    folded = []
    for members in groups.values():
        members.sort(key=lambda cause: (-cause.stake, -(cause.cost or 0)))
        distinct = {member.counted or member.subjects: member for member in members}.values()
        costs = [member.cost for member in distinct if member.cost is not None]
        times = dict(piece for member in members for piece in member.times)
        folded.append(
            _Folded(
                cause=members[0],
                about=tuple(map(_about, members)),
                cost=sum(costs) if costs else None,
                seconds=sum(times.values()) if times else None,
                stake=sum(member.stake for member in distinct),
                alike=len({row_text(member) for member in members}) == 1,
            )
        )
    return folded


def _about(cause: Cause) -> str:
    """`op3`, `op3 + op4`; of many nodes that no pair was made of, `op3, op4 and 7 more`."""
    names = [subject.name for subject in cause.subjects]
    return " + ".join(names) if len(names) <= _PAIR else listed(names, _PAIR)


def _by_stake(row: _Folded) -> tuple[float, int]:
    return -row.stake, -(row.cost or 0)


_COLUMNS = (
    Column("", pipe=True),
    Column("", fold="never"),
    Column("about", most=_MOST_NAME, fold="middle", least=14),
    Column("kind", fold="never", rank=2),
    Column("decision", most=52),
    Column("bytes", right=True, fold="never"),
    Column("time", right=True, fold="never"),
    Column("changed by", most=44, rank=3, below=True),
)
_IF_KNOWN = ("time", "changed by")
"""Columns that are left out where no row has a value."""


def _rows(causes: Sequence[Cause]) -> list[_Folded]:
    """Return a row for each distinct decision: as the causes are ranked, and then by what is at stake."""
    ranked = grouped(causes, lambda cause: "missed" if _is_missed(cause) else cause.kind)
    return [row for members in ranked.values() for row in sorted(_fold(members), key=_by_stake)]


def _answer(rows: Sequence[_Folded]) -> RemarkLine:
    """`missed at 3 places, most at op1: 20.2 MiB, changed by cpp.simdlen = 256`."""
    missed = [row for row in rows if _is_missed(row.cause)]
    if not missed:
        return RemarkLine("passed", "nothing among them was missed")
    first = min(missed, key=_by_stake)
    where = f"{len(missed)} places, most at {first.about[0]}" if len(missed) > 1 else first.about[0]
    stake = duration(first.seconds) if first.seconds is not None else ""
    if first.seconds is None and first.cost is not None:
        stake = bytes_text(first.cost)
    change = _change(first.cause)
    text = ", ".join(filter(None, (stake, f"changed by {change}" if change else "")))
    return RemarkLine("missed", f"missed at {where}{f': {text}' if text else ''}")


def _change(cause: Cause) -> str:
    """Return in a few words what changes a decision; empty where nothing is known to."""
    setting = next((change.setting for change in cause.changes if change.setting), None)
    return short_setting(setting) if setting else short_change(cause.changes[0]) if cause.changes else ""


def decision_table(causes: Sequence[Cause], *, everything: bool) -> Table:
    """Return decisions in a table, those of one cause in one row."""
    return _table(_rows(causes), everything)


def _table(rows: Sequence[_Folded], everything: bool) -> Table:
    cells = [_cells(row) for row in rows]
    shown = [
        index
        for index, column in enumerate(_COLUMNS)
        if column.title not in _IF_KNOWN or any(line[index] != "-" for line in cells)
    ]
    return Table(
        [_COLUMNS[index] for index in shown],
        [[line[index] for index in shown] for line in cells],
        most=None if everything else _MOST_ROWS,
        more="--all shows all of them, --kind those of a kind",
    )


def _cells(row: _Folded) -> list[Cell]:
    cause = row.cause
    others = f" +{len(row.about) - 1}" if len(row.about) > 1 else ""
    at = first_place(cause.sources)
    return [
        f"{at}:" if at else "-",
        _SIGNS.get(cause.kind, (cause.kind, "dim")),
        (Name(f"{row.about[0]}{others}"), "bold"),
        kind_words(cause.topic) if cause.topic else "not recorded",
        f"{row_text(cause)}{'' if row.alike else ' (largest)'}{_code(cause)}",
        bytes_text(row.cost) if row.cost is not None else "-",
        duration(row.seconds) if row.seconds is not None else "-",
        _change(cause) or "-",
    ]


def row_text(cause: Cause) -> str:
    """`scalar: inner range 3 < 16/4 with 2 operations`; what is not recorded says how it is known."""
    decision = cause.decision
    if decision is None:
        about = cause.subjects[0].name  # its column
        return f"{remark_sentence(cause.remark, about) if cause.remark else ''} ({cause.knowledge})"
    return decision_text(decision)


def decision_text(decision: Decision) -> str:
    """`refused: 64 nodes > 63`; what is not recorded says how it is known."""
    known = f" ({decision.knowledge})" if decision.knowledge != "recorded" else ""
    short = short_cause(decision)
    is_said = short.replace(" ", "-") == decision.outcome
    return f"{short}{known}" if is_said else f"{decision.outcome}: {short}{known}"


def _code(cause: Cause) -> str:
    return code_text(cause.decision) if cause.decision is not None else ""


def decision_lines(causes: Sequence[Cause], name: str) -> Iterator[Block]:
    """Yield what was decided about a node or buffer, a line each, and where the rest of it is."""
    for cause in causes[:_MOST_PAGES]:
        yield RemarkLine(cause.kind, cause_sentence(cause), at=first_place(cause.sources))
    if causes:
        more = f"{counted(len(causes) - _MOST_PAGES, 'more decision')}, " if len(causes) > _MOST_PAGES else ""
        yield Line((f"probe why {name} shows {more}what was compared, and what changes it", "dim"), 2)


def _compiler(row: GraphCauses) -> Iterator[Block]:
    """Yield what the C++ compiler said of the loops, apart from what inductor decided."""
    for kernel in row.compiler:
        yield Line()
        vectors = f", {kernel.vectors}" if kernel.vectors else ""
        yield Heading(
            [("remarks of the compiler", "bold"), f" on {kernel.kernel}: {kernel.version}{vectors}"]
        )
        if not kernel.remarks:
            yield Line("no remark on its loops", 2)
        for remark in kernel.remarks:
            loop = f"{kernel.path.name}:{kernel.first + remark.loop - 1}"
            named = (
                f"{kernel.path.name}:{kernel.first + remark.line - 1}" if remark.line != remark.loop else ""
            )
            text = compiler_sentence(remark, turned_off=kernel.turned_off, place=named)
            kind: RemarkKind = "analysis" if remark.code == "vectorised" else "missed"
            yield RemarkLine(kind, f"loop {remark.variable} of nest {remark.nest + 1} ({loop}): {text}")


def _missing(row: GraphCauses) -> Iterator[Block]:
    """Yield what this dump does not record, and how to get it."""
    for remark in row.failed:
        text = remark_sentence(remark, remark.subject.name)
        yield RemarkLine("hazard", f"a recorder failed, so decisions may be missing: {text}")
    missing = [kind for kind in row.looked_for if kind not in row.recorded]
    if len(row.asked) == 2:  # the others are about one thing each
        missing = [kind for kind in missing if kind == "fusion"]
    if not missing:
        return
    is_all = not row.recorded and len(missing) == len(DECISION_KINDS)
    kinds = "any decision" if is_all else ", ".join(map(kind_words, missing))
    if row.problems and not row.recorded:
        yield RemarkLine("hazard", f"what torch decided cannot be read: {row.problems[0].message}")
        return
    how = "`probe dump SCRIPT` of this version records what torch decides, and why"
    if row.recorded:
        how = "by the version of probe that made it, or on its torch"
    yield Line((f"not recorded in this dump: {kinds} ({how})", "dim"))
    if not row.recorded:
        names = " ".join(subject.name for subject in row.asked)
        verbs = {0: "probe kernels, probe fusion and probe layouts", 1: f"probe show {names}"}
        verb = "shows" if row.asked else "show"
        shown = verbs.get(len(row.asked), f"probe fusion {names}")
        yield Line((f"{shown} {verb} all that the dump itself proves", "dim"))
