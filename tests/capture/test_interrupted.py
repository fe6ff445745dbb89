"""`probe dump` and signals: what ends with it, what is written down, what is cleaned. Processes are real.

What inductor would compile is made by the script itself, with the events that the recorder writes for it.
tests/cli/test_dump.py kills a dump that inductor has compiled for.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.model.manifest import PARENT_GONE, Manifest
from inductor_probe.store.made_here import made_here
from inductor_probe.store.manifest import read_manifest
from tests.conftest import Ran

WAIT_S = 60
GRAPH = "model__0_inference_0.0"
READY = "import pathlib, time\npathlib.Path('ready').touch()\ntime.sleep(600)\n"

# Stands for torch: the events of a graph that was compiled, and of one whose compile goes on.
COMPILES = f"""
import os, pathlib
from inductor_probe.capture.events import EVENTS_NAME
run = pathlib.Path(f"torch_compile_debug/run_2026_01_31_12_00_00_000000-pid_{{os.getpid()}}").absolute()
(staging,) = (pathlib.Path(os.environ["TMPDIR"]).glob("inductor_probe_dump_*/staging"))
(staging / "probe_logs" / "fusion.log").write_text("a line\\n")
with (staging / EVENTS_NAME).open("a") as events:
    for number, name in enumerate(("{GRAPH}", "model__1_inference_1.1")):
        graph = run / "torchinductor" / name
        graph.mkdir(parents=True)
        (graph / "output_code.py").write_text("async_compile = None\\n")
        line = '{{"event": "graph", "path": "%s", "compile_id": "%d/0", "case": null}}' % (graph, number)
        print(line, file=events)
    print('{{"event": "finished", "path": "%s"}}' % graph.with_name("{GRAPH}"), file=events)
"""


class Dump:
    """A `probe` command in progress, in an empty folder and with an empty folder for temporary files."""

    def __init__(self, folder: Path, source: str, *arguments: str, **options: Any) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir(exist_ok=True)
        (folder / "script.py").write_text(source)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "inductor_probe", *(arguments or ("dump", "script.py"))],
            cwd=folder,
            env={**os.environ, "TMPDIR": str(self.temporary)},
            text=True,
            start_new_session=True,
            **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options),
        )

    def wait_for(self, name: str) -> str:
        """Wait for a file that the script writes; return its text."""
        until(lambda: (self.folder / name).exists() or self.process.poll() is not None)
        assert (self.folder / name).exists(), self.process.communicate()
        return (self.folder / name).read_text()

    def end(self) -> Ran:
        out, err = self.process.communicate(timeout=WAIT_S)
        return Ran(self.process.returncode, out, err)

    @property
    def supervisor(self) -> int:
        (pid,) = children(self.process.pid)
        return pid

    @property
    def run(self) -> Path:
        (run,) = self.folder.glob("torch_compile_debug/run_*")
        return run

    @property
    def manifest(self) -> Manifest:
        return read_manifest(self.run / "probe.json")

    @property
    def processes(self) -> list[int]:
        """Everything that runs in this dump's folder, which is nobody else's."""
        return [pid for pid in all_processes() if working_folder(pid) == str(self.folder)]

    def wait_for_the_end_of_all(self) -> None:
        until(lambda: not self.processes)
        until(lambda: not list(self.temporary.iterdir()))

    def clear_away(self) -> None:
        """End whatever a failed test has left, and nothing else."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        until(lambda: not self.processes)


def until(done: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_S
    while not done():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def all_processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def working_folder(pid: int) -> str | None:
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:  # it has ended
        return None


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def dump(tmp_path: Path) -> Iterator[Callable[..., Dump]]:
    started: list[Dump] = []

    def _dump(source: str, *arguments: str, **options: Any) -> Dump:
        started.append(Dump(tmp_path, source, *arguments, **options))
        return started[-1]

    yield _dump
    for one in started:
        one.clear_away()


Start = Callable[..., Dump]
LEAVES_PROCESSES = (
    "import subprocess, sys\n"
    "sleep = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
    "subprocess.Popen(sleep)\n"
    "subprocess.Popen(sleep, start_new_session=True)\n"
    # Its parent ends at once: nothing but the supervisor's adoption ties it to the dump.
    "subprocess.run(['sh', '-c', 'sleep 600 & sleep 0.1'])\n"
    + READY
)  # fmt: skip


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT, signal.SIGQUIT]
)
def test_script_and_all_that_it_started_end_with_probe_dump(dump: Start, number: signal.Signals) -> None:
    one = dump(LEAVES_PROCESSES)
    one.wait_for("ready")
    assert len(one.processes) == 6  # probe dump, supervisor, script, and three that the script started
    one.process.send_signal(number)
    ran = one.end()
    one.wait_for_the_end_of_all()
    known = number != signal.SIGKILL
    assert ran.status == (128 + number if known else -number)
    manifest = one.manifest
    assert (manifest.outcome, manifest.ended_by) == ("interrupted", number.name if known else PARENT_GONE)
    assert manifest.exit_status == -(number if known else signal.SIGTERM)
    assert "Traceback" not in ran.err or number == signal.SIGINT  # the script's own, of KeyboardInterrupt


CLEANS_UP = (
    "import pathlib, signal, sys\n"
    "def clean(number, frame):\n"
    "    with open('cleaned', 'a') as file: file.write(f'{number} ')\n"
    "    sys.exit(3)\n"
    "for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, clean)\n"
    + READY
)  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT])
def test_script_may_clean_up_before_it_is_killed(dump: Start, number: signal.Signals) -> None:
    one = dump(CLEANS_UP)
    one.wait_for("ready")
    one.process.send_signal(number)
    one.end()
    one.wait_for_the_end_of_all()
    received = signal.SIGTERM if number == signal.SIGKILL else number
    assert one.wait_for("cleaned") == f"{int(received)} "
    assert (one.manifest.outcome, one.manifest.exit_status) == ("interrupted", 3)


def test_script_that_ignores_sigterm_is_killed(dump: Start) -> None:
    one = dump("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY)
    one.wait_for("ready")
    one.process.terminate()
    assert one.end().status == 143
    one.wait_for_the_end_of_all()
    assert (one.manifest.exit_status, one.manifest.ended_by) == (-signal.SIGKILL, "SIGTERM")


COUNTS = (
    "import pathlib, signal, time\n"
    "def count(number, frame):\n"
    "    with open('counted', 'a') as file: file.write(f'{number} ')\n"
    "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, count)\n"
    "pathlib.Path('ready').touch()\n"
    "while not pathlib.Path('counted').exists(): time.sleep(0.01)\n"
    "time.sleep(1)\n"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whole_group", [True, False], ids=["group", "probe alone"])
def test_script_receives_a_signal_once(dump: Start, number: signal.Signals, *, whole_group: bool) -> None:
    one = dump(COUNTS)
    one.wait_for("ready")
    (os.killpg if whole_group else os.kill)(one.process.pid, number)
    assert one.end().status == 128 + number
    assert one.wait_for("counted") == f"{int(number)} "


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[tuple[Dump, int]]:
    """A dump that is the foreground process of a terminal, and the terminal's other side."""
    ours, theirs = pty.openpty()
    one = Dump(tmp_path, COUNTS, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=controlled_by_stdin)
    os.close(theirs)
    one.wait_for("ready")
    yield one, ours
    one.clear_away()


def controlled_by_stdin() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_ctrl_c_in_a_terminal_reaches_the_script_once(terminal: tuple[Dump, int]) -> None:
    one, ours = terminal
    os.write(ours, b"\x03")
    assert one.process.wait(WAIT_S) == 130
    assert one.wait_for("counted") == "2 "
    os.close(ours)


def test_a_terminal_that_goes_away_ends_the_dump(terminal: tuple[Dump, int]) -> None:
    one, ours = terminal
    os.close(ours)
    assert one.process.wait(WAIT_S) == 129
    one.wait_for_the_end_of_all()
    assert one.manifest.ended_by == "SIGHUP"


def test_nohup_outlives_the_terminal(dump: Start) -> None:
    one = dump(
        "import pathlib, time\npathlib.Path('ready').touch()\ntime.sleep(1)\n", preexec_fn=ignore_hangup
    )
    one.wait_for("ready")
    os.killpg(one.process.pid, signal.SIGHUP)
    one.end()
    assert (one.manifest.outcome, one.manifest.exit_status) == ("ok", 0)


def ignore_hangup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


@pytest.mark.parametrize(
    ("number", "outcome", "status"),
    [
        (signal.SIGTERM, "interrupted", 143),
        (signal.SIGKILL, "failed", 2),
        (signal.SIGSEGV, "failed", 2),
    ],
)
def test_script_that_a_signal_ends_is_said_to_be(
    dump: Start, number: signal.Signals, outcome: str, status: int
) -> None:
    one = dump(f"import os; os.kill(os.getpid(), {int(number)})\n")
    ran = one.end()
    assert ran.status == status
    manifest = one.manifest
    assert (manifest.outcome, manifest.exit_status, manifest.ended_by) == (outcome, -number, number.name)
    verb = "interrupted" if outcome == "interrupted" else "killed"
    assert f"error: script.py was {verb} by {number.name}; nothing had been dumped yet" in ran.err
    assert ("dmesg" in ran.err) == (number == signal.SIGKILL)


def test_a_script_that_dies_while_it_compiles_leaves_its_graphs_and_no_compiler(dump: Start) -> None:
    """The compiler that it had started goes, and so does what is in the folder for temporary files."""
    compiler = "import signal, subprocess; subprocess.Popen(['sleep', '600'], stdout=-3, stderr=-3)\n"
    one = dump(f"{COMPILES}{compiler}os.kill(os.getpid(), signal.SIGSEGV)\n")
    ran = one.end()
    one.wait_for_the_end_of_all()
    assert ran.status == 2
    assert "error: script.py was killed by SIGSEGV; what it had dumped is shown above" in ran.err
    assert [(graph.name, graph.finished) for graph in one.manifest.graphs] == [
        (GRAPH, True),
        ("model__1_inference_1.1", False),
    ]


WAITING_COMPILER = """#!/bin/sh
case "$*" in *header.hpp*) touch "$(dirname "$0")/ready"; sleep 600;; esac
exec g++ "$@"
"""


@pytest.mark.compiles
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL])
def test_nothing_of_a_compile_is_left_when_probe_dump_is_killed(dump: Start, number: signal.Signals) -> None:
    """Headers that torch had g++ preprocess were. Here g++ waits as soon as it is to do so."""
    one = dump(
        "import pathlib, torch\n"
        "compiler = pathlib.Path('g++').absolute()\n"
        f"compiler.write_text({WAITING_COMPILER!r})\n"
        "compiler.chmod(0o755)\n"
        "torch._inductor.config.cpp.cxx = (str(compiler),)\n"
        "torch.compile(lambda x: x.flip(-1) + 1)(torch.zeros(8, 8))\n",
        "dump", "script.py", "--set", "inductor.compile_threads=1",
    )  # fmt: skip
    one.wait_for("ready")
    one.process.send_signal(number)
    one.end()
    one.wait_for_the_end_of_all()
    assert one.manifest.outcome == "interrupted"


def test_an_interrupt_ends_a_dump_that_a_shell_put_into_the_background(dump: Start) -> None:
    """Shells start such commands with SIGINT ignored: `kill -INT` did nothing."""
    one = dump(READY, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    one.wait_for("ready")
    one.process.send_signal(signal.SIGINT)
    ran = one.end()
    one.wait_for_the_end_of_all()
    assert ran.status == 130
    assert "script.py was interrupted by SIGINT" in ran.err


CLEANS_TEMPORARY_FILES = """
import pathlib, subprocess, sys
compiler = "trap 'rm -f tmp/cc.s; exit 1' INT; touch tmp/cc.s ready; while :; do sleep 0.05; done"
subprocess.run(['sh', '-c', compiler])
"""


def test_an_interrupt_of_probe_dump_alone_reaches_the_compiler_of_the_script(dump: Start) -> None:
    """Python kills what it runs if that has not the signal, too: `kill -INT` left g++'s file in TMPDIR."""
    one = dump(CLEANS_TEMPORARY_FILES)
    one.wait_for("ready")
    one.process.send_signal(signal.SIGINT)
    assert one.end().status == 130
    one.wait_for_the_end_of_all()


ON_A_SMALL_DISK = """\
mkdir small && mount -t tmpfs -o size=64k tmpfs small || exit 77
cp script.py script_there.py; "$@"; echo "status $?"; find small -type f -o -type d -name 'run_*'
"""


def test_a_full_disk_leaves_no_part_of_a_log_and_no_run_without_a_manifest(tmp_path: Path) -> None:
    """On a real file system, in a mount namespace of its own, that ends with the command."""
    fill = "import os, pathlib\n(staging,) = pathlib.Path(os.environ['TMPDIR']).glob('*/staging')\n"
    fill += "(staging / 'probe_logs' / 'graph_breaks.log').write_text('x' * 200_000)\n"
    fill += "pathlib.Path('small/fill').write_text('x' * 40_000)\n"
    (tmp_path / "script.py").write_text(fill)
    (tmp_path / "tmp").mkdir()
    command = [
        "unshare",
        "--mount",
        *(["--map-root-user"] if os.getuid() else []),
        "sh",
        "-c",
        ON_A_SMALL_DISK,
    ]
    probe = ["sh", sys.executable, "-m", "inductor_probe", "dump", "script.py", "--out", "small"]
    try:
        ran = subprocess.run(
            [*command, *probe], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("no unshare (util-linux), which mounts a small disk")
    if ran.returncode in (1, 77) and not ran.stdout:
        pytest.skip(f"this system mounts no small disk: {ran.stderr}")
    assert "status 2" in ran.stdout
    assert "No space left on device" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ".tmp" not in ran.stdout
    runs = [line for line in ran.stdout.splitlines() if "/run_" in line]
    assert not runs or any(line.endswith("probe.json") for line in runs)


def test_processes_left_on_purpose_go_on_when_the_script_ends_by_itself(dump: Start) -> None:
    sleep = "import subprocess; subprocess.Popen(['sleep', '600'], stdout=-3, stderr=-3)\n"
    one = dump(sleep)
    one.end()
    (left,) = one.processes
    os.kill(left, signal.SIGKILL)


def test_manifest_and_record_are_there_while_the_script_runs(
    dump: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one = dump(COMPILES + READY)
    one.wait_for("ready")
    until((one.run / "probe.json").exists)
    until(lambda: one.manifest.graphs[0].finished and len(one.manifest.graphs) == 2)
    manifest = one.manifest
    assert (manifest.outcome, manifest.exit_status, manifest.ended_by) == ("interrupted", None, None)
    assert [(graph.name, graph.finished) for graph in manifest.graphs] == [
        (GRAPH, True),
        ("model__1_inference_1.1", False),
    ]
    assert made_here(one.run / "torchinductor" / GRAPH, one.run).same
    assert not made_here(one.run / "torchinductor" / "model__1_inference_1.1", one.run).same
    (facts,) = json.loads(probe_in(one, "runs", "--json").out)["rows"]
    assert (facts["state"], facts["remark"]) == ("running", None)
    ran = probe_in(one, "runs", "--rm", one.run.name, "--yes")
    assert "which makes it, is still there" in ran.out + ran.err
    checked = json.loads(probe_in(one, "check", "--json").out)
    assert len(checked["check"]["graphs"]) == 1  # one compile goes on
    assert "which makes it, is still there" in checked["problems"][0]["message"]
    shown, other = probe_in(one, "show").out, probe_in(one, "whatif", one.run.name, "--scalar", "op0")
    assert "which makes it, is still there: later compiles, if any, are missing yet" in shown
    assert not [word for word in ("interrupted", "did not finish", "how was not recorded") if word in shown]
    assert f"which makes {one.run}, is still there" in other.err


def probe_in(one: Dump, *arguments: str) -> Ran:
    ended = subprocess.run(
        [sys.executable, "-m", "inductor_probe", *arguments],
        cwd=one.folder, env={**os.environ, "TMPDIR": str(one.temporary)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Ran(ended.returncode, ended.stdout, ended.stderr)


def test_run_of_a_killed_probe_dump_is_whole_but_for_what_was_not_compiled(
    dump: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one = dump(COMPILES + READY)
    one.wait_for("ready")
    one.process.kill()
    one.wait_for_the_end_of_all()
    assert one.manifest.ended_by == PARENT_GONE
    assert (one.run / "probe_logs" / "fusion.log").read_text() == "a line\n"
    assert made_here(one.run / "torchinductor" / GRAPH, one.run).same
    sentence = f"the script was interrupted by {PARENT_GONE}"
    assert sentence in probe_in(one, "runs").out
    assert sentence in probe_in(one, "check").out


def kill_all(one: Dump) -> None:
    """Kill `probe dump` and its supervisor, so that nobody is left to write anything down."""
    supervisor = one.supervisor
    one.process.send_signal(signal.SIGSTOP)
    os.kill(supervisor, signal.SIGKILL)
    one.process.kill()
    one.process.wait()
    until(lambda: not one.processes)


def test_script_ends_with_its_supervisor_and_the_next_dump_cleans(
    dump: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one = dump(COMPILES + READY)
    one.wait_for("ready")
    until(lambda: (one.run / "probe.json").exists() and one.manifest.graphs[0].finished)
    kill_all(one)
    (left,) = one.temporary.iterdir()
    killed = one.run
    (killed / ".probe.json.abcdefgh.tmp").write_text("{")
    assert not (killed / "probe_logs").exists()
    assert (one.manifest.outcome, one.manifest.exit_status, one.manifest.ended_by) == (
        "interrupted",
        None,
        None,
    )
    assert "ended, and how was not recorded" in probe_in(one, "runs").out
    assert "ended, and how was not recorded" in probe_in(one, "check").out
    assert made_here(killed / "torchinductor" / GRAPH, killed).same

    (one.folder / "script.py").write_text("print('next')\n")
    assert probe_in(one, "dump", "script.py").out == "next\n"
    assert not left.exists()
    assert (killed / "probe_logs" / "fusion.log").read_text() == "a line\n"
    assert sorted(path.name for path in killed.iterdir()) == ["probe.json", "probe_logs", "torchinductor"]
    assert made_here(killed / "torchinductor" / GRAPH, killed).same


def test_killed_supervisor_is_told_of_in_a_sentence(dump: Start) -> None:
    one = dump(READY)
    one.wait_for("ready")
    os.kill(one.supervisor, signal.SIGKILL)
    ran = one.end()
    assert ran.status == 2
    assert "error: the supervisor of script.py ended with status -9" in ran.err
    until(lambda: not one.processes)


def test_two_dumps_at_once_do_not_clean_each_other(dump: Start) -> None:
    one = dump(READY)
    one.wait_for("ready")
    (folder,) = one.temporary.iterdir()
    (one.folder / "other.py").write_text("print('other')\n")
    assert probe_in(one, "dump", "other.py").out == "other\n"
    assert {path.name for path in folder.iterdir()} - {"inductor"} == {"lock", "staging"}
    one.process.terminate()
    assert one.end().status == 143


def test_only_what_is_provably_a_dead_dump_s_is_cleaned(dump: Start) -> None:
    one = dump("print('over')\n")
    folders = {name: one.temporary / f"inductor_probe_dump_{name}" for name in ("unlocked", "open", "link")}
    one.end()
    folders["unlocked"].mkdir(0o700)  # being made: it has no lock yet
    folders["open"].mkdir(0o755)  # not as a dump makes it
    (folders["open"] / "lock").touch()
    elsewhere = one.folder / "elsewhere"
    elsewhere.mkdir(0o700)
    (elsewhere / "lock").touch()
    folders["link"].symlink_to(elsewhere)
    probe_in(one, "dump", "script.py")
    assert sorted(one.temporary.iterdir()) == sorted(folders.values())
    assert (elsewhere / "lock").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_probe_debug_ends_as_probe_dump_does(dump: Start, number: signal.Signals) -> None:
    source = "import sys; sys.settrace(None)\n" + LEAVES_PROCESSES
    one = dump(source, "debug", "script.py", "--pdb", "--break", "fusion")
    one.wait_for("ready")
    one.process.send_signal(number)
    ran = one.end()
    one.wait_for_the_end_of_all()
    assert ran.status == (143 if number == signal.SIGTERM else -number)
    assert one.manifest.ended_by == ("SIGTERM" if number == signal.SIGTERM else PARENT_GONE)


def test_sigterm_ends_a_program_that_calls_dump_after_the_run_is_written_down(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(READY)
    code = "import inductor_probe as ip\nip.dump('script.py')\nprint('went on')\n"
    program = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    until((tmp_path / "ready").exists)
    program.terminate()
    assert program.communicate(timeout=WAIT_S)[0] == ""
    assert program.returncode == -signal.SIGTERM
    (manifest,) = tmp_path.glob("torch_compile_debug/run_*/probe.json")
    assert read_manifest(manifest).ended_by == "SIGTERM"
