"""Words for the user's own call: how long it takes against eager, what was timed, and why it was not."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.catalogue.templates import joined
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.own_call import (
    NoOwnCall,
    NoOwnCallCode,
    OwnCall,
    OwnPair,
    OwnRemark,
    OwnRemarkCode,
)
from inductor_probe.report.units import counted, duration
from inductor_probe.report.words.remarks import sentence

_RATIO_FROM = 1.5
_PLACES = {1: "1st", 2: "2nd", 3: "3rd"}


def own_sentence(own: OwnCall, margin: float) -> str:
    """Return what the call of the user's callable takes, against eager, without a full stop.

    `UNet (unet.py:41) is 1.20x as fast as eager (1.18 to 1.22x) with 2 threads: 3.24 ms a call, eager 3.89`.
    """
    return call_sentence(own.comparison, own_name(own), own.threads, own.compiled, own.eager, margin)


def call_sentence(  # noqa: PLR0917 - what the sentence has
    compared: Comparison, name: str, threads: int, compiled: float, eager: float, margin: float = 0.01
) -> str:
    """Return what `own_sentence` says, of a call of any name; times are seconds."""
    text = _against(compared, name, "eager", f" within {margin * 100:.3g} %")
    both = f"{duration(compiled)} a call, eager {duration(eager)}"
    return f"{text}, with {counted(threads, 'thread')}: {both}"


def _against(compared: Comparison, call: str, baseline: str, within: str = "") -> str:
    ratio, low, high = compared.ratio, compared.low, compared.high
    match compared.verdict:
        case "FASTER":
            return f"{call} is {1 / ratio:.2f}x as fast as {baseline} ({1 / high:.2f} to {1 / low:.2f}x)"
        case "SLOWER" if ratio < _RATIO_FROM:
            percent = f"{(low - 1) * 100:.1f} to {(high - 1) * 100:.1f} %"
            return f"{call} is {(ratio - 1) * 100:.1f} % slower than {baseline} ({percent})"
        case "SLOWER":
            return f"{call} takes {ratio:.2f}x as long as {baseline} ({low:.2f} to {high:.2f}x)"
        case "SAME":
            return f"{call} takes the same time as {baseline}{within}"
        case _:
            reason = f" ({sentence(compared.reason)})" if compared.reason else ""
            return f"no verdict for {call} against {baseline}{reason}"


def own_name(own: OwnCall) -> str:
    """Return what the user calls it, and where it is: `UNet (unet.py:41)`, with how many of it there are."""
    place = f" ({own.where.rpartition('/')[2]})" if own.where else ""
    several = f", one of {own.instances} alike" if own.instances > 1 else ""
    direction = "forward and backward of " if own.backward else ""
    return f"{direction}{own.name}{place}{several}"


def how_timed(own: OwnCall) -> str:
    """Return which call was timed, how often the script ran, and what was put back."""
    script = own.script.rpartition("/")[2]
    number = _PLACES.get(own.call, f"{own.call}th")
    facts = [
        f"{script} ran {counted(own.processes, 'time')} up to the {number} call of it"
        if own.after is None
        else f"{script} ran {counted(own.processes, 'time')}; its {number} call was made again on copies of "
        f"its inputs, after {counted(own.after, 'call')}"
    ]
    if own.inputs != "no tensor inputs":
        facts.append(own.inputs)
    if len(own.graphs) > 1:
        facts.append(f"{len(own.graphs)} graphs in a call")
    if own.changes:
        facts.append(f"put back between calls: {joined(list(own.changes))}")
    return ", ".join(facts)


_REMARKS: Mapping[OwnRemarkCode, str] = {
    "differs": "the compiled call gives other values than eager: {error:.1%} of the size of an output",
    "draws": "it draws random numbers: its values cannot be compared with those of eager",
    "varies": "eager gives other values each time: they cannot be compared",
    "other-form": "the compiled call returns tensors of other sizes or dtypes than eager",
    "parameters-not-kept": "there was no memory for copies of its parameters: they were not put back",
    "compiled-while-timed": "something was compiled while it was timed: the times are not of one code",
    "few-processes": "the script takes {seconds:.0f} s up to the call: it was run only {processes:.0f} times",
    "no-parts": "what a call consists of is not timed: {message}",
    "no-operators": "which operators eager runs is not known: {message}",
}


def own_remark(remark: OwnRemark) -> str:
    """Return what is to be known of the times."""
    return _REMARKS[remark.code].format(message=remark.message, **dict(remark.numbers))


_WHY: Mapping[NoOwnCallCode, str] = {
    "no-script": "{message}",
    "not-as-it-was": "{message}",
    "simulated": "its GPU was simulated",
    "other-process": "another process of the script compiled the graph",
    "ahead-of-time": "the graph was not compiled by torch.compile",
    "nothing-compiled": "the script compiled nothing when it was run again",
    "not-called": "the script did not compile this graph when it was run again",
    "script-failed": "the script failed when it was run again: {message}",
    "script-ended": "the script ended its process before the call",
    "too-long": "the script did not come to the call within {message} s",
    "raises": "the call cannot be made again: {message}",
    "memory": "there is no memory for copies of what it may change: {message}",
    "not-asked": "the script was not to be run",
}


def pair_sentence(own: OwnPair) -> str:
    """Return what the call of B takes against that of A, without a full stop."""
    direction = "forward and backward of " if own.b.backward else ""
    text = _against(own.comparison, f"{direction}{own.b.name} of B", "that of A")
    threads = f"with {counted(own.a.threads, 'thread')}"
    if own.a.threads != own.b.threads:
        threads += f" in A and {own.b.threads} in B"
    return f"{text}, {threads}: A {duration(own.a.seconds)} a call, B {duration(own.b.seconds)}"


def cost_sentence(own: OwnPair, change: str) -> str:
    """Return what the call takes with a change, against that without, without a full stop."""
    text = _against(own.comparison, f"{own.b.name} with {change}", "as it is")
    return f"{text}: {duration(own.a.seconds)} a call, {duration(own.b.seconds)} with it"


def how_pair_timed(own: OwnPair) -> str:
    """Return which calls were timed, and where."""
    calls = []
    for side, call in (("A", own.a), ("B", own.b)):
        number = _PLACES.get(call.call, f"{call.call}th")
        calls.append(f"{side} the {number} call in {call.script.rpartition('/')[2]} ({call.inputs})")
    processes = counted(len(own.comparison.process_ratios), "pair")
    return f"the compiled calls of both programs in turns, in {processes} of processes: {joined(calls)}"


def why_no_own_call(why: NoOwnCall, what: str = "") -> str:
    """Return why nothing is said of eager, or of `what`."""
    text = _WHY[why.code].format(message=why.message.replace("\n", "; "))
    return (
        f"{what} were not timed: {text}"
        if what
        else f"neither compared with eager nor looked into for guards: {text}"
    )
