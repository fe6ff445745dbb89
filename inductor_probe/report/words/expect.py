"""What was expected of a graph, and what is there: the sentence of each code of `model/expectation.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inductor_probe.catalogue.templates import fill, listed
from inductor_probe.model.expectation import Checked, Standing
from inductor_probe.report.units import bytes_text, counted

_FOUND: Mapping[str, str] = {
    "kernels": "{number:# kernel}[: {names}]",
    "no-code": "the graph has no output_code.py",
    "vectorised": "{names} {number:?is/are} vectorised",
    "scalar": "{names} {number:?has a loop nest that is/have loop nests that are} not vectorised",
    "no-cpp-kernel": "no C++ kernel does it, and inductor vectorises no other",
    "nodes": "they are in {names}",
    "not-generated": "no code was generated for {names}",
    "layout": "{buffer} is {format}[, with strides ({strides})]",
    "no-layout": "the dump does not have the layout of {buffer}",
    "copies": "copied: {names}",
    "no-copies": "nothing is copied",
    "not-recorded": "the dump does not record copies; `probe dump SCRIPT` does",
    "extern": "{names} {number:?is called/are called}",
    "no-extern": "none is called",
    "of-kernels": "{found} in {names}",
    "no-triton-kernel": "no Triton kernel says it",
    "no-bytes": "a size in {kernel} is not",
    "decided": "torch decided so for {names}",
    "other-causes": "no decision has it",
    "no-recorder": "the dump does not record {kinds}; `probe dump SCRIPT` does",
    "no-cudagraphs": "the dump records nothing of it, as for a graph without a GPU",
    "cudagraphs-captured": "CUDA graphs replay all of it",
    "cudagraphs-partitioned": "CUDA graphs replay {partitions:# part}, without {names:6}",
    "cudagraphs-skipped": "no CUDA graph replays it",
    "cudagraphs-at-run-time": "each call decides whether CUDA graphs replay it",
    "no-remarks": "there is none",
    "remarks": "{number:# remark}",
    "no-failures": "the dump does not record failed compiles; `probe dump SCRIPT` does",
    "failures": "{number:# failed compile}",
    "breaks": "{number:# graph break}",
    "recompiles": "{number:# recompile}[: {guards:2}]",
    "no-manifest": "the run has no manifest; `probe dump SCRIPT` writes one",
}
_SIGNS: Mapping[Standing, str] = {"holds": "", "fails": " FAILS", "unknown": " is not known"}


def found_words(checked: Checked) -> str:
    """Return what is there: `2 kernels: cpp_fused_a_0, cpp_fused_b_1`."""
    if checked.code == "bytes":
        return f"{bytes_text(int(str(dict(checked.numbers)['bytes'])))} are read and written"
    numbers = dict(checked.numbers)
    names = numbers.get("names")
    if isinstance(names, tuple):
        numbers["number"] = len(names)
    return fill(_FOUND[checked.code], numbers)


def checked_sentence(checked: Checked) -> str:
    """Return an expectation with what is there: `--kernels 1 FAILS: 2 kernels: ...`."""
    return f"{checked.expectation.option}{_SIGNS[checked.standing]}: {found_words(checked)}"


def summary_sentence(outcomes: Sequence[Checked]) -> str:
    """Return how all of them stand in one line."""
    total = counted(len(outcomes), "expectation")
    failed = [one.expectation.option for one in outcomes if one.standing == "fails"]
    unknown = [one.expectation.option for one in outcomes if one.standing == "unknown"]
    parts = [f"{len(failed)} failed ({listed(list(dict.fromkeys(failed)), 6)})"] if failed else []
    if unknown:
        parts.append(f"{len(unknown)} not known ({listed(list(dict.fromkeys(unknown)), 6)})")
    return f"{total}: {', '.join(parts)}" if parts else f"{total}: all hold"
