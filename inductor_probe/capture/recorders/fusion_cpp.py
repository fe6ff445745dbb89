"""Why the C++ backend refuses a pair, and undoes what it fused: torch/_inductor/codegen/cpp.py logs neither.

The functions here ask again what `CppScheduling` asked, of the nodes as they were then, and call nothing
that changes them: `_can_fuse_nodes_with_compatible_ranges` computes new loops to see whether they agree, so
what it saw is concluded from what it compares first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

from inductor_probe.capture.recorders.decision_log import (
    UnknownPathError,
    printed,
)
from inductor_probe.capture.recorders.fusion_causes import Cause, leaf_names, text_of
from inductor_probe.model.decision import Operand

_RANGE_FACTOR = 300  # a literal in OuterLoopFusedSchedulerNode.check_outer_fusion_loop_level_attr


def cpp_cause(first: Any, second: Any, max_horizontal: int, *, vertical: bool) -> Cause:
    """Return which predicate of `can_fuse_horizontal` or `can_fuse_vertical` was false.

    `group` is `(device, (ranges, reduction ranges))`: `_why_fuse_nodes` wants both equal, or the ranges of a
    pointwise first to be all of the second's, or one to be a single loop over the same elements. So C++
    keeps (4, 3, 271, 456) and (4, 3, 123576) apart, which Triton sees as 1482912 elements both. A vertical
    pair may have its outer loops fused instead: `_get_outer_loop_fusion_depth`.
    """
    if first.is_template() or second.is_template():
        return _template(first, second, vertical=vertical)
    size = len(first.get_nodes()) + len(second.get_nodes())
    if not vertical and size > max_horizontal:
        return "horizontal-size-limit", {"nodes": size, "limit": max_horizontal}
    depths = [getattr(node, "outer_loop_fusion_depth", None) for node in (first, second)]
    if not vertical and depths != [None, None]:
        return "outer-loop-node", {}
    one, other = _edge(first, -1), _edge(second, 0)
    _, (ranges1, reduction1) = one.group
    _, (ranges2, reduction2) = other.group
    ranges: dict[str, Operand] = {
        "first_ranges": _tuple(ranges1), "first_reduction": _tuple(reduction1),
        "second_ranges": _tuple(ranges2), "second_reduction": _tuple(reduction2),
    }  # fmt: skip
    for which, node, edge in (("first", first, one), ("second", second, other)):
        if edge is not node:
            ranges[f"{which}_nest"] = "_".join(leaf_names(edge))
    is_flat = not reduction1 and not reduction2 and _one_is_flat(ranges1, ranges2)
    if not vertical:
        return (
            _of_flat(one, other, ranges) if is_flat else ("loop-ranges-differ", {**ranges, "vertical": False})
        )
    if not ranges1 and not ranges2 and reduction1 and reduction2:
        return "complete-reductions", ranges
    depth = min(len(ranges1), len(ranges2))
    equal = next((n for n in range(depth) if ranges1[n] != ranges2[n]), depth)
    if None not in depths:  # of two outer-loop fused nodes only the depths are compared
        return "outer-loop-depth", {"first_depth": depths[0], "second_depth": depths[1], **ranges}  # type: ignore[dict-item]
    if depths != [None, None] and depth and equal == depth:
        # what is not outer-loop fused yet could be at the depth of all the loops that it has in common
        return "outer-loop-depth", {
            "first_depth": depths[0] or depth, "second_depth": depths[1] or depth, **ranges
        }  # fmt: skip
    if first.is_reduction() or depths != [None, None]:
        return "no-common-outer-loop", {**ranges, "outer_depth": equal}
    if is_flat:
        return _of_flat(one, other, ranges)
    return "loop-ranges-differ", {**ranges, "vertical": True, "outer_depth": equal}


def _edge(node: Any, position: int) -> Any:
    """Return the node whose loops count: of an outer-loop fused one, the nest next to the other node."""
    return node.get_outer_nodes()[position] if hasattr(node, "get_outer_nodes") else node


def _one_is_flat(ranges1: Any, ranges2: Any) -> bool:
    """Whether one is a single loop over as many elements as the other has: (4, 16) and (64,)."""
    return 1 in (len(ranges1), len(ranges2)) and math.prod(ranges1) == math.prod(ranges2)


def _of_flat(first: Any, second: Any, ranges: dict[str, Operand]) -> Cause:
    """Return why a single loop is not divided like the loops of the other node.

    `_can_fuse_nodes_with_compatible_ranges`: it has to be unfused, and what both compute has to have the same
    size in the user's program, before its loops were merged.
    """
    is_first = len(first.group[1][0]) < len(second.group[1][0])
    flat, other = (first, second) if is_first else (second, first)
    if hasattr(flat, "snodes"):
        return "fused-ranges", ranges
    sizes = {_size(leaf) for leaf in other.get_nodes()}
    flat_size = _size(flat)
    if sizes == {flat_size}:
        raise UnknownPathError("loops over the same size that torch could not make equal")
    texts = _tuple(flat_size), ", ".join(sorted(map(_tuple, sizes)))
    first_size, second_size = texts if is_first else reversed(texts)
    return "sizes-differ", {**ranges, "first_size": first_size, "second_size": second_size}


def _size(leaf: Any) -> tuple[Any, ...]:
    return tuple(leaf.node.data.get_size())


def _tuple(ranges: Iterable[Any]) -> str:
    """`(4, 3, 271, 456)`."""
    return f"({', '.join(map(printed, ranges))})"


def _template(first: Any, second: Any, *, vertical: bool) -> Cause:
    """Return why a template is not fused: with what does not read it, or reads it at another index.

    codegen/cpp_utils.py, `template_fusion_with_epilogues_supported`: an epilogue reads all of the template's
    buffers at one index, and writes at the same.
    """
    if not vertical:
        return "template-sibling", {}
    if second.is_template():
        raise UnknownPathError("a prologue of a C++ template")
    names = {output.get_name() for output in first.get_outputs()}
    for leaf in second.get_nodes():
        reads = list(dict.fromkeys(str(dep.index) for dep in leaf.node.get_reads() if dep.name in names))
        writes = [str(dep.index) for dep in leaf.node.get_read_writes().writes]
        if len(reads) > 1 or (reads and set(writes) != set(reads)):
            return "epilogue-index-differs", {
                "node": leaf.get_name(), "buffers": tuple(sorted(names)), "reads_at": tuple(reads),
                "writes_at": tuple(writes),
            }  # fmt: skip
    raise UnknownPathError("an epilogue that reads and writes at one index")


def undone_cause(node: Any, proxies: list[Any]) -> Cause:
    """Return why fused outer loops are taken apart: `check_outer_fusion_loop_level_attr` returned False.

    The vector loops of two nests may be different ones: (y0 by 1, y1 by 16) and (y0 by 16, y1 by 1).
    """
    depth = node.outer_loop_fusion_depth
    nests = ["_".join(leaf_names(nest)) for nest in node.get_outer_nodes()]
    for number, (first, second) in enumerate(itertools.pairwise(proxies)):
        for one, other in list(zip(first.loop_nest.loops, second.loop_nest.loops, strict=False))[:depth]:
            if _loop(one) != _loop(other):
                return "loop-tiles-differ", {
                    "first_nest": nests[number], "second_nest": nests[number + 1], "loop": str(one.var),
                    "first_steps": text_of(one.steps), "second_steps": text_of(other.steps),
                    "first_range": text_of(one.size), "second_range": text_of(other.size),
                }  # fmt: skip
    for nest, proxy in zip(nests, proxies, strict=True):
        outer, inner = math.prod(proxy.ranges[:depth]), [*proxy.ranges, None][depth]
        if (
            all(getattr(size, "is_Integer", False) for size in (outer, inner))
            and outer * _RANGE_FACTOR < inner
        ):
            return "inner-range-dominates", {
                "nest": nest, "inner_range": int(inner), "outer_range": int(outer), "factor": _RANGE_FACTOR
            }  # fmt: skip
    raise UnknownPathError("outer loops that are equal, and none of them short")


def _loop(loop: Any) -> tuple[Any, ...]:
    return loop.var, loop.size, loop.offset, loop.steps
