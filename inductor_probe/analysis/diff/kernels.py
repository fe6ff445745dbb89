"""Which kernels of two graphs do the same work, and what their texts say differently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace

from inductor_probe.analysis.diff.components import Component, components
from inductor_probe.analysis.diff.fx import FxMatch
from inductor_probe.analysis.diff.launches import Launches, launch_change, launches_of
from inductor_probe.analysis.diff.matching import Matching
from inductor_probe.analysis.diff.side import ComparedGraph
from inductor_probe.analysis.diff.source import code_change, normal_source, normal_type
from inductor_probe.analysis.graph import index_of
from inductor_probe.model.code import Kernel
from inductor_probe.model.diff import FactChange, KernelMatch, Relation, Weight, heaviest
from inductor_probe.model.proof import Proof, inferred, read

_WEIGHTS: dict[str, Weight] = {
    "heuristic": "major", "vectorised": "major", "scalar": "major", "vector width": "major",
    "index width": "major", "reduction hint": "major", "template": "major", "loop nests": "major",
    "openmp": "minor", "size hints": "minor", "index type": "cosmetic",
}  # fmt: skip
"""What a fact of a kernel is worth, in the order of showing; `minor` unless said here."""


def kernel_matches(found: Matching, fx: FxMatch) -> tuple[KernelMatch, ...]:
    """Return every kernel of both sides, in the order of A, added ones last."""
    a, b = (index_of(half.side.graph).kernels for half in (found.a, found.b))
    parts = [(part, inferred("same-nodes")) for part in components(_ties(found, a, b))]
    for proof, keys_a, keys_b in (
        (read("same-code"), _codes(a), _codes(b)),
        (inferred("same-fx-nodes"), _origins(found.a.side, fx.nodes), _origins(found.b.side, None)),
        (inferred("only-kernel"), _only(a), _only(b)),
    ):
        left_a = _left(a, keys_a, {name for part, _ in parts for name in part.a})
        left_b = _left(b, keys_b, {name for part, _ in parts for name in part.b})
        for key, names in left_a.items():
            for mine, other in zip(names, left_b.get(key, ()), strict=False):
                parts.append((Component((mine,), (other,)), proof))
    place = {name: at for at, name in enumerate(a)}
    started = launches_of(found.a), launches_of(found.b)
    result = [_with_launches(found, _match(part, proof, a, b), started) for part, proof in parts]
    seen_a = {name for match in result for name in match.a}
    seen_b = {name for match in result for name in match.b}
    result += [KernelMatch("removed", (name,), ()) for name in a if name not in seen_a]
    result.sort(key=lambda match: min(place[name] for name in match.a))
    return (*result, *(KernelMatch("added", (), (name,)) for name in b if name not in seen_b))


def _ties(found: Matching, a: dict[str, Kernel], b: dict[str, Kernel]) -> Iterable[tuple[str, str]]:
    links_a, links_b = found.a.side.links.nodes, found.b.side.links.nodes
    for mine, other in found.partners():
        kernel_a, kernel_b = links_a[mine].kernel, links_b[other].kernel
        if kernel_a in a and kernel_b in b and kernel_a and kernel_b:
            yield kernel_a, kernel_b


def _codes(kernels: dict[str, Kernel]) -> dict[str, Hashable]:
    return {name: normal_source(kernel) for name, kernel in kernels.items()}


def _only(kernels: dict[str, Kernel]) -> dict[str, Hashable]:
    return dict.fromkeys(kernels, "only") if len(kernels) == 1 else {}


def _origins(side: ComparedGraph, partners: dict[str, str] | None) -> dict[str, Hashable]:
    """The FX nodes of each kernel, under the names that B has for them."""
    known = side.graph.provenance.kernels if side.graph.provenance else {}
    return {
        kernel: frozenset(nodes if partners is None else (partners.get(node, f"A {node}") for node in nodes))
        for kernel, nodes in known.items()
    }


def _left(kernels: dict[str, Kernel], keys: dict[str, Hashable], seen: set[str]) -> dict[Hashable, list[str]]:
    left: dict[Hashable, list[str]] = {}
    for name in kernels:
        if name not in seen and name in keys:
            left.setdefault(keys[name], []).append(name)
    return left


def _match(part: Component, proof: Proof, a: dict[str, Kernel], b: dict[str, Kernel]) -> KernelMatch:
    if len(part.a) == len(part.b) == 1:
        return _one_to_one(a[part.a[0]], b[part.b[0]], proof)
    relation: Relation = "regrouped"
    if len(part.a) == 1:
        relation = "split"
    elif len(part.b) == 1:
        relation = "merged"
    return KernelMatch(relation, part.a, part.b, proof)


def _one_to_one(a: Kernel, b: Kernel, proof: Proof) -> KernelMatch:
    if a.backend != b.backend:
        facts: tuple[FactChange, ...] = (FactChange("backend", a.backend, b.backend, "major"),)
        return KernelMatch("changed", (a.name,), (b.name,), proof, facts)
    facts = (*_facts(dict(a.facts), dict(b.facts)), *_arguments(a, b))
    code = code_change(a, b)
    same = code is None and heaviest(facts) == "cosmetic"
    return KernelMatch("same" if same else "changed", (a.name,), (b.name,), proof, facts, code)


def _with_launches(found: Matching, match: KernelMatch, started: tuple[Launches, Launches]) -> KernelMatch:
    """Add what the kernels are launched with. Where their codes differ, that says why arguments do."""
    if len(match.a) != 1 or len(match.b) != 1 or match.code or match.relation == "changed":
        return match
    launches = started[0].get(match.a[0], []), started[1].get(match.b[0], [])
    fact = launch_change(found, *launches)
    return match if fact is None else replace(match, relation="changed", facts=(*match.facts, fact))


def _facts(a: dict[str, str], b: dict[str, str]) -> tuple[FactChange, ...]:
    names = dict.fromkeys([*_WEIGHTS, *a, *b])
    return tuple(
        FactChange(name, a.get(name), b.get(name), _WEIGHTS.get(name, "minor"))
        for name in names
        if a.get(name) != b.get(name)
    )


def _arguments(a: Kernel, b: Kernel) -> tuple[FactChange, ...]:
    """Compare how many arguments of each role there are, and which types they have."""
    facts = []
    for role, word in (("in", "inputs"), ("out", "outputs"), ("inout", "in place")):
        types_a, types_b = (
            [normal_type(argument.type or "?") for argument in kernel.args if argument.role == role]
            for kernel in (a, b)
        )
        if Counter(types_a) != Counter(types_b):
            facts.append(FactChange(word, _counted(types_a), _counted(types_b)))
    return tuple(facts)


def _counted(types: list[str]) -> str:
    """`2 const float*, 1 bool*`; the number alone where types are not printed."""
    counts = Counter(types)
    if set(counts) <= {"?"}:
        return str(len(types))
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
