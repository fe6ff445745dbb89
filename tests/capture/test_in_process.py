"""`ip.dump(function)` and `ip.recording()`: this process is recorded, and nothing of it stays changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import inductor_probe as ip
from tests.capture.conftest import plain_environment

pytestmark = pytest.mark.compiles


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, str(here / "in_notebook.py")],
        cwd=tmp_path_factory.mktemp("notebook"),
        env=plain_environment(PYTHONPATH=os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_a_function_is_compiled_anew_and_recorded_as_in_a_script(facts: dict[str, Any]) -> None:
    assert (facts["why"], facts["inputs"], facts["notes"]) == ("first", [[8, 16], [16, 16]], [])
    assert any(name.startswith("cpp_fused") for name in facts["kernels"])
    assert "fusion.log" in facts["logs"]
    assert facts["decisions"]
    assert facts["decisions"] == facts["of a script"]
    assert facts["found"] == "True"


def test_nothing_of_the_process_stays_changed(facts: dict[str, Any]) -> None:
    assert facts["changed"] == []
    assert facts["still compiled"]


def test_a_recording_leaves_no_file_open(facts: dict[str, Any]) -> None:
    """Each left a descriptor, so that a thousand were too many."""
    assert facts.get("left open", 0) == 0


def test_a_block_has_what_compiled_in_it_backward_too(facts: dict[str, Any]) -> None:
    assert facts["step"] == ["forward", "backward"]
    assert facts["module"] == 1
    assert facts["failed"] == ["of the user", "ended with an exception", 1]


def test_what_was_not_compiled_is_a_sentence(facts: dict[str, Any]) -> None:
    assert facts["nested"] == "a block is being recorded"
    assert "nothing was compiled in the block: what was compiled before it" in facts["empty"]
    assert "nothing was compiled: the function computes nothing" in facts["no tensor"]


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ip.ProbeError, match="cases is for scripts"):
        ip.dump(len, cases=["a"])
    with pytest.raises(ip.ProbeError, match="inputs are for functions"):
        ip.dump("script.py", 1)
    with pytest.raises(ip.ProbeError, match="has not ended"):
        ip.recording(out=tmp_path).run.show()
