"""Words for rewrites of the FX graph: torch/_inductor/fx_passes and pattern_matcher.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import CauseWords, KindWords


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name operators without their overloads, and the pass with its stage; count names that are left out."""
    derived = {name: _whole(name, operands) for name in ("nodes", "by") if name in operands}
    derived |= {
        name: tuple(dict.fromkeys(_packet(operator) for operator in operands.get(name, ())))
        for name in ("operators", "by_operators")
    }
    stage = str(operands.get("stage", "")).replace("_", " ")
    name = operands.get("pass", "?")
    gone = len(derived.get("nodes", ()))
    return {
        **derived,
        "n_gone": gone,
        "place": f"{name} ({stage})" if stage else name,
        "what": derived["by_operators"],
    }


def _whole(name: str, operands: Mapping[str, Any]) -> tuple[str, ...]:
    """Return names as many as there were: those that no operand has are behind all that are shown."""
    names = tuple(operands[name])
    return (*names, *[""] * (operands.get(f"{name}_count", len(names)) - len(names)))


def _packet(operator: str) -> str:
    return operator.rpartition(".")[0] if operator.count(".") > 1 else operator


WORDS = KindWords(
    outcomes={
        ("replaced", "small-product"): "{operators} became {by:4}",
        "replaced": "{nodes:4} became {by:4}",
        "removed": "{nodes:4} {n_gone:?was/were} removed[, and {by:2} used in {n_gone:?its/their} place]",
        "folded": "{nodes:4} became a constant",
        "in-place": "{nodes:2} writes into {argument} itself",
        "copied": "{nodes:2} writes into a copy of {argument}",
        "not-replaced": "{nodes:4} stayed as {n_gone:?it was/they were}",
    },
    causes={
        "pattern": CauseWords(
            "{pattern} of {place} matched {operators:5}[, and put {by_operators:4} there]",
            "{operators:3}[ by {by_operators:3}], {pattern}",
        ),
        "small-product": CauseWords(
            "inductor multiplies and sums elements where a dimension has one of them, or few "
            "({first_size} by {second_size})",
            "{operators} of {first_size} by {second_size}",
        ),
        "shape-padding-off": CauseWords("shape_padding is off", "{operators}: shape_padding off"),
        "sizes-aligned": CauseWords(
            "its sizes {sizes} are multiples of {alignment} already, so there is nothing to pad",
            "{operators}: nothing to pad",
        ),
        "padding-forced": CauseWords(
            "force_shape_pad pads its sizes {sizes} to multiples of {alignment}",
            "{operators}: force_shape_pad",
        ),
        "memory-bound": CauseWords(
            "padding its sizes {sizes} to multiples of {alignment} would not help: "
            "{operations_per_element:.1f} multiplications for each element that is moved: memory bounds it",
            "{operators}: bound by memory",
        ),
        "padding-faster": CauseWords(
            "with its sizes {sizes} padded to multiples of {alignment} it took {padded_ms:.4f} ms when torch "
            "timed it, and {plain_ms:.4f} without",
            "{operators}: faster padded",
        ),
        "padding-slower": CauseWords(
            "with its sizes {sizes} padded to multiples of {alignment} it took {padded_ms:.4f} ms when torch "
            "timed it, and {plain_ms:.4f} without, which would have to be 10% more",
            "{operators}: not faster padded",
        ),
        "times-simulated": CauseWords(
            "torch times it with its sizes {sizes} padded to multiples of {alignment}, and without: on a GPU "
            "that is simulated both take the same time",
            "{operators}: not timed, simulated GPU",
        ),
        "no-op": CauseWords(
            "{operators:4} {n_gone:?gives/give} the values of {n_gone:?its/their} operand in the same size, "
            "strides and dtype[; {mutated_by:3} changes in place what it takes]",
            "{operators:3} of the same layout[, before {mutated_by:1}]",
        ),
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
        "copied-back": CauseWords(
            "the program changes {input|'that input'}[, and {argument} is a view of {input}]",
            "{operators}: the input is changed in any case",
        ),
        "not-read-later": CauseWords("nothing reads {argument} after it", "{operators}: not read later"),
        "input-not-mutated": CauseWords(
            "{argument} is an input of the graph, which the program does not mutate",
            "{operators}: an input that is not mutated",
        ),
        "view-of-input": CauseWords(
            "{argument} is a view of the input {input}, and the result is not written back there",
            "{operators}: a view of an input",
        ),
        "read-later": CauseWords("{reader} reads {argument} after it", "{operators}: read later"),
        "scatter-fused": CauseWords(
            "a scatter into a view is fused with what it takes and gives, as neither is in memory anyway",
            "{operators}: fused instead",
        ),
        "check-refused": CauseWords(
            "{patterns:3} of {place} matched {operators:4}, and its check {check} refused"
            "[: {setting_off} is off, with which it passes][: its weight {weight} is not constant]"
            "[: its weight has {weight_users} users]"
            "[: its weight is {weight_dtype}, the other constant {dtypes}]",
            "{operators:3}, {check} refused {patterns:2}",
        ),
    },
    changes={
        "shape_padding": "pads matrix products where that is faster",
        "force_shape_pad": "pads matrix products whether or not it is faster; time it",
        "change-input": "change the input in place (index_put_), if the caller allows for it",
        "read-before": "read the value before it is changed, or compute it once more",
        "enable_linear_binary_folding": "folds constants into the weights of linear layers",
        "disabled_passes": "leaves out the pass, of joint and post-grad passes all of that name",
        "pattern_matcher": "leaves out all patterns",
        "fallback_random": "calls torch for random numbers, which are then those of eager mode",
        "joint_graph_constant_folding": "keeps what is computed of constants alone",
    },
    derived=_derived,
)
