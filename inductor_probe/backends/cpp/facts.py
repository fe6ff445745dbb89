"""What the text of a C++ kernel tells."""

from __future__ import annotations

import re

from inductor_probe.backends.backend import KernelText, role_of
from inductor_probe.backends.cpp.loops import loop_nests, plain
from inductor_probe.model.code import CppFacts, KernelArg, LoopNest, Pairs, Role

SIGNATURE = re.compile(
    r'extern\s+"C"\s+(?:__declspec\(dllexport\)\s+)?void\s+(?P<name>\w+)\s*\((?P<params>[^)]*)\)'
)
_PARAM = re.compile(r"(?P<type>.+?)\s*\b(?P<name>\w+)\s*")
_THREADS = re.compile(r"#pragma omp parallel[^\n]{0,200}?\bnum_threads\((\d+)\)")
_COLLAPSE = re.compile(r"\bcollapse\((\d+)\)")
_INDEX_TYPE = re.compile(r"\bfor\s*\(\s*([\w:]+)\s+\w+\s*=\s*static_cast<\1>")
_VECTOR = re.compile(r"at::vec::Vectorized(?:N<(?P<many>\w+),\s*(?P<registers>\d{1,9})>|<(?P<one>\w+)>)")
_LOCAL = re.compile(r"std::make_unique<(?P<type>\w+)\s*\[\]>\((?P<size>[^;\n]{0,400})\)")
_ATOMIC = re.compile(r"\batomic_add(?:_vec)?\s*[(<]")
_TEMPLATES = ("micro_gemm", "grouped_gemm", "flash_attention", "flex_attention")

# Combining functions of accumulators (`tmp_acc0 = max_propagate_nan(tmp_acc0, ...)`) and their names.
_REDUCTION = re.compile(
    r"(?P<acc>tmp_acc\d+\w*)\s*=\s*(?:(?P<call>[\w:]+)\s*(?:<[^;()]{0,200}>)?\(|(?P=acc)\s*(?P<operator>[-+*/|&^]))"
)
_REDUCTIONS: tuple[tuple[str, str], ...] = (
    ("welford", "welford"),
    ("argmax", "argmax"),
    ("argmin", "argmin"),
    ("cascade_sum", "sum"),
    ("sum", "sum"),
    ("max", "max"),
    ("min", "min"),
    ("prod", "product"),
    ("xor", "xor"),
)
_OPERATORS = {"+": "sum", "*": "product", "|": "any", "&": "all", "^": "xor"}
_BITS = {
    "float": 32, "int32_t": 32, "uint32_t": 32, "int": 32, "double": 64, "int64_t": 64, "uint64_t": 64,
    "half": 16, "BFloat16": 16, "Half": 16, "bfloat16": 16, "int16_t": 16, "uint16_t": 16, "int8_t": 8,
    "uint8_t": 8, "bool": 8,
}  # fmt: skip


def read(source: str) -> KernelText:
    """Read a C++ kernel."""
    facts = _details(source)
    return KernelText(_parameters(source), facts, _pairs(facts))


def _parameters(source: str) -> tuple[KernelArg, ...]:
    signature = SIGNATURE.search(source)
    texts = signature["params"].split(",") if signature else ()
    return tuple(
        KernelArg(param["name"], _role(param["name"], param["type"]), param["type"])
        for text in texts
        if (param := _PARAM.fullmatch(" ".join(text.split())))
    )


def _role(name: str, kind: str) -> Role:
    """Templates have names of their own (`X`, `W`, `Y`): what is const is only read."""
    role = role_of(name)
    if role == "size" and "*" in kind:
        return "in" if kind.startswith("const") else "out"
    return role


def _details(source: str) -> CppFacts:
    signature = SIGNATURE.search(source)
    body = signature.end() if signature else 0
    lines = source.split("\n")
    first = source.count("\n", 0, body) + 1
    nests = loop_nests(lines, first, len(lines))
    threads = _THREADS.search(source)
    index = _INDEX_TYPE.search(source, body)
    return CppFacts(
        nests=nests,
        helper_loops=sum(len(nest.loops) for nest in loop_nests(lines, 1, first - 1)),
        index_type=index[1] if index else None,
        vector_bits=_vector_bits(source, nests),
        parallel="#pragma omp parallel" in source,
        threads=int(threads[1]) if threads else None,
        collapse=max(map(int, _COLLAPSE.findall(source)), default=None) if "collapse(" in source else None,
        reductions=_reductions(source, body),
        atomics=len(_ATOMIC.findall(source, body)) if "atomic_add" in source else 0,
        local_buffers=_local_buffers(source) if "make_unique" in source else (),
        templates=tuple(name for name in _TEMPLATES if name in source),
        division_check="inductor_cpu_integer_div_error" in source,
    )


def _local_buffers(source: str) -> tuple[str, ...]:
    return tuple(f"{found['type']}[{plain(found['size'])}]" for found in _LOCAL.finditer(source))


def _vector_bits(source: str, nests: tuple[LoopNest, ...]) -> int | None:
    """A step of 16 floats is 512 bits, provided that a vector of floats is one register."""
    steps = [
        loop.step
        for nest in nests
        if nest.kind == "vectorised"
        for loop in nest.loops
        if isinstance(loop.step, int) and loop.step > 1 and not loop.within
    ]
    if not steps:
        return None
    step = max(set(steps), key=steps.count)
    widest = None
    for match in _VECTOR.finditer(source):
        bits = _BITS.get(match["one"] or match["many"])
        if bits:
            width = step * bits // int(match["registers"] or 1)
            widest = max(widest or 0, width)
    return widest


def _reductions(source: str, body: int) -> tuple[str, ...]:
    names: dict[str, None] = {}
    if "tmp_acc" not in source:
        return ()
    for match in _REDUCTION.finditer(source, body):
        if match["operator"]:
            names.setdefault(_OPERATORS.get(match["operator"], match["operator"]))
        else:
            called = match["call"].rpartition("::")[2]
            if name := next((name for part, name in _REDUCTIONS if part in called), None):
                names.setdefault(name)
    return tuple(names)


def _pairs(facts: CppFacts) -> Pairs:
    tails = facts.count("tail")
    threads = f", {facts.threads} threads" if facts.threads else ""
    collapse = f", collapse({facts.collapse})" if facts.collapse else ""
    tiles = dict.fromkeys("x".join(map(str, nest.tile)) for nest in facts.nests if nest.tile)
    pairs: list[tuple[str, str | None]] = [
        ("loop nests", str(facts.count("vectorised") + facts.count("scalar"))),
        ("vectorised", str(facts.count("vectorised"))),
        ("scalar", str(facts.count("scalar"))),
        ("tails", str(tails) if tails else None),
        ("vector width", f"{facts.vector_bits} bits" if facts.vector_bits else None),
        ("tiles", ", ".join(tiles) or None),
        ("openmp", f"parallel{threads}{collapse}" if facts.parallel else "no"),
        ("index width", _WIDTHS.get(facts.index_type or "")),
        ("index type", facts.index_type),
        ("reductions", ", ".join(facts.reductions) or None),
        ("atomic adds", str(facts.atomics) if facts.atomics else None),
        ("local buffers", ", ".join(facts.local_buffers) or None),
        ("template", ", ".join(facts.templates) or None),
        ("loops of helpers", str(facts.helper_loops) if facts.helper_loops else None),
        ("division by zero", "raises" if facts.division_check else None),
    ]
    return tuple((name, text) for name, text in pairs if text is not None)


_WIDTHS = {"long": "int64", "int64_t": "int64", "int": "int32", "int32_t": "int32"}
"""`long` is 64 bits wide where inductor writes it: it chose `int64_t` later for Windows' sake."""
