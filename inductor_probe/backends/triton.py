"""Triton kernels."""

from __future__ import annotations

import re

from inductor_probe.backends.backend import Backend, role_of
from inductor_probe.model.code import KernelArg

_SIGNATURE = re.compile(r"^def \w+\((?P<params>[^)]*)\):", re.MULTILINE)
_FACTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("heuristic", re.compile(r"@triton_heuristics\.(\w+)\(")),
    ("reduction hint", re.compile(r"reduction_hint=ReductionHint\.(\w+)")),
    ("size hints", re.compile(r"size_hints=(\{[^}]*\}|\[[^\]]*\])")),
    ("loads", re.compile(r"'num_load': (\d+)")),
    ("reductions", re.compile(r"'num_reduction': (\d+)")),
)


def _parameters(source: str) -> tuple[KernelArg, ...]:
    match = _SIGNATURE.search(source)
    if match is None:
        return ()
    found = []
    for text in match["params"].split(","):
        name, _, annotation = (part.strip() for part in text.partition(":"))
        if name and "constexpr" not in annotation:
            found.append(KernelArg(name, role_of(name)))
    return tuple(found)


def _facts(source: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, match[1]) for name, pattern in _FACTS if (match := pattern.search(source)))


TRITON = Backend("triton", {"triton": 1}, "run", _parameters, _facts)
