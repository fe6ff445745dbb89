"""Python text whose names are all defined: the wrapper, Triton kernels, the runnable program.

Statements are followed in the order in which they would run, with `del`, so that the use of a name whose
definition is not there is seen: `buf1 = empty_strided_cpu(...)` was dropped, `cpp_fused_0(arg0_1, buf1)`
stands there. A function is followed last, when all names around it are bound, as it would be called. Nothing
is run.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.python_text import parse_readable_part
from inductor_probe.reader.values import shorten

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__compile_source__"}


def undefined_names(
    tree: ast.Module,
    path: Path,
    *,
    first: int = 1,
    known: Set[str] = frozenset(),
    ignored: Set[str] = frozenset(),
) -> Iterator[Problem]:
    """Yield each use of a name that is not defined there.

    Args:
        tree: the text, parsed.
        path: what problems name.
        first: line of `path` that the text begins at.
        known: names that are taken as defined.
        ignored: names of functions whose bodies are not followed.
    """
    walker = _Walker(ignored)
    scope = _Scope()
    walker.statements(tree.body, scope)
    walker.finish()
    for name, line in walker.undefined:
        if name not in known and not (walker.star and name[:1].isupper()):  # `from torch.nn import *`
            row = first + line - 1
            yield Problem(f"{name} is used, but not defined there", Span(path, row, row))


@dataclass(slots=True)
class _Scope:
    """The names of a module, class, function or comprehension; `ever` keeps those that `del` took away."""

    outer: _Scope | None = None
    bound: set[str] = field(default_factory=set)
    ever: set[str] = field(default_factory=set)
    is_class: bool = False

    def bind(self, name: str) -> None:
        self.bound.add(name)
        self.ever.add(name)

    def knows(self, name: str) -> bool:
        """Whether `name` is bound here, or in a scope around this one that is not a class."""
        if name in self.bound:
            return True
        outer = self.outer
        while outer is not None:
            if name in outer.ever and not outer.is_class:
                return True
            outer = outer.outer
        return name in _BUILTINS


@dataclass(slots=True)
class _Walker:
    ignored: Set[str]
    undefined: list[tuple[str, int]] = field(default_factory=list)
    later: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, _Scope]] = field(
        default_factory=list
    )
    star: bool = False

    def finish(self) -> None:
        """Follow the functions, and those in them."""
        for function, outer in self.later:  # which grows meanwhile
            scope = _Scope(outer)
            arguments = function.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                scope.bind(argument.arg)
            for extra in (arguments.vararg, arguments.kwarg):
                if extra is not None:
                    scope.bind(extra.arg)
            if isinstance(function, ast.Lambda):
                self.expression(function.body, scope)
            elif function.name not in self.ignored:
                self.statements(function.body, scope)

    def statements(self, body: Iterable[ast.stmt], scope: _Scope, *, branch: bool = False) -> None:
        """Follow statements in order; in a branch, which may not be taken, nothing is deleted."""
        for statement in body:
            self.statement(statement, scope, branch)

    def statement(self, statement: ast.stmt, scope: _Scope, branch: bool) -> None:  # noqa: PLR0912 - one arm a kind
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.expressions((*statement.decorator_list, *_defaults(statement.args)), scope)
                scope.bind(statement.name)
                self.later.append((statement, scope))
            case ast.ClassDef():
                self.expressions((*statement.decorator_list, *statement.bases), scope)
                scope.bind(statement.name)
                self.statements(statement.body, _Scope(scope, is_class=True))
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    self.star = self.star or alias.name == "*"
                    scope.bind(alias.asname or alias.name.partition(".")[0])
            case ast.Global() | ast.Nonlocal():
                for name in statement.names:
                    scope.bind(name)
            case ast.Delete():
                for target in statement.targets:
                    self.delete(target, scope, branch)
            case ast.If() | ast.While():
                self.expression(statement.test, scope)
                self.statements(statement.body, scope, branch=True)
                self.statements(statement.orelse, scope, branch=True)
            case ast.For():
                self.expression(statement.iter, scope)
                self.expression(statement.target, scope)
                self.statements((*statement.body, *statement.orelse), scope, branch=True)
            case ast.With():
                for item in statement.items:
                    self.expression(item.context_expr, scope)
                    if item.optional_vars is not None:
                        self.expression(item.optional_vars, scope)
                self.statements(statement.body, scope, branch=branch)
            case ast.Try():
                self.statements(statement.body, scope, branch=True)
                for handler in statement.handlers:
                    if handler.name:
                        scope.bind(handler.name)
                    self.statements(handler.body, scope, branch=True)
                self.statements((*statement.orelse, *statement.finalbody), scope, branch=True)
            case ast.Assign(targets=targets, value=value):
                self.expressions((value, *targets), scope)
            case ast.AnnAssign():
                # An annotation of a local is not evaluated; that of a module names what it imports.
                self.expressions([part for part in (statement.annotation, statement.value) if part], scope)
                self.expression(statement.target, scope)
            case _:
                self.expressions(
                    (node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)), scope
                )

    def delete(self, target: ast.expr, scope: _Scope, branch: bool) -> None:
        """`del buf0`: the name has to be there, and is not there any more."""
        if not isinstance(target, ast.Name):
            self.expression(target, scope)
            return
        if target.id not in scope.bound:
            self.undefined.append((target.id, target.lineno))
        if not branch:
            scope.bound.discard(target.id)

    def expressions(self, nodes: Iterable[ast.expr], scope: _Scope) -> None:
        for node in nodes:
            self.expression(node, scope)

    def expression(self, node: ast.expr, scope: _Scope) -> None:
        """Follow the uses and bindings of names; a function or comprehension has a scope of its own."""
        pending: list[ast.AST] = [node]
        while pending:
            current = pending.pop()
            match current:
                case ast.Name(id=name, ctx=ast.Load()):
                    if not scope.knows(name):
                        self.undefined.append((name, current.lineno))
                case ast.Name(id=name):
                    scope.bind(name)
                case ast.Lambda():
                    self.expressions(_defaults(current.args), scope)
                    self.later.append((current, scope))
                case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                    self.comprehension(current, scope)
                case _:
                    pending.extend(reversed(list(ast.iter_child_nodes(current))))

    def comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: _Scope
    ) -> None:
        inner = _Scope(scope)
        for number, generator in enumerate(node.generators):
            self.expression(generator.iter, inner if number else scope)
            self.expression(generator.target, inner)
            self.expressions(generator.ifs, inner)
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        self.expressions(parts, inner)


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]


def expression_names(text: str, span: Span) -> tuple[set[str], Problem | None]:
    """Return the names that an expression uses; a problem when it is not an expression in Python."""
    parsed = parse_readable_part(text, span.path)
    if parsed.problems:
        return set(), Problem(f"not understood: {shorten(text)}", span)
    return {node.id for node in ast.walk(parsed.tree) if isinstance(node, ast.Name)}, None
