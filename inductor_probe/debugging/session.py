"""`debug`: a dump whose child stops for a debugger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from inductor_probe.capture import DumpResult, Program, dump
from inductor_probe.debugging.attached import MISSING
from inductor_probe.debugging.endpoint import Endpoint
from inductor_probe.debugging.stops import Stop, stops_to_json
from inductor_probe.errors import ProbeError

_CHILD = Path(__file__).with_name("child.py")
_SETTINGS = {
    "TORCHINDUCTOR_COMPILE_THREADS": "1",  # kernels are compiled in this process, where it can stop
    "TORCHINDUCTOR_AUTOTUNE_IN_SUBPROC": "0",
    "TORCHINDUCTOR_FX_COMPILE_MODE": "NORMAL",
    # Dynamo evaluates frames itself; pydevd's own way of doing so (Python 3.10) would take its place.
    "PYDEVD_USE_FRAME_EVAL": "NO",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # warns of Python's frozen modules, in which nobody stops here
}


def debug(
    script: Path,
    stops: Sequence[Stop],
    endpoint: Endpoint | None,
    *,
    args: Sequence[str] = (),
    cases: Sequence[str] = (),
    knobs: Mapping[str, str] | None = None,
    out: Path | None = None,
    stdout_to_stderr: bool = False,
) -> DumpResult:
    """Dump `script`, stopping at `stops` for a client that attaches at `endpoint`; with pdb if None.

    The script waits until a client is there. Other arguments, and errors, are those of `capture.dump`.

    Raises:
        ProbeError: debugpy is not installed; nothing could stop pdb.
        RunFailedError: the endpoint is taken; no client came before Ctrl-C. There is no run then.
    """
    if endpoint is None and not stops:
        raise ProbeError("pdb has nowhere to stop", "name a place, for example --break fusion")
    if endpoint is not None and find_spec("debugpy") is None:
        raise ProbeError(*MISSING)
    debugger = str(endpoint) if endpoint else "pdb"
    return dump(
        script,
        args=args,
        cases=cases,
        knobs=knobs,
        out=out,
        stdout_to_stderr=stdout_to_stderr,
        program=Program(_CHILD, (stops_to_json(stops), debugger), _SETTINGS, is_debugger=True),
    )
