"""Operators that inductor decomposed: what compiled code does for each, beside eager's kernel of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.decomposed import Figure, FigureCode, FigureSource, LoopWork, Repeated
from inductor_probe.model.overview import DecomposedOperator
from inductor_probe.report.document import Block, Cell, Column, Heading, Line, Name, Table
from inductor_probe.report.units import bytes_text, counted, duration, first_names, three_digits

_TITLES: dict[FigureCode, str] = {
    "seconds": "time in a call",
    "without-vectors": "time without ATen's vectors",
    "operators": "operators it becomes; calls in turn",
    "loops": "loop nests and library calls",
    "operations": "operations an element of its results",
    "repeated": "  repeated by outer loops",
    "loads": "loads an element",
    "indirect": "  from a computed index",
    "stores": "stores an element",
    "checks": "checks of an index an element",
    "vectorised": "operations in vectors",
    "operand-bytes": "bytes of operands and results",
    "moved-bytes": "bytes that its loops move",
    "between-bytes": "buffers beside the results",
}
_SOURCES: dict[FigureSource, str] = {
    "recorded": "recorded", "read": "read", "inferred": "inferred", "measured": "measured", "not-known": "",
}  # fmt: skip
_MOST_WORKS, _MOST_REPEATED = 4, 2
_SLOWER = 1.5


def slower_lines(operators: Sequence[DecomposedOperator]) -> Iterator[Block]:
    """Yield a line about decomposed operators whose loops take longer than eager's kernels."""
    for one in operators:
        if one.ratio is not None and one.ratio >= _SLOWER:
            others = " and what else its loops compute" if one.others else ""
            yield Line(
                f"{one.name}{others}: {duration(one.seconds or 0.0)}, {one.ratio:.1f} times as long as in "
                "eager (--operators compares both)"
            )


def operators_page(operators: Sequence[DecomposedOperator]) -> Iterator[Block]:
    """Yield a table for each operator, what outer loops repeat, and what can be changed where."""
    for one in operators:
        yield Heading([(one.name, "bold"), _title(one)], 2)
        yield Table(
            (
                Column("", fold="never"),
                Column("compiled", right=True, fold="never"),
                Column("", fold="never", rank=1),
                Column("eager", right=True, fold="never"),
                Column("", fold="never", rank=1),
            ),
            [[*_row(figure)] for figure in one.figures],
        )
        yield from _eager(one)
        yield _loops(one.works)
        if (others := len(one.works) - _MOST_WORKS) > 0:
            yield Line((f"{counted(others, 'more loop')}: --json has all", "dim"))
        again = sorted((work for work in one.works if work.repeated), key=lambda work: -work.again)
        for work in again[:_MOST_REPEATED]:
            yield from _repeated(work)
        yield from _decisions(one)


def _title(one: DecomposedOperator) -> str:
    share = "" if one.share is None else f", {one.share * 100:.1f} % of the call"
    others = f"; the same loops compute {first_names(one.others, 4)}" if one.others else ""
    if one.others and one.others_eager:
        others += f" ({duration(one.others_eager)} in eager)"
    return f"{share}{others}"


def _row(figure: Figure) -> Iterator[Cell]:
    yield _TITLES[figure.code]
    for value, source in (
        (figure.compiled, figure.compiled_source),
        (figure.eager, figure.eager_source),
    ):
        yield "-" if value is None else _value(figure.code, value)
        yield (_SOURCES[source], "dim")


def _value(code: FigureCode, value: float) -> str:
    if code in ("seconds", "without-vectors"):
        return duration(value)
    if code.endswith("-bytes"):
        return bytes_text(int(value))
    if code == "vectorised":
        return f"{value * 100:.3g} %"
    return three_digits(value)


def _eager(one: DecomposedOperator) -> Iterator[Block]:
    """Say what is known of eager's kernel beside figures, and what is not."""
    if one.eager is None:
        yield Line("eager: not measured")
        return
    below = f", the rest in {first_names(one.below, 6)}" if one.below else ""
    for_vectors = f"; ATen chose its kernels for {one.capability}" if one.capability else ""
    yield Line(
        f"eager: {(one.own or 0.0) * 100:.0f} % of its time is in its own code{below}{for_vectors}. The text "
        "of a library's kernel is not here: its operations, loads and loops are not known"
    )


def _loops(works: Sequence[LoopWork]) -> Table:
    columns = (
        Column("computed by", fold="middle", least=24),
        Column("time", right=True, fold="never"),
        Column("", fold="never", rank=2),
        Column("loops", fold="never", rank=3),
        Column("operations", right=True, fold="never"),
        Column("loads", right=True, fold="never"),
        Column("computed index", right=True, fold="never", rank=1),
        Column("stores", right=True, fold="never"),
        Column("bytes", right=True, fold="never"),
    )
    rows: list[list[Cell]] = [
        [
            Name(work.name),
            "-" if work.seconds is None else duration(work.seconds),
            work.kind or "-",
            " x ".join(f"{name} {size}" for name, size in work.loops) or "-",
            *([f"{work.operations:,}", str(work.loads), str(work.indirect), str(work.stores)]
              if work.loops else ["-"] * 4),
            bytes_text(work.moved),
        ]
        for work in works[:_MOST_WORKS]
    ]  # fmt: skip
    return Table(columns, rows)


def _repeated(work: LoopWork) -> Iterator[Block]:
    """Say which operations a loop does again, and who could have them done once."""
    for one in work.repeated:
        stores = f" and {one.stores} of {work.stores} stores" if one.stores else ""
        if one.innermost:
            who = "a C++ compiler can do them before it, as it is the innermost loop"
        else:
            who = _who(one)
        yield Line(
            [
                (Name(work.name), "bold"),
                f": {one.operations} of {work.operations} operations{stores} do not depend on "
                f"{one.variable}, and are done in each of its {one.trips} trips with the same result; {who}",
            ],
            indent=2,
        )


def _who(one: Repeated) -> str:
    """Say whether inductor could have what an outer loop repeats done once, in a buffer, or nobody could."""
    if not one.sized:
        return (
            "no FX operator is of that smaller size, so that inductor has no buffer for them: only another "
            "decomposition has, which computes them before it broadcasts"
        )
    whose = "them all" if one.sized == one.operations else f"{one.sized} of them"
    return f"there are FX operators of the size of {whose}: inductor can make buffers of such"


def _decisions(one: DecomposedOperator) -> Iterator[Block]:
    """Say what inductor could decide otherwise, and what came of what was tried."""
    if not one.tries:
        yield Line("inductor has no decision about these loops to be turned")
        return
    tried = f"{counted(one.tries, 'decision')} about these loops can be turned"
    if one.tried:
        best = "none is faster" if one.gain is None else f"the best takes {one.gain:.2f} of the call's time"
        tried += f", {one.tried} were timed: {best}"
    else:
        tried += "; none was timed yet"
    yield Line(tried)
    for idea in one.try_:
        most = "" if idea.at_most is None else f"at most {idea.at_most * 100:.1f} %: "
        yield Line(f"{most}{idea.command}", indent=2)
