"""The job: check the Triton kernels of a bench file without a GPU, and its variants; nothing is timed.

A run of `call` on CPU tensors, kernels in triton's interpreter and library calls as the CPU has them, is held
against the graph in float64 by the rules of `references`. The edited variants follow, one by one.
"""

from __future__ import annotations

import re
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch._inductor.async_compile import AsyncCompile

from inductor_probe.harness import random_numbers
from inductor_probe.harness.bench import Bench, original_of
from inductor_probe.harness.checks import Check
from inductor_probe.harness.constants import bind_constants
from inductor_probe.harness.interpreter import cuda_names, operations
from inductor_probe.harness.interpreter.errors import KernelFault, NotInterpretedError, TooLongError
from inductor_probe.harness.interpreter.kernels import (
    VERSIONS,
    Clock,
    Interpreted,
    refuse_other_backends,
    triton_kernel,
)
from inductor_probe.harness.interpreter.library_calls import LibraryCalls
from inductor_probe.harness.jobs import JobError, Request, Tell, import_modules, text_of
from inductor_probe.harness.judge import POISON
from inductor_probe.harness.load import LoadError
from inductor_probe.harness.reference import first_line
from inductor_probe.harness.references import RepeatedRound, expect, judged, plain_check, unedited
from inductor_probe.harness.remarks import reason
from inductor_probe.harness.saved_inputs import InputsError, choose_inputs

OTHER_LANGUAGES = {
    "cuda": "CUDA C++",
    "cutedsl": "CuTe DSL",
    "rocm": "HIP",
    "xpu": "SYCL",
    "pallas": "Pallas",
}
NO_KERNEL = re.compile(r"Could not run '(?P<operator>[\w:.]+)'")  # c10's dispatcher
MORE = 0.25  # of the limit: where the first round takes longer, there is no second one


class InterpretedRound(RepeatedRound):
    """A round in which a variant that cannot be interpreted is not called wrong; all runs are alike."""

    varies = False

    def judge(self, name: str) -> Check:
        """Check a variant."""
        before = faults.copy()
        try:
            with limited():
                check = super().judge(name)
        except NotInterpretedError as error:
            return Check(name, correct=False, remarks=[_why(self.bench, error)])
        if len(faults) > len(before):
            check.remarks = [_why(self.bench, faults[-1])]
        return check


faults: list[KernelFault] = []
"""What was raised in kernels so far: `Round.judge` keeps only the first line of it."""


def check(file: Request, request: Request, tell: Tell) -> None:
    """Check a bench file; send what was found of the call, and of each variant, when it is there.

    Request: `inputs`, `sizes` and `seed` as `Options` has them; `limit`: seconds for a run of the call;
    `only`: the kernel whose variants are checked, None for all; `crashed`: variants that ended a process.
    """
    torch.set_num_threads(request["threads"])
    tell("phase", phase="loading", names=[])
    relaid, library = set[str](), LibraryCalls()
    with tempfile.TemporaryDirectory(prefix="kernels-") as folder:
        _stand_in(Path(folder), relaid)
        with torch.no_grad(), cuda_names.CudaAsCpu(), library:
            bench, refused = _load(file, request)
            _check(bench, request, refused, tell)
        _tell_kernels(bench, relaid, library, tell)


def _stand_in(folder: Path, relaid: set[str]) -> None:
    """Have everything of Triton's and of CUDA's in this process done by the interpreter and by the CPU."""
    try:
        operations.prepare()
    except NotInterpretedError as error:
        raise JobError("usage", error.what) from error
    cuda_names.stand_in(relaid)
    random_numbers.TRITON_DEVICES.add("cpu")
    refuse_other_backends(OTHER_LANGUAGES, AsyncCompile)

    def triton(_: Any, name: str, source: str, device_str: str = "cuda") -> Interpreted:
        kernel = triton_kernel(name, source, folder)
        kernel.faults = faults
        return kernel

    AsyncCompile.triton = triton


def _load(file: Request, request: Request) -> tuple[Bench, dict[str, Any]]:
    import_modules(file)
    text = text_of(file)
    try:
        loaded = text.load(crashed=request["crashed"])
    except LoadError as error:
        raise JobError("load", str(error)) from error
    bench = loaded.bench()
    for name, kernel in bench.namespace.items():
        if isinstance(kernel, Interpreted):
            kernel.name = name  # one of the user's has another name in its text
            place = text.text.find(kernel.source)
            kernel.source_line = text.text.count("\n", 0, place) + 1 if place >= 0 else 0
    excluded = {name: [error.reason()] for name, error in loaded.refused.items()}
    excluded |= {name: [reason("variant-crashes", how=how)] for name, how in request["crashed"].items()}
    try:
        choose_inputs(bench, request["inputs"], dict(request["sizes"]))
    except InputsError as error:
        raise JobError("usage", str(error)) from error
    return bench, excluded


def _check(bench: Bench, request: Request, excluded: dict[str, Any], tell: Tell) -> None:
    Clock.limit = request["limit"]
    try:
        tell("remarks", remarks=bind_constants(bench))
        tell("phase", phase="checking", names=["call"])
        rounds, pristine = _pristine(bench, request)
    except InputsError as error:
        raise JobError("usage", str(error)) from error
    tell("check", variant={**plain_check(pristine), "unedited": False}, rounds=len(rounds))
    same, checks, only = unedited(bench), dict[str, Any](), request["only"]
    for name in bench.variants():
        if only is not None and original_of(name) not in (only, "call"):
            continue
        tell("phase", phase="checking", names=[name])
        if name in excluded:
            checks[name] = Check(name, correct=False, remarks=excluded[name])
        elif name in same:
            checks[name] = replace(pristine, name=name)
        elif pristine.correct:
            checks[name] = judged(bench, name, rounds, checks)
        else:
            continue
        tell("check", variant={**plain_check(checks[name]), "unedited": name in same})


def _pristine(bench: Bench, request: Request) -> tuple[list[InterpretedRound], Check]:
    """Run the call as inductor generated it; return the rounds that ran to their end, and its check."""
    rounds, begun = list[InterpretedRound](), time.perf_counter()
    try:
        for number, pattern in enumerate(POISON):
            if number == 0 or time.perf_counter() - begun < MORE * request["limit"]:
                with limited():
                    rounds.append(InterpretedRound(bench, request["seed"] + number, pattern, expect))
    except (KernelFault, NotInterpretedError) as error:
        return [], Check("call", correct=False, remarks=[_why(bench, error)])
    except InputsError:
        raise
    except Exception as error:  # an operator that has no kernel for the CPU, or a wrapper that needs a GPU
        missing = NO_KERNEL.match(str(error))
        text = f"{missing['operator']} has no kernel for the CPU" if missing else first_line(error)
        return [], Check("call", correct=False, remarks=[reason("call-not-run", error=text)])
    return rounds, next((each.check for each in rounds if not each.check.correct), rounds[-1].check)


@contextmanager
def limited() -> Iterator[None]:
    """End what runs too long: between programs, or within one that does not end."""

    def end(*_: Any) -> None:
        raise TooLongError(f"a run of call took longer than {Clock.limit:g} s")

    Clock.end = time.perf_counter() + Clock.limit
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, Clock.limit + 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _why(bench: Bench, error: KernelFault | NotInterpretedError) -> Any:
    """Return why a kernel is wrong, or is not interpreted, with the line of the bench file."""
    kernel = bench.namespace.get(error.kernel)
    place = "in the wrapper"
    if isinstance(kernel, Interpreted):
        place = kernel.source.split("\n")[error.line - 1].strip() if error.line else "at its launch"
        if error.line and kernel.source_line:
            place = f"line {kernel.source_line + error.line - 1}: {place}"
    name = error.kernel or "call"
    if isinstance(error, KernelFault):
        return reason("kernel-fault", kernel=name, error=error.what, place=place)
    if isinstance(error, TooLongError):
        return reason("not-finished", kernel=name, error=error.what, place=place)
    return reason("not-interpreted", kernel=name, error=error.what, place=place)


def _tell_kernels(bench: Bench, relaid: set[str], library: LibraryCalls, tell: Tell) -> None:
    kernels = {
        name: kernel for name in bench.kernels if isinstance(kernel := bench.namespace.get(name), Interpreted)
    }
    tell(
        "kernels",
        versions=VERSIONS,
        relaid=sorted(relaid),
        by_formula=sorted(library.by_formula),
        drawn=sorted(library.drawn),
        kernels=[
            {
                "name": name,
                "launches": kernel.launches,
                "programs": kernel.programs,
                "seconds": kernel.seconds,
                "config": kernel.blocks,
            }
            for name, kernel in kernels.items()
        ],
    )
