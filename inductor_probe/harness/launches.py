"""Launches: the calls of each kernel inside the wrapper, with the arguments it really gets."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from inductor_probe.harness.bench import Bench, Call, replaced
from inductor_probe.harness.inputs import clone
from inductor_probe.harness.timing import Subject

Pair: TypeAlias = "tuple[Subject, Subject | None]"


@dataclass
class Launch:
    """The arguments of one call of a kernel; `method` is `run` for Triton, None for C++."""

    method: str | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def values(self) -> tuple[Any, ...]:
        """Return its arguments, positional ones and those with names."""
        return self.args, self.kwargs

    def replayable(self) -> bool:
        """Tell whether the arguments outlive the wrapper: raw pointers do not."""
        return not any(isinstance(arg, ctypes.c_void_p) for arg in self.args)

    def starter(self, kernel: Any) -> Callable[[Any], Call]:
        """Return what makes a function that launches `kernel` from its arguments: see `values`."""
        start = getattr(kernel, self.method) if self.method else kernel
        return lambda values: partial(start, *values[0], **values[1])


class Recorder:
    """Stands in for a kernel: passes calls on and notes them, with copies of their arguments."""

    launch: Any = Launch

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.launches: list[Any] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what calling a C++ kernel does."""
        self.launches.append(self.launch(None, *clone((args, kwargs))))
        return self.kernel(*args, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Do what `run` of a Triton kernel does."""
        self.launches.append(self.launch("run", *clone((args, kwargs))))
        return self.kernel.run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


def record(bench: Bench, entry: str, name: str, inputs: list[Any], recorder: Any = Recorder) -> list[Any]:
    """Run the wrapper `entry` on copies of `inputs` and return the launches of kernel `name` in order."""
    recorded = recorder(bench.namespace[name])
    with replaced(bench.namespace, {name: recorded}):
        bench.run(entry, clone(inputs))
    return list(recorded.launches)


def call_pairs(bench: Bench, inputs: list[Any], right: set[str]) -> Iterator[Pair]:
    """Pair eager with the pristine call, and that with each right variant of it, on the same inputs."""

    def caller(title: str, run: Callable[..., object]) -> Subject:
        return Subject(title, lambda values: lambda: run(list(values)), inputs)  # a call empties its list

    call, variants = caller("Compiled call", bench.namespace["call"]), [*{*bench.variants("call")} & right]
    if bench.aten_graph is not None:
        graph = bench.aten_graph()
        yield caller("Eager (aten graph)", lambda values: graph(*values)), call
    elif not variants:
        yield call, None
    yield from ((call, caller(name, bench.namespace[name])) for name in sorted(variants))


def launch_pairs(
    bench: Bench, kernel: str, launches: list[Any], copies: Mapping[str, list[Any]]
) -> Iterator[Pair]:
    """Pair each launch of a kernel with that of its copies, on the arguments that each got."""
    for number, launch in enumerate(launches):
        suffix = " alone" if len(launches) == 1 else f" alone #{number + 1}"
        base = Subject(kernel + suffix, launch.starter(bench.namespace[kernel]), launch.values())
        for copy, copied in copies.items():
            values = base.values if copied[number] is launch else copied[number].values()
            yield base, Subject(copy + suffix, launch.starter(bench.namespace[copy]), values)
        if not copies:
            yield base, None
