"""What `probe show` tells about a name: which page it is, and what is on it."""

from inductor_probe.analysis.pages.graph import graph_page
from inductor_probe.analysis.pages.of_name import Page, page_of

__all__ = ["Page", "graph_page", "page_of"]
