"""What a kernel's text does with an index that is a loaded value: whether it is wrapped, and checked.

Torch decides while it generates code (torch/_inductor/codegen/common.py, CSEProxy.indirect_indexing): `x[i]`
adds the size to what may be negative, `torch.gather` does not, and what its ranges prove is not checked. The
loop body of all is the same, `self.set_indirect0(load)`. In the text,

    auto tmp3 = int64_t(tmp0 + tmp2);                   the index and the size
    auto tmp4 = tmp0 < 0;
    auto tmp5 = tmp4 ? tmp3 : tmp0;                     wrapped
    auto tmp6 = tmp5;
    auto tmp7 = c10::convert<int64_t>(tmp6);
    TORCH_CHECK((0 <= tmp7) & (tmp7 < 8L), "index out of bounds: 0 <= tmp7 < 8L");      checked
    auto tmp9 = in_ptr1[static_cast<int64_t>(tmp5)];
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from msgspec import Struct

from inductor_probe.model.code import PointerUse
from inductor_probe.model.record import collected

_VALUE = re.compile(r"\b(?:tmp\d+)\b")
_DEFINITION = re.compile(r"\s*(?:auto )?(tmp\d+) =(?!=)\s*(.*)$")
_SELECTIONS = (  # groups: where what, else what
    re.compile(r"tl\.where\((?P<mask>tmp\d+), (?P<value>tmp\d+), (?P<other>tmp\d+)\)$"),
    re.compile(r"(?P<mask>tmp\d+) \? (?P<value>tmp\d+) : (?P<other>tmp\d+);$"),
    re.compile(r"decltype\(tmp\d+\)::blendv\((?P<other>tmp\d+), (?P<value>tmp\d+), (?P<mask>tmp\d+)\b"),
)
_TERM = r"(?:static_cast<std::make_unsigned_t<\w+>>\()?"  # since torch 2.14, so that a sum wraps around
_SUM = re.compile(rf"(?:(?:decltype\(tmp\d+\)|\w+_t)\()?{_TERM}(tmp\d+)\)? \+ {_TERM}(?:tmp\d+|\d+L?)\)*;?$")
_SAME = re.compile(r"(?:(?:c10::convert|static_cast)<[\w ]+>\()?(tmp\d+)\)?;$")
"""A copy: `tmp5;`, `c10::convert<int64_t>(tmp6);`."""
_LANES = re.compile(r"(tmp\d+)\.store\(tmpbuf\.data\(\)|tmpbuf\[\w+\] = static_cast<\w+>\((tmp\d+)\[\w+\]\);")
"""A vector as an array, and the array as a vector: what a lambda copies."""
_INDEX_VALUE = re.compile(
    r"at::vec::\w+<\w+,\d+>::arange\(tmp\d+|c10::convert<\w+>\(tmp\d+|(?=.*\bx\d)[^_\[]+;$"
)
"""A value that is an index: a vector of it, its type, and the sum of loop variables and loaded values."""
_CHECK = re.compile(r'(?:TORCH_CHECK|device_assert)\(.*"index out of bounds: ([^"]*)"')
_LONGEST_LAMBDA = 16
"""Lines of a lambda that copies lanes: it has about ten."""


class IndexUse(Struct, frozen=True):
    """An index of an access in a kernel's text. `wrapped` is None where its text says neither."""

    wrapped: bool | None
    checked: bool


class IndexReader:
    """Answers for one kernel's text."""

    def __init__(self, source: str) -> None:
        self._lines = source.split("\n")
        defined = ((_DEFINITION.match(line), row) for row, line in enumerate(self._lines, 1))
        self._definitions = collected((match[1], row) for match, row in defined if match)
        self._checked = {
            self._root(name, row)
            for row, line in enumerate(self._lines, 1)
            for check in _CHECK.finditer(line)
            for name in _VALUE.findall(check[1])
        }

    def uses(self, accesses: Iterable[PointerUse], like_wrapped: bool) -> set[IndexUse]:
        """Return what is done with each loaded value in the indices of some accesses.

        Args:
            accesses: of the kernel.
            like_wrapped: an index is itself a sum or selection: `x[torch.where(i < 0, i + 8, i)]`.
        """
        found = set()
        for access in accesses:
            for name, row in self._loaded(access):
                wrapped = self._wrapped(name, row, like_wrapped)
                found.add(IndexUse(wrapped, self._root(name, row) in self._checked))
        return found

    def _loaded(self, access: PointerUse) -> Iterator[tuple[str, int]]:
        """Yield the values in the index of an access, each with the line that uses it.

        `atomic_add_vec<float, 2, 1>(out_ptr0, tmp12, tmp9)` has it in a value of its own, `x1 + 8L*tmp5`.
        """
        text = access.index or ""
        if "atomic_add_vec" not in (line := self._lines[access.line - 1]):
            yield from ((name, access.line) for name in _VALUE.findall(text))
            return
        _, _, arguments = line.partition(f"({access.alias or access.pointer}, ")
        waiting = [(name, access.line) for name in _VALUE.findall(arguments.partition(",")[0])]
        while waiting:
            name, row = waiting.pop()
            place = self._place(name, row)
            text = self._text(place)
            if match := _INDEX_VALUE.match(text):
                waiting += [(part, place) for part in _VALUE.findall(match[0])]
            else:
                yield name, row

    def _place(self, name: str, row: int) -> int:
        """Return the line above `row` that defines a value: names are those of the nearest block. Or 0."""
        rows = self._definitions.get(name, ())
        position = bisect_left(rows, row)
        return rows[position - 1] if position else 0

    def _text(self, row: int) -> str:
        match = _DEFINITION.match(self._lines[row - 1]) if row else None
        return match[2].strip() if match else ""

    def _copied(self, row: int) -> str | None:
        """Return the value that a definition copies into an array of lanes, or back."""
        if not row or self._text(row) not in ("", "[&]"):
            return None
        for line in self._lines[row : row + _LONGEST_LAMBDA]:
            if match := _LANES.search(line):
                return str(match[1] or match[2])
            if "_ptr" in line or _DEFINITION.match(line):
                return None
        return None

    def _root(self, name: str, row: int) -> tuple[str, int]:
        """Return the value that `name` is a copy of, with the line of its definition."""
        while place := self._place(name, row):
            same = _SAME.match(self._text(place))
            source = same[1] if same else self._copied(place)
            if source is None:
                break
            name, row = source, place
        return name, place

    def _wrapped(self, name: str, row: int, like_wrapped: bool) -> bool | None:
        while source := self._copied(place := self._place(name, row)):
            name, row = source, place
        text = self._text(place)
        if not text:
            return None
        for selection in _SELECTIONS:
            if match := selection.match(text):
                if not self._selects_wrapped(match, place):
                    return False if like_wrapped else None
                return None if like_wrapped and not self._is_like_wrapped(match["other"], place) else True
        if match := _SUM.match(text):
            return False if like_wrapped and not self._is_like_wrapped(match[1], place) else None
        return False

    def _is_like_wrapped(self, name: str, row: int) -> bool:
        """Whether a value is a sum or a selection itself."""
        text = self._text(self._place(name, row))
        return any(form.match(text) for form in (_SUM, *_SELECTIONS))

    def _selects_wrapped(self, selection: re.Match[str], row: int) -> bool:
        """Whether it selects `index + size` where `index < 0`, else the index."""
        index = selection["other"]
        total = _SUM.match(self._text(self._place(selection["value"], row)))
        mask = self._text(self._place(selection["mask"], row))
        return total is not None and total[1] == index and f"{index} < " in mask
