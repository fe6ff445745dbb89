"""Every entry of the catalogue is whole: its operands, its sentences, its place in the installed torch."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from inductor_probe.analysis.causes.conditions import CONDITIONS
from inductor_probe.capture.branches import matches
from inductor_probe.catalogue import KINDS, causes_by_test, causes_of, faults_of, kind_of
from inductor_probe.catalogue.entries import By, Cause, Source
from inductor_probe.catalogue.fusion_reasons import meaning_of
from inductor_probe.model.decision import DECISION_KINDS, Decision, DecisionKind, Operand, Outcome
from inductor_probe.report.words.decisions import sentence, short_cause
from tests.builders import decision

ENTRIES = [
    pytest.param(kind, cause, id=f"{kind}-{code}")
    for kind in KINDS
    for code, cause in causes_of(kind).items()
]
ALWAYS = {"subject", "n", "first", "second", "others", "function"}
_FIELD = re.compile(r"(?<!\{)\{([^{}:!]+)")


def names_in(template: str) -> set[str]:
    """Return the values that a template names: of `{isa|flag}` all; of `{'it'}`, which is a text, none."""
    names = {name for field in _FIELD.findall(template) for name in field.split("|")}
    return {name for name in names if not name.startswith("'")}


def test_every_kind_of_decision_is_in_the_catalogue() -> None:
    assert {*KINDS} == {*DECISION_KINDS}
    for kind in KINDS:
        assert kind_of(kind).code == kind
        assert len(causes_of(kind)) == len(kind_of(kind).causes)


@pytest.mark.parametrize(("kind", "cause"), ENTRIES)
def test_templates_use_declared_operands_only(kind: DecisionKind, cause: Cause) -> None:
    of_kind = kind_of(kind)
    outcomes: dict[str, str] = {outcome.code: outcome.sentence for outcome in of_kind.outcomes}
    assert {*cause.outcomes.split()} <= {*outcomes}
    assert {*cause.outcome_words} <= {*cause.outcomes.split()}
    declared = {operand.name for operand in of_kind.operands_of(cause)}
    known = declared | ALWAYS | {*of_kind.derives.split()}
    texts = [cause.sentence, cause.short]
    texts += [change.effect for change in cause.changes if isinstance(change, By | Source)]
    words = {**outcomes, **cause.outcome_words}
    texts += [words[outcome] for outcome in cause.outcomes.split()]
    assert {name for text in texts for name in names_in(text)} <= known
    present = {change.present for change in cause.changes if isinstance(change, By) and change.present}
    assert present <= declared
    named = {change.applies for change in cause.changes if isinstance(change.applies, str)}
    assert named <= {*CONDITIONS}
    assert cause.example


def test_no_operand_is_declared_for_nothing() -> None:
    for kind in KINDS:
        of_kind = kind_of(kind)
        used = {operand.name for cause in of_kind.causes for operand in of_kind.operands_of(cause)}
        assert [operand.name for operand in of_kind.operands if operand.name not in used] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_has_one_effect_in_a_kind(kind: DecisionKind) -> None:
    effects: dict[str, str] = {}
    for cause in kind_of(kind).causes:
        for change in cause.changes:
            if isinstance(change, By | Source):
                assert effects.setdefault(change.code, change.effect) == change.effect


def _inductor() -> Path:
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "_inductor"


@cache
def functions_of(file: str) -> dict[str, ast.FunctionDef]:
    """Return the functions of a file of inductor by their qualified names."""

    def within(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                yield f"{prefix}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from within(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.If | ast.Try | ast.With):
                yield from within(node.body, prefix)

    return dict(within(ast.parse((_inductor() / file).read_text()).body, ""))


@cache
def decided_in(file: str) -> frozenset[str]:
    """Return the texts of all that functions of a file test, return or assign, and of their parts."""
    roots = (
        getattr(node, "value" if isinstance(node, ast.Return | ast.Assign) else "test", None)
        for one in functions_of(file).values()
        for node in ast.walk(one)
    )
    parts = (part for root in roots if isinstance(root, ast.expr) for part in ast.walk(root))
    return frozenset(ast.unparse(part) for part in parts if isinstance(part, ast.expr))


def files_with(word: str) -> Iterator[str]:
    """Yield the files of inductor that have a word."""
    for path in sorted(_inductor().rglob("*.py")):
        if word in path.read_text():
            yield path.relative_to(_inductor()).as_posix()


@pytest.mark.parametrize(("kind", "cause"), ENTRIES)
def test_the_function_of_a_cause_is_in_the_installed_torch(kind: DecisionKind, cause: Cause) -> None:
    file, _, function = cause.at.partition(":")
    assert function in functions_of(file), kind
    tests = (cause.test,) if isinstance(cause.test, str) else cause.test
    # A rule may have another function in another release, and ask others: then the test is in one of these.
    words = [max(re.findall(r"\w+", test), key=len) for test in tests]
    files = itertools.chain([file], *map(files_with, words))
    is_there = (any(matches(text, test) for text in decided_in(one) for test in tests) for one in files)
    assert not tests or any(is_there), tests
    assert {*cause.values.split()} <= {operand.name for operand in kind_of(kind).operands_of(cause)}


def test_what_a_watched_function_decides_comes_from_its_entries() -> None:
    tests = causes_by_test("layout", "GraphLowering.decide_layout_opt")
    assert tests["nconv == ?"] == "only-backward-convolutions"
    assert {*causes_by_test("rewrite", "fx_passes/pad_mm.py").values()} == {
        "shape-padding-off", "sizes-aligned", "padding-forced",
    }  # fmt: skip


def test_a_decision_is_checked_against_its_entry() -> None:
    def faults(cause: str, **operands: bool | int | float | str | tuple[str, ...]) -> list[str]:
        return [*faults_of(decision("threads", "op0", "parallel", cause, operands=operands))]

    assert faults("loops-divided", threads=2, iterations=192, loops=("x0",), is_reduction=False) == []
    assert faults("loops-divided", iterations="s0") == []  # a symbolic size
    assert faults("too-hot") == ["threads: too-hot is not in the catalogue"]
    assert faults("little-work") == ["threads: little-work does not lead to parallel"]
    assert faults("loops-divided", degrees=90) == ["threads: loops-divided has no operand degrees"]
    assert faults("loops-divided", threads=True) == [
        "threads: loops-divided: threads is True, not of type int"
    ]
    assert faults("turned", flip="threads 2", starts=16) == []
    assert faults("unlisted-test", loops=("x1",)) == []


def test_a_layout_in_the_same_order_as_strides_is_in_the_catalogue() -> None:
    """`Buffer.freeze_layout_with_same_order`, as a view of a convolution's input asks for it."""
    about = {"size": ("2", "4"), "stride": ("4", "1"), "same_order": ("4", "1")}
    assert not [*faults_of(decision("layout", "buf0", "contiguous", "view", operands=about))]


def test_kinds_that_nothing_asks_for_are_not_loaded() -> None:
    """A reading verb starts without them: entries are made when something of their kind is shown."""
    program = (
        "import sys; import inductor_probe.report.pages.kernels, inductor_probe.analysis.causes.causes; "
        "print(*(name for name in sys.modules if name.startswith('inductor_probe.catalogue.')))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {*ran.stdout.split()} == {"inductor_probe.catalogue.entries", "inductor_probe.catalogue.templates"}


def test_a_reason_of_torch_without_a_code_is_explained() -> None:
    spills = Decision(
        1, "fusion", "node", (("op0",), ("op1",)), "refused", "other",
        (("text", "register spilling of the fused kernel"),), None,
    )  # fmt: skip
    assert sentence(spills) == (
        "op0 and op1 are not fused: in torch's words: register spilling of the fused kernel. Benchmarked by "
        "torch: the fused kernel spills registers. [other]"
    )
    assert meaning_of("foo's size: 3 differs from bar's size: 4") == (
        "The first is a CUTLASS kernel, which fuses only with what its epilogue can express. The second has "
        "another size."
    )
    assert meaning_of("a reason of a torch to come") is None


def test_symbolic_sizes_of_a_mix_of_reductions_leave_a_sentence() -> None:
    sizes: tuple[tuple[str, Operand], ...] = (
        ("check", "rows-per-column"), ("rows", "s0"), ("columns", 16), ("limit", 5), ("buffers", ("buf0",)),
    )  # fmt: skip
    mixed = Decision(1, "fusion", "node", (("op0",), ("op1",)), "refused", "mix-order-limit", sizes, None)
    assert "there are s0 for 16" in sentence(mixed)


@pytest.mark.parametrize(("kind", "cause"), ENTRIES)
def test_operands_of_other_types_leave_a_sentence(kind: DecisionKind, cause: Cause) -> None:
    """What another version wrote, or a damaged file holds, may be anything."""
    for odd in (("x",), True, "x"):
        operands = tuple((name, odd) for name in cause.operands.split())
        outcomes = [one for one in get_args(Outcome) if one in cause.outcomes.split()]
        row = Decision(1, kind, "node", (("op0",), ("op1",)), outcomes[0], cause.code, operands, None)
        assert sentence(row)
        assert short_cause(row)
