from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.capture import dump, find_script
from inductor_probe.capture.scripts import is_scenario, script_arguments
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    script = tmp_path / "plain.py"
    script.write_text("import torch\n")
    return script


def test_path_is_taken_as_given(plain: Path, tmp_path: Path) -> None:
    assert find_script(str(plain), Path("/")) == plain
    assert find_script("plain.py", tmp_path) == Path("plain.py")


def test_py_may_be_left_out(plain: Path, tmp_path: Path) -> None:
    assert find_script("plain", tmp_path) == Path("plain.py")


def test_bare_name_is_looked_up_in_scenarios(tmp_path: Path) -> None:
    found = find_script("check_hflip", tmp_path)
    assert found.name == "check_hflip.py"
    assert is_scenario(found)


def test_here_comes_before_scenarios(tmp_path: Path) -> None:
    (tmp_path / "check_hflip.py").touch()
    assert find_script("check_hflip", tmp_path) == Path("check_hflip.py")


def test_missing_script_offers_near_names(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        find_script("check_hflp.py", tmp_path)
    assert caught.value.message == "there is no script check_hflp.py"
    assert "check_hflip.py" in str(caught.value.hint)


def test_folder_is_not_looked_up_in_scenarios(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        find_script("elsewhere/check_hflip.py", tmp_path)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from inductor_probe.scenario import Scenario", True),
        ("from inductor_probe import scenario", True),
        ("import inductor_probe.scenario as s", True),
        ("import inductor_probe", False),
        ("# from inductor_probe.scenario import Scenario", False),
        ("this is not python", False),
    ],
)
def test_scenario_is_told_by_its_import(tmp_path: Path, source: str, expected: bool) -> None:
    script = tmp_path / "script.py"
    script.write_text(source)
    assert is_scenario(script) is expected


def test_cases_and_knobs_come_before_the_script_s_own_arguments(tmp_path: Path) -> None:
    script = find_script("check_hflip", tmp_path)
    words = script_arguments(script, ["--threads", "1"], ["a", "b"], {"device": "cpu"})
    assert words == ["--case", "a", "--case", "b", "--set", "device=cpu", "--threads", "1"]


def test_case_on_a_script_without_cases_is_refused_before_it_runs(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ProbeError, match=r"--case is for scenarios, and .*plain.py does not import"
    ) as caught:
        dump(plain, cases=["sliced"], out=tmp_path / "out")
    assert caught.value.hint == "pass the script's own arguments after --"
    with pytest.raises(ProbeError, match="--set is for scenarios"):
        dump(plain, knobs={"a": "1"}, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("cases", "knobs", "says"),
    [((), {"nope": "1"}, "has no knob 'nope'"), (("slised",), {}, "no case 'slised'")],
)
@pytest.mark.usefixtures("warm_here")
def test_what_a_scenario_refuses_leaves_no_run(
    cases: tuple[str, ...], knobs: dict[str, str], says: str, tmp_path: Path
) -> None:
    """It left one with nothing in it, which was then the latest."""
    script = Path.cwd() / find_script("check_hflip", Path.cwd())
    with pytest.raises(ProbeError, match=says):
        dump(script, cases=cases, knobs=knobs, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_unreadable_script_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="cannot read"):
        script_arguments(tmp_path / "gone.py", [], ["a"], {})


def test_folder_that_cannot_be_made_is_said(plain: Path) -> None:
    with pytest.raises(ProbeError, match=r"cannot make .*: Not a directory"):
        dump(plain, out=plain / "below_a_file")
