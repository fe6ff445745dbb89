"""A formula as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inductor_probe.model.formula import (
    BoundsCheck,
    Definition,
    Effect,
    Formula,
    Statement,
    Store,
    View,
    broken,
    glued,
    piece,
)
from inductor_probe.model.fx import short_dtype
from inductor_probe.report.units import dims_text
from inductor_probe.report.words.layouts import CONVENTIONS, DECIDED

_COMMENT = "#"


def formula_lines(formula: Formula, width: int) -> list[str]:
    """Return the lines of a formula: loops, statements, then buffers and notes as comments."""
    lines = _wrapped(_loops(formula), width, "    ")
    for statement in formula.statements:
        if not _says_nothing(statement):
            lines += [f"  {line}".rstrip() for line in _statement(statement, width - 2)]
    conventions = [CONVENTIONS[convention] for convention in formula.conventions]
    for comment in (*_unchecked(formula), *_decided(formula), *_views(formula.views), *conventions):
        lines += _wrapped(f"{_COMMENT} {comment}", width, f"{_COMMENT}   ")
    return lines


def _says_nothing(statement: Statement) -> bool:
    return isinstance(statement, BoundsCheck) and not statement.lower and not statement.upper


def _unchecked(formula: Formula) -> Iterator[str]:
    """A check of neither end says nothing but that there is none."""
    known = [
        f"{check.value!s} < {check.size!s}"
        for check in formula.statements
        if isinstance(check, BoundsCheck) and _says_nothing(check)
    ]
    if known:
        yield f"not checked at run time: {', '.join(known)}"


def _decided(formula: Formula) -> Iterator[str]:
    for outcome, text in DECIDED.items():
        comparisons = [str(item.comparison) for item in formula.decided if item.outcome is outcome]
        if comparisons:
            yield f"{text}: {', '.join(dict.fromkeys(comparisons))}"


def _loops(formula: Formula) -> str:
    outer = [f"{loop.variable} < {loop.size}" for loop in formula.loops if not loop.reduced]
    inner = [f"{loop.variable} < {loop.size}" for loop in formula.loops if loop.reduced]
    parts = [f"for {', '.join(outer)}"] if outer else []
    parts += [f"reduced over {', '.join(inner)}"] if inner else []
    return "; ".join(parts) or "once"


def _statement(statement: Statement, width: int) -> list[str]:
    match statement:
        case Definition(name=name, parameters=parameters, value=value):
            head = f"{name}({', '.join(parameters)})" if parameters else name
            return _with_mask(broken(glued(f"{head} = ", piece(value)), width), statement, width)
        case Store(target=target, value=value, mode=mode):
            sign = "+=" if mode == "atomic_add" else "="
            lines = broken(glued(piece(target), f" {sign} ", piece(value)), width)
            if mode not in {None, "atomic_add"}:
                lines[-1] += f"  {_COMMENT} {mode}"
            return _with_mask(lines, statement, width)
        case BoundsCheck():
            return _with_mask([f"{_COMMENT} {_check(statement)}"], statement, width)
        case Effect(value=value, used=True):
            return _with_mask(broken(piece(value), width), statement, width)
        case Effect(value=value):
            return broken(glued(f"{_COMMENT} not used: ", piece(value)), width)


def _with_mask(lines: list[str], statement: Statement, width: int) -> list[str]:
    if statement.under is None:
        return lines
    note = f"{_COMMENT} only where {statement.under!s}"
    if len(lines[-1]) + len(note) + 2 <= width:
        return [*lines[:-1], f"{lines[-1]}  {note}"]
    return [*lines, f"    {note}"]


def _check(check: BoundsCheck) -> str:
    value, size = str(check.value), str(check.size)
    return f"checked: {'0 <= ' if check.lower else ''}{value}{f' < {size}' if check.upper else ''}"


def _views(views: Sequence[View]) -> Iterator[str]:
    """Buffers that are read alike share a line."""
    alike: dict[str, list[str]] = {}
    for view in views:
        alike.setdefault(_view(view), []).append(view.buffer)
    for text, buffers in alike.items():
        yield f"{', '.join(buffers)}: {text}"


def _view(view: View) -> str:
    if view.size is None:
        return "layout not printed in the node, subscripts count elements of memory"
    text = f"{short_dtype(view.dtype or '?')}{dims_text(view.size)}"
    if view.shape is None:
        return f"{text}, subscripts count elements of memory"
    if view.shape == view.size and view.order is None:
        return text
    order = f" (dimensions {', '.join(map(str, view.order))})" if view.order else ""
    return f"{text}, seen as {dims_text(view.shape)}{order}"


def _wrapped(text: str, width: int, hang: str) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        if lines[-1].strip() and len(lines[-1]) + 1 + len(word) > width:
            lines.append(f"{hang}{word}")
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return lines
