"""A call of the user's compiled callable and of what it was compiled from, in his own process.

Both are called with the arguments of one call, and from the state in which that found parameters, buffers,
caches, gradients and random numbers: see `own_state`. Where the script runs its backward, forward and
backward are one call, with ones for gradients of the outputs.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from inductor_probe.harness.allocations import allocations
from inductor_probe.harness.budget import LONG_S
from inductor_probe.harness.call_parts import MOST_CALLS as MOST_MARKED
from inductor_probe.harness.call_parts import measure_call_parts
from inductor_probe.harness.eager_operators import eager_operators
from inductor_probe.harness.measure import SHORT_S, describe
from inductor_probe.harness.own_state import State, draw_otherwise
from inductor_probe.harness.quads import cpu_clock, time_long_calls, time_quads
from inductor_probe.harness.sides import Side
from inductor_probe.harness.timing import MOST_CALLS, MOST_DRIFTING, Subject

EAGER, COMPILED = "eager", "compiled"
GPU_LAP_S = 0.005  # of calls whose end is waited for once: waiting takes some 10 us
BURST_S, FEWEST_OF_BURST = 0.015, 3  # of calls that are as long as a lap
QUADS = 140  # calls of a side, and more, that six quads of bursts with their warm-up take
# Relative errors of whole outputs that rounding explains; kernels add up in another order than eager.
ROUNDING = {torch.float64: 1e-9, torch.complex128: 1e-9, torch.float32: 1e-3, torch.complex64: 1e-3}
ROUNDING_OF_SHORT = 3e-2  # of 16 bits and fewer
Facts = dict[str, Any]


def loop_clock(run: Callable[[], object], calls: int) -> float:
    """Call `run` so many times, and wait for the GPU at the end; return the seconds a call."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / calls


loop_clock.limits = (GPU_LAP_S, MOST_CALLS)  # type: ignore[attr-defined]


class StateRing:
    """The one place where the program's own data are: what a lap changed is put back behind it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.slots: list[Any] = [()]

    def restore(self, slot: int, changed: list[int]) -> None:
        """Put back what calls change, whatever `changed` says of arguments."""
        self.state.restore()


@dataclass
class OwnSide(Side):
    """One of the two callables; a lap of it has `most` calls at most, or is a burst of longer ones.

    The fastest of some calls is not what a program has that makes them one after the other: where one
    allocates megabytes, the system may clear pages for it in one call and not in the next (a U-Net in eager:
    5.8 ms, the fastest of ten 3.9). So a lap of calls that are as long as one is the median of a burst, after
    a call that gets its own data into the caches again.
    """

    most: int = MOST_CALLS
    burst: int = 1

    def calibrate(self, samples: list[float]) -> None:
        """Choose calls and laps of a block by what samples, in seconds a call, say."""
        super().calibrate(samples)
        self.calls = min(self.calls, self.most)
        if self.calls == 1:
            longest = int(BURST_S / max(statistics.median(samples), 1e-9))
            self.laps, self.burst = 1, max(FEWEST_OF_BURST, min(longest, MOST_DRIFTING))

    def lap(self, number: int) -> float:
        """Time some calls; return seconds a call. What they changed is put back before and after."""
        with eagerly(self.name == EAGER):
            if self.calls > 1:
                return super().lap(number)
            run, times = self.runs[0], list[float]()
            for place in range(self.burst + 1):
                if place and self.most == 1:
                    self.ring.restore(0, [])
                times.append(float(self.clock(run, 1)))
            self.ring.restore(0, [])
            return statistics.median(times[1:])


@contextmanager
def eagerly(eager: bool) -> Iterator[None]:
    """Let nothing that is compiled run compiled: parts of a model may be compiled by themselves."""
    if not eager:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


class OwnCall:
    """One call, as eager runs it and as compiled code does.

    Args:
        eager, compiled: both take `args` and `kwargs`.
        backward: time the backward, too, where outputs require gradients.
    """

    def __init__(
        self,
        eager: Callable[..., Any],
        compiled: Callable[..., Any],
        args: Any,
        kwargs: Any,
        *,
        backward: bool,
    ) -> None:
        self.args, self.kwargs = tree_map(_leaf, (args, kwargs))
        self.functions = {EAGER: eager, COMPILED: compiled}
        self.with_backward = backward and torch.is_grad_enabled()
        self.backward = False
        self.state = State(eager, self.args, self.kwargs)
        self.seconds: dict[str, float] = {}
        tensors = [*self.state.tensors, *filter(torch.is_tensor, tree_leaves((self.args, self.kwargs)))]
        self.device = next((str(tensor.device) for tensor in tensors if tensor.is_cuda), "cpu")

    def run(self, side: str) -> list[torch.Tensor]:
        """Call one of the two, and its backward; return the tensors that come out."""
        outputs = _tensors(self.functions[side](*self.args, **self.kwargs))
        self._run_backward(outputs)
        return outputs

    def _run_backward(self, outputs: list[torch.Tensor]) -> None:
        if self.with_backward and (differentiable := [one for one in outputs if one.requires_grad]):
            self.backward = True
            torch.autograd.backward(differentiable, [torch.ones_like(one) for one in differentiable])

    def check(self) -> list[tuple[str, Facts]]:
        """Call both from the same state, see what they change, and return what is to be said of it.

        - `differs`: error, of the compiled call's outputs relative to eager's; beyond rounding.
        - `draws`: eager gives other values with other random numbers, so that outputs are not compared.
        - `varies`: eager gives other values each time it is called.
        - `other-form`: compiled gives outputs of other sizes or dtypes, or another number of them.
        - `parameters-not-kept`: memory was too small for copies of parameters.

        Long calls that agree are not made again.
        """
        remarks: list[tuple[str, Facts]] = []
        if not self.state.parameters_kept:
            remarks.append(("parameters-not-kept", {}))
        results = {side: self._outcome(side) for side in (EAGER, COMPILED)}
        rounding = max((_rounding(one.dtype) for one in results[EAGER]), default=0.0)
        error = _error(results[COMPILED], results[EAGER])
        agree = error is not None and error <= rounding
        if agree and not self.backward and min(self.seconds.values()) > LONG_S:
            return remarks
        again, _ = self._outcome(EAGER), self._outcome(COMPILED)  # a backward was compiled by the first
        changed = [*self.state.changed]
        draw_otherwise()
        drawn = self._outcome(EAGER)
        self.state.changed = changed  # not the random numbers that were drawn here
        if error is None:
            remarks.append(("other-form", {}))
        elif (_error(again, results[EAGER]) or 0.0) > rounding:
            remarks.append(("varies", {}))
        elif (_error(drawn, results[EAGER]) or 0.0) > rounding:
            remarks.append(("draws", {}))
        elif error > rounding:
            remarks.append(("differs", {"error": error}))
        return remarks

    def _outcome(self, side: str) -> list[torch.Tensor]:
        """Call one of the two from the state as it was kept; return copies of what came out, and changed."""
        with eagerly(side == EAGER):
            begin = time.perf_counter()
            outputs = self.run(side)
            if self.device != "cpu":
                torch.cuda.synchronize()
            self.seconds[side] = min(self.seconds.get(side, 1e9), time.perf_counter() - begin)
        copies = [output.detach().clone() for output in outputs]
        self.state.see()
        return copies

    def sides(self, *, candidate_first: bool = False) -> dict[str, OwnSide]:
        """Return both as they are timed, calibrated; the second is bound first where that is asked for."""
        clock = cpu_clock if self.device == "cpu" else loop_clock
        most, made = self._most_calls(), {}
        for name in (EAGER, COMPILED)[:: -1 if candidate_first else 1]:
            run = self.caller(name)
            side = OwnSide(name, [run], StateRing(self.state), clock, [], most=most)  # type: ignore[arg-type]
            side.calibrate([side.block(0) for _ in range(3)])
            made[name] = side
        return made

    def _most_calls(self) -> int:
        """Return of how many calls a lap may be: where they change something, the next is another call."""
        if {kept.what for kept in self.state.changed} - {"random numbers"}:
            return 1 if self.backward or self.state.counts else MOST_DRIFTING
        return MOST_CALLS

    def parts(self, seconds: float, seed: int) -> Facts:
        """Time what the compiled call consists of: see `call_parts`."""
        backward = (lambda out: self._run_backward(_tensors(out))) if self.backward else None
        try:
            return measure_call_parts(
                self.functions[COMPILED],
                self.args,
                self.kwargs,
                seconds,
                random.Random(seed),  # noqa: S311 - no secret
                backward=backward,
                restore=self.state.restore,
                most=min(self._most_calls(), MOST_MARKED),
            )
        finally:
            self.state.restore()

    def operators(self, seconds: float) -> Facts:
        """Return what eager runs on a CPU, operator by operator, and for which vectors ATen chose kernels."""
        if self.device != "cpu":
            return {"capability": "", "operators": []}
        try:
            with eagerly(True):
                operators = eager_operators(lambda: self.run(EAGER), self.state.restore, seconds)
        finally:
            self.state.restore()
        return {"capability": torch.backends.cpu.get_cpu_capability(), "operators": operators}

    def memory(self) -> Facts:
        """Return what torch's allocator gives in a call of each side; see `allocations`."""
        found: Facts = {}
        for side in (EAGER, COMPILED):
            with eagerly(side == EAGER):
                found[side] = allocations(lambda side=side: self.run(side), self.device.partition(":")[0])  # type: ignore[misc]
            self.state.restore()
        return found

    def caller(self, side: str) -> Callable[[], object]:
        """Return what makes the call without arguments, with as little as possible around it."""
        function, args, kwargs = self.functions[side], self.args, self.kwargs
        if self.backward:
            return lambda: self.run(side)
        return lambda: function(*args, **kwargs)

    def time(self, seconds: float, precision: float, seed: int, *, candidate_first: bool) -> Facts:
        """Time both in turns for `seconds`; return a `Series`."""
        rng, expected = random.Random(seed), max(self.seconds.values())  # noqa: S311 - no secret
        gc.collect()
        begin = time.perf_counter()
        gc.disable()
        try:
            if expected > SHORT_S and QUADS * expected > seconds:
                subjects = tuple(
                    Subject(name, lambda values, name=name: self._alone(name), ())  # type: ignore[misc]
                    for name in (EAGER, COMPILED)
                )
                rings: Any = [StateRing(self.state), StateRing(self.state)]
                quads = time_long_calls(subjects, rings, seconds, expected, rng)  # type: ignore[arg-type]
            else:
                sides = self.sides(candidate_first=candidate_first)
                left = max(seconds - (time.perf_counter() - begin), 0.0)
                quads = time_quads(sides[EAGER], sides[COMPILED], left, precision, rng)
        finally:
            gc.enable()
            self.state.restore()
        spent = time.perf_counter() - begin
        return {
            "baseline": EAGER,
            "candidate": COMPILED,
            "quads": [asdict(quad) for quad in quads],
            "spent": spent,
        }

    def _alone(self, side: str) -> Callable[[], object]:
        """Return what makes a long call, where entering `eagerly` does not count."""
        run = self.caller(side)

        def call() -> object:
            with eagerly(side == EAGER):
                return run()

        return call

    def facts(self) -> Facts:
        """Return what is known of the call and of the process."""
        return {
            "inputs": describe([self.args, self.kwargs]),
            "device": self.device.partition(":")[0],
            "threads": torch.get_num_threads(),
            "backward": self.backward,
            "changes": list(dict.fromkeys(kept.what for kept in self.state.changed)),
        }


def _leaf(value: Any) -> Any:
    """Return a tensor that was computed with gradients as one of its own: its past is not run again."""
    if isinstance(value, torch.Tensor) and value.requires_grad and not value.is_leaf:
        return value.detach().requires_grad_()
    return value


def _tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors in what a call returned: also in dataclasses and dicts of a library's own."""
    found: list[torch.Tensor] = []
    for leaf in tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            found.append(leaf)
        elif hasattr(leaf, "__dict__") and not callable(leaf):
            found += [one for one in tree_leaves(list(vars(leaf).values())) if isinstance(one, torch.Tensor)]
    return found


def _rounding(dtype: torch.dtype) -> float:
    inexact = dtype.is_floating_point or dtype.is_complex
    return ROUNDING.get(dtype, ROUNDING_OF_SHORT) if inexact else 0.0


def _error(values: list[torch.Tensor], expected: list[torch.Tensor]) -> float | None:
    """Return the largest error of an output relative to its size; None where forms differ."""
    if [(one.shape, one.dtype) for one in values] != [(one.shape, one.dtype) for one in expected]:
        return None
    errors = [0.0]
    for value, right in zip(values, expected, strict=True):
        wide = torch.complex128 if right.is_complex() else torch.float64
        try:
            a, b = value.to(wide), right.to(wide)
        except (RuntimeError, TypeError):  # a tensor that has no plain values
            continue
        same = (a == b) | (a.isnan() & b.isnan())
        distance, size = (a - b).masked_fill(same, 0), b.masked_fill(same & ~b.isfinite(), 0)
        norm = size.norm().item()
        errors.append(distance.norm().item() / norm if norm else float(distance.norm().item() > 0))
    return max(error if error == error else 1.0 for error in errors)  # noqa: PLR0124 - not a number
