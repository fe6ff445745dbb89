"""What a call of the user's program may change, kept so that it can be called again as it was called.

Tensors are found from the function, its arguments, what it closes over and the globals that it names:
parameters and buffers of modules, states of optimizers, caches. Beside tensors the dicts, lists and sets that
were passed through are kept, random numbers and gradients.
"""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

MOST_OBJECTS = 500_000  # of a program with more, the rest is not looked at
PLAIN = (str, bytes, int, float, complex, type(None), type, ModuleType, torch.dtype, torch.device, torch.Size)
NOT_FOLLOWED = ("torch._", "torch.fx", "torch.utils", "torch.autograd", "inductor_probe")
MEMINFO = Path("/proc/meminfo")
SHARE = 2  # of the memory that is free, copies may take one part in so many


@dataclass(frozen=True)
class Kept:
    """Something that a call may change: whether it `differs` from what was kept, and what puts that back.

    `what`: `arguments`, `parameters`, `buffers`, `tensors`, `gradients`, `objects` of Python, or
    `random numbers`. `is_index`: it holds integers, which may be places in other tensors. `address`: of
    memory.
    """

    what: str
    differs: Callable[[], bool]
    restore: Callable[[], object]
    is_index: bool = False
    address: int = 0


class State:
    """All that a call was found to reach, with copies.

    Attributes:
        changed: what calls were seen to change.
        tensors: each once.
        parameters_kept: whether parameters were copied, too: not where memory is too small for that.
    """

    def __init__(self, function: Any, args: Any, kwargs: Any) -> None:
        self.changed: list[Kept] = []
        self.parameters_kept = True
        self._generators: list[torch.Generator] = []
        self._objects: list[Kept] = []
        self._modules: list[torch.nn.Module] = []
        self._seen: dict[int, Any] = {}
        self.tensors: list[torch.Tensor] = []
        self._walk([args, kwargs])
        of_arguments = {id(tensor) for tensor in self.tensors}
        self._walk([function])
        self._kept = [*self._gradients(), *self._memory(of_arguments), *self._objects, *self._random()]

    @property
    def counts(self) -> bool:
        """Whether calls change an integer or an object: the next call would not be like this one."""
        return any(kept.is_index or kept.what == "objects" for kept in self.changed)

    def see(self) -> None:
        """Note what was changed since this was made or last restored, and put all of it back."""
        for kept in self._kept:
            if kept not in self.changed and kept.differs():
                self.changed.append(kept)
        self.restore()

    def changed_tensors(self) -> list[torch.Tensor]:
        """Return the tensors whose memory differs now from what was kept."""
        addresses = {kept.address for kept in self._kept if kept.address and kept.differs()}
        storages = ((tensor, _storage(tensor)) for tensor in self.tensors)
        return [tensor for tensor, storage in storages if storage and storage.data_ptr() in addresses]

    def restore_all(self) -> None:
        """Put back all that differs, whoever changed it: long after, for one."""
        for kept in self._kept:
            if kept.differs():
                kept.restore()

    def restore(self) -> None:
        """Put back what calls were seen to change."""
        for kept in self.changed:
            kept.restore()

    def _walk(self, roots: list[Any]) -> None:
        """Find what can be reached from `roots`."""
        left = deque(roots)
        while left and len(self._seen) < MOST_OBJECTS:
            value = left.popleft()
            if isinstance(value, PLAIN) or id(value) in self._seen:
                continue
            self._seen[id(value)] = value  # kept: its id is not used again
            left.extend(self._inside(value))

    def _inside(self, value: Any) -> Iterable[Any]:
        """Note what `value` is, and return what can be reached from it."""
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            return [value.grad] if value.is_leaf and value.grad is not None else []
        if isinstance(value, torch.Generator):
            self._generators.append(value)
            return []
        if isinstance(value, dict):
            self._keep_entries(value, dict(value))
            return [*value.values(), *(key for key in value if isinstance(key, torch.Tensor))]
        if isinstance(value, (list, set, deque)):
            self._keep_entries(value, list(value))
            return value
        if isinstance(value, (tuple, frozenset)):
            return value
        if isinstance(value, partial):
            return [value.func, value.args, value.keywords]
        if isinstance(value, MethodType):
            return [value.__self__, value.__func__]
        if isinstance(value, FunctionType):
            return self._of_function(value)
        if type(value).__module__.startswith(NOT_FOLLOWED):
            return []
        if isinstance(value, torch.nn.Module):
            self._modules.append(value)
        inside = [
            getattr(value, name, None)
            for kind in type(value).__mro__
            for name in _names(vars(kind).get("__slots__", ()))
        ]
        attributes = getattr(value, "__dict__", None)
        return [*inside, attributes] if isinstance(attributes, dict) else inside

    def _of_function(self, function: FunctionType) -> Iterator[Any]:
        """Yield what a function closes over, its defaults, and the globals that it names."""
        if (function.__module__ or "").startswith(("torch.", "inductor_probe.")):
            yield from (cell.cell_contents for cell in function.__closure__ or () if _filled(cell))
            return
        yield function.__defaults__
        yield function.__kwdefaults__
        for cell in function.__closure__ or ():
            if _filled(cell):
                self._keep_place(partial(getattr, cell, "cell_contents"), partial(_fill, cell))
                yield cell.cell_contents
        names = function.__globals__
        for name in _names_in(function.__code__):
            if name in names and not isinstance(names[name], PLAIN[6:]):
                self._keep_place(partial(names.get, name), partial(names.__setitem__, name))
                yield names[name]

    def _keep_entries(self, container: Any, entries: Any) -> None:
        self._objects.append(
            Kept(
                "objects",
                lambda: not _same_entries(container, entries),
                partial(_refill, container, entries),
            )
        )

    def _keep_place(self, get: Callable[[], Any], put: Callable[[Any], object]) -> None:
        value = get()
        self._objects.append(Kept("objects", lambda: get() is not value, partial(put, value)))

    def _gradients(self) -> Iterator[Kept]:
        for tensor in self.tensors:
            if tensor.is_leaf and tensor.requires_grad:
                gradient = tensor.grad
                yield Kept(
                    "gradients",
                    lambda tensor=tensor, gradient=gradient: tensor.grad is not gradient,  # type: ignore[misc]
                    partial(setattr, tensor, "grad", gradient),
                )

    def _memory(self, of_arguments: set[int]) -> Iterator[Kept]:
        """Copy the memory of all tensors, each once.

        Raises:
            MemoryError: there is not enough for that.
        """
        buffers = {id(buffer) for module in self._modules for buffer in module._buffers.values()}
        storages: dict[int, torch.UntypedStorage] = {}
        kinds: dict[int, str] = {}
        integers = set[int]()
        for tensor in self.tensors:
            storage = _storage(tensor)
            if storage is None:
                continue
            address = storage.data_ptr()
            storages.setdefault(address, storage)
            if not (tensor.is_floating_point() or tensor.is_complex()):
                integers.add(address)
            kind = "parameters" if isinstance(tensor, torch.nn.Parameter) else "tensors"
            if id(tensor) in of_arguments or id(tensor) in buffers:
                kind = "arguments" if id(tensor) in of_arguments else "buffers"
            kinds.setdefault(address, kind)
        room = _free_memory() / SHARE
        if _size(storages.values()) > room and not torch.is_grad_enabled():
            self.parameters_kept = False
            storages = {key: value for key, value in storages.items() if kinds[key] != "parameters"}
        if (size := _size(storages.values())) > room:
            raise MemoryError(f"copies of its tensors take {size} bytes")
        for address, storage in storages.items():
            copy = storage.clone()
            differs = partial(_differ, storage, copy)
            yield Kept(kinds[address], differs, partial(storage.copy_, copy), address in integers, address)

    def _random(self) -> Iterator[Kept]:
        for get, put in _random_states(self._generators):
            state = get()
            differs = lambda get=get, state=state: not _same_state(get(), state)  # noqa: E731
            yield Kept("random numbers", differs, partial(put, state))


def draw_otherwise() -> None:
    """Let all that draws random numbers draw others from now on."""
    torch.rand(1)
    random.random()  # noqa: S311 - no secret
    if torch.cuda.is_initialized():
        torch.rand(1, device="cuda")
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.random()


def _names(slots: Any) -> Iterable[str]:
    names = (slots,) if isinstance(slots, str) else slots
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _names_in(code: CodeType) -> dict[str, None]:
    """Return the names of globals in some code, and in functions within it."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names_in(constant)
    return names


def _filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty one raises
    except ValueError:
        return False
    return True


def _fill(cell: CellType, value: Any) -> None:
    cell.cell_contents = value


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """Return the memory of a tensor; None where it has none that can be copied."""
    try:
        storage = tensor.untyped_storage()
        return storage if storage.nbytes() and storage.data_ptr() else None
    except (RuntimeError, NotImplementedError):  # packed by a library, sparse, or a stand-in
        return None


def _size(storages: Iterable[torch.UntypedStorage]) -> int:
    """Return the bytes of main memory that copies take."""
    return sum(storage.nbytes() for storage in storages if storage.device.type == "cpu")


def _differ(storage: torch.UntypedStorage, copy: torch.UntypedStorage) -> bool:
    return storage.nbytes() == copy.nbytes() and not torch.equal(_bytes(storage), _bytes(copy))


def _bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def _refill(container: Any, entries: Any) -> None:
    container.clear()
    if isinstance(container, (dict, set)):
        container.update(entries)
    else:
        container.extend(entries)


def _same_entries(container: Any, entries: Any) -> bool:
    if len(container) != len(entries):
        return False
    if isinstance(container, dict):
        return all(key in container and container[key] is value for key, value in entries.items())
    if isinstance(container, set):
        return all(entry in container for entry in entries)
    return all(one is other for one, other in zip(container, entries, strict=True))


def _random_states(
    generators: Iterable[torch.Generator],
) -> Iterator[tuple[Callable[[], Any], Callable[[Any], None]]]:
    yield torch.get_rng_state, torch.set_rng_state
    yield random.getstate, random.setstate
    if (numpy := sys.modules.get("numpy")) is not None:
        yield numpy.random.get_state, numpy.random.set_state
    if torch.cuda.is_initialized():
        yield torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all
    for generator in generators:
        yield generator.get_state, generator.set_state


def _same_state(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return bool(torch.equal(one, other))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_same_state, one, other))
    return bool((one == other).all()) if hasattr(one, "all") else bool(one == other)


def _free_memory() -> float:
    """Return the bytes that programs may still take; infinity where the system does not say."""
    try:
        text = MEMINFO.read_text()
    except OSError:
        return float("inf")
    line = next((line for line in text.splitlines() if line.startswith("MemAvailable:")), "")
    return int(line.split()[1]) * 1024 if line else float("inf")
