"""The FX nodes of kernels in words: what says so of each, and where torch and the data differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inductor_probe.model.links import Conflict, KernelFx
from inductor_probe.report.facts import names

_MOST = 12


def proofs_text(pairs: Iterable[KernelFx]) -> str:
    """What says that a kernel computes FX nodes: `torch's provenance file, the flow of data`."""
    return ", ".join(dict.fromkeys(proof for pair in pairs for proof in pair.proofs))


def conflict_texts(pairs: Iterable[KernelFx], kernel: str | None = None) -> Iterator[str]:
    """Say where torch's lists and the flow of data differ, a sentence for each kernel and kind of difference.

    `kernel` is the one that the page is about, which needs no name.
    """
    groups: dict[tuple[str, Conflict], list[KernelFx]] = {}
    for pair in pairs:
        if pair.conflict is not None:
            groups.setdefault((pair.kernel, pair.conflict), []).append(pair)
    for (of, conflict), found in groups.items():
        where = "the kernel" if of == kernel else of
        fx = names([pair.fx for pair in found], _MOST)
        match conflict:
            case "not listed":
                nodes = names(list(dict.fromkeys(node for pair in found for node in pair.nodes)), _MOST)
                told = "recorded while compiling"
                if not any(told in pair.proofs for pair in found):
                    told = "concluded from the flow of data"
                yield f"torch does not list {fx} for {where}: {told} for {nodes}"
            case "not computed":
                told = "but by the flow of data none of its nodes computes it"
                yield f"{found[0].proofs[0]} lists {fx} for {where}, {told}"
            case "not in the FX graph":
                yield f"{found[0].proofs[0]} lists {fx} for {where}, but the dumped FX graph has no such node"
