"""Which kernels of two graphs do the same work, what their texts say differently, and what they are passed.

Fused groups and library calls of the two wrappers are compared here, too.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Literal

from inductor_probe.analysis.diff.fx import FxMatch
from inductor_probe.analysis.diff.matching import Matching
from inductor_probe.analysis.diff.normal_forms import normal_source, normal_type
from inductor_probe.analysis.diff.pairing import Groups, components, pair_by_levels, pair_equal
from inductor_probe.analysis.diff.side import ComparedGraph, called
from inductor_probe.analysis.graph import index_of
from inductor_probe.model.code import DECIDED_NESTS, CppFacts, ExternCall, Kernel, Launch, TritonFacts
from inductor_probe.model.diff import (
    CallChange,
    CodeChange,
    FactChange,
    FusionChange,
    KernelMatch,
    Weight,
    heaviest,
)
from inductor_probe.model.proof import Proof, inferred, read

_WEIGHTS: dict[str, Weight] = {
    "heuristic": "major", "vectorised": "major", "underfilled": "major", "scalar": "major",
    "vector_bits": "major", "index_width": "major", "reduction_hint": "major",
    "templates": "major", "loop_nests": "major",
    "parallel": "minor", "threads": "minor", "collapse": "minor", "size_hints": "minor",
    "index_type": "cosmetic",
}  # fmt: skip
"""What a fact of a kernel is worth, in the order of showing; `minor` unless said here."""
_NOT_FACTS = ("nests", "meta", "signature")
"""Fields that are compared by what is in them, or with the arguments."""
_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
_STREAM = re.compile(r"stream\d+")
_DEFAULTS = ("None", "out")
_Kernels = dict[str, Kernel]


def kernel_matches(matching: Matching, fx: FxMatch) -> tuple[KernelMatch, ...]:
    """Return every kernel of both sides, in the order of A, added ones last."""
    a, b = index_of(matching.a.graph).kernels, index_of(matching.b.graph).kernels
    groups = [(group, inferred("same-nodes")) for group in components(_ties(matching, a, b))]
    origins_a, origins_b = _fx_nodes(matching.a, fx.nodes), _fx_nodes(matching.b, None)
    is_only = len(a) == len(b) == 1
    steps: tuple[tuple[Proof, Callable[[str], Hashable], Callable[[str], Hashable]], ...] = (
        (read("same-code"), lambda name: normal_source(a[name]), lambda name: normal_source(b[name])),
        (inferred("same-fx-nodes"), origins_a.get, origins_b.get),
        (inferred("only-kernel"), lambda _: is_only or None, lambda _: is_only or None),
    )
    for proof, key_a, key_b in steps:
        matched_a, matched_b = ({name for group, _ in groups for name in group[side]} for side in (0, 1))
        left_a = [name for name in a if name not in matched_a]
        left_b = [name for name in b if name not in matched_b]
        groups += [(((name,), (other,)), proof) for name, other in pair_equal(left_a, left_b, key_a, key_b)]
    matches = [_match(matching, group, proof, a, b) for group, proof in groups]
    seen_a = {name for match in matches for name in match.a}
    seen_b = {name for match in matches for name in match.b}
    matches += [KernelMatch("removed", (name,), ()) for name in a if name not in seen_a]
    place = {name: number for number, name in enumerate(a)}
    matches.sort(key=lambda match: min(place[name] for name in match.a))
    return (*matches, *(KernelMatch("added", (), (name,)) for name in b if name not in seen_b))


def _ties(matching: Matching, a: _Kernels, b: _Kernels) -> Iterator[tuple[str, str]]:
    for node, other in matching.partners():
        kernel_a, kernel_b = matching.a.links.nodes[node].kernel, matching.b.links.nodes[other].kernel
        if kernel_a in a and kernel_b in b and kernel_a and kernel_b:
            yield kernel_a, kernel_b


def _fx_nodes(side: ComparedGraph, partners: dict[str, str] | None) -> dict[str, Hashable]:
    """The FX nodes of each kernel, under the names that B has for them."""
    known = side.graph.provenance.kernels if side.graph.provenance else {}
    return {
        kernel: frozenset(nodes if partners is None else (partners.get(node, f"A {node}") for node in nodes))
        for kernel, nodes in known.items()
    }


def _relation(group: Groups) -> Literal["split", "merged", "regrouped"]:
    return "split" if len(group[0]) == 1 else "merged" if len(group[1]) == 1 else "regrouped"


def _match(matching: Matching, group: Groups, proof: Proof, a: _Kernels, b: _Kernels) -> KernelMatch:
    if len(group[0]) != 1 or len(group[1]) != 1:
        return KernelMatch(_relation(group), *group, proof)
    kernel_a, kernel_b = a[group[0][0]], b[group[1][0]]
    if kernel_a.backend != kernel_b.backend:
        backends = FactChange("backend", kernel_a.backend, kernel_b.backend, "major")
        return KernelMatch("changed", *group, proof, (backends,))
    facts = (*_facts(_fields(kernel_a), _fields(kernel_b)), *_arguments(kernel_a, kernel_b))
    code = code_change(kernel_a, kernel_b)
    if code is None and heaviest(facts) == "cosmetic":  # where codes differ, that says why arguments do
        launched = _launch_change(matching, kernel_a.name, kernel_b.name)
        return KernelMatch("changed" if launched else "same", *group, proof, (*facts, *launched), code)
    return KernelMatch("changed", *group, proof, facts, code)


def _fields(kernel: Kernel) -> dict[str, str]:
    """Return the facts of a kernel by the names of their fields; loop nests are counted by kind."""
    details = kernel.details
    values: dict[str, object] = {"chooses": kernel.chooses}
    if details is not None:
        compared = (name for name in details.__struct_fields__ if name not in _NOT_FACTS)
        values |= {name: getattr(details, name) for name in compared}
        values["index_width"] = details.index_width
    if isinstance(details, CppFacts):
        values |= {kind: details.count(kind) for kind in (*DECIDED_NESTS, "tail")}
        values["loop_nests"] = len(details.decided_nests)
        values["tiles"] = details.tiles
    elif isinstance(details, TritonFacts):
        values |= dict(details.meta)
    missing = (None, (), "")
    return {
        name: _value_text(value)
        for name, value in values.items()
        if value is not False and value not in missing
    }


def _value_text(value: object) -> str:
    """`x=8192, r0_=128`; `+, max`; `512`; `yes`."""
    if isinstance(value, tuple):
        return ", ".join("=".join(part) if isinstance(part, tuple) else part for part in value)
    return "yes" if value is True else str(value)


def _facts(a: dict[str, str], b: dict[str, str]) -> Iterator[FactChange]:
    for name in dict.fromkeys([*_WEIGHTS, *a, *b]):
        if a.get(name) != b.get(name):
            yield FactChange(name, a.get(name), b.get(name), _WEIGHTS.get(name, "minor"))


def _arguments(a: Kernel, b: Kernel) -> Iterator[FactChange]:
    """Compare how many arguments of each role there are, and which types they have."""
    for role, word in (("in", "inputs"), ("out", "outputs"), ("inout", "in place")):
        types_a, types_b = (
            Counter(normal_type(argument.type or "?") for argument in kernel.args if argument.role == role)
            for kernel in (a, b)
        )
        if types_a != types_b:
            yield FactChange(word, _counted(types_a), _counted(types_b))


def _counted(types: Counter[str]) -> str:
    """`2 const float*, 1 bool*`; the number alone where types are not printed."""
    if set(types) <= {"?"}:
        return str(types.total())
    return ", ".join(f"{count} {name}" for name, count in sorted(types.items()))


def code_change(a: Kernel, b: Kernel) -> CodeChange | None:
    """Count the lines that only one of two kernels has; None when their normal forms are equal."""
    lines_a, lines_b = normal_source(a), normal_source(b)
    if lines_a == lines_b:
        return None
    counts_a, counts_b = Counter(lines_a), Counter(lines_b)
    removed, added = (counts_a - counts_b).total(), (counts_b - counts_a).total()
    if removed == added == 0:  # the same lines in another order
        removed = added = sum(one != other for one, other in zip(lines_a, lines_b, strict=True))
    return CodeChange(removed, added)


def code_diff(a: Kernel, b: Kernel) -> tuple[str, ...]:
    """Return the unified diff of the normal forms of two kernels."""
    return tuple(difflib.unified_diff(normal_source(a), normal_source(b), a.name, b.name, lineterm=""))


def _launch_change(matching: Matching, kernel_a: str, kernel_b: str) -> tuple[FactChange, ...]:
    """Compare the launches of two kernels with equal code; empty when they pass the same, in any order."""
    a, b = _launches(matching.a, kernel_a), _launches(matching.b, kernel_b)
    counts_a, counts_b = (Counter(passed for _, passed in launches) for launches in (a, b))
    if counts_a == counts_b:
        return ()
    only_a = next((launch for launch, passed in a if not counts_b[passed]), None)
    only_b = next((launch for launch, passed in b if not counts_a[passed]), None)
    if only_a is None or only_b is None:
        return (FactChange("launches", str(len(a)), str(len(b)), "major"),)
    return (FactChange("launched with", ", ".join(only_a.args), ", ".join(only_b.args), "major"),)


def _launches(side: ComparedGraph, kernel: str) -> list[tuple[Launch, tuple[str, ...]]]:
    launches = side.graph.code.launches if side.graph.code else ()
    return [(launch, _passed(side, launch.args)) for launch in launches if launch.kernel == kernel]


def _passed(side: ComparedGraph, texts: Iterable[str]) -> tuple[str, ...]:
    """Return arguments with buffers by the number of their pair; one without a partner is like any other.

    The spelling of an expression does not count; nor does it whether a symbol is called s0 or s77.
    """

    def number(match: re.Match[str]) -> str:
        name = match[0]
        if name in side.buffer_pairs:
            return f"%{side.buffer_pairs[name]}"
        return "%?" if name in side.placed else name

    return tuple(
        _NAME.sub(number, _one_spelling(side.symbols.rename(text)))
        for text in texts
        if not _STREAM.fullmatch(text)
    )


def _one_spelling(text: str) -> str:
    try:
        return ast.unparse(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return " ".join(text.split())


def fusion_changes(matching: Matching) -> tuple[FusionChange, ...]:
    """Return the fused groups whose nodes stand in other groups on the other side, in the order of A."""
    a, b = matching.a, matching.b
    members_a, members_b = index_of(a.graph).nodes.members, index_of(b.graph).nodes.members
    ties = ((a.group[node], b.group[other]) for node, other in matching.nodes.items())
    return tuple(
        FusionChange(
            _relation(group),
            tuple(members_a[name] for name in group[0]),
            tuple(members_b[name] for name in group[1]),
        )
        for group in components(ties)
        if len(group[0]) + len(group[1]) > 2
    )


def call_changes(matching: Matching) -> tuple[CallChange, ...]:
    """Return the library calls that differ, in the order of A, then those that only B makes.

    Calls are the same by what they write, then by target and arguments, then by target alone.
    """
    a, b = matching.a, matching.b
    calls_a, calls_b = (
        dict(enumerate(side.graph.code.externs if side.graph.code else ())) for side in (a, b)
    )
    keys_a = {place: _call_keys(a, call) for place, call in calls_a.items()}
    keys_b = {place: _call_keys(b, call) for place, call in calls_b.items()}
    pairs = pair_by_levels(keys_a, keys_b)
    changes = []
    for place, other in sorted(pairs.items()):
        call, other_call = calls_a[place], calls_b[other]
        (target, passed), (other_target, other_passed) = keys_a[place][1], keys_b[other][1]
        facts: tuple[FactChange, ...] = ()
        if target != other_target:
            facts = (FactChange("target", call.target, other_call.target, "major"),)
        elif passed != other_passed:
            facts = (FactChange("arguments", ", ".join(call.args), ", ".join(other_call.args), "major"),)
        if facts:
            changes.append(CallChange(call.target, other_call.target, facts, call.span, other_call.span))
    removed = (call for place, call in calls_a.items() if place not in pairs)
    matched_b = set(pairs.values())
    added = (call for place, call in calls_b.items() if place not in matched_b)
    changes += [CallChange(call.target, None, (), call.span) for call in removed]
    changes += [CallChange(None, call.target, (), None, call.span) for call in added]
    return tuple(changes)


def _call_keys(side: ComparedGraph, call: ExternCall) -> tuple[int | None, tuple[str, tuple[str, ...]], str]:
    pairs = (side.buffer_pairs[name] for name in call.outputs if name in side.buffer_pairs)
    target = called(call.target)
    return next(pairs, None), (target, _passed(side, _values(call))), target


def _values(call: ExternCall) -> Iterator[str]:
    """The values passed, without the names of arguments and those that only spell out a default."""
    for text in call.args:
        name, equals, value = text.partition("=")
        is_keyword = bool(equals) and name.isidentifier()
        shown = value if is_keyword else text
        if shown not in _DEFAULTS and not (is_keyword and name in _DEFAULTS):
            yield shown
