"""The script of `every_program.py`, with g++ for a sample of its programs: it takes longer than all the rest.

A decision is made before there is a kernel. Of every program, inductor lowers, schedules and generates code
as ever, and its results are compared with those of eager. Where the kernels are left out, the FX graph that
inductor lowered computes what the compiled graph returns, as for a simulated GPU.

With `BUILD_EVERY_PROGRAM=1` in the environment, g++ compiles all of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NoReturn

import torch._inductor.async_compile
import torch._inductor.output_code

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.targets.graphs import Graphs
from inductor_probe.scenario import current_case
from tests.proving_ground.every_program import OF_KINDS, PROGRAMS, scenario
from tests.proving_ground.programs import FLIPPED, Program, leave_out_what_decides_nothing
from tests.proving_ground.tensors import frozen


def _first_of_each_kind() -> set[str]:
    first: dict[str, str] = {}
    for kind, programs in OF_KINDS.items():
        for name, program in programs.items():
            if program.is_here and program.device == "cpu":
                first.setdefault(kind, f"{kind}-{name}")
    return set(first.values())


def _is_frozen(program: Program) -> bool:
    """Tell whether parameters become constants: torch takes their values out of the FX graph then."""
    return frozen in (program.step, program.flipped_step)


BUILT = _first_of_each_kind() | {name for name, program in PROGRAMS.items() if _is_frozen(program)}
"""Programs that g++ compiles, and whose kernels run."""


def is_built() -> bool:
    """Tell whether g++ compiles the program that runs now."""
    case = current_case()
    assert case is not None
    return "BUILD_EVERY_PROGRAM" in os.environ or case.name.removesuffix(FLIPPED) in BUILT


class _NoNotes(EventLog):
    """Fails the program of which nothing would be compared."""

    def __init__(self) -> None:
        pass

    def note(self, code: str, **values: str) -> NoReturn:
        raise AssertionError(f"{code}, so it must be in BUILT: {values}")


def _left_out(*_: object) -> NoReturn:
    raise AssertionError("a kernel runs that was left out")


def leave_kernels_out() -> None:
    """Compile the kernels of `BUILT` programs only, and compute what the others return."""
    compile_kernel: Callable[..., Any] = torch._inductor.async_compile.AsyncCompile.cpp_pybinding

    def compile_or_leave(self: Any, argtypes: Any, source: str) -> Any:
        return compile_kernel(self, argtypes, source) if is_built() else _left_out

    torch._inductor.async_compile.AsyncCompile.cpp_pybinding = compile_or_leave
    Graphs(_NoNotes(), lambda lowered: not is_built()).hook(torch._inductor.output_code)


if __name__ == "__main__":
    leave_kernels_out()
    leave_out_what_decides_nothing()
    scenario.main()
