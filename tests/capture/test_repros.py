"""`fx_graph_runnable.py`, and what torch's minifier writes, are scripts as any other."""

from __future__ import annotations

from pathlib import Path

import pytest

import inductor_probe as ip
from tests.dumps import FLIP, graph_in

pytestmark = [pytest.mark.compiles, pytest.mark.takes(60), pytest.mark.usefixtures("warm")]


@pytest.fixture(scope="module")
def dumped(tmp_path_factory: pytest.TempPathFactory) -> ip.Run:
    """The program of a real dump, which names caches and folders of the machine that made it."""
    folder = tmp_path_factory.mktemp("repro")
    script = folder / "fx_graph_runnable.py"
    text = (graph_in(FLIP) / script.name).read_text()
    assert "os.environ['TORCH_COMPILE_DEBUG_DIR'] = '/repro" in text
    assert "run_repro(mod, load_args" in text
    script.write_text(text + "\n")
    return ip.dump(script, out=folder)


def test_a_program_of_torch_s_own_is_dumped_though_it_turns_off_traces_and_names_other_folders(
    dumped: ip.Run,
) -> None:
    (graph,) = dumped.graphs
    assert graph.generated.code is not None
    assert [kernel.backend for kernel in graph.kernels()] == ["cpp"]
    assert graph.compiled.decisions  # recorded: the process was followed into this dump
    assert not Path("/repro").exists()


def test_its_call_is_judged(dumped: ip.Run) -> None:
    record = ip.accuracy(dumped, budget=0.5, tries=False).record
    assert record.verdict == "right"
    assert [call.name for call in record.calls] == ["Repro"]
    assert not Path("/repro").exists()


def test_a_launcher_of_the_minifier_is_dumped_and_minifies_nothing(tmp_path: Path) -> None:
    script = tmp_path / "minifier_launcher.py"
    text = (graph_in(FLIP) / "fx_graph_runnable.py").read_text()
    assert "command='run'" in text
    script.write_text(text.replace("command='run'", "command='minify'"))
    run = ip.dump(script, out=tmp_path)
    assert len(run.graphs) == 1
    assert not list(tmp_path.rglob("repro.py"))
