"""Why the C++ backend refuses a pair, and undoes what it fused: torch/_inductor/codegen/cpp.py logs neither.

`CppScheduling.can_fuse_horizontal` and `can_fuse_vertical`, and what these ask, are watched: they are asked
only of pairs that nothing else refuses. The cause is the innermost test behind which the last of them
returned. What is read of the nodes besides are their loops, as they were then.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from inductor_probe.capture.branches import CallPath, holes
from inductor_probe.capture.recorders.base import Operands, Tests
from inductor_probe.capture.recorders.decision_log import (
    cause_of_branch,
    cause_of_test,
    decides,
    inner_path,
    printed,
    tests_of,
)
from inductor_probe.capture.recorders.fusion_causes import Reason, leaf_names, text_of

_OWNER = "CppScheduling."
WATCHED = (
    "can_fuse_horizontal", "can_fuse_vertical", "_can_fuse_horizontal_impl",
    "_can_fuse_nodes_with_compatible_ranges", "can_fuse_vertical_outer_loop", "_get_outer_loop_fusion_depth",
)  # fmt: skip
"""Methods of `CppScheduling`."""
_IS_OUTER = "any(?isinstance(node, ?"
_RANGES = "_can_fuse_nodes_with_compatible_ranges"
_DEPTH = "_get_outer_loop_fusion_depth"
_TILES = "getattr(left_loop_level, attr_compare) == getattr(right_loop_level, attr_compare)"
_FACTOR = "outer_ranges * ? < ?"


def cpp_cause(path: CallPath | None, first: Any, second: Any, *, vertical: bool) -> tuple[Reason, Tests]:
    """Return why a pair was refused, and the tests that decided where these say more.

    `group` is `(device, (ranges, reduction ranges))`: `_why_fuse_nodes` wants both equal, or the ranges of a
    pointwise first to be all of the second's, or one to be a single loop over the same elements. So C++
    keeps (4, 3, 271, 456) and (4, 3, 123576) apart, which Triton sees as 1482912 elements both. A vertical
    pair may have its outer loops fused instead: `_get_outer_loop_fusion_depth`.
    """
    if path is None or path.exit is None:
        return ("unlisted-test", {}), ()
    if not vertical:
        cause = cause_of_branch(path, "fusion", behind="loop-ranges-differ")
        if cause == "horizontal-size-limit":
            return cause_of_test("fusion", "", path.deciding()[-1]) or ("unlisted-test", {}), tests_of(path)
        if path.exit.within:
            return (cause, {}), tests_of(path)
        if _is_true(path, "_can_fuse_horizontal_impl", _IS_OUTER):
            return ("outer-loop-node", {}), ()
        return _of_ranges(path, first, second, {"vertical": False})
    if path.exit.within:
        return _of_template(path, first, second), tests_of(path)
    ranges = _loops(_edge(first, -1), _edge(second, 0))
    depths = [getattr(node, "outer_loop_fusion_depth", None) for node in (first, second)]
    asked = _last(path, _DEPTH)
    outer = cause_of_branch(asked, "fusion", behind="no-common-outer-loop") if asked is not None else None
    if outer == "unlisted-test":
        return (outer, {}), tests_of(asked)
    if outer == "complete-reductions":
        return (outer, ranges), ()
    sizes = [_group(_edge(node, side))[0] for node, side in ((first, -1), (second, 0))]
    equal = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*sizes, strict=False)))
    if outer == "outer-loop-depth":
        # what is not outer-loop fused yet could be at the depth of all the loops that it has in common
        depth = {"first_depth": depths[0] or equal, "second_depth": depths[1] or equal}
        return (outer, {**depth, **_nests(first, second), **ranges}), ()
    if first.is_reduction() or _is_true(path, "_can_fuse_horizontal_impl", _IS_OUTER):
        return ("no-common-outer-loop", {**ranges, **_nests(first, second), "outer_depth": equal}), ()
    return _of_ranges(path, first, second, {"vertical": True, "outer_depth": equal})


def _of_ranges(path: CallPath, first: Any, second: Any, more: Operands) -> tuple[Reason, Tests]:
    """Return why `_can_fuse_nodes_with_compatible_ranges` did not make the loops of one those of the other.

    It has to be unfused, and what both compute has to have the same size in the user's program, before its
    loops were merged.
    """
    asked = _last(path, _RANGES)
    cause = cause_of_branch(asked, "fusion")
    operands: Operands = {**_loops(first, second), **more}
    if cause == "unlisted-test":
        return (cause, {}), tests_of(asked)
    if cause == "sizes-differ":
        sizes = [{tuple(leaf.node.data.get_size()) for leaf in node.get_nodes()} for node in (first, second)]
        texts = [", ".join(sorted(map(_tuple, size))) for size in sizes]
        operands |= {"first_size": texts[0], "second_size": texts[1]}
    return (cause, operands), ()


def _of_template(path: CallPath, first: Any, second: Any) -> Reason:
    """Return why a template is not fused with what reads it: codegen/cpp_utils.py has the rule.

    `template_fusion_with_epilogues_supported`: an epilogue reads all of the template's buffers at one index,
    and writes at the same.
    """
    if decides(path, "node2.is_reduction()"):
        return "epilogue-reduces", {}
    if not decides(path, "template_fusion_supported"):
        return "unlisted-test", {}
    names = {output.get_name() for output in first.get_outputs()}
    for leaf in second.get_nodes():
        reads = tuple(dict.fromkeys(str(dep.index) for dep in leaf.node.get_reads() if dep.name in names))
        writes = tuple(str(dep.index) for dep in leaf.node.get_read_writes().writes)
        if {*reads} and ({*writes} != {*reads} or len(reads) > 1):
            return "epilogue-index-differs", {
                "node": leaf.get_name(), "buffers": tuple(sorted(names)), "reads_at": reads,
                "writes_at": writes,
            }  # fmt: skip
    return "unlisted-test", {}


def _last(path: CallPath, method: str) -> CallPath | None:
    """Return the last call of a method within a call, or itself."""
    return inner_path([path], f"{_OWNER}{method}")


def _is_true(path: CallPath, method: str, pattern: str) -> bool:
    """Whether a test in the last call of a method came out as true."""
    seen = one.tested(pattern) if (one := _last(path, method)) is not None else None
    return seen is not None and seen.truth


def _edge(node: Any, position: int) -> Any:
    """Return the node whose loops count: of an outer-loop fused one, the nest next to the other node."""
    return node.get_outer_nodes()[position] if hasattr(node, "get_outer_nodes") else node


def _group(node: Any) -> tuple[Sequence[Any], Sequence[Any]]:
    _, (ranges, reduction) = node.group
    return ranges, reduction


def _loops(first: Any, second: Any) -> Operands:
    """Return the loops of two nodes: `{"first_ranges": "(64, 64)", "first_reduction": "()", ...}`."""
    rows = (("first", _group(first)), ("second", _group(second)))
    return {
        f"{which}_{name}": _tuple(sizes)
        for which, group in rows
        for name, sizes in zip(("ranges", "reduction"), group, strict=True)
    }


def _nests(first: Any, second: Any) -> Operands:
    """Return which nest of an outer-loop fused node it is whose loops count."""
    edges = (("first", first, _edge(first, -1)), ("second", second, _edge(second, 0)))
    return {f"{which}_nest": "_".join(leaf_names(edge)) for which, node, edge in edges if edge is not node}


def _tuple(ranges: Iterable[Any]) -> str:
    """`(4, 3, 271, 456)`."""
    return f"({', '.join(map(printed, ranges))})"


def undone_cause(path: CallPath | None, node: Any, proxies: Sequence[Any]) -> tuple[Reason, Tests]:
    """Return why fused outer loops are taken apart: `check_outer_fusion_loop_level_attr` returned False.

    It compares each two nests that follow each other, a level of `_inner` for each common loop. The vector
    loops of two nests may be different ones: (y0 by 1, y1 by 16) and (y0 by 16, y1 by 1).
    """
    tests = tests_of(path)
    nests = ["_".join(leaf_names(nest)) for nest in node.get_outer_nodes()]
    if path is not None and decides(path, _FACTOR):
        seen = path.tested(_FACTOR)
        found = holes(seen.text, _FACTOR) if seen is not None else None
        if seen is None or found is None:
            return ("unlisted-test", {}), tests
        factor, (outer, inner) = path.literal(found[0]), seen.values
        depth = node.outer_loop_fusion_depth
        sizes = (text_of([*proxy.ranges[depth:], None][0]) for proxy in proxies)
        nest = next((name for name, size in zip(nests, sizes, strict=True) if size == inner), "")
        if isinstance(factor, int) and isinstance(outer, int):
            outer //= factor
        operands: Operands = {"nest": nest, "inner_range": inner, "outer_range": outer}
        return (
            "inner-range-dominates",
            {**operands, **({} if factor is None else {"factor": factor})},
        ), tests
    pairs = [one for one in path.inner if one.sites.function.endswith("._inner")] if path is not None else []
    level, last = 0, pairs[-1] if pairs else None
    while last is not None and last.inner:
        level, last = level + 1, last.inner[-1]
    if last is None or not decides(last, _TILES):
        return ("unlisted-test", {}), tests
    number = len(pairs) - 1
    one, other = (proxies[at].loop_nest.loops[level] for at in (number, number + 1))
    return ("loop-tiles-differ", {
        "first_nest": nests[number], "second_nest": nests[number + 1], "loop": str(one.var),
        "first_steps": text_of(one.steps), "second_steps": text_of(other.steps),
        "first_range": text_of(one.size), "second_range": text_of(other.size),
    }), ()  # fmt: skip
