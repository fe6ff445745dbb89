"""`--issue`: what was found out, in the form of PyTorch's template, without a name of the machine in it."""

from __future__ import annotations

import getpass
import os
import platform
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.api.issue import issue_of
from inductor_probe.api.rows import Causes
from inductor_probe.api.verbs import open_run, why
from inductor_probe.errors import ProbeError
from inductor_probe.model.issue import Issue, IssueProgram, IssueValue
from inductor_probe.model.manifest import MANIFEST_NAME
from inductor_probe.model.reduction import REDUCED_HEAD
from inductor_probe.reduction import reduce
from inductor_probe.report.pages.issue import issue_markdown, without_machine
from tests.builders import manifest_text
from tests.conftest import Probe
from tests.dumps import FLIP, copy_of, graph_in

HOST, USER = "build-node-17.example", "jrandom"


def planted(to: Path) -> Path:
    """Return a run whose manifest names a host and a user."""
    run = copy_of(graph_in(FLIP), to).parents[1]
    facts: dict[str, Any] = {
        "script": f"/home/{USER}/models/flips.py",
        "machine": (("host", HOST), ("cpu", "a CPU")),
    }
    (run / MANIFEST_NAME).write_text(manifest_text(**facts))
    return run


def issue(**fields: Any) -> str:
    """A report of a machine whose names stand everywhere."""
    facts: dict[str, Any] = {
        "title": f"[inductor] aten.sin gives wrong values on {HOST}",
        "expected": "what eager computes",
        "actual": (f"Wrong: see /home/{USER}/models/model.py:12 of {USER}@{HOST}",),
        "program": IssueProgram("script", "sin.py", f'x = torch.load("/home/{USER}/x.pt")\n', 1),
        "values": (IssueValue("aten.sin, buf0[0]", "0.5", "0.25", "0.5"),),
        "wrong": 3,
        "runs": 3,
        "versions": (("torch", "2.13.0"), ("inductor_probe", "0.1.0")),
        "command": f"probe accuracy /home/{USER}/models/sin.py --issue",
        "bisector": "python -m torch._inductor.compiler_bisector run python sin.py",
        "secrets": (HOST, USER),
    }
    return issue_markdown(Issue(**{**facts, **fields}))


def test_no_path_host_or_user_stands_in_it() -> None:
    text = issue()
    for planted in (HOST, USER, "/home", "work/"):
        assert planted not in text
    assert 'torch.load("x.pt")' in text
    assert "model.py:12" in text


def test_it_has_what_the_template_asks_for() -> None:
    text = issue()
    parts = ["Describe the bug", "expected", "3 of 3 runs", "```python", "eager | compiled | float64"]
    parts += ["compiler_bisector run", "Versions", "2.13.0", "probe accuracy sin.py --issue", "collect_env"]
    positions = [text.find(part) for part in parts]
    assert -1 not in positions
    assert positions == sorted(positions)


def test_a_program_of_more_than_twenty_lines_is_folded_with_how_to_reduce_it() -> None:
    long = IssueProgram("script", "net.py", "x = 1\n" * 21, 21)
    text = issue(program=long, keep="wrong")
    assert "<details><summary>net.py, 21 lines</summary>" in text
    assert "probe reduce net.py --keep wrong" in text
    short = issue(program=IssueProgram("script", "net.py", "x = 1\n" * 20, 20), keep="wrong")
    assert "<details>" not in short
    assert "probe reduce" not in short


def test_addresses_and_divisions_are_no_paths() -> None:
    text = "see https://pytorch.org/docs/a.html; y = a/b/c; 3 /4/ 5; torch/_inductor/ir.py:3"
    assert without_machine(text) == text
    assert without_machine("File /usr/lib/python3/site-packages/torch/_inductor/ir.py") == (
        "File torch/_inductor/ir.py"
    )


def test_decisions_of_a_real_dump_with_the_machine_s_own_names(probe: Probe, tmp_path: Path) -> None:
    run = planted(tmp_path)
    ran = probe("why", "--issue", str(run))
    assert ran.status == 0
    for part in ("### [inductor]", "def forward(self", "torch.ops.prims.rev", "probe why --issue"):
        assert part in ran.out
    assert "a CPU" in ran.out
    for name in (HOST, USER, str(tmp_path), platform.node(), str(Path.home()), os.fspath(Path.cwd())):
        assert name not in ran.out
    user = getpass.getuser()
    assert user == "root" or user not in ran.out


def test_the_program_that_was_reduced_takes_the_place_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_run(planted(tmp_path))
    monkeypatch.chdir(tmp_path)
    small = tmp_path / "flips_small.py"
    head = f'"""{REDUCED_HEAD}flips.py: --keep wrong"""\n\n'
    small.write_text(f"{head}import torch\n\nthe_small_one = torch.ones(3)\n")
    text = issue_of(why(target=opened), target=opened)
    assert "the_small_one = torch.ones(3)" in text
    assert REDUCED_HEAD not in text
    small.write_text("the_small_one = 1  # of somebody, not reduced from it\n")
    assert "the_small_one" not in issue_of(why(target=opened), target=opened)


def test_what_reduce_writes_is_known_by_its_head() -> None:
    assert REDUCED_HEAD in Path(reduce.__file__ or "").read_text()


def test_json_and_what_is_no_issue_are_refused(probe: Probe, tmp_path: Path) -> None:
    run = copy_of(graph_in(FLIP), tmp_path).parents[1]
    ran = probe("why", "--issue", "--json", str(run))
    assert ran.status == 2
    assert "--issue prints markdown" in ran.out + ran.err
    with pytest.raises(ProbeError, match="nothing was decided"):
        issue_of(Causes(), target=open_run(run))
