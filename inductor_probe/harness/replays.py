"""Launches as `probe` replays them: raw pointers followed, on the stream of the moment."""

from __future__ import annotations

import ast
import ctypes
import linecache
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from inductor_probe.harness import launches as core
from inductor_probe.harness.bench import Bench, Call, original_of, replaced
from inductor_probe.harness.code_copies import copies_of
from inductor_probe.harness.inputs import clone, tensors_of
from inductor_probe.harness.launches import Pair, binder, call_pairs
from inductor_probe.harness.remarks import Remark, remark
from inductor_probe.harness.timing import Subject

__all__ = ["Launch", "Pair", "call_pairs", "kernel_pairs", "record", "record_all"]

MOST_ALIKE = 4  # launches of a kernel that are all timed


class Memory(TorchDispatchMode):  # type: ignore[misc]
    """Notes what memory tensors take while it is active, so that a raw pointer can be told to be into it.

    Wrappers of torch before 2.3 pass `c_void_p(buf0.data_ptr())` to their C++ kernels.
    """

    def __init__(self, values: Any) -> None:
        super().__init__()
        self.storages: dict[int, torch.UntypedStorage] = {}
        self.note(values)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.note(result)
        return result

    def note(self, values: Any) -> None:
        """Note the memory of all tensors in `values`; it is kept, so that nothing else gets it."""
        for tensor in tensors_of(values):
            if tensor.layout == torch.strided:
                storage = tensor.untyped_storage()
                self.storages[storage.data_ptr()] = storage

    def pointed(self, argument: Any) -> Any:
        """Return the bytes that a raw pointer points to, to the end of their storage; all else as it is."""
        if isinstance(argument, ctypes.c_void_p) and argument.value:
            for start, storage in self.storages.items():
                offset, size = argument.value - start, storage.nbytes()
                if 0 <= offset < size:
                    return torch.empty(0, dtype=torch.uint8).set_(storage, offset, (size - offset,), (1,))
        return argument


@dataclass
class Launch:
    """The arguments of one call of a kernel; `method` is `run` for Triton, None for C++.

    At the positions in `pointers` it got raw pointers, and `args` has what they point to.
    """

    method: str | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    pointers: frozenset[int] = frozenset()

    def values(self) -> tuple[Any, ...]:
        """Return its arguments, positional ones and those with names."""
        return self.args, self.kwargs

    def replayable(self) -> bool:
        """Tell whether the arguments outlive the wrapper: raw pointers do not."""
        return not any(isinstance(arg, ctypes.c_void_p) for arg in self.args)

    def fits(self, other: Launch) -> bool:
        """Tell whether `other` has arguments of the same form: sizes, strides, dtypes and numbers."""

        def forms(launch: Launch) -> list[Any]:
            return [
                (leaf.size(), leaf.stride(), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf
                for leaf in tree_leaves(launch.values())
            ]

        return forms(self) == forms(other)

    def subject(self, title: str, kernel: Any) -> Subject:
        """Return what launches `kernel` on its arguments, to be timed: whenever bound, another copy of it."""
        copies = copies_of(kernel)

        def bind(values: Any) -> Call:
            return self.starter(next(copies))(values)

        return Subject(title, bind, self.values())

    def starter(self, kernel: Any) -> Callable[[Any], Call]:
        """Return what makes a function that launches `kernel` from its arguments: see `values`."""
        bind, start = binder(kernel), getattr(kernel, self.method) if self.method else kernel

        def bind_now(values: Any) -> Call:
            args, kwargs = values
            if self.pointers:  # whoever times this keeps the values
                pointers = {index: ctypes.c_void_p(args[index].data_ptr()) for index in self.pointers}
                return partial(start, *(pointers.get(index, arg) for index, arg in enumerate(args)))
            device = next((tensor.device.index for tensor in tensors_of(values) if tensor.is_cuda), None)
            if "stream" not in self.kwargs or device is None:
                return bind(values)
            named = {name: value for name, value in kwargs.items() if name != "stream"}

            def launch() -> object:  # on the stream of the moment: a CUDA graph captures on one of its own
                return start(*args, stream=torch._C._cuda_getCurrentRawStream(device), **named)

            return launch

        return bind_now


class Recorder(core.Recorder):
    """Stands in for a kernel: passes calls on and notes them, with copies of what their pointers point to."""

    def __init__(self, kernel: Any, memory: Memory | None = None) -> None:
        super().__init__(kernel)
        self.memory = memory

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what calling a C++ kernel does."""
        known = tuple(map(self.memory.pointed, args)) if self.memory else args
        pointers = frozenset(index for index, arg in enumerate(args) if known[index] is not arg)
        positional, named = clone((known, kwargs))
        self.launches.append(Launch(None, positional, named, pointers))
        return self.kernel(*args, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Do what `run` of a Triton kernel does."""
        self.launches.append(Launch("run", *clone((args, kwargs))))
        return self.kernel.run(*args, **kwargs)


def record(bench: Bench, entry: str, name: str, inputs: list[Any]) -> list[Launch]:
    """Run the wrapper `entry` on copies of `inputs` and return the launches of kernel `name` in order."""
    launches = _run_recorded(bench, entry, name, clone(inputs), None)
    if all(launch.replayable() for launch in launches):
        return launches
    values = clone(inputs)
    with Memory(values) as memory:
        return _run_recorded(bench, entry, name, values, memory)


def _run_recorded(
    bench: Bench, entry: str, name: str, inputs: list[Any], memory: Memory | None
) -> list[Launch]:
    recorder = Recorder(bench.namespace[name], memory)
    with replaced(bench.namespace, {name: recorder}):
        bench.run(entry, inputs)
    return recorder.launches


def record_all(bench: Bench, names: Iterable[str], inputs: list[Any]) -> dict[str, list[Launch]]:
    """Run `call` once and return the launches of several kernels; those that can be repeated as recorded."""
    recorders = {name: Recorder(bench.namespace[name]) for name in names}
    with replaced(bench.namespace, recorders):
        bench.run("call", clone(inputs))
    launches: dict[str, list[Launch]] = {name: recorder.launches for name, recorder in recorders.items()}
    return {name: rows for name, rows in launches.items() if all(launch.replayable() for launch in rows)}


def same_wrapper(bench: Bench, number: str) -> bool:
    """Tell whether `call_v2` (`number` is `_v2`) is `call` but for that number behind names.

    Then it passes its kernels what `call` passes: they need not be recorded in a call of their own.
    """
    lines, texts = linecache.getlines(bench.namespace.get("__file__", "")), dict[str, str]()
    for node in ast.parse("".join(lines)).body:
        name = str(getattr(node, "name", "") or getattr(getattr(node, "targets", [None])[0], "id", ""))
        texts[name] = "".join(lines[node.lineno - 1 : node.end_lineno])
    copies = [name for name in texts if name.endswith(number) and original_of(name) not in bench.kernels]
    return f"call{number}" in copies and all(
        re.sub(rf"{number}\b", "", texts[name]) == texts.get(original_of(name)) for name in copies
    )


def timed_launches(launches: list[Launch], few: bool = False) -> list[int]:
    """Return the positions of launches to time: of many, the first of each form; the largest one if `few`.

    A network of 14 equal blocks launches a kernel 14 times with tensors of the same sizes and strides. Each
    takes the same time, and to warm up and time one takes a tenth of a second.
    """
    if few and launches:
        sizes = [sum(tensor.numel() for tensor in tensors_of(launch.values())) for launch in launches]
        return [sizes.index(max(sizes))]
    if len(launches) <= MOST_ALIKE:
        return list(range(len(launches)))
    firsts = list[int]()
    for number, launch in enumerate(launches):
        if not any(launch.fits(launches[first]) for first in firsts):
            firsts.append(number)
    return firsts


def kernel_pairs(  # noqa: PLR0917 - the last is for who has it
    bench: Bench,
    kernel: str,
    inputs: list[Any],
    right: set[str],
    warn: Callable[[Remark], None],
    launches: list[Launch] | None = None,
    few: bool = False,
) -> Iterator[Pair]:
    """Pair each launch of `kernel` with that of its right variants: on the same buffers, where they fit.

    `launches` are those of `kernel` in `call`, if they were recorded before. `few`: there are many kernels,
    and of one without variants only the largest launch is timed.
    """
    launches = launches or record(bench, "call", kernel, inputs)
    if not all(launch.replayable() for launch in launches):
        warn(remark("foreign-pointers", kernel))
        return
    copies: dict[str, list[Launch]] = {}
    for name in sorted({*bench.variants(kernel)} & right):
        entry = "call" + name[len(kernel) :]
        own = entry in right and not same_wrapper(bench, name[len(kernel) :])
        launched = record(bench, entry, name, inputs) if own else []
        if launched and len(launched) != len(launches):
            warn(remark("other-launch-count", name, entry=entry, launches=len(launched)))
        else:
            copies[name] = launched or launches
    for name in bench.namespace.get("ABLATIONS", ()):
        if original_of(name) == kernel:
            copies[name] = launches
    fitting = {
        name: [
            launch if launch.fits(other) else other for launch, other in zip(launches, copied, strict=True)
        ]
        for name, copied in copies.items()
    }
    timed = timed_launches(launches, few and not copies)
    if len(timed) < len(launches) and not few:
        warn(remark("launches-alike", kernel, launches=len(launches), timed=len(timed)))
    for number in timed:
        launch = launches[number]
        title = "alone" if len(launches) == 1 else f"alone #{number + 1}"
        base = launch.subject(f"{kernel} {title}", bench.namespace[kernel])
        for name, copied in fitting.items():
            other = copied[number].subject(f"{name} {title}", bench.namespace[name])
            yield base, other._replace(values=base.values) if copied[number] is launch else other
        if not fitting:
            yield base, None
