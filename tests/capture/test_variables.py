"""Variables of the environment for the script alone (`--env`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.capture.process import check_variables

SCRIPT = """
import os
assert os.environ["OMP_NUM_THREADS"] == "1"  # before torch is imported
assert os.environ["MY_OWN"] == "a=b"
"""


def test_the_script_alone_has_them_and_the_manifest_keeps_them(tmp_path: Path) -> None:
    script = tmp_path / "reads.py"
    script.write_text(SCRIPT)
    given = {"OMP_NUM_THREADS": "1", "MY_OWN": "a=b", "MY_TOKEN": "secret"}
    run = ip.dump(script, env=given, out=tmp_path, stdout_to_stderr=True)
    assert run.manifest is not None
    assert run.manifest.outcome == "ok"
    assert run.manifest.variables == (
        ("OMP_NUM_THREADS", "1"),
        ("MY_OWN", "a=b"),
        ("MY_TOKEN", "(not recorded)"),
    )
    assert ("OMP_NUM_THREADS", "1") in (run.manifest.environment or ())
    assert "MY_OWN" not in os.environ
    assert run.manifest.compile_s is None  # nothing was compiled


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("TORCH_COMPILE_DEBUG", "a dump sets it itself"),
        ("TORCHINDUCTOR_CACHE_DIR", "a dump sets it itself"),
        ("PYTHONPATH", "Python would not find"),
        ("", "write --env NAME=VALUE"),
    ],
)
def test_what_a_dump_needs_itself_is_refused(name: str, says: str) -> None:
    with pytest.raises(ip.ProbeError, match=says):
        check_variables({name: "0"})


def test_what_is_no_pair_is_refused_before_anything_runs(
    probe: Callable[..., object], tmp_path: Path
) -> None:
    script = tmp_path / "never.py"
    script.write_text("raise SystemExit(7)\n")
    ran = probe("dump", script, "--env", "OMP_NUM_THREADS")
    assert getattr(ran, "status", None) == 2
    assert "invalid variable --env OMP_NUM_THREADS: write NAME=VALUE" in getattr(ran, "err", "")


def test_what_a_script_prints_goes_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "prints.py"
    script.write_text("import sys\nprint('one')\nprint('two', file=sys.stderr)\n")
    ip.dump(script, out=tmp_path, output=tmp_path / "said.txt")
    assert sorted((tmp_path / "said.txt").read_text().split()) == ["one", "two"]
    shown = capfd.readouterr()
    assert "one" not in shown.out + shown.err
