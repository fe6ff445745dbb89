"""A script for a GPU judged without one: that is simulated, and what is generated runs in the interpreter.

Tensors of the simulated device are memory of this machine (`capture/targets/tensors.py`), which kernels that
are interpreted read and write. A wrapper runs as it is: what it launches, and what of a library it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from inductor_probe.capture import targets
from inductor_probe.capture.events import EventLog
from inductor_probe.model.gpu_target import GpuTarget

ENVIRONMENT = {**targets.ENVIRONMENT, "TRITON_INTERPRET": "1"}
"""triton reads the variable when it is imported."""


def hooks(
    target: GpuTarget, log: EventLog, folder: Path
) -> Iterator[tuple[str, Callable[[ModuleType], None]]]:
    """Yield for each module of torch, triton or ours what is to be called when it is imported.

    Args:
        folder: for the files of kernels.
    """
    yield from targets.hooks(target, log, without=("kernels-not-compiled", "results-in-eager"))
    yield "torch._inductor.async_compile", partial(_interpret_kernels, folder)


def _interpret_kernels(folder: Path, async_compile: Any) -> None:
    from inductor_probe.harness.interpreter import operations  # noqa: PLC0415 - it imports triton
    from inductor_probe.harness.interpreter.checks import OTHER_LANGUAGES  # noqa: PLC0415
    from inductor_probe.harness.interpreter.cuda_names import on_simulated  # noqa: PLC0415
    from inductor_probe.harness.interpreter.kernels import refuse_other_backends, triton_kernel  # noqa: PLC0415

    operations.prepare()
    on_simulated()

    def interpreted(_: Any, name: str, source: str, *__: Any, **___: Any) -> Any:
        return triton_kernel(name, source, folder)

    compiler = async_compile.AsyncCompile
    compiler.triton = interpreted
    compiler.use_process_pool = classmethod(lambda _: False)
    refuse_other_backends(OTHER_LANGUAGES, compiler)
