"""Damage real dumps at random, and count what `probe check` notices: by kind of file and kind of damage.

    python -m benchmarks.reading.damage PATH... [--tries N] [--seed S] [--missed FILE]

PATH are folders with dumps. Each try copies a graph, damages one of its files once, and reads the copy as
`probe check` does. Lines that are comments or empty are left alone: nothing can be told of them. Before that
every graph is checked undamaged: each one that is not sound is a false alarm. The same seed makes the same
damages.
"""

from __future__ import annotations

import argparse
import random
import shutil
import string
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from inductor_probe.analysis.check import check_graph
from inductor_probe.discovery.walk import everything_below
from inductor_probe.model.check import DumpCheck, GraphCheck
from inductor_probe.model.debug_dir import GraphDir
from inductor_probe.reader.debug_dir import read_graph, texts_of
from inductor_probe.reader.output_code import parse_output_code

WRAPPER, CPP, TRITON = "wrapper", "C++ kernels", "Triton kernels"
KINDS = {
    "ir_pre_fusion.txt": "ir_pre_fusion.txt",
    "ir_post_fusion.txt": "ir_post_fusion.txt",
    "fx_graph_readable.py": "fx_graph_readable.py",
    "fx_graph_transformed.py": "fx_graph_transformed.py",
    "fx_graph_runnable.py": "fx_graph_runnable.py",
    WRAPPER: "output_code.py",
    CPP: "output_code.py",
    TRITON: "output_code.py",
}
_COMMENTS = {CPP: ("//",)}
_LARGEST = 300_000  # bytes of a file: a larger one says the same, later


def _garbage(rng: random.Random, length: int) -> str:
    return "".join(
        rng.choice(string.ascii_letters + string.digits + string.punctuation) for _ in range(length)
    )


def garbage_line(lines: list[str], row: int, places: Sequence[int], rng: random.Random) -> list[str]:
    """Put random letters and signs in the place of a line."""
    return [*lines[:row], _garbage(rng, rng.randrange(8, 40)), *lines[row + 1 :]]


def garbage_inside(lines: list[str], row: int, places: Sequence[int], rng: random.Random) -> list[str]:
    """Put eight random letters and signs into a line."""
    line = lines[row]
    column = rng.randrange(len(line) + 1)
    return [*lines[:row], line[:column] + _garbage(rng, 8) + line[column:], *lines[row + 1 :]]


def drop_line(lines: list[str], row: int, places: Sequence[int], rng: random.Random) -> list[str]:
    """Leave a line out."""
    return [*lines[:row], *lines[row + 1 :]]


def drop_range(lines: list[str], row: int, places: Sequence[int], rng: random.Random) -> list[str]:
    """Leave two to twenty lines out."""
    return [*lines[:row], *lines[row + rng.randrange(2, 21) :]]


def swap_lines(lines: list[str], row: int, places: Sequence[int], rng: random.Random) -> list[str]:
    """Exchange two lines that differ."""
    others = [place for place in places if lines[place] != lines[row]]
    swapped = list(lines)
    if others:
        other = rng.choice(others)
        swapped[row], swapped[other] = swapped[other], swapped[row]
    return swapped


def truncate(lines: list[str], row: int, places: Sequence[int], rng: random.Random) -> list[str]:
    """End the file within a line."""
    return [*lines[:row], lines[row][: rng.randrange(len(lines[row]))]]


Damage = Callable[[list[str], int, Sequence[int], random.Random], list[str]]
DAMAGES: dict[str, Damage] = {
    "garbage line": garbage_line,
    "garbage inside": garbage_inside,
    "line dropped": drop_line,
    "range dropped": drop_range,
    "lines swapped": swap_lines,
    "cut off": truncate,
}


def places_of(kind: str, text: str) -> list[int]:
    """Return the indexes of the lines of a kind that are neither comments nor empty."""
    lines = text.split("\n")
    places = list(range(len(lines)))
    if KINDS[kind] == "output_code.py":
        code = parse_output_code(text, Path())
        spans = [(kernel.backend, kernel.span) for kernel in code.kernels if kernel.span and kernel.source]
        inside = {row: backend for backend, span in spans for row in range(span.first - 1, span.last)}
        wanted = {WRAPPER: None, CPP: "cpp", TRITON: "triton"}[kind]
        places = [row for row in places if inside.get(row) == wanted]
    comments = _COMMENTS.get(kind, ("#",))
    return [row for row in places if lines[row].strip() and not lines[row].strip().startswith(comments)]


def checked(folder: Path) -> GraphCheck:
    """Check a graph's folder."""
    graph = read_graph(GraphDir(folder, 0, None))
    return check_graph(graph, texts_of(graph))


def sound(folder: Path) -> bool:
    """Tell whether nothing is wrong with a graph's folder."""
    return DumpCheck((checked(folder),)).sound


def damaged_text(text: str, kind: str, damage: Damage, rng: random.Random) -> str | None:
    """Return `text`, damaged; None where it has no line of the kind, or the damage changes nothing."""
    places = places_of(kind, text)
    if not places:
        return None
    damaged = "\n".join(damage(text.split("\n"), rng.choice(places), places, rng))
    return None if damaged == text else damaged


def noticed(graph: Path, name: str, damaged: str, scratch: Path) -> bool:
    """Tell whether the check notices that a file of a graph has another text."""
    copy = scratch / graph.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(graph, copy)
    (copy / name).write_text(damaged)
    return not sound(copy)


def _graphs(paths: Sequence[Path]) -> list[GraphDir]:
    return [graph for path in paths for run in everything_below(path) for graph in run.graphs]


def _false_alarms(graphs: Sequence[GraphDir]) -> int:
    begin = time.process_time()
    alarms = 0
    for graph in graphs:
        check = checked(graph.path)
        if not DumpCheck((check,)).sound:
            alarms += 1
            print(f"not sound undamaged: {graph.path}: {next(iter(check.problems), check.unlinked)}")
    print(f"{len(graphs)} undamaged graphs, {alarms} false alarms, {time.process_time() - begin:.1f} s")
    return alarms


def main() -> None:
    """Print the share that is noticed, by file and damage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--tries", type=int, default=40, help="of each damage to each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--missed", type=Path, help="where to list what was not noticed")
    options = parser.parse_args()
    graphs = _graphs(options.paths)
    alarms = _false_alarms(graphs)
    small = [
        graph.path
        for graph in graphs
        if all(path.stat().st_size < _LARGEST for path in graph.path.glob("*.*"))
    ]
    missed: list[str] = []
    print(f"{'':26}" + "".join(f"{name:>16}" for name in DAMAGES))
    with tempfile.TemporaryDirectory() as scratch:
        for kind, name in KINDS.items():
            having = [
                path
                for path in small
                if (path / name).exists() and places_of(kind, (path / name).read_text())
            ]
            shares: Counter[str] = Counter()
            for damage in DAMAGES if having else ():
                rng = random.Random(f"{options.seed} {kind} {damage}")  # noqa: S311 - the same damages every time
                tries = 0
                while tries < options.tries:
                    graph = rng.choice(having)
                    text = (graph / name).read_text()
                    damaged = damaged_text(text, kind, DAMAGES[damage], rng)
                    if damaged is None:
                        continue
                    tries += 1
                    if noticed(graph, name, damaged, Path(scratch)):
                        shares[damage] += 1
                    else:
                        missed.append(f"{damage}\t{graph / name}\t{_difference(text, damaged)}")
            if having:
                row = "".join(f"{f'{shares[damage]} of {options.tries}':>16}" for damage in DAMAGES)
                print(f"{kind:26}{row}", flush=True)
    if options.missed:
        options.missed.write_text("".join(f"{line}\n" for line in missed))
    sys.exit(1 if alarms else 0)


def _difference(text: str, damaged: str) -> str:
    """Return the first line that differs, and its number."""
    before, after = text.split("\n"), damaged.split("\n")
    row = next(
        (row for row, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), len(after)
    )
    lines = (before[row] if row < len(before) else "", after[row] if row < len(after) else "")
    return f"{row + 1}\t{lines[0].strip()[:120]}\t{lines[1].strip()[:120]}"


if __name__ == "__main__":
    main()
