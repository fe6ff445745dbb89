"""Library calls of two wrappers: which came, went, or are called with something else."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from inductor_probe.analysis.diff.launches import arguments
from inductor_probe.analysis.diff.matching import Half, Matching
from inductor_probe.analysis.diff.side import called
from inductor_probe.model.code import ExternCall
from inductor_probe.model.diff import CallChange, FactChange

_UNSAID = ("None", "out")


def call_changes(found: Matching) -> tuple[CallChange, ...]:
    """Return the calls that differ, in the order of A, then those that only B makes.

    Calls are the same by what they write, then by target and arguments, then by target alone.
    """
    code_a, code_b = found.a.side.graph.code, found.b.side.graph.code
    left_a, left_b = list(code_a.externs if code_a else ()), list(code_b.externs if code_b else ())
    says_a = {id(call): _said(found.a, call) for call in left_a}
    says_b = {id(call): _said(found.b, call) for call in left_b}
    order = {id(call): at for at, call in enumerate(left_a)}
    pairs: list[tuple[ExternCall, ExternCall]] = []
    for key_a, key_b in (
        (lambda call: _written(call, found.a.buffers), lambda call: _written(call, found.b.buffers)),
        (
            lambda call: (called(call.target), says_a[id(call)]),
            lambda call: (called(call.target), says_b[id(call)]),
        ),
        (lambda call: called(call.target), lambda call: called(call.target)),
    ):
        left_a, left_b = _pair(left_a, left_b, key_a, key_b, pairs)
    pairs.sort(key=lambda pair: order[id(pair[0])])
    changes = []
    for mine, other in pairs:
        facts: tuple[FactChange, ...] = ()
        if called(mine.target) != called(other.target):
            facts = (FactChange("target", mine.target, other.target, "major"),)
        elif says_a[id(mine)] != says_b[id(other)]:
            facts = (FactChange("arguments", ", ".join(mine.args), ", ".join(other.args), "major"),)
        if facts:
            changes.append(CallChange(mine.target, other.target, facts, mine.span, other.span))
    changes += [CallChange(call.target, None, (), call.span) for call in left_a]
    changes += [CallChange(None, call.target, (), None, call.span) for call in left_b]
    return tuple(changes)


Key = Callable[[ExternCall], Hashable]


def _pair(
    left_a: list[ExternCall],
    left_b: list[ExternCall],
    key_a: Key,
    key_b: Key,
    pairs: list[tuple[ExternCall, ExternCall]],
) -> tuple[list[ExternCall], list[ExternCall]]:
    """Pair calls with equal keys in order; return those that are left. None is no key."""
    waiting: dict[Hashable, list[ExternCall]] = {}
    for call in reversed(left_b):
        waiting.setdefault(key_b(call), []).append(call)
    rest_a, taken = [], set()
    for call in left_a:
        key = key_a(call)
        if key is not None and (others := waiting.get(key)):
            pairs.append((call, others.pop()))
            taken.add(id(pairs[-1][1]))
        else:
            rest_a.append(call)
    return rest_a, [call for call in left_b if id(call) not in taken]


def _written(call: ExternCall, numbers: dict[str, int]) -> Hashable:
    return next((number for name in call.outputs if (number := numbers.get(name)) is not None), None)


def _said(half: Half, call: ExternCall) -> tuple[str, ...]:
    """The values passed, without the names of arguments and those that only spell out a default."""
    values = []
    for text in call.args:
        name, equals, value = text.partition("=")
        keyword = name if equals and name.isidentifier() else ""
        shown = value if keyword else text
        if keyword not in _UNSAID and shown not in _UNSAID:
            values.append(shown)
    return arguments(half, tuple(values))
