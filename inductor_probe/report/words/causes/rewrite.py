"""Words for rewrites of the FX graph: torch/_inductor/fx_passes and pattern_matcher.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name operators without their overloads, and the pass with its stage."""
    derived = {
        name: tuple(dict.fromkeys(_packet(operator) for operator in operands.get(name, ())))
        for name in ("operators", "by_operators")
    }
    stage = str(operands.get("stage", "")).replace("_", " ")
    name = operands.get("pass", "?")
    return {**derived, "place": f"{name} ({stage})" if stage else name, "what": derived["by_operators"]}


def _packet(operator: str) -> str:
    return operator.rpartition(".")[0] if operator.count(".") > 1 else operator


WORDS = KindWords(
    outcomes={
        "replaced": "{nodes:4} became {by:4}",
        "removed": "{nodes:4} {n_gone:?was/were} removed[, and {by:2} used in {n_gone:?its/their} place]",
        "folded": "{nodes:4} became a constant",
        "not-replaced": "{nodes:4} stayed as {n_gone:?it was/they were}",
    },
    causes={
        "pattern": CauseWords(
            "{pattern} of {place} matched {operators:5}[, and put {by_operators:4} there]",
            "{operators:3}[ by {by_operators:3}], {pattern}",
        ),
        "no-op": CauseWords("{operators:4} changed nothing there", "{operators:3} changed nothing"),
        "identity": CauseWords(
            "{operators:4} adds 0 to {by:2}, or multiplies it by 1", "{operators:3} with 0 or 1"
        ),
        "uniform-value": CauseWords(
            "all its elements are {value}, whatever the inputs are", "{operators:3} of constants, {value}"
        ),
        "pass": CauseWords(
            "the pass {place} does so[: {by_operators:4} in place of {operators:4}]",
            "{operators:3}[ by {by_operators:3}], {pass}",
        ),
        "check-refused": CauseWords(
            "{patterns:3} of {place} matched {operators:4}, and its check {check} refused",
            "{operators:3}, {check} refused {patterns:2}",
        ),
    },
    changes={
        "disabled_passes": "leaves out the pass, of joint and post-grad passes all of that name",
        "pattern_matcher": "leaves out all patterns",
        "fallback_random": "calls torch for random numbers, which are then those of eager mode",
        "joint_graph_constant_folding": "keeps what is computed of constants alone",
    },
    derived=lambda operands: {**_derived(operands), "n_gone": len(operands.get("nodes", ()))},
)
