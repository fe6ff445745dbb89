"""A process that compiles cases as torch is, and asks each patched function what it would have decided.

Started by `changes.py sweep`, with names of patches as arguments: it reads names of cases on its standard
input, and answers each with a line of JSON: how many graphs there were, how often the patched functions of
torch were called, and how often a patch returned something else, by patch and by what was supposed:
`short_ranges, avx2`, `tiles, 16 threads`. The patched functions compute a decision and change nothing, so
that code can differ only where a decision does: a compile answers for all patches, for AVX2 and AVX-512,
and for any number of threads. A function that rewrites a graph cannot be asked twice: of those each call
counts. `changes.py sweep` then compiles with the patch what it turns, and compares
the code. With SWEEP_TARGET (`h100`) cases are those for a GPU, which is simulated.
"""

from __future__ import annotations

import collections
import importlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.findings.patches import PATCHES, copy_of, patched, replace
from benchmarks.sweeps import op_db, recorders_worker, worker
from inductor_probe.capture.targets.graphs import leave_kernels_out

NETWORKS = "findings_networks::"
VECTOR_BITS = {"avx2": 256, "avx512": 512}
THREADS = (2, 16, 64)
_TILING, _THREADS = "TilingSelect.select_tiling", "CppKernel.decide_parallel_depth"
_REWRITES = "torch._inductor.fx_passes."
"""Functions that build a part of a graph: each call counts as turned, and is made once."""


class Asked:
    """Functions of torch that, when called, ask their patched forms as well."""

    def __init__(self, patches: list[str]) -> None:
        from torch._inductor import cpu_vec_isa

        self.turned: collections.Counter[str] = collections.Counter()
        self.calls: collections.Counter[str] = collections.Counter()
        self._asking = False
        known = {isa.bit_width() for isa in cpu_vec_isa.valid_vec_isa_list()}
        self.vectors = {name: bits for name, bits in VECTOR_BITS.items() if bits in known}
        forms: dict[str, dict[str, Callable[..., Any]]] = {}
        for patch in patches:
            for place in PATCHES[patch].sources:
                forms.setdefault(place, {})[patch] = patched(place, PATCHES[patch])
        for place, of_patches in forms.items():
            replace(place, self._function(place, copy_of(place), of_patches))

    def _function(
        self, place: str, original: Callable[..., Any], of_patches: dict[str, Callable[..., Any]]
    ) -> Callable[..., Any]:
        def function(*args: Any, **kwargs: Any) -> Any:
            decided = original(*args, **kwargs)
            if not self._asking:
                self._asking = True
                try:
                    self.calls[place.rpartition(":")[2]] += 1
                    self._ask(place, original, of_patches, args, kwargs)
                finally:
                    self._asking = False
            return decided

        return function

    def _ask(
        self,
        place: str,
        original: Callable[..., Any],
        of_patches: dict[str, Callable[..., Any]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        from torch._inductor import config

        if place.startswith(_REWRITES):
            self.turned.update(list(of_patches))  # names: each counts as one
        elif place.endswith(_TILING):
            for name, bits in self.vectors.items():
                with config.patch({"cpp.simdlen": bits}):
                    before = original(*args, **kwargs)[:2]
                    for patch, form in of_patches.items():
                        self.turned[f"{patch}, {name}"] += form(*args, **kwargs)[:2] != before
        elif place.endswith(_THREADS):
            kernel, most, _ = args
            for threads in THREADS:
                before = original(kernel, most, threads)
                for patch, form in of_patches.items():
                    self.turned[f"{patch}, {threads} threads"] += form(kernel, most, threads) != before
        else:
            before = original(*args, **kwargs)
            for patch, form in of_patches.items():
                self.turned[patch] += form(*args, **kwargs) != before


def networks() -> Any:
    """Return the module of networks, which imports torch: a GPU is simulated from then on."""
    return importlib.import_module("benchmarks.findings.networks")


def compile_case(name: str, folder: Path, device: str) -> tuple[int, str | None]:
    """Compile a case cold; return for how many graphs code was generated, and why there was none."""
    from torch._inductor.graph import GraphLowering

    codegen, graphs = GraphLowering.codegen, 0

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return codegen(*args, **kwargs)

    cases: Any = op_db
    if "::" in name:
        cases = recorders_worker.Scenarios()
    if name.startswith(NETWORKS):
        cases, name = networks(), name.removeprefix(NETWORKS)
    shutil.rmtree(os.environ["TORCHINDUCTOR_CACHE_DIR"], ignore_errors=True)
    GraphLowering.codegen = counted
    try:
        reason = worker.compile_case(cases, name, device, worker.compiler(None), folder)
    finally:
        GraphLowering.codegen = codegen
    return graphs, reason


def main() -> None:
    """Answer names until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.path.insert(0, str(recorders_worker.SCENARIOS))
    with tempfile.TemporaryDirectory(prefix="findings_", ignore_cleanup_errors=True) as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder) / "inductor")
        device = "cuda" if (target := os.environ.get(worker.TARGET)) else "cpu"
        if target:
            worker.simulate(target, Path(folder) / worker.EVENTS)
        import torch

        torch.set_num_threads(2)
        worker.compiler(None)  # imports inductor
        for setting in ("capture_dynamic_output_shape_ops", "capture_scalar_outputs"):
            setattr(importlib.import_module("torch._dynamo.config"), setting, True)
        leave_kernels_out()
        asked = Asked(sys.argv[1:])
        for line in sys.stdin:
            name, _, count = line.strip().partition(" ")
            answer: Any
            if name == "cases":
                answer = [NETWORKS + network for network in networks().names(device)]
                answer += recorders_worker.scenario_cases(device)
                answer += recorders_worker.operator_cases(int(count), device)
            else:
                asked.turned.clear()
                asked.calls.clear()
                graphs, reason = compile_case(name, Path(folder), device)
                turned = {key: number for key, number in asked.turned.items() if number}
                answer = {
                    "case": name,
                    "graphs": graphs,
                    "reason": reason,
                    "calls": asked.calls,
                    "turned": turned,
                }
            answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
