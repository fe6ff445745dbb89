"""The rewrite `stride`: a buffer laid out anew, in the wrapper by its syntax, in every kernel by text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec.structs import replace

from inductor_probe.backends.cpp import ALIAS
from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import NewVariant
from inductor_probe.model.code import CppFacts, Loop
from inductor_probe.variants.accesses import Access, accesses, pointer_types
from inductor_probe.variants.code import BY_HAND, Code, KernelCode, Rewrite, edited, span
from inductor_probe.variants.index import (
    Language,
    Layout,
    Range,
    Sum,
    UnprovedError,
    coordinates,
    flat_index,
    python_text,
    sum_of,
    written,
)
from inductor_probe.variants.ranges import Ranges
from inductor_probe.variants.wrapper_buffer import WrapperBuffer

_ARGUMENTS = re.compile(r"\s*(?P<buffer>\w+)\s*=\s*(?P<stride>\([\d\s,]*\)|\w+)\s*")
_ALLOCATED = re.compile(r"\b(\w+) = empty_strided\w*\(")


class Stride(Rewrite):
    """A `call` that lays a buffer out anew, and copies of the kernels that read or write it."""

    name = "stride"
    arguments = "BUFFER=(strides)|channels_last|contiguous"
    help = "give a buffer another layout: its allocation, its writer and all its readers"

    def candidates(self, code: Code) -> Iterator[str]:
        """Yield both memory formats for each buffer that the wrapper allocates."""
        for definition in code.wrapper:
            for buffer in dict.fromkeys(_ALLOCATED.findall(definition.text)):
                yield from (f"{buffer}=channels_last", f"{buffer}=contiguous")

    def apply(self, code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
        """Refuse strides that do not fit the buffer's size, and places that cannot follow."""
        match = _ARGUMENTS.fullmatch(arguments)
        if match is None:
            raise self.invalid(arguments, "stride:buf1=channels_last")
        name = match["buffer"]
        buffer = WrapperBuffer(code, name)
        old = buffer.layout
        new = Layout(old.size, _strides(match["stride"], old, name))
        if new == old:
            raise ProbeError(f"{name} has the strides {old.stride} already", "name others")
        buffer.follow(new.stride)
        positions: dict[str, tuple[int, ...]] = {}
        renamed: dict[int, tuple[str, str]] = {}
        for launch in buffer.launches:
            kernel = code.kernels[launch.kernel]
            if positions.setdefault(launch.kernel, launch.positions) != launch.positions:
                raise ProbeError(
                    f"{code.path}:{launch.line}: {kernel.name} is passed {name} in several ways", BY_HAND
                )
            renamed[launch.line] = (kernel.name, f"{launch.kernel}_v{code.next_number}")
        sources = {}
        for kernel_name, numbers in positions.items():
            kernel = code.kernels[kernel_name]
            names = [arg.name for arg in kernel.backend.read(kernel.source).args]
            for number in numbers:
                kernel = replace(kernel, source=_with_layout(kernel, names[number], old, new))
            sources[kernel_name] = kernel.source
        wrapper = {}
        for definition in code.wrapper:
            edits = buffer.edits.get(definition.name, [])
            for node in ast.walk(definition.node):
                if isinstance(node, ast.Name) and renamed.get(node.lineno, ("",))[0] == node.id:
                    edits.append((*span(definition.text, node, definition.start), renamed[node.lineno][1]))
            wrapper[definition.name] = edited(definition.text, edits)
        return code.with_sources(sources, comment, wrapper=wrapper)


def _strides(text: str, old: Layout, buffer: str) -> tuple[int, ...]:
    rank = len(old.size)
    if text.startswith("("):
        strides = tuple(map(int, re.findall(r"\d+", text)))
        if len(strides) != rank:
            raise ProbeError(
                f"{buffer} has {rank} dimensions of size {old.size}, not {len(strides)}",
                "give a stride for each",
            )
        if Layout(old.size, strides).overlaps():
            raise ProbeError(
                f"strides {strides} of size {old.size} let elements of {buffer} share a place, or interleave",
                "each stride must step over the whole extent of all smaller ones",
            )
        return strides
    orders = {"contiguous": tuple(range(rank)), "channels_last": (0, *range(2, rank), 1)}
    if text not in orders or (text == "channels_last" and rank not in (4, 5)):
        raise ProbeError(
            f"{text} is not a memory format of {buffer} of size {old.size}",
            "contiguous, channels_last (4-D and 5-D), or strides",
        )
    strides_by_dim, step = {}, 1
    for dim in reversed(orders[text]):
        strides_by_dim[dim] = step
        step *= max(old.size[dim], 1)
    return tuple(strides_by_dim[dim] for dim in range(rank))


def _with_layout(kernel: KernelCode, pointer: str, before: Layout, after: Layout) -> str:
    """Return the source of a kernel that reaches the buffer behind `pointer` by the strides of `after`.

    Raises ProbeError: a place is in no known form, or its coordinates are not proved; names its line.
    """
    source = kernel.source
    for alias in ALIAS.finditer(source):
        if alias["pointer"] == pointer:
            line = source.count("\n", 0, alias.start("pointer")) + 1
            raise kernel.refusal(line, f"{pointer} names two buffers")
    edits = []
    for access in accesses(kernel, pointer):
        try:
            text = _Move(kernel, access, before, after).text(pointer)
        except (UnprovedError, ValueError) as error:
            raise kernel.refusal(
                access.line, f"cannot prove which elements {pointer} reaches: {error}"
            ) from error
        edits.append((access.start, access.end, text))
    return edited(source, edits)


class _Move:
    """One access of a kernel, in a new layout."""

    def __init__(self, kernel: KernelCode, access: Access, before: Layout, after: Layout) -> None:
        self.kernel, self.access, self.before, self.after = kernel, access, before, after
        self.language: Language = "triton" if kernel.backend.name == "triton" else "cpp"
        details = kernel.backend.read(kernel.source).details
        nests = details.nests if isinstance(details, CppFacts) else ()
        loops = [loop for nest in nests for loop in nest.loops if loop.line <= access.line <= loop.last]
        self.loops = tuple(sorted(loops, key=lambda loop: loop.depth))
        self.ranges = Ranges(kernel.source, access.line, self.language, self.loops)

    def text(self, pointer: str) -> str:
        """Return what stands between the access's start and its end now."""
        access, maker = self.access, self.access.maker
        index = sum_of(python_text(access.index, self.language))
        terms = dict(index.terms)
        # `x2_inner` runs over the lanes of one step of x2: together they run as far as x2.
        for name in list(terms):
            if name in terms and terms.get(f"{name}_inner") == terms[name]:
                terms[f"{name} + {name}_inner"] = terms.pop(name)
                del terms[f"{name}_inner"]
        index = Sum(tuple(terms.items()), index.constant)
        if access.form == "element":
            flat = written(self._moved(index), self.language)
            return f"static_cast<int64_t>({flat})" if self.language == "cpp" else flat
        # The loop that a vector runs along: its variable has a step, and the factor 1.
        lanes = [loop for loop in self.loops if loop.step != 1 and terms.get(loop.variable) == 1]
        if len(lanes) != 1:
            raise UnprovedError("the loop that the vector runs along is not clear")
        variable = lanes[0].variable
        moved = self._moved(index)
        if dict(moved.terms).get(variable) == 1 and not any(
            factor != variable and re.search(rf"\b{variable}\b", factor) for factor, _ in moved.terms
        ):
            flat = written(moved, self.language)
            count = f", static_cast<int64_t>({access.count})" if access.count is not None else ""
            call = f"{pointer} + static_cast<int64_t>({flat}){count})"
            return f"{maker}({call}" if access.form == "load" else f"{maker}.store({call};"
        lane = f"{variable} + {variable}_inner"
        renamed = tuple((lane if factor == variable else factor, value) for factor, value in index.terms)
        flat = written(self._moved(Sum(renamed, index.constant)), self.language)
        return self._element_by_element(pointer, flat, lanes[0])

    def _moved(self, index: Sum) -> Sum:
        return flat_index(coordinates(index, self.before, self._range), self.after)

    def _range(self, factor: str) -> Range:
        first, plus, second = factor.partition(" + ")
        return self.ranges.of(first if plus and second == f"{first}_inner" else factor)

    def _element_by_element(self, pointer: str, flat: str, lane: Loop) -> str:
        """Write a vector access whose elements do not lie side by side.

        As torch/_inductor/codegen/cpp.py does, CppVecKernel._load_or_store_non_contiguous.
        """
        access, source = self.access, self.kernel.source
        kind = pointer_types(self.kernel).get(pointer)
        if not kind:
            raise UnprovedError(f"the type of {pointer} is not clear")
        count = access.count if access.count is not None else lane.step
        line = source[source.rfind("\n", 0, access.start) + 1 :]
        indent = line[: len(line) - len(line.lstrip(" "))]
        name, lanes = f"{lane.variable}_inner", f"static_cast<int64_t>({count})"
        buffer = f"    __at_align__ std::array<{kind}, {count}> tmpbuf;"
        element = f"{pointer}[static_cast<int64_t>({flat})]"
        loop = (
            f"    #pragma GCC unroll {count}",
            f"    for (long {name} = 0; {name} < {lanes}; {name}++)",
            "    {",
        )
        if access.form == "load":
            lines = [
                "", "[&]", "{", buffer, *loop, f"        tmpbuf[{name}] = {element};", "    }",
                f"    return {access.maker}(tmpbuf.data(), {lanes});", "}", "()",
            ]  # fmt: skip
        else:
            lines = [
                "{", buffer, f"    {access.maker}.store(tmpbuf.data(), {lanes});",
                *loop, f"        {element} = tmpbuf[{name}];", "    }", "}",
            ]  # fmt: skip
        return f"\n{indent}".join(lines)
