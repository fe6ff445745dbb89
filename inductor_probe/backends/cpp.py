"""C++ kernels of inductor: parameters, loop nests, facts, and accesses through pointers.

The text is what torch/_inductor/codegen/cpp.py prints, `KernelGroup.codegen_group` the frame of it:

    extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0)
    {
        #pragma omp parallel
        {
            #pragma omp for
            for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(64L); x0+=...(16L))
            { auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), ...);
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from inductor_probe.backends import KernelText, role_of
from inductor_probe.backends.brackets import inside, unwrapped
from inductor_probe.model.code import (
    CppFacts,
    KernelArg,
    Loop,
    LoopNest,
    NestFeature,
    NestKind,
    PointerUse,
    Role,
)
from inductor_probe.model.ir import Dim, as_dim

SIGNATURE = re.compile(
    r'extern\s+"C"\s+(?:__declspec\(dllexport\)\s+)?void\s+(?P<name>\w+)\s*\((?P<params>[^)]*)\)'
)
_PARAM = re.compile(r"(?P<type>.+?)\s*\b(?P<name>\w+)\s*")
# cpp.py, WorkSharing.parallel; `num_threads` always until torch 2.11, later where the user sets it.
_THREADS = re.compile(r"#pragma omp parallel[^\n]{0,200}?\bnum_threads\((\d+)\)")
_COLLAPSE = re.compile(r"\bcollapse\((\d+)\)")
# cpp.py, LoopLevel.lines: `long` until torch 2.4, then `int64_t`.
_INDEX_TYPE = re.compile(r"\bfor\s*\(\s*([\w:]+)\s+\w+\s*=\s*static_cast<\1>")
_VECTOR = re.compile(r"at::vec::Vectorized(?:N<(?P<many>\w+),\s*(?P<registers>\d{1,9})>|<(?P<one>\w+)>)")
# cpp.py, CppKernel.codegen_loops_impl: buffers of outer loop fusion.
_LOCAL = re.compile(r"std::make_unique<(?P<type>\w+)\s*\[\]>\((?P<size>[^;\n]{0,400})\)")
_ATOMIC_ADD = re.compile(r"\batomic_add(?:_vec)?\s*[(<]")
_TEMPLATES = ("micro_gemm", "grouped_gemm", "flash_attention", "flex_attention")

# cpp.py, reduction_combine and CppVecKernel.reduction_combine_vec: `tmp_acc0 = max_propagate_nan(acc, x)`
_REDUCTION = re.compile(
    r"(?P<acc>tmp_acc\d+\w*)\s*=\s*(?:(?P<call>[\w:]+)\s*(?:<[^;()]{0,200}>)?\(|(?P=acc)\s*(?P<operator>[-+*/|&^]))"
)
_REDUCTIONS = {
    "welford": "welford", "argmax": "argmax", "argmin": "argmin", "cascade_sum": "sum", "sum": "sum",
    "max": "max", "min": "min", "prod": "product", "xor": "xor",
}  # fmt: skip
_OPERATORS = {"+": "sum", "*": "product", "|": "any", "&": "all", "^": "xor"}
_BITS = {
    "float": 32, "int32_t": 32, "uint32_t": 32, "int": 32, "double": 64, "int64_t": 64, "uint64_t": 64,
    "half": 16, "BFloat16": 16, "Half": 16, "bfloat16": 16, "int16_t": 16, "uint16_t": 16, "int8_t": 8,
    "uint8_t": 8, "bool": 8,
}  # fmt: skip

_TOKEN = re.compile(
    r"""
    //.* | /\*.*?(?:\*/|\Z)                            # what stands in comments, strings and characters
    | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])'             # opens and closes nothing
    | (?P<loop>\bfor\s*\() | (?P<open>\{) | (?P<close>\})
    """,
    re.VERBOSE,
)
# cpp.py, LoopLevel.lines and move_code_under_inner_loop (`x1_tail++`).
# Repetitions have an end, so that no line, however long, costs more than its length.
_LOOP = re.compile(
    r"for\s{0,9}\(\s{0,9}[\w:\s]{1,99}?\b(?P<variable>\w{1,99})\s{0,9}=\s{0,9}(?P<start>[^;\n]{0,999});"
    r"\s{0,9}(?P=variable)\s{0,9}<\s{0,9}(?P<stop>[^;\n]{0,999});"
    r"\s{0,9}(?:(?P=variable)\s{0,9}(?:\+=\s{0,9}(?P<step>[^;\n]{0,999})|\+\+)|\+\+(?P=variable))\s*\)"
)
_CAST = re.compile(r"\bstatic_cast<[\w:]+>")
_SUFFIX = re.compile(r"\b(\d+)U?L{0,2}\b")
_WITHIN = ("_inner", "_tail")
# cpp.py, CppTile2DKernel.gen_transposed_tile_load_store.
_TILE = re.compile(
    r"transpose_mxn<[\w:]+,\s*(?:static_cast<\w+>\()?(\d+)L?\)?,\s*(?:static_cast<\w+>\()?(\d+)"
)
# Each pattern starts with plain text: that is what makes searching a long kernel quick.
_FEATURES: tuple[tuple[NestFeature, re.Pattern[str]], ...] = (
    ("indirect-load", re.compile(r"_ptr\d+\[[^\]\n]{0,400}?\btmp\d")),
    ("atomic-add", re.compile(r"atomic_add\w*\s*[(<]")),
    ("random-number", re.compile(r"rand\w{0,40}?_cpu\(")),
    ("division-in-index", re.compile(r"_ptr\d+\[[^\]\n]{0,400}?(?:%|/|div_floor|mod_)")),
    ("float64", re.compile(r"double[ *>(&]")),
    ("reversed-access", re.compile(r"\(-\d+L?\)\*[xi]\d")),
)
_THREAD_VARIABLES = ("tid", "i")
"""Of the loops that fill and combine what each thread reduced (cpp.py, reduction_prefix_array and
CppKernel._gen_parallel_reduction_buffers): they run over no data."""


def read(source: str) -> KernelText:
    """Read a C++ kernel."""
    signature = SIGNATURE.search(source)
    args = tuple(
        KernelArg(param["name"], _role(param["name"], param["type"]), param["type"])
        for text in (signature["params"].split(",") if signature else ())
        if (param := _PARAM.fullmatch(" ".join(text.split())))
    )
    facts = _facts(source, signature.end() if signature else 0)
    return KernelText(args, facts)


def _role(name: str, kind: str) -> Role:
    """Templates have names of their own (`X`, `W`, `Y`): what is const is only read."""
    role = role_of(name)
    if role == "size" and "*" in kind:
        return "in" if kind.startswith("const") else "out"
    return role


def _facts(source: str, body: int) -> CppFacts:
    """Read the facts of a kernel whose body begins at `body`; above it stand helpers of templates."""
    lines = source.split("\n")
    first = source.count("\n", 0, body) + 1
    nests = loop_nests(lines, first, len(lines))
    threads = _THREADS.search(source)
    index = _INDEX_TYPE.search(source, body)
    local_buffers = _LOCAL.finditer(source) if "make_unique" in source else ()
    return CppFacts(
        nests=nests,
        helper_loops=sum(len(nest.loops) for nest in loop_nests(lines, 1, first - 1)),
        index_type=index[1] if index else None,
        vector_bits=_vector_bits(source, nests),
        parallel="#pragma omp parallel" in source,
        threads=int(threads[1]) if threads else None,
        collapse=max(map(int, _COLLAPSE.findall(source)), default=None) if "collapse(" in source else None,
        reductions=_reductions(source, body),
        atomics=len(_ATOMIC_ADD.findall(source, body)) if "atomic_add" in source else 0,
        local_buffers=tuple(f"{match['type']}[{plain(match['size'])}]" for match in local_buffers),
        templates=tuple(name for name in _TEMPLATES if name in source),
        division_check="inductor_cpu_integer_div_error" in source,
    )


def _vector_bits(source: str, nests: tuple[LoopNest, ...]) -> int | None:
    """A step of 16 floats is 512 bits, provided that a vector of floats is one register.

    `TilingSelect.select_tiling` counts elements of 32 bits, or of 16 where all are such floats: integers of 8
    bits fill a quarter of a register.
    """
    steps = [
        loop.step
        for nest in nests
        if nest.has_vectors
        for loop in nest.loops
        if isinstance(loop.step, int) and loop.step > 1 and not loop.within
    ]
    if not steps:
        return None
    step = max(set(steps), key=steps.count)
    widths = [
        step * bits // int(match["registers"] or 1)
        for match in _VECTOR.finditer(source)
        if (bits := _BITS.get(match["one"] or match["many"]))
    ]
    return max(widths) if widths and max(widths) > step * 8 else step * 32 if widths else None


def _reductions(source: str, body: int) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for match in _REDUCTION.finditer(source, body) if "tmp_acc" in source else ():
        if match["operator"]:
            names.setdefault(_OPERATORS.get(match["operator"], match["operator"]))
        else:
            function = match["call"].rpartition("::")[2]
            if name := next((name for part, name in _REDUCTIONS.items() if part in function), None):
                names.setdefault(name)
    return tuple(names)


@dataclass(slots=True)
class _OpenLoop:
    """A loop while its end is not known."""

    header: re.Match[str]
    line: int
    depth: int
    pragmas: tuple[str, ...]
    last: int = 0


@dataclass(slots=True)
class _OpenNest:
    """An outermost loop while it is read."""

    loops: list[_OpenLoop] = field(default_factory=list)
    vectorised: bool = False


def loop_nests(lines: list[str], first: int, last: int) -> tuple[LoopNest, ...]:
    """Return the loop nests in the lines from `first` to `last` (1-based, both included), in order.

    A nest that is not closed ends with the lines.
    """
    reader = _LoopReader()
    for number in range(first, last + 1):
        reader.take(number, lines[number - 1])
    reader.finish(last)
    nests: list[LoopNest] = []
    for nest in reader.nests:
        nests.append(_nest(lines, nest, nests[-1] if nests else None))
    return tuple(nests)


class _LoopReader:
    """Follows braces and loops through the lines of a text: a stack of the loops that each brace opened.

    A loop waits until its body begins: `for(x0...)`, `for(x1...)`, `{` gives one brace with two loops, and
    its `}` ends both. Nearly every line is a plain statement, so each is asked with substrings first.
    """

    def __init__(self) -> None:
        self.nests: list[_OpenNest] = []
        self._braces: list[list[_OpenLoop]] = []  # for each open brace, the loops whose body it is
        self._looping = 0  # loops whose body is open
        self._waiting: list[_OpenLoop] = []  # loops whose body has not started
        self._pragmas: list[str] = []
        self._in_comment = False

    def take(self, number: int, line: str) -> None:
        """Take the next line."""
        if self._in_comment or "/*" in line:
            line = self._without_comment(line)
        if "#pragma" in line:
            self._pragmas.append(line.partition("#pragma")[2].strip())
            return
        if "{" in line or "}" in line or "for" in line:
            for token in _TOKEN.finditer(line):
                self._token(number, line, token)
        elif self._waiting and line.strip():  # the body is one statement
            self._end(self._waiting, number)
            self._waiting = []
        if "at::vec::" in line and self.nests and (self._looping or self._waiting):
            self.nests[-1].vectorised = True

    def _without_comment(self, line: str) -> str:
        if self._in_comment:
            _, closed, line = line.partition("*/")
            self._in_comment = not closed
        opening = line.rfind("/*")
        if opening >= 0 and "*/" not in line[opening:]:
            self._in_comment = True
            line = line[:opening]
        return line

    def _token(self, number: int, line: str, token: re.Match[str]) -> None:
        if token["loop"]:
            if header := _LOOP.match(line, token.start()):
                depth = self._looping + len(self._waiting)
                if not depth:
                    self.nests.append(_OpenNest())
                loop = _OpenLoop(header, number, depth, tuple(self._pragmas))
                self._pragmas = []
                self.nests[-1].loops.append(loop)
                self._waiting.append(loop)
        elif token["open"]:
            self._braces.append(self._waiting)
            self._looping += len(self._waiting)
            self._waiting, self._pragmas = [], []
        elif token["close"]:
            self._pragmas = []
            if self._braces:
                loops = self._braces.pop()
                self._end(loops, number)
                self._looping -= len(loops)

    def _end(self, loops: list[_OpenLoop], number: int) -> None:
        for loop in loops:
            loop.last = number

    def finish(self, last: int) -> None:
        """End what is still open."""
        for loops in (self._waiting, *self._braces):
            self._end(loops, last)


def _nest(lines: list[str], nest: _OpenNest, before: LoopNest | None) -> LoopNest:
    """Return the record of a nest.

    A tail goes on where the nest before it stopped, as torch until 2.5 prints the rest of a vectorised loop:
    `x0` from 0 to 992 by 16, then `x0` from 992 to 1000 by 1.
    """
    loops = tuple(_loop(loop) for loop in nest.loops)
    outer = loops[0]
    kind: NestKind = "scalar"
    if nest.vectorised:
        kind = "underfilled" if _is_underfilled(loops) else "vectorised"
    if outer.variable in _THREAD_VARIABLES:
        kind = "threads"
    elif kind == "scalar" and before and before.has_vectors and outer.start != 0:
        main = before.loops[0]
        kind = "tail" if (outer.variable, outer.start) == (main.variable, main.stop) else "scalar"
    text = "\n".join(lines[outer.line - 1 : outer.last])
    tile = match.groups() if "transpose_mxn" in text and (match := _TILE.search(text)) else ()
    features = tuple(_features(text, loops)) if kind == "scalar" else ()
    return LoopNest(kind, loops, outer.line, outer.last, tuple(map(int, tile)), features)


def _is_underfilled(loops: tuple[Loop, ...]) -> bool:
    """Whether no vector is full: each loop in steps is shorter than a step, or nested with one that is.

    `x1` from 0 to 3 by 16 is one vector, of which a mask leaves 3 lanes. Tiles of 16 x 16 need both loops.
    """
    steps = [loop for loop in loops if not loop.within and isinstance(loop.step, int) and loop.step > 1]
    short = [
        loop
        for loop in steps
        if isinstance(loop.start, int)
        and isinstance(loop.stop, int)
        and isinstance(loop.step, int)
        and loop.stop - loop.start < loop.step
    ]
    return bool(short) and all(any(_are_nested(loop, other) for other in short) for loop in steps)


def _are_nested(first: Loop, second: Loop) -> bool:
    return first.line <= second.line <= first.last or second.line <= first.line <= second.last


def _features(text: str, loops: tuple[Loop, ...]) -> Iterator[NestFeature]:
    yield from (name for name, pattern in _FEATURES if pattern.search(text))
    innermost = next((loop.variable for loop in reversed(loops) if not loop.within), "")
    if re.search(rf"_ptr\d+\[[^\]\n]{{0,400}}?\b\d+L?\*{re.escape(innermost)}\b", text):
        yield "strided-access"


def _loop(loop: _OpenLoop) -> Loop:
    header = loop.header
    return Loop(
        variable=header["variable"],
        start=plain(header["start"]),
        stop=plain(header["stop"]),
        step=plain(header["step"]) if header["step"] else 1,
        depth=loop.depth,
        line=loop.line,
        last=loop.last or loop.line,
        pragmas=loop.pragmas,
        within=header["variable"].endswith(_WITHIN),
    )


@lru_cache(maxsize=4096)  # a kernel has the same few sizes in all of its loops
def plain(text: str) -> Dim:
    """Leave casts and suffixes out: `static_cast<int64_t>(1000L)` is 1000, `(ks0*2L)` is `ks0*2`."""
    return as_dim(unwrapped(_SUFFIX.sub(r"\1", _CAST.sub("", text))))


# KernelGroup.codegen_group: `auto out_ptr1 = in_out_ptr0;` for a buffer whose memory another one took over.
# Begins with a line end, not with `^`: plain text is found without a look at every character.
ALIAS = re.compile(r"\n[ \t]*auto\s+(?P<alias>\w+)\s*=\s*(?P<pointer>\w+)\s*;")
_ALIAS_LINE = re.compile(r"\s*auto\s+\w+\s*=\s*\w+\s*;")
_WORD = re.compile(r"[A-Za-z_]\w*")
_POINTER = re.compile(r"\b(?=[A-Za-z_])\w*_ptr\w*")
"""Nearly all pointers are called so, and then the other words of a line need no test."""
_CAST_OFFSET = re.compile(r"\s*\+\s*(?:static_cast<\w+>)?\(")
_NO_OFFSET = re.compile(r"\s*[,)]")
_ATOMIC_TARGET = re.compile(r"\batomic_add\w*\s*(?:<[^()]*>)?\(\s*&?\s*$")
_TRANSPOSE = re.compile(r"transpose_mxn<.*?>\(\s*(?P<first>(?:_|masked_)?tmp\w*|\w+_ptr\w*)")
_ASSIGNED = re.compile(r"\s*=(?!=)")
_LONGEST = 20_000
"""Characters of a line at most: each use tests what stands before it, and inductor's lines are short."""


def pointer_uses(source: str, pointers: frozenset[str]) -> tuple[PointerUse, ...]:
    """Return the lines that read or write through `pointers`, in order."""
    aliases = {
        match["alias"]: match["pointer"] for match in ALIAS.finditer(source) if match["pointer"] in pointers
    }
    names = pointers | aliases.keys()
    other_names = tuple(name for name in names if "_ptr" not in name)  # of templates: `X`, `W`
    words = _WORD if other_names else _POINTER
    body = source.count("\n", 0, max(source.find("{"), 0)) + 1
    return tuple(
        use
        for number, line in enumerate(source.split("\n"), 1)
        if number > body and ("_ptr" in line or any(name in line for name in other_names))
        for use in _uses(number, line, words, names, aliases)
    )


def _uses(
    number: int, line: str, words: re.Pattern[str], names: frozenset[str], aliases: dict[str, str]
) -> Iterator[PointerUse]:
    code = line.partition("//")[0]
    if len(code) > _LONGEST or _ALIAS_LINE.match(code):
        return
    for word in words.finditer(code):
        if (name := word[0]) in names:
            index = _index(code, word.end())
            yield PointerUse(
                line=number,
                kind=_how(code, word),
                pointer=aliases.get(name, name),
                index=None if index is None else str(plain(index)),
                alias=name if name in aliases else None,
                vector=code[word.end() : word.end() + 1] != "[",
            )


def _how(code: str, word: re.Match[str]) -> Literal["load", "store", "atomic"]:
    """Return what a line does through the pointer at `word`.

    `atomic_add(&out_ptr0[tmp3], tmp0)`, `out_ptr0[x0] = tmp0` (CppKernel.store), `tmp1.store(out_ptr0 + x0)`
    (CppVecKernel._get_store_line), `transpose_mxn<float,16,16>(tmp5, 16, out_ptr0 + x1, 16)` (from its first
    argument to its third); all others load.
    """
    before = code[: word.start()]
    if "atomic_add" in before and _ATOMIC_TARGET.search(before):
        return "atomic"
    if before.rstrip().endswith(".store("):
        return "store"
    if "transpose_mxn<" in code and (transposed := _TRANSPOSE.search(code)):
        return "load" if transposed["first"] == word[0] else "store"
    if code[word.end() : word.end() + 1] == "[":
        index = inside(code, word.end())
        if index is not None and _ASSIGNED.match(code, word.end() + len(index) + 2):
            return "store"
    return "load"


def _index(code: str, end: int) -> str | None:
    """Return what is added to the pointer that ends at `end`: `[x0]`, ` + static_cast<...>(x0)`, or 0."""
    if code[end : end + 1] == "[":
        return inside(code, end)
    if cast := _CAST_OFFSET.match(code, end):
        return inside(code, cast.end() - 1)
    return "0" if _NO_OFFSET.match(code, end) else None
