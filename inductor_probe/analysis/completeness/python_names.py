"""Python text whose names are all defined: the wrapper, Triton kernels, the runnable program.

Statements are followed in the order in which they would run, with `del`, so that the use of a name whose
definition is missing is noticed: `buf1 = empty_strided_cpu(...)` was dropped, `cpp_fused_0(arg0_1, buf1)` is
there. The body of a function is followed after the text around it, when all names there are bound, as if it
were called. Nothing is run.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from inductor_probe.analysis.completeness import once_per_text
from inductor_probe.reader.python_text import LARGEST_EXPRESSION, parse_expression, parse_readable_part

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__compile_source__"}
_Body: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_BRANCHES = (ast.If, ast.While, ast.For, ast.Try)
_SIMPLE = (ast.Expr, ast.Assign, ast.Delete, ast.Return, ast.Import, ast.ImportFrom, ast.AnnAssign)
"""Statements whose names are looked up by their text, if they stand in a line."""
_WITH_NAMES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)
_Uses: TypeAlias = "tuple[tuple[str, type[ast.expr_context]], ...]"
"""The names of a statement as they come, and what becomes of each."""


@dataclass(slots=True)
class _Scope:
    """The names of a module, class, function or comprehension: True while bound, False behind a `del`."""

    outer: _Scope | None = None
    is_class: bool = False
    names: dict[str, bool] = field(default_factory=dict)

    def knows(self, name: str) -> bool:
        """Whether `name` is bound here, or ever was in a scope around this one that is not a class."""
        if self.names.get(name):
            return True
        scope = self.outer
        while scope is not None:
            if name in scope.names and not scope.is_class:
                return True
            scope = scope.outer
        return name in _BUILTINS

    def follow(self, uses: _Uses, in_branch: bool) -> Iterator[str]:
        """Bind and unbind the names of a statement, and yield those used that are not bound."""
        names = self.names
        for name, context in uses:
            if context is ast.Store:
                names[name] = True
                continue
            if not (names.get(name) or (context is ast.Load and self.knows(name))):
                yield name
            if context is ast.Del:
                names[name] = in_branch and names.get(name, False)


def undefined_names(
    tree: ast.Module,
    *,
    known: Set[str] = frozenset(),
    ignored: Set[str] = frozenset(),
    lines: Sequence[str] = (),
) -> Iterator[tuple[int, str]]:
    """Yield each use of a name that is not defined at that point.

    Args:
        tree: the text, parsed.
        known: names that are taken as defined.
        ignored: names of functions whose bodies are not followed.
        lines: of the text, where that is all ASCII: what is the same in each file is then gone through once.
    """
    undefined: list[tuple[int, str]] = []
    bodies: list[tuple[_Body, _Scope]] = [(tree, module := _Scope())]
    for body, outer in bodies:  # grows while it is walked
        scope = outer if body is tree else _Scope(outer)
        inner: list[ast.AST] = [body.body] if isinstance(body, ast.Lambda) else [*body.body]
        if not isinstance(body, ast.Module):
            arguments = body.args
            parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            extra = (argument for argument in (arguments.vararg, arguments.kwarg) if argument)
            scope.names.update((argument.arg, True) for argument in (*parameters, *extra))
            if not isinstance(body, ast.Lambda) and body.name in ignored:
                continue
        undefined.extend(_walk(inner, scope, bodies, lines))
    for line, name in undefined:
        # `from torch.nn import *` binds "*", and may bind any name of a class
        if name not in known and not ("*" in module.names and name[:1].isupper()):
            yield line, f"{name} is used but not defined"


def _walk(  # noqa: PLR0912 - one arm a kind
    nodes: list[ast.AST], scope: _Scope, bodies: list[tuple[_Body, _Scope]], lines: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """Follow nodes in order and yield the names that are not bound; put functions into `bodies`.

    The stack holds nodes with their scope and whether they may not run at all: nothing is unbound there. A
    text on it is a name that is bound when its turn comes.
    """
    stack: list[tuple[ast.AST | str, _Scope, bool]] = [(node, scope, False) for node in reversed(nodes)]
    while stack:
        node, scope, in_branch = stack.pop()
        parts: list[tuple[ast.AST | str, _Scope]] = []
        if isinstance(node, _SIMPLE) and (uses := _uses(node, lines)) is not None:
            yield from ((node.lineno, name) for name in scope.follow(uses, in_branch))
            continue
        match node:
            case str(name) | ast.Name(id=name, ctx=ast.Store()):
                scope.names[name] = True
            case ast.Name(id=name, ctx=ast.Load()):
                if not scope.knows(name):
                    yield node.lineno, name
            case ast.Name(id=name):
                if not scope.names.get(name):
                    yield node.lineno, name
                scope.names[name] = in_branch and scope.names.get(name, False)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                bodies.append((node, scope))
                parts = _within(scope, *node.decorator_list, *_defaults(node.args), node.name)
            case ast.Lambda():
                bodies.append((node, scope))
                parts = _within(scope, *_defaults(node.args))
            case ast.ClassDef():
                parts = _within(scope, *node.decorator_list, *node.bases, node.name)
                parts += _within(_Scope(scope, is_class=True), *node.body)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                inside = _Scope(scope)
                for number, part in enumerate(node.generators):
                    parts += _within(inside if number else scope, part.iter)
                    parts += _within(inside, part.target, *part.ifs)
                values = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
                parts += _within(inside, *values)
            case _:
                in_branch = in_branch or isinstance(node, _BRANCHES)
                parts = _within(scope, *_in_order(node))
        stack.extend((part, inner, in_branch) for part, inner in reversed(parts))


_known_uses: dict[str, _Uses | None] = {}
_MOST_USES = 16_384


def _uses(node: ast.stmt, lines: Sequence[str]) -> _Uses | None:
    """Return the names of a simple statement in order; None where one has a scope or value of its own."""
    if node.lineno != node.end_lineno or not lines:
        return _uses_in(node)
    text = lines[node.lineno - 1][node.col_offset : node.end_col_offset]
    if text not in _known_uses:
        if len(_known_uses) >= _MOST_USES:
            _known_uses.clear()
        _known_uses[text] = _uses_in(node)
    return _known_uses[text]


def _uses_in(node: ast.AST) -> _Uses | None:
    uses: list[tuple[str, type[ast.expr_context]]] = []
    stack: list[ast.AST | str] = [node]
    while stack:
        part = stack.pop()
        kind = type(part)
        if isinstance(part, ast.Name):
            uses.append((part.id, type(part.ctx)))
        elif isinstance(part, str):
            uses.append((part, ast.Store))
        elif isinstance(part, ast.Attribute):
            stack.append(part.value)
        elif isinstance(part, ast.Call):
            stack.extend(reversed([part.func, *part.args, *(word.value for word in part.keywords)]))
        elif isinstance(part, ast.Tuple | ast.List):
            stack.extend(reversed(part.elts))
        elif kind in _WITH_NAMES:
            return None
        elif kind is not ast.Constant:
            stack.extend(reversed(_in_order(part)))
    return tuple(uses)


def _within(scope: _Scope, *parts: ast.AST | str) -> list[tuple[ast.AST | str, _Scope]]:
    return [(part, scope) for part in parts]


def _in_order(node: ast.AST) -> list[ast.AST | str]:
    """Return the parts of a node in the order in which they run, and the names that it binds."""
    match node:
        case ast.Import() | ast.ImportFrom():
            return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        case ast.Global() | ast.Nonlocal():
            return [*node.names]
        case ast.ExceptHandler():
            return [*([node.name] if node.name else []), *node.body]
        case ast.Assign():
            return [node.value, *node.targets]
        case ast.AnnAssign():
            return [part for part in (node.annotation, node.value, node.target) if part]
        case ast.For():
            return [node.iter, node.target, *node.body, *node.orelse]
    return list(ast.iter_child_nodes(node))


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [default for default in (*arguments.defaults, *arguments.kw_defaults) if default is not None]


def _parsed(text: str) -> ast.Module:
    """Parse the longest of expressions: what a network with thousands of inputs returns."""
    parsed = parse_readable_part(text, Path())
    if parsed.problems:
        raise ValueError(parsed.problems[0].message)
    return parsed.tree


@once_per_text
def expression_names(text: str) -> frozenset[str] | None:
    """Return the names that an expression uses, None when it is not an expression of Python."""
    try:
        tree = parse_expression(text) if len(text) <= LARGEST_EXPRESSION else _parsed(text)
    except ValueError:
        return None
    uses = _uses_in(tree)
    if uses is not None:
        return frozenset(name for name, _ in uses)
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
