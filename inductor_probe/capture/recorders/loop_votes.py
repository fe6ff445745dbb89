"""What decided the order of loops, and what kept two of them apart, by the tests that torch made.

The order: torch/_inductor/scheduler.py, `pick_loop_order`. Each access votes about each pair of dimensions:
the one of the smaller stride shall be the inner one, and one that the access does not depend on the outer one
of the two is no reason against it. More votes win; where they are even, the later dimension is the inner one.
For example `x + x.t()` has the votes of the write and of one read against that of the other read.

Merging: torch/_inductor/sizevars.py, `_simplify_loops_impl`. Two loops become one where in every index
the outer stride is the inner one times the inner range: of `64*d0 + d1` with 64 steps of d1, not of
`100*d0 + d1`. `can_merge_dims` in it is watched: the last test of a pair is what kept it apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.base import Cause, Operands, Tests
from inductor_probe.capture.recorders.decision_log import cause_of_test, size_of, test_at
from inductor_probe.model.decision import CauseCode, Outcome, TorchTest

MOST_ACCESSES = 8
"""Accesses that are kept of a node that has more."""
_OF_STRIDES = "strides["
"""In the test of two strides, the first of those in `can_merge_dims`."""


Decided: TypeAlias = tuple[Outcome, Cause]


class Votes(Struct, frozen=True):
    """Votes for the first of two dimensions to be the inner one, and for the second; with torch's tests."""

    first: int
    second: int
    tests: Tests


class OrderQuestion(Struct, frozen=True):
    """What `pick_loop_order` was asked: of each access the stride along each dimension; and its answer.

    `names` are those of the dimensions; `order` has them from the outermost loop to the innermost one.
    `votes` are those that torch counted of two, and the tests that it made of them.
    """

    names: Sequence[str]
    strides: Sequence[Sequence[int]]
    sizes: Sequence[Any]
    order: Sequence[int]
    votes: Mapping[tuple[int, int], Votes]


class LoopsApart(Struct, frozen=True):
    """Why two loops are not one: the index that tells them apart, torch's test of it, the inner stride."""

    index: Any
    test: TorchTest
    inner_stride: Any


class MergeQuestion(Struct, frozen=True):
    """What `_simplify_loops` was asked of loops, outermost first, and what is left of them.

    `left` are the positions of the loops that are left; each of them goes over the elements of those that it
    took in. `path` is the way that torch went.
    """

    variables: Sequence[Any]
    sizes: Sequence[Any]
    sizes_left: Sequence[Any]
    left: Sequence[int]
    path: CallPath | None


def votes_of(path: CallPath | None) -> dict[tuple[int, int], Votes]:
    """Return the votes that `index_cmp` of `pick_loop_order` counted, of each pair that it compared."""
    votes: dict[tuple[int, int], Votes] = {}
    for compared in path.inner if path is not None else ():
        seen, tests = compared.variables, tuple(test_at(compared, one) for one in reversed(compared.all()))
        if "b_first" in seen:  # a loop of one step has none
            votes[seen["a"], seen["b"]] = Votes(seen["a_first"], seen["b_first"], tests)
            votes[seen["b"], seen["a"]] = Votes(seen["b_first"], seen["a_first"], tests)
    return votes


def order_decided(question: OrderQuestion, *, is_on: bool) -> Decided:
    """Return what decided the order of loops, with the pair of dimensions that shows it.

    Args:
        is_on: `config.pick_loop_orders`.
    """
    natural = [dim for dim in range(len(question.sizes)) if _is_loop(question.sizes[dim])]
    order = [dim for dim in question.order if dim in natural]
    counted = {
        (outer, inner): question.votes[inner, outer]
        for outer, inner in itertools.combinations(natural, 2)
        if (inner, outer) in question.votes
    }
    swapped = [pair for pair, votes in counted.items() if votes.second > votes.first]
    outcome: Outcome = "in-order" if order == natural else "reordered"
    cause: CauseCode = "unlisted-test"
    shown = swapped[-1:]
    if not is_on:
        cause = "loop-orders-off"
    elif order != natural:
        turned = [pair for pair in swapped if order.index(pair[0]) > order.index(pair[1])]
        shown = sorted(turned, key=lambda pair: (-order.index(pair[0]), order.index(pair[1])))[:1]
        cause = "strides-favour-order" if shown else cause
    elif not swapped and (pairs := [pair for pair in itertools.pairwise(natural) if pair in counted]):
        tied = [pair for pair in pairs if counted[pair].first == counted[pair].second]
        cause, shown = ("strides-tied", tied[-1:]) if tied else ("strides-in-order", pairs[-1:])
    operands: Operands = {}
    for outer, inner in shown:  # `inner` is the inner one if nothing is done
        votes = counted[outer, inner]
        operands = {
            "dimensions": (question.names[outer], question.names[inner]),
            "votes_to_swap": votes.second, "votes_to_keep": votes.first,
        }  # fmt: skip
    return outcome, Cause(cause, operands, counted[shown[0]].tests if shown and is_on else ())


def kept_apart(path: CallPath | None, outer: int, inner: int) -> LoopsApart | None:
    """Return why two loops could not be merged when that was asked last."""
    for asked in reversed(path.inner if path is not None else ()):
        seen = asked.variables
        if (seen.get("b"), seen.get("a")) == (outer, inner) and "k" in seen:
            last = asked.last()
            if last is None or last.truth:
                continue
            index, strides = seen["index_formulas"][seen["k"]], seen["strides"][seen["k"]]
            return LoopsApart(index, test_at(asked, last), strides[inner])
    return None


def merge_decided(
    question: MergeQuestion, named: Callable[[Any], Operands], name: Callable[[Any], str]
) -> Decided | None:
    """Return what decided whether loops are merged; None where there were no two.

    Args:
        named: from an index to the access that has it. name: from a variable to its text.
    """
    if sum(_is_loop(size) for size in question.sizes) < 2:
        return None
    operands: Operands = {
        "sizes": tuple(str(size_of(size)) for size in question.sizes if _is_loop(size)),
        "loops": tuple(str(size_of(size)) for size in question.sizes_left),
    }
    if len(question.left) < 2:
        return "merged", Cause("contiguous-loops", operands)
    sizes = dict(zip(question.left, question.sizes_left, strict=True))
    outer, inner = question.left[-2:]
    apart = kept_apart(question.path, outer, inner)
    operands |= {
        "outer": name(question.variables[outer]), "inner": name(question.variables[inner]),
        "inner_range": size_of(sizes[inner]), **(named(apart.index) if apart is not None else {}),
    }  # fmt: skip
    if apart is None:
        return "separate", Cause("unlisted-test", operands)
    if (known := cause_of_test("loops", "", apart.test)) is None:
        return "separate", Cause("unlisted-test", operands, (apart.test,))
    code, compared = known
    if _OF_STRIDES in apart.test.text:  # else they fit, and the index has a division: torch compares more
        operands |= {"inner_stride": size_of(apart.inner_stride), **compared}
    return "separate", Cause(code, operands, (apart.test,))


def _is_loop(size: Any) -> bool:
    """Return whether a dimension has more than one element, or may have."""
    return bool(size != 1)
