"""The sentence of each remark, and repeated ones folded into one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from inductor_probe.catalogue.templates import MOST_SUBJECTS, fill, listed, subjects
from inductor_probe.harness.remarks import MISSING_CONSTANT
from inductor_probe.harness.remarks import SENTENCES as HARNESS_WORDS
from inductor_probe.model.remark import Number, Remark, by_cost
from inductor_probe.report.units import bytes_text, counted, duration
from inductor_probe.report.words.decisions import short_cause
from inductor_probe.report.words.layouts import format_words
from inductor_probe.report.wrapping import shorten

_Words: TypeAlias = "str | Callable[[dict[str, Any]], str]"
"""A template, or a function that chooses or completes one."""


def _argument_type(values: dict[str, Any]) -> str:
    if "dtype" in values:
        return "{argument} is {type} and is passed {passed} of {dtype}"
    if str(values["type"]).startswith("*"):
        return "{argument} is a pointer ({type}) and is passed the number {passed}"
    return "{argument} is a number ({type}) and is passed the buffer {passed}"


def _underfilled(values: dict[str, Any]) -> str:
    tiles = values.get("tiles", 0)
    whole = "vector" if not tiles else "tile" if tiles == values["underfilled"] else "vector or tile"
    return (
        f"no {whole} is full in {{underfilled}} of {{nests:# loop nest}}[ ({{traffic}})]"
        "{cause|'; the dump does not record why'}"
    )


_KERNEL_WORDS: Mapping[str, _Words] = {  # on the page of another subject the kernel's name comes first
    "scalar-loops": (
        "{scalar} of {nests:# loop nest} {scalar:?is/are} scalar[ ({traffic})]"
        "{cause|'; the dump does not record why'}"
    ),
    "underfilled-loops": _underfilled,
    "int64-indices": "indices are int64[ ({traffic})]",
    "reduction-hint": "reduction hint {hint}[ ({traffic})]",
    "unaligned-pointers": (
        "{unaligned} of {of:# pointer} {unaligned:?is/are} not marked as aligned to 16 bytes in triton_meta"
        "[ ({traffic})]: {pointers:999}"
    ),
    "no-launch": "the wrapper does not launch it",
    "no-node": "no scheduler node is linked to it",
    "passed-twice": "it is passed {buffer} {times:# time}, and changes it in place",
    "folds-constants": "it folds constants when the package is loaded; only probe dump keeps the IR of that",
    "text-only": "kernels of the backend {backend} are not read: its text is shown, and what it is passed",
    "vectorised-loops": "{vectorised} of {nests:# loop nest} {vectorised:?is/are} vectorised",
    "reduction-kernel": "it is generated as {heuristic}, with the hint {hint}",
}
_LAUNCH_WORDS: Mapping[str, _Words] = {  # likewise, and before it the place of the launch
    "argument-count": "it takes {parameters:# argument}[ and {grid} for the grid], but is passed {passed}",
    "argument-type": _argument_type,
    "other-buffer": "{argument} is passed {buffer}, which its nodes do not {access}",
    "swapped-buffers": (
        "{argument} is passed {buffer} and {other_argument} {other_buffer}, "
        "but its nodes {access} {other_buffer} first: they may be swapped"
    ),
    "other-size": "{argument} is passed {passed}, but the kernel was generated for {compiled}",
    "block-too-small": (
        "{argument} is passed {passed}, but the kernel reduces at most {block}={limit} elements"
    ),
    "other-points": "it is passed {passed}, but {node} has numel {points} and rnumel {reduced}",
    "grid-size-missing": "its grid {grid} needs {argument}, which is not passed",
    "grid-too-large": "{sizes} needs more than {limit} blocks in y or z",
    "other-grid-blocks": (
        "its grid has {blocks:# block} in x, but {rows}x{columns} in tiles of {block_rows}x{block_columns} "
        "needs {needed}"
    ),
    "other-grid-batches": (
        "its grid has {blocks:# block} in y and z, but its output holds {batches:# matrix/matrices}"
    ),
    "other-grid-sizes": "its grid is computed from {grid}, but it is passed {passed}",
    "not-divisible": "triton_meta says that {argument} is divisible by {divisor}, but it is passed {passed}",
    "not-aligned": (
        "triton_meta says that {argument} is aligned to {alignment} bytes, "
        "but {passed} starts at byte {offset} of its storage"
    ),
    "int32-overflow": "{argument} is int32, but is passed {passed}",
    "int32-extent": "{argument} is indexed with int32, but {passed} spans {elements} elements",
}
_LAYOUT_WORDS: Mapping[str, str] = {
    "noncontiguous-access": (
        "{subjects} {does} {buffer} non-contiguously ([{accesses}, ]{how}[ along {where}]"
        "[; stride 1 along {unit_stride_loop}][, {unit_stride_steps} steps][; {cost}])"
        "[; {buffer} is {layout}, {subject} writes {written} as {written_layout}][ ({guess})]"
    ),
    "short-contiguous-runs": (
        "{subjects} {does} {buffer} in contiguous runs of {steps:# element} "
        "([{accesses}, ][{run_bytes} bytes ]along {loop}[; {cost}])[ ({guess})]"
    ),
    "layout-change": (
        "{subject} reads {buffer} as {layout} and writes {written} as {written_layout}[ ({cost})][ ({guess})]"
    ),
    "fused-nodes": "{nodes:# node} are fused into {subject}",
    "fallback": (
        "{many|subjects} {n:?falls/fall} back to {kernel|'a library kernel'}[ ({cost} read and written)]"
    ),
}
_NOT_FOLLOWED: Mapping[str, str] = {
    "isolated": "python -I, -E and -S look neither at PYTHONPATH nor for sitecustomize",
    "environment": "it was started without the environment of the script",
    "python-path": "its PYTHONPATH is not that of the script",
    "unknown": "its Python did not run what `probe dump` has put into PYTHONPATH",
}


def _command(text: str) -> str:
    """Return a command line as one line that is not long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_COMMAND else f"{line[:_LONGEST_COMMAND]} ..."


_LONGEST_COMMAND = 100
_STAGES: Mapping[str, str] = {
    "dynamo": "in dynamo",
    "backend": "in its backend, which is not inductor",
    "aot-autograd": "in AOTAutograd, which traces it for inductor",
    "decomposition": "in the decomposition of {about|'an operator'}",
    "inductor": "in inductor, before an FX node was lowered",
    "passes": "in inductor's passes over the FX graph",
    "lowering": "in the lowering of {about|'an FX node'}",
    "scheduling": "in the scheduler[, at {about}]",
    "code-generation": "in code generation[, at {about}]",
    "cpp-compiler": "in the C++ compiler[, given {about}]",
    "triton-compiler": "in the Triton compiler[, given {about}]",
    "loading": "while the generated code was loaded",
    "guards": "when its guards were made, so that its code is not used",
    "unknown": "at a place that is not known",
}
_LONGEST_NODE = 60
_RUN_WORDS: Mapping[str, _Words] = {
    "kernels-without-ir": (
        "{kernels:# launched kernel} {kernels:?has/have} no scheduler node: torch dumps only the IR of the "
        "last part of a graph with branches, loops or partitions; probe dump keeps that of each"
    ),
    "members-left-out": (
        "torch left the members of {nodes:# fused node} out of ir_post_fusion.txt, as it does where it fails "
        "to print one: they are read from the fused node's name and from ir_pre_fusion.txt"
    ),
    "input-left-out": (
        "torch left {names} out of the wrapper: inputs without a tensor that no node of the FX graph uses"
    ),
    "added-code": (
        "{lines:# line} of output_code.py, the first {first}, {lines:?is/are} not of the forms that torch "
        "prints: added by hand, it seems, and not read; the rest is"
    ),
    "compile-failed": (
        "[{process}: ]{whose} failed {in_stage}: {exception}[: {message}][; {where}][: {line}]"
        "[; torch ran it eagerly instead ({suppressed})][; {more:# further compile} failed]"
    ),
    "unfinished-compile": "its compile did not finish: files are missing or truncated",
    "cut-short": "{process} {ended}: later compiles, if any, are missing",
    "still-made": "process {pid}, which makes it, is still there: later compiles, if any, are missing yet",
    "recompile-limit": "recompile limit hit by {function}[ ({where})]: from then on it ran eagerly",
    "setting-overridden": (
        "{setting}={value} was not in force for {graphs:2}: the script, or an option of "
        "torch.compile, set it to {present}"
    ),
    "graph-break": "graph break[ at {where}]: {reason}[ ({repeated} times)]",
    "hook-failed": "not available on torch {torch}: {module}: {error}",
    "log-missing": "not available on torch {torch}: the log {artifact}",
    "recorder-failed": "{recorder} could not be recorded: {error}",
    "input-not-recorded": "input {input} of {graph} is a {type}: not recorded",
    "graph-not-opened": "{graph}: {facts} recorded of a graph that was not opened",
    "event-lost": "an event was cut short, and is lost",
    "log-line-lost": "a line of the log {artifact} is lost: {line}",
    "graph-not-computed": (
        "{graph} was not computed ({reason}): on the simulated GPU it returned zeros, and the script went on "
        "with them"
    ),
    "compile-refused": (
        "torch refused to compile a graph for {device} (compute capability {capability}): {reason}; name "
        "a later GPU, or another dtype"
    ),
    "simulated-gpu": (
        "{device} was simulated (--target {target}): its Triton kernels were generated, but neither compiled "
        "nor run; all that torch times to decide was a tie"
    ),
    "end-incomplete": "the end could not be recorded in full: {error}",
    "not-recorded": "{text}",
    "script-ended": "{process} {ended}",
    "graphs-in-cache": (
        "torch loaded its graphs from inductor's cache; the other verbs read them there: {path}"
    ),
    "empty-graphs": "its graphs compute nothing (views and identities), so inductor left their folders empty",
    "no-dump": (
        "no graph was dumped, and there is no probe.json that records why; consistent with a warm cache: "
        "`probe dump` gives each run an empty one"
    ),
    "ended-before-compile": "{process} {ended} before inductor compiled anything",
    "other-backend": (
        "dynamo compiled {frames:# graph}, none with inductor; consistent with another backend in the script"
    ),
    "ran-eagerly": "everything ran eagerly: dynamo gave up on every function",
    "none-followed-compiled": lambda values: (
        "nothing was compiled in the processes that could be followed; what "
        f"{counted(int(values['others']), 'other')} compiled is not known ({_command(values['names'])}), "
        f"since {_NOT_FOLLOWED[str(values['why'])]}"
    ),
    "compiled-before": (
        "nothing was compiled in the block: what was compiled before it is not compiled again, and a "
        "function that torch.compile returned compiles when it first runs"
    ),
    "no-frame": "nothing was compiled: the function computes nothing that dynamo hands to a compiler",
    "nothing-compiled": (
        "nothing was compiled: torch.compile was not called, or the function it returned never ran"
    ),
}
_DUMP_WORDS: Mapping[str, _Words] = {
    "ranks-same": (
        "{ranks} compiled the same graphs ({graphs}): same kernels, same collectives in the same order"
    ),
    "ranks-differ": (
        "{first} and {second} differ first in {what} {place}[ of {graph}]: {a|'none'} and {b|'none'}"
    ),
    "process-ended": lambda values: f"{values['process']} {ended(values)}",
    "idle-rank": "{process} compiled nothing",
    "not-followed": lambda values: (
        f"{values['process']} ({_command(values['command'])}) loaded torch and could not be followed, since "
        f"{_NOT_FOLLOWED[str(values['why'])]}; "
        + (
            "its graphs are what torch wrote by itself, without logs and decisions"
            if values.get("graphs")
            else "what it compiled is not known"
        )
    ),
    "run-missing": "{process} compiled graphs, and its run is not beside this one: {run|'it has none'}",
}
_ABOVE = "{share:.0%} of the measured copy bandwidth: "
_NOT_SHOWN = (
    "no kernel does that, so that our {what}, our time or our measurement of the machine is wrong; no rate "
    "is shown"
)
_ABOVE_MATMUL = "{share:.0%} of the measured matmul rate: "
_BELOW = "under 1% of the measured copy bandwidth: "
_RATE_WORDS: Mapping[str, str] = {  # by the likeliest reason, which nobody recorded
    "above indirect": _ABOVE + "its loads are indirect and may read less than was counted: no rate is shown",
    "above last-cache": _ABOVE + "its data fit in the last-level cache, those of the copy did not",
    "above smaller-cache": _ABOVE
    + "its data fit in a smaller cache than those of the copy, or the machine was busy during the copy: no "
    "rate is shown",
    "above fewer-bytes": _ABOVE + _NOT_SHOWN.format(what="byte count"),
    "above flop-count": _ABOVE_MATMUL + _NOT_SHOWN.format(what="flop count"),
    "above fewer-products": _ABOVE_MATMUL
    + "convolutions of Winograd's kind take a quarter to a half of the multiplications that are counted, and "
    "this may be one: no rate is shown",
    "below indirect": _BELOW + "its loads are indirect: it may read less than was counted, or wait for each",
    "below arithmetic": _BELOW
    + "it may be bound by arithmetic, one thread or dependent steps, or move more than was counted",
    "below launch": _BELOW + "it takes {launch_us:.2g} us a launch, and starting it may be most of that",
}


def _of_kernel(words: str, values: Mapping[str, Any]) -> str:
    """Return a sentence about a kernel, with its name unless that is the variant of the remark."""
    name = "" if values["kernel"] == values["subject"] else f"{values['kernel']} "
    return name + words.format(**values)


_BENCH_WORDS: Mapping[str, _Words] = {
    "kernel-fault": lambda values: _of_kernel("{error} ({place})", values),
    "not-interpreted": lambda values: _of_kernel("not interpreted: {error} ({place})", values),
    "not-finished": lambda values: _of_kernel("stopped: {error} ({place})", values),
    "variant-not-compiled": "does not compile: output_code_bench.py:{line}: {error}",
    "bimodal-samples": (
        "{subject} runs at two speeds in process {process}: {rest:.0%} of its samples take {factor:.2f}x as "
        "long as the others"
    ),
    "drift": "drift of {change:.0%} within a process ({subject} became {slower}): affects both variants",
    "autocorrelation": "successive ratios are correlated: {autocorrelation:.2f} in process {process}",
    "processes-differ": "the ratio differs between processes ({ratios}): the interval includes that",
    "baseline-offset": "timed against itself, {subject} differs by {offset:.1%}: the interval includes that",
    "disturbance-shift": (
        "other programs ran during {disturbed} of {quads} measurements, which may hide {shift:.1%}: the "
        "interval includes that"
    ),
    "few-samples": (
        "a call of {subject} takes {call}, so that it was compared {rounds:# time} only"
        "[: differences below {half:.1%} are not found][: differences below {factor:.0f}x are not found]"
    ),
    "one-process": "only one process was run: at least {fewest} are needed[, about {seconds} s]",
    "budget-exceeded": "measuring took {measured}, longer than its part of the budget, {budget}",
    "guard-outside-margin": "compared with itself, {baseline} takes {low:.3f} to {high:.3f}x its own time",
    "disturbed-quads": "the machine is busy: other programs ran during {disturbed} of {quads} measurements",
    "processes-disagree": "processes disagree on which is faster",
    "too-few-quads": "needs about {seconds} s more, or more processes",
    "too-few-processes": "processes differ too much: about {processes} of them are needed",
    "too-many-processes": "processes differ too much: more than {processes} of them would be needed",
    "near-margin": "the ratio is too close to the margin to decide",
    "readings-differ": (
        "the ratio depends on which samples count, and on the side that is set up first, by up to {shift:.1%}"
    ),
    "kernels-exceed-call": (
        "timed one by one, kernels take {more:.0%} longer than the call that runs them all: in it they find "
        "their data in a cache, or the machine was busy; their times in the call are scaled to its own"
    ),
    "once-exceeds-call": (
        "in the one call that was looked into, {kernels} took {once}, and a call takes {call}: something "
        "else ran then, and these times are left out; --kernel NAME times one"
    ),
    "above-copy-rate": lambda values: _RATE_WORDS[f"above {values['reason']}"],
    "below-copy-rate": lambda values: _RATE_WORDS[f"below {values['reason']}"],
    "above-matmul-rate": lambda values: _RATE_WORDS[f"above {values.get('reason', 'flop-count')}"],
    "matmul-not-measured": "no matmul of {dtype} was measured: {error}",
    "new-pages": "in {slow} of {processes} processes each call is given {pages} new pages ({size} bytes), "
    "which the system clears first: most likely what a call frees goes back to the system there; the parts "
    "are those of the fastest process",
    "roofline-not-measured": "the roofline was not measured: {error}",
    "no-fork": "each measuring process imports torch again, as they cannot be forked: {reason}",
    "other-harness": (
        "the file has another version of the harness, and runs by that: delete it to have it written again"
    ),
    "process-lost": "a measuring process {how} while {doing}; what it had measured before counts",
}
_THROTTLED_BY = {
    "power_limit": "the power limit",
    "hardware_slowdown": "a hardware slowdown",
    "sync_boost": "another GPU that it is synchronised with",
    "software_thermal": "its temperature (by the driver)",
    "hardware_thermal": "its temperature (by hardware)",
    "power_brake": "the power supply",
    "thermal": "its temperature",
    "board_limit": "the board's limit",
    "reliability": "reliability",
}
_MACHINE_WORDS: Mapping[str, tuple[str, str]] = {  # what is wrong, and what to do about it
    "fixed-threads": (
        "--threads {threads} has no effect on {kernels}, generated for {fixed} threads",
        "dump with OMP_NUM_THREADS={threads} to generate kernels for as many",
    ),
    "more-threads-than-processors": (
        "{kernels}: {threads:# thread} on {processors:# processor} wait for each other, so that the time is "
        "not the kernel's",
        "{fewer_threads}",
    ),
    "cpu-quota": (
        "{kernels}: {threads:# thread}, but the control group has a quota of {quota:g} processors (cpu.max): "
        "once it is used up, all threads stop for the rest of the period[ of {period_ms:.0f} ms]",
        "{fewer_threads}",
    ),
    "busy-processors": (
        "other processes keep {busy:.1f} of {processors:# processor} busy: {busy_effect}",
        "wait until those are done[, or {fewer_if_several}]",
    ),
    "stolen-processors": (
        "the hypervisor took {stolen:.2f} of {processors:# processor} (steal time): another guest is busy",
        "time for longer, or on another machine",
    ),
    "varying-clocks": (
        "the governor {governors} changes clocks while kernels run",
        "`sudo cpupower frequency-set -g performance` keeps them constant",
    ),
    "gpu-not-readable": ("{reason}: throttling would go unnoticed", ""),
    "gpu-throttled": (
        "the GPU's clock is throttled by {throttled_by}[ ({mhz:g} of {max_mhz:g} MHz)]: times are too long",
        "",
    ),
    "gpu-was-throttled": (
        "the GPU's clock was throttled by {throttled_by} during the measurement: times are too long",
        "",
    ),
    "gpu-shared": (
        "{processes:# other process/other processes} {processes:?runs/run} on this GPU ({pids}): times "
        "include their work",
        "",
    ),
    "gpu-busy": ("the GPU was {busy:.0%} busy before anything was timed: something else runs on it", ""),
}


REMARK_WORDS: Mapping[str, _Words] = {
    **{code: text for texts in HARNESS_WORDS.values() for code, text in texts.items()},
    **_KERNEL_WORDS,
    **_LAUNCH_WORDS,
    **_LAYOUT_WORDS,
    **_RUN_WORDS,
    **_BENCH_WORDS,
    **_DUMP_WORDS,
    **{code: what for code, (what, _) in _MACHINE_WORDS.items()},
}
_FOLDED_NUMBERS = ("buffer", "written")
"""Numbers that are names: remarks that differ in nothing else share a line."""


def _subject(remark: Remark) -> str:
    """Return what a remark is about: `k` where comparisons call it `k alone`."""
    name = remark.subject.name
    return name.replace(" alone", "", 1) if remark.subject.type == "variant" else name


def _values(remark: Remark) -> dict[str, Any]:
    """Return the numbers of a remark, and what its template needs beside them."""
    values: dict[str, Any] = dict(remark.numbers)
    names, cost = remark.subjects, None if remark.cost is None else bytes_text(remark.cost)
    values |= {"subject": _subject(remark), "subjects": subjects(remark), "n": len(names), "cost": cost}
    if cost:
        values["traffic"] = f"kernel{' reads and writes' if len(names) == 1 else 's read and write'} {cost}"
    if remark.code == "fused-nodes":  # its name has the names of all: of a foreach node, a hundred
        values["subject"] = shorten(remark.subject.name, _LONGEST_NODE)
    if remark.code in _LAYOUT_WORDS:
        values |= _layout_values(remark, values)
    elif remark.code == "compile-failed":
        values |= _failure_values(remark, values)
    elif remark.code in _MACHINE_WORDS:
        values |= _machine_values(remark, values)
    elif remark.decisions:
        causes = dict.fromkeys(map(short_cause, remark.decisions))
        values["cause"] = f": {listed(tuple(causes), MOST_SUBJECTS)}"
    elif "outcome" in values:
        values["ended"] = ended(values)
        values["process"] = values.get("process") or _FORMS.get(values.get("form"), "the script")
    elif remark.code == "argument-count":
        values["grid"] = values.get("grid") or None
    elif remark.code == "unaligned-pointers":
        values["unaligned"] = len(values["pointers"])
    elif remark.code == "graph-break" and values["times"] != 1:
        values["repeated"] = values["times"]
    else:
        values |= _bench_values(remark, values)
    return values


def _failure_values(remark: Remark, values: Mapping[str, Any]) -> dict[str, Any]:
    node, target = values.get("node"), values.get("target")
    about = f"{node} ({target})" if node and target else node or target
    stage = fill(_STAGES[values["stage"]], {"about": about})
    of_graph = remark.subject.name if remark.subject.type == "graph" else None
    whose = values.get("function") or of_graph
    return {"in_stage": stage, "whose": f"the compile of {whose}" if whose else "a compile"}


def _bench_values(remark: Remark, values: Mapping[str, Any]) -> dict[str, Any]:
    if remark.code == "bimodal-samples":
        return {"rest": 1 - values["share"], "factor": values["high_s"] / values["low_s"]}
    if remark.code == "kernels-exceed-call":
        return {"more": values["kernels_s"] / values["call_s"] - 1}
    if remark.code == "few-samples":
        half = values.get("half")
        small = half is not None and half < 1
        return {
            "call": duration(values["call_s"]),
            "half": half if small else None,
            "factor": None if half is None or small else 1 + half,
        }
    if remark.code == "once-exceeds-call":
        return {"once": duration(values["once_s"]), "call": duration(values["call_s"])}
    if remark.code == "budget-exceeded":
        return {"budget": duration(values["budget_s"]), "measured": duration(values["measured_s"])}
    if remark.code == "drift":
        return {"change": abs(values["change"]), "slower": "slower" if values["change"] > 0 else "faster"}
    if remark.code == "processes-differ":
        return {"ratios": tuple(f"{ratio:.3f}" for _, ratio in remark.numbers)}
    if remark.code == "constant-missing":
        return {"reason": MISSING_CONSTANT[values["reason"]]}
    return {"launch_us": values["launch_s"] * 1e6} if "launch_s" in values else {}


def _layout_values(remark: Remark, values: Mapping[str, Any]) -> dict[str, Any]:
    direction, one = values.get("direction"), len(remark.subjects) == 1
    what, accesses = "store" if direction == "write" else "load", values.get("accesses")
    where, steps = values.get("loop"), values.get("steps")
    return {
        "does": f"{direction}s" if one else direction,
        "many": None
        if len(remark.subjects) <= MOST_SUBJECTS
        else f"{len(remark.subjects)} nodes ({subjects(remark)})",
        "accesses": counted(accesses, what) if isinstance(accesses, int) and accesses > 1 else None,
        "how": "indirect index" if values.get("pattern") == "indirect" else f"stride {values.get('stride')}",
        "where": where if where is None or steps is None else f"innermost loop {where}, {steps} steps",
        "layout": format_words(values.get("format"), values.get("dim_order")),
        "written_layout": format_words(values.get("written_format"), values.get("written_dim_order")),
        "guess": "inferred from the IR: no kernel is linked" if remark.knowledge == "inferred" else None,
    }


def _machine_values(remark: Remark, values: Mapping[str, Any]) -> dict[str, Any]:
    by_dump = values.get("set_by") == "dump"
    fewer = "dump with a smaller OMP_NUM_THREADS" if by_dump else "give a smaller --threads"
    reasons = [_THROTTLED_BY.get(name, name) for name in str(values.get("reasons")).split(", ")]
    if remark.code == "gpu-was-throttled":
        seconds = [(name.removesuffix("_s"), number) for name, number in remark.numbers]
        reasons = [f"{_THROTTLED_BY.get(name, name)} for {number:.2g} s" for name, number in seconds]
    return {
        "kernels": listed([subject.name for subject in remark.subjects], 2),
        "fixed": " or ".join(str(values.get("fixed")).split(", ")),
        "fewer_threads": fewer,
        "fewer_if_several": fewer if values.get("threads") != 1 else None,
        "busy_effect": (
            "times can be longer than on a quiet machine"
            if values.get("threads") == 1
            else f"{values.get('threads')} threads wait for each other, and can take a thousand times as long"
        ),
        "governors": " and ".join(str(values.get("governors")).split(", ")),
        "period_ms": values["period_s"] * 1000 if "period_s" in values else None,
        "throttled_by": " and ".join(reasons),
    }


_IN_PROCESS = ("function", "recording")
_FORMS: Mapping[object, str] = {
    "module": "the module",
    "command": "the command",
    "function": "the function",
    "recording": "the recorded block",
}
"""What was dumped, where it was no script: `ScriptForm`."""


def ended(numbers: Mapping[str, Number]) -> str:
    """`was interrupted by SIGTERM`, `was killed by signal 9`, `exited with status 1`; or that it is unknown.

    A process that ends by `os._exit` reports nothing, as one that a signal ends.
    """
    signal, status = numbers.get("signal"), numbers.get("exit_status")
    by = f"signal {signal}" if isinstance(signal, int) else signal
    if numbers.get("form") in _IN_PROCESS and numbers["outcome"] == "failed":
        return "ended with an exception"  # it was no process of its own, which has a status
    if numbers["outcome"] == "interrupted":
        unknown = "ended, and how was not recorded: by a signal, or os._exit"
        return f"was interrupted by {by}" if by else unknown if status is None else "was interrupted"
    return f"was killed by {by}" if by else f"exited with status {status}"


def failure_sentence(remark: Remark) -> str:
    """Return what a compile failed with, after the name of its graph where it had one by then."""
    text = sentence(remark)
    name = remark.subject.name
    return text if remark.subject.type != "graph" or name in text else f"{name}: {text}"


def _text(words: _Words, values: dict[str, Any]) -> str:
    return fill(words(values) if callable(words) else words, values)


def what_and_remedy(remark: Remark) -> tuple[str, str]:
    """Return what is wrong with the machine, and what to do about it; without a remedy that is empty."""
    what, remedy = _MACHINE_WORDS[remark.code]
    values = _values(remark)
    return fill(what, values), fill(remedy, values)


def sentence(remark: Remark, about: str | None = None) -> str:
    """Return what a remark says; one about the kernel `about` does not name it again."""
    try:
        text = _text(REMARK_WORDS[remark.code], _values(remark))
        if remark.code in _MACHINE_WORDS:
            text = "; ".join(filter(None, what_and_remedy(remark)))
    except (KeyError, ValueError, TypeError, IndexError):  # of a file whose remark has other values
        values = ", ".join(f"{name} {value}" for name, value in remark.numbers)
        return f"{remark.code} ({values})"
    on_other_page = remark.subject.type == "kernel" and remark.subject.name != about
    if on_other_page and (remark.code in _KERNEL_WORDS or remark.code in _LAUNCH_WORDS):
        place = f"{remark.evidence[0]}: " if remark.code in _LAUNCH_WORDS and remark.evidence else ""
        return f"{place}{subjects(remark)}: {text}"
    return text


def folded(remarks: Iterable[Remark], about: str | None = None) -> list[tuple[Remark, str]]:
    """Return each remark with the text of its line, hazards first, then most bytes at stake.

    The kernels and the layers of a network share one: `triton_poi_fused_add_0, triton_poi_fused_mul_1 and 3
    more: indices are int64`; `op3 reads buf1 non-contiguously (...); the same: op9 (buf7) and 9 more`.
    """
    groups: dict[tuple[object, ...], list[Remark]] = {}
    for remark in sorted(dict.fromkeys(remarks), key=by_cost):
        numbers = tuple((name, value) for name, value in remark.numbers if name not in _FOLDED_NUMBERS)
        causes = tuple((decision.cause, decision.operands) for decision in remark.decisions)
        key = (remark.code, remark.kind, remark.knowledge, remark.subject.type, numbers, causes)
        groups.setdefault(key, []).append(remark)
    merged = [(_merged(members), members) for members in groups.values()]
    merged.sort(key=lambda pair: by_cost(pair[0]))
    return [(remark, _line(remark, members, about)) for remark, members in merged]


def _merged(remarks: list[Remark]) -> Remark:
    """Return one remark about the subjects of all."""
    first, *others = remarks
    also = (*first.also, *(subject for remark in others for subject in remark.subjects))
    costs = [remark.cost for remark in remarks]
    return replace(first, also=also, cost=None if None in costs else sum(filter(None, costs)))


def _line(merged: Remark, remarks: list[Remark], about: str | None) -> str:
    first, *others = remarks
    if not others or merged.subject.type == "kernel":
        return sentence(merged, about)
    same = [f"{other.subject.name} ({other.number('buffer')})" for other in others]
    return f"{sentence(first)}; the same: {listed(same, MOST_SUBJECTS)}"
