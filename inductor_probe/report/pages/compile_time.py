"""Where the time of compiling went: a sentence, phases, compiles, the longest regions, runs of compilers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.compile_time import (
    Build,
    CacheLookup,
    Compile,
    CompileSummary,
    CompileTimes,
    GrowingPhase,
    Growth,
    GrowthVerdict,
    Guard,
    Phase,
    PhaseTime,
    Specialisation,
    WarmCompile,
)
from inductor_probe.model.record import grouped
from inductor_probe.report.document import Block, Cell, Column, Heading, Line, Name, RemarkLine, Table, apart
from inductor_probe.report.units import counted, duration

_MOST_ROWS = 8
_LEAST_SHARE = 0.005
_MORE = "--all, or --json"
PHASES: dict[Phase, str] = {
    "dynamo": "dynamo traces Python",
    "guards": "guards are built",
    "aot-autograd": "AOTAutograd",
    "pre-grad-passes": "passes before autograd",
    "joint-passes": "passes over forward and backward",
    "post-grad-passes": "passes after autograd",
    "lowering": "lowering",
    "scheduling": "scheduling and fusion",
    "code-generation": "code generation",
    "cpp-compiler": "C++ compiler, alone",
    "triton-compiler": "Triton",
    "waiting": "waiting for compilers",
    "autotuning": "autotuning",
    "caches": "cache look-ups",
    "loading": "loading of what was made",
    "other": "other regions",
}


def compile_time_pages(rows: Sequence[CompileTimes], *, everything: bool = False) -> Iterator[Block]:
    """Yield a page for each run; with `everything` tables to their end."""
    grown = [_growth(row, row.growth) for row in rows if row.growth is not None]
    yield from apart(grown or (_page(row, None if everything else _MOST_ROWS) for row in rows))


def _growth(row: CompileTimes, growth: Growth) -> Iterator[Block]:
    """Yield how compiling grows: a sentence, what grows faster than the program, and a table of phases."""
    numbers = ", ".join(map(str, growth.numbers))
    script = row.subject.rpartition(" with ")[0]
    runs = counted(growth.rounds, "run")
    yield Heading([f"{script} with {numbers}: ", (_whole(growth), "bold"), f" ({runs} with each)"])
    for one in growth.phases:
        if one.verdict == "faster" and one.phase != "all":
            region = f", most of it {one.region}" if one.region else ""
            text = f"{PHASES[one.phase]}: {_power(one)} grows faster than the program{region}"
            yield RemarkLine("missed", text)
    yield Line()
    columns = (
        Column("phase", fold="never"),
        *(Column(f"n = {number}", right=True, fold="never") for number in growth.numbers),
        Column("grows as", fold="never"),
        Column("than the program", rank=1),
    )
    program: list[Cell] = ["operators", *map(str, growth.operators), f"n^{growth.exponent:.2g}", ""]
    if not growth.exponent:
        program[-2] = "as many"
    rows: list[list[Cell]] = [
        [
            ("all of it", "bold") if one.phase == "all" else PHASES[one.phase],
            *map(duration, one.seconds),
            _power(one),
            _VERDICTS[one.verdict],
        ]
        for one in growth.phases
    ]
    yield Table(columns, [program, *rows], 2)
    text = "n^x of fixed + slope * n^x: x, and the interval of 95 % that its runs leave"
    yield Line((text, "dim"), 2)


_VERDICTS: dict[GrowthVerdict, str] = {
    "faster": "faster", "alike": "alike", "slower": "slower", "constant": "", "undecided": "undecided",
}  # fmt: skip


def _whole(growth: Growth) -> str:
    whole = next(one for one in growth.phases if one.phase == "all")
    ends = f"{duration(whole.seconds[0])} to {duration(whole.seconds[-1])}"
    what = "growth within noise" if whole.exponent is None else f"compiling grows as {_power(whole)}"
    than = f"the program as n^{growth.exponent:.2g}" if growth.exponent else "the program does not grow"
    return f"{what}, {than}: {ends}"


def _power(one: GrowingPhase) -> str:
    if one.exponent is None:
        return "within its noise"
    return f"n^{one.exponent:.1f} ({one.low:.1f} to {one.high:.1f})"


def summary_sentence(one: CompileSummary) -> str:
    """`compiling took 13.4 s in 9 compiles, 54% of it: waiting for compilers; ...`."""
    share = _share(one.phase_seconds, one.seconds)
    text = f"compiling took {duration(one.seconds)} in {counted(one.compiles, 'compile')}"
    again = f"; {duration(one.again_seconds)} of it since guards failed" if one.again else ""
    return f"{text}, {share} of it: {PHASES[one.phase]}{again}"


def guard_pages(rows: Sequence[CompileTimes], *, everything: bool = False) -> Iterator[Block]:
    """Yield the guards of each compile that are about values of the user's, and how many others there are.

    Of what was compiled again those that differ from the compile before, or with `everything` all.
    """
    having = [(one, row) for row in rows for one in row.compiles if one.guards]
    yield from apart(_guards(one, None if everything else _before(one, row.compiles)) for one, row in having)
    if not having:
        yield Line("no guards are recorded: no compile came to its end")


def _before(one: Compile, compiles: Sequence[Compile]) -> Compile | None:
    """Return the last compile of the same function before one, if it has guards."""
    frame = one.compile_id.partition("/")[0]
    earlier = compiles[: next(place for place, other in enumerate(compiles) if other is one)]
    alike = (
        other for other in reversed(earlier)
        if other.guards and (other.compile_id.partition("/")[0], other.function) == (frame, one.function)
    )  # fmt: skip
    return next(alike, None)


def _guards(one: Compile, before: Compile | None) -> Iterator[Block]:
    took = f", checked in {one.guard_us:.0f} us" if one.guard_us else ""
    title = f": {counted(len(one.guards), 'guard')}{took}"
    called = f", called at {one.called}" if one.called else ""
    yield Heading([(f"{one.compile_id} {one.function}", "bold"), title + called])
    if one.reason:
        yield Line(f"compiled since this did not hold: {_in_short(one.reason)}", 2)
    for constant in one.specialised:
        yield RemarkLine("missed", _specialised(constant), 2)
    shown = [guard for guard in one.guards if not _is_of_torch(guard)]
    if before is not None:
        known = {(guard.value, guard.text) for guard in before.guards}
        same = [guard for guard in shown if (guard.value, guard.text) in known]
        shown = [guard for guard in shown if (guard.value, guard.text) not in known]
        yield Line((f"{counted(len(same), 'guard')} as in {before.compile_id} (--all), and:", "dim"), 2)
    rows: list[list[Cell]] = [[guard.value, guard.text, guard.where, guard.code] for guard in shown]
    yield Table(_GUARDS, rows, 2)
    if before is None and (others := len(one.guards) - len(shown)):
        text = f"and {others} of torch's own: its state, types of its classes, no dimension marked: --json"
        yield Line((text, "dim"), 2)


def _specialised(one: Specialisation) -> str:
    """`x.size()[0] was dynamic, and became the constant 6 at net.py:14: return self.scores(x) + bias`."""
    place = f" at {one.where}: {one.code}" if one.where else ""
    return f"{one.value} was dynamic, and became the constant {one.constant}{place}"


def _is_of_torch(guard: Guard) -> bool:
    """Whether a guard is about what no program changes in passing."""
    is_inside = guard.value.startswith("torch.") or guard.value.endswith(_INSIDE)
    is_inside = is_inside or ".__dict__" in guard.text
    return not guard.value or is_inside or guard.kind in ("DIMENSION_DYNAMIC_MARKING_GUARD", "ID_MATCH")


def _in_short(reason: str) -> str:
    """Return the guard that failed, without the line that it is for and the stack behind it."""
    return reason.partition("\n")[0].partition("  # ")[0].strip()


_INSIDE = (
    "._modules", "._parameters", "._buffers", "['_modules']", "['_parameters']", "['_buffers']", ".__dict__",
)  # fmt: skip
_GUARDS = (
    Column("value", fold="middle", least=20),
    Column("has to be", most=60),
    Column("for the line", fold="path"),
    Column("code", most=50, rank=1),
)


def _page(row: CompileTimes, most: int | None) -> Iterator[Block]:
    took = f"compiling took {duration(row.seconds)}"
    yield Heading([f"{row.subject}: ", (took, "bold"), f" in {counted(len(row.compiles), 'compile')}"])
    if row.dumped:
        yield Line(("of a dump: with empty caches, debug files, and what records decisions", "dim"))
    if row.exit_status:
        text = f"the script ended with status {row.exit_status}: this is what was compiled until then"
        yield RemarkLine("missed", text)
    if not row.phases:
        return
    yield from _longest(row)
    yield Line()
    yield Table(_PHASES, [*_phase_rows(row.phases, row.seconds)], 2)
    yield Line()
    yield _compiles(row.compiles, most)
    yield from _misses(row.compiles)
    for one in row.compiles:
        for constant in one.specialised:
            yield RemarkLine("missed", f"{one.compile_id}: {_specialised(constant)}", 2)
    if row.builds:
        text = f"{counted(len(row.builds), 'run')} of compilers, {duration(row.build_seconds)} in all"
        yield Line()
        yield Heading(text, 2)
        yield Table(_BUILDS, _build_rows(row.builds), 2, most=most, more=_MORE)
    yield Line()
    yield Heading("regions that torch times, without those within them", 2)
    shown = [one for one in row.regions if one.seconds >= _LEAST_SHARE * row.seconds]
    yield Table(
        _REGIONS,
        [[one.name, PHASES[one.phase], duration(one.seconds), str(one.times)] for one in shown],
        2, most=most, more=_MORE,
    )  # fmt: skip
    if row.warm is not None:
        yield Line()
        yield from _warm(row.warm, row.seconds)


def _longest(row: CompileTimes) -> Iterator[Block]:
    first = row.phases[0]
    share = first.seconds / row.seconds if row.seconds else 0.0
    yield Line(f"{share:.0%} of it: {PHASES[first.phase]} ({duration(first.seconds)})")
    again = [one for one in row.compiles if one.reason]
    if again:
        seconds = sum(one.seconds for one in again)
        noun = counted(len(again), "compile")
        yield RemarkLine(
            "missed", f"{noun} of {duration(seconds)} came of guards that failed: probe overview"
        )


_PHASES = (
    Column("phase", fold="never"),
    Column("time", right=True, fold="never"),
    Column("share", right=True),
)
_COMPILES = (
    Column("compile", fold="never"),
    Column("function", fold="end", least=12),
    Column("where", fold="path", rank=2),
    Column("time", right=True, fold="never"),
    Column("operators", right=True, rank=1),
    Column("guards", right=True, rank=3),
    Column("most of it", most=40),
    Column("cache", fold="never", rank=4),
    Column("why", most=60, rank=5, below=True),
)
_BUILDS = (
    Column("of", fold="middle", least=20),
    Column("compile", fold="never", rank=1),
    Column("compiler", fold="never"),
    Column("time", right=True, fold="never"),
    Column("runs", right=True, fold="never"),
)
_REGIONS = (
    Column("region", fold="middle", least=20),
    Column("phase", rank=1, most=36),
    Column("time", right=True, fold="never"),
    Column("times", right=True, fold="never"),
)
_OF: dict[str, str] = {
    "header": "the header that all kernels include", "check": "programs that try the compiler",
    "other": "a wrapper, or what calls a kernel", "kernel": "a kernel",
}  # fmt: skip


def _phase_rows(phases: Sequence[PhaseTime], whole: float) -> Iterator[list[Cell]]:
    small = [one for one in phases if one.seconds < _LEAST_SHARE * whole]
    for one in phases:
        if one not in small:
            yield [PHASES[one.phase], duration(one.seconds), _share(one.seconds, whole)]
    if small:
        seconds = sum(one.seconds for one in small)
        yield [f"{counted(len(small), 'other')}", duration(seconds), _share(seconds, whole)]


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _compiles(compiles: Sequence[Compile], most: int | None) -> Table:
    """Return a row for each; without the column of guards where none are recorded."""
    guarded = any(one.guards for one in compiles)
    shown = [place for place, column in enumerate(_COMPILES) if column.title != "guards" or guarded]
    rows = [[row[place] for place in shown] for row in map(_compile_row, compiles)]
    return Table([_COMPILES[place] for place in shown], rows, 2, most=most, more=_MORE)


def _compile_row(one: Compile) -> list[Cell]:
    most = ", ".join(f"{PHASES[part.phase]} {_share(part.seconds, one.seconds)}" for part in one.phases[:2])
    counts = ["" if one.operators is None else str(one.operators), str(len(one.guards) or "")]
    back = " backward" if one.backward else ""
    name: Cell = (f"{one.compile_id}{back}", "bold red" if one.failed else "bold")
    why = f"{one.failed}: probe dump" if one.failed else _in_short(one.reason)
    cache = one.cache.result if one.cache is not None else ""
    return [name, Name(one.function), one.where, duration(one.seconds), *counts, most, cache, why]


def _misses(compiles: Sequence[Compile]) -> Iterator[Block]:
    for one in compiles:
        if (
            one.cache is not None
            and one.cache.result in ("miss", "bypass")
            and (text := cache_sentence(one.cache))
        ):
            yield Line(f"{one.compile_id}: {text}", 2)


def cache_sentence(cache: CacheLookup) -> str:
    """Return why the cache did not have a graph; empty where that is not known."""
    if cache.result == "bypass":
        return f"the cache was not asked: {cache.reason}" if cache.reason else ""
    if cache.differs is None:
        return ""
    shown = "; ".join(cache.differs[:3])
    more = f"; and {len(cache.differs) - 3} more" if len(cache.differs) > 3 else ""
    return f"not in the cache, where the key most like it has another part: {shown}{more}"


def _build_rows(builds: Sequence[Build]) -> list[list[Cell]]:
    """Return a row for each kernel, and one for all else of a kind, the longest first."""
    groups = grouped(builds, lambda one: (one.kernel, one.compile_id) if one.kernel else (_OF[one.kind], ""))
    rows = sorted(groups.items(), key=lambda row: -sum(one.seconds for one in row[1]))
    return [
        [
            Name(name) if members[0].kernel else (name, "dim"),
            compile_id,
            "C++" if members[0].compiler == "c++" else "Triton",
            duration(sum(one.seconds for one in members)),
            str(len(members)),
        ]
        for (name, compile_id), members in rows
    ]


def _warm(warm: WarmCompile, cold: float) -> Iterator[Block]:
    yield Line(
        f"the same script with these caches: {duration(warm.seconds)} instead of {duration(cold)}; the cache "
        f"had {counted(warm.hits, 'graph')}, missed {warm.misses}, was not asked for {warm.bypassed}"
    )
    most = ", ".join(f"{PHASES[one.phase]} {_share(one.seconds, warm.seconds)}" for one in warm.phases[:3])
    yield Line(f"most of that: {most}", 2)
    for reason in warm.reasons:
        yield RemarkLine("missed", reason, 2)
