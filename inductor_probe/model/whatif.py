"""Two ways to compile a graph: what differs, whether it is right, and how long both take; or many ways."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.model.bench import CALL, OTHER_CALL, BenchResult
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.decision import DecisionKind, Outcome
from inductor_probe.model.diff import DecisionChange, FactChange, GraphDiff
from inductor_probe.model.flip import Flip, FlipResult, instead
from inductor_probe.model.output import Output
from inductor_probe.model.own_call import NoOwnCall, OwnPair
from inductor_probe.model.span import Problem
from inductor_probe.model.timing import Variant

WHATIF_NAME = "probe_whatif.json"
"""In the folder of a run: the candidates that were tried against it, written after each."""

NotTimed: TypeAlias = Literal[
    "same-code", "same-as", "other-code", "no-code", "inputs-differ", "constants-differ", "not-run", "no-gpu"
]  # fmt: skip
"""Why two graphs are not timed: names and spelling aside their code is the same; that of B is the code of
another candidate, which was timed; B has other code, where only how it is called was to differ; one has none;
one could not take the inputs of the other; their constants are not the same; the code of both could not be
run; or this machine has no GPU to launch their kernels on."""

TrialCode: TypeAlias = Literal[
    "refused", "script-failed", "nothing-compiled", "no-partner", NotTimed, "not-turned", "wrong-values",
    "baseline-wrong", "not-compiled", "call-not-timed", "among-others", "around-code",
]  # fmt: skip
"""Why a candidate has its rank, where neither the times of the whole call nor the rank says it:

- by the dump: `refused`: it could not be dumped; `script-failed`: its script ended with an exception;
  `nothing-compiled`; `no-partner`: no graph of it computes what one of A does;
- by the code: as `NotTimed` says; `not-turned`: the code is that of A, as none of its flips was applied;
- when it was run: `wrong-values`: B computes something else; `baseline-wrong`: A itself does not compute what
  the graph does, so that nothing was timed; `not-compiled`: g++ or Triton refuse the code of B;
  `call-not-timed`: kernels were timed, and not the whole call; `among-others`: what it is about was timed
  in code in which others were turned as well, that have nothing to do with it, and took no less time;
- `around-code`: it changes how the code is called, which is not timed here;
"""

Rank: TypeAlias = Literal[
    "right", "gain", "no-change", "loss", "undecided", "wrong", "impossible", "dropped", "not-tried"
]  # fmt: skip
"""What came of a candidate in a graph.

- `right`: it computes what the graph does, where A does not.
- `gain`: right, and faster by more than the margin, in an interval that holds for all candidates at once.
- `no-change`: the same code, the same time (the verdict of the whole call is SAME), or shown not to be faster
  (any other verdict). `loss`: slower.
- `undecided`: looked at for too short a time. `not-tried`: not looked at; with a `run` it was compiled, and
  with the reason `no-gpu` a call on a machine with a GPU times it.
- `wrong`: it computes something else.
- `dropped`: what it is about takes less of a call than the margin (`Trial.at_most`): it was not compiled.
- `impossible`: torch or the compiler failed, or the graphs cannot be run against each other.
"""
RANKS: tuple[Rank, ...] = (
    "right", "gain", "undecided", "no-change", "loss", "wrong", "impossible", "not-tried", "dropped",
)  # fmt: skip
"""In the order in which they are shown."""


_OF_KERNELS: frozenset[DecisionKind] = frozenset(("vectorisation", "threads"))
"""Decisions about the loops of a kernel, which can be named after it: a value is realised, and no kernel."""
_AT_RUN_TIME = re.compile(
    "(OMP|GOMP|KMP|MKL|OPENBLAS|ONEDNN|DNNL|TBB|MALLOC|TCMALLOC|MIMALLOC|GLIBC|LD|ATEN|PYTORCH|CUDA|CUBLAS"
    "|CUDNN|NVIDIA|NCCL|HIP|HSA)_"
)
"""How variables begin that libraries read as code is loaded or run, and not inductor alone as it compiles."""


_AROUND = "inductor.triton.cudagraph"
"""How settings begin that change how compiled code is called, and not the code."""


def acts_at_run_time(variable: str) -> bool:
    """Whether a variable of the environment acts while compiled code runs: threads, allocator, libraries."""
    return _AT_RUN_TIME.match(variable) is not None


class Candidate(Struct, frozen=True):
    """A way to compile a script otherwise; all that it names holds at once.

    Attributes:
        settings: of torch (`inductor.cpp.simdlen`), with their values as text. knobs: of a scenario.
        variables: of the environment, for the script alone.
        flips: decisions that are turned by name.
    """

    settings: tuple[tuple[str, str], ...] = ()
    knobs: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    flips: tuple[Flip, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """As it is written on the command line: `--set`, `inductor.cpp.simdlen=256`."""
        pairs = [("--set", f"{name}={value}") for name, value in (*self.settings, *self.knobs)]
        pairs += [("--env", f"{name}={value}") for name, value in self.variables]
        flips = [word for flip in self.flips for word in flip.option.split(" ", 1)]
        return (*(word for pair in pairs for word in pair), *flips)

    def __str__(self) -> str:
        """What is different, short: `inductor.cpp.simdlen=256, OMP_NUM_THREADS=1`."""
        pairs = (*self.settings, *self.knobs, *self.variables)
        return ", ".join([*(f"{name}={value}" for name, value in pairs), *map(str, self.flips)])

    def in_graph(self, name: str) -> Candidate:
        """Return what of it is about a graph of that name; its flips do not name that any more."""
        here = (flip for flip in self.flips if flip.graph in (None, name))
        return replace(self, flips=tuple(replace(flip, graph=None) for flip in here))

    @property
    def not_timed_with(self) -> tuple[str, ...]:
        """Its variables that act while code runs, too: both sides are timed in one process, without them."""
        return tuple(name for name, _ in self.variables if acts_at_run_time(name))

    @property
    def acts_around_code(self) -> bool:
        """Whether it changes how code is called (CUDA graphs), which only a call of the user's shows."""
        return any(name.startswith(_AROUND) for name, _ in self.settings)

    @property
    def command(self) -> str:
        """Its options, as a shell takes them."""
        return shlex.join(self.words)

    def __or__(self, other: Candidate) -> Candidate:
        """Return both at once; where both set the same, this one has the last word."""
        return Candidate(
            settings=tuple({**dict(other.settings), **dict(self.settings)}.items()),
            knobs=tuple({**dict(other.knobs), **dict(self.knobs)}.items()),
            variables=tuple({**dict(other.variables), **dict(self.variables)}.items()),
            flips=instead(other.flips, self.flips),
        )


class Turned(Struct, frozen=True):
    """The decisions that a candidate names and that fell otherwise in B.

    Attributes:
        kinds: of decisions. outcome: what was decided in B; None where that is not one and the same.
        names: what they are about; of decisions about loops the kernels of B that changed, where those are
            no more.
    """

    kinds: tuple[DecisionKind, ...]
    outcome: Outcome | None
    names: tuple[str, ...]


class GraphWhatIf(Struct, frozen=True):
    """A graph of A and its partner in B.

    Attributes:
        diff: what changed between them, decisions of the compiler among it.
        result: both timed in turns on the inputs of A; names in it are those of A's bench file, in which
            `call_v3` is the compiled call of B, and `k_v3` the kernel of B that does the work of `k`. None
            where they were not timed.
        not_timed: why; None where they were.
        subjects: inputs or constants that differ, the candidate with the same code, or the simulated GPU,
            where that is why.
        message: why the code could not be run, where that is why.
        file: the program with the code of both, beside A's `output_code.py`; its samples are beside it.
        ran: for A and B, the file with the code that was timed, and its sha256.
        asked: the decisions that changed and that the candidate names, by a setting that governs them or by
            a flip; those of `diff` that are not among them changed as a consequence.
        overridden: settings that B was to have and that had another value as it was compiled, with that.
    """

    diff: GraphDiff
    result: BenchResult | None = None
    not_timed: NotTimed | None = None
    subjects: tuple[str, ...] = ()
    message: str = ""
    file: Path | None = None
    ran: tuple[tuple[Path, str], ...] = ()
    asked: tuple[DecisionChange, ...] = ()
    overridden: tuple[tuple[str, str], ...] = ()

    @property
    def correct(self) -> bool:
        """Whether A and B compute what the graph does, as far as they were run."""
        return all(variant.correct for variant in (self.result.variants if self.result else ()))

    @property
    def wrong_calls(self) -> tuple[Variant, ...]:
        """The whole calls that do not compute what the graph does, under the names `A` and `B`."""
        names = {"call": "A", OTHER_CALL: "B"}
        variants = self.result.variants if self.result else ()
        return tuple(
            replace(one, name=names[one.name]) for one in variants if one.name in names and not one.correct
        )

    @property
    def turned(self) -> Turned | None:
        """The decisions that were asked for, in short; None where none of them fell otherwise."""
        decisions = [change.b for change in self.asked if change.b is not None]
        if not decisions:
            return None
        outcomes = {decision.outcome for decision in decisions}
        kinds = tuple(dict.fromkeys(decision.kind for decision in decisions))
        kernels = [match.b[0] for match in self.diff.kernels if match.relation == "changed" and match.b]
        # a value that is a buffer on one side alone is called as in A
        named = (
            change.a if change.a and change.a.kind == "realization" else change.b for change in self.asked
        )
        subjects = dict.fromkeys("_".join(map("_".join, decision.subjects)) for decision in named if decision)
        of_kernels = _OF_KERNELS.issuperset(kinds) and 0 < len(kernels) <= len(subjects)
        return Turned(
            kinds=kinds,
            outcome=outcomes.pop() if len(outcomes) == 1 else None,
            names=tuple(kernels if of_kernels else subjects),
        )

    @property
    def call(self) -> Comparison | None:
        """The whole call of B against that of A; None where it was not timed."""
        pairs = self.result.comparisons if self.result else ()
        return next((one for one in pairs if (one.baseline, one.candidate) == (CALL, OTHER_CALL)), None)

    @property
    def kernel(self) -> Comparison | None:
        """The only kernel that was timed by itself in both; None where there are several, or none."""
        pairs = self.result.comparisons if self.result else ()
        alone = [one for one in pairs if " alone" in one.baseline and " alone" in one.candidate]
        return alone[0] if len(alone) == 1 else None


class TrialReason(Struct, frozen=True):
    """Why a candidate has its rank.

    Attributes:
        message: of `refused` and `not-run` why; of `script-failed` the exception, in the words of
            Python or torch, empty where the script printed nothing.
        subjects: inputs or constants that differ; of `no-gpu` the simulated GPU.
        flips: what became of those that were not turned.
        ratio: of `among-others`: of the time of what it is about, with it over without it. others: how many
            were turned at once with it.
        wrong: versions of the code with the very same wrong outputs; `A` and `B` are the whole calls. Of
            `baseline-wrong` the calls that are wrong: B is right where it is not among them.
    """

    code: TrialCode
    message: str = ""
    subjects: tuple[str, ...] = ()
    flips: tuple[FlipResult, ...] = ()
    wrong: tuple[Variant, ...] = ()
    ratio: float | None = None
    others: int = 0


class Trial(Struct, frozen=True):
    """What came of a candidate in a graph of A.

    Attributes:
        candidate: what is different. graph: the graph of A; None where it is all of them alike.
        call: the whole call of B against that of A, in the interval that the rank rests on; None where it was
            not timed. kernel: the only kernel that was timed by itself in both, where each candidate is timed
            once, and not for longer and longer.
        turned: the decisions that fell otherwise as the candidate asks; None where none did.
        looks: how often it was measured, each time for longer.
        reason: why it has its rank, where that and `call` do not say it.
        same_as: a candidate whose code is the same: all that was measured is of that one.
        run: B's folder. file: the program that timed it last.
        together: whether it is the gains of others at once.
        at_most: the share of a call that it could gain, by what it is about; None where that is not known.
        own: the program's own call with it against that of A, of the best gain; None where it was not timed.
    """

    candidate: Candidate
    rank: Rank
    graph: str | None = None
    call: Comparison | None = None
    kernel: Comparison | None = None
    turned: Turned | None = None
    looks: int = 0
    reason: TrialReason | None = None
    same_as: Candidate | None = None
    run: Path | None = None
    file: Path | None = None
    together: bool = False
    at_most: float | None = None
    own: Comparison | None = None

    @property
    def ratio(self) -> float | None:
        """Of times of the whole call, B over A; None where it was not timed."""
        return self.call.ratio if self.call else None


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """Return trials in the order in which they are shown: by rank, then the fastest first."""
    return sorted(trials, key=lambda trial: (RANKS.index(trial.rank), trial.ratio or 1.0))


class WhatIfOutput(Output, frozen=True, kw_only=True):
    """Two runs, graph by graph; or a run and many candidates.

    Attributes:
        a, b: folders of the runs; `b` is None where there were several candidates.
        candidate: what is different in B, as far as it was asked for here.
        compile_s: seconds that torch spent compiling A and B, once each with empty caches.
        environment: what was set otherwise in B.
        graphs: pairs of graphs that compute the same. only_a, only_b: names of graphs without a partner.
        not_timed_with: variables that were not the same while A and B were compiled, and act while code runs,
            too; both were timed as this command was started, so that the times do not show what they do then.
        trials: candidates by rank, where there were several. margin, threads: with which those were timed.
        summary: a sentence for each pair, or one for all candidates.
        own: the callables of both programs against each other, where graphs of them could not be. no_own: why
            they were not timed either.
    """

    verb: Literal["whatif"] = "whatif"
    a: Path
    b: Path | None = None
    candidate: Candidate | None = None
    compile_s: tuple[float | None, ...] = ()
    environment: tuple[FactChange, ...] = ()
    graphs: tuple[GraphWhatIf, ...] = ()
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    not_timed_with: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()
    margin: float | None = None
    threads: int | None = None
    summary: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    own: OwnPair | None = None
    no_own: NoOwnCall | None = None


class TrialsIndex(Struct, frozen=True):
    """What `WHATIF_NAME` holds.

    All was timed with the same `margin` and `threads`, kind of values (`inputs`), and symbolic `sizes`.
    """

    probe: str
    torch: str
    trials: tuple[Trial, ...]
    margin: float
    threads: int
    inputs: str = "random"
    sizes: tuple[tuple[str, int], ...] = ()
