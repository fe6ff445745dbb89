"""`output_code_bench.py` on disk: written, written again, or kept because the user edited it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from inductor_probe.errors import NotFoundError, UnreadableError
from inductor_probe.files import write_whole
from inductor_probe.model.bench import BenchFile
from inductor_probe.model.manifest import InputFact
from inductor_probe.reader.text import read_text
from inductor_probe.rewrite.bench_source import bench_source
from inductor_probe.rewrite.sections import cut

BENCH_NAME = "output_code_bench.py"
_SEAL = "# Made by inductor_probe; sha256 of the rest as made: "


def write_bench_file(graph_dir: Path, facts: Sequence[InputFact] = ()) -> BenchFile:
    """Write the bench file of a graph beside its `output_code.py`; an edited one is kept byte for byte.

    Raises:
        NotFoundError: the graph has no `output_code.py`.
        UnreadableError: a file of the graph, or the edited bench file, is not Python text.
        ProbeError: the folder cannot be written.
    """
    code, runnable = graph_dir / "output_code.py", graph_dir / "fx_graph_runnable.py"
    if not code.exists():
        raise NotFoundError(
            f"{graph_dir} has no output_code.py, so there is nothing to make a bench file from",
            "the compile may have failed before it was written; dump the script again",
        )
    text = read_text(code)
    fresh = seal(
        bench_source(text, read_text(runnable) if runnable.exists() else None, graph_dir.name, facts, code)
    )
    target, kernels = graph_dir / BENCH_NAME, cut(text, code).names
    state: Literal["written", "rewritten"] = "written"
    if target.exists():
        old = read_text(target)
        if not is_as_made(old):
            return BenchFile(target, graph_dir.name, kernels, "kept", edited_names(old, fresh, target))
        state = "rewritten"
    write_whole(target, fresh)
    return BenchFile(target, graph_dir.name, kernels, state)


def seal(source: str) -> str:
    """Return `source` below a line with a digest of it."""
    return f"{_SEAL}{hashlib.sha256(source.encode()).hexdigest()}\n{source}"


def is_as_made(text: str) -> bool:
    """Tell whether nobody touched `text` since it was sealed."""
    return text == seal(text.partition("\n")[2])


def edited_names(old: str, fresh: str, path: Path) -> tuple[str, ...]:
    """Return what differs at the top of a bench file from a fresh one, is new, or is gone, in order.

    Comments and blank lines do not count.

    Raises:
        UnreadableError: the edited file is not Python; says the line.
    """
    try:
        now = _definitions(old)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UnreadableError(
            f"{path}:{line}: your edit is not Python: {getattr(error, 'msg', error)}",
            f"the file was kept as it is; mend that line, or delete {path.name} to have it made afresh",
        ) from error
    before = _definitions(fresh)
    return tuple(name for name in {**before, **now} if before.get(name) != now.get(name))


def _definitions(source: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for statement in ast.parse(source).body:
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                key = name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                key = name
            case ast.Import() | ast.ImportFrom():
                key = "imports"
            case _:
                key = "statements"
        found[key] = found.get(key, "") + ast.dump(statement)
    return found
