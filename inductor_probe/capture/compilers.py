"""Runs of the C++ compiler, added to torch's own trace: torch times them, and does not say of what they are.

`run_compile_cmd` of torch/_inductor/cpp_builder.py starts each of them, for kernels in threads beside each
other. An entry is an artifact of the trace (`trace_structured`), so that one log has all of a compile:

    V1128 ... {"artifact": {"name": "probe_build", "encoding": "json"}, ...}
        {"kind": "kernel", "digest": "5f3a...", "seconds": 0.91}
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.compile_time import BUILD_ARTIFACT, kernel_digest

_CHECK = "_chk_kernel"
"""In the programs by which torch tries the compiler: `VecISA.check_build`."""
_HEADERS = (".h", ".hpp", ".gch", ".pch")
_LARGEST = 1 << 24
"""Bytes of a source that is read; constants of AOTInductor stand in sources that are larger."""


def hooks() -> dict[str, Callable[[Any], None]]:
    """Return what is to be called when torch's module is imported."""
    return {"torch._inductor.cpp_builder": lambda module: wrap(module, "run_compile_cmd", _around)}


def _around(run: Callable[[str, str], None]) -> Callable[[str, str], None]:
    def run_and_trace(cmd_line: str, cwd: str) -> None:
        begun = time.perf_counter()
        try:
            run(cmd_line, cwd)
        finally:
            seconds = time.perf_counter() - begun
            _trace(lambda: {**_facts(cmd_line, cwd), "seconds": round(seconds, 6)})

    return run_and_trace


def _trace(facts: Callable[[], dict[str, object]]) -> None:
    sys.modules["torch._logging"].trace_structured(
        "artifact",
        lambda: {"name": BUILD_ARTIFACT, "encoding": "json"},
        payload_fn=facts,
        expect_trace_id=False,
    )


def _facts(cmd_line: str, cwd: str) -> dict[str, object]:
    """Return of what a command is; `digest` names the text of a kernel."""
    words = shlex.split(cmd_line)
    source = next((word for word in words if word.endswith(".cpp")), None)
    if source is None:  # what is compiled is a header
        return {"kind": "header" if any(word.endswith(_HEADERS) for word in words) else "other"}
    text = _text(Path(cwd, source))
    if _CHECK in text:
        return {"kind": "check"}
    digest = kernel_digest(text)
    return {"kind": "kernel", "digest": digest} if digest else {"kind": "other"}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= _LARGEST else ""
    except (OSError, ValueError):
        return ""
