"""What was fused when, and what was not and why."""

from inductor_probe.analysis.fusion.matching import Matched, match_log
from inductor_probe.analysis.fusion.overview import fusion_of_graph, fusion_of_node
from inductor_probe.analysis.fusion.pair import fusion_of_pair

__all__ = ["Matched", "fusion_of_graph", "fusion_of_node", "fusion_of_pair", "match_log"]
