"""inductor_probe: a microscope for TorchInductor.

    import inductor_probe as ip
    run = ip.dump("scenarios/check_hflip.py")
    run.graphs[0].layouts("buf0")

Names are loaded when first used: importing the package costs nothing and imports neither torch nor rich.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inductor_probe.api import (
        Bench,
        Graph,
        LayoutRows,
        Run,
        bench_kernel,
        dump,
        layouts,
        open_graph,
        open_run,
    )
    from inductor_probe.errors import NotFoundError, ProbeError

__version__ = "0.1.0"

__all__ = [
    "Bench",
    "Graph",
    "LayoutRows",
    "NotFoundError",
    "ProbeError",
    "Run",
    "bench_kernel",
    "dump",
    "layouts",
    "open_graph",
    "open_run",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only when a name is asked for

    module = "errors" if name.endswith("Error") else "api"
    return getattr(import_module(f"{__name__}.{module}"), name)
