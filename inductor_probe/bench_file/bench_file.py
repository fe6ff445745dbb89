"""`output_code_bench.py` on disk: written, written again with the user's variants in it, or kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from inductor_probe.bench_file.python_form import CPP_CODE, IR_FILE, PYTHON_CODE, code_as_python
from inductor_probe.bench_file.sections import cut
from inductor_probe.bench_file.source import bench_source, is_complete
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError
from inductor_probe.files import digest_of, read_text, replace_unchanged
from inductor_probe.harness.options import LAST_LINE
from inductor_probe.model.bench import BenchFile
from inductor_probe.model.layouts import InputBound
from inductor_probe.model.manifest import ConstantFact, InputFact
from inductor_probe.reader.python_text import PythonSource, read_python_source
from inductor_probe.variants.bench_variants import (
    add_variant,
    carry_over,
    orphaned_variants,
    users_variants,
    variant_diffs,
)
from inductor_probe.variants.code import frame, syntax
from inductor_probe.variants.registry import apply_rewrite

BENCH_NAME = "output_code_bench.py"
_GRAPHS = ("fx_graph_runnable.py", "fx_graph_readable.py")
_SEAL = "# Made by inductor_probe; sha256 of the rest as made: {}, without its variants: {}"
_SEALED = re.compile(re.escape(_SEAL).replace(r"\{\}", r"(\w+)") + r"(?=\n)")
_State: TypeAlias = Literal["written", "rewritten", "kept"]
_TRIES = 5
"""How often variants are added once more to a file that was saved by another program meanwhile."""


def write_bench_file(
    graph_dir: Path,
    facts: Sequence[InputFact] = (),
    variants: Sequence[tuple[str, str | None]] = (),
    rewrites: Sequence[str] = (),
    *,
    bounds: Sequence[InputBound] | None = None,
    constants: Sequence[ConstantFact] | None = None,
) -> BenchFile:
    """Write the bench file of a graph beside its `output_code.py`, with the user's variants in it.

    What was edited or added under a name `NAME_v2`, `NAME_v3`, ... is taken over byte for byte, and is
    `edited` in the result. A file that was edited anywhere else is kept as it is, and only added to. Where
    another program saves the file meanwhile, all is done once more from what it saved.

    Args:
        graph_dir: the graph's folder.
        facts: what its inputs were, if known.
        variants: names of variants to add, each with its text or None for a copy: see `add_variant`.
        bounds: which values its inputs may take; None where nobody looked for it.
        constants: what the dump keeps of them; None in a dump from before it did.
        rewrites: named rewrites to add variants by, such as `loops:cpp_fused_flip_0 x1,x2`: see `REWRITES`.

    Raises:
        NotFoundError: the graph has no `output_code.py`, or nothing of the name of a variant.
        UnreadableError: a file of the graph, or the edited bench file, is not Python text in UTF-8.
        ProbeError: a variant cannot be made, or the folder cannot be written; nothing was changed.
    """
    codes = [path for name in (PYTHON_CODE, CPP_CODE) if (path := graph_dir / name).exists()]
    if not codes:
        raise NotFoundError(
            f"{graph_dir} has no output_code.py, so there is nothing to make a bench file from",
            "the compile may have failed before it was written; dump the script again",
        )
    paths = [codes[0], *(path for name in (*_GRAPHS, IR_FILE) if (path := graph_dir / name).exists())]
    texts = {path.name: read_text(path) for path in paths}
    fresh = _fresh(graph_dir, texts, facts, bounds, constants)
    code, path, _ = code_as_python(texts, graph_dir, facts)
    target, kernels = graph_dir / BENCH_NAME, cut(code, path).names
    state: _State
    reread = False
    for _ in range(_TRIES):
        existing = existing_bench_file(graph_dir)
        state, source = ("written", fresh) if existing is None else _again(existing.text, fresh, target)
        for name, text in variants:
            source = add_variant(source, name, text, str(target))
        for spec in rewrites:
            source = apply_rewrite(source, spec, str(target))
        sealed = _sealed(fresh, source)
        if existing is not None and sealed == existing.text:
            break
        if replace_unchanged(target, sealed, existing.data if existing else None):
            break
        reread = True
    else:
        raise ProbeError(
            f"{target} was changed by another program each of the {_TRIES} times that it was read",
            "it is as that program left it; save it there, then run this again",
        )
    edited = edited_names(sealed, fresh, target)
    gone = orphaned_variants(sealed)
    diffs = tuple(diff for diff in variant_diffs(sealed, str(target)) if diff.name in edited and diff.lines)
    return BenchFile(target, graph_dir.name, kernels, state, edited, gone, diffs, reread)


def existing_bench_file(graph_dir: Path) -> PythonSource | None:
    """Return the bench file that is in a graph's folder, None if there is none.

    Raises:
        UnreadableError: it is not Python text in UTF-8, it was cut short, or a link that leads nowhere.
    """
    path = graph_dir / BENCH_NAME
    try:
        source = read_python_source(path)
    except NotFoundError as error:
        if path.is_symlink():
            why = f"{path} is a link to a file that does not exist"
            raise UnreadableError(why, "remove the link") from error
        return None
    if not is_complete(source.text):
        last = source.text.count("\n") + 1
        raise UnreadableError(
            f"{path}:{last}: this file is incomplete (cut short): its last line, {LAST_LINE!r}, is missing",
            f"restore it in your editor, or delete {path.name} to have it written again, without your edits",
        )
    return source


def is_generated(
    text: str,
    graph_dir: Path,
    texts: Mapping[str, str | None],
    facts: Sequence[InputFact] = (),
    bounds: Sequence[InputBound] | None = None,
    *,
    constants: Sequence[ConstantFact] | None = None,
    rewriting: bool = False,
) -> bool:
    """Tell whether a bench file is character for character, comments included, what `texts` make.

    Args:
        text: of the bench file.
        graph_dir: the graph's folder; nothing is read there.
        texts: of its files, by name.
        facts, bounds, constants: as for `write_bench_file`.
        rewriting: ask it of what `write_bench_file` would make of it: another probe may have made it.

    Raises:
        UnreadableError: there is no whole `output_code.py` in `texts`; the bench file is not Python.
    """
    fresh = _fresh(graph_dir, texts, facts, bounds, constants)
    if rewriting:
        text = _sealed(fresh, _again(text, fresh, graph_dir / BENCH_NAME)[1])
    return text == seal(fresh, fresh)


def _fresh(
    graph_dir: Path,
    texts: Mapping[str, str | None],
    facts: Sequence[InputFact],
    bounds: Sequence[InputBound] | None,
    constants: Sequence[ConstantFact] | None,
) -> str:
    runnable, readable = (texts.get(name) for name in _GRAPHS)
    code, path, of_cpp = code_as_python(texts, graph_dir, facts)
    return bench_source(
        code,
        runnable,
        graph_dir.name,
        facts,
        path,
        bounds=bounds,
        readable=readable,
        constants=constants,
        of_cpp=of_cpp,
    )


def _again(old: str, fresh: str, path: Path) -> tuple[_State, str]:
    """Return what becomes of a bench file that is there: its text, with its seal where it is kept."""
    if old == seal(fresh, fresh):
        return "rewritten", old
    sealed = _SEALED.match(old)
    try:
        users, around = users_variants(old), frame(old).partition("\n")[2]  # without the seal
    except (SyntaxError, ValueError) as error:
        raise _no_python(error, path) from error
    if sealed is None or sealed[2] != digest_of(around) or sealed[2] == digest_of(frame(fresh)):
        return "kept", old
    return "rewritten", carry_over(fresh, users)


def _sealed(fresh: str, source: str) -> str:
    return source if _SEALED.match(source) else seal(fresh, source)


def seal(made: str, source: str) -> str:
    """Return `source` below a line with digests of what was made of it, whole and without its variants."""
    return f"{_SEAL.format(digest_of(made), digest_of(frame(made)))}\n{source}"


def is_as_made(text: str) -> bool:
    """Tell whether nobody touched `text` since it was sealed, and no variant was added to it."""
    sealed = _SEALED.match(text)
    return sealed is not None and sealed[1] == digest_of(text.partition("\n")[2])


def edited_names(old: str, fresh: str, path: Path) -> tuple[str, ...]:
    """Return what differs at the top of a bench file from a fresh one, is new, or is gone, in order.

    Comments and blank lines do not count.

    Raises:
        UnreadableError: the edited file is not Python; says the line.
    """
    try:
        now, before = _definitions(old), _definitions(fresh)
    except (SyntaxError, ValueError) as error:
        raise _no_python(error, path) from error
    return tuple(name for name in {**before, **now} if before.get(name) != now.get(name))


def _no_python(error: Exception, path: Path) -> UnreadableError:
    line = getattr(error, "lineno", None) or 1
    return UnreadableError(
        f"{path}:{line}: your edit is not Python: {getattr(error, 'msg', error)}",
        f"the file was kept as it is; fix that line, or delete {path.name} to have it written again",
    )


def _definitions(source: str) -> dict[str, str]:
    definitions: dict[str, str] = {}
    for statement in syntax(source).body:
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                key = name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                key = name
            case ast.Import() | ast.ImportFrom():
                key = "imports"
            case _:
                key = "statements"
        definitions[key] = definitions.get(key, "") + ast.dump(statement)
    return definitions
