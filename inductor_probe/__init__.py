"""inductor_probe: a microscope for TorchInductor.

    import inductor_probe as ip
    run = ip.dump("scenarios/check_hflip.py")
    run.graphs[0].layouts("buf0")

Names are loaded when first used: importing the package costs nothing and imports neither torch nor rich.
"""

# No import here: `python -m inductor_probe` runs this file while the working folder, perhaps a stranger's
# dump with a `typing.py` in it, comes first on the path. `__main__` takes it away.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from inductor_probe.api.bench import Bench, rewrites, verdict
    from inductor_probe.api.check import Check, check
    from inductor_probe.api.debug import debug
    from inductor_probe.api.diff import Diff, diff
    from inductor_probe.api.doctor import Health, doctor
    from inductor_probe.api.fusion_rows import FusionRows
    from inductor_probe.api.graph import Graph
    from inductor_probe.api.kernels import KernelRows
    from inductor_probe.api.nodes import NodeRows
    from inductor_probe.api.rows import LayoutRows
    from inductor_probe.api.run import Run
    from inductor_probe.api.runs import RunList, plan_removal, remove_run, runs
    from inductor_probe.api.show import Page, Pages
    from inductor_probe.api.tunings import Tunings, tunings
    from inductor_probe.api.verbs import (
        bench_kernel,
        dump,
        fusion,
        kernels,
        layouts,
        nodes,
        open_graph,
        open_run,
        show,
    )
    from inductor_probe.errors import NotFoundError, ProbeError
    from inductor_probe.model.bench import BenchSettings

__version__ = "0.1.0"

_HOMES = {
    "Bench": "api.bench",
    "BenchSettings": "model.bench",
    "Check": "api.check",
    "Diff": "api.diff",
    "FusionRows": "api.fusion_rows",
    "Graph": "api.graph",
    "Health": "api.doctor",
    "KernelRows": "api.kernels",
    "LayoutRows": "api.rows",
    "NodeRows": "api.nodes",
    "NotFoundError": "errors",
    "Page": "api.show",
    "Pages": "api.show",
    "ProbeError": "errors",
    "Run": "api.run",
    "RunList": "api.runs",
    "Tunings": "api.tunings",
    "bench_kernel": "api.verbs",
    "check": "api.check",
    "debug": "api.debug",
    "diff": "api.diff",
    "doctor": "api.doctor",
    "dump": "api.verbs",
    "fusion": "api.verbs",
    "kernels": "api.verbs",
    "layouts": "api.verbs",
    "nodes": "api.verbs",
    "open_graph": "api.verbs",
    "open_run": "api.verbs",
    "plan_removal": "api.runs",
    "remove_run": "api.runs",
    "rewrites": "api.bench",
    "runs": "api.runs",
    "show": "api.verbs",
    "tunings": "api.tunings",
    "verdict": "api.bench",
}
__all__ = [
    "Bench",
    "BenchSettings",
    "Check",
    "Diff",
    "FusionRows",
    "Graph",
    "Health",
    "KernelRows",
    "LayoutRows",
    "NodeRows",
    "NotFoundError",
    "Page",
    "Pages",
    "ProbeError",
    "Run",
    "RunList",
    "Tunings",
    "bench_kernel",
    "check",
    "debug",
    "diff",
    "doctor",
    "dump",
    "fusion",
    "kernels",
    "layouts",
    "nodes",
    "open_graph",
    "open_run",
    "plan_removal",
    "remove_run",
    "rewrites",
    "runs",
    "show",
    "tunings",
    "verdict",
]


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only when a name is asked for

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> "list[str]":
    return sorted([*globals(), *__all__])
