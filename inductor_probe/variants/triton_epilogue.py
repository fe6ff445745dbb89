"""A Triton template without its epilogue: what is fused behind the product taken out, the store kept.

Inductor picks among templates by timing them bare, and then fuses an epilogue into the winner. Timed with and
without it, a kernel shows what that costs, and whether registers run out.
"""

from __future__ import annotations

import ast

MARKER = "# inductor generates a suffix"
ACCUMULATOR = "acc"


def without_epilogue(source: str) -> str:
    """Return the text of a Triton template whose last store writes the accumulator as it is.

    The parameters stay, so that it is launched with the same arguments. What it computes is not what the
    graph asks for: it is for timing.

    Args:
        source: the text of the kernel, with its decorator.

    Raises:
        ValueError: it is no template of this form, or has no epilogue; says which.
    """
    lines = source.split("\n")
    marks = [at for at, line in enumerate(lines) if line.strip() == MARKER]
    if len(marks) != 1:
        raise ValueError(f"not a template with one suffix: {len(marks)} lines say '{MARKER}'")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"not Python: {error}") from error
    suffix = [
        statement
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for statement in function.body
        if statement.lineno > marks[0] + 1
    ]
    stores = [statement for statement in suffix if _is_store(statement)]
    if len(stores) != 1:
        raise ValueError(
            f"its suffix has {len(stores)} stores at its top level: which is the template's is not told"
        )
    store = stores[0]
    call = store.value  # type: ignore[attr-defined]
    if isinstance(call.args[1], ast.Name) and call.args[1].id == ACCUMULATOR:
        raise ValueError("it has no epilogue: what it stores is the accumulator")
    if not any(isinstance(node, ast.Name) and node.id == ACCUMULATOR for node in ast.walk(tree)):
        raise ValueError(f"it has no accumulator called {ACCUMULATOR}")
    needed = _names(call.args[0]) | {name for part in call.args[2:] for name in _names(part)}
    needed |= {name for keyword in call.keywords for name in _names(keyword.value)}
    kept: list[ast.stmt] = []
    for statement in reversed(suffix[: suffix.index(store)]):
        if _assigned(statement) & needed:
            needed |= _names(statement)
            kept.append(statement)
    kept_lines = [line for statement in reversed(kept) for line in _lines(lines, statement)]
    indent = " " * store.col_offset
    text = [ast.unparse(argument) for argument in call.args]
    text[1] = ACCUMULATOR
    text += [f"{keyword.arg}={ast.unparse(keyword.value)}" for keyword in call.keywords]
    end = max(statement.end_lineno or statement.lineno for statement in suffix)
    stored = f"{indent}tl.store({', '.join(text)})"
    return "\n".join([*lines[: marks[0] + 1], *kept_lines, stored, *lines[end:]])


def _is_store(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id="tl"), attr="store"), args=[_, _, *_])
        ):
            return True
    return False


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _assigned(statement: ast.stmt) -> set[str]:
    return {
        each.id
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def _lines(lines: list[str], statement: ast.stmt) -> list[str]:
    return lines[statement.lineno - 1 : statement.end_lineno]
