"""Words for fusion: whose a log is, loops and accesses of a pair. Causes have theirs in the catalogue."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.catalogue.templates import fill
from inductor_probe.model.fusion import LogMatch, PairFacts, PairMember, SharedBuffer
from inductor_probe.model.ir import Dep, Dim, MemoryDep, StarDep
from inductor_probe.model.proof import ProofCode
from inductor_probe.report.units import counted
from inductor_probe.report.words.decisions import cause_sentence

_DOES = {"waits": "comes after"}
_LOGS: Mapping[ProofCode, str] = {
    "log-position": "part {part} of {parts}, as the graph in the run, with its nodes before fusion",
    "log-position-and-groups": (
        "part {part} of {parts}, as the graph in the run, with its nodes before fusion and after"
    ),
    "only-log-part": "the only part with the graph's nodes before fusion and after",
    "equal-log-parts": "{parts} parts of the log fit the graph, and say the same",
    "differing-log-parts": "{parts} parts of the log fit the graph (lines {lines:4}), and differ",
    "log-part-by-names": "the only part with the graph's nodes before fusion; it ends with others",
    "log-parts-by-names": (
        "{parts} parts of the log start from the graph's nodes, and none ends with its nodes after fusion"
    ),
    "no-log-part": "no part of the log starts from the graph's nodes",
    "torch-logs-no-fusion": "torch {version} does not log what it fuses",
    "no-fusion-lines": "the logs of this run have no lines of fusion",
    "no-log": "there is no log of the compiler with this run",
}


def log_text(match: LogMatch) -> str:
    """What shows which part of the log is the graph's, or why there is none."""
    return fill(_LOGS[match.proof.code], dict(match.proof.operands))


def how_to_record_reasons(match: LogMatch) -> str | None:
    """How to get the reasons that the dump lacks; None where it has a log."""
    if match.state in ("proved", "disagrees"):
        return None
    if match.proof.code == "torch-logs-no-fusion":
        return "torch 2.2 and later log their reasons: dump the script with one of those"
    if match.state == "ambiguous":
        return "dump one case at a time: `probe dump SCRIPT --case CASE` records a log of its own"
    return "`probe dump SCRIPT` records the reasons; so does TORCH_LOGS=fusion,loop_ordering,schedule"


def loops_text(facts: PairFacts) -> tuple[str, str]:
    """Whether the loops of a pair fit one kernel, and in what way or why not."""
    if facts.outer_depth is not None:
        return "fit: ", f"{counted(facts.outer_depth, 'outer loop')} in common, and inner loops each"
    if facts.loops is not None:
        return "do not fit: ", cause_sentence(facts.loops)
    return ("fit", "") if facts.loops_fit else ("", "whether they fit is not known")


def member_loops(member: PairMember) -> str:
    """`512 x 1000 reducing 64`; `4096 elements reducing 64` of Triton code; `-` where there are none."""
    match member.iteration:
        case None:
            return "-"
        case (tuple() as outer, tuple() as reduced):
            return _nest(outer) + (f" reducing {_nest(reduced)}" if reduced else "")
        case (numel, rnumel):
            return f"{numel} elements" + (f" reducing {rnumel}" if rnumel != 1 else "")
    return str(member.iteration)


def relation_text(row: SharedBuffer, facts: PairFacts) -> str:
    """`op1 writes, op3 reads`: what two nodes do with a buffer."""
    match row.relation.split("_"):
        case ["first", first_does, "second", second_does]:
            members = ((facts.first, first_does), (facts.second, second_does))
        case ["second", second_does, "first", first_does]:
            members = ((facts.second, second_does), (facts.first, first_does))
        case words:
            return " ".join(words)
    return ", ".join(f"{member.name} {_DOES.get(verb, verb)}" for member, verb in members)


def access_text(dep: Dep) -> str:
    """`768*c0 + c1 over c0: 1024, c1: 768`: an access as the IR has it."""
    match dep:
        case MemoryDep(index=index, ranges=ranges, mode=mode):
            over = ", ".join(f"{name}: {size}" for name, size in ranges)
            return f"{index}{f' over {over}' if over else ''}{f' ({mode})' if mode else ''}"
        case StarDep(mode=mode):
            return f"whole buffer{f' ({mode})' if mode else ''}"
    return "order only"


def _nest(dims: tuple[Dim, ...]) -> str:
    return " x ".join(map(str, dims)) or "1"
