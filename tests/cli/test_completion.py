"""What the shell offers while a command is typed: the real `probe`, asked as bash asks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.cli import VERBS
from tests.builders import manifest_text
from tests.cli.test_options import PYTHON_NAMES
from tests.conftest import Probe
from tests.discovery.test_discover import FIRST, LATEST
from tests.dumps import run_in

PROBE = Path(sys.executable).with_name("probe")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with two runs, the older one labelled, and two scripts."""
    for name, dump, label in ((FIRST, "aa_separable_cl", "aa"), (LATEST, "hflip_cl", None)):
        shutil.copytree(run_in(f"torch-2.13.0-cpu/{dump}"), tmp_path / "torch_compile_debug" / name)
        (tmp_path / "torch_compile_debug" / name / "probe.json").write_text(manifest_text(label=label))
    (tmp_path / "mine.py").write_text("raise SystemExit('it was run')\n")
    (tmp_path / "notes.txt").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "deep.py").touch()
    return tmp_path


def asked(line: str) -> dict[str, str]:
    """Return the variables by which bash asks for what may stand at the end of a line."""
    return {
        "_PROBE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }


@pytest.fixture
def offered(here: Path, probe: Probe) -> Callable[[str], list[str]]:
    def _offered(line: str) -> list[str]:
        ran = probe(cwd=here, **asked(line))
        assert (ran.status, ran.err) == (0, "")
        return [word.partition(",")[2] for word in ran.out.split()]

    return _offered


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("probe dump m", {"mine.py"}),
        ("probe dump sub/", {"sub/deep.py"}),
        ("probe dump check_h", {"check_hflip.py"}),
        ("probe dump check_hflip.py --case ch", {"channels_first", "channels_last"}),
        ("probe dump check_hflip.py --set h", {"height="}),
        ("probe layouts buf", {"buf0"}),
        ("probe layouts arg", {"arg0_1"}),
        ("probe layouts buf0 a", {"aa"}),
        ("probe layouts buf0 aa", {"aa", "aa:0"}),
        ("probe layouts aa b", {"buf1"}),
        ("probe nodes --reads ar", {"arg0_1"}),
        ("probe nodes --kind po", {"pointwise"}),
        ("probe kernels --only vec", {"vectorised"}),
        ("probe runs a", {"aa"}),
        ("probe diff torch_compile_debug --code cpp", {"cpp_fused_flip_0"}),
        ("probe rewrite abl", {"ablation:"}),
        ("probe rewrite ablation:cpp", {"ablation:cpp_fused_flip_0"}),
        ("probe export-cpp cpp", {"cpp_fused_flip_0"}),
        ("probe sweep-configs a", {"aa"}),
        ("probe bench-kernel --inputs z", {"zeros"}),
        ("probe debug mine.py --break f", {"fusion"}),
        ("probe show cpp", {"cpp_fused_flip_0"}),
        ("probe show op", {"op0"}),
        ("probe nodes model__0", {"model__0_inference_0.0"}),
        ("probe nodes model__0 --kernel cpp", {"cpp_fused_flip_0"}),
        ("probe fusion op", {"op0"}),
        ("probe explain few-sh", {"few-shared-bytes"}),
        ("probe why --kind threads,la", {"threads,layout"}),
        ("probe diff a", {"aa"}),
        ("probe check torch_", {"torch_compile_debug/"}),
        ("probe bench-kernel mod", {"model__0_inference_0.0"}),
    ],
)
def test_completion_knows_what_may_stand_there(
    offered: Callable[[str], list[str]], line: str, some: set[str]
) -> None:
    """F12: file names were gone after `probe dump`, and there was nothing else."""
    words = offered(line)
    start = line.rpartition(" ")[2]
    assert all(word.startswith(start) for word in words)
    assert some <= set(words)


def test_the_installed_command_offers_what_its_fork_does(
    here: Path, offered: Callable[[str], list[str]]
) -> None:
    line = "probe layouts b"
    ended = subprocess.run(
        [PROBE], cwd=here, env={**os.environ, **asked(line)}, capture_output=True, text=True, check=True
    )
    assert ended.stderr == ""
    assert [word.partition(",")[2] for word in ended.stdout.split()] == offered(line) != []


def test_what_cannot_be_read_offers_nothing_and_says_nothing(
    here: Path, offered: Callable[[str], list[str]]
) -> None:
    shutil.rmtree(here / "torch_compile_debug")
    (here / "torch_compile_debug").touch()
    assert offered("probe layouts b") == offered("probe show op0 x") == []
    assert offered("probe dump nowhere.py --case c") == []


def test_dir_of_the_package_shows_the_verbs() -> None:
    code = "import inductor_probe as ip; print(*dir(ip))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    verbs = {PYTHON_NAMES.get(verb, verb.replace("-", "_")) for table in VERBS.values() for verb in table}
    assert verbs <= set(shown.split())
