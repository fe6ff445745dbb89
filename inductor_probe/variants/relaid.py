"""A kernel whose accesses to one buffer follow another layout of it."""

from __future__ import annotations

import re

from inductor_probe.backends.cpp import SIGNATURE
from inductor_probe.model.code import CppFacts, Loop
from inductor_probe.variants.code import KernelCode
from inductor_probe.variants.coordinates import Layout, Range, UnprovedError, coordinates, laid_out
from inductor_probe.variants.index import Language, Sum, python_text, sum_of, written
from inductor_probe.variants.places import Place, places
from inductor_probe.variants.ranges import Ranges

_ALIAS = re.compile(r"^\s*auto\s+\w+\s*=\s*(?P<pointer>\w+)\s*;", re.MULTILINE)


def relaid(kernel: KernelCode, pointer: str, before: Layout, after: Layout) -> str:
    """Return the source of a kernel that reaches the buffer behind `pointer` by the strides of `after`.

    Raises:
        ProbeError: a place is in no known form, or its coordinates are not proved; names its line.
    """
    source, language = kernel.source, _language(kernel)
    for alias in _ALIAS.finditer(source):
        if alias["pointer"] == pointer:
            line = source.count("\n", 0, alias.start("pointer")) + 1
            raise kernel.refusal(line, f"{pointer} stands for two buffers")
    pieces, at = [], 0
    for place in places(source, pointer, language):
        if isinstance(place, int):
            raise kernel.refusal(place, f"{pointer} is used in a form that is not known")
        try:
            text = _Accesses(kernel, language, place, before, after).text(pointer)
        except (UnprovedError, ValueError) as error:
            raise kernel.refusal(place.line, f"where {pointer} is reached is not proved: {error}") from error
        pieces += [source[at : place.start], text]
        at = place.end
    return "".join([*pieces, source[at:]])


def _language(kernel: KernelCode) -> Language:
    return "triton" if kernel.backend.name == "triton" else "cpp"


class _Accesses:
    """One place, and what becomes of it."""

    def __init__(
        self, kernel: KernelCode, language: Language, place: Place, before: Layout, after: Layout
    ) -> None:
        self.kernel, self.language, self.place = kernel, language, place
        self.before, self.after = before, after
        self.loops = _loops_around(kernel, place.line) if language == "cpp" else ()
        self.ranges = Ranges(kernel.source, place.line, language, self.loops)

    def text(self, pointer: str) -> str:
        """Return what stands between the place's start and its end now."""
        place = self.place
        index = self._lanes_joined(sum_of(python_text(place.index, self.language)))
        if place.how == "element":
            flat = written(self._moved(index), self.language)
            return f"static_cast<int64_t>({flat})" if self.language == "cpp" else flat
        lane = self._lane(index)
        moved = self._moved(index)
        if dict(moved.terms).get(lane.variable) == 1 and not _nested(moved, lane.variable):
            flat = written(moved, self.language)
            count = f", static_cast<int64_t>({place.count})" if place.count is not None else ""
            call = f"{pointer} + static_cast<int64_t>({flat}){count})"
            return f"{place.maker}({call}" if place.how == "load" else f"{place.maker}.store({call};"
        each = f"{lane.variable} + {lane.variable}_inner"
        terms = tuple((each if factor == lane.variable else factor, value) for factor, value in index.terms)
        flat = written(self._moved(Sum(terms, index.constant)), self.language)
        return self._one_by_one(pointer, flat, lane)

    def _moved(self, index: Sum) -> Sum:
        where = coordinates(index, self.before, self._range)
        return laid_out(where, self.after)

    def _range(self, factor: str) -> Range:
        """`x2 + x2_inner` runs as far as x2: the inner loop is over the lanes of one step of it."""
        first, plus, second = factor.partition(" + ")
        return self.ranges.of(first if plus and second == f"{first}_inner" else factor)

    def _lanes_joined(self, index: Sum) -> Sum:
        terms = dict(index.terms)
        for name in list(terms):
            value = terms.get(name)
            if value is not None and terms.get(f"{name}_inner") == value:
                del terms[name], terms[f"{name}_inner"]
                terms[f"{name} + {name}_inner"] = value
        return Sum(tuple(terms.items()), index.constant)

    def _lane(self, index: Sum) -> Loop:
        """Return the loop that a vector runs along: its variable has a step, and the factor 1."""
        terms = dict(index.terms)
        found = [loop for loop in self.loops if loop.step != 1 and terms.get(loop.variable) == 1]
        if len(found) != 1:
            raise UnprovedError("the loop that the vector runs along is not clear")
        return found[0]

    def _one_by_one(self, pointer: str, flat: str, lane: Loop) -> str:
        """Write a vector access as inductor writes one whose elements do not lie side by side."""
        place, source = self.place, self.kernel.source
        count = place.count if place.count is not None else lane.step
        row = source[source.rfind("\n", 0, place.start) + 1 :]
        indent = row[: len(row) - len(row.lstrip(" "))]
        name = f"{lane.variable}_inner"
        loop = (
            f"#pragma GCC unroll {count}",
            f"for (long {name} = 0; {name} < static_cast<int64_t>({count}); {name}++)",
            "{",
        )
        room = f"__at_align__ std::array<{self._type(pointer)}, {count}> tmpbuf;"
        element = f"{pointer}[static_cast<int64_t>({flat})]"
        if place.how == "load":
            lines = [
                "", "[&]", "{", f"    {room}", *(f"    {line}" for line in loop),
                f"        tmpbuf[{name}] = {element};", "    }",
                f"    return {place.maker}(tmpbuf.data(), static_cast<int64_t>({count}));", "}", "()",
            ]  # fmt: skip
        else:
            lines = [
                "{", f"    {room}", f"    {place.maker}.store(tmpbuf.data(), static_cast<int64_t>({count}));",
                *(f"    {line}" for line in loop), f"        {element} = tmpbuf[{name}];", "    }", "}",
            ]  # fmt: skip
        return f"\n{indent}".join(lines)

    def _type(self, pointer: str) -> str:
        signature = SIGNATURE.search(self.kernel.source)
        found = re.search(
            rf"(?:const\s+)?([\w:]+)\s*\*\s*{re.escape(pointer)}\b", signature[0] if signature else ""
        )
        if not found:
            raise UnprovedError(f"the type of {pointer} is not clear")
        return found[1]


def _nested(index: Sum, variable: str) -> bool:
    """Tell whether `variable` also stands inside of a division or a modulo."""
    return any(factor != variable and re.search(rf"\b{variable}\b", factor) for factor, _ in index.terms)


def _loops_around(kernel: KernelCode, line: int) -> tuple[Loop, ...]:
    details = kernel.backend.read(kernel.source).details
    if not isinstance(details, CppFacts):
        return ()
    around = [loop for nest in details.nests for loop in nest.loops if loop.line <= line <= loop.last]
    return tuple(sorted(around, key=lambda loop: loop.depth))
