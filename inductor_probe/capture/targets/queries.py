"""What torch answers when it is asked about GPUs, of one that is simulated: functions of `torch.cuda`.

`torch._dynamo.device_interface.CudaInterface`, which inductor asks, takes its functions from `torch.cuda`
when it is defined. With TORCH_COMPILE_DEBUG set that is during `import torch`, so `torch.cuda` has the
answers from the end of its own import on.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from inductor_probe.capture.torch_places import wrap
from inductor_probe.machine.targets import (
    BLOCK_THREADS,
    SHARED_BLOCK_BYTES,
    WARP_THREADS,
)
from inductor_probe.model.gpu_target import GpuTarget

CUDA_VERSION = "13.0"
"""`torch.version.cuda` where the installed torch has none: the one that torch 2.13 is built with first."""


class Stream:
    """A stream on which everything has run already."""

    cuda_stream = stream_id = device_index = 0
    device_type = 1

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = sys.modules["torch"].device("cuda", 0)

    def query(self) -> bool:
        """Return whether all its work has run."""
        return True

    def synchronize(self) -> None:
        """Wait for nothing."""

    def wait_stream(self, stream: object) -> None:
        """Wait for nothing."""

    wait_event = wait_stream

    def record_event(self, event: Any = None) -> Any:
        """Return an event that has come already."""
        return event or Event()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Event:
    """An event that has come already."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def query(self) -> bool:
        """Return whether it has come."""
        return True

    def record(self, *_: Any) -> None:
        """Come at once."""

    wait = synchronize = record

    def elapsed_time(self, _: Any) -> float:
        """Return the milliseconds to another event: nothing ran in between."""
        return 0.0


def properties(target: GpuTarget) -> SimpleNamespace:
    """Return what `torch.cuda.get_device_properties` returns of a GPU."""
    major, minor = target.compute_capability
    return SimpleNamespace(
        name=target.device,
        major=major,
        minor=minor,
        total_memory=target.memory_bytes,
        multi_processor_count=target.multiprocessors,
        regs_per_multiprocessor=target.registers_per_multiprocessor,
        max_threads_per_multi_processor=target.threads_per_multiprocessor,
        max_threads_per_block=BLOCK_THREADS,
        warp_size=WARP_THREADS,
        shared_memory_per_block=SHARED_BLOCK_BYTES,
        shared_memory_per_block_optin=target.shared_bytes_per_block,
        shared_memory_per_multiprocessor=target.shared_bytes_per_multiprocessor,
        L2_cache_size=target.l2_bytes,
        clock_rate=target.clock_mhz * 1000,
        memory_clock_rate=target.memory_clock_mhz * 1000,
        memory_bus_width=target.bus_bits,
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName="",
        uuid="",
        pci_bus_id=0,
        pci_device_id=0,
        pci_domain_id=0,
    )


def answers(target: GpuTarget) -> dict[str, Callable[..., Any]]:
    """Return for each function of `torch.cuda` what stands in for it."""
    device = properties(target)
    architecture = f"sm_{target.architecture}"
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_lazy_init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _nothing,
        "_exchange_device": _zero,
        "_maybe_exchange_device": _zero,
        "get_device_properties": lambda *_, **__: device,
        "get_device_capability": lambda *_, **__: target.compute_capability,
        "get_device_name": lambda *_, **__: target.device,
        "get_arch_list": lambda: [architecture],
        "is_bf16_supported": lambda including_emulation=True: including_emulation or device.major >= 8,
        "mem_get_info": lambda *_, **__: (target.memory_bytes, target.memory_bytes),
        "memory_allocated": _zero,
        "max_memory_allocated": _zero,
        "memory_reserved": _zero,
        "max_memory_reserved": _zero,
        "reset_peak_memory_stats": _nothing,
        "empty_cache": _nothing,
        "synchronize": _nothing,
        "current_stream": lambda *_, **__: Stream(),
        "default_stream": lambda *_, **__: Stream(),
        "set_stream": _nothing,
        "_set_stream_by_id": _nothing,
        "stream": lambda *_, **__: contextlib.nullcontext(),
        "is_current_stream_capturing": lambda: False,
        "get_rng_state": lambda *_, **__: sys.modules["torch"].get_rng_state(),
        "set_rng_state": lambda state, *_, **__: sys.modules["torch"].set_rng_state(state),
    }


def answer(cuda: Any, target: GpuTarget) -> None:
    """Let `torch.cuda` answer as with one GPU, from the end of its import on."""
    for name, function in answers(target).items():
        wrap(cuda, name, functools.partial(_in_place_of, function))
        for part in ("graphs", "memory", "random"):  # which other modules of torch import from
            module = getattr(cuda, part, None)
            if module is not None and hasattr(module, name):
                setattr(module, name, getattr(cuda, name))
    cuda.Stream, cuda.Event, cuda._initialized = Stream, Event, True
    # What generated wrappers import, and what a build without CUDA has not.
    for name, function in _BINDINGS.items():
        setattr(sys.modules["torch._C"], name, function)


def answer_as_a_whole(torch: Any) -> None:
    """Answer what needs a torch that is imported: random numbers come from the CPU's generator."""
    torch.cuda.default_generators = (torch.default_generator,)
    torch.version.cuda = torch.version.cuda or CUDA_VERSION


def _in_place_of(function: Callable[..., Any], _: object) -> Callable[..., Any]:
    """Return what does the same as `function`, of its own: dynamo has a rule for each function object."""

    def answer(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return answer


def _nothing(*_: Any, **__: Any) -> None:
    pass


def _zero(*_: Any, **__: Any) -> int:
    return 0


_BINDINGS: dict[str, Callable[..., Any]] = {
    "_cuda_getCurrentRawStream": _zero,
    "_cuda_getDevice": _zero,
    "_cuda_isCurrentStreamCapturing": lambda: False,
    "_get_cudnn_batch_norm_reserve_space_size": _zero,  # which only a GPU's cuDNN knows
    "_cuda_cudaCachingAllocator_is_enabled": lambda: True,  # or inductor makes no CUDA graphs
}
