"""Which FX nodes were rewritten before lowering, by which pattern or pass: torch logs counts of it.

Each pass over an FX graph runs below a `GraphTransformObserver`, whose hooks on the graph hear of each node
that is created, erased or replaced. What happens while a `PatternEntry` is applied is that pattern's; the
rest is the pass's, in groups of nodes that hang together:

    add (erased) -> mul (was there)                  add was removed, its users read mul
    t, mm (erased), addmm (created)                  t and mm were replaced by addmm

A pattern that matches, and whose `extra_check` says no, is a rewrite that was refused, unless the pass
rewrites the node in another way. Pre-grad and joint passes run before the graph has a folder: the log keeps
what they did.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from inductor_probe.capture.branches import CallPath, CannotWatchError, SeenTest, calls, matches
from inductor_probe.capture.recorders.askers import decomposition_of, operator_of
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    decides,
    inductor_caller,
    path_of,
    place_of,
    source_of,
    stack,
    tests_of,
)
from inductor_probe.capture.recorders.padding import Padding
from inductor_probe.capture.torch_places import watch_function
from inductor_probe.model.decision import Outcome, TorchFrame

_OBSERVER, _PATTERNS = "torch.fx.passes.graph_transform_observer", "torch._inductor.pattern_matcher"
_MOST_NAMES = 24
"""Names that an operand has: a pass may rewrite a thousand nodes that hang together. Subjects have all."""
_CALLS_PASS = ("apply_gm_pass", "apply_graph_pass")
_UNIFORM = "constant_fold_uniform_value"
_NO_OPS = "remove_noop_ops"
_FULL = "aten.full.default"
_PRODUCTS = ("aten.mm.default", "aten.bmm.default", "aten.addmm.default")
_NO_NAMES = ("_", "fn")
_PADDING = ("should_pad_mm", "should_pad_addmm", "should_pad_bmm")


_LINEAR = "enable_linear_binary_folding"
_WEIGHTS = {"aten.convolution.default": 1, "aten.addmm.default": 2, "aten.mm.default": 1}
"""Which argument of an operator is its weight."""
_OF_WEIGHT = ("weight_node.op", "conv_node.args[1].op")
_UNFOLDABLE = (
    *(f"{text} != ?" for text in _OF_WEIGHT), "len(?.users) != ?",
    "torch.promote_types(? != weight_meta_value.dtype",
)  # fmt: skip
"""Tests of the weight of an operator, because of which nothing is folded into it."""


class _Erased(Struct, frozen=True):
    operator: str
    source: str
    inputs: tuple[str, ...]


@dataclass
class _Pass:
    """What a pass did to its graph so far: created nodes, erased ones with their inputs, and who took over.

    `claimed` are nodes that belong to a pattern, or to a pass inside of this one.
    """

    observer: Any
    function: Any = None  # of the pass, where torch calls it by the observer, and so can leave it out
    created: dict[str, Any] = field(default_factory=dict)
    erased: dict[str, _Erased] = field(default_factory=dict)
    links: list[tuple[str, str]] = field(default_factory=list)
    claimed: set[str] = field(default_factory=set)

    def node_created(self, node: Any) -> None:
        """Remember a new node: its inputs are not known yet in torch's hook, they are read at the end."""
        self.created[node.name] = node

    def node_erased(self, node: Any) -> None:
        """Remember a node that is about to be erased, with its inputs, which torch takes from it then."""
        self.erased[node.name] = _Erased(
            operator_of(node), source_of(node), tuple(one.name for one in node.all_input_nodes)
        )

    def node_replaced(self, old: Any, new: str, user: Any) -> None:
        """Remember that uses of a node go to another."""
        if (old.name, new) not in self.links[-1:]:
            self.links.append((old.name, new))


_Changes: TypeAlias = tuple[_Pass, dict[str, _Erased], list[str]]
"""What a pass did: nodes that it erased, and names of those that took their place."""


class _Refusal(NamedTuple):
    """A pattern that matched, which way its check went, and what kept a constant from being folded."""

    entry: Any
    match: Any
    path: CallPath | None
    why: Operands


class Rewrites(Recorder):
    """Keeps the passes that run, and, by the node that patterns end at, the entries whose checks refused."""

    KIND = "rewrite"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._padding = Padding.of(log)
        self._passes: list[_Pass] = []
        self._matching: Call | None = None
        self._refused: dict[str, list[_Refusal]] = {}

    @sees(_OBSERVER, "GraphTransformObserver.__enter__")
    def entered(self, _: Call, observer: Any) -> Iterator[None]:
        """Let the hooks of a pass tell us what they tell torch."""
        caller: FrameType | None = sys._getframe(1)
        while caller is not None and caller.f_code.co_name not in _CALLS_PASS:
            caller = caller.f_back if caller.f_globals["__name__"] != type(observer).__module__ else None
        function = caller.f_locals.get("pass_fn") if caller is not None else None
        current = _Pass(observer, function)
        self._passes.append(current)
        if observer.active:  # torch's hooks are on when it writes provenance, as every dump of ours does
            for name, note in (
                ("_node_creation_hook", current.node_created),
                ("_node_erase_hook", current.node_erased),
                ("_node_replace_hook", current.node_replaced),
            ):
                setattr(observer, name, _both(getattr(observer, name), self.log, note))
        yield

    @sees(_OBSERVER, "GraphTransformObserver.__exit__")
    def left(self, _: Call, observer: Any, *__: Any) -> None:
        """Record what a pass did."""
        while self._passes and self._passes[-1].observer is not observer:
            self._passes.pop()  # left by an exception
        if not self._passes:
            return
        one = self._passes[-1]
        for erased, by in _groups(one):
            operators = {node.operator for node in erased.values()}
            # What a pass takes apart and puts together as it was, like a scatter, is no rewrite.
            if erased and operators != {operator_of(one.created[name]) for name in by if name in one.created}:
                self._passed(one, erased, by)
        for node, entries in self._refused.items():
            if node not in one.erased:
                self._refuse(one, entries)
        self._refused.clear()
        self._passes.pop()
        if self._passes:
            self._passes[-1].claimed.update(one.created, one.erased)

    def _passed(self, one: _Pass, erased: dict[str, _Erased], by: list[str]) -> None:
        """Record what a pass did by itself."""
        function: Any = getattr(one.function, "func", one.function)  # of a functools.partial
        place = place_of(function) if function else next(stack(sys._getframe(1)), None)
        if place is None:
            return
        cause = Cause("pass")
        outcome: Outcome | None = None
        if place.function == _NO_OPS:
            mutated_by = _mutating_users(one.observer.gm.graph, by)
            cause, outcome = Cause("no-op", {"mutated_by": mutated_by}), "removed"
        elif place.function == _UNIFORM:
            constants = [one.created[name] for name in by if name in one.created]
            constant = constants[0] if len(constants) == 1 and str(constants[0].target) == _FULL else None
            if constant is None:
                cause, outcome = Cause("identity"), "removed"
            else:
                cause, outcome = Cause("uniform-value", {"value": str(constant.args[1])}), "folded"
        self._rewritten((one, erased, by), cause, place, outcome)

    @sees("torch.fx.experimental.proxy_tensor", "maybe_handle_decomp")
    def decomposed(self, call: Call, mode: Any, operator: Any, args: Any, _: Any) -> Iterator[None]:
        """Record what a matrix product is made of."""
        if str(operator) not in _PRODUCTS:
            return
        # What is `reversed` is no iterator yet in torch 2.11.
        before = next(iter(reversed(mode.tracer.graph.nodes)), None)
        yield
        if before is not None and call.result is not NotImplemented:
            self._decomposed(mode, operator, args, before)

    def _decomposed(self, mode: Any, operator: Any, args: Any, before: Any) -> None:
        """Record the nodes that a product became, if it is the user's, and not one of a pattern."""
        nodes = list(itertools.takewhile(lambda node: node is not before, reversed(mode.tracer.graph.nodes)))
        source = next(filter(None, map(source_of, nodes)), "")
        decomposition = decomposition_of(mode, operator)
        if not source or decomposition is None:
            return
        first, second = (str(tuple(value.shape)) for value in args[-2:])
        names = tuple(node.name for node in reversed(nodes))
        cause = Cause("small-product", {
            "operators": (str(operator),), **_counted("by", names),
            **_counted("by_operators", _operators(reversed(nodes))),
            "first_size": first, "second_size": second, "sources": (source,),
        })  # fmt: skip
        self.record("replaced", cause, place_of(decomposition), names, subject_type="fx", waits=True)

    @sees(_PATTERNS, "ReplacementPatternEntry.apply", "LoweringPatternEntry.apply", "GraphPatternEntry.apply")
    def applied(self, call: Call, entry: Any, match: Any, *_: Any) -> Iterator[None]:
        """Record what a pattern did to the graph."""
        if not self._passes:
            return
        one = self._passes[-1]
        before = len(one.created), len(one.erased), len(one.links)
        yield
        self._applied(call.place, entry, match, one, before)

    def _applied(
        self, place: TorchFrame, entry: Any, match: Any, one: _Pass, before: tuple[int, int, int]
    ) -> None:
        created = dict(itertools.islice(one.created.items(), before[0], None))
        erased = dict(itertools.islice(one.erased.items(), before[1], None))
        by = [name for name in created if name not in erased]
        by += [new for old, new in one.links[before[2] :] if old in erased and new not in (*by, *erased)]
        one.claimed.update(created, erased)
        gone = {name: node for name, node in erased.items() if name not in created}
        for node in match.nodes:
            self._refused.pop(node.name, None)
        if gone or by:
            named = _cells(entry).get("search_fn") or getattr(entry, "handler", None)
            where = place_of(named) if named and hasattr(named, "__code__") else place
            cause = Cause("pattern", {"pattern": pattern_name(entry)})
            padded = self._padding.cause_of(tuple(node.name for node in match.nodes))
            if padded is not None and _check(entry).__name__ in _PADDING:
                cause = Cause(padded.code, {**cause.operands, **padded.operands})
            self._rewritten((one, gone, by), cause, where)

    @sees(_PATTERNS, "PatternMatcherPass.apply", follows=True)
    def matching(self, call: Call, *_: Any, **__: Any) -> Iterator[None]:
        """See which way the checks of patterns go."""
        before, self._matching = self._matching, call
        try:
            yield
        finally:
            self._matching = before

    @sees(_PATTERNS, "is_match")
    def matched(self, call: Call, _: Any) -> None:
        """Watch the check of a pattern, which is called behind this."""
        if call.result:
            _watch_check(inductor_caller().f_locals.get("entry"))

    @sees(_PATTERNS, "guard_or_false")
    def checked(self, call: Call, *_: Any, **__: Any) -> None:
        """See that a pattern matched, and that its check refused: `PatternMatcherPass.apply` asks."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != "apply":
            frame = frame.f_back
        if call.result or frame is None or not self._passes:
            return
        names = frame.f_locals
        entry, match = names.get("entry"), names.get("m")
        if match is not None and hasattr(entry, "extra_check"):
            check = _check(entry)
            path = path_of(check, self._matching.made if self._matching is not None else ())
            one = _Refusal(entry, match, path, _not_folded(check, match, path))
            self._refused.setdefault(names["node"].name, []).append(one)

    def _refuse(self, one: _Pass, refusals: list[_Refusal]) -> None:
        """Record that patterns matched, and were refused by their checks."""
        first = refusals[0]
        check, match = _check(first.entry), first.match
        if check.__name__ in _PADDING and not _on_gpu(match):
            return  # of a GPU only
        names = tuple(node.name for node in match.nodes)
        padded = self._padding.cause_of(names) if check.__name__ in _PADDING else None
        cause = padded or Cause("check-refused")
        paths = [first.path, *first.path.inner[-1:]] if first.path is not None and padded is None else []
        cause = Cause(cause.code, {
            **cause.operands,
            "patterns": tuple(dict.fromkeys(pattern_name(each.entry) for each in refusals)),
            "check": check.__name__,
            **first.why,
            **self._where(one),
            **_counted("nodes", names),
            **_counted("operators", _operators(match.nodes)),
        }, tuple(test for path in paths for test in tests_of(path)))  # fmt: skip
        self.record("not-replaced", cause, place_of(check), names, subject_type="fx", waits=True)

    def _where(self, one: _Pass) -> Operands:
        outer = self._passes[0]
        stage = str(one.observer.subsystem or outer.observer.subsystem or "").removesuffix("_passes")
        return {"pass": str(outer.observer.passname), **({"stage": stage} if stage else {})}

    def _rewritten(
        self, changes: _Changes, cause: Cause, place: TorchFrame, outcome: Outcome | None = None
    ) -> None:
        """Record why nodes were rewritten. `outcome`: other than by whether anything took their place."""
        one, erased, by = changes
        names = {name: one.created.get(name) for name in by}
        new = tuple(node.name if node is not None else name for name, node in names.items())
        sources = tuple(dict.fromkeys(node.source for node in erased.values() if node.source))
        operands: Operands = {
            **cause.operands,
            **self._where(one),
            **_counted("nodes", tuple(erased)),
            **_counted("operators", tuple(dict.fromkeys(node.operator for node in erased.values()))),
            **_counted("by", new),
            **_counted("by_operators", _operators(node for node in names.values() if node is not None)),
            **_counted("sources", sources),
        }
        cause = Cause(cause.code, {name: value for name, value in operands.items() if value != ()})
        subjects = tuple(dict.fromkeys([*erased, *new]))
        outcome = outcome or ("replaced" if new else "removed")
        self.record(outcome, cause, place, subjects, subject_type="fx", waits=True)


def _both(torchs: Callable[..., Any], log: DecisionLog, note: Callable[..., None]) -> Callable[..., Any]:
    def call_and_note(*args: Any, **kwargs: Any) -> Any:
        log.safely(note, *args, **kwargs)
        return torchs(*args, **kwargs)

    return call_and_note


def _groups(one: _Pass) -> Iterable[tuple[dict[str, _Erased], list[str]]]:
    """Yield what a pass itself erased, and what took its place, in groups that hang together."""
    erased = {name: node for name, node in one.erased.items() if name not in one.claimed | one.created.keys()}
    created = {
        name: node for name, node in one.created.items() if name not in one.claimed | one.erased.keys()
    }
    group = {name: name for name in (*erased, *created)}

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    def join(first: str, second: str) -> None:
        if first in group and second in group:
            group[root(first)] = root(second)

    by: dict[str, dict[str, None]] = {}
    replaced = {old for old, _ in one.links}
    took_over_later = dict(one.links)
    for old, direct in one.links:
        new = direct
        while new in one.created and new in one.erased and new in took_over_later:
            new = took_over_later[new]  # made and taken away within the pass
        join(old, new)
        if old in erased and new not in group and new not in one.erased:
            by.setdefault(old, {})[new] = None
    for name, node in erased.items():
        for needed in node.inputs:
            if needed in erased and needed not in replaced:
                join(name, needed)
    for name, node in created.items():
        for needed in node.all_input_nodes:
            join(name, needed.name)
    members: dict[str, list[str]] = {}
    for name in group:
        members.setdefault(root(name), []).append(name)
    for names in members.values():
        gone = {name: erased[name] for name in names if name in erased}
        took_over = [name for name in names if name in created]
        took_over += [other for name in gone for other in by.get(name, {})]
        yield gone, list(dict.fromkeys(took_over))


def pattern_name(entry: Any) -> str:
    """Return the name of a pattern: that of its handler, or of the function that was traced to make it."""
    function = getattr(entry, "handler", None) or _cells(entry).get("search_fn")
    function = getattr(function, "func", function)
    outer, _, name = str(getattr(function, "__qualname__", "")).rpartition(".<locals>.")
    name = getattr(entry, "pattern_name", None) or name
    return (outer.rpartition(".")[2] if name in _NO_NAMES and outer else name) or type(entry.pattern).__name__


def _cells(entry: Any) -> dict[str, Any]:
    """Return what the check of a traced pattern closes over: `search_fn`, and its own `extra_check`."""
    check = entry.extra_check
    code = getattr(check, "__code__", None)
    if code is None:
        return {}
    cells = zip(code.co_freevars, check.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if name in ("search_fn", "extra_check")}


def _not_folded(check: Any, match: Any, path: CallPath | None) -> Operands:
    """Return what kept a constant from the weight of a convolution or product: binary_folding.py.

    `_is_foldable_pattern` asks the setting first; it is what refused only if the check passes with it.
    """
    node = next((node for node in match.nodes if str(node.target) in _WEIGHTS), None)
    if path is None or node is None or check.__name__ != "_is_foldable_pattern":
        return {}
    if decides(path, f"config.{_LINEAR}"):
        with sys.modules["torch._inductor.config"].patch({_LINEAR: True}), calls() as made:
            if check(match):
                return {"setting_off": _LINEAR}
        path = path_of(check, made)
    weight = node.args[_WEIGHTS[str(node.target)]]
    tests = [test for one in (path.inner if path is not None else ()) for test in one.all() if _fails(test)]
    text = tests[0].text if tests else ""
    if text.startswith("len("):
        return {"weight_users": tests[0].values[0]}
    if text.endswith("weight_meta_value.dtype"):
        dtypes = [_dtype_of(one) for one in match.output_node().all_input_nodes if one.op == weight.op]
        return {"weight_dtype": tests[0].values[1], "dtypes": tuple(dtypes)}
    return {"weight": weight.name} if text.startswith(_OF_WEIGHT) else {}


def _fails(test: SeenTest) -> bool:
    return test.truth and any(matches(test.text, text) for text in _UNFOLDABLE)


def _watch_check(entry: Any) -> None:
    if hasattr(entry, "extra_check"):
        with contextlib.suppress(CannotWatchError):  # a lambda, whose only test is what it is
            watch_function(_check(entry))


def _dtype_of(node: Any) -> str:
    return str(getattr(node.meta.get("val"), "dtype", "?")).removeprefix("torch.")


def _check(entry: Any) -> Any:
    """Return the function that refused a match: for a traced pattern not the one that traces it again."""
    check = _cells(entry).get("extra_check", entry.extra_check)
    check = getattr(check, "func", check)
    return check if hasattr(check, "__code__") else type(check).__call__


def _on_gpu(match: Any) -> bool:
    values = [node.meta.get("val") for node in match.nodes]
    return any(getattr(value, "is_cuda", False) or getattr(value, "is_xpu", False) for value in values)


def _mutating_users(graph: Any, names: Iterable[str]) -> tuple[str, ...]:
    """Return the nodes that take one of some values, and change what they take."""
    users = (user for node in graph.nodes if node.name in names for user in node.users)
    return tuple(dict.fromkeys(user.name for user in users if _mutates(user)))


def _mutates(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    is_mutable = bool(getattr(schema, "is_mutable", False))
    return is_mutable or str(getattr(node.target, "__name__", "")).startswith("auto_functionalized")


def _operators(nodes: Iterable[Any]) -> tuple[str, ...]:
    """Return what nodes call, each once."""
    return tuple(dict.fromkeys(map(operator_of, nodes)))


def _counted(operand: str, names: tuple[str, ...]) -> Operands:
    """Return the first of names as an operand; where there are more, another one says how many there are."""
    count: Operands = {f"{operand}_count": len(names)} if len(names) > _MOST_NAMES else {}
    return {operand: names[:_MOST_NAMES], **count}
