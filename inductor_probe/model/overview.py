"""An overview of a program: what its call takes, where the time goes, what cost most, what to try."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.call_parts import Side
from inductor_probe.model.codec import written
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.compile_time import CompileSummary
from inductor_probe.model.decomposed import Figure, LoopWork
from inductor_probe.model.interruption import Interruption
from inductor_probe.model.output import Output

Basis: TypeAlias = Literal["time", "bound", "bytes", "none"]
"""What shares are of: the time of a call, as it was measured; the least time that each kernel can take on the
GPU; the bytes that kernels read and write, which bound their time from below, too; nothing, where none of
these is known."""


class OverviewPart(Struct, frozen=True):
    """A part of a call.

    Attributes:
        name: of a kernel, a loop nest, a library function, or of what the host does.
        share: of the call; see `Basis`. time: in seconds, of `bound` the least. bytes: read and written.
        graph: that it is in; empty for what is around graphs. nodes: scheduler nodes that it runs.
        lines: of the user's program (`model.py:12`), three at most.
        slow: operations of a loop nest that is far from what this machine copies, slow ones first.
    """

    name: str
    share: float
    time: float | None = None
    bytes: int | None = None
    graph: str = ""
    nodes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()


class OverviewCost(Struct, frozen=True):
    """A missed optimisation, and what it is about.

    Attributes:
        subject: node, pair, buffer or kernel. cause: the code; `text`: the decision and its cause, `short` in
            a few words.
        share: of the call in what it is about, where several are alike in all of it; see `Basis`. None where
            that is not known. time: in seconds.
        graph: that it is in. alike: how many decisions have this cause, this one among them.
    """

    subject: str
    cause: str
    text: str
    short: str
    share: float | None = None
    time: float | None = None
    graph: str = ""
    alike: int = 1


class OverviewIdea(Struct, frozen=True):
    """What to try.

    Attributes:
        command: that compiles it so, checks it and times it.
        at_most: the share of the call that it can gain; None where nothing was timed.
        text: what it turns.
    """

    command: str
    at_most: float | None
    text: str


class DecomposedOperator(Struct, frozen=True, rename={"try_": "try"}):
    """An operator that inductor decomposed, and eager runs by a kernel of a library.

    Attributes:
        name: `aten.grid_sampler_2d`. share: of the call in the loops that compute it; None where not timed.
        seconds: in these loops; eager: of the operator. None where not timed.
        others: operators that are computed in the same loops: what is said of these holds for all of them.
            others_eager: seconds of those in eager.
        own: the share of eager's time of it in its own code, without the operators `below` it; None where
            not measured. capability: for which vectors ATen chose its kernels.
        figures: both sides. works: its loops, those that take longest first. Both were asked for, or are
            empty, as the next are.
        try_: changes of inductor's decisions about these loops, what can gain most first. tries: how many in
            all. tried: of these in this run. gain: the best of them, as a ratio of times; None where none is.
    """

    name: str
    share: float | None
    seconds: float | None
    eager: float | None = None
    others: tuple[str, ...] = ()
    others_eager: float = 0.0
    own: float | None = None
    below: tuple[str, ...] = ()
    capability: str = ""
    figures: tuple[Figure, ...] = ()
    works: tuple[LoopWork, ...] = ()
    try_: tuple[OverviewIdea, ...] = ()
    tries: int = 0
    tried: int = 0
    gain: float | None = None

    @property
    @written
    def ratio(self) -> float | None:
        """The time of its loops by eager's for all that they compute; None where either is not known."""
        return self.seconds / (self.eager + self.others_eager) if self.seconds and self.eager else None


class OverviewOutput(Output, frozen=True, kw_only=True, rename={"try_": "try"}):
    """What to do about a program, in short.

    Attributes:
        run: its folder.
        basis: what shares are of.
        call, eager: seconds of a call of the compiled callable, and of the same before torch.compile. `call`
            is of the graphs alone where the callable could not be called; None where nothing was measured.
        name: of the callable, or the graph that was timed in its place. comparison: of both.
        threads: of torch. device: `cpu` or `cuda`. side: whose parts these are, the host's or the GPU's.
        busy: seconds of a call that a GPU works; None on a CPU.
        parts: the largest, by share. costs: missed optimisations by the share of what they are about.
        try_: what can gain most first. tries: how many changes are offered in all, and `try_all` tries.
        operators: that inductor decomposed, and whose loops take much of the call; most first.
        interruptions: graph breaks and recompiles, the most frequent first.
        compiling: what the compiles took in the dump; None where torch wrote no log.
        failed: compiles that failed. wrong: what computes other values.
        left_out: what was not looked at, and why.
    """

    verb: Literal["overview"] = "overview"
    run: Path
    basis: Basis
    call: float | None = None
    eager: float | None = None
    name: str = ""
    comparison: Comparison | None = None
    threads: int | None = None
    device: str = ""
    side: Side = "host"
    busy: float | None = None
    parts: tuple[OverviewPart, ...] = ()
    costs: tuple[OverviewCost, ...] = ()
    try_: tuple[OverviewIdea, ...] = ()
    tries: int = 0
    try_all: str = ""
    operators: tuple[DecomposedOperator, ...] = ()
    interruptions: tuple[Interruption, ...] = ()
    compiling: CompileSummary | None = None
    failed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
