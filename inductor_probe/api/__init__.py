"""The verbs of `probe` as functions, and the objects they return. The command line is a mirror of this."""

from inductor_probe.api.bench import Bench
from inductor_probe.api.check import Check, check
from inductor_probe.api.diff import Diff, diff
from inductor_probe.api.fusion_rows import FusionRows
from inductor_probe.api.graph import Graph
from inductor_probe.api.kernels import KERNEL_ORDERS, KernelRows
from inductor_probe.api.nodes import NODE_ORDERS, NodeRows
from inductor_probe.api.rows import LayoutRows
from inductor_probe.api.run import Run
from inductor_probe.api.runs import RunList, plan_removal, remove_run, runs
from inductor_probe.api.show import Page, Pages
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

__all__ = [
    "KERNEL_ORDERS",
    "NODE_ORDERS",
    "Bench",
    "Check",
    "Diff",
    "FusionRows",
    "Graph",
    "KernelRows",
    "LayoutRows",
    "NodeRows",
    "Page",
    "Pages",
    "Run",
    "RunList",
    "bench_kernel",
    "check",
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
