"""What is timed against what: eager and the wrapper, launches of kernels, and variants of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from inductor_probe.harness.bench import Bench
from inductor_probe.harness.launches import Launch, record
from inductor_probe.harness.remarks import Remark, remark
from inductor_probe.harness.timing import Subject

Pair: TypeAlias = "tuple[Subject, Subject | None]"


def call_pairs(bench: Bench, inputs: list[Any], right: set[str]) -> Iterator[Pair]:
    """Pair eager with the pristine call, and that with each right variant of it, on the same inputs."""

    def caller(name: str, shown: str) -> Subject:
        entry = bench.namespace[name]
        return Subject(shown, lambda values: lambda: entry(list(values)), inputs)  # it empties its list

    call = caller("call", "Compiled call")
    variants = [each.name for each in bench.variants() if not each.swaps and each.name in right]
    if bench.aten_graph is not None:
        graph = bench.aten_graph()
        yield Subject("Eager (aten graph)", lambda values: lambda: graph(*values), inputs), call
    elif not variants:
        yield call, None
    for name in variants:
        yield call, caller(name, name)


def kernel_pairs(
    bench: Bench, kernel: str, inputs: list[Any], right: set[str], warn: Callable[[Remark], None]
) -> Iterator[Pair]:
    """Pair each launch of `kernel` with that of its right variants: on the same buffers, where they fit."""
    launches = record(bench, "call", kernel, inputs)
    if not all(launch.replayable() for launch in launches):
        warn(remark("foreign-pointers", kernel))
        return
    copies: dict[str, list[Launch]] = {}
    for variant in bench.variants():
        if kernel in variant.swaps and variant.name in right:
            entry = "call" + variant.name.removeprefix(kernel)
            own = record(bench, entry, variant.name, inputs) if entry in right else []
            if own and len(own) != len(launches):
                warn(remark("other-launch-count", variant.name, entry=entry, launches=len(own)))
            else:
                copies[variant.name] = own or launches
    for number, launch in enumerate(launches):
        suffix = " alone" if len(launches) == 1 else f" alone #{number + 1}"
        values = launch.values()
        base = Subject(kernel + suffix, launch.starter(bench.namespace[kernel]), values)
        for name, own in copies.items():
            theirs = values if launch.fits(own[number]) else own[number].values()
            yield base, Subject(name + suffix, launch.starter(bench.namespace[name]), theirs)
        ablations = bench.ablations_of(kernel)
        for name in ablations:
            yield base, Subject(name + suffix, launch.starter(bench.namespace[name]), values)
        if not copies and not ablations:
            yield base, None
