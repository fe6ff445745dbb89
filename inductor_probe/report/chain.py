"""The links of a node: from the user's line over FX nodes and kernel to the launch, each with its proof."""

from __future__ import annotations

from inductor_probe.model.links import NodeLink
from inductor_probe.model.span import own_lines
from inductor_probe.report.facts import in_order, names, place, source_text
from inductor_probe.report.nodes import AMBIGUOUS, kernel_text
from inductor_probe.report.units import shorten
from inductor_probe.report.words.links import kernel_proof_text, proofs_text

MOST_LINES = 12
"""Lines of the user's that a page shows."""
_MOST_FX = 12
_KERNEL = 40
"""Columns for a kernel's name in the middle of a chain; it stands in full below."""


def chain(link: NodeLink) -> str:
    """From the user's line to the launch: `a.py:12 -> rev -> op0 -> cpp_fused_flip_0 -> output_code.py:9`."""
    sources = [f"{source.path.rpartition('/')[2]}:{source.line}" for source in own_lines(link.sources)]
    launches = [place(span) for span in link.launches]
    links = [
        _some(sources),
        _some(list(link.fx)) if link.fx else f"{AMBIGUOUS} FX nodes" if link.fx_candidates else "?",
        link.node,
        *(
            [shorten(kernel_text(link), _KERNEL), _some(launches)]
            if link.kernel or link.kernel_candidates
            else ["no kernel"]
        ),
    ]
    return " -> ".join(text for text in links if text)


def _some(texts: list[str]) -> str:
    if not texts:
        return ""
    return texts[-1] if len(texts) == 1 else f"{texts[-1]} (+{len(texts) - 1})"


def link_facts(link: NodeLink) -> list[tuple[str, str]]:
    """Return the links of a node with their proofs."""
    calls = "called" if link.kernel and "." in link.kernel else "launched"
    where = f"{calls} at {names([place(span) for span in link.launches], 4)}" if link.launches else ""
    kernel = f"{kernel_text(link)}{f', {where}' if where else ''}"
    return [
        ("kernel", "\n".join(filter(None, (kernel if kernel != "-" else "none", kernel_proof_text(link))))),
        ("FX nodes", "\n".join(filter(None, (fx_text(link), proofs_text(link.fx_proofs))))),
        *(("from", source_text(source)) for source in in_order(link.sources)[:MOST_LINES]),
        ("", f"and {len(link.sources) - MOST_LINES} more lines" if len(link.sources) > MOST_LINES else ""),
    ]


def fx_text(link: NodeLink, most: int = _MOST_FX) -> str:
    """Return the FX nodes of a node, the one whose value it writes first."""
    if link.fx:
        perhaps = f"; perhaps also {names(link.fx_candidates, most)}" if link.fx_candidates else ""
        return names(link.fx[::-1], most) + perhaps
    return f"{AMBIGUOUS}: {names(link.fx_candidates, most)}" if link.fx_candidates else "not known"
