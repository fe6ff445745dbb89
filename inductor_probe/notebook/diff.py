"""A comparison, with the code of kernels that differ to unfold."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from inductor_probe.notebook.code import difference
from inductor_probe.notebook.page import folded, page
from inductor_probe.notebook.rich_html import rich_html

_MOST_TEXTS = 20


def diff_html(shown: RenderableType, code: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    """Return a comparison; `code` has a title and a unified diff for each pair of kernels that differs."""
    texts = [folded(title, difference(lines)) for title, lines in code[:_MOST_TEXTS] if lines]
    return page(rich_html(shown), *texts)
