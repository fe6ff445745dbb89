"""`probe debug` as a user meets it: refusals, launch.json, pdb. tests/debugging talks to it as editors do."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inductor_probe.cli import run
from tests.conftest import Ran

Debug = Callable[..., Ran]
LINES = "torch._inductor.codegen.cpp:LoopLevel.lines"
ANSWER_S = 120


@pytest.fixture
def debug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Debug:
    """Run `probe debug` in this process, which keeps the parsed sources of torch, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def _debug(*arguments: str) -> Ran:
        status = run(["debug", *arguments])
        out, err = capfd.readouterr()
        return Ran(status, out, err)

    return _debug


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text("raise SystemExit('it ran')\n")
    return path


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another process's debugger would have: the child refuses, before it runs anything."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield int(other.getsockname()[1])


def test_a_port_in_use_is_said_and_leaves_no_run(debug: Debug, script: Path, taken: int) -> None:
    ran = debug("script.py", "--listen", str(taken))
    assert ran.status == 2
    assert f"error: cannot listen on 127.0.0.1:{taken}: Address already in use" in ran.err
    assert "--listen" in ran.err.splitlines()[-1]
    assert "it ran" not in ran.err
    assert not list(script.parent.glob("torch_compile_debug/*"))


def test_no_debugger_came(script: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "inductor_probe", "debug", "script.py", "--listen", "0"],
        cwd=script.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    said = ""
    while "waiting for a debugger" not in said:
        said = process.stderr.readline()
        assert said
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=ANSWER_S)
    assert process.returncode == 2
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("error: no debugger came to 127.0.0.1:")
    assert lines[0].endswith("; nothing was run")
    assert not list(script.parent.glob("torch_compile_debug/*"))


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["--break", "fushion"], "invalid place --break fushion", "did you mean fusion"),
        (
            ["--break", "torch._inductor.codegen.cpp:LoopLevel.lins"],
            "is not available on torch",
            "LoopLevel.lines",
        ),
        (["--break", f"{LINES} if slf"], "there is no slf at", "it has self"),
        (["--break-on", "nothing"], "it is not a buffer, node, pair of nodes or kernel", "for example buf3"),
        (["--listen", "here"], "invalid address --listen here: write [HOST:]PORT", "--listen 5678"),
        (["--pdb", "--listen", "5678"], "exclude each other", "--pdb stays"),
        (["--pdb"], "pdb has nowhere to stop", "--break fusion"),
        (["--case", "x"], "--case is for scenarios", "after --"),
    ],
)
def test_a_slip_is_a_sentence_and_nothing_runs(
    debug: Debug, script: Path, arguments: list[str], error: str, hint: str
) -> None:
    ran = debug("script.py", *arguments)
    assert ran.status == 2
    assert "it ran" not in ran.err
    assert "Traceback" not in ran.err
    *_, first, second = ran.err.splitlines()
    assert first.startswith("error: ")
    assert error in first
    assert second.startswith("hint: ")
    assert hint in second


def test_a_script_that_is_not_there_offers_near_ones(debug: Debug, script: Path) -> None:
    ran = debug("scrpt.py")
    assert "there is no script scrpt.py" in ran.err
    assert "did you mean script.py" in ran.err


def test_without_debugpy_it_says_how_to_get_it(
    debug: Debug, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "debugpy", None)  # Python's way of saying that it cannot be imported
    ran = debug("script.py")
    assert ran.status == 2
    assert "error: debugpy is not installed" in ran.err
    assert "pip install debugpy" in ran.err


def test_stops_and_ways_to_attach_are_told_first(debug: Debug, script: Path, taken: int) -> None:
    ran = debug("script.py", "--break", LINES, "--break-on", "buf3", "--listen", str(taken))
    assert f"will stop: {LINES}, cpp.py:" in ran.err
    assert "will stop: buf3 is realised (torch._inductor.graph:GraphLowering.register_buffer)" in ran.err
    assert "wrote .vscode/launch.json" in ran.err
    for editor in ("VS Code", "PyCharm", "nvim-dap"):
        assert any(line.startswith(editor) and str(taken) in line for line in ran.err.splitlines())


def test_a_gone_place_is_said_beside_those_that_are_there(debug: Debug, script: Path, taken: int) -> None:
    ran = debug("script.py", "--break", LINES, "--break", f"{LINES}_gone", "--listen", str(taken))
    assert "warning: torch._inductor.codegen.cpp:LoopLevel.lines_gone is not available on torch 2." in ran.err
    assert "will stop: " in ran.err


def test_another_machine_s_access_is_warned_of(debug: Debug, script: Path) -> None:
    ran = debug("script.py", "--listen", "192.0.2.1:5678")  # reserved for documents: nobody has it
    assert "warning: anyone who can reach 192.0.2.1:5678 can run code as you" in ran.err
    assert "error: cannot listen on 192.0.2.1:5678" in ran.err


THEIRS = '{\n    // mine\n    "configurations": [\n        {"name": "a"},\n    ]\n}\n'


@pytest.fixture
def launch(tmp_path: Path) -> Path:
    path = tmp_path / ".vscode" / "launch.json"
    path.parent.mkdir()
    path.write_text(THEIRS)
    return path


def test_an_existing_launch_file_is_left_alone_and_the_entry_is_printed(
    debug: Debug, script: Path, launch: Path, taken: int
) -> None:
    ran = debug("script.py", "--listen", str(taken))
    assert launch.read_text() == THEIRS
    assert "add this to the configurations in .vscode/launch.json:" in ran.err
    shown = ran.err[ran.err.index("{\n") : ran.err.index("\n}\n") + 2]
    assert json.loads(shown)["connect"] == {"host": "127.0.0.1", "port": taken}


def test_an_entry_that_is_there_is_not_printed_again(
    debug: Debug, script: Path, launch: Path, taken: int
) -> None:
    launch.write_text(THEIRS.replace('"a"', f'"probe debug 127.0.0.1:{taken}"'))
    assert "launch.json" not in debug("script.py", "--listen", str(taken)).err


def test_a_link_in_place_of_the_launch_file_is_not_written_through(
    debug: Debug, script: Path, launch: Path, taken: int
) -> None:
    launch.unlink()
    launch.symlink_to(script.parent / "elsewhere.json")
    assert "add this to the configurations" in debug("script.py", "--listen", str(taken)).err
    assert not (script.parent / "elsewhere.json").exists()


@pytest.mark.compiles
def test_pdb_stops_shows_steps_and_quits(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\ntorch.compile(lambda x: x / x.sum())(torch.ones(64))\nprint('not reached')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "inductor_probe", "debug", "script.py", "--pdb",
         "--break", "graph:GraphLowering.register_buffer if len(self.buffers) == 1", "--break-on", "op0,op1"],
        cwd=tmp_path, input="p len(self.buffers)\ncontinue\np node1.get_name()\nnext\nquit\n",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert re.search(r"graph\.py\(\d+\)register_buffer\(\)\n-> name = .*\n\(Pdb\) 1\n\(Pdb\) > ", ran.stdout)
    assert re.search(
        r"scheduler\.py\((\d+)\)can_fuse\(\)\n-> .*\n\(Pdb\) 'op0'\n\(Pdb\) > .*\)can_fuse\(\)", ran.stdout
    )
    assert "not reached" not in ran.stdout
    assert "stop: op0 and op1 are tried for fusion" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "was interrupted by SIGINT; what it had dumped is shown above" in ran.stderr
    assert ran.returncode == 130
    assert (
        len(list(tmp_path.glob("torch_compile_debug/run_*/torchinductor/model__0*/fx_graph_readable.py")))
        == 1
    )
