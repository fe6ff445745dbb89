"""Which patterns of torch's tables nearly matched, and which node of the graph was another: nothing logs it.

torch/_inductor/pattern_matcher.py: a pattern is matched from its last node backwards, operand by operand, and
given up at the first node that differs, by a `FailedMatch` that its `_match` makes. Where that stands in the
pattern says how many of its nodes were there. For example attention to scores of which negative ones are zero
has 7 of the 19 nodes of `_sfdp_pattern_1`: backwards to where that divides, and the graph has `relu`.

Of each node that patterns end at, the one that got furthest is recorded, if most of it was there, and nothing
rewrote the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from inductor_probe.capture.recorder import compile_id
from inductor_probe.capture.recorders.askers import operator_of
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees
from inductor_probe.capture.recorders.decision_log import DecisionLog, inductor_caller
from inductor_probe.capture.recorders.rewrites import pattern_name

_PATTERNS = "torch._inductor.pattern_matcher"
_FEWEST_NODES = 4
"""Of a pattern that may be near: of the many smaller ones too much is."""
_MOST_OPERATORS = 3
"""That are named of those that a pattern takes at a place."""


class _Failure(NamedTuple):
    """A match that failed: which part of the pattern did, at which node, and in torch's words."""

    result: Any
    part: Any
    node: Any


class _Near(NamedTuple):
    """A pattern that nearly matched at a node, and how many of its nodes were there, of how many."""

    anchor: Any
    entry: Any
    failure: _Failure
    there: int
    of: int

    def is_nearer(self, other: _Near | None) -> bool:
        """Whether more of its pattern was there than of another's."""
        return other is None or self.there * other.of > other.there * self.of


class NearPatterns(Recorder):
    """Keeps the pattern that got furthest at each node, and records it if nothing rewrote that."""

    KIND = "rewrite"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._failure: tuple[object, FrameType | None] = None, None
        self._compile: str | None = None
        self._near: dict[str, _Near] = {}  # of this compile, by the name of the node at which patterns end
        self._open: list[dict[str, _Near]] = []
        self._parts: WeakKeyDictionary[Any, dict[Any, int]] = WeakKeyDictionary()

    @sees(_PATTERNS, "FailedMatch.__init__")
    def failed(self, _: Call, failure: Any, *__: Any, **___: Any) -> None:
        """See where a match failed: what `_match` of the part that did knows is read only if it is near."""
        if self._open:
            self._failure = failure, inductor_caller()

    @sees(_PATTERNS, "PatternExpr.match", "MultiOutputPattern.match")
    def matched(self, call: Call, pattern: Any, anchor: Any) -> None:
        """Keep how far a pattern got that did not match."""
        result, frame = self._failure
        if call.result or not self._open or call.result is not result or frame is None:
            return
        parts = self._parts_of(pattern)
        if len(parts) < _FEWEST_NODES:
            return
        failure = _Failure(result, frame.f_locals.get("self"), frame.f_locals.get("node"))
        there = parts.get(failure.part, 0)
        entry = inductor_caller().f_locals.get("entry") if _is_near(there, len(parts)) else None  # of `apply`
        if entry is None:
            return
        near = _Near(anchor, entry, failure, there, len(parts))
        if near.is_nearer(self._open[-1].get(anchor.name)):
            self._open[-1][anchor.name] = near

    def _parts_of(self, pattern: Any) -> dict[Any, int]:
        if (parts := self._parts.get(pattern)) is None:
            parts = self._parts[pattern] = {}
            for part in _nodes_of(pattern):
                parts.setdefault(part, len(parts))
        return parts

    @sees(_PATTERNS, "PatternMatcherPass.apply")
    def applied(self, call: Call, patterns: Any, given: Any) -> Iterator[None]:
        """Record what nearly matched, and stayed."""
        near: dict[str, _Near] = {}
        self._open.append(near)
        try:
            yield
        finally:
            self._open.pop()
            self._failure = None, None
        if (current := compile_id()) != self._compile:
            self._compile, self._near = current, {}
        for name, one in near.items():
            if not one.anchor._erased and one.is_nearer(self._near.get(name)):
                self._near[name] = one
                cause = Cause("nearly-matched", _operands(one, patterns))
                about: Any = {"subject_type": "fx", "waits": True, "key": _key(name)}
                self.record("not-replaced", cause, call.place, (name,), **about)
        graph = getattr(given, "graph", given)
        names = {node.name for node in graph.nodes} if self._near else set()
        for name in self._near.keys() - names:  # rewritten since then
            del self._near[name]
            self.log.forget(self.KIND, _key(name))


def _is_near(there: int, nodes: int) -> bool:
    """Whether enough of a pattern is there: half of it, or some five nodes; of one that has enough."""
    return there >= min(nodes / 2, max(5, nodes / 4))


def _key(name: str) -> object:
    return "nearly-matched", name


def _nodes_of(part: Any) -> Iterator[Any]:
    """Yield the parts of a pattern that are nodes, in the order in which they are matched."""
    if hasattr(part, "fns_set"):
        yield part
    flat = getattr(part, "flat_args_kwargs", ((), None))[0]
    inner = (getattr(part, "pattern", None), getattr(part, "inner_pattern", None))
    for one in (*flat, *(getattr(part, "outputs", None) or ()), *inner):
        if hasattr(one, "_match"):
            yield from _nodes_of(one)


def _operands(near: _Near, patterns: Any) -> Operands:
    node, part = near.failure.node, near.failure.part
    stage = str(patterns.subsystem or "").removesuffix("_passes")
    operands: Operands = {
        "pattern": pattern_name(near.entry), "there": near.there, "pattern_nodes": near.of,
        "nodes": (near.anchor.name,), "operators": (operator_of(near.anchor),),
        "pass": str(patterns.pass_name or "pattern_matcher"), **({"stage": stage} if stage else {}),
    }  # fmt: skip
    is_node = hasattr(node, "users")
    if is_node:
        operands["differs"] = node.name
    if not is_node or not part._match_fns(node):
        called = is_node and node.op not in ("placeholder", "get_attr")
        operands["differs_operator"] = operator_of(node) if called else "a value that nothing here computes"
        operands["wanted"] = tuple(dict.fromkeys(map(_function, part.fns)))[:_MOST_OPERATORS]
    elif not isinstance(part.users, int) or len(node.users) == part.users:
        operands["words"] = str(near.failure.result)[:200]
    else:
        operands["differs_users"], operands["wanted_users"] = len(node.users), part.users
    return operands


def _function(function: Any) -> str:
    """Return what a pattern takes at a place: operators of torch by their names, and all other functions."""
    return str(function) if hasattr(function, "_schema") else str(getattr(function, "__name__", function))
