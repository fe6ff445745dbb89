"""Kernels in a table, the page and text of each to unfold."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_probe.model.kernels import KernelRow
from inductor_probe.notebook.code import kernel_code
from inductor_probe.notebook.page import folded, page
from inductor_probe.notebook.rich_html import rich_html
from inductor_probe.report.kernel_page import KernelPage
from inductor_probe.report.kernels import KernelTable

_MOST_TEXTS = 40
"""Kernels whose text comes along; a notebook with thousands could not be opened again."""


def kernels_html(rows: Sequence[KernelRow]) -> str:
    """Return kernels as a table above their pages."""
    texts = [
        folded(row.name, rich_html(KernelPage(row)) + _text(row))
        for row in rows[:_MOST_TEXTS]
        if row.backend != "extern"
    ]
    return page(rich_html(KernelTable(rows)), *texts)


def kernel_html(row: KernelRow, *, is_open: bool = False) -> str:
    """Return the page of a kernel with its text to unfold."""
    text = _text(row)
    return rich_html(KernelPage(row)) + (folded("text", text, is_open=is_open) if text else "")


def _text(row: KernelRow) -> str:
    return kernel_code(row.source, row.backend) if row.source else ""
