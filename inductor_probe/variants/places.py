"""The places of a kernel's text that reach a buffer through one pointer: every one of them, or a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from inductor_probe.backends.brackets import inside, unwrapped
from inductor_probe.backends.cpp import SIGNATURE

_WORD = r"(?<![\w.]){}(?!\w)"
_CAST = re.compile(r"static_cast<(?:int64_t|int32_t|long)>\(")
_LOAD = re.compile(r"(?P<maker>at::vec::(?:Vectorized|VectorizedN|VecMask)<[\w:, ]+>::(?:loadu|from))\($")
_STORE = re.compile(r"(?P<value>(?<![\w.])\w+)\.store\($")
_TRITON = re.compile(r"\btl\.(?P<how>load|store|atomic_\w+)\($")
_FUNCTION = re.compile(r"^def \w+\(", re.MULTILINE)
_COUNT = re.compile(r"\s*,\s*(?:static_cast<(?:int64_t|long)>\((\d+)L?\)|(\d+))")


@dataclass(frozen=True, slots=True)
class Place:
    """A use of a pointer.

    Attributes:
        start, end: of the index in the source; for a vector, of the whole call or statement.
        line: of the source, 1-based.
        index: as written, without the cast around it.
        how: `element` (`ptr[index]`, and everything in Triton), `load` or `store` of a vector in C++.
        maker: `at::vec::Vectorized<float>::loadu` of a vector load; the value of a vector store.
        count: lanes of a vector, where the call says.
        writes: True for a store, False for a load, None for an atomic.
    """

    start: int
    end: int
    line: int
    index: str
    how: str
    maker: str = ""
    count: int | None = None
    writes: bool | None = False


def body_start(source: str, language: str) -> int:
    """Return where the statements of a kernel start: behind its parameters."""
    if language == "triton":
        # Functions above the decorator are helpers of scans and reductions.
        found = _FUNCTION.search(source, max(source.find("@triton_heuristics."), 0))
        return found.end() + len(inside(source, found.end() - 1) or "") if found else 0
    signature = SIGNATURE.search(source)
    return signature.end() if signature else 0


def places(source: str, pointer: str, language: str) -> Iterator[Place | int]:
    """Yield every use of `pointer` in the statements of a kernel, in order.

    A line number stands for a use in no form that is known.
    """
    word = re.compile(_WORD.format(re.escape(pointer)))
    for found in word.finditer(source, body_start(source, language)):
        line = source.count("\n", 0, found.start()) + 1
        place = (_triton if language == "triton" else _cpp)(source, found.start(), found.end(), line)
        yield place or line


def _triton(source: str, start: int, end: int, line: int) -> Place | None:
    call = _TRITON.search(source, source.rfind("\n", 0, start) + 1, start)
    plus = re.compile(r"\s*\+\s*\(").match(source, end)
    if call is None or call.end() != start or plus is None:
        return None
    index = inside(source, plus.end() - 1)
    if index is None:
        return None
    first = plus.end()
    # What is broadcast or cast behind the bracket belongs to the pointer expression, and stays.
    writes = {"load": False, "store": True}.get(call["how"])
    return Place(first, first + len(index), line, unwrapped(index), "element", writes=writes)


def _cpp(source: str, start: int, end: int, line: int) -> Place | None:
    if source[end : end + 1] == "[":
        inner = inside(source, end)
        if inner is None:
            return None
        assigned = re.match(r"\s*=(?!=)", source[end + len(inner) + 2 :])
        before = source[source.rfind("\n", 0, start) + 1 : start]
        writes = None if "atomic_add" in before else bool(assigned)
        return Place(end + 1, end + 1 + len(inner), line, _uncast(inner), "element", writes=writes)
    plus = re.compile(r"\s*\+\s*").match(source, end)
    cast = _CAST.match(source, plus.end()) if plus else None
    index = inside(source, cast.end() - 1) if cast else None
    if cast is None or index is None:
        return None
    behind = cast.end() + len(index) + 1
    count = _COUNT.match(source, behind)
    closing = count.end() if count else behind
    lanes = int(count[1] or count[2]) if count else None
    row = source.rfind("\n", 0, start) + 1
    if source[closing : closing + 1] != ")":
        return None
    load = _LOAD.search(source, row, start)
    if load and load.end() == start:
        return Place(load.start(), closing + 1, line, index, "load", load["maker"], lanes)
    store = _STORE.search(source, row, start)
    if store and store.end() == start and source[closing + 1 : closing + 2] == ";":
        return Place(store.start(), closing + 2, line, index, "store", store["value"], lanes, writes=True)
    return None


def _uncast(text: str) -> str:
    cast = _CAST.match(text)
    inner = inside(text, cast.end() - 1) if cast else None
    return inner if inner is not None and cast and cast.end() + len(inner) + 1 == len(text) else text
