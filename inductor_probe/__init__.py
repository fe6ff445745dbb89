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

    from inductor_probe.api import (
        Bench,
        FusionRows,
        Graph,
        LayoutRows,
        Run,
        bench_kernel,
        dump,
        fusion,
        layouts,
        open_graph,
        open_run,
    )
    from inductor_probe.api.diff import Diff, diff
    from inductor_probe.api.kernels import KernelRows
    from inductor_probe.api.runs import RunList, plan_removal, remove_run, runs
    from inductor_probe.api.verbs import kernels, nodes, show
    from inductor_probe.errors import NotFoundError, ProbeError

__version__ = "0.1.0"

__all__ = [
    "Bench",
    "Diff",
    "FusionRows",
    "Graph",
    "KernelRows",
    "LayoutRows",
    "NotFoundError",
    "ProbeError",
    "Run",
    "RunList",
    "bench_kernel",
    "diff",
    "dump",
    "fusion",
    "kernels",
    "layouts",
    "nodes",
    "open_graph",
    "open_run",
    "plan_removal",
    "remove_run",
    "runs",
    "show",
]


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only when a name is asked for

    module = "errors" if name.endswith("Error") else "api"
    return getattr(import_module(f"{__name__}.{module}"), name)
