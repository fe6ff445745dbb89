"""What the wrapper does with one buffer: each statement that names it, and how that follows a new layout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.reader.wrapper import asserted_layouts
from inductor_probe.variants.code import Code, mentioned, span
from inductor_probe.variants.index import Layout

_ALLOCATORS = re.compile(r"empty_strided(?:_(?:cpu|cpu_pinned|cuda|xpu|mtia))?")


class BufferLaunch(Struct, frozen=True):
    """A launch that is handed the buffer: of a kernel (its pristine name), as those of its arguments."""

    kernel: str
    positions: tuple[int, ...]
    line: int


class WrapperBuffer:
    """Walks the wrapper's statements that name `buffer`, and refuses those that cannot follow.

    Attributes:
        layout: as the wrapper lays the buffer out.
        launches: those that `follow` met.
        edits: those that `follow` made: (start, end, new text) in the text of each definition, by name.

    Raises NotFoundError: no statement makes such a buffer. ProbeError: the layout is symbolic, or a
    library function's choice.
    """

    def __init__(self, code: Code, buffer: str) -> None:
        self.code, self.buffer = code, buffer
        self.launches: list[BufferLaunch] = []
        self.edits: dict[str, list[tuple[int, int, str]]] = {}
        names: list[str] = []
        layout = None
        for _, statement in self._statements():
            names += _targets(statement)
            if isinstance(statement, ast.Assign) and buffer in _targets(statement):
                layout = self._layout_made(statement)
        if layout is None:
            hint = near_names(buffer, [name for name in names if name.startswith("buf")])
            raise NotFoundError(f"the wrapper allocates no buffer {buffer}", hint)
        self.layout = layout

    def _layout_made(self, statement: ast.Assign) -> Layout:
        match statement.value:
            case ast.Call(func=ast.Name(name), args=[size, stride, *_]) if _ALLOCATORS.fullmatch(name):
                pass
            case ast.Call(func=ast.Name("reinterpret_tensor"), args=[_, size, stride, *_]):
                pass
            case ast.Name(other):
                return WrapperBuffer(self.code, other).layout
            case _:
                raise self.code.refusal(statement, "a library function makes it, and chooses its layout")
        try:
            layout = Layout(tuple(ast.literal_eval(size)), tuple(ast.literal_eval(stride)))
        except ValueError as error:
            raise self.code.refusal(statement, "its size or stride is symbolic") from error
        if layout.overlaps():
            why = "its strides overlap, so an index does not determine the coordinates"
            raise self.code.refusal(statement, why)
        return layout

    def follow(self, stride: tuple[int, ...]) -> None:
        """Collect the launches that are handed the buffer, and the edits that give it its new strides.

        Raises ProbeError: a statement cannot follow; says which and why.
        """
        new = Layout(self.layout.size, stride)
        for after, statement in self._statements():
            if self.buffer not in (*mentioned(statement), *_targets(statement)):
                continue
            match statement:
                case ast.Delete():
                    pass
                case ast.Assign(targets=[ast.Name(self.buffer)]):
                    self._follow_definition(statement, after, new)
                case ast.Assign():
                    self._follow_reuse(statement, after, new)
                case ast.Expr(value=ast.Call() as call):
                    self._follow_call(statement, call, new)
                case ast.Return():
                    promised = f"callers rely on its stride {self.layout.stride}"
                    raise self.code.refusal(statement, f"{self.buffer} is returned, and {promised}")
                case _:
                    raise self.code.refusal(statement, self._unknown)

    @property
    def _unknown(self) -> str:
        return f"cannot tell what this does with another layout of {self.buffer}"

    def _replace(self, node: ast.expr, text: str) -> None:
        definition = next(other for other in self.code.wrapper if other.start <= node.lineno <= other.last)
        start, end = span(definition.text, node, definition.start)
        self.edits.setdefault(definition.name, []).append((start, end, text))

    def _follow_definition(self, statement: ast.Assign, after: ast.stmt | None, new: Layout) -> None:
        """`buf1 = empty_strided_cpu(...)`, or `buf1 = buf0; del buf0  # reuse`."""
        match statement.value:
            case ast.Call(func=ast.Name("reinterpret_tensor"), args=[of, _, stride, *rest]):
                if not (isinstance(of, ast.Name) and _deletes(after, of.id) and _is_zero(rest)):
                    raise self.code.refusal(statement, f"{self.buffer} is a part or a view of another buffer")
                self._replace(stride, str(new.stride))
            case ast.Call(args=[_, stride, *_]):
                self._replace(stride, str(new.stride))
            case ast.Name(other) as value if _deletes(after, other):
                self._replace(value, f"reinterpret_tensor({other}, {new.size}, {new.stride}, 0)")
            case _:
                raise self.code.refusal(statement, self._unknown)

    def _follow_reuse(self, statement: ast.Assign, after: ast.stmt | None, new: Layout) -> None:
        """`buf3 = buf1; del buf1  # reuse`: another buffer takes the memory over, in the old layout."""
        old = self.layout
        match statement.value:
            case ast.Name() as value:
                self._replace(value, f"reinterpret_tensor({self.buffer}, {old.size}, {old.stride}, 0)")
            case ast.Call(func=ast.Name("reinterpret_tensor"), args=[first, *_]):
                if not (isinstance(first, ast.Name) and _deletes(after, self.buffer)):
                    raise self.code.refusal(statement, f"a view of {self.buffer} uses its strides")
            case _:
                raise self.code.refusal(statement, self._unknown)
        if new.extent < old.extent:
            raise self.code.refusal(statement, f"the buffer that reuses it needs {old.extent} elements")
        # A kernel that reads a buffer and writes the one that takes it over needs both in one layout.
        for later in _targets(statement):
            calls = (
                other.value
                for _, other in self._statements()
                if isinstance(other, ast.Expr)
                and isinstance(other.value, ast.Call)
                and later in mentioned(other)
            )
            call = next(calls, None)
            kernel = call and self._launched(call)
            if call and kernel:
                positions = [n for n, argument in enumerate(call.args) if later in mentioned(argument)]
                roles = self._roles(kernel)
                if any(n >= len(roles) or roles[n] != "out" for n in positions):
                    raise self.code.refusal(statement, f"{kernel} changes it in place into {later}")

    def _follow_call(self, statement: ast.Expr, call: ast.Call, new: Layout) -> None:
        kernel = self._launched(call)
        match call:
            case _ if layouts := asserted_layouts(call):
                for asserted in layouts:
                    if asserted.name == self.buffer:
                        self._replace(asserted.stride, str(new.stride))
            case _ if kernel is not None:
                self._follow_launch(statement, call, kernel)
            case ast.Call(func=ast.Attribute(value=ast.Name("extern_kernels"))) if any(
                keyword.arg == "out" for keyword in call.keywords
            ):
                arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
                passed = sum(isinstance(node, ast.Name) and node.id == self.buffer for node in arguments)
                if passed != list(mentioned(call)).count(self.buffer):
                    raise self.code.refusal(
                        statement, f"a library function is passed a view of {self.buffer}"
                    )
            case _:
                raise self.code.refusal(statement, self._unknown)

    def _follow_launch(self, statement: ast.Expr, call: ast.Call, kernel: str) -> None:
        positions = []
        roles = self._roles(kernel)
        for position, argument in enumerate(call.args):
            match argument:
                case _ if self.buffer not in mentioned(argument):
                    continue
                case ast.Name():
                    pass
                case ast.Call(func=ast.Name("reinterpret_tensor"), args=[_, _, _, *rest]) if _is_zero(rest):
                    pass
                case _:
                    raise self.code.refusal(statement, f"{kernel} is passed a part of {self.buffer}")
            positions.append(position)
        if any(position >= len(roles) for position in positions):
            raise self.code.refusal(statement, f"the parameters of {kernel} are not known")
        if any(roles[position] == "inout" for position in positions):
            why = f"{kernel} changes {self.buffer} in place, where another buffer was before"
            raise self.code.refusal(statement, why)
        self.launches.append(BufferLaunch(kernel, tuple(positions), statement.lineno))

    def _launched(self, call: ast.Call) -> str | None:
        """Return the pristine name of the kernel that a call launches."""
        name = ast.unparse(call.func).removesuffix(".run")
        return next((other for other, kernel in self.code.kernels.items() if kernel.name == name), None)

    def _roles(self, kernel: str) -> list[str]:
        code = self.code.kernels[kernel]
        return [arg.role for arg in code.backend.read(code.source).args]

    def _statements(self) -> Iterator[tuple[ast.stmt | None, ast.stmt]]:
        """Yield the wrapper's statements that hold no others, each behind the one that follows it."""
        for definition in self.code.wrapper:
            yield from _simple_statements(definition.node)


def _simple_statements(node: ast.AST) -> Iterator[tuple[ast.stmt | None, ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            for statement, after in zip(block, [*block[1:], None], strict=False):
                if any(getattr(statement, inner, None) for inner in ("body", "orelse")):
                    yield from _simple_statements(statement)
                else:
                    yield after, statement


def _targets(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _is_zero(rest: list[ast.expr]) -> bool:
    """The offset of `reinterpret_tensor(buf0, size, stride, 0)`."""
    return [ast.unparse(argument) for argument in rest] in ([], ["0"])


def _deletes(statement: ast.stmt | None, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ast.Delete) else []
    return any(ast.unparse(target) == name for target in targets)
