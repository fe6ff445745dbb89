"""The options of the verbs that dump a script: `dump`, `debug`, `whatif`, `overview`, `accuracy` ..."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from inductor_probe.model.expectation import EXPECTATION_KINDS
from inductor_probe.model.flip import FLIP_KINDS, Flip, flip_of
from inductor_probe.options.fields import (
    LIST,
    PYTHON,
    Args,
    Budget,
    Cases,
    Count,
    CxxFlags,
    Imports,
    Inputs,
    Knobs,
    Margin,
    Out,
    Own,
    Script,
    Seconds,
    Simulated,
    Sizes,
    Target,
    Trust,
    Typed,
    Variables,
)

Flips: TypeAlias = Annotated[Sequence[str], Typed("subject")]
Expected: TypeAlias = Annotated[Sequence[str], Typed("text")]
OwnThreads: TypeAlias = Annotated[Annotated[int, Meta(ge=1, le=1024)], Typed(metavar="N")]
NamedScript: TypeAlias = Annotated[
    Script, Typed(text="A path, or the bare name of a script here or in the project's scenarios.")
]
ScriptArgs: TypeAlias = Annotated[Args, Typed(metavar="[-- ARGS]")]
AllCases: TypeAlias = Annotated[Cases, Typed(text="A case of the scenario; all of them if left out.")]
StdoutToStderr: TypeAlias = Annotated[bool, PYTHON, Typed(text="Keep the script's output off stdout.")]


class CandidateOptions(Struct, frozen=True, kw_only=True):
    """What is compiled otherwise: settings, variables, and decisions turned by name.

    Attributes:
        vectorise: C++: vectorise the loop nest that holds the node.
        scalar: C++: do not vectorise it.
        fuse: Fuse two nodes, where that is legal.
        no_fuse: Keep two nodes apart.
        layout: Lay a buffer out as channels_last, or contiguous.
        realize: Store the value of an FX node, which torch computes in its users.
        inline: Compute a value in its users, which torch stores.
        reduction_hint: INNER, OUTER, OUTER_TINY or DEFAULT.
        split: Do a reduction in N parts; 1 for no parts.
        persistent: Triton: hold all elements of a reduction in one tile.
        looped: Triton: reduce in a loop.
        index_dtype: Triton: int32 or int64 indices.
        threads: C++: threads of a loop nest.
    """

    knobs: Knobs = field(default_factory=dict)
    env: Variables = field(default_factory=dict)
    vectorise: Annotated[Flips, Typed(metavar="NODE")] = ()
    scalar: Annotated[Flips, Typed(metavar="NODE")] = ()
    fuse: Annotated[Flips, Typed(metavar="NODE,NODE")] = ()
    no_fuse: Annotated[Flips, Typed(metavar="NODE,NODE")] = ()
    layout: Annotated[Flips, Typed(metavar="BUFFER=ORDER")] = ()
    realize: Annotated[Flips, Typed(metavar="NAME")] = ()
    inline: Annotated[Flips, Typed(metavar="BUFFER")] = ()
    reduction_hint: Annotated[Flips, Typed(metavar="[BUFFER=]HINT")] = ()
    split: Annotated[Flips, Typed(metavar="[BUFFER=]N")] = ()
    persistent: Annotated[Flips, Typed(metavar="[NODE]", alone="")] = ()
    looped: Annotated[Flips, Typed(metavar="[NODE]", alone="")] = ()
    index_dtype: Annotated[Flips, Typed(metavar="[NODE=]TYPE")] = ()
    threads: Annotated[Flips, Typed(metavar="[NODE=]N")] = ()

    @property
    def flips(self) -> tuple[Flip, ...]:
        """The decisions to turn, in the order of their kinds.

        Raises:
            ProbeError: the text of one means nothing.
        """
        return tuple(flip_of(kind, text) for kind in FLIP_KINDS for text in _texts(self, kind))


def _texts(options: Struct, kind: str) -> Iterator[str]:
    """Yield what is said of a kind: in Python one text may stand for itself, and True alone."""
    value: Any = getattr(options, kind.replace("-", "_"))
    for text in (value,) if isinstance(value, (str, int)) else value:
        yield "" if text is True else str(text)


class DumpOptions(CandidateOptions, frozen=True):
    """How `probe dump` runs a script.

    Attributes:
        label: A name to find the run by.
        save_inputs: Keep every graph's real inputs, and constants of any size.
        record: Record what inductor decides, and why.
        form: What `script` is: a file; the name of a module, as for `python -m`; or a program, of which each
            Python that it starts is followed.
        output: A file for all that the script prints, on both streams.
    """

    script: NamedScript
    args: ScriptArgs = ()
    cases: AllCases = ()
    label: str | None = None
    save_inputs: bool = False
    record: bool = True
    target: Simulated | None = None
    out: Out | None = None
    form: Annotated[Literal["script", "module", "command"], PYTHON] = "script"
    stdout_to_stderr: StdoutToStderr = False
    output: Annotated[Path | None, PYTHON] = None


class DebugOptions(Struct, frozen=True):
    """Where `probe debug` stops in the compiler.

    Attributes:
        places: Stop there.
        subjects: Stop when the compiler decides on it.
        listen: Where the editor attaches; this machine's port 5678 if left out.
        pdb: Stop in this terminal instead, with pdb.
    """

    script: NamedScript
    args: ScriptArgs = ()
    cases: AllCases = ()
    knobs: Knobs = field(default_factory=dict)
    places: Annotated[Sequence[str], Typed("place", "PLACE", "--break")] = ()
    subjects: Annotated[Sequence[str], Typed("subject", "SUBJECT", "--break-on")] = ()
    listen: Annotated[str | None, Typed(metavar="[HOST:]PORT")] = None
    pdb: bool = False
    out: Out | None = None
    stdout_to_stderr: StdoutToStderr = False


class WhatifOptions(CandidateOptions, frozen=True):
    """What `probe whatif` compares, and how.

    Attributes:
        program: A script, or a run made before.
        runs: Two runs that are there already; nothing is dumped.
        others: What is set behind this is another candidate: --set X=1 --or --set X=2.
        try_all: Try each change that probe why offers, then the gains together.
        again: With --try-all of a run: what was tried before is tried again.
        budget: Measuring of each graph, with --try-all of everything: 500ms, 10s, 2m. [10s, of everything 5m]
        timed_threads: Threads of torch and OpenMP while both are timed.
        inputs: Both take random, zeros, sequential inputs, or the real ones of A.
    """

    program: Annotated[Target, Typed("script", "[SCRIPT|RUN")] = None
    args: Annotated[Args, Typed(metavar="[-- ARGS]]")] = ()
    runs: Annotated[tuple[Any, Any] | None, Typed(metavar="A B")] = None
    cases: Cases = ()
    target: Simulated | None = None
    others: Annotated[Sequence[CandidateOptions], Typed("candidates", flags="--or")] = ()
    try_all: bool = False
    again: bool = False
    budget: Seconds | None = None
    margin: Margin = 0.01
    timed_threads: Count = 1
    inputs: Annotated[Inputs, Typed(metavar="KIND")] = "random"
    sizes: Sizes = ()
    imports: Imports = ()
    trust: Trust = False
    out: Out | None = None


class ProgramOptions(Struct, frozen=True):
    """Which program it is about: how a script is dumped, where that is named.

    Attributes:
        program: A script, which is dumped first; a run or a graph; the latest run if left out.
    """

    program: Annotated[Target, Typed("script", "[SCRIPT|RUN|GRAPH")] = None
    args: Annotated[Args, Typed(metavar="[-- ARGS]]")] = ()
    cases: Cases = ()
    knobs: Knobs = field(default_factory=dict)
    env: Variables = field(default_factory=dict)
    out: Out | None = None


class OverviewOptions(ProgramOptions, frozen=True):
    """What `probe overview` measures.

    Attributes:
        budget: Measuring of everything: 10s, 1m.
        measure: Measure: without that, parts are ranked by what bounds the time of kernels.
        again: Measure what was measured before, too.
        operators: Compare what inductor decomposed with eager's kernels, figure by figure.
    """

    budget: Budget = 20.0
    measure: bool = True
    again: bool = False
    operators: bool = False
    imports: Imports = ()
    trust: Trust = False


class CompileTimeOptions(Struct, frozen=True):
    """Of what `probe compile-time` says where the time of compiling goes.

    Attributes:
        program: A script, which is run twice; a run; the latest run if left out.
        warm: Run a script again, with its caches.
        grow: Run a script with each of these numbers, as {n} in ARGS: what grows faster than the program?
    """

    program: Annotated[Target, Typed("script", "[SCRIPT|RUN")] = None
    args: Annotated[Args, Typed(metavar="[-- ARGS]]")] = ()
    cases: Cases = ()
    knobs: Knobs = field(default_factory=dict)
    env: Variables = field(default_factory=dict)
    warm: Annotated[bool, Typed(flags="--no-warm")] = True
    grow: Annotated[Sequence[int], LIST] = ()


class MemoryOptions(ProgramOptions, frozen=True):
    """Of what `probe memory` says which memory is taken when.

    Attributes:
        measure: Run the script again up to its call, for the peaks of both.
    """

    measure: Annotated[bool, Typed(flags="--no-measure")] = True
    trust: Trust = False


class AccuracyOptions(ProgramOptions, frozen=True):
    """How `probe accuracy` judges a program.

    Attributes:
        budget: Judging of calls; then of few.
        vary: With other sizes, memory and values, too.
        try_s: For changes that may make it right: settings, flips.
        tries: Look for what makes it right.
        cost: Time your call with each change that makes it right.
    """

    target: Simulated | None = None
    budget: Budget = 60.0
    vary: bool = False
    try_s: Annotated[Seconds, Typed(flags="--try")] = 10.0
    tries: Annotated[bool, Typed(flags="--no-try")] = True
    cost: bool = False
    trust: Trust = False


class ReduceOptions(ProgramOptions, frozen=True):
    """What `probe reduce` keeps while it leaves out the rest.

    Attributes:
        keep: What stays so, of each: wrong, fails, recompiles, 'expect: OPTIONS', 'not expect: OPTIONS',
            'slow: >=1.5 than eager', 'run: COMMAND'.
        output: The file for the smallest program so far. [the script's name with _small]
        graph: Dynamo's compile id of the graph, 0/0; the first one that shows it if left out.
        budget: Trying, in all.
        resume: Go on where a search was interrupted, or its budget was over.
        jobs: Programs that are tried at once; as many as there are cores if left out.
    """

    keep: Annotated[Sequence[str], Typed(metavar="PREDICATE")] = ()
    output: Annotated[Path | None, Typed(metavar="FILE", flags="-o --output")] = None
    graph: Annotated[str, Typed(metavar="ID")] = ""
    budget: Annotated[Seconds, Typed(text="Trying, in all.")] = 300.0
    resume: bool = False
    jobs: Count | None = None
    imports: Imports = ()
    trust: Trust = False


class BisectOptions(Struct, frozen=True):
    """Between what `probe bisect` looks for the change.

    Attributes:
        program: A script. --set and --env hold under each build; without builds they are looked through.
        keep: What is looked for, as `probe reduce` says it: wrong, fails, 'expect: OPTIONS' ...
        pythons: An interpreter with a build of torch; in order, two or more.
        torch: Releases, in order: 2.11,2.12; an environment is made of each, and stays.
        settings: A file of lines NAME=VALUE; of two, the first is what the other is compared with.
        runs: Which decisions of A, turned as they are in B, make the difference?
    """

    program: Annotated[Target, Typed("script", "[SCRIPT")] = None
    args: Annotated[Args, Typed(metavar="[-- ARGS]]")] = ()
    cases: Cases = ()
    keep: Annotated[Sequence[str], Typed(metavar="PREDICATE")] = ()
    pythons: Annotated[Sequence[Path], Typed("python", "PATH", "--python")] = ()
    torch: Annotated[Sequence[str], LIST] = ()
    knobs: Knobs = field(default_factory=dict)
    env: Variables = field(default_factory=dict)
    settings: Annotated[Sequence[Path], Typed(metavar="FILE")] = ()
    runs: Annotated[tuple[Any, Any] | None, Typed(metavar="A B")] = None
    out: Out | None = None
    trust: Trust = False


class ProfileOptions(ProgramOptions, frozen=True):
    """What `probe profile` measures.

    Attributes:
        budget: Measuring of each graph: 500ms, 3s, 1m.
        threads: Of torch and OpenMP. [1; of the script's call those that it has]
        inputs: Values of the inputs.
    """

    budget: Budget = 3.0
    threads: OwnThreads | None = None
    own: Own = True
    inputs: Inputs = "random"
    sizes: Sizes = ()
    imports: Imports = ()
    cxxflags: CxxFlags = ()
    trust: Trust = False


class ExpectOptions(ProgramOptions, frozen=True):
    """What `probe expect` expects of each graph.

    Attributes:
        kernels: So many generated kernels; calls of libraries are not among them.
        vectorised: C++: the loop nests of a node, a kernel, or of all are vectorised.
        fused: These nodes, or those that write these buffers, are in one fused node.
        layout: A buffer is channels_last, contiguous, transposed or padded.
        no_copy: Nothing is copied into another layout, or cloned.
        no_extern: No function of a library is called.
        no_fallback: No operator of ATen is called.
        reduction_hint: Triton: INNER, OUTER, OUTER_TINY or DEFAULT.
        index_dtype: Triton: indices are int32 or int64.
        bytes_at_most: All kernels read and write no more: 1500000, 1.5MB, 2MiB.
        cause: Torch decided so, of these nodes or of any: short-inner-range ...
        no_failed_compile: No compile failed; it is always expected.
        no_graph_break: Dynamo compiled it as one graph.
        no_recompile: Nothing was compiled again, as a guard failed.
        no_remark: No remark of this code: noncontiguous-access, int64-indices ...
        cudagraphed: CUDA graphs replay all of the graph, or a node, or a kernel.
    """

    kernels: Annotated[Expected, Typed(metavar="N")] = ()
    vectorised: Annotated[Expected, Typed(metavar="[NODE]", alone="")] = ()
    fused: Annotated[Expected, Typed(metavar="NODE+NODE")] = ()
    layout: Annotated[Expected, Typed(metavar="BUFFER=ORDER")] = ()
    no_copy: bool = False
    no_extern: bool = False
    no_fallback: bool = False
    reduction_hint: Annotated[Expected, Typed(metavar="[NODE=]HINT")] = ()
    index_dtype: Annotated[Expected, Typed(metavar="[NODE=]TYPE")] = ()
    bytes_at_most: Annotated[Expected, Typed(metavar="SIZE")] = ()
    cause: Annotated[Expected, Typed(metavar="[NODE=]CODE")] = ()
    no_failed_compile: bool = False
    no_graph_break: bool = False
    no_recompile: bool = False
    no_remark: Annotated[Expected, Typed(metavar="CODE")] = ()
    cudagraphed: Annotated[Expected, Typed(metavar="[NODE]", alone="")] = ()

    @property
    def expected(self) -> Mapping[str, Any]:
        """What is expected, as keywords of `Session.expect`."""
        values = {kind: getattr(self, kind.replace("-", "_")) for kind in EXPECTATION_KINDS}
        return {
            kind.replace("-", "_"): [text or True for text in value] if isinstance(value, tuple) else value
            for kind, value in values.items()
            if value not in ((), False)
        }
