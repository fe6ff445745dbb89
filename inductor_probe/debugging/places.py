"""What a user names, to stops in the sources that are installed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from inductor_probe.capture.torch_places import TOPICS, places_of
from inductor_probe.debugging.asking import HELPERS
from inductor_probe.debugging.sources import Function, Source, find_file, find_module, torch_version
from inductor_probe.debugging.stops import Stop
from inductor_probe.debugging.subjects import wanted_for
from inductor_probe.debugging.wanted import Wanted
from inductor_probe.errors import NotFoundError, ProbeError, near_names

_IF = re.compile(r"\s+if\s+")
_LINE = re.compile(r"(.+\.py):(\d+)")
_NAME = re.compile(r"([\w.]+):([\w.<>]+)")
_INDUCTOR = "torch._inductor."


@dataclass(frozen=True, slots=True)
class Planned:
    """Where the child will stop.

    Attributes:
        stops: in the order that they were named.
        gone: a sentence for each place that the installed sources do not have.
    """

    stops: tuple[Stop, ...]
    gone: tuple[str, ...]


def plan(places: Sequence[str], subjects: Sequence[str], cwd: Path, beside: Path | None = None) -> Planned:
    """Return the stops that `places` and `subjects` mean in the installed sources.

    Args:
        places: `module:Qualified.name` or `torch/_inductor/file.py:LINE`, each with ` if CONDITION` or
            without, or the name of a set.
        subjects: see `subjects.wanted_for`.
        cwd: what a path is relative to, if it is not below a package.
        beside: the script's folder, whose modules it can import.

    Raises:
        ProbeError: a place or subject that is spelled wrongly; a condition that is no expression, or uses
            names that are not there.
        NotFoundError: none of the places is there.
        UnreadableError: a source cannot be read.
    """
    stops: dict[Stop, None] = {}
    gone: list[NotFoundError] = []
    wanted = [want for place in places for want in _wanted(place)]
    wanted += [want for subject in subjects for want in wanted_for(subject)]
    for want in wanted:
        try:
            stops.update(dict.fromkeys(_resolved(want, cwd, beside)))
        except NotFoundError as error:
            gone.append(error)
    if gone and not stops:
        hint = gone[0].hint if len(gone) == 1 else f"{len(gone)} places are gone: this torch is another one"
        raise NotFoundError(gone[0].message, hint)
    return Planned(tuple(stops), tuple(f"{e.message}{f' ({e.hint})' if e.hint else ''}" for e in gone))


def _wanted(place: str) -> Iterator[Wanted]:
    target, *rest = _IF.split(place.strip(), maxsplit=1)
    condition = rest[0] if rest else None
    if target in TOPICS:
        if condition:
            raise ProbeError(
                f"--break {target} is a set of places and takes no condition", "name one of them"
            )
        yield from (Wanted(str(place)) for place in places_of(target))
    elif _LINE.fullmatch(target) or _NAME.fullmatch(target):
        yield Wanted(target, condition)
    else:
        near = near_names(target, TOPICS)
        raise ProbeError(
            f"--break {target} is no place: it is neither module:Class.method, file.py:LINE nor a set",
            f"{near}; or for example torch._inductor.codegen.cpp:LoopLevel.lines",
        )


def _resolved(want: Wanted, cwd: Path, beside: Path | None) -> Iterator[Stop]:
    if match := _LINE.fullmatch(want.target):
        source = find_file(match[1], cwd, beside)
        function, statement = _statement_at(source, int(match[2]))
        _check(want.condition, source, function.names, want.target)
        yield _stop(want, source, statement, f"{match[1]}:{statement.lineno}")
        return
    module, _, name = want.target.partition(":")
    name = name.replace(".<locals>", "")
    source = _module(module, beside)
    functions = source.named(name)
    if not functions:
        known = dict.fromkeys(function.name for function in source.functions)
        raise NotFoundError(
            f"{source.module}:{name} is not available on torch {torch_version()}", near_names(name, known)
        )
    for function in functions:
        at_entry = want.at == "entry"
        first = function.entry if at_entry else function.last_return
        if first is None:
            what = "no statement to stop at" if at_entry else "no return at its end"
            raise NotFoundError(f"{source.module}:{name} has {what} on torch {torch_version()}")
        names = frozenset(function.arguments) if at_entry else function.names
        _check(want.condition, source, names, want.target)
        yield _stop(want, source, first, f"{source.module}:{name}")


def _stop(want: Wanted, source: Source, statement: ast.stmt, place: str) -> Stop:
    return Stop(
        source.module,
        str(source.path),
        statement.lineno,
        statement.col_offset,
        place,
        want.condition,
        want.why,
    )


def _module(name: str, beside: Path | None) -> Source:
    """Return the module `name`, which may leave `torch._inductor.` out."""
    try:
        return find_module(name, beside)
    except NotFoundError:
        try:
            return find_module(_INDUCTOR + name, beside)
        except NotFoundError:
            pass  # the first failure speaks of what the user wrote
        raise


def _statement_at(source: Source, line: int) -> tuple[Function, ast.stmt]:
    """Return the statement that `line` belongs to, else the next one of the same function."""
    function = source.around(line)
    if function is None:
        after = next((f for f in source.functions if f.first_line > line), None)
        hint = f"the next one is {after.name} at line {after.node.lineno}" if after else None
        raise NotFoundError(f"line {line} of {source.path} is in no function", hint)
    entry = function.entry
    if entry is not None and line < entry.lineno:
        return function, entry
    found = [
        node for node in ast.walk(function.node) if isinstance(node, ast.stmt) and node is not function.node
    ]
    here = [node for node in found if node.lineno <= line <= _header_end(node)]
    if here:
        return function, min(here, key=lambda node: (node.lineno, node.col_offset))
    later = [node for node in found if node.lineno > line]
    if not later:
        raise NotFoundError(f"nothing of {function.name} runs from line {line} of {source.path} on")
    return function, min(later, key=lambda node: (node.lineno, node.col_offset))


def _header_end(statement: ast.stmt) -> int:
    """Return the last line of a statement, without the statements in it."""
    inner = [
        node.lineno for node in ast.walk(statement) if isinstance(node, ast.stmt) and node is not statement
    ]
    end = statement.end_lineno or statement.lineno
    return max(statement.lineno, min(inner) - 1) if inner else end


def _check(condition: str | None, source: Source, names: frozenset[str], target: str) -> None:
    """Refuse a condition that cannot hold: torch would be compiled to the end without a stop."""
    if condition is None:
        return
    try:
        tree = ast.parse(condition, mode="eval")
    except SyntaxError as error:
        raise ProbeError(
            f"the condition of --break {target} is no Python expression: {error.msg}: {condition}",
            "for example: if node1.get_name() == 'op3'",
        ) from error
    if source.names is None:
        return
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in nodes if isinstance(node.ctx, ast.Store)} | {
        node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)
    }
    known = names | source.names | bound | HELPERS.keys()
    for node in nodes:
        if node.id not in known:
            has = ", ".join(sorted(names)) or "no names"
            raise ProbeError(f"there is no {node.id} at {target}", f"it has {has}")
