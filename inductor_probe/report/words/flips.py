"""What became of decisions that were to be turned by name (`probe dump --scalar op0`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inductor_probe.catalogue.templates import fill
from inductor_probe.model.decision import Outcome
from inductor_probe.model.flip import Flip, FlipReason, FlipResult
from inductor_probe.report.words.decisions import cause_sentence, sentence

REASONS: Mapping[FlipReason, str] = {
    "no-graph": "no graph of that name was compiled[; near it: {near}]",
    "compile-failed": "torch failed before it came to that decision",
    "no-subject": "there is no {subject}[; near it: {near}]",
    "same-subject": "both names mean {node}",
    "inlined-by-flip": "{subject} has no node any more: with --{flip} its value is computed in its users",
    "without-node": "no scheduler node holds the value of {subject}",
    "extern-kernel": "{subject} calls {kernel}, which torch does not generate",
    "other-device": "torch decides that for {language} kernels alone, and {subject|'all of the graph'} runs "
    "on {device}",
    "no-reduction": "{subject} does not reduce",
    "not-decided": "torch takes no such decision about it[; what it decided is: {decided}]",
    "not-fusable": "torch cannot fuse them[: {because}]",
    "same-node": "torch made one node of them elsewhere",
    "dtype-not-vectorisable": "C++ has no vectors of {dtypes}",
    "no-contiguous-loop": "none of its loops can be vectorised",
    "a-view": "it is a view, which has no value of its own",
    "not-a-value": "torch does not compute it in a loop",
    "needed-as-buffer": "{buffer} is needed as a buffer[: {because}]",
    "layout-fixed": "the layout of {buffer} is not torch's to choose",
    "layout-required": "{buffer} is made to have the strides that {function} asks for",
    "layout-of-another-rank": "channels_last is an order of 4 or 5 dimensions, and it has {dimensions}",
    "reduction-not-split": "torch cannot join the parts of a reduction of type {type}",
    "welford-parts-in-cpp": "the C++ backend cannot combine {parts} parts of Welford's algorithm: vectors "
    "reduce one value at a time (CppVecKernel.reduction), and welford_combine in cpp_prefix.h takes such a "
    "part for empty, so that the result would be wrong",
    "too-many-parts": "{elements:,} elements in {parts:,} parts are fewer than {threshold} each, and torch "
    "computes so few without a reduction",
    "tile-not-known": "no tile is known to hold {elements} elements",
    "little-work": "{threads:# thread} would have fewer than {min_chunk_size} elements each",
    "indices-exceed-int32": "its {elements} elements do not fit int32, or torch cannot tell",
}


_OUTCOMES: Mapping[Outcome, str] = {
    "refused": "not fused",
    "not-split": "in one part",
    "split": "in parts",
    "one-thread": "on one thread",
    "parallel": "on several threads",
}
"""Words of outcomes that are none themselves."""
_NUMBERED = {"split": "in {} parts", "parallel": "on {} threads"}
"""Of what a flip says the number of."""


def flip_texts(flips: Sequence[Flip], results: Sequence[FlipResult]) -> Iterator[tuple[bool, str]]:
    """Yield for each flip whether it was turned somewhere, and a sentence for each graph that it is about.

    Of a flip that some graph has met the graphs that have no such subject are left out.
    """
    for flip in flips:
        of_flip = [result for result in results if result.flip == flip]
        met = [result for result in of_flip if result.outcome != "not-met"]
        telling = [result for result in of_flip if result.reason != "no-subject"]
        for result in met or (telling or of_flip)[:1]:
            yield result.outcome in ("applied", "already-so"), flip_text(result)


def flip_text(result: FlipResult) -> str:
    """`--scalar op0: turned in model__0_inference_0.0: op0, op3 are scalar`."""
    where = f" in {result.graph}" if result.graph not in (None, result.flip.graph) else ""
    before, after = (one and _OUTCOMES.get(one, one) for one in (result.before, result.after))
    after = _NUMBERED.get(result.after or "", after or "").format(result.flip.value)
    values = {**dict(result.operands), "subjects": result.subjects, "before": before, "after": after}
    if result.decision is not None:
        values |= {"because": cause_sentence(result.decision), "decided": sentence(result.decision)}
    match result.outcome:
        case "applied":
            verb = "is" if len(result.subjects) == 1 else "are"
            form = f"turned{where}: {{subjects:4}} {verb} {{after}}[ (torch's own choice: {{before}})]"
            text = fill(form, values)
        case "already-so":
            text = f"torch decides so by itself{where}"
        case _:
            reason = fill(REASONS[result.reason], values) if result.reason else "no reason is known"
            text = f"{'not possible' if result.outcome == 'refused' else 'not met'}{where}: {reason}"
    return f"{result.flip.option}: {text}"
