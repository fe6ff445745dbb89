"""`probe whatif` as it is typed: which words make which candidate, and what is refused before it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from inductor_probe.cli.whatif import whatif


def parsed(*words: str) -> dict[str, Any]:
    """Return the parameters of the verb, as they are after parsing."""
    assert isinstance(whatif, click.Command)
    return dict(whatif.make_context("whatif", list(words)).params)


def test_what_is_behind_or_is_another_candidate() -> None:
    values = parsed(
        "a.py", "--set", "x=1", "--or", "--set=x=2", "--env", "A=b", "--budget", "2s", "--or", "--set", "y=3"
    )
    assert values["knobs"] == {"x": "1"}
    assert values["budget"] == 2.0
    assert [(other["knobs"], other["env"]) for other in values["others"]] == [
        ({"x": "2"}, {"A": "b"}),
        ({"y": "3"}, {}),
    ]


def test_decisions_by_name_belong_to_the_candidate_that_they_are_behind() -> None:
    values = parsed(
        *("a.py", "--scalar", "op0", "--or", "--persistent", "--fuse", "op0,op1", "--details"),
        *("--or", "--persistent=op2"),
    )
    assert list(map(str, values["flips"])) == ["scalar op0"]
    assert [list(map(str, other["flips"])) for other in values["others"]] == [
        ["persistent", "fuse op0,op1"],
        ["persistent op2"],
    ]
    assert values["details"]


def test_words_of_the_script_are_left_alone() -> None:
    values = parsed("a.py", "--set", "x=1", "--", "--or", "--set", "z")
    assert values["words"] == ("a.py", "--or", "--set", "z")
    assert values["others"] == ()


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
    ],
)
def test_what_means_nothing_is_refused(
    words: tuple[str, ...], says: str, probe: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("from inductor_probe.scenario import Scenario\n")
    ran = probe("whatif", *words, cwd=tmp_path)
    assert ran.status == 2
    assert says in ran.err
