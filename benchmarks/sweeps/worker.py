"""A process that compiles cases one after another, each into a folder of its own, with torch's dumps on.

Started by `run.py`, which reads a first line when it is ready, gives it names of cases on its standard
input and reads a line of JSON for each. A dump needs the code of a kernel but not the compiled kernel, and
g++ takes 10 to 20 seconds for one: so the C++ and Triton compilers are not run here, and what inductor
compiled is computed by the operators of the FX graph instead, which also gives backward passes and graph
breaks real numbers to go on.
"""

from __future__ import annotations

import copy
import functools
import importlib
import itertools
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import wrapt

from inductor_probe.capture import hooks, targets
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.targets.graphs import leave_kernels_out
from inductor_probe.machine.targets import find_gpu_target

TREE = "torch_compile_debug"
STDERR = "stderr.txt"
TARGET = "SWEEP_TARGET"
"""Variable of the environment with the GPU to simulate."""
EVENTS = ".simulated"
"""Folder in that of the dumps, with what could not be simulated."""
_ATTEMPTS = 4  # inputs tried for a case before it counts as failed
_REASON = 400  # characters of an error kept in the list
_Compiler = Callable[..., Any]  # torch.compile, or something like it


class Cases(Protocol):
    """A module of cases: `op_db.py`, `models.py`, `settings.py`."""

    def names(self, _device: str) -> list[str]:
        """Return the names of all cases, which are also the names of their folders."""

    def attempts(self, name: str, device: str, compiler: _Compiler) -> Iterator[Callable[[], object]]:
        """Yield ways to compile and run the case `name`, best first: the first that works is kept."""


def compiler(mode: str | None) -> _Compiler:
    """Return `torch.compile` with a backend that lets inductor compile, and computes with the FX graph."""
    import torch
    from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    if os.environ.get(TARGET):  # what a simulated GPU compiles computes with the FX graph already
        return functools.partial(torch.compile, mode=mode)
    options = torch._inductor.list_mode_options(mode) if mode else {}

    def inner(graph: Any, inputs: Any, **kwargs: Any) -> Any:
        before = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))  # inductor's passes change `graph`
        compiled = compile_fx_inner(graph, inputs, **kwargs)
        if hasattr(compiled, "current_callable"):
            compiled.current_callable = lambda values: torch.fx.Interpreter(before).run(*values)
        return compiled

    def backend(graph: Any, inputs: Any) -> Any:
        return compile_fx(graph, inputs, inner_compile=inner, config_patches=options)

    return functools.partial(torch.compile, backend=backend)


def simulate(target: str, folder: Path) -> None:
    """Simulate a GPU from the import of torch on, as `probe dump --target` does; notes go to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    events = EventLog(folder)
    for module, hook in targets.hooks(find_gpu_target(target), events):
        wrapt.register_post_import_hook(hooks.or_note(hook, events), module)


def start_over(tree: Path) -> None:
    """Forget what was compiled, and let the next graphs be dumped to `tree`, counted from zero."""
    import torch

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    torch._dynamo.config.debug_dir_root = str(tree)
    torch._dynamo.utils._get_debug_dir.cache_clear()
    torch._inductor.debug.DebugContext._counter = itertools.count()
    torch._inductor.debug._inductor_kernel_provenance_debug_handle = 0
    torch._inductor.compile_fx._graph_counter = itertools.count()
    torch._functorch.aot_autograd.AOT_COUNTER = itertools.count()
    torch._functorch._aot_autograd.logging_utils.nth_graph = 0
    trace = torch._logging._internal.LOG_TRACE_HANDLER
    if trace.root_dir:  # torch 2.13 keeps a trace in the tree as well
        if trace.stream:
            trace.stream.close()
        trace.stream, trace.root_dir = None, str(tree / "tlparse")


def compile_case(cases: Cases, name: str, device: str, compile_: _Compiler, folder: Path) -> str | None:
    """Dump the case `name` into `folder`; return None, or why no input of it could be compiled."""
    tree = folder / TREE
    reason = None
    start_over(tree)
    left = cases.attempts(name, device, compile_)
    for _ in range(_ATTEMPTS):
        try:
            if (attempt := next(left, None)) is None:
                break
            shutil.rmtree(tree, ignore_errors=True)  # of an attempt that failed
            start_over(tree)
            attempt()
        except Exception as error:  # an operator may fail in any way; the list says how the first one did
            reason = reason or f"{type(error).__name__}: {error}"[:_REASON]
        else:
            return None
    return reason or "no input for it"


def graphs_in(tree: Path) -> int:
    """Count the graphs whose code was dumped."""
    return sum(1 for _ in tree.glob("run_*/torchinductor/*/output_code.*"))


def why_no_graph() -> str:
    """Say why nothing was compiled, though nothing failed."""
    import torch

    broken = torch._dynamo.utils.counters["graph_break"]
    reason = next(iter(broken), "it computes nothing: a view, or its input as it is")
    return " ".join(reason.split())[:_REASON]


def work(module: str, device: str, mode: str | None, build: bool, out: Path) -> None:
    """Answer names on standard input until it ends; with `TARGET` set, of the GPU of that name."""
    target = os.environ.get(TARGET)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    if target:
        simulate(target, out / EVENTS)
    import torch

    torch.set_num_threads(1)
    # Sizes that depend on data, and `.item()`, stay in the graph with a symbol of their own.
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    torch._dynamo.config.capture_scalar_outputs = True
    cases: Cases = importlib.import_module(module)
    compile_ = compiler(mode)
    if not build and not target:
        leave_kernels_out()
    terminal = os.dup(2)
    answers.write("ready\n")
    for line in sys.stdin:
        name = line.strip()
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with (folder / STDERR).open("w") as log:
            for stream in (1, 2):
                os.dup2(log.fileno(), stream)
        begin = time.perf_counter()
        reason = compile_case(cases, name, device, compile_, folder)
        seconds = round(time.perf_counter() - begin, 2)
        for stream in (1, 2):
            os.dup2(terminal, stream)
        graphs = graphs_in(folder / TREE)
        status = "failed" if reason else "ok" if graphs else "no graph"
        if status == "no graph":
            reason = why_no_graph()
        row = {"name": name, "status": status, "graphs": graphs, "seconds": seconds, "reason": reason}
        # After an error on the GPU every later call of the process fails, too.
        ends = "CUDA error" in (reason or "")
        answers.write(json.dumps({**row, "ends": ends}) + "\n")
        if ends:
            break


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], sys.argv[3] or None, sys.argv[4] == "build", Path(sys.argv[5]))
