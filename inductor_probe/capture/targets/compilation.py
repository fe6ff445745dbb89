"""What inductor does with a GPU while it compiles: tells triton the target, compiles kernels, takes times.

The code that it generates is real. What would need the device is left out: kernels are not compiled, and
where torch measures to decide (autotuning of templates, padding of matrix products), all candidates take the
same time, so that the first one is kept, or what needs no change.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.torch_places import wrap
from inductor_probe.machine.targets import WARP_THREADS
from inductor_probe.model.gpu_target import GpuTarget

TIED_MS = 1.0
"""What every candidate takes that torch times."""
BENCHMARKERS = ("TritonBenchmarker", "InductorBenchmarker")


class NotCompiled:
    """Stands where a generated wrapper has a kernel that can be launched; nothing launches it.

    Attributes:
        configs and others: of the kernel as torch loads it, before it compiles anything.
    """

    def __init__(self, name: str, loaded: Any) -> None:
        self.name = name
        self.configs: list[Any] = list(getattr(loaded, "configs", None) or ())
        self.size_hints = getattr(loaded, "size_hints", None)
        self.inductor_meta: dict[str, Any] = getattr(loaded, "inductor_meta", {})
        self.triton_meta: dict[str, Any] = getattr(loaded, "triton_meta", {})
        self.device_props = getattr(loaded, "device_props", None)
        self.filename = getattr(loaded, "filename", None)
        self.launchers: list[Any] = []
        self.fn = SimpleNamespace(__name__=name)

    def run(self, *_: Any, **__: Any) -> None:
        """Launch nothing: `graphs` computes the results."""

    def precompile(self, *_: Any, **__: Any) -> None:
        """Compile nothing."""


def leave_kernels(async_compile: Any) -> None:
    """Compile no Triton kernel: the device that would launch it is not there.

    A kernel is loaded as its source, which makes the configs that torch would compile: where torch has a
    function for that. Torch's compile workers, which `compile_fx` wakes where an input is on a GPU, would
    import torch and have nothing to do.
    """
    load = getattr(async_compile, "_load_triton_kernel_from_source", lambda *_: None)

    def around_triton(_: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, name, source, *_, **__: NotCompiled(name, load(name, source))

    def around_multi(_: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, name, *_, **__: NotCompiled(name, None)

    wrap(async_compile, "AsyncCompile.triton", around_triton)
    wrap(async_compile, "AsyncCompile.multi_kernel", around_multi)
    wrap(async_compile, "AsyncCompile.use_process_pool", lambda _: lambda cls: False)


def tie_times(benchmarking: Any) -> None:
    """Let all candidates that torch times on the device take the same time."""

    def around(benchmark: Callable[..., Any]) -> Callable[..., Any]:
        def tied(self: Any, *args: Any, **kwargs: Any) -> Any:
            candidates = args[0] if args and isinstance(args[0], Sequence) else None
            return TIED_MS if candidates is None else [TIED_MS for _ in candidates]

        return tied

    for name in BENCHMARKERS:
        wrap(benchmarking, f"{name}.benchmark_gpu", around)


def tie_choices(select_algorithm: Any) -> None:
    """Let all choices for a template take the same time; they are given in torch's order of preference."""

    def around(_: Callable[..., Any]) -> Callable[..., Any]:
        def tied(cls: Any, choices: Any, *_: Any, **__: Any) -> dict[Any, float]:
            return dict.fromkeys(choices, TIED_MS)

        return tied

    def precompile_nothing(_: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, *_, **__: _nothing

    wrap(select_algorithm, "AlgorithmSelectorCache.make_precompile_fn", precompile_nothing)
    for name in ("benchmark_choices", "benchmark_in_current_process", "benchmark_in_sub_process"):
        wrap(select_algorithm, f"AlgorithmSelectorCache.{name}", around)


def _nothing(*_: Any, **__: Any) -> None:
    pass


def tie_fusions(scheduling: Any) -> None:
    """Let fused and unfused kernels take the same time each, so that fewer kernels win."""
    for name in ("benchmark_fused_nodes", "benchmark_codegened_module"):
        wrap(scheduling, f"CUDACombinedScheduling.{name}", lambda _: lambda self, *_, **__: (TIED_MS, ""))


def note_refused(compile_fx: Any, target: GpuTarget, events: EventLog) -> None:
    """Note that torch compiles no graph with bfloat16 for a GPU that lacks it."""

    def around(check: Callable[..., None]) -> Callable[..., None]:
        def check_and_note(*args: Any, **kwargs: Any) -> None:
            try:
                check(*args, **kwargs)
            except Exception as error:  # of dynamo's, which skips the graph
                events.note(
                    "compile-refused", device=target.device, capability=target.capability, reason=str(error)
                )
                raise

        return check_and_note

    wrap(compile_fx, "_check_triton_bf16_support", around)


def leave_candidates(scheduler: Any) -> None:
    """Generate the kernels of a fusion that is to be timed, without compiling them.

    Where generating one fails, torch does not fuse.
    """

    def around_compile(_: Callable[..., Any]) -> Callable[..., Any]:
        def generate(
            self: Any, nodes: Any, hint_override: int | None = None, *_: Any, **__: Any
        ) -> tuple[None, None]:
            self.generate_kernel_code_from_nodes(nodes, True, hint_override)
            return None, None

        return generate

    wrap(scheduler, "Scheduler.compile_kernel", around_compile)


def keep_driver(triton_helpers: Any) -> None:
    """Keep triton's driver as it is: a generated kernel activates the machine's when it is loaded."""
    wrap(triton_helpers, "set_driver_to_gpu", lambda _: _nothing)


def know_clock(internal: Any, target: GpuTarget) -> None:
    """Answer the clock for which torch asks `nvidia-smi`, in MHz, to estimate peak rates."""
    wrap(internal, "max_clock_rate", lambda _: lambda *_, **__: target.clock_mhz)


def name_target(driver: Any, target: GpuTarget) -> None:
    """Give triton a driver that has the target's figures, and loads nothing."""
    driver.driver.set_active(_driver(target))


def _driver(target: GpuTarget) -> Any:
    compiler: Any = __import__("triton.backends.compiler", fromlist=["GPUTarget"])
    base: Any = __import__("triton.backends.driver", fromlist=["DriverBase"]).DriverBase
    facts = {
        "max_shared_mem": target.shared_bytes_per_block,
        "max_num_regs": target.registers_per_multiprocessor,
        "multiprocessor_count": target.multiprocessors,
        "warpSize": WARP_THREADS,
        "sm_clock_rate": target.clock_mhz * 1000,
        "mem_clock_rate": target.memory_clock_mhz * 1000,
        "mem_bus_width": target.bus_bits,
    }
    methods: dict[str, Any] = {
        "__init__": lambda self: None,
        "utils": SimpleNamespace(get_device_properties=lambda _: facts),
        "is_active": classmethod(lambda cls: True),
        "map_python_to_cpp_type": lambda self, kind: kind,
        "get_current_target": lambda self: compiler.GPUTarget("cuda", target.architecture, WARP_THREADS),
        "get_active_torch_device": lambda self: sys.modules["torch"].device("cuda", 0),
        "get_device_interface": lambda self: sys.modules["torch"].cuda,
        "get_current_device": lambda self: 0,
        "set_current_device": lambda self, _: None,
        "get_current_stream": lambda self, _: 0,
        "get_benchmarker": lambda self: functools.partial(_tied_benchmark),
        "get_empty_cache_for_benchmark": lambda self: None,
        "clear_cache": lambda self, _: None,
    }
    return type("SimulatedDriver", (base,), methods)()


def _tied_benchmark(*_: Any, quantiles: Sequence[float] | None = None, **__: Any) -> Any:
    """`triton.testing.do_bench`."""
    return [TIED_MS for _ in quantiles] if quantiles else TIED_MS
