"""How a session ends, with stops in a module beside the script: none of these needs torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.reader.debug_dir import read_run
from tests.debugging.client import ANSWER_S, Client, start

MODULE = "def twice(x):\n    y = x + x\n    return y\n"
SCRIPT = "import mod\nprint([mod.twice(x) for x in range(3)], flush=True)\nbreakpoint()\nprint('end')\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mod.py").write_text(MODULE)
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def outcome(folder: Path) -> str:
    (path,) = folder.glob("torch_compile_debug/run_*")
    manifest = read_run(path).manifest
    assert manifest is not None
    return manifest.outcome


def test_a_place_beside_the_script_and_its_own_breakpoint_stop(folder: Path) -> None:
    process, port, _ = start(folder, "script.py", "--break", "mod:twice if x == 1")
    with process:
        with Client(port) as client:
            client.attach()
            thread, frames = client.stopped()
            assert (frames[0]["name"], frames[0]["line"]) == ("twice", 2)
            assert client.locals(frames[0]) == {"x": "1"}
            client.ask("continue", threadId=thread)
            thread, frames = client.stopped()
            assert (frames[0]["name"], frames[0]["line"]) == ("<module>", 4)
            client.ask("continue", threadId=thread)
        out, err = process.communicate(timeout=ANSWER_S)
    assert out == "[0, 2, 4]\nend\n"
    assert err.count("stop: mod:twice") == 1
    assert outcome(folder) == "ok"


@pytest.mark.parametrize(
    ("terminate", "out", "known_as"), [(False, "[0, 2, 4]\nend\n", "ok"), (True, "", "interrupted")]
)
def test_leaving_lets_the_script_run_on_and_ending_it_is_an_interruption(
    folder: Path, out: str, known_as: str, *, terminate: bool
) -> None:
    process, port, _ = start(folder, "script.py", "--break", "mod:twice", "--break", "mod.py:3 if y == 99")
    with process:
        with Client(port) as client:
            client.attach()
            client.stopped()
            client.ask("disconnect", terminateDebuggee=terminate)
        printed, err = process.communicate(timeout=ANSWER_S)
    assert printed == out
    assert outcome(folder) == known_as
    assert ("script.py was interrupted; nothing had been dumped yet" in err) == terminate
    # A debugger ends the process at once; otherwise the end is reached, and what was not is known.
    assert ("never reached: mod.py:3" in err) == (not terminate)
