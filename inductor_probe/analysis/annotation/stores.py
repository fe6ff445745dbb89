"""Which node writes in each line of a kernel's text that writes through a pointer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from inductor_probe.analysis.annotation.masks import bits
from inductor_probe.analysis.annotation.nodes import RunningNodes
from inductor_probe.analysis.annotation.statements import Statement
from inductor_probe.model.code import PointerUse


def writing_nodes(
    nodes: RunningNodes,
    uses: Mapping[int, Sequence[PointerUse]],
    statements: Mapping[int, Statement],
) -> dict[int, int]:
    """Return the nodes that may write in each line that writes; one where it is proved.

    Args:
        nodes: that run.
        uses: what each line does through pointers.
        statements: by line.
    """
    found: dict[int, int] = {}
    shared: dict[str, list[int]] = {}
    for line in sorted(uses):
        for use in uses[line]:
            if use.kind != "load":
                mask = nodes.writing(use)
                found[line] = found.get(line, 0) | mask
                if mask.bit_count() > 1:
                    shared.setdefault(use.pointer, []).append(line)
    for pointer, lines in shared.items():
        newest = nodes.writers.get(nodes.buffers[pointer][0], 0)
        found.update(_told_apart([statements[line] for line in lines], found[lines[0]], newest))
    return found


def _told_apart(lines: list[Statement], writers: int, newest: int) -> dict[int, int]:
    """Tell apart the stores to memory that several buffers have one after the other.

    With a unit each they come in the order of the nodes. What is in the memory in the end is the buffer that
    the launch names: the only store of the last unit is of its writer, which `newest` is.
    """
    units = list(dict.fromkeys(at.unit for at in lines))
    if len(units) == writers.bit_count():
        in_order = dict(zip(units, bits(writers), strict=True))
        return {at.line: 1 << in_order[at.unit] for at in lines}
    last = [at for at in lines if at.unit == units[-1]]
    per_group = Counter(at.group for at in last)
    if newest.bit_count() != 1 or max(per_group.values()) > 1:
        return {}
    return {at.line: newest if at in last else writers & ~newest or writers for at in lines}
