"""What dynamo did, and which generated code ran: asked of torch by attribute, each in one place.

The proof that a column ran what it says: `sys.setprofile` calls back for each Python function that is called,
and a wrapper that inductor generated is one, `call`, in a file of inductor's cache. So a call of
`torch.compile(f)` under a profile function names the files that ran; where none did, `f` ran eagerly,
whatever the reason was.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch._dynamo import utils

# torch/_dynamo/convert_frame.py: `torch._dynamo hit config.%s (%s)`, with recompile_limit or
# accumulated_recompile_limit; cache_size_limit in releases before 2.6.
LIMIT = re.compile(r"hit config\.\w*limit")
LIMIT_LOGGER = "torch._dynamo.convert_frame"
# torch/_inductor/cudagraph_trees.py: a recorded CUDA graph is replayed, and the wrapper is not called again.
REPLAY = "cudagraph_trees.py"
# torch/_inductor/codegen/wrapper.py prints a fallback as `buf0 = torch.ops.aten.sort.stable(...)`.
FALLBACK = re.compile(r"^\s+(?:\w+ = )?torch\.ops\.(?P<operator>aten\.\w+(?:\.\w+)?)\(", re.M)
# torch/_inductor/codegen/wrapper.py, write_header: every generated wrapper imports it.
IMPORTED = "AsyncCompile"
ALLOCATIONS = ("aten.empty", "aten.set_", "aten.as_strided")


@dataclass
class Counts:
    """What dynamo has done since it was asked last."""

    compiles: int = 0
    recompiles: int = 0
    graph_breaks: int = 0
    limit_hits: int = 0


class _Limits(logging.Handler):
    """Counts the warnings in which dynamo says that it compiles a function no more."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.hits = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count a warning."""
        self.hits += bool(LIMIT.search(record.getMessage()))


class Counter:
    """Counts what dynamo does from now on."""

    def __init__(self) -> None:
        self._limits = _Limits()
        logging.getLogger(LIMIT_LOGGER).addHandler(self._limits)
        self._before = self._totals()

    def since(self) -> Counts:
        """Return what was done since the last time."""
        now = self._totals()
        before, self._before = self._before, now
        return Counts(*(new - old for new, old in zip(now, before, strict=True)))

    def _totals(self) -> tuple[int, int, int, int]:
        """Return compiles, recompiles, graph breaks and limit hits so far.

        torch._dynamo.utils.get_compilation_metrics has an entry for each frame that dynamo compiled or tried
        to; `compile_id` is `0/1` for the second compile of frame 0. One that failed has a `fail_type`, one
        without operators no graph.
        """
        metrics: list[Any] = getattr(utils, "get_compilation_metrics", list)()
        done = [entry for entry in metrics if getattr(entry, "fail_type", None) is None]
        done = [entry for entry in done if getattr(entry, "graph_op_count", None)]
        again = [
            entry for entry in done if not str(getattr(entry, "compile_id", "")).rstrip("]").endswith("/0")
        ]
        breaks = sum(utils.counters["graph_break"].values())
        return len(done), len(again), breaks, self._limits.hits


@dataclass
class Ran:
    """A file of generated code that ran in a call, with its `call` and what that was given."""

    path: str
    call: Callable[[list[Any]], Any]
    args: list[Any]
    namespace: dict[str, Any] = field(repr=False, default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return it for JSON: `GeneratedCode`."""
        text = Path(self.path).read_text(encoding="utf-8")
        operators = [match["operator"] for match in FALLBACK.finditer(text)]
        fallbacks = [name for name in operators if not name.startswith(ALLOCATIONS)]
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {"path": self.path, "sha256": digest, "fallbacks": fallbacks}


@dataclass
class Observed:
    """What ran in a call: generated files, each once; or a CUDA graph that was recorded of one before."""

    ran: list[Ran] = field(default_factory=list)
    replayed: bool = False

    @property
    def paths(self) -> list[str]:
        """The files that ran."""
        return [one.path for one in self.ran]


@contextmanager
def observing() -> Iterator[Observed]:
    """Note the generated code that runs in the body, in this thread.

    The backward of tensors on a GPU runs in a thread of autograd, where no profile function is set; without
    multithreading it runs in this one (torch/csrc/autograd/engine.cpp, Engine::ready_queue).
    """
    observed = Observed()

    def see(frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_name == "call" and IMPORTED in frame.f_globals and "args" in frame.f_locals:
            if code.co_filename not in observed.paths:
                values = frame.f_locals["args"]
                call = frame.f_globals.get("call")
                if isinstance(values, list) and callable(call):
                    observed.ran.append(Ran(code.co_filename, call, [*values], frame.f_globals))
        elif code.co_filename.endswith(REPLAY):
            observed.replayed = True

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        with torch.autograd.set_multithreading_enabled(False):
            yield observed
    finally:
        sys.setprofile(before)
