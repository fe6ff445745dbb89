"""Where a kernel's text reaches memory through one pointer: every place, as positions that can be edited."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from inductor_probe.backends.brackets import inside, unwrapped
from inductor_probe.backends.cpp import ALIAS, SIGNATURE
from inductor_probe.variants.code import KernelCode

# torch/_inductor/codegen/cpp.py, CppVecKernel._get_vec_load_line and _get_store_line:
#   at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16))
#   tmp0.store(out_ptr0 + static_cast<int64_t>(x0));
_CAST = re.compile(r"static_cast<(?:int64_t|int32_t|long)>\(")
_LOAD = re.compile(r"(?P<maker>at::vec::(?:Vectorized|VectorizedN|VecMask)<[\w:, ]+>::(?:loadu|from))\($")
_STORE = re.compile(r"(?P<value>(?<![\w.])\w+)\.store\($")
_COUNT = re.compile(r"\s*,\s*(?:static_cast<(?:int64_t|long)>\((\d+)L?\)|(\d+))")
_PLUS = re.compile(r"\s*\+\s*")
# torch/_inductor/codegen/triton.py, TritonKernel.load and store: `tl.load(in_ptr0 + (x0), xmask)`.
_TRITON = re.compile(r"\btl\.(?P<how>load|store|atomic_\w+)\($")
_FUNCTION = re.compile(r"^def \w+\(", re.MULTILINE)


class Access(Struct, frozen=True):
    """A use of a pointer.

    Attributes:
        start, end: of the index in the source; for a vector, of the whole call or statement.
        line: of the source, 1-based.
        index: as written, without the cast around it.
        form: `element` (`ptr[index]`, and everything in Triton), `load` or `store` of a vector in C++.
        maker: `at::vec::Vectorized<float>::loadu` of a vector load; the value of a vector store.
        count: lanes of a vector, where the call says.
        writes: True for a store, False for a load, None for an atomic.
    """

    start: int
    end: int
    line: int
    index: str
    form: Literal["element", "load", "store"]
    maker: str = ""
    count: int | None = None
    writes: bool | None = False


def pointer_types(kernel: KernelCode) -> dict[str, str]:
    """Return the element type behind each pointer (`float`, `*fp32`): of parameters, and of their aliases."""
    args = kernel.backend.read(kernel.source).args
    types = {
        arg.name: arg.type.removeprefix("const ").rstrip("* ") for arg in args if arg.type and "*" in arg.type
    }
    for match in ALIAS.finditer(kernel.source):
        if match["pointer"] in types:
            types[match["alias"]] = types[match["pointer"]]
    return types


def body_start(source: str, language: str) -> int:
    """Return where the statements of a kernel start: behind its parameters."""
    if language == "triton":
        # Functions above the decorator are helpers of scans and reductions.
        function = _FUNCTION.search(source, max(source.find("@triton_heuristics."), 0))
        return function.end() + len(inside(source, function.end() - 1) or "") if function else 0
    signature = SIGNATURE.search(source)
    return signature.end() if signature else 0


def accesses(kernel: KernelCode, pointer: str) -> Iterator[Access]:
    """Yield every use of `pointer` in the statements of a kernel, in order; aliases of it are their own.

    Raises ProbeError: a use is in no known form; names its line.
    """
    source, language = kernel.source, kernel.backend.name
    word = re.compile(rf"(?<![\w.]){re.escape(pointer)}(?!\w)")
    for match in word.finditer(source, body_start(source, language)):
        row = source.rfind("\n", 0, match.start()) + 1
        line = source.count("\n", 0, row) + 1
        if language == "cpp" and ALIAS.match(source, row - 1):  # from the line end on
            continue
        access = (_triton if language == "triton" else _cpp)(source, row, match.start(), match.end(), line)
        if access is None:
            raise kernel.refusal(line, f"{pointer} is used in a form that is not known")
        yield access


def _triton(source: str, row: int, start: int, end: int, line: int) -> Access | None:
    call, plus = _TRITON.search(source, row, start), _PLUS.match(source, end)
    if call is None or plus is None or not source.startswith("(", plus.end()):
        return None
    index = inside(source, plus.end())
    if index is None:
        return None
    first = plus.end() + 1
    # What is broadcast or cast behind the bracket belongs to the pointer expression, and stays.
    writes = {"load": False, "store": True}.get(call["how"])
    return Access(first, first + len(index), line, unwrapped(index), "element", writes=writes)


def _cpp(source: str, row: int, start: int, end: int, line: int) -> Access | None:
    if source.startswith("[", end):
        inner = inside(source, end)
        if inner is None:
            return None
        last = end + 1 + len(inner)
        writes = bool(re.match(r"\s*=(?!=)", source[last + 1 :]))
        cast = _CAST.match(inner)
        index = inside(inner, cast.end() - 1) if cast else None
        if cast is None or index is None or cast.end() + len(index) + 1 != len(inner):
            index = inner
        atomic = "atomic_add" in source[row:start]
        return Access(end + 1, last, line, index, "element", writes=None if atomic else writes)
    plus = _PLUS.match(source, end)
    cast = _CAST.match(source, plus.end()) if plus else None
    index = inside(source, cast.end() - 1) if cast else None
    if cast is None or index is None:
        return None
    behind = cast.end() + len(index) + 1
    count = _COUNT.match(source, behind)
    closing = count.end() if count else behind
    if not source.startswith(")", closing):
        return None
    lanes = int(count[1] or count[2]) if count else None
    if load := _LOAD.search(source, row, start):
        return Access(load.start(), closing + 1, line, index, "load", load["maker"], lanes)
    store = _STORE.search(source, row, start)
    if store and source.startswith(";", closing + 1):
        return Access(store.start(), closing + 2, line, index, "store", store["value"], lanes, writes=True)
    return None
