"""A call of the user's compiled callable against what it was compiled from, timed in his own program."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.call_parts import CallParts
from inductor_probe.model.comparison import Comparison

OwnRemarkCode: TypeAlias = Literal[
    "differs", "draws", "varies", "other-form", "parameters-not-kept", "compiled-while-timed",
    "few-processes", "no-parts", "no-operators",
]  # fmt: skip
"""The outputs differ from eager's beyond rounding; eager draws random numbers, so that outputs are not
compared; it gives other values each time; outputs have other sizes or dtypes; there was no memory for copies
of parameters; something was compiled while it was timed; the script takes too long for more processes; what a
call consists of could not be timed, or which operators eager runs."""

NoOwnCallCode: TypeAlias = Literal[
    "no-script", "not-as-it-was", "simulated", "other-process", "ahead-of-time", "nothing-compiled",
    "not-called", "script-failed", "script-ended", "too-long", "raises", "memory", "not-asked",
]  # fmt: skip
"""Why there is none: the run names no script that may run here; the script or what it ran with changed; the
GPU was simulated; another process of the script compiled the graph; AOTInductor did; the script compiled
nothing this time, or not this graph; it failed; it ended its process; it did not reach a call in time; the
callable raises an exception, or memory is too small, when it is called again; it was not asked for."""


class OwnRemark(Struct, frozen=True):
    """What is to be known of the times. `numbers` of `differs`: `error`, relative to eager's outputs.

    `message` has what torch said.
    """

    code: OwnRemarkCode
    numbers: tuple[tuple[str, float], ...] = ()
    message: str = ""


class NoOwnCall(Struct, frozen=True):
    """Why the user's callable was not timed. `message` has what a person or a program said."""

    code: NoOwnCallCode
    message: str = ""


class _TimedCall(Struct, frozen=True, kw_only=True):
    name: str
    where: str | None
    script: str
    call: int
    after: int | None
    inputs: str
    threads: int
    backward: bool
    remarks: tuple[OwnRemark, ...] = ()


class OwnCallOfSide(_TimedCall, frozen=True, kw_only=True):
    """The call that was timed of one of two programs; for its attributes see `OwnCall`.

    `remarks` are of its own check against eager.
    """

    seconds: float


class OwnPair(Struct, frozen=True):
    """A compiled callable of one program against that of another, lap by lap, each in its own process.

    Attributes:
        comparison: the baseline is that of A.
        measured: seconds of timing, in all pairs of processes.
    """

    a: OwnCallOfSide
    b: OwnCallOfSide
    comparison: Comparison
    measured: float


class EagerOperator(Struct, frozen=True):
    """An operator that eager runs in a call of what was compiled, on a CPU; all its calls together.

    Attributes:
        name: without its overload: `aten.gelu`. calls: how often. functions: of torch that call it (`gelu`).
        seconds: the fastest of some calls, as torch.profiler has it, in proportion where eager's is shorter.
        own: the share of `seconds` in its own code, without the operators that it calls.
        below: those that it calls, each with its share of `seconds`, from 1 %.
        read, written: bytes of its operands and results; 0 of a view. allocated: bytes, results among them.
        without_vectors: seconds where ATen's kernels for AVX2 and AVX-512 were switched off; None where that
            was not tried.
    """

    name: str
    calls: int
    seconds: float
    own: float
    below: tuple[tuple[str, float], ...]
    read: int
    written: int
    allocated: int
    functions: tuple[str, ...] = ()
    without_vectors: float | None = None


class OwnCall(_TimedCall, frozen=True, kw_only=True):
    """A call of a compiled callable of the script, and of the same before `torch.compile`.

    Attributes:
        name: of the function, or the class of the module. where: where its code begins
            (`/home/u/model.py:12`); None where that is in torch.
        script: that it is called by. graphs: compile ids of what was compiled in calls of it (`0/0`).
        call: the number of the call of it that was timed, from 1. after: how many calls there had been when
            it was made again, on copies of its inputs; None where it was timed before it was made.
        instances: callables of the same code, such as layers that are compiled one by one.
        inputs: size, dtype and memory format of the largest tensor among its arguments.
        device: `cpu` or `cuda`. threads: of torch at that call.
        backward: forward and backward were timed together.
        changes: what a call changes, and was put back between laps: `arguments`, `parameters`, `buffers`,
            `tensors`, `gradients`, `objects`, `random numbers`.
        eager, compiled: seconds a call. comparison: of both, the baseline eager.
        processes: in each of which the script ran up to the call. reached_s: seconds that took, the longest.
        measured: seconds of timing, in all processes.
        parts: what the compiled call consists of.
        operators: that eager runs, in the order of their first calls; none where that was not looked at, as
            on a GPU. capability: for which vectors ATen chose its kernels (`AVX512`).
    """

    graphs: tuple[str, ...]
    instances: int
    device: str
    changes: tuple[str, ...]
    eager: float
    compiled: float
    comparison: Comparison
    processes: int
    reached_s: float
    measured: float
    parts: CallParts | None = None
    operators: tuple[EagerOperator, ...] = ()
    capability: str = ""
