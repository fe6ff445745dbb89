"""`probe bisect` over settings, decisions and builds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.errors import ProbeError
from inductor_probe.options.verb import Progress
from inductor_probe.reduction.builds import builds_of
from tests.schemas import schema_faults

pytestmark = [pytest.mark.compiles, pytest.mark.filterwarnings("ignore"), pytest.mark.takes(60)]
WAVES = """
import torch

def function(x):
    return torch.sin(x) * 2

torch.compile(function)(torch.randn(32, 64))
"""
VECTORISED = ["expect: --vectorised"]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "waves.py").write_text(WAVES)
    return tmp_path / "waves.py"


def test_of_several_settings_that_is_named_which_decides(script: Path) -> None:
    Path("settings").write_text("inductor.cpp.simdlen=1  # no vectors\ninductor.max_fusion_size=8\n")
    answer = ip.bisect(script, keep=VECTORISED, settings=[Path("settings")], env={"OTHER": "1"})
    record = answer.record
    assert (record.changes, record.differing) == (("inductor.cpp.simdlen=1",), 3)
    assert [side.holds for side in record.sides] == [True, False]
    assert record.pair == tuple(side.name for side in record.sides)
    assert "goes with inductor.cpp.simdlen=1" in repr(answer)
    assert "no-vector-isa" in repr(answer)  # the cause on the other side
    assert schema_faults("bisect", answer.json) == []


def test_of_two_runs_the_decision_is_named_that_is_turned(script: Path) -> None:
    a, b = ip.dump(script), ip.dump(script, scalar=["op0"])
    record = ip.bisect(runs=(a, b), keep=VECTORISED).record
    assert record.kind == "decisions"
    assert record.changes == ("--scalar op0",)


def test_builds_that_agree_are_both_said(script: Path) -> None:
    answer = ip.bisect(script, keep=VECTORISED, pythons=[Path(sys.executable)] * 2)
    assert answer.record.pair == ()
    assert [side.holds for side in answer.record.sides] == [True, True]
    assert "both show it" in repr(answer)
    assert answer.record.asked == 2


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({}, "nothing differs between the two configurations", "--settings FILE"),
        ({"pythons": [Path(sys.executable)]}, "one build is named", "--python B"),
        ({"pythons": [Path("nowhere"), Path("nowhere")]}, "nowhere cannot be started", "its path"),
        ({"settings": [Path("absent")]}, "absent cannot be read", None),
        ({"settings": [Path("waves.py")]}, "waves.py:2: invalid line 'import torch'", "NAME=VALUE"),
        ({"keep": ["rong"]}, "nothing is meant by --keep 'rong'", "wrong"),
        ({"keep": []}, "nothing is looked for", "--keep wrong"),
    ],
)
def test_what_cannot_be_looked_for_is_refused(
    script: Path, options: dict[str, object], message: str, hint: str | None
) -> None:
    with pytest.raises(ip.ProbeError) as caught:
        ip.bisect(script, **{"keep": VECTORISED, **options})
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")


@pytest.mark.parametrize("release", ["../2.11", "/", "2", "latest"])
def test_a_release_that_is_none_names_no_folder_that_is_removed(release: str) -> None:
    with pytest.raises(ProbeError, match="invalid release of torch"):
        builds_of((), (release, "2.11"), Progress())
