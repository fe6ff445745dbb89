"""Records to records, pure: what the dump implies."""

from inductor_probe.analysis.annotate import annotate
from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.layouts import layouts
from inductor_probe.analysis.nodes import node_rows
from inductor_probe.analysis.pages import graph_page, page_of
from inductor_probe.analysis.summary import summarise

__all__ = [
    "annotate",
    "check_graph",
    "graph_page",
    "kernel_rows",
    "layouts",
    "node_rows",
    "page_of",
    "summarise",
]
