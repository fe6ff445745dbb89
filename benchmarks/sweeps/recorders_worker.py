"""A process that compiles programs one after another, with the hooks of `probe dump`. See `recorders.py`.

Arguments: FOLDER `decisions`|`facts` [`compilers`] [`patch=NAME`], of `findings/patches.py`. It reads names
on its standard input, and answers each with a line of JSON: seconds and the number of decisions of a program,
digests of `output_code.py` of a case.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.findings import patches
from benchmarks.sweeps import op_db, worker
from inductor_probe.capture import hooks
from inductor_probe.capture.events import EVENTS_NAME, EventLog
from inductor_probe.capture.process import ChildOptions
from inductor_probe.capture.targets.graphs import leave_kernels_out
from inductor_probe.machine.targets import find_gpu_target
from inductor_probe.model.decision import DECISIONS_NAME
from inductor_probe.store.decisions import read_decisions

SCENARIOS = Path(__file__).parents[2] / "scenarios"
_SEPARATOR = "::"  # check_hflip::channels_last, sweep_models::resnet50
_NETWORKS = "sweep_models"
_MODULES = {_NETWORKS: "benchmarks.sweeps.models", "findings_networks": "benchmarks.findings.networks"}
"""What stands before the names of networks -> the module that has them."""


def five_operators() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of five operators."""
    import torch

    def function(image: Any, scale: Any) -> Any:
        return torch.sigmoid(image.flip(-1) * scale + 1).mean(-1)

    return function, (torch.rand(8, 3, 64, 64), torch.rand(3, 1, 1))


def transformer_block() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A block of a transformer."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True, norm_first=True)

    def function(tokens: Any) -> Any:
        return layer(tokens)

    return function, (torch.rand(2, 32, 64),)


def antialias() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Resampling in two passes, with gathers and reductions."""
    import torch

    scenario: Any = importlib.import_module("check_interpolate_bilinear_aa")

    def function(image: Any) -> Any:
        return scenario.separable(image, 64, 64)

    return function, (torch.rand(1, 3, 128, 128).contiguous(memory_format=torch.channels_last),)


def three_hundred_nodes(repeats: int = 60) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A graph of 300 operators, a third of which are buffers."""
    import torch

    def function(values: Any, weight: Any) -> Any:
        for _ in range(repeats):
            values = torch.relu(values * weight) + values.mean(-1, keepdim=True)
            values = torch.tanh(values)
        return values

    return function, (torch.rand(64, 128), torch.rand(128))


def thousand_nodes() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The same of 1,000 operators."""
    return three_hundred_nodes(200)


PROGRAMS = {
    function.__name__: function
    for function in (five_operators, transformer_block, antialias, three_hundred_nodes, thousand_nodes)
}


def compiler(patches: dict[str, Any], **options: Any) -> Callable[..., Any]:
    """Return `torch.compile` that computes with the FX graph, with settings of inductor."""
    import torch

    compile_: Any = worker.compiler(None)
    if os.environ.get(worker.TARGET):
        return functools.partial(torch.compile, options=patches or None, **options)
    backend = compile_.keywords["backend"]

    def patched(graph: Any, inputs: Any) -> Any:
        with torch._inductor.config.patch(patches):
            return backend(graph, inputs)

    return functools.partial(torch.compile, backend=patched, **options)


def below(frames: int, function: Callable[[], object]) -> object:
    """Call a function below further Python frames.

    Python keeps frames in chunks of memory. Where a compile calls and returns across the end of a chunk, each
    such call maps and unmaps a page: in a graph of 300 nodes 14,000 to 90,000 page faults, and up to 40 % of
    the CPU time, by the depth of the stack alone. A recorder adds frames, which moves that end: so that its
    cost is seen, and not this, compiles are timed at several depths.
    """
    return below(frames - 1, function) if frames else function()


def time_program(program: str, frames: int, tree: Path, *, compilers: bool) -> dict[str, float]:
    """Compile a program cold; return seconds, decisions recorded, and the most memory of the process so far.

    Args:
        frames: how many further frames the compile is called below.
    """
    import torch

    function, inputs = PROGRAMS[program]()
    shutil.rmtree(tree, ignore_errors=True)
    shutil.rmtree(os.environ["TORCHINDUCTOR_CACHE_DIR"], ignore_errors=True)
    worker.start_over(tree)
    for name in ("CppCodeCache", "CppPythonBindingsCodeCache"):  # libraries that this process has loaded
        getattr(torch._inductor.codecache, name).cache.clear()
    compile_: Callable[..., Any] = torch.compile if compilers else compiler({})
    compiled = compile_(function)
    wall, cpu = time.perf_counter(), time.thread_time()
    below(frames, lambda: compiled(*inputs))
    seconds = {"wall": time.perf_counter() - wall, "cpu": time.thread_time() - cpu}
    decisions = sum(len(read_decisions(file).decisions) for file in tree.rglob(DECISIONS_NAME))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**seconds, "decisions": decisions, "peak_mib": peak}


def scenario_cases(device: str = "cpu") -> list[str]:
    """Return all cases for a device, as `check_hflip::channels_last`."""
    names = []
    for path in sorted(SCENARIOS.glob("check_*.py")):
        scenario = importlib.import_module(path.stem).scenario
        cases = (scenario.case(name) for name in scenario.cases)
        names += [
            f"{path.stem}{_SEPARATOR}{case.name}"
            for case in cases
            if case.knobs.get("device", "cpu") == device
        ]
    return names


def operator_cases(count: int, device: str = "cpu") -> list[str]:
    """Return `count` cases of the operator database, spread evenly over all."""
    names = op_db.names(device)
    return [names[index * len(names) // count] for index in range(count)]


class Scenarios:
    """Cases of scenarios for `worker.compile_case`."""

    def names(self, device: str) -> list[str]:
        """Return the names of all cases."""
        return scenario_cases(device)

    def attempts(self, name: str, _device: str, _compiler: Any) -> Iterator[Callable[[], object]]:
        """Yield the one way to run a case."""
        module, case = name.split(_SEPARATOR)
        scenario = importlib.import_module(module).scenario
        check = scenario.build(scenario.case(case))
        options = {"dynamic": False, **check.options}
        patches = dict(options.pop("options", {}))
        patches.update(_mode_settings(options.pop("mode", None)))
        compiled = compiler(patches, **options)(check.function)
        yield (
            functools.partial(check.step, compiled, *check.inputs)
            if check.step
            else functools.partial(compiled, *check.inputs)
        )


class _Networks:
    """Whole networks of two modules for `worker.compile_case`."""

    def names(self, device: str) -> list[str]:
        names = importlib.import_module(_MODULES[_NETWORKS]).names(device)
        return [f"{_NETWORKS}{_SEPARATOR}{name}" for name in names]

    def attempts(self, name: str, device: str, compiler: Any) -> Iterator[Callable[[], object]]:
        module, _, network = name.partition(_SEPARATOR)
        attempts: Iterator[Callable[[], object]] = importlib.import_module(_MODULES[module]).attempts(
            network, device, compiler
        )
        return attempts


def _mode_settings(mode: str | None) -> dict[str, Any]:
    import torch

    settings: dict[str, Any] = torch._inductor.list_mode_options(mode) if mode else {}
    return settings


def code_of(name: str, tree: Path, events: Path, device: str) -> dict[str, Any]:
    """Compile a case; return the digest of each graph's code, and what recorders could not record."""
    seen = events.stat().st_size
    shutil.rmtree(os.environ["TORCHINDUCTOR_CACHE_DIR"], ignore_errors=True)
    cases: Any = op_db
    if _SEPARATOR in name:
        cases = _Networks() if name.startswith((*_MODULES,)) else Scenarios()
    folder = tree.parent
    reason = worker.compile_case(cases, name, device, worker.compiler(None), folder)
    files = sorted((folder / worker.TREE).rglob("output_code.py"))
    code = {file.parent.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    with events.open(encoding="utf-8") as lines:
        lines.seek(seen)
        new = [json.loads(line) for line in lines]
    notes = [str(event["values"]) for event in new if event.get("code") == "recorder-failed"]
    return {"code": code, "notes": notes, "reason": reason}


def main() -> None:
    """Answer names until the input ends."""
    folder, kind, *options = Path(sys.argv[1]), *sys.argv[2:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    events = EventLog(folder / "staging")
    target = os.environ.get(worker.TARGET)
    gpu = find_gpu_target(target) if target else None
    hooks.install(events, ChildOptions(record=kind == "decisions", target=gpu))
    sys.path.insert(0, str(SCENARIOS))
    import torch

    torch.set_num_threads(2)
    worker.compiler(None)  # imports inductor
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    torch._dynamo.config.capture_scalar_outputs = True
    compilers = "compilers" in options
    if not compilers:
        leave_kernels_out()
    names = [each.removeprefix("patch=") for each in options if each.startswith("patch=")]
    patches.apply(*(patches.PATCHES[name] for name in names))
    tree, log = folder / worker.TREE, folder / "staging" / EVENTS_NAME
    for line in sys.stdin:
        name, _, count = line.strip().partition(" ")
        answer: Any
        if name == "programs":
            answer = list(PROGRAMS)
        elif name == "cases":
            answer = [*scenario_cases(), *operator_cases(int(count))]
        elif name == "networks":
            answer = _Networks().names("cpu")
        elif name in PROGRAMS:
            answer = time_program(name, int(count or 0), tree, compilers=compilers)
        else:
            answer = code_of(name, tree, log, "cuda" if target else "cpu")
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
