"""Triton kernels."""

from __future__ import annotations

import re

from inductor_probe.backends.backend import Backend, role_of, signature_parameters
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
    names = (text.partition(":") for text in signature_parameters(_SIGNATURE, source))
    return tuple(
        KernelArg(name.strip(), role_of(name.strip()))
        for name, _, annotation in names
        if "constexpr" not in annotation
    )


def _facts(source: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, match[1]) for name, pattern in _FACTS if (match := pattern.search(source)))


TRITON = Backend("triton", {"triton": 1}, "run", _parameters, _facts)
