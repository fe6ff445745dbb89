"""A function's source with its tests reported: which there are, and the code that reports them.

    if n > 0 and strided / n >= limit:      if path.compare(0, n, 0) and path.compare(1, strided / n, limit):
        return []                    ->         return path.leave(0, [])
    return best                             return path.leave(1, best)

Operands are evaluated once, in torch's order, and none that torch would not have evaluated. Only tests that
bear on what the function does are reported: those whose branches return, raise, leave a loop, assign a name
that is returned, or add to its list, those in one of whose branches a function is called for what it does,
and those whose value is returned, or assigned to a name that is tested or returned. All else, as the tests of
a loop that counts, runs as it is.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

PATH = "__probe_path__"
"""The variable of a rewritten function that holds its path."""
_OPERATORS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow,
}  # fmt: skip
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_ADDS = ("append", "extend")


class Condition(Struct, frozen=True):
    """An expression that is tested.

    Attributes:
        form: `leaf` reports its truth by its number; a quantifier (`any`, `all`) does, too, and has one part:
            the test of an element. The others are made of parts, which report where they are evaluated.
        compare: of a comparison (`is_comparison`), whose operands are reported.
        is_call: of a call whose arguments have no names: they are reported. is_nested: so are those of its
            one argument, which is such a call, or a comparison: of `known(Le(size, 512))` both sizes.
        is_value: its value is used, not its truth alone: it stays as it is.
        name: of a leaf that is a variable.
    """

    form: Literal["leaf", "not", "and", "or", "any", "all"]
    text: str
    line: int
    number: int = -1
    parts: tuple[Condition, ...] = ()
    compare: Callable[[Any, Any], Any] = operator.is_
    is_comparison: bool = False
    is_call: bool = False
    is_nested: bool = False
    is_value: bool = False
    name: str = ""


Branch: TypeAlias = tuple[Condition, bool]
"""A condition, and which of its branches."""


class Exit(Struct, frozen=True):
    """A place where a function returns.

    Attributes:
        within: the branches that it stands in, innermost first.
        value, name: the condition or the variable that it returns.
    """

    line: int
    within: tuple[Branch, ...]
    value: Condition | None = None
    name: str = ""


@dataclass
class Sites:
    """What a rewritten function reports.

    Attributes:
        is_generator: its calls go on while others are made.
        keeps_locals: what its variables are when it returns is seen.
        leaves: conditions by their number. exits: by theirs.
        blocks: first and last line of each block within a branch, with its branches, the innermost first.
        assigning: conditions in whose branches a name is assigned that is returned, or its list added to.
        assigned: the conditions whose values are assigned to a name, by the name.
        named: attributes that are assigned to a name which is tested, with their text.
        constants: the numbers that are assigned to a name.
    """

    file: str
    function: str
    is_generator: bool = False
    keeps_locals: bool = False
    leaves: list[Condition] = field(default_factory=list)
    exits: list[Exit] = field(default_factory=list)
    blocks: list[tuple[int, int, tuple[Branch, ...]]] = field(default_factory=list)
    assigning: list[Condition] = field(default_factory=list)
    assigned: dict[str, list[Condition]] = field(default_factory=dict)
    named: list[tuple[str, str]] = field(default_factory=list)

    def at(self, line: int) -> Exit:
        """Return a line as if the function returned there: the block that holds it and is the shortest."""
        around = [(last - first, within) for first, last, within in self.blocks if first <= line <= last]
        return Exit(line, min(around, key=lambda block: block[0])[1] if around else ())

    constants: dict[str, int | float] = field(default_factory=dict)


def rewrite(function: ast.FunctionDef, sites: Sites, enter: ast.expr) -> None:
    """Let the body of a function report; `enter` is the context manager that makes its path."""
    body = function.body
    docstring = [body.pop(0)] if ast.get_docstring(function, clean=False) is not None else []
    _Rewriter(sites, body).block(body, ())
    entered = ast.With([ast.withitem(enter, ast.Name(PATH, ast.Store()))], body or [ast.Pass()])
    function.body = [*docstring, ast.copy_location(entered, (docstring + body or [function])[0])]
    ast.fix_missing_locations(function)


class _Rewriter:
    def __init__(self, sites: Sites, body: Sequence[ast.stmt]) -> None:
        self._sites = sites
        inside = [node for statement in body for node in _own(statement)]
        self._returned = _names(node.value for node in inside if isinstance(node, ast.Return))
        self._tested = _names(
            node.test for node in inside if isinstance(node, ast.If | ast.While | ast.IfExp)
        )

    def block(self, statements: Sequence[ast.stmt], within: tuple[Branch, ...]) -> None:
        """Rewrite the statements of a block, which stands in these branches."""
        if within and statements:
            first, last = statements[0], statements[-1]
            self._sites.blocks.append((first.lineno, last.end_lineno or last.lineno, within))
        for statement in statements:
            self._statement(statement, within)

    def _statement(self, node: ast.stmt, within: tuple[Branch, ...]) -> None:
        if isinstance(node, _SCOPES):
            return
        if isinstance(node, ast.If | ast.While) and (bearing := self._bearing(node)):
            node.test, condition = self._condition(node.test)
            if bearing == "assigns":
                self._sites.assigning.append(condition)
            self.block(node.body, ((condition, True), *within))
            self.block(node.orelse, ((condition, False), *within))
            return
        if isinstance(node, ast.Return):
            value = node.value or ast.copy_location(ast.Constant(None), node)
            node.value = self._returned_value(value, within)
        elif isinstance(node, ast.Assign):
            self._assignment(node, node.targets)
        elif isinstance(node, ast.AnnAssign):
            self._assignment(node, [node.target])
        for name in ("body", "orelse", "finalbody"):
            self.block(getattr(node, name, ()), within)
        for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.block(inner.body, within)

    def _bearing(self, node: ast.If | ast.While) -> Literal["", "leaves", "assigns", "calls"]:
        inside = [one for statement in (*node.body, *node.orelse) for one in _own(statement)]
        if any(isinstance(one, _LEAVES) for one in inside):
            return "leaves"
        if self._returned.intersection(map(_changed, inside)):
            return "assigns"
        has_call = isinstance(node, ast.If) and any(map(_is_call, (*node.body, *node.orelse)))
        return "calls" if has_call else ""

    def _returned_value(self, value: ast.expr, within: tuple[Branch, ...]) -> ast.expr:
        if isinstance(value, ast.IfExp):
            value.test, condition = self._condition(value.test)
            value.body = self._returned_value(value.body, ((condition, True), *within))
            value.orelse = self._returned_value(value.orelse, ((condition, False), *within))
            return value
        returned, line = None, value.lineno
        name = value.id if isinstance(value, ast.Name) else ""
        if _is_condition(value) or isinstance(value, ast.Call):
            value, returned = self._condition(value, is_value=True)
        self._sites.exits.append(Exit(line, within, returned, name))
        return _call("leave", len(self._sites.exits) - 1, value)

    def _assignment(self, node: ast.Assign | ast.AnnAssign, targets: Sequence[ast.expr]) -> None:
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        if node.value is not None and (number := constant(node.value, {})) is not None:
            self._sites.constants.update(dict.fromkeys(names, number))
        if node.value is None or not names & (self._returned | self._tested):
            return
        if isinstance(node.value, ast.Attribute):
            name = next(iter(names))
            self._sites.named.append((name, ast.unparse(node.value)))
            node.value = _call("name", len(self._sites.named) - 1, node.value)
        elif isinstance(node.value, ast.IfExp):
            node.value.test, condition = self._condition(node.value.test)
            if names & self._returned:
                self._sites.assigning.append(condition)
        elif _is_condition(node.value):
            node.value, condition = self._condition(node.value, is_value=True)
            for name in names:
                self._sites.assigned.setdefault(name, []).append(condition)

    def _condition(self, node: ast.expr, *, is_value: bool = False) -> tuple[ast.expr, Condition]:
        """Return an expression with its tests reported, and what they are."""
        text, line = ast.unparse(node), node.lineno
        if isinstance(node, ast.BoolOp):
            # Of `a and b` the value may be that of either: where it is used, neither becomes its truth.
            parts = []
            for place, one in enumerate(node.values):
                node.values[place], part = self._condition(one, is_value=is_value)
                parts.append(part)
            return node, Condition(
                "and" if isinstance(node.op, ast.And) else "or", text, line, parts=tuple(parts)
            )
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand, part = self._condition(node.operand)
            return node, Condition("not", text, line, parts=(part,))
        if isinstance(node, ast.Compare):
            return self._comparison(node, is_value=is_value)
        name = node.id if isinstance(node, ast.Name) else ""
        leaf = Condition("leaf", text, line, is_value=is_value, name=name)
        if (quantified := _quantified(node)) is not None:
            quantifier, generator = quantified
            generator.elt, part = self._condition(generator.elt)
            leaf = replace(leaf, form=quantifier, parts=(part,))
        elif isinstance(node, ast.Call) and _is_plain(node):
            inner = node.args[0]
            if len(node.args) == 1 and isinstance(inner, ast.Call) and _is_plain(inner):
                return self._leaf(replace(leaf, is_nested=True), node.func, inner.func, *inner.args)
            if len(node.args) == 1 and isinstance(inner, ast.Compare) and len(inner.ops) == 1:
                leaf = replace(leaf, is_nested=True, compare=_OPERATORS[type(inner.ops[0])])
                compare = _reported("operator", len(self._sites.leaves), inner)
                return self._leaf(leaf, node.func, compare, inner.left, *inner.comparators)
            return self._leaf(replace(leaf, is_call=True), node.func, *node.args)
        return self._leaf(leaf, node)

    def _comparison(self, node: ast.Compare, *, is_value: bool) -> tuple[ast.expr, Condition]:
        """Return `a < b < c` as `a < (t := b) and t < c`, each comparison reported."""
        text = ast.unparse(node)
        made: list[tuple[ast.expr, Condition]] = []
        left = shown = node.left
        for compared, operand in zip(node.ops, node.comparators, strict=True):
            right = following = operand
            if operand is not node.comparators[-1]:
                name = f"__probe_operand_{len(self._sites.leaves)}__"
                right = ast.copy_location(ast.NamedExpr(ast.Name(name, ast.Store()), operand), operand)
                following = ast.copy_location(ast.Name(name, ast.Load()), operand)
            condition = Condition(
                "leaf", ast.unparse(ast.Compare(shown, [compared], [operand])), node.lineno,
                compare=_OPERATORS[type(compared)], is_comparison=True, is_value=is_value,
            )  # fmt: skip
            made.append(self._leaf(condition, left, right))
            left, shown = following, operand
        if len(made) == 1:
            return made[0]
        chain = ast.copy_location(ast.BoolOp(ast.And(), [one for one, _ in made]), node)
        return chain, Condition("and", text, node.lineno, parts=tuple(part for _, part in made))

    def _leaf(self, condition: Condition, *operands: ast.expr) -> tuple[ast.expr, Condition]:
        numbered = replace(condition, number=len(self._sites.leaves))
        self._sites.leaves.append(numbered)
        flags = {
            "compare": condition.is_comparison,
            "call": condition.is_call,
            "call_of": condition.is_nested,
        }
        method = next((name for name, is_set in flags.items() if is_set), "test")
        return _call(method, numbered.number, *operands), numbered


def constant(node: ast.expr, names: Mapping[str, int | float]) -> int | float | None:
    """Return the value of an expression of constants and of these names; None of any other expression."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return names.get(name)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            one, other = constant(left, names), constant(right, names)
            return _ARITHMETIC[type(op)](one, other) if one is not None and other is not None else None
    return None


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, but for the insides of functions and classes."""
    yield node
    if not isinstance(node, _SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _own(child)


def _changed(node: ast.AST) -> str:
    """Return the name that a node assigns, or to whose list it adds; empty for any other node."""
    if isinstance(node, ast.Attribute) and node.attr in _ADDS and isinstance(node.value, ast.Name):
        return node.value.id
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""


def _is_call(statement: ast.stmt) -> bool:
    """Whether a statement calls a function for what that does, not for what it returns."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _names(values: Iterator[ast.expr | None]) -> set[str]:
    inside = (node for value in values if value is not None for node in ast.walk(value))
    return {node.id for node in inside if isinstance(node, ast.Name)}


def _is_condition(node: ast.expr) -> bool:
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return is_not or isinstance(node, ast.BoolOp | ast.Compare) or _quantified(node) is not None


def _is_plain(node: ast.Call) -> bool:
    """Whether a call has arguments, none of which has a name; `super()` is one that looks at its caller."""
    has_starred = any(isinstance(one, ast.Starred) for one in node.args)
    return bool(node.args) and not (node.keywords or has_starred)


def _quantified(node: ast.expr) -> tuple[Literal["any", "all"], ast.GeneratorExp] | None:
    """Return the generator of a call of `any` or `all`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        generator = node.args[0]
        if isinstance(generator, ast.GeneratorExp) and node.func.id in ("any", "all"):
            return "any" if node.func.id == "any" else "all", generator
    return None


def _call(method: str, number: int, *operands: ast.expr) -> ast.expr:
    return _reported(method, number, operands[0], *operands)


def _reported(method: str, number: int, where: ast.expr, *operands: ast.expr) -> ast.expr:
    function = ast.Attribute(ast.Name(PATH, ast.Load()), method, ast.Load())
    return ast.copy_location(ast.Call(function, [ast.Constant(number), *operands], []), where)
