"""The verbs of `probe` as functions, and the objects they return. The command line is a mirror of this."""

from inductor_probe.api.bench import Bench
from inductor_probe.api.graph import Graph
from inductor_probe.api.rows import LayoutRows
from inductor_probe.api.run import Run
from inductor_probe.api.verbs import bench_kernel, dump, layouts, open_graph, open_run

__all__ = ["Bench", "Graph", "LayoutRows", "Run", "bench_kernel", "dump", "layouts", "open_graph", "open_run"]
