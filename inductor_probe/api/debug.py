"""`debug`: a script's dump, with stops in the compiler for a debugger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.api.run import Run
from inductor_probe.reader.debug_dir import read_run

if TYPE_CHECKING:
    from inductor_probe.debugging import Endpoint, Planned


def debug(
    script: str | Path,
    *,
    places: Sequence[str] = (),
    subjects: Sequence[str] = (),
    listen: str | None = "5678",
    args: Sequence[str] = (),
    cases: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    out: Path | None = None,
    stdout_to_stderr: bool = False,
    before: Callable[[Planned, Endpoint | None], None] | None = None,
) -> Run:
    """Dump a script as `dump` does, in a child that waits for a debugger and stops for it in the compiler.

    Args:
        script, args, cases, knobs, out, stdout_to_stderr: see `dump`.
        places: where to stop: `torch._inductor.codegen.cpp:LoopLevel.lines`, with ` if CONDITION` on the
            function's arguments or without; `torch/_inductor/ir.py:123`; a set of places (`fusion`).
        subjects: stop when something happens to `buf3`, `op3`, the pair `op3,op4`, or a kernel of that name.
        listen: PORT or HOST:PORT, this machine alone unless HOST says otherwise; None is pdb in the terminal.
        before: called with the stops and the endpoint, before the child starts.

    Raises:
        NotFoundError: no such script; none of the places is in the installed torch.
        ProbeError: a place, subject or condition is spelled wrongly; debugpy is not installed.
        RunFailedError: the port is taken; no debugger came.
    """
    from inductor_probe import capture, debugging

    cwd = Path.cwd()
    found = capture.find_script(str(script), cwd)
    planned = debugging.plan(places, subjects, cwd, (cwd / found).resolve().parent)
    endpoint = None if listen is None else debugging.read_endpoint(listen)
    if before is not None:
        before(planned, endpoint)
    result = debugging.debug(
        found,
        planned.stops,
        endpoint,
        args=args,
        cases=cases,
        knobs=knobs,
        out=out,
        stdout_to_stderr=stdout_to_stderr,
    )
    return Run(read_run(result.run), result.not_remembered)
