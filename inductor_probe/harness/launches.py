"""Launches: what each kernel gets inside the wrapper, and what is timed against what."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

from inductor_probe.harness.bench import Bench, replaced
from inductor_probe.harness.inputs import clone
from inductor_probe.harness.timing import Subject

Pair: TypeAlias = "tuple[Subject, Subject | None]"
OPERATORS = "the graph, operator by operator"  # it is no eager: operators were decomposed


def call_pairs(bench: Bench, inputs: list[Any], right: set[str], *, eager: bool = True) -> Iterator[Pair]:
    """Pair the graph with the pristine call, and that with each right variant of it, on the same inputs."""

    def caller(title: str, run: Callable[..., object]) -> Subject:
        return Subject(title, lambda values: lambda: run(list(values)), inputs)  # a call empties its list

    call, variants = caller("Compiled call", bench.namespace["call"]), {*bench.variants("call")} & right
    if eager and bench.aten_graph is not None:
        yield caller(OPERATORS, partial(lambda graph, values: graph(*values), bench.aten_graph())), call
    elif not variants:
        yield call, None
    yield from ((call, caller(name, bench.namespace[name])) for name in sorted(variants))


def kernel_pairs(bench: Bench, kernel: str, inputs: list[Any], right: set[str]) -> Iterator[Pair]:
    """Pair each launch of a kernel with that of its right copies, on what it gets in the wrapper."""
    recorder = Recorder(bench.namespace[kernel])
    with replaced(bench.namespace, {kernel: recorder}):
        bench.run("call", clone(inputs))
    if any(isinstance(arg, ctypes.c_void_p) for args, _ in recorder.launches for arg in args):
        print(f"{kernel} is not timed alone: it is passed raw pointers, which probe bench-kernel follows")
        return
    names = [kernel, *sorted({*bench.variants(kernel)} & right)]
    for number, values in enumerate(recorder.launches, 1):
        suffix = " alone" if len(recorder.launches) == 1 else f" alone #{number}"
        base, *copies = (Subject(name + suffix, binder(bench.namespace[name]), values) for name in names)
        yield from ((base, copy) for copy in copies or (None,))


def binder(kernel: Any) -> Callable[[Any], Callable[[], Any]]:
    """Return what makes a function that launches `kernel` from arguments: C++ by a call, Triton by `run`."""
    return lambda values: partial(getattr(kernel, "run", kernel), *values[0], **values[1])


class Recorder:
    """Stands in for a kernel: passes launches on, and notes copies of their arguments."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.launches = kernel, list[Any]()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch the kernel, as its own call or `run` does."""
        self.launches.append(clone((args, kwargs)))
        return binder(self.kernel)((args, kwargs))()

    run = __call__

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)
