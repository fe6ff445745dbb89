"""Where the time of a call goes: kernels with their loop nests, the wrapper, and the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.profile import ComparedPart, NestTime, Profile, ProfileComparison, ProfilePart
from inductor_probe.model.span import SourceLine, own_lines
from inductor_probe.report.document import Block, Cell, Column, Heading, Line, Name, Table
from inductor_probe.report.pages.kernels import first_of
from inductor_probe.report.pages.overheads import NOT_MEASURABLE, number_columns
from inductor_probe.report.units import bytes_text, counted, duration, rate_text, three_digits
from inductor_probe.report.words.kernels import clock_problem
from inductor_probe.report.words.layouts import FEATURES
from inductor_probe.report.words.remarks import sentence

PART_NAMES = {
    "launches": "launching kernels",
    "allocation": "allocation",
    "check": "checks of sizes and strides",
    "free": "freeing buffers",
    "other": "rest of the wrapper",
    "gap": "in no part",
}
_MOST_NESTS = 8
_CLOCKS = {
    "tsc": "the time stamp counter",
    "steady_clock": "std::chrono::steady_clock",
    "thread_cpu": "CPU time of the thread, as a call is long: it stands still while others have its core",
}


def profile_page(profile: Profile, *, details: bool = False, titled: bool = False) -> Iterator[Block]:
    """Yield the parts in a table, kernels with their loop nests; then what reading clocks costs.

    With `details` all loop nests are shown, and the lines of the wrapper; else the longest ones.
    """
    if titled:
        yield Heading((profile.graph, "bold"))
    yield Line((profile_sentence(profile), "bold"))
    cuda = profile.device != "cpu"
    columns = (
        Column("", fold="middle", least=34),
        *number_columns("time", "share"),
        Column("bytes", right=True, fold="never", rank=4),
        Column("rate", right=True, fold="never", rank=3),
        Column("nodes", fold="never", rank=2),
        Column("from", most=30, fold="path", rank=1),
    )
    for side in ("device", "host") if cuda else ("host",):
        rows = [
            cells
            for part in profile.parts
            if part.side == side
            for cells in _part_rows(part, profile, details, titled=cuda)
        ]
        yield Table(columns, rows)
    yield from slow_lines(profile)
    if details:
        yield from line_table(profile)
    for remark in profile.remarks:
        yield Line((sentence(remark), "dim"))
    yield from clock_lines(profile)


def profile_sentence(profile: Profile) -> str:
    """Say what a call takes, and what takes most of it.

    `A call takes 40.10 us with 1 thread: loop nest 1 of k_0 is 44.4 % of it.`
    """
    if profile.device != "cpu":
        return _sentence_of_gpu(profile)
    text = f"{_whole(profile)} {duration(profile.call)} with {counted(profile.threads, 'thread')}"
    if profile.threads > 1 and (lost := _lost_rounds(profile)):
        busy = "its shares are not those of a quiet machine"
        return f"{text}, which lost cores to other programs in {lost}: {busy}."
    nests = [nest for nest in profile.nests if nest.number is not None]
    parts = [part for part in profile.parts if part.kind != "call" and part.side == "host"]
    longest = max(parts, key=lambda part: part.seconds, default=None)
    nest = max(nests, key=lambda nest: nest.seconds, default=None)
    if nest is not None and nest.seconds > max(
        (part.seconds for part in parts if part.kind != "kernel"), default=0.0
    ):
        return f"{text}: loop nest {nest.number} of {nest.kernel} is {_share(nest.share)} of it."
    if longest is not None:
        are = "are" if longest.kind == "check" else "is"
        return f"{text}: {_name(longest)} {are} {_share(longest.share)} of it."
    return f"{text}."


def _lost_rounds(profile: Profile) -> str:
    """Say in how many rounds a call lost a core: `4 of 6 rounds`; nothing where that is a half at most."""
    for remark in profile.remarks:
        lost, rounds = remark.number("lost"), remark.number("rounds")
        if remark.code != "parts-lost-cores" or not isinstance(lost, int) or not isinstance(rounds, int):
            continue
        if 2 * lost > rounds:
            return f"{lost} of {rounds} rounds"
    return ""


def _whole(profile: Profile) -> str:
    as_python = any(remark.code == "wrapper-as-python" for remark in profile.remarks)
    return "The steps of the C++ wrapper, in Python, take" if as_python else "A call takes"


def _sentence_of_gpu(profile: Profile) -> str:
    """Say what a call takes of the GPU and of the host, which of them calls in a loop wait for, and why.

    `A call takes 33.81 us of the GPU and 28.22 us of the host. Calls in a loop wait for
    the GPU: triton_per_fused_0 is 99.5 % of its time.`
    """
    gpu, whole = profile.part("call", "device"), profile.whole
    on_gpu = gpu.seconds if gpu is not None else 0.0
    text = f"{_whole(profile)} {duration(on_gpu)} of the GPU and {duration(whole.seconds)} of the host"
    side = "device" if on_gpu > whole.seconds else "host"
    text += f". Calls in a loop wait for the {'GPU' if side == 'device' else 'host'}"
    parts = [part for part in profile.parts if part.kind != "call" and part.side == side]
    longest = max(parts, key=lambda part: part.seconds, default=None)
    if longest is None:
        return f"{text}."
    are = "are" if longest.kind == "check" else "is"
    return f"{text}: {_name(longest)} {are} {_share(longest.share)} of its time."


def _part_rows(part: ProfilePart, profile: Profile, details: bool, *, titled: bool) -> Iterator[list[Cell]]:
    style = "bold" if part.kind == "call" else ""
    name = _name(part)
    if titled and part.kind == "call":
        name += f" ({'GPU' if part.side == 'device' else 'host'})"
    yield [
        (Name(name), style),
        (_time(part.seconds, part.uncertainty), style),
        (_share(part.share), style),
        bytes_text(part.moved) if part.moved is not None else "",
        _rate(part),
        first_of(part.nodes) if part.nodes else "",
        _from(part.sources),
    ]
    if part.kind == "kernel":
        nests = [nest for nest in profile.nests if nest.kernel == part.name]
        yield from _nest_rows(nests, details)


def _nest_rows(nests: Sequence[NestTime], details: bool) -> Iterator[list[Cell]]:
    ranked = sorted(nests, key=lambda nest: -nest.seconds)
    shown = ranked if details else [nest for nest in ranked if nest.number is not None][:_MOST_NESTS]
    rest = [nest for nest in ranked if nest not in shown]
    shown = [nest for nest in nests if nest in shown]
    for nest in shown:
        kind = "" if nest.kind in (None, "vectorised") else f", {nest.kind}"
        loops = "x".join(loop.split()[-1] for loop in nest.loops)
        name = f"  loop nest {nest.number} ({loops}{kind})" if nest.number else "  outside of loop nests"
        if nest.threads > 1 and nest.busy < 0.9:
            name += f", threads busy {nest.busy * 100:.0f} %"
        yield [
            Name(name),
            _time(nest.seconds, nest.uncertainty),
            _share(nest.share),
            bytes_text(nest.moved) if nest.moved is not None else "",
            _rate(nest),
            first_of(nest.nodes) if nest.nodes else "",
            _from(nest.sources),
        ]
    if rest:
        others = [nest for nest in rest if nest.number is not None]
        seconds = sum(nest.seconds for nest in rest)
        share = sum(nest.share for nest in rest)
        name = (
            f"  {counted(len(others), 'loop nest')} more, and outside"
            if others
            else "  outside of loop nests"
        )
        yield [Name(name), duration(seconds), _share(share), "", "", "", ""]


def slow_lines(profile: Profile) -> Iterator[Block]:
    """Yield a line for each long loop nest that memory does not bind: what else may.

    `loop nest 1 of cpp_fused_exp_0: log1p, exp: 31.0 cycles an element, 2.1 % of the rate of a copy`
    """
    nests = [nest for nest in profile.nests if nest.slow is not None]
    for nest in sorted(nests, key=lambda nest: -nest.seconds):
        if (slow := nest.slow) is None:
            continue
        words = [*slow.operations, *(FEATURES[feature] for feature in slow.features)]
        if slow.tile:
            words.append(f"tiles of {'x'.join(map(str, slow.tile))} transposed")
        what = ", ".join(dict.fromkeys([*words, *(["no vectors"] if slow.scalar else [])]))
        each = (
            f"{three_digits(slow.cycles)} cycles an element"
            if slow.cycles is not None
            else f"{three_digits(nest.seconds * nest.threads / slow.points * 1e9)} ns an element"
        )
        name = f"loop nest {nest.number} of {nest.kernel}"
        copied = f"{_share(slow.copied)} of the rate of a copy"
        yield Line(f"{name}: {what or 'nothing in its loop body is known to be slow'}: {each}, {copied}")
    if nests:
        text = "That these take the time is inferred: they are what loop body and text of the nest have"
        yield Line((f"{text}; probe asm KERNEL shows the machine code.", "dim"))


def line_table(profile: Profile) -> Iterator[Block]:
    """Yield the lines of the wrapper, each with its kernel."""
    if not profile.lines:
        return
    file = profile.lines[0].span.path.name
    yield Line()
    yield Heading((f"lines of the wrapper in {file}", "bold"), 2)
    rows: list[Sequence[Cell]] = [
        [
            str(line.span.first),
            _time(line.seconds, line.uncertainty),
            _share(line.share),
            str(line.count) if line.count > 1 else "",
            Name(line.code),
        ]
        for line in profile.lines
    ]
    columns = (*number_columns("line", "time", "share", "runs"), Column("", fold="end", least=20))
    yield Table(columns, rows)


def clock_lines(profile: Profile) -> Iterator[Block]:
    """Yield what reading clocks costs, and which kernels could not be looked into."""
    clocked = [clock for clock in profile.clocks if clock.problem is None]
    for clock in profile.clocks:
        if clock.problem is not None:
            why = clock_problem(clock.problem)
            yield Line((f"{clock.kernel}: the times of its loop nests are not known: {why}", "yellow"))
    text = f"Reading clocks is subtracted: {_nanoseconds(profile.mark)} a line of the wrapper"
    if clocked:
        text += (
            f", {_nanoseconds(max(clock.note for clock in clocked))} a loop nest ({_CLOCKS[profile.clock]})"
        )
        pristine = sum(clock.pristine or 0.0 for clock in clocked)
        added, off = sum(clock.added for clock in clocked), sum(clock.uncertainty for clock in clocked)
        if pristine > 0 and abs(added) <= off:
            least = f"{off / pristine * 100:.1f} %"
            text += f"; what they add to the C++ kernels is less than can be measured ({least})"
        elif pristine > 0:
            share = f"{added / pristine * 100:+.1f} % (+- {off / pristine * 100:.1f} %)"
            text += f"; they add {share} to the C++ kernels"
    yield Line((f"{text}.", "dim"))


_STANDINGS = {
    "faster": ("faster", "green"),
    "slower": ("slower", "red"),
    "same": ("same", ""),
    "only-a": ("only A", "yellow"),
    "only-b": ("only B", "yellow"),
}


def comparison_page(comparison: ProfileComparison) -> Iterator[Block]:
    """Yield two profiles part by part, and what the difference of the calls consists of."""
    yield Line((comparison_sentence(comparison), "bold"))
    rows = [_compared_cells(part) for part in comparison.parts]
    yield Table(
        (Column("", fold="middle", least=30), *number_columns("A", "B", "B - A", "ratio"), Column("B is")),
        rows,
    )
    yield Line(
        (
            f"A: {comparison.a}, torch {comparison.torch_a}; B: {comparison.b}, torch {comparison.torch_b}.",
            "dim",
        )
    )
    paired = "by what they compute" if comparison.by == "compute" else "by their names"
    yield Line(
        (
            f"Kernels are paired {paired}. A and B were timed one after the other, in a process each: a "
            "difference below 5 % of a part, or 0.5 % of the call, is none.",
            "dim",
        )
    )


def comparison_sentence(comparison: ProfileComparison) -> str:
    """`B's call takes 52.90 us, 1.319x of A's 40.10 us: loop nest 1 of cpp_fused_0 +12.10 us.`"""
    whole = next((part for part in comparison.parts if part.kind == "call"), None)
    if whole is None or whole.a is None or whole.b is None:
        return "One side has no call."
    text = f"B's call takes {duration(whole.b)}, {whole.ratio or 0.0:.3f}x of A's {duration(whole.a)}"
    changed = [
        part
        for part in comparison.parts
        if part.kind not in ("nest", "gap", "call") and part.standing != "same"
    ]
    changed.sort(key=lambda part: -abs(part.difference))
    texts = [f"{_compared_name(part)} {_signed(part.difference)}" for part in changed[:2]]
    return f"{text}: {', '.join(texts)}." if texts else f"{text}: no part differs."


def _compared_cells(part: ComparedPart) -> list[Cell]:
    style = "bold" if part.kind == "call" else ""
    word, colour = _STANDINGS[part.standing]
    indent = "  " if part.kind == "nest" else ""
    return [
        (Name(indent + _compared_name(part)), style),
        (_signed(part.a, plus=False), style),
        (_signed(part.b, plus=False), style),
        _signed(part.difference),
        f"{part.ratio:.3f}x" if part.ratio is not None and part.kind != "gap" else "",
        ("" if part.kind == "gap" else word, colour),
    ]


def _compared_name(part: ComparedPart) -> str:
    names = part.names_a or part.names_b
    if part.kind not in ("kernel", "library", "nest"):
        return PART_NAMES.get(part.kind, names[0])
    first, second = " + ".join(part.names_a), " + ".join(part.names_b)
    return first if first == second or not second else (f"{first} -> {second}" if first else second)


def _signed(seconds: float | None, *, plus: bool = True) -> str:
    if seconds is None:
        return "-"
    sign = "-" if seconds < 0 else "+" if plus else ""
    return f"{sign}{duration(abs(seconds))}"


def _name(part: ProfilePart) -> str:
    times = f" x{part.count}" if part.count > 1 and part.kind not in ("other", "free", "check") else ""
    return f"{PART_NAMES.get(part.kind, part.name)}{times}"


def _time(seconds: float, off: float) -> str:
    if seconds <= off:
        return f"< {duration(seconds + off)}" if seconds + off > 0 else NOT_MEASURABLE
    return duration(seconds)


def _share(share: float) -> str:
    return f"{round(share * 100, 1) + 0.0:.1f} %"  # no -0.0


def _rate(part: ProfilePart | NestTime) -> str:
    """Return no rate of what takes no longer than it may be off: it could be any."""
    if part.seconds <= max(part.uncertainty, 0.0):
        return ""
    if part.flops is not None:
        return rate_text(part.flops / part.seconds, "FLOP/s")
    return rate_text(part.moved / part.seconds, "B/s") if part.moved is not None else ""


def _from(sources: Sequence[SourceLine]) -> str:
    if not sources:
        return ""
    return first_of([f"{source.path.rpartition('/')[2]}:{source.line}" for source in own_lines(sources)])


def _nanoseconds(seconds: float) -> str:
    return f"{seconds * 1e9:.0f} ns"
