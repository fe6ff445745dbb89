"""What a child of the server does: compile the kernels of a bench file, or check and measure them."""

from __future__ import annotations

import fcntl
import importlib
import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import torch

from inductor_probe.harness.bench import Bench, original_of
from inductor_probe.harness.call_profile import Profile
from inductor_probe.harness.checks import Check
from inductor_probe.harness.gpu_clock import ADDED, device_error
from inductor_probe.harness.load import BenchText, CompileError, LoadError
from inductor_probe.harness.measure import (
    Listener,
    Options,
    Times,
    bind_inputs,
    environment,
    process_record,
    resources,
    run_checks,
    run_timing,
)
from inductor_probe.harness.references import plain_check
from inductor_probe.harness.remarks import Remark, reason
from inductor_probe.harness.saved_inputs import InputsError

Request: TypeAlias = dict[str, Any]
Tell: TypeAlias = Callable[..., None]


# torch/_C: torch.OutOfMemoryError; c10/core/impl/alloc_cpu.cpp: `DefaultCPUAllocator: can't allocate memory`.
MEMORY_SIGNS = ("OutOfMemoryError", "MemoryError", "DefaultCPUAllocator", "out of memory", "[Errno 12]")


class JobError(Exception):
    """A job ends; the message is for the user. `kind` is `load`, `usage`, `fork`, `memory` or `device`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def compile_kernels(file: Request, request: Request, tell: Tell) -> None:
    """Compile the kernels of a file whose turn it is, into inductor's cache: see `load.BenchText`.

    Of `children` children, child 1 takes kernels 1, 1 + children, ... in the order of the file.
    """
    import_modules(file)
    child, children = request["child"], request["children"]

    def watch(name: str, error: CompileError | None) -> None:
        tell("kernel", name=name, error=asdict(error) if error else None)

    def chosen(number: int, name: str) -> bool:
        if number % children == child:
            tell("compiling", name=name)
        return bool(number % children == child)

    try:
        text_of(file).compile(watch, chosen)
    except LoadError as error:
        raise JobError("load", str(error)) from error


def refuse_bad_fork() -> None:
    """Refuse to measure in a fork of a process that had asked for GPUs, if there is one.

    A torch for CUDA marks its forks so without a GPU, too, where that prevents nothing.

    Raises:
        JobError: CUDA cannot be used here.
    """
    if torch.cuda._is_in_bad_fork() and torch.cuda.device_count():
        raise JobError("fork", "CUDA was initialised while torch was imported")


def measure(file: Request, request: Request, tell: Tell) -> None:
    """Check and time the variants of a file, and send each result when it is there.

    `check` is false where an earlier process has checked them: `variants` are then those that are right.
    """
    refuse_bad_fork()
    options = options_of(request["options"])
    torch.set_num_threads(options.threads)
    import_modules(file)
    tell("phase", phase="loading", names=[])
    machine = environment()
    ADDED.update(request.get("added", {}))
    refused = {name: CompileError(**error) for name, error in request["refused"].items()}

    def loading(name: str) -> None:
        tell("phase", phase="loading", names=[name])

    try:
        loaded = text_of(file).load(
            loading,
            copies_first=options.copies_first,
            refused=refused,
            crashed=request["crashed"],
            needed=None if request["check"] else request.get("needed"),
        )
    except LoadError as error:
        raise JobError("load", str(error)) from error
    bench = loaded.bench()
    if options.kernel is not None and options.kernel not in bench.kernels:
        raise JobError("usage", f"no kernel {options.kernel}; there is {', '.join(bench.kernels)}")
    try:
        options = bind_inputs(bench, options)
    except (InputsError, ValueError) as error:
        raise JobError("usage", str(error)) from error
    variants, correct, inputs, remarks = check_or_trust(bench, options, request, loaded.refused, tell)
    process = process_record(
        bench,
        options,
        Times([]),
        inputs=inputs,
        variants=[],
        warnings=remarks,
        machine=machine,
        command=[str(file["path"])],
    )
    tell("process", process=process)
    if options.configs is None and (options.check_only or not correct):
        return
    with in_turn(request.get("turns")):
        times = run_timing(bench, options, inputs, variants, listener_of(tell))
    tell("clock", added=ADDED)
    tell(
        "process",
        process={
            "overheads": times.overheads,
            "resources": resources(bench),
            "configs": times.configs or [],
            "measured": times.measured,
        },
    )


@contextmanager
def in_turn(path: str | None) -> Iterator[None]:
    """Hold the lock of a file, once no other process does; the end of a process releases it."""
    if path is None:
        yield
        return
    with Path(path).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def check_or_trust(
    bench: Bench, options: Options, request: Request, refused: dict[str, CompileError], tell: Tell
) -> tuple[set[str], bool, list[Any], list[Remark]]:
    """Return the variants to time, whether the pristine call is right, the inputs, remarks on constants."""
    if not request["check"]:
        return set(request["variants"]), True, bench.inputs(options.seed), []
    excluded = {name: [error.reason()] for name, error in refused.items()}
    excluded |= {name: [reason("variant-crashes", how=how)] for name, how in request["crashed"].items()}

    def watch(name: str, check: Check | None) -> None:
        if check is None:
            tell("phase", phase="checking", names=[name])
        else:
            if name != "call":
                end_if_lost(check)
            tell("check", variant=plain_check(check))

    try:
        checked = run_checks(bench, options, watch, excluded)
    except InputsError as error:
        raise JobError("usage", str(error)) from error
    variants = checked.to_time(options.copies)
    needed = sorted(needed_copies(bench, variants))
    tell("checked", variants=sorted(variants), correct=checked.pristine.correct, needed=needed)
    return variants, checked.pristine.correct, checked.inputs, checked.remarks


def needed_copies(bench: Bench, variants: set[str]) -> set[str]:
    """Return the copies that timing `variants` and ablations takes: those that a wrapper launches, too."""
    named = {*variants, *bench.namespace.get("ABLATIONS", ())}
    numbers = {name.removeprefix("call") for name in named if name.startswith("call_v")}
    return named | {copy for copy in bench.namespace if copy[len(original_of(copy)) :] in numbers}


def end_if_lost(check: Check) -> None:
    """End this process if a variant spoiled it for those behind it: they are checked in a new one.

    A kernel on a GPU that reads outside of its buffers makes each later call of CUDA fail. A variant that
    takes all memory may still have it.

    Raises:
        JobError: of the kind `memory` or `device`.
    """
    errors = [str(values["error"]) for _, values in check.remarks if not check.correct and "error" in values]
    for error in filter(memory_ran_out, errors):
        raise JobError("memory", f"ran out of memory: {error}")
    if lost := device_error():
        raise JobError("device", f"lost the GPU: {lost}")


def memory_ran_out(error: str) -> bool:
    """Tell whether an error, `TYPE: MESSAGE`, says that there is not enough memory."""
    return any(sign in error for sign in MEMORY_SIGNS)


def listener_of(tell: Tell) -> Listener:
    """Return what sends all that a measurement says."""
    return Listener(
        phase=lambda phase, names: tell("phase", phase=phase, names=names),
        timed=lambda pair: tell("comparison", comparison=asdict(pair)),
        warn=lambda remark: tell("warning", warning=remark),
        planned=lambda plan: tell("plan", **asdict(plan)),
        untimed=lambda names, kernels: tell("untimed", names=names, kernels=kernels),
    )


def options_of(values: Request) -> Options:
    """Return options that came as JSON, where tuples are lists."""
    sizes = tuple((name, number) for name, number in values.get("sizes", ()))
    kernels, profile = values.get("kernels"), values.get("profile")
    return Options(
        **{
            **values,
            "sizes": sizes,
            "skipped": tuple(values.get("skipped", ())),
            "kernels": None if kernels is None else tuple(kernels),
            "profile": None if profile is None else Profile(**profile),
        }
    )


def import_modules(file: Request) -> None:
    """Import the modules, or run the Python files, that register operators which the graph calls."""
    for name in file["imports"]:
        try:
            if name.endswith(".py"):
                runpy.run_path(name, run_name=Path(name).stem)
            else:
                importlib.import_module(name)
        except (FileNotFoundError, ModuleNotFoundError) as error:
            hint = "give a module as in Python, or a file as FILE.py"
            raise JobError("usage", f"--import {name}: {error}; {hint}") from error


def text_of(file: Request) -> BenchText:
    """Return the text of the bench file."""
    return BenchText(Path(file["path"]), file["source"])


JOBS: dict[str, Callable[[Request, Request, Tell], None]] = {
    "compile": compile_kernels,
    "measure": measure,
}
