"""See which way torch goes through a function of its own: the tests that it makes, and what it compares.

    paths = watch(scheduler.Scheduler.can_fuse)          # its code is another from now on, until paths.undo()
    with calls() as made:
        scheduler.Scheduler.can_fuse(...)
    made[0].deciding()     # [SeenTest("numel1 == numel2", 871, False, (64, 128))]: why it returned there

The code object of the function is replaced by one of the same source in which each test reports its operands
and truth (`sites.py`). So its closure, defaults, decorators, `super()`, and the names by which other modules
know it are as they were. Each call has its own path, those within it, too. Values are as they were when they
were compared: what cannot change is taken as it is, of the rest a short text is made at once.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import itertools
import linecache
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from types import CodeType, FunctionType, TracebackType
from typing import Any, TypeAlias

from msgspec import Struct

from inductor_probe.capture.branches.sites import Branch, Condition, Exit, Sites, constant, rewrite

_ENTER = "__inductor_probe_branches__"
"""The global of a module under which its rewritten functions find `_enter`."""
_MOST_SHOWN, _LONGEST = 4, 60
Plain: TypeAlias = "bool | int | float | str"


class CannotWatchError(Exception):
    """The source of a function is not at hand, or is not that of its code."""


class SeenTest(Struct, frozen=True):
    """A test that a call made: text, line and truth, and what was compared, passed or else tested."""

    text: str
    line: int
    truth: bool
    values: tuple[Plain, ...]


class CallPath:
    """One call of a watched function.

    Attributes:
        sites: what the function reports. exit: where it returned; None while it runs, and where it raised.
        inner: calls of watched functions within it, in order.
        variables: when it returned, of functions whose variables `watch` asks for.
    """

    __slots__ = ("_around", "_count", "_named", "_seen", "exit", "inner", "sites", "variables")

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.exit: Exit | None = None
        self.inner: list[CallPath] = []
        self.variables: dict[str, Any] = {}
        self._around: CallPath | None = None
        self._seen: dict[int, tuple[int, bool | None, tuple[Any, ...]]] = {}
        self._named: dict[str, str] = {}
        self._count = 0

    def __enter__(self) -> CallPath:
        opened = _STACK.paths
        self._around = opened[-1] if opened else None
        if not self.sites.is_generator:  # which runs now and then: calls meanwhile are not within it
            opened.append(self)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self.sites.is_generator:
            _STACK.paths.pop()
        if self._around is not None:
            self._around.inner += self.inner if self.sites is _CALLS else [self]

    # What rewritten code calls.

    def compare(self, number: int, left: Any, right: Any) -> Any:
        """Compare as torch does, and report it."""
        site = self.sites.leaves[number]
        result = site.compare(left, right)
        return self._reported(number, site, result, (_now(left), _now(right)))

    def call(self, number: int, function: Any, *arguments: Any) -> Any:
        """Call a function whose result is tested or returned, and report its arguments."""
        values = tuple(map(_now, arguments))
        return self._reported(number, self.sites.leaves[number], function(*arguments), values)

    def call_of(self, number: int, function: Any, inner: Any, *arguments: Any) -> Any:
        """Do so with what another function returns, and report the arguments of that."""
        values = tuple(map(_now, arguments))
        return self._reported(number, self.sites.leaves[number], function(inner(*arguments)), values)

    def operator(self, number: int) -> Any:
        """Return what compares in a comparison."""
        return self.sites.leaves[number].compare

    def test(self, number: int, value: Any) -> Any:
        """Report what is tested."""
        return self._reported(number, self.sites.leaves[number], value, (_now(value),))

    def _reported(self, number: int, site: Condition, value: Any, values: tuple[Any, ...]) -> Any:
        # The truth of a symbolic value may be a guard: it is asked for once, where torch asks for it.
        if value is True or value is False:
            truth, result = value, value
        elif site.is_value:
            truth, result = None, value
        else:
            truth = result = bool(value)
        self._count += 1
        self._seen[number] = self._count, truth, values
        return result

    def name(self, number: int, value: Any) -> Any:
        """Report which attribute is assigned to a name."""
        name, text = self.sites.named[number]
        self._named[name] = text
        return value

    def leave(self, number: int, value: Any) -> Any:
        """Report the return that is taken."""
        self.exit = self.sites.exits[number]
        if self.sites.keeps_locals:
            self.variables = {**sys._getframe(1).f_locals}
        return value

    # What a recorder asks.

    def deciding(self) -> list[SeenTest]:
        """Return the tests because of which it returned where it did, those of the innermost branch.

        Of `a and b` that held they are both, of one that did not the one that did not hold. Behind all tests
        whose branches return they are none, or that by which the returned value was assigned.
        """
        if self.exit is None:
            return []
        if self.exit.value is not None and (of_value := self._blamed(self.exit.value)):
            return of_value
        assigned = self.sites.assigned.get(self.exit.name, ())
        if self.exit.within and not any(map(self._when, assigned)):
            return self._blamed(self.exit.within[0][0])
        last = max((*self.sites.assigning, *assigned), key=self._when, default=None)
        return self._blamed(last) if last is not None and self._when(last) else []

    def at(self, line: int) -> CallPath:
        """Return the path so far of a call that has come to a line, as if it returned there."""
        path = CallPath(self.sites)
        path.exit, path.inner, path._seen = self.sites.at(line), self.inner, self._seen
        return path

    def reasons(self) -> list[list[SeenTest]]:
        """Return the tests because of which it returned where it did, and those of each branch around it."""
        return [self.deciding(), *(self._blamed(condition) for condition, _ in self.branches()[1:])]

    def branches(self) -> list[Branch]:
        """Return the branches that it returned in, the innermost first."""
        return [*self.exit.within] if self.exit is not None else []

    def tested(self, text: str) -> SeenTest | None:
        """Return the last test whose text is this, where `?` is whatever is compared: `op_num < ?`."""
        return next((one for one in self.all() if matches(one.text, text)), None)

    def held(self, text: str) -> bool | None:
        """Return what came out of that test; None where it was not made."""
        seen = self.tested(text)
        return None if seen is None else seen.truth

    def source(self, name: str) -> str:
        """Return the attribute that a tested name was assigned last: `config.cpp.threads`; else the name."""
        return self._named.get(name, name)

    def literal(self, text: str) -> int | float | None:
        """Return the number that an expression of constants is, or a name to which such a one is assigned."""
        try:
            return constant(ast.parse(text, mode="eval").body, self.sites.constants)
        except SyntaxError:
            return None

    def all(self) -> list[SeenTest]:
        """Return the last result of each test that was made, the latest first."""
        made = sorted(self._seen.items(), key=lambda item: item[1][0], reverse=True)
        return [one for number, _ in made if (one := self._leaf(number)) is not None]

    def last(self) -> SeenTest | None:
        """Return the result of the test that was made last, the first of `all`."""
        results = ((count, number) for number, (count, truth, _) in self._seen.items() if truth is not None)
        _, number = max(results, default=(0, -1))
        return self._leaf(number) if number >= 0 else None

    def _when(self, condition: Condition) -> int:
        """Return when a condition was tested last, from 1; 0: never."""
        own = self._seen[condition.number][0] if condition.number in self._seen else 0
        return max([own, *map(self._when, condition.parts)])

    def _leaf(self, number: int) -> SeenTest | None:
        site, (_, truth, values) = self.sites.leaves[number], self._seen[number]
        if truth is None:
            return None
        return SeenTest(site.text, site.line, truth, tuple(map(as_plain, values)))

    def _truth(self, condition: Condition) -> bool | None:
        """Return the truth of a condition when it was evaluated last; None: it is not known, or was not."""
        if condition.number >= 0:
            return self._seen[condition.number][1] if condition.number in self._seen else None
        if condition.form == "not":
            inner = self._truth(condition.parts[0])
            return None if inner is None else not inner
        ends = condition.form == "or"
        truths = itertools.takewhile(lambda truth: truth is not None, map(self._truth, condition.parts))
        truth = None
        for truth in truths:
            if truth is ends:
                break
        return truth

    def _blamed(self, condition: Condition) -> list[SeenTest]:
        """Return the leaves that made a condition what it was.

        What was evaluated of it last was evaluated together: of `a and b` always `a`, `b` where that held.
        """
        if condition.form in ("any", "all"):
            truth = self._truth(condition)
            is_of_element = truth is (condition.form == "any")
            return self._blamed(condition.parts[0]) if is_of_element else self._of_leaf(condition)
        if condition.form == "leaf":
            return self._of_leaf(condition)
        if condition.form == "not":
            return self._blamed(condition.parts[0])
        ends = condition.form == "or"
        evaluated: list[Condition] = []
        for part in condition.parts:
            if (truth := self._truth(part)) is None:
                break
            if truth is ends:
                return self._blamed(part)
            evaluated.append(part)
        return [leaf for part in evaluated for leaf in self._blamed(part)]

    def _of_leaf(self, condition: Condition) -> list[SeenTest]:
        assigned = self.sites.assigned.get(condition.name, ())
        made = max(assigned, key=self._when, default=None)
        if made is not None and self._when(made) and (blamed := self._blamed(made)):
            return blamed
        leaf = self._leaf(condition.number) if condition.number in self._seen else None
        return [leaf] if leaf is not None else []


def matches(text: str, pattern: str) -> bool:
    """Whether a test has a text in which each `?` of the pattern is any expression."""
    return holes(text, pattern) is not None


def holes(text: str, pattern: str) -> tuple[str, ...] | None:
    """Return what stands in a text for each `?` of a pattern: `("300",)` of `n * 300 < m` and `n * ? < m`.

    None where the text is another one.
    """
    first, *rest = pattern.split("?")
    if not text.startswith(first):
        return None
    at, there = len(first), list[str]()
    for piece in rest:
        end = text.find(piece, at + 1) if piece else len(text)
        if end <= at:
            return None
        there.append(text[at:end])
        at = end + len(piece)
    return tuple(there) if at == len(text) else None


class Watched:
    """A function whose calls have paths; `undo` gives it its code back."""

    def __init__(self, function: FunctionType, sites: Sequence[Sites], code: CodeType) -> None:
        self.sites = sites[0]
        self._function, self._before = function, function.__code__
        function.__code__ = code

    def undo(self) -> None:
        """Let the function be as it was."""
        self._function.__code__ = self._before


def watch(function: Any, *nested: str) -> Watched:
    """Let a Python function report which way it goes.

    Args:
        function: of a module whose source is at hand; what decorates it is looked through.
        nested: names of functions that are defined in it, which report as well, as calls of their own, and
            keep their variables. Its own name: it keeps its variables, too.

    Raises:
        CannotWatchError: there is no source, or it is not that of the code that would run.
    """
    plain = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(plain, FunctionType):
        raise CannotWatchError(f"{function!r} is not a Python function")
    sites, rewritten = _rewritten(plain.__code__, plain.__code__.co_filename, plain.__qualname__, nested)
    plain.__globals__[_ENTER] = _enter
    return Watched(plain, sites, rewritten)


@functools.cache
def _rewritten(
    code: CodeType, file: str, qualified_name: str, nested: Sequence[str]
) -> tuple[Sequence[Sites], CodeType]:
    """Return what a function's new code reports, the outermost first, and that code: made once for all dumps.

    Args:
        file: of the code, which its equality leaves out.
    """
    try:
        lines, first = _lines(code)
        # Below a line that makes any indentation right: to remove it would change strings of several lines.
        tree = ast.parse("if 1:\n" + "".join(lines) if lines[0][:1].isspace() else "\n" + "".join(lines))
    except (OSError, SyntaxError, TypeError) as error:
        raise CannotWatchError(f"the source of {qualified_name} cannot be read: {error}") from error
    ast.increment_lineno(tree, first - 2)
    block: Any = tree.body[0]
    defined = block.body[0] if isinstance(block, ast.If) else block
    if not isinstance(defined, ast.FunctionDef) or defined.name != code.co_name:
        raise CannotWatchError(f"the source of {qualified_name} is no `def`")
    within = (one for one in ast.walk(defined) if isinstance(one, ast.FunctionDef) and one is not defined)
    inner = [one for one in within if one.name in nested]
    made = []
    for one in (*inner, defined):  # those inside first: the outer one is rewritten around them
        name = code.co_name if one is defined else f"{code.co_name}.{one.name}"
        qualified = f"{qualified_name.removesuffix(code.co_name)}{name}"
        is_generator = one is defined and bool(code.co_flags & inspect.CO_GENERATOR)
        sites = Sites(file, qualified, is_generator, one.name in nested)
        made.append(_registered(sites, one))
    return made[::-1], _compiled(defined, code, qualified_name)


class WatchedCopy:
    """A watched copy of a Python function, which stays as it is: for what is asked too often to watch.

    Raises:
        CannotWatchError: as `watch`.
    """

    def __init__(self, function: Any) -> None:
        plain = inspect.unwrap(getattr(function, "__func__", function))
        if not isinstance(plain, FunctionType):
            raise CannotWatchError(f"{function!r} is not a Python function")
        self.ask = FunctionType(
            plain.__code__, plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__
        )
        self.ask.__kwdefaults__, self.ask.__qualname__ = plain.__kwdefaults__, plain.__qualname__
        self.sites = watch(self.ask).sites

    def limit(self, pattern: str) -> Any:
        """Return what stands in a test for the last `?` of a pattern: a number, or the value of a setting.

        None where no test has this text, or something else stands there.
        """
        texts = next((one for leaf in self.sites.leaves if (one := holes(leaf.text, pattern))), ("",))
        try:
            node = ast.parse(texts[-1], mode="eval").body
        except SyntaxError:
            return None
        names = ast.unparse(node).split(".")
        value = self.ask.__globals__.get(names[0])
        if isinstance(node, ast.Attribute) and value is not None:
            return functools.reduce(lambda owner, name: getattr(owner, name, None), names[1:], value)
        return constant(node, self.sites.constants)


def _lines(code: CodeType) -> tuple[list[str], int]:
    """Return the lines of a function, and the number of its first: `inspect` takes ten times as long.

    Its code has all of its lines but for statements behind the last one that does something.
    """
    if sys.version_info < (3, 11):
        return inspect.getsourcelines(code)
    lines = linecache.getlines(code.co_filename)
    ends = [end for one in (code, *_codes(code)) for _, end, _, _ in one.co_positions() if end is not None]
    if not lines or not ends or code.co_filename.startswith("<"):
        return inspect.getsourcelines(code)
    return lines[code.co_firstlineno - 1 : max(ends)], code.co_firstlineno


_ALL: list[Sites] = []
"""What rewritten functions report, by the number that they know it by."""


def _registered(sites: Sites, function: ast.FunctionDef) -> Sites:
    enter = ast.Call(ast.Name(_ENTER, ast.Load()), [ast.Constant(len(_ALL))], [])
    rewrite(function, sites, ast.copy_location(enter, function.body[0]))
    _ALL.append(sites)
    return sites


def _enter(number: int) -> CallPath:
    return CallPath(_ALL[number])


def _compiled(defined: ast.FunctionDef, code: CodeType, qualified_name: str) -> CodeType:
    """Return the code of a definition as it would be where the function stands.

    Names that it has of functions around it are arguments of one. A method is within a class of the same
    name, since Python changes names that begin with two underscores there. Any other function is within one
    whose name is an underscore, where it does not, and where the function's own name is the module's.
    """
    *around, _ = qualified_name.split(".")
    names = ", ".join(name for name in code.co_freevars if name != "__class__")
    owner = around[-1] if around and around[-1] != "<locals>" else "_"
    known = "pass" if owner in code.co_freevars else f"global {owner}"
    module = ast.parse(f"def around({names}):\n {known}\n class {owner}:\n  pass")
    shell: Any = module.body[0]
    shell.body[1].body = [defined]
    flags = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
    compiled = compile(module, code.co_filename, "exec", flags=code.co_flags & flags, dont_inherit=True)
    begins = (code.co_name, code.co_firstlineno)
    made = next((one for one in _codes(compiled) if (one.co_name, one.co_firstlineno) == begins), None)
    if made is None or _face(made) != _face(code):
        raise CannotWatchError(f"the source of {qualified_name} is not that of its code")
    # From Python 3.11 code has the qualified name, which tracebacks show.
    named = {"co_qualname": qualified_name} if sys.version_info >= (3, 11) else {}
    replace: Any = made.replace
    return replace(**named)  # type: ignore[no-any-return]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for inside in code.co_consts:
        if isinstance(inside, CodeType):
            yield inside
            yield from _codes(inside)


def _face(code: CodeType) -> tuple[Any, ...]:
    """Return what a function object relies on: its arguments, and its names of functions around it."""
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    count += bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[:count], code.co_posonlyargcount, code.co_argcount, code.co_freevars


class _Stack(threading.local):
    """The calls that are being made by a thread, the innermost last."""

    def __init__(self) -> None:
        self.paths: list[CallPath] = []


_STACK = _Stack()
_CALLS = Sites("", "")


@contextmanager
def calls() -> Iterator[list[CallPath]]:
    """Yield a list that has, behind the block, the calls of watched functions that the block made itself."""
    with CallPath(_CALLS) as around:
        yield around.inner


def running(function: str) -> CallPath | None:
    """Return the innermost call of a function that has not returned yet, in this thread."""
    return next((path for path in reversed(_STACK.paths) if path.sites.function == function), None)


_FIXED_OF_TORCH = ("torch.dtype", "torch.device", "torch.memory_format", "torch.layout")
_FIXED: dict[type, bool] = {}
"""Of types that were met: whether their values cannot change."""


def _now(value: Any) -> Any:
    """Return a value that is as it is now, whatever becomes of it later: the same where it cannot change."""
    kind = value.__class__
    fixed = _FIXED.get(kind)
    if fixed is None:
        fixed = _FIXED[kind] = _is_fixed(kind)
    return value if fixed else _shown(value)


def _is_fixed(kind: type) -> bool:
    if kind in (bool, int, float, str, type(None)) or issubclass(kind, (type, Enum, FunctionType)):
        return True
    name = f"{kind.__module__}.{kind.__name__}"
    return name.startswith("sympy.") or name in _FIXED_OF_TORCH


def _shown(value: Any) -> str:
    """Return a short text of a value: nothing of torch is called for it."""
    kind = value.__class__.__name__
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        if len(value) > _MOST_SHOWN:
            return f"{kind} of {len(value)}"
        inner = ", ".join(str(as_plain(_now(one))) for one in value)
        around = {list: "[]", tuple: "()"}.get(value.__class__, "{}")
        return f"{around[0]}{inner}{around[1]}"[:_LONGEST]
    name = getattr(value, "__dict__", {}).get("name")
    return f"{kind} {name}" if isinstance(name, str) else kind


def as_plain(value: Any) -> Plain:
    """Return a value that was compared as a number or a text."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, type | FunctionType):
        return value.__qualname__
    if getattr(value, "is_Integer", False):
        return int(value)
    text = str(value).removeprefix("torch.")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
