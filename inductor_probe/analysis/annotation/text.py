"""Putting what is known of a kernel's lines into comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from inductor_probe.analysis.annotation.origins import LineOrigin
from inductor_probe.analysis.annotation.sources import Sources
from inductor_probe.model.code import CppFacts, Kernel, LoopNest
from inductor_probe.model.kernels import KernelLaunch
from inductor_probe.model.span import SourceLine

_VERBS = {"load": "reads", "store": "writes", "atomic": "adds to"}
_COLUMN = 88
"""Comments of a run of lines stand below each other, but not right of this column for short lines' sake."""
_MOST = 4


@dataclass(frozen=True, slots=True)
class Annotation:
    """The comment of a line, and the line of the user's that it is proved to come from."""

    comment: str
    source: SourceLine | None = None


def annotation(origins: Sequence[LineOrigin], sources: Sources) -> Annotation | None:
    """Return the comment of a line, of which each launch may tell something else."""
    told = list(dict.fromkeys(text for origin in origins if (text := _told(origin))))
    if not told:
        return None
    nodes = [name for origin in origins for name in (*origin.nodes, *origin.shared)]
    lines = sources.of_line(dict.fromkeys(nodes), origins[0].calls)
    places = [f"{_file(line)}:{line.line}" for line in lines]
    where = _either(places)
    more = f" | {len(told) - _MOST} more" if len(told) > _MOST else ""
    comment = " | ".join(told[:_MOST]) + more + (f", {where}" if where else "")
    known = nodes and all(sources.of_node(name) for name in nodes)
    return Annotation(plain(comment), lines[0] if known and len(lines) == 1 else None)


def _told(origin: LineOrigin) -> str:
    who = _either(origin.nodes)
    if len(origin.nodes) > _MOST:
        who = f"{origin.nodes[0]} or {len(origin.nodes) - 1} others"
    if len(origin.nodes) > 1:
        who += " (AMBIGUOUS)"
    elif origin.shared:
        who += f" (and {', '.join(origin.shared[:_MOST])}{' ...' if len(origin.shared) > _MOST else ''})"
    does = ", ".join(
        f"{_VERBS[use.kind]} {_either(names) if names else use.pointer}" for use, names in origin.uses
    )
    return " ".join(part for part in (who, does) if part)


def _either(names: Sequence[str]) -> str:
    more = " or others" if len(names) > _MOST else ""
    return " or ".join(names[:_MOST]) + more


def _file(line: SourceLine) -> str:
    return line.path.replace("\\", "/").rpartition("/")[2]


def plain(text: str) -> str:
    """Make text fit for a comment: one line, nothing that acts, no backslash that joins the next line."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return shown.rstrip().rstrip("\\")


def about(kernel: Kernel, graph: str, launches: Sequence[KernelLaunch]) -> Iterator[str]:
    """Yield what stands above the text: which kernel it is, and what it is passed."""
    where = f" ({kernel.span.path.name}:{kernel.span.first})" if kernel.span else ""
    yield f"{kernel.name} of {graph}{where}, annotated by inductor_probe"
    for launch in launches:
        yield f"launched at {launch.span.path.name}:{launch.span.first} with"
        width = max((len(passed.arg.name) for passed in launch.passed if passed.arg), default=0)
        for passed in launch.passed:
            if passed.arg is not None:
                layout = passed.layout
                size = list(layout.size) if layout and layout.size is not None else ""
                kind = f"  {layout.dtype or '?'} {size}" if layout else ""
                yield f"  {passed.arg.name:{width}}  {passed.text}{kind}"


def node_lines(nodes: Iterable[tuple[str, tuple[str, ...]]], sources: Sources) -> Iterator[str]:
    """Yield what each node writes, and the user's code that it comes from."""
    for node, buffers in nodes:
        yield f"{node} computes {', '.join(buffers) or 'nothing that has a name'}"
        for line in sources.of_node(node):
            inside = f" in {line.function}" if line.function else ""
            yield f"  {line}{inside}: {line.code}"


def with_comments(line: str, comment: str | None, mark: str, column: int) -> str:
    """Return a line with its comment behind it."""
    if comment is None or line.endswith("\\"):
        return line
    return f"{line:{column}}  {mark} {comment}"


def columns(lines: Sequence[str], comments: dict[int, Annotation]) -> dict[int, int]:
    """Return the column where the comment of each line starts: the same for lines that follow each other."""
    found: dict[int, int] = {}
    run: list[int] = []
    for number in range(1, len(lines) + 2):
        if number in comments:
            run.append(number)
            continue
        widest = max((len(lines[at - 1]) for at in run if len(lines[at - 1]) <= _COLUMN), default=0)
        found.update(dict.fromkeys(run, widest))
        run = []
    return found


def nest_headings(
    facts: CppFacts, origins: dict[int, LineOrigin], lines: Sequence[str], moved: int
) -> dict[int, str]:
    """Return a heading for each loop nest, by the line it stands above: that of the nest's first pragma.

    The nests are counted from a text with `moved` more lines above.
    """
    found: dict[int, str] = {}
    nests = [nest for nest in facts.nests if nest.kind != "threads"]
    for at, nest in enumerate(nests, 1):
        line = nest.line - moved
        while line > 1 and lines[line - 2].lstrip().startswith("#pragma"):
            line -= 1
        found[line] = f"loop nest {at} of {len(nests)}, {nest.kind}: {_nest_nodes(nest, origins, moved)}"
    return found


def _nest_nodes(nest: LoopNest, origins: dict[int, LineOrigin], moved: int) -> str:
    names: dict[str, None] = {}
    for line in range(nest.line - moved, nest.last - moved + 1):
        if (origin := origins.get(line)) is not None:
            names.update(dict.fromkeys((*origin.nodes, *origin.shared)))
    return ", ".join(names) or "no node could be told"
