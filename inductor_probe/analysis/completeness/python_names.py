"""Python text whose names are all defined: the wrapper, Triton kernels, the runnable program.

Statements are followed in the order in which they would run, with `del`, so that the use of a name whose
definition is missing is noticed: `buf1 = empty_strided_cpu(...)` was dropped, `cpp_fused_0(arg0_1, buf1)` is
there. The body of a function is followed after the text around it, when all names there are bound, as if it
were called. Nothing is run.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from inductor_probe.reader.python_text import parse_readable_part

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__compile_source__"}
_Body: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_BRANCHES = (ast.If, ast.While, ast.For, ast.Try)


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


def undefined_names(
    tree: ast.Module, *, known: Set[str] = frozenset(), ignored: Set[str] = frozenset()
) -> Iterator[tuple[int, str]]:
    """Yield each use of a name that is not defined at that point.

    Args:
        tree: the text, parsed.
        known: names that are taken as defined.
        ignored: names of functions whose bodies are not followed.
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
        undefined.extend(_walk(inner, scope, bodies))
    for line, name in undefined:
        # `from torch.nn import *` binds "*", and may bind any name of a class
        if name not in known and not ("*" in module.names and name[:1].isupper()):
            yield line, f"{name} is used but not defined"


def _walk(
    nodes: list[ast.AST], scope: _Scope, bodies: list[tuple[_Body, _Scope]]
) -> Iterator[tuple[int, str]]:
    """Follow nodes in order and yield the names that are not bound; put functions into `bodies`.

    The stack holds nodes with their scope and whether they may not run at all: nothing is unbound there. A
    text on it is a name that is bound when its turn comes.
    """
    stack: list[tuple[ast.AST | str, _Scope, bool]] = [(node, scope, False) for node in reversed(nodes)]
    while stack:
        node, scope, in_branch = stack.pop()
        parts: list[tuple[ast.AST | str, _Scope]] = []
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


def expression_names(text: str, path: Path = Path()) -> set[str] | None:
    """Return the names that an expression uses, None when it is not an expression of Python."""
    parsed = parse_readable_part(text, path)
    if parsed.problems:
        return None
    return {node.id for node in ast.walk(parsed.tree) if isinstance(node, ast.Name)}
