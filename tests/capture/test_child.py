"""How a script runs under `dump`: as it would without. None of these reaches the C++ compiler."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.capture.isa_checks import checks_folder
from tests.capture.conftest import Dumped, driver_command, finished, plain_environment, write_script

Dump = Callable[..., Dumped]


def test_script_that_never_compiles_leaves_an_empty_run(dump_source: Dump) -> None:
    dumped = dump_source("print('nothing to do')")
    assert dumped.stdout == "nothing to do\n"
    assert (dumped.manifest.outcome, dumped.manifest.exit_status) == ("ok", 0)
    assert dumped.manifest.graphs == ()
    assert dumped.manifest.compiled_frames == 0
    assert sorted(path.name for path in dumped.run.iterdir()) == ["probe.json", "probe_logs"]
    assert dumped.run.parent.name == "torch_compile_debug"


def test_script_is_main_and_alone_on_its_path(dump_source: Dump) -> None:
    dumped = dump_source(
        "import sys, __main__\n"
        "class Thing: pass\n"
        "assert __name__ == '__main__' and __main__.Thing is Thing and __main__.__file__ == __file__\n"
        "assert Thing.__module__ == '__main__' and __spec__ is None\n"
        "assert not any('inductor_probe/capture' in entry for entry in sys.path)\n"
        "print(sys.argv[1:], sys.path[0] == __file__.rpartition('/')[0])\n",
        args=["--size", "3"],
    )
    assert dumped.stdout == "['--size', '3'] True\n", dumped.stderr


def test_torch_is_the_script_s_to_import(dump_source: Dump) -> None:
    dumped = dump_source(
        "import os, sys\n"
        "assert 'torch' not in sys.modules\n"
        "os.environ['TORCH_LOGS'] = 'graph_breaks'\n"
        "import torch\n"
        "@torch.compile(backend='eager')\n"
        "def f(x):\n"
        "    print('broken')\n"
        "    return x + 1\n"
        "f(torch.ones(2))\n"
    )
    assert dumped.manifest.outcome == "ok", dumped.stderr
    assert (dumped.manifest.compiled_frames, dumped.manifest.graphs) == (1, ())  # by a backend of eager mode
    # What the user asked to see is on the screen, and each line of it in the file as well.
    shown = [line for line in dumped.stderr.splitlines() if "[__graph_breaks]" in line]
    assert shown == dumped.log("graph_breaks").splitlines()
    assert any("Graph break in user code at" in line for line in shown)


def test_logs_survive_set_logs(dump_source: Dump) -> None:
    dumped = dump_source(
        "import logging, torch\n"
        "torch._logging.set_logs(graph_breaks=True)\n"
        "torch._logging.set_logs(recompiles=True)\n"  # takes graph_breaks back
        "@torch.compile(backend='eager', dynamic=False)\n"
        "def f(x):\n"
        "    print('broken')\n"
        "    return x + 1\n"
        "f(torch.ones(2)), f(torch.ones(3))\n"
    )
    assert "Graph break" in dumped.log("graph_breaks")
    assert "[__graph_breaks]" not in dumped.stderr
    shown = [line for line in dumped.stderr.splitlines() if "[__recompiles]" in line]
    assert shown
    assert shown == dumped.log("recompiles").splitlines()


def test_exit_status_is_the_script_s(dump_source: Dump) -> None:
    dumped = dump_source("import sys; sys.exit(7)")
    assert (dumped.manifest.outcome, dumped.manifest.exit_status) == ("failed", 7)
    assert dumped.stderr == ""


@pytest.mark.usefixtures("warm_here")
def test_killed_script_has_a_negative_status_and_keeps_its_events(dump_source: Dump) -> None:
    dumped = dump_source(
        "import os, signal, torch\n"
        "@torch.compile(backend='eager')\n"
        "def f(x):\n"
        "    print('broken')\n"
        "    return x\n"
        "f(torch.ones(2))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert (dumped.manifest.outcome, dumped.manifest.exit_status) == ("failed", -signal.SIGKILL)
    assert dumped.manifest.compiled_frames is None
    assert len(dumped.manifest.graph_breaks) == 1


def test_syntax_error_is_python_s(dump_source: Dump) -> None:
    dumped = dump_source("x = (\n")
    assert dumped.manifest.exit_status == 1
    assert dumped.stderr.startswith(f'  File "{dumped.run.parents[1] / "script.py"}", line 1\n')
    assert dumped.stderr.endswith("SyntaxError: '(' was never closed\n")


def test_script_s_exception_is_not_replaced_when_torch_is_broken(dump_source: Dump) -> None:
    dumped = dump_source("import sys, types\nsys.modules['torch'] = types.ModuleType('torch')\n1 / 0\n")
    assert dumped.manifest.exit_status == 1
    assert dumped.stderr.endswith("ZeroDivisionError: division by zero\n")
    assert dumped.stderr.count("Traceback") == 1
    (note,) = dumped.manifest.notes
    assert note.code == "end-incomplete"
    assert dict(note.values)["error"].startswith("AttributeError")


def test_stdout_can_be_sent_to_stderr(dump_source: Dump) -> None:
    dumped = dump_source("print('chatter')", stdout_to_stderr=True)
    assert (dumped.stdout, dumped.stderr) == ("", "chatter\n")


def test_caches_are_its_own_empty_and_removed(
    dump_source: Dump, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Empty but for the programs with which torch tests the compiler, which have a place of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept = checks_folder() / "ab" / "abc.cpp"
    kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept.write_text('extern "C" void __avx_chk_kernel() {}')
    kept.with_suffix(".so").touch()
    script = (
        "import os\nfrom pathlib import Path\nfor name in ('TORCHINDUCTOR_CACHE_DIR', 'TRITON_CACHE_DIR'):\n"
    )
    script += "    print(os.environ[name])\n    for path in Path(os.environ[name]).rglob('*.*'):\n"
    script += "        print('_chk_kernel' in path.with_suffix('.cpp').read_text(), path.suffix)\n"
    inductor, *programs, triton = dump_source(script).stdout.splitlines()
    assert set(programs) == {"True .cpp", "True .so"}
    assert not any(Path(place).parent.exists() for place in (inductor, triton))


def test_fork_of_the_script_records_nothing(dump_source: Dump) -> None:
    dumped = dump_source(
        "import os, torch\n"
        "torch._dynamo.config.recompile_limit = 8\n"
        "def f(x):\n"
        "    print('broken')\n"
        "    return x\n"
        "if os.fork() == 0:\n"
        "    torch.compile(f, backend='eager')(torch.ones(2))\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    assert dumped.manifest.graph_breaks == ()
    assert dumped.manifest.compiled_frames == 0


@pytest.mark.parametrize("catches", [False, True], ids=["dies", "catches"])
def test_ctrl_c_reaches_the_script_and_the_run_is_kept(tmp_path: Path, *, catches: bool) -> None:
    wait = "time.sleep(60)"
    if catches:
        wait = f"try:\n    {wait}\nexcept KeyboardInterrupt:\n    print('cleaned up')"
    script = write_script(tmp_path, f"import pathlib, time\npathlib.Path('ready').touch()\n{wait}\n")
    process = subprocess.Popen(
        driver_command(script),
        cwd=tmp_path,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    dumped = finished(stdout, stderr)
    assert dumped.manifest.outcome == "interrupted"
    assert dumped.manifest.exit_status == (0 if catches else -signal.SIGINT)
    if catches:
        assert dumped.stdout == "cleaned up\n"
    else:
        assert stderr.startswith(
            f'Traceback (most recent call last):\n  File "{script}", line 3, in <module>\n'
        )
        assert stderr.endswith("KeyboardInterrupt\n")
