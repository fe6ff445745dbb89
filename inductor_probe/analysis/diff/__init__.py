"""What changed between two graphs or runs."""

from inductor_probe.analysis.diff.graph import diff_graphs
from inductor_probe.analysis.diff.runs import diff_graphs_of_runs, diff_runs, pair_graphs
from inductor_probe.analysis.diff.source import code_diff

__all__ = ["code_diff", "diff_graphs", "diff_graphs_of_runs", "diff_runs", "pair_graphs"]
