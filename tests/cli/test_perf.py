"""`probe perf` and `probe results` as a user meets them: a table, its files, an interruption, mistakes."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import Probe

pytestmark = pytest.mark.usefixtures("warm")
FUNCTION = "import torch\n\ndef fn(x, k=1):\n    return x.flip(-1).float() + k\n"
SCENARIO = """\
import time, torch
from inductor_probe.scenario import Check, Scenario, combined

def double(x):
    return x * 2

def build(case):
    time.sleep(case["wait"])
    return Check(double, (torch.rand(case["rows"], 8),))

waits = combined({"fast": {"wait": 0.0}, "slow": {"wait": 60.0}}, {"8": {"rows": 8}})
scenario = Scenario(build, {"rows": 8, "wait": 0.0}, {"first": {}, **waits})
"""
BRIEF = ("--budget", "60ms", "--processes", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("perf")
    (folder / "my.py").write_text(FUNCTION)
    (folder / "waits.py").write_text(SCENARIO)
    return folder


@pytest.mark.compiles
def test_a_plain_function_is_timed_shown_and_kept(probe: Probe, folder: Path) -> None:
    ran = probe(
        *("perf", "my.py:fn", "--arg", "x=u8[1,3,8,9]:channels_last", "--arg", "k=2", "--format", "csv"),
        *("--columns", "eager,compiled", *BRIEF),
        cwd=folder,
    )
    assert ran.status == 0, ran.err
    eager, compiled = csv.DictReader(io.StringIO(ran.out))
    assert (eager["column"], compiled["column"], compiled["baseline"]) == ("eager", "compiled", "eager")
    assert (eager["x"], eager["k"], eager["threads"]) == ("u8[1,3,8,9]:channels_last", "2", "1")
    assert float(compiled["ratio"]) == pytest.approx(float(compiled["seconds"]) / float(eager["seconds"]))
    assert "samples: .probe/results/" in ran.err

    listed = json.loads(probe("results", "--json", cwd=folder).out)
    (entry,) = listed["rows"]
    assert (entry["scenario"], entry["rows"], entry["finished"]) == ("my.py:fn", 1, True)
    narrow = probe("results", "latest", cwd=folder, COLUMNS="80")
    assert all(len(line) <= 80 for line in narrow.out.splitlines())
    for word in ("eager", "compiled", "times in us", "1 thread"):
        assert word in narrow.out
    again = json.loads(probe("results", entry["name"], "--json", cwd=folder).out)
    assert again["verb"] == "perf"
    assert again["rows"][0]["columns"][1]["facts"]["codes"][0]["sha256"]
    assert "| case |" in probe("results", "latest", "--format", "markdown", cwd=folder).out
    kept = probe("results", "--prune", "--scenario", "my.py", "--dry-run", cwd=folder)
    assert entry["name"] in kept.out
    assert probe("results", "--prune", "--scenario", "my.py", cwd=folder).status == 0
    assert "nothing was measured here" in probe("results", cwd=folder).err


@pytest.mark.compiles
def test_a_killed_run_loses_the_row_under_way_and_is_resumed(probe: Probe, folder: Path) -> None:
    words = ["perf", "waits.py", "--case", "first", "--case", "*/8", "--columns", "eager", *BRIEF]
    process = subprocess.Popen(
        [sys.executable, "-m", "inductor_probe", *words], cwd=folder, stderr=subprocess.DEVNULL
    )
    results = folder / ".probe" / "results"
    deadline = time.monotonic() + 300
    while not any(len(json.loads(path.read_text() or "{}").get("run", {}).get("rows", ())) == 2
                  for path in results.glob("*waits.json")):  # fmt: skip
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (path,) = results.glob("*waits.json")
    before = json.loads(path.read_text())["run"]["rows"]
    assert "2 of 3 rows" in probe("results", cwd=folder).out
    assert "not finished: 1 row of 3 left" in probe("results", "latest", cwd=folder).out

    other = probe(*words, "--resume", "--margin", "5%", cwd=folder)
    assert other.status == 2
    assert "was measured with other margin" in other.err
    (folder / "waits.py").write_text(SCENARIO.replace("60.0", "0.0"))
    resumed = probe(*words, "--resume", cwd=folder)
    # Its knob `wait` is another one now: that row is new, and those before are not measured again.
    assert resumed.status == 0, resumed.err
    (path,) = results.glob("*waits.json")
    run = json.loads(path.read_text())["run"]
    assert run["rows"][:2] == before
    assert (len(run["rows"]), run["finished"]) == (3, True)


FILLING = """\
from pathlib import Path
import torch
from inductor_probe.scenario import Check, Scenario

def double(x):
    return x * 2

def build(case):
    fill = Path(case["fill"])
    if case["fill"] and not fill.exists():  # as whatever else writes to a disk does
        with fill.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
    return Check(double, (torch.rand(8, 8),))

scenario = Scenario(build, {"fill": ""}, {"first": {}, "filling": {"fill": "FOLDER/fill"}, "last": {}})
"""
ON_A_SMALL_DISK = """\
mkdir small && mount -t tmpfs -o size=256k tmpfs small || exit 77
"$@"; echo "status $?"
ls -A small
cp small/*.json before.json
: > small/fill
"$@" --resume; echo "status $?"
cp small/*.json after.json
"""


@pytest.mark.compiles
def test_a_full_disk_is_a_sentence_and_nothing_is_lost(tmp_path: Path) -> None:
    """On a real file system of 256 kB, in a mount namespace of its own, that ends with the command."""
    small = tmp_path / "small"
    (tmp_path / "filling.py").write_text(FILLING.replace("FOLDER", str(small)))
    probe = [sys.executable, "-m", "inductor_probe", "perf", "filling.py", "--matrix", "full", "--columns"]
    probe += ["eager", *BRIEF, "--format", "csv", "--results", "small"]
    unshare = ["unshare", "--mount", *(["--map-root-user"] if os.getuid() else [])]
    command = [*unshare, "sh", "-c", ON_A_SMALL_DISK, "sh", *probe]
    try:
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no unshare (util-linux), which mounts a small disk")
    if ran.returncode in (1, 77) and not ran.stdout:
        pytest.skip(f"this system mounts no small disk: {ran.stderr}")
    full, resumed, _ = ran.stdout.split("status ")
    assert resumed.startswith("2\n"), ran.stderr
    assert [row["case"] for row in csv.DictReader(io.StringIO(full))] == ["first", "filling"]
    assert "cannot write small/" in ran.stderr
    assert "No space left on device" in ran.stderr
    assert "the table above has all that was measured" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ".tmp" not in resumed
    before, after = (
        json.loads((tmp_path / name).read_text())["run"] for name in ("before.json", "after.json")
    )
    assert [row["key"]["case"] for row in before["rows"]] == ["first"]
    assert [row["key"]["case"] for row in after["rows"]] == ["first", "filling", "last"]
    assert after["rows"][0] == before["rows"][0]
    assert (before["finished"], after["finished"]) == (False, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope.py"], "there is no script nope.py"),
        (["my.py", "--arg", "x=f32[1]"], "--arg is for a plain function"),
        (["my.py:fn", "--arg", "x=f32["], "neither a tensor nor a Python value"),
        (["my.py:fn", "--columns", "eager,,"], "invalid list"),
        (["my.py:fn", "--python", "/nowhere/python"], "is not a Python interpreter"),
        (["my.py:fn", "--threads", "0"], "invalid list"),
        (["my.py:fn", "--budget", "x"], "invalid duration"),
    ],
)
def test_mistakes_are_sentences(probe: Probe, folder: Path, arguments: list[str], words: str) -> None:
    ran = probe("perf", *arguments, cwd=folder)
    assert ran.status == 2
    assert words in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], "there are no results nope"),
        (["latest"], "it has 0 results"),
        (["--prune"], "--prune needs to know which"),
        (["--older-than", "x"], "invalid age"),
        (["--format", "csv"], "--format csv is for a table"),
        (["latest", "--prune"], "is one result"),
    ],
)
def test_mistakes_of_results_are_sentences(
    probe: Probe, tmp_path: Path, arguments: list[str], words: str
) -> None:
    ran = probe("results", *arguments, cwd=tmp_path)
    assert ran.status == 2
    assert words in ran.err
