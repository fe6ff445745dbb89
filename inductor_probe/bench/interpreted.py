"""A bench file checked without a GPU: triton's interpreter runs its kernels in a child process.

The child is that of `harness/interpreter`. It reaches no memory that is not an argument of a kernel; where it
ends all the same, what it was checking is wrong, and the rest is checked by another one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from inductor_probe.bench.state import COPY
from inductor_probe.errors import RunFailedError
from inductor_probe.executors.child import Event
from inductor_probe.executors.server import JobFailedError, Server
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.codec import from_json
from inductor_probe.model.kernel_check import (
    NOT_COMPARED,
    InterpretedKernel,
    KernelCheck,
    KernelVerdict,
    is_interpreted,
)
from inductor_probe.model.remark import Remark
from inductor_probe.model.timing import Variant

Progress = Callable[[str], None]

_JOB = "inductor_probe.harness.interpreter.checks:check"
_ENVIRONMENT = {
    "TRITON_INTERPRET": "1",  # triton reads it when it is imported
    "CUDA_VISIBLE_DEVICES": "",  # everything runs on the CPU, on a machine with a GPU, too
}
_NO_TRITON = "No module named 'triton'"


def check_interpreted(
    path: Path,
    source: str,
    settings: BenchSettings,
    limit: float,
    progress: Progress | None = None,
) -> KernelCheck:
    """Run the text of a bench file on the CPU, kernels in triton's interpreter; this executes the code in it.

    Args:
        path: `output_code_bench.py` of a graph. source: its text, as it was judged.
        settings: `kernel`, `inputs`, `sizes`, `threads` and `imports` count.
        limit: seconds for one run of the call.
        progress: called with what is done next: `checking triton_poi_fused_flip_0_v2`.

    Raises:
        NotFoundError: no such size, or no such inputs. RunFailedError: torch or triton is missing, or the
            file cannot be loaded.
    """
    progress = progress or (lambda text: None)
    crashed: dict[str, str] = {}
    with Server(path, source, imports=settings.imports, environment=_ENVIRONMENT) as server:
        while True:
            heard = _Heard(progress)
            request = {
                "job": _JOB,
                "inputs": settings.inputs,
                "sizes": list(settings.sizes),
                "seed": 0,
                "threads": settings.threads,
                "limit": limit,
                "only": settings.kernel,
                "crashed": crashed,
            }
            progress("importing torch and triton")
            try:
                for event in server.events(request):
                    heard.take(event)
            except JobFailedError as error:
                name = error.names[-1] if error.names else ""
                if _NO_TRITON in error.message:
                    why = f"triton is not installed for {server.python}, and its interpreter runs the kernels"
                    raise RunFailedError(
                        why, "install the triton that torch names: pip show torch"
                    ) from error
                if not COPY.search(name) or name in crashed:
                    raise error.error(path) from error
                crashed[name] = error.message
                continue
            return heard.result(path, settings)


class _Heard:
    """What the child says, until it has ended."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.variants: list[Variant] = []
        self.rounds = 0
        self.remarks: tuple[Remark, ...] = ()
        self.kernels: Event = {}
        self.graph = ""

    def take(self, event: Event) -> None:
        match event["event"]:
            case "phase":
                self.progress(" ".join([event["phase"], *event["names"]]))
            case "check":
                self.variants.append(from_json(Variant, event["variant"]))
                self.rounds = event.get("rounds", self.rounds)
            case "remarks":
                self.remarks = tuple(from_json(Remark, remark) for remark in event["remarks"])
            case "kernels":
                self.kernels = event

    def result(self, path: Path, settings: BenchSettings) -> KernelCheck:
        """Return what it all comes to."""
        call, *variants = self.variants
        return KernelCheck(
            graph=path.parent.name,
            path=path,
            torch=self.kernels["versions"]["torch"],
            triton=self.kernels["versions"]["triton"],
            values=settings.inputs,
            rounds=self.rounds,
            call=call,
            kernels=tuple(_kernel(call, row, self.kernels["kernels"]) for row in self.kernels["kernels"]),
            variants=tuple(variants),
            relaid=tuple(self.kernels["relaid"]),
            by_formula=tuple(self.kernels["by_formula"]),
            drawn=tuple(self.kernels["drawn"]),
            warnings=self.remarks,
        )


def _kernel(call: Variant, row: dict[str, Any], rows: list[dict[str, Any]]) -> InterpretedKernel:
    return InterpretedKernel(
        row["name"],
        _verdict(
            call,
            row,
            [one["name"] for one in rows if one["launches"]],
            compared=not any(remark.code in NOT_COMPARED for remark in call.remarks),
        ),
        row["launches"],
        row["programs"],
        row["seconds"],
        tuple(row["config"].items()),
    )


def _verdict(call: Variant, row: dict[str, Any], launched: list[str], *, compared: bool) -> KernelVerdict:
    """Judge a kernel by the call: it is at fault where the call says so, or where there is no other."""
    accused = [str(remark.number("kernel")) for remark in call.remarks if remark.number("kernel")]
    if row["name"] in accused:
        return "wrong" if is_interpreted(call) else "not-judged"
    if not row["launches"]:
        return "not-launched" if call.correct else "not-decided"
    if call.correct:
        return "right" if compared else "not-judged"
    alone = launched == [row["name"]] and not accused and is_interpreted(call)
    return "wrong" if alone else "not-decided"
