"""C++ kernels."""

from __future__ import annotations

import re

from inductor_probe.backends.backend import Backend, role_of, signature_parameters
from inductor_probe.model.code import KernelArg

_SIGNATURE = re.compile(r'extern\s+"C"\s+(?:__declspec\(dllexport\)\s+)?void\s+kernel\((?P<params>[^)]*)\)')
_PARAM = re.compile(r"(?P<type>.+?)\s*\b(?P<name>\w+)\s*")
_FOR = re.compile(r"\bfor\s*\(")
_VECTOR = "at::vec::"


def _parameters(source: str) -> tuple[KernelArg, ...]:
    return tuple(
        KernelArg(param["name"], role_of(param["name"]), param["type"])
        for text in signature_parameters(_SIGNATURE, source)
        if (param := _PARAM.fullmatch(text))
    )


def loop_nests(source: str) -> tuple[str, ...]:
    """Return the text of each outermost `for` of a kernel, to the end of its body."""
    nests = []
    at = 0
    while match := _FOR.search(source, at):
        opening = source.find("{", match.end())
        if opening < 0:
            break
        depth, end = 0, opening
        for end in range(opening, len(source)):
            depth += (source[end] == "{") - (source[end] == "}")
            if depth == 0:
                break
        nests.append(source[match.start() : end + 1])
        at = end + 1
    return tuple(nests)


def _facts(source: str) -> tuple[tuple[str, str], ...]:
    nests = loop_nests(source)
    vectorised = sum(_VECTOR in nest for nest in nests)
    parallel = "#pragma omp parallel" in source
    return (
        ("loop nests", str(len(nests))),
        ("vectorised", str(vectorised)),
        ("scalar", str(len(nests) - vectorised)),
        ("openmp", "yes" if parallel else "no"),
    )


CPP = Backend("cpp", {"cpp": 0, "cpp_pybinding": 1}, None, _parameters, _facts)
