"""A stranger's dump and results that name what is to run: every verb leaves it alone, or refuses it.

Each verb is given what names the most to run. Whatever runs leaves a marker.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe import cli
from inductor_probe.api.meaning import Meaning, meaning_of
from inductor_probe.api.trust import script_to_run
from inductor_probe.machine.facts import installed
from inductor_probe.model.manifest import Manifest
from inductor_probe.store.made_here import remember_recipe
from inductor_probe.store.manifest import FORMAT
from tests.dumps import run_in

SETTING = ("--set", "inductor.cpp.simdlen=256")
CPU_KERNEL = "cpp_fused_flip_0"
WORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "dump": (("RUN/evil.py",), ("RUN/deep/er/evil.py",), ("RUN/torchinductor/GRAPH/output_code.py",)),
    "debug": (("RUN/evil.py", "--pdb"),),
    "perf": (("RUN/evil.py",), ("RUN/evil.py:f",)),
    "whatif": (
        ("RUN", *SETTING),
        ("train", *SETTING, "--case", "x"),
        ("train@pid1", *SETTING),
        ("RUN", "--try-all"),
        ("RUN/evil.py", *SETTING),
        ("RUN/probe_logs/evil.log", *SETTING),
        ("--runs", "RUN", "RUN"),
    ),
    "profile": (("RUN",), ("RUN/evil.py",), ("RUN/torchinductor/GRAPH/output_code.py",)),
    "overview": (("RUN",), ("RUN", "--again"), ("RUN/evil.py",)),
    "compile-time": (("RUN",), ("RUN/evil.py",)),
    "memory": (("RUN",), ("RUN/evil.py",), ("RUN/torchinductor/GRAPH/output_code.py",)),
    "reduce": (("RUN", "--keep", "fails"), ("RUN/evil.py", "--keep", "fails")),
    "bisect": (("RUN", "--keep", "fails", *SETTING), ("--runs", "RUN", "RUN", "--keep", "fails")),
    "accuracy": (("RUN",), ("RUN/evil.py",), ("train", "--case", "x")),
    "expect": (
        ("RUN", "--kernels", "1"),
        ("RUN/evil.py", "--kernels", "1"),
        ("RUN/probe_logs/evil.log", "--kernels", "1"),
    ),
    "bench-kernel": (("RUN",),),
    "rewrite": (("RUN",), ("RUN", "loops:cpp_fused_flip_0 x1,x2")),
    "check-kernel": (("RUN",),),
    "sweep-configs": (("RUN",),),
    "asm": ((CPU_KERNEL, "RUN"),),
    "export-cpp": ((CPU_KERNEL, "RUN", "-o", "kernel.cpp"),),
    "why": (("RUN",), (CPU_KERNEL, "RUN", "--compiler")),
    "runs": ((), ("rm", "--dry-run", "RUN")),
    "check": (("RUN",),),
    "nodes": (("RUN",),),
    "kernels": (("RUN",),),
    "show": (("RUN",),),
    "report": (("RUN",), ("RUN", "RUN"), ("RUN", "--model-explorer")),
    "layouts": (("RUN",),),
    "fusion": (("RUN",),),
    "diff": (("RUN", "RUN"),),
    "tunings": (("RUN",),),
    "verdict": (("RUN",),),
    "compare": (("latest", "latest"),),
    "results": ((), ("latest",), ("--prune", "--unfinished"), ("--prune", "--scenario", "forged")),
    "explain": (),
    "check-op": (),  # nothing of a file is in what it runs
    "doctor": (),
}
"""What each verb is given. A new verb has to be classified here, and in docs/guides/safety.md."""
TABLE = Path(__file__).parents[2] / "docs" / "guides" / "safety.md"


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "MARKER"


@pytest.fixture
def run(tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose manifest names code in all that it can, beside a folder of results that does."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    here = tmp_path / "here"
    run = here / "torch_compile_debug" / "run_2026_01_31_12_00_00_000000-pid_1"
    shutil.copytree(run_in("torch-2.13.0-cpu/hflip_cl"), run)
    evil = f"open({str(marker)!r}, 'w')\n"
    for folder in (here, run, run / "deep" / "er", run / "probe_logs", run / "torchinductor"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "evil.py").write_text(evil)
    (run / "probe_logs" / "evil.log").write_text(evil)
    for code in run.rglob("output_code.py"):
        code.write_text(evil + code.read_text())
    manifest = {
        "format": FORMAT, "command": ["python", "evil.py"], "script": "evil.py", "scenario": "evil",
        "cases": [], "knobs": {}, "label": "train", "versions": {"torch": installed("torch") or ""},
        "machine": {}, "started": "2099-01-01T00:00:00+00:00", "duration_s": 1, "outcome": "ok",
        "exit_status": 0, "compiled_frames": 1, "graphs": [],
        "settings": {"inductor.cpp.cxx": str(here / "evil.py")},
        "variables": {"LD_PRELOAD": str(here / "evil.so"), "OMP_NUM_THREADS": "1"},
    }  # fmt: skip
    (run / "probe.json").write_text(json.dumps(manifest))
    monkeypatch.chdir(here)
    results = here / ".probe" / "results"
    results.mkdir(parents=True)
    for name in ("20260131-1-a.json", "index.cache", "index.sqlite"):
        forged = {"schema": 1, "run": {"name": "../../../evil", "scenario": "forged"}}
        (results / name).write_text(json.dumps(forged))
    return run


def files_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix == ".py"}


def test_all_verbs_are_classified() -> None:
    verbs = {verb for verbs in cli.VERBS.values() for verb in verbs}
    assert set(WORDS) == verbs
    rows = [line.split("|")[1] for line in TABLE.read_text().splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`([\w-]+)`", " ".join(rows))) == sorted(verbs)


@pytest.mark.parametrize("verb", WORDS)
def test_nothing_that_a_file_names_runs(
    run: Path, marker: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = next(run.glob("torchinductor/*/output_code.py")).parent.name
    before = files_in(run)
    for words in WORDS[verb]:
        given = [word.replace("RUN", str(run)).replace("GRAPH", graph) for word in words]
        assert cli.run([verb, *given]) in (0, 1, 2)
        said = capsys.readouterr()
        assert not marker.exists(), words
        assert "internal error" not in said.err, said.err
        assert "dumping" not in said.err, said.err
    after = files_in(run)
    assert {path for path in before if after.get(path) != before[path]} == set()


def test_what_a_run_would_be_made_again_with_is_shown(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`probe whatif RUN` ran the script that lay beside it, with its LD_PRELOAD and its compiler."""
    assert cli.run(["whatif", str(run), *SETTING]) == 2
    error = capsys.readouterr().err
    assert f"nothing shows that {run} was made on this machine" in error
    assert "\n  script     evil.py\n" in error
    assert f"\n  variables  LD_PRELOAD={run.parents[1] / 'evil.so'} OMP_NUM_THREADS=1\n" in error
    assert f"\n  settings   inductor.cpp.cxx={run.parents[1] / 'evil.py'}\n" in error
    for ask in (ip.open_run(run).graphs[0].try_all, lambda: ip.open_run(run).graphs[0].whatif(scalar="op0")):
        with pytest.raises(ip.ProbeError, match="nothing shows that"):
            ask()


def test_an_archive_of_several_dumps_or_of_none_is_no_script(run: Path, tmp_path: Path) -> None:
    """`probe expect` and `probe profile` ran the archive itself as one: it named no single dump."""
    tree = run.parent
    shutil.copytree(run, tree / run.name.replace("pid_1", "pid_2"))
    (tmp_path / "nothing").mkdir()
    for folder in (tree, tmp_path / "nothing"):
        archive = shutil.make_archive(str(tmp_path / folder.name), "tar", folder)
        assert meaning_of(archive, tmp_path) == Meaning(target=archive)


def test_knobs_and_the_last_of_many_settings_are_shown(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A knob is taken for a setting where a scenario has none, and 20 settings hid the 21st."""
    manifest = json.loads((run / "probe.json").read_text())
    many = {f"inductor.s{number}": "1" for number in range(30)}
    manifest.update(
        knobs={"inductor.cpp.cxx": "/x/evil"}, settings={**many, "inductor.cpp.march": "/x/other"}
    )
    manifest["cases"], manifest["command"] = ["some case"], ["python", "evil.py", *"abcd", "--of-script"]
    (run / "probe.json").write_text(json.dumps(manifest))
    assert cli.run(["whatif", str(run), *SETTING]) == 2
    error = capsys.readouterr().err
    assert "  cases      'some case'\n  arguments  --of-script\n" in error
    assert "\n  settings   inductor.cpp.cxx=/x/evil inductor.s0=1" in error
    assert "inductor.cpp.march=/x/other\n" in error


def manifest_of(run: Path) -> Manifest:
    manifest = ip.open_run(run).manifest
    assert manifest is not None
    return manifest


def may_run(run: Path, *, trust: bool = False) -> Path | str:
    opened = ip.open_run(run)
    try:
        return script_to_run(opened, manifest_of(run), trust=trust)
    except ip.ProbeError as error:
        return error.message.partition(". It would")[0]


def test_a_run_is_made_again_where_and_as_it_was_made(run: Path, tmp_path: Path) -> None:
    here = run.parents[1]
    assert may_run(run, trust=True) == Path("evil.py")
    remember_recipe(run, manifest_of(run), here / "evil.py")
    assert may_run(run) == Path("evil.py")
    moved = Path(shutil.copytree(run, tmp_path / "moved"))
    assert may_run(moved) == f"{moved} was made on this machine, in another folder"
    text = (run / "probe.json").read_text()
    for old, new in (("OMP_NUM_THREADS", "LD_AUDIT"), ('"script": "evil.py"', '"script": "other.py"'),
                     ('"knobs": {}', '"knobs": {"a": "b"}'), ("inductor.cpp.cxx", "inductor.cpp.march"),
                     ('["python", "evil.py"]', '["python", "evil.py", "--more"]')):  # fmt: skip
        assert old in text
        (run / "probe.json").write_text(text.replace(old, new))
        assert (
            may_run(run)
            == f"{run} was made on this machine, and its probe.json no longer says how it was made"
        )
    (run / "probe.json").write_text(text)
    (run / "probe.json").chmod(0o666)
    assert may_run(run) == (
        f"{run} was made on this machine, but other users may write to {run / 'probe.json'} (mode 0666)"
    )


def test_the_script_of_a_run_is_the_one_that_it_was_made_from(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another folder it was the script of that name there."""
    remember_recipe(run, manifest_of(run), run.parents[1] / "evil.py")
    (tmp_path / "evil.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert may_run(run) == Path("here/evil.py")
    (run.parents[1] / "evil.py").unlink()
    assert "there is no such script here" in str(may_run(run))


def test_a_label_made_here_goes_before_a_script_and_a_strangers_does_not(run: Path) -> None:
    """A stranger's run with the label `train` was taken for `train`, and not the user's own `train.py`."""
    here = run.parents[1]
    assert meaning_of("train", here) == Meaning(target="train")
    (here / "train.py").write_text("")
    beside = f"train is the script train.py, and not the run {run.name}, which was not made here"
    assert meaning_of("train", here) == Meaning(Path("train.py"), beside=beside)
    remember_recipe(run, manifest_of(run), here / "train.py")
    beside = f"train is the run {run.name}, and not the script train.py"
    assert meaning_of("train", here) == Meaning(target="train", beside=beside)
    assert meaning_of("train", here, of_script=True).script == Path("train.py")
    assert meaning_of("train.py", here) == Meaning(Path("train.py"))


def test_what_lies_in_a_run_is_read_and_not_run(run: Path) -> None:
    """`probe expect` and `probe profile` ran it as a script, even a log."""
    (run.parents[1] / "link.py").symlink_to(run / "evil.py")
    for name in ("evil.py", "deep/er/evil.py", "probe_logs/evil.log", "torchinductor/evil.py"):
        assert meaning_of(str(run / name), run.parents[1]).script is None
    assert meaning_of("link.py", run.parents[1]).script is None
    assert meaning_of("evil.py", run.parents[1]).script == Path("evil.py")
