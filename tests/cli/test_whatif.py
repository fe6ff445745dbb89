"""`probe whatif` as it is typed: which words make which candidate, and what is refused before it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from inductor_probe.cli.options import typed_values
from inductor_probe.cli.whatif import whatif
from inductor_probe.options.programs import WhatifOptions


def parsed(*words: str) -> WhatifOptions:
    """Return the options of the verb, as they are after parsing."""
    assert isinstance(whatif, click.Command)
    context = whatif.make_context("whatif", list(words))
    return WhatifOptions(**typed_values(context, WhatifOptions, dict(context.params)))


def test_what_is_behind_or_is_another_candidate() -> None:
    values = parsed(
        "a.py", "--set", "x=1", "--or", "--set=x=2", "--env", "A=b", "--budget", "2s", "--or", "--set", "y=3"
    )
    assert values.knobs == {"x": "1"}
    assert values.budget == 2.0
    assert [(other.knobs, other.env) for other in values.others] == [
        ({"x": "2"}, {"A": "b"}),
        ({"y": "3"}, {}),
    ]


def test_decisions_by_name_belong_to_the_candidate_that_they_are_behind() -> None:
    values = parsed(
        *("a.py", "--scalar", "op0", "--or", "--persistent", "--fuse", "op0,op1", "--details"),
        *("--or", "--persistent=op2"),
    )
    assert list(map(str, values.flips)) == ["scalar op0"]
    assert [list(map(str, other.flips)) for other in values.others] == [
        ["fuse op0,op1", "persistent"],
        ["persistent op2"],
    ]


def test_words_of_the_script_are_left_alone() -> None:
    values = parsed("a.py", "--set", "x=1", "--", "--or", "--set", "z")
    assert (values.program, values.args) == ("a.py", ("--or", "--set", "z"))
    assert values.others == ()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("a.py", "--set", "x=1", "--or"), "--or begins another candidate: give it a setting"),
        (("a.py", "--or", "--set"), "Option '--set' requires an argument"),
        (("a.py", "--or", "--set", "x"), "invalid setting --set x: write NAME=VALUE"),
        (("a.py",), "nothing is to be different: give a setting"),
        ((), "name a script or a run"),
        (("--runs", "a", "b", "--try-all"), "--runs A B compares two runs as they are"),
        (("nowhere", "--set", "x=1"), "there is no script nowhere"),
        (("a.py", "--scalar"), "see probe whatif --help"),
        (("a.py", "--try-all", "--fail-if-faster", "x"), "invalid share 'x'"),
        (("a.py", "--try-all", "--budget", "soon"), "invalid duration 'soon'"),
        (("a.py", "--set", "x=1", "--env", "TORCH_COMPILE_DEBUG=0"), "a dump sets it itself"),
        (("a.py", "--set", "x=1", "--target", "h20"), "did you mean h200 or h100?"),
        (("a.py", "--set", "x=1", "--inputs", "random,zeros"), "'random,zeros' is not one of"),
        (("a.py", "--set", "x=1", "--size", "s77"), "invalid size 's77' (example: s77=128)"),
        (("--runs", "a", "b", "--target", "h200"), "--runs A B compares two runs as they are"),
    ],
)
def test_what_means_nothing_is_refused(
    words: tuple[str, ...], says: str, probe: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("from inductor_probe.scenario import Scenario\n")
    ran = probe("whatif", *words, cwd=tmp_path)
    assert ran.status == 2
    assert says in ran.err


SCENARIO = """
from inductor_probe.scenario import Check, Scenario

def build(case):
    import torch
    return Check(lambda x: x.flip(-1) + 1, (torch.zeros(4, case["size"]),))

scenario = Scenario(build, {"size": 64, "dynamic": False}, {"small": {}})
if __name__ == "__main__":
    scenario.main()
"""
OTHER = ("--set", "inductor.cpp.simdlen=1", "--or", "--set")


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (
            ("--set", "inductor.simdlen=1"),
            "has no setting inductor.simdlen",
            "did you mean inductor.cpp.simdlen",
        ),
        ((*OTHER, "inductor.cpp.simdlen=wide"), "inductor.cpp.simdlen cannot be wide: it is int or None", ""),
        (
            ("--set", "dynamo.recompile_limt=3"),
            "has no setting dynamo.recompile_limt",
            "dynamo.recompile_limit",
        ),
        ((*OTHER, "dynamo.recompile_limit=x"), "dynamo.recompile_limit cannot be x: it is int", "it is 8"),
        (("--set", "functorch.nothing_near=1"), "has no setting functorch", "torch/_functorch/config.py has"),
        (("--set", "functorch.donated_buffer=3"), "functorch.donated_buffer cannot be 3: it is bool", ""),
        (("--set", "sise=3"), "case small has no knob 'sise'", "did you mean size?"),
        ((*OTHER, "size=wide"), "knob size cannot be 'wide'", "it takes a value of type int"),
        (("--case", "smal", "--set", "size=3"), "no case 'smal' in this scenario", "did you mean small?"),
    ],
)
def test_what_no_dump_could_be_made_with_is_refused_before_the_first(
    words: tuple[str, ...], error: str, hint: str, probe: Callable[..., Any], tmp_path: Path
) -> None:
    """It was refused when A had been dumped; an unknown knob left an empty run that was then the latest."""
    (tmp_path / "small.py").write_text(SCENARIO)
    ran = probe("whatif", "small.py", *words, cwd=tmp_path)
    assert ran.status == 2
    assert error in ran.err
    assert hint in ran.err
    assert "dumping" not in ran.err
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"small.py"}


@pytest.mark.parametrize("name", ["inductr.cpp.simdlen", "torch._inductor.config.cpp.simdlen", "size"])
def test_a_script_without_knobs_says_what_a_setting_is_called(
    name: str, probe: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "plain.py").write_text("import torch\n")
    ran = probe("whatif", "plain.py", "--set", f"{name}=1", cwd=tmp_path)
    assert ran.status == 2
    assert ("did you mean inductor.cpp.simdlen?" in ran.err) is ("." in name), ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["plain.py"]
