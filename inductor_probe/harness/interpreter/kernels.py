"""A kernel's text as something that `call` can launch: inductor's config, its grid, checked memory."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from inductor_probe.harness.interpreter.errors import (
    AssertionFault,
    KernelFault,
    NotInterpretedError,
    TooLongError,
)
from inductor_probe.harness.interpreter.memory import MEMORY
from inductor_probe.harness.interpreter.operations import INTERPRETER, not_interpreted
from inductor_probe.harness.load import COPY
from inductor_probe.harness.random_numbers import note_draws
from inductor_probe.harness.reference import first_line

HEURISTICS: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics")
INTEGERS = {name: np.dtype(f"int{name[1:]}") for name in ("i8", "i16", "i32", "i64")}
INTEGERS |= {name: np.dtype(f"uint{name[1:]}") for name in ("u8", "u16", "u32", "u64")}
FLOATS = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}
IMPLICIT = ("num_warps", "num_stages")


SURE_S = 2.0  # after so long, the time of the programs that ran says how long the others take


class Clock:
    """How many seconds the kernels of a call may run, and until when (`time.perf_counter`)."""

    limit = end = float("inf")


class Interpreted:
    """A kernel that runs in triton's interpreter; inductor's wrapper launches it by `run`.

    Attributes:
        programs, seconds, launches: of all runs so far.
        blocks: the config that it runs with, `XBLOCK=1024`.
    """

    def __init__(self, function: Any, configs: list[Any], triton_meta: Any, inductor_meta: Any) -> None:
        self.function, self.triton_meta, self.inductor_meta = function, triton_meta, inductor_meta
        # Any of them may be launched: the one with the fewest programs takes the least time here.
        self.config = max(configs, key=lambda config: math.prod(_blocks(config).values()))
        self.name, self.file, self.source = "", "", ""
        self.source_line = 0  # of the file that its text stands in, where that begins
        self.faults: list[KernelFault] = []
        self.launches = self.programs = 0
        self.seconds = 0.0

    @property
    def blocks(self) -> dict[str, int]:
        """The sizes of its blocks."""
        return _blocks(self.config)

    def run(self, *args: Any, grid: Any = None, stream: Any = None, **kwargs: Any) -> None:
        """Run every program of a launch, one after the other."""
        constants, extra = (
            self.triton_meta.get("constants", {}),
            self.inductor_meta.get("extra_launcher_args", ()),
        )
        config = HEURISTICS.config_to_dict(self.config)
        names = self._passed(constants, len(args) - len(extra))
        if len(args) != len(names) + len(extra):
            what = f"is launched with {len(args)} arguments, and takes {', '.join([*names, *extra])}"
            lacking = NotInterpretedError(what)
            lacking.kernel = self.name
            raise self._fault(what) if COPY.search(self.name) else lacking
        values = dict(zip([*names, *extra], args, strict=True)) | kwargs
        dimensions = self._grid(values, grid)
        for name in self.function.arg_names:
            if name not in values:
                values[name] = config.get(name, constants.get(name))
        note_draws(self.name, self.source, values, self.blocks)
        signature = self.triton_meta.get("signature", {})
        MEMORY.clear()
        arguments = {
            name: self._argument(name, values[name], str(signature.get(name, "constexpr")))
            for name in self.function.arg_names
        }
        begun = time.perf_counter()
        self.launches += 1
        try:
            self._programs(arguments, dimensions)
        finally:
            self.seconds += time.perf_counter() - begun

    def _passed(self, constants: dict[str, Any], count: int) -> list[str]:
        """Return the names of the parameters that a launch passes values for; `count` decides if it can.

        Blocks of a config are not passed, nor are constants of a kernel of the user's, which are annotated as
        `tl.constexpr` (`CachingAutotuner._interpret_args_grid`).
        """
        annotated = {
            name for name, kind in self.function.fn.__annotations__.items() if "constexpr" in str(kind)
        }
        unset = [
            name
            for name in self.function.arg_names
            if name not in self.config.kwargs and not (name in IMPLICIT and name in constants)
        ]
        plain = [name for name in unset if name not in annotated]
        return unset if len(unset) == count else plain

    def _grid(self, values: dict[str, Any], grid: Any) -> tuple[int, ...]:
        """Return how many programs there are along each axis."""
        if grid is not None:  # of torch before 2.7
            return tuple(grid(HEURISTICS.config_to_dict(self.config)) if callable(grid) else grid)
        expression = HEURISTICS.GridExpr.from_meta(self.inductor_meta, self.config)
        return tuple(map(int, expression.eval_slow(dict(values))))

    def _argument(self, name: str, value: Any, kind: str) -> Any:
        """Return an argument as the interpreter passes one: see `_implicit_cvt` in triton's."""
        if isinstance(value, torch.Tensor):
            if kind.startswith("*"):
                type_ = str_to_type(kind)
                address = np.array([MEMORY.place(name, value)], dtype=np.uint64)
                return tl.tensor(INTERPRETER.TensorHandle(address, type_), type_)
            raise NotInterpretedError(f"the argument {name} is {kind}")
        if kind in INTEGERS or kind in FLOATS:
            type_ = str_to_type(kind)
            number = np.array([value]).astype(INTEGERS.get(kind) or FLOATS[kind])
            return tl.tensor(INTERPRETER.TensorHandle(number, type_), type_)
        if kind == "constexpr" or value is None:
            return value
        raise NotInterpretedError(f"the argument {name} is {kind}")

    def _programs(self, arguments: dict[str, Any], dimensions: tuple[int, ...]) -> None:
        builder, function = INTERPRETER.interpreter_builder, self.function.rewrite()
        x, y, z = (*dimensions, 1, 1)[:3]
        builder.set_grid_dim(x, y, z)
        begun, count = time.perf_counter(), x * y * z
        for number, place in enumerate(np.ndindex(x, y, z)):
            now = time.perf_counter()
            left = (now - begun) / number * (count - number) if number and now > begun + SURE_S else 0
            builder.set_grid_idx(*place)
            try:
                if now + left > Clock.end:
                    seconds = f"{now - begun + left:.0f} s"
                    raise TooLongError(f"{count} programs take about {seconds}, more than the limit")
                with np.errstate(all="ignore"):
                    function(**arguments)
            except NotInterpretedError as error:
                error.kernel, error.line = error.kernel or self.name, error.line or self.line_of(error)
                raise
            except KernelFault as error:
                if isinstance(error, AssertionFault) and not COPY.search(self.name):
                    why = "these inputs may not be such as the graph takes"
                    raise self._lacking(f"{error.what}: {why}", error) from error
                raise self._fault(f"{error.what}, in program {place}", self.line_of(error)) from error
            except Exception as error:  # whatever triton's front end raises
                what = f"raises {first_line(error)}"
                # An edit may be at fault for that, inductor's text is not: the interpreter lacks something.
                if isinstance(error, AttributeError | NotImplementedError) or not COPY.search(self.name):
                    raise self._lacking(what, error) from error
                raise self._fault(f"{what}, in program {place}", self.line_of(error)) from error
            self.programs += 1

    def _fault(self, what: str, line: int = 0) -> KernelFault:
        self.faults.append(KernelFault(what, self.name, line))
        return self.faults[-1]

    def _lacking(self, what: str, error: Exception) -> NotInterpretedError:
        lacking = NotInterpretedError(what)
        lacking.kernel, lacking.line = self.name, self.line_of(error)
        return lacking

    def line_of(self, error: BaseException) -> int:
        """Return the last line of the kernel's text that an error was raised through; 0 for none."""
        frames = traceback.extract_tb(error.__traceback__)
        return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == self.file), 0)


def _blocks(config: Any) -> dict[str, int]:
    return {
        name: value for name, value in config.kwargs.items() if "BLOCK" in name and isinstance(value, int)
    }


def str_to_type(kind: str) -> Any:
    """Return a type of Triton's by its name in a signature: `*fp32`, `i64`."""
    try:
        return tl.str_to_ty(kind, None)
    except TypeError:  # before triton 3.5
        return tl.str_to_ty(kind)


def triton_kernel(name: str, source: str, folder: Path) -> Interpreted:
    """Return the kernel that a text defines; this imports the text.

    Inductor's decorators choose configs for it, and hand them to `cached_autotune`, which would compile.
    """
    number = len(list(folder.glob("kernel_*.py")))
    file = folder / f"kernel_{number}.py"
    file.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None  # noqa: S101 - of a file that ends in .py there is one
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    try:
        with configs_noted():
            spec.loader.exec_module(module)
    except SyntaxError as error:  # in the words in which inductor says it: `load.BenchText.compile_error`
        raise RuntimeError(f"SyntaxError: {error}") from error
    kernels = {key: value for key, value in vars(module).items() if isinstance(value, Interpreted)}
    kernel = kernels.get(name) or next(iter(kernels.values()), None)
    if kernel is None:
        raise NotInterpretedError("its text defines no Triton kernel of inductor")
    kernel.name, kernel.file, kernel.source = name, str(file), source
    return kernel


@contextmanager
def configs_noted() -> Iterator[None]:
    """Let inductor's decorators make interpreted kernels for a while."""
    autotune: Callable[..., Any] = HEURISTICS.cached_autotune

    def noted(size_hints: Any, configs: Any, triton_meta: Any, *_: Any, **named: Any) -> Any:
        inductor_meta = named.get("inductor_meta") or {}

        def decorate(function: Any) -> Interpreted:
            for config in configs:
                if "XBLOCK" not in function.arg_names:
                    config.kwargs.pop("XBLOCK", None)
            return Interpreted(function, configs, triton_meta, inductor_meta)

        return decorate

    HEURISTICS.cached_autotune = noted
    try:
        yield
    finally:
        HEURISTICS.cached_autotune = autotune


def refuse_other_backends(methods: dict[str, str], compiler: Any) -> None:
    """Let kernels that are not of Triton, and need a GPU, say so when they are launched."""
    for method, language in methods.items():
        if hasattr(compiler, method):

            def made(self: Any, *args: Any, _language: str = language, **kwargs: Any) -> Any:
                return Refused(_language)

            setattr(compiler, method, made)


class Refused:
    """A kernel in a language that is not interpreted."""

    def __init__(self, language: str) -> None:
        self.run = self.__call__ = not_interpreted(f"a kernel in {language}")


VERSIONS = {"torch": torch.__version__, "triton": triton.__version__}
