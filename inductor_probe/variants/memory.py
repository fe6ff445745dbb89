"""What the wrapper does with one buffer: each statement that names it, and how that follows a new layout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.variants.code import BY_HAND, Code, offset
from inductor_probe.variants.coordinates import Layout
from inductor_probe.variants.definitions import Definition, mentioned

_ALLOCATORS = re.compile(r"empty_strided(?:_(?:cpu|cpu_pinned|cuda|xpu|mtia))?")


@dataclass(frozen=True, slots=True)
class LaunchOf:
    """A launch that is handed the buffer: of which kernel, and at which of its arguments."""

    kernel: str
    at: tuple[int, ...]
    line: int


@dataclass(slots=True)
class Memory:
    """A buffer in the wrapper: its layout, its launches, and edits that give it another layout.

    `edits` are (start, end, new text) in the text of each definition of the wrapper, by name.
    """

    layout: Layout
    launches: list[LaunchOf] = field(default_factory=list)
    edits: dict[str, list[tuple[int, int, str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Edits:
    """Edits of the text of one definition."""

    definition: Definition
    edits: list[tuple[int, int, str]]

    def replace(self, node: ast.expr, by: str) -> None:
        """Put `by` in the place of `node`."""
        lines, first = self.definition.text.split("\n"), self.definition.start
        start = offset(lines, node.lineno - first, node.col_offset)
        end = offset(lines, (node.end_lineno or node.lineno) - first, node.end_col_offset or 0)
        self.edits.append((start, end, by))


class WrapperMemory:
    """Walks the wrapper's statements that name `buffer`, and refuses those that cannot follow."""

    def __init__(self, code: Code, buffer: str) -> None:
        self.code, self.buffer = code, buffer
        self.layout: Layout | None = None

    def layout_of(self) -> Layout:
        """Return how the wrapper lays the buffer out.

        Raises:
            NotFoundError: no statement makes such a buffer.
            ProbeError: the layout is symbolic, or a library function's choice.
        """
        names: list[str] = []
        for definition in self.code.wrapper:
            for _, statement in _simple(definition.node):
                names += _targets(statement)
                if self.buffer in _targets(statement):
                    self._made(statement)
        if self.layout is None:
            buffers = [name for name in names if name.startswith("buf")]
            raise NotFoundError(
                f"the wrapper makes no buffer {self.buffer}", near_names(self.buffer, buffers)
            )
        return self.layout

    def follow(self, stride: tuple[int, ...]) -> Memory:
        """Return what names the buffer, with edits for its new strides.

        Raises:
            NotFoundError, ProbeError: see `layout_of`; or a statement cannot follow; says which and why.
        """
        memory = Memory(self.layout_of())
        new = Layout(memory.layout.size, stride)
        for definition in self.code.wrapper:
            edits = _Edits(definition, memory.edits.setdefault(definition.name, []))
            for after, statement in _simple(definition.node):
                if self.buffer in mentioned(statement) or self.buffer in _targets(statement):
                    self._follow(statement, after, memory, new, edits)
        return memory

    def _made(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.Assign):
            return
        match statement.value:
            case ast.Call(func=ast.Name(name), args=[size, stride, *_]) if _ALLOCATORS.fullmatch(name):
                self._laid(statement, size, stride)
            case ast.Call(func=ast.Name("reinterpret_tensor"), args=[_, size, stride, *_]):
                self._laid(statement, size, stride)
            case ast.Name(other):
                self.layout = WrapperMemory(self.code, other).layout_of()
            case _:
                raise self._refused(statement, "a library function makes it, and chooses its layout")

    def _laid(self, statement: ast.stmt, size: ast.expr, stride: ast.expr) -> None:
        try:
            sizes, strides = ast.literal_eval(size), ast.literal_eval(stride)
        except ValueError as error:
            raise self._refused(statement, "its size or stride is symbolic") from error
        self.layout = Layout(tuple(sizes), tuple(strides))
        if self.layout.overlaps():
            raise self._refused(statement, "its dimensions do not nest, so a flat index does not tell them")

    def _follow(
        self, statement: ast.stmt, after: ast.stmt | None, memory: Memory, new: Layout, edits: _Edits
    ) -> None:
        match statement:
            case ast.Delete():
                return
            case ast.Assign(targets=[ast.Name(name)], value=value) if name == self.buffer:
                self._defined(statement, value, after, new, edits)
            case ast.Assign(value=value):
                self._goes_on(statement, value, after, new, edits)
            case ast.Expr(value=ast.Call() as call):
                self._used(statement, call, memory, new, edits)
            case ast.Return():
                promised = f"callers were promised its stride {memory.layout.stride}"
                raise self._refused(statement, f"{self.buffer} is returned, and {promised}")
            case _:
                raise self._unknown(statement)

    def _defined(
        self, statement: ast.stmt, value: ast.expr, after: ast.stmt | None, new: Layout, edits: _Edits
    ) -> None:
        """`buf1 = empty_strided_cpu(...)`, or `buf1 = buf0; del buf0  # reuse`."""
        match value:
            case ast.Call(args=[of, _, stride, *rest]) if _called(value) == "reinterpret_tensor":
                if not (isinstance(of, ast.Name) and _deletes(after, of.id) and _is_zero(rest)):
                    raise self._refused(statement, f"{self.buffer} is a part or a view of another buffer")
                edits.replace(stride, str(new.stride))
            case ast.Call(args=[_, stride, *_]):
                edits.replace(stride, str(new.stride))
            case ast.Name(other) if _deletes(after, other):
                edits.replace(value, f"reinterpret_tensor({other}, {new.size}, {new.stride}, 0)")
            case _:
                raise self._unknown(statement)

    def _goes_on(
        self, statement: ast.stmt, value: ast.expr, after: ast.stmt | None, new: Layout, edits: _Edits
    ) -> None:
        """`buf3 = buf1; del buf1  # reuse`: another buffer takes the memory over, in the old layout."""
        old = self.layout_of()
        match value:
            case ast.Name():
                edits.replace(value, f"reinterpret_tensor({self.buffer}, {old.size}, {old.stride}, 0)")
            case ast.Call(args=[ast.Name(), *_]) if _called(value) == "reinterpret_tensor" and _deletes(
                after, self.buffer
            ):
                pass
            case ast.Call() if _called(value) == "reinterpret_tensor":
                raise self._refused(statement, f"a view of {self.buffer} goes by its strides")
            case _:
                raise self._unknown(statement)
        if new.extent < old.extent:
            raise self._refused(statement, f"what takes over the memory needs {old.extent} elements")
        for later in _targets(statement):
            self._not_in_place(later, statement)

    def _used(self, statement: ast.stmt, call: ast.Call, memory: Memory, new: Layout, edits: _Edits) -> None:
        match call:
            case ast.Call(func=ast.Name("assert_size_stride"), args=[ast.Name(), _, stride, *_]):
                edits.replace(stride, str(new.stride))
            case _ if (kernel := self._launched(call)) is not None:
                memory.launches.append(self._launch(kernel, call, statement))
            case _ if _called(call).startswith("extern_kernels.") and any(
                keyword.arg == "out" for keyword in call.keywords
            ):
                direct = [*call.args, *(keyword.value for keyword in call.keywords)]
                whole = sum(isinstance(each, ast.Name) and each.id == self.buffer for each in direct)
                if whole != list(mentioned(call)).count(self.buffer):
                    raise self._refused(statement, f"a library function is handed a view of {self.buffer}")
            case _:
                raise self._unknown(statement)

    def _not_in_place(self, later: str, statement: ast.stmt) -> None:
        """A kernel that reads a buffer and writes the one that takes it over needs both in one layout."""
        for definition in self.code.wrapper:
            for _, each in _simple(definition.node):
                if (
                    isinstance(each, ast.Expr)
                    and isinstance(each.value, ast.Call)
                    and later in mentioned(each)
                ):
                    kernel = self._launched(each.value)
                    if kernel is None:
                        return
                    roles = self._roles(kernel)
                    at = [n for n, argument in enumerate(each.value.args) if later in mentioned(argument)]
                    if any(n >= len(roles) or roles[n] != "out" for n in at):
                        raise self._refused(statement, f"{kernel} changes it in place into {later}")
                    return

    def _launched(self, call: ast.Call) -> str | None:
        """Return the pristine name of the kernel that a call launches."""
        name = _called(call).removesuffix(".run")
        return next((each for each, kernel in self.code.kernels.items() if kernel.name == name), None)

    def _roles(self, kernel: str) -> list[str]:
        found = self.code.kernels[kernel]
        return [arg.role for arg in found.backend.read(found.source).args]

    def _launch(self, kernel: str, call: ast.Call, statement: ast.stmt) -> LaunchOf:
        at = []
        for number, argument in enumerate(call.args):
            if self.buffer not in mentioned(argument):
                continue
            whole = isinstance(argument, ast.Name) or (
                isinstance(argument, ast.Call)
                and _called(argument) == "reinterpret_tensor"
                and _is_zero(argument.args[3:])
            )
            if not whole:
                raise self._refused(statement, f"{kernel} is handed a part of {self.buffer}")
            at.append(number)
        roles = self._roles(kernel)
        if any(number >= len(roles) for number in at):
            raise self._refused(statement, f"the parameters of {kernel} are not known")
        if any(roles[number] == "inout" for number in at):
            raise self._refused(
                statement, f"{kernel} changes {self.buffer} in place, where another buffer was before"
            )
        return LaunchOf(kernel, tuple(at), statement.lineno)

    def _unknown(self, statement: ast.stmt) -> ProbeError:
        return self._refused(statement, f"what this does with another layout of {self.buffer} is not known")

    def _refused(self, statement: ast.stmt, why: str) -> ProbeError:
        text = " ".join(ast.unparse(statement).split())
        text = text if len(text) < 100 else f"{text[:97]}..."
        return ProbeError(f"{self.code.path}:{statement.lineno}: {why}: {text}", BY_HAND)


def edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return `text` with pieces of it replaced."""
    for start, end, by in sorted(edits, reverse=True):
        text = text[:start] + by + text[end:]
    return text


def relaunched(definition: Definition, launches: Mapping[int, tuple[str, str]]) -> list[tuple[int, int, str]]:
    """Return edits that rename the kernel launched on each line: `launches` has (old, new) by line."""
    text, found = definition.text.split("\n"), []
    for node in ast.walk(definition.node):
        if isinstance(node, ast.Name) and node.lineno in launches and node.id == launches[node.lineno][0]:
            start = offset(text, node.lineno - definition.start, node.col_offset)
            found.append((start, start + len(node.id), launches[node.lineno][1]))
    return found


def _is_zero(rest: list[ast.expr]) -> bool:
    """The offset of `reinterpret_tensor(buf0, size, stride, 0)`."""
    return [ast.unparse(each) for each in rest] in ([], ["0"])


def _simple(node: ast.AST) -> Iterator[tuple[ast.stmt | None, ast.stmt]]:
    """Yield the statements in `node` that hold no others, each behind the one that follows it."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            for at, statement in enumerate(block):
                if any(getattr(statement, inner, None) for inner in ("body", "orelse")):
                    yield from _simple(statement)
                else:
                    yield block[at + 1] if at + 1 < len(block) else None, statement


def _targets(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _called(call: ast.Call) -> str:
    return ast.unparse(call.func)


def _deletes(statement: ast.stmt | None, name: str) -> bool:
    return isinstance(statement, ast.Delete) and any(
        ast.unparse(target) == name for target in statement.targets
    )
