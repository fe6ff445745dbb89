"""One call with a stopwatch at each kernel: what is compared depends on how long each takes."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from inductor_probe.harness.bench import Bench, replaced
from inductor_probe.harness.budget import LONG_S
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.replays import Launch, Recorder

MOST_KERNELS = 10


@dataclass
class Profile:
    """One call: its seconds, and those of each launch of each kernel in it."""

    call: float = 0.0
    launches: dict[str, list[float]] = field(default_factory=dict)

    def longest(self, kernels: Iterable[str], named: Iterable[str]) -> list[str]:
        """Return the `MOST_KERNELS` longest of `kernels`, and those that have a variant in `named`.

        They stand in the order of `kernels`. Of eleven kernels the shortest is left out, unless it was
        edited: then its `k_v2` is in `named`.
        """
        names = list(kernels)
        ranked = sorted(names, key=lambda name: -sum(self.launches.get(name, ())))[:MOST_KERNELS]
        originals = {re.sub(r"_v\d+$", "", name) for name in named}
        return [name for name in names if name in ranked or name in originals]

    def expected(self, subject: str) -> float:
        """Return about how long one call of `k alone #2` takes; all but kernels count as the whole call."""
        launches = self.launches.get(subject.partition(" ")[0])
        return max(launches) if launches else self.call


class Stopwatch:
    """Stands in for a kernel: passes calls on, and times them to the end of what they enqueue."""

    def __init__(self, kernel: Any, seconds: list[float], on_cuda: bool) -> None:
        self.kernel = kernel
        self._seconds = seconds
        self._on_cuda = on_cuda

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what calling a C++ kernel does."""
        return self._timed(self.kernel, args, kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Do what `run` of a Triton kernel does."""
        return self._timed(self.kernel.run, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def _timed(self, start: Any, args: Any, kwargs: Any) -> Any:
        wait(self._on_cuda)
        begin = time.perf_counter()
        result = start(*args, **kwargs)
        wait(self._on_cuda)
        self._seconds.append(time.perf_counter() - begin)
        return result


def wait(on_cuda: bool) -> None:
    """Wait until a GPU has done what was enqueued."""
    if on_cuda:
        torch.cuda.synchronize()


def profile_call(
    bench: Bench, inputs: list[Any], recorded: Collection[str] = ()
) -> tuple[Profile, dict[str, list[Launch]]]:
    """Run the pristine call with a stopwatch at each kernel; it was run before.

    A long call is run this once, and the launches of the kernels in `recorded` are recorded in it: what that
    takes is known from a second stopwatch around the recorder, and does not count. A short one is run once
    more for its own time, without stopwatches.

    Of a short call each kernel counts as the faster of two: what else ran made one longer.

    Returns:
        its times, and the launches of the kernels that were recorded, where they can be repeated.
    """
    on_cuda = any(tensor.is_cuda for tensor in tensors_of(inputs))
    watches: dict[str, Any] = {}
    recorders: dict[str, Recorder] = {}
    profile, around = Profile(), list[float]()
    for name in bench.kernels:
        seconds = profile.launches.setdefault(name, [])
        watches[name] = Stopwatch(bench.namespace[name], seconds, on_cuda)
        if name in recorded:
            recorders[name] = Recorder(watches[name])
            watches[name] = Stopwatch(recorders[name], around, on_cuda)
    with replaced(bench.namespace, watches):
        profile.call = _seconds_of(bench, inputs, on_cuda)
    inside = sum(sum(profile.launches[name]) for name in recorders)
    profile.call -= max(sum(around) - inside, 0.0)
    if profile.call < LONG_S:
        again: dict[str, list[float]] = {name: [] for name in bench.kernels}
        stopwatches = {name: Stopwatch(bench.namespace[name], again[name], on_cuda) for name in bench.kernels}
        with replaced(bench.namespace, stopwatches):
            _seconds_of(bench, inputs, on_cuda)
        for name, seconds in profile.launches.items():
            seconds[:] = map(min, seconds, again[name])
        profile.call = _seconds_of(bench, inputs, on_cuda)
    launches = {name: list(recorder.launches) for name, recorder in recorders.items()}
    return profile, {
        name: rows for name, rows in launches.items() if all(launch.replayable() for launch in rows)
    }


def _seconds_of(bench: Bench, inputs: list[Any], on_cuda: bool) -> float:
    values = clone(inputs)
    wait(on_cuda)
    begin = time.perf_counter()
    bench.namespace["call"](values)
    wait(on_cuda)
    return time.perf_counter() - begin
