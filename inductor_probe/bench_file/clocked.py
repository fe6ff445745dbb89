"""A bench file with clocks in it: a copy of each C++ kernel that times its launches and loop nests."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

from inductor_probe.backends import cpp
from inductor_probe.bench.profile import ClockedFile
from inductor_probe.machine.cpu import has_invariant_tsc
from inductor_probe.model.code import CppFacts, LoopNest
from inductor_probe.model.profile import ClockName, ClockProblem
from inductor_probe.model.span import Span
from inductor_probe.variants.bench_variants import add_variants
from inductor_probe.variants.code import Code, definitions, read_code
from inductor_probe.variants.nest_clock import NotClockedError, with_clock

_COMMENT = "its loop nests read a clock"


def clocked_file(path: Path, source: str, generated: tuple[Path, str] | None = None) -> ClockedFile:
    """Give each C++ kernel of a bench file a copy that reads a clock, where that can be done.

    Args:
        path, source: the file, and its text.
        generated: `output_code.py`, and its text: lines of the wrapper are named as they are there.

    Raises:
        UnreadableError: it is not Python, or has no `call`.
    """
    code = read_code(source, str(path))
    clock: ClockName = "tsc" if platform.machine() == "x86_64" and has_invariant_tsc() else "steady_clock"
    nests: dict[str, tuple[LoopNest, ...]] = {}
    problems: dict[str, ClockProblem] = {}
    texts: dict[str, str] = {}
    for name, kernel in code.kernels.items():
        if kernel.backend.name != "cpp":
            continue
        details = cpp.read(kernel.source).details
        nests[name] = details.data_nests if isinstance(details, CppFacts) else ()
        try:
            texts[name] = with_clock(kernel.source, nests[name], len(texts), clock)
        except NotClockedError as error:
            problems[name] = error.problem
    copies = {name: f"{name}_v{code.next_number}" for name in texts}
    variants = [variant for variant in code.with_sources(texts, _COMMENT) if variant.name in copies.values()]
    text = add_variants(source, variants)
    return ClockedFile(
        path=path,
        source=text,
        wrapper=tuple(definition.name for definition in code.wrapper),
        clock=clock,
        copies=copies,
        nests=nests,
        problems=problems,
        span_of=_spans(text, code, generated, (path, source)),
    )


def _spans(
    source: str, code: Code, generated: tuple[Path, str] | None, written: tuple[Path, str]
) -> Callable[[int, int], Span]:
    """Return what finds lines of the text with clocks in `output_code.py`, or else in the bench file."""
    path, text = generated or written
    by_name = {definition.name: definition for definition in definitions(text)}
    same = all(
        definition.name in by_name and by_name[definition.name].text == definition.text
        for definition in code.wrapper
    )
    if generated is not None and not same:
        return _spans(source, code, None, written)
    ran = [definition for definition in definitions(source) if definition.name in by_name]

    def span(first: int, last: int) -> Span:
        inside = next(definition for definition in ran if definition.start <= first <= definition.last)
        moved = by_name[inside.name].start - inside.start
        return Span(path, first + moved, last + moved)

    return span
