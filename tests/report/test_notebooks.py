"""The notebooks: stored without outputs, run from top to bottom, and what they say is what is shown."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.conftest import REPOSITORY
from tests.report.harmless import checked

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
RENDER = runpy.run_path(str(REPOSITORY / "notebooks" / "render.py"))

# Jupyter's libraries warn of what they will change in later versions; nothing of this project does.
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("warm")]


def test_there_are_eight() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "01_tour",
        "02_channels_last",
        "03_edit_a_kernel",
        "04_two_dumps",
        "05_the_other_decision",
        "06_functions_of_a_notebook",
        "07_a_wrong_result",
        "08_a_slow_model",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_and_stored_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert notebook.nbformat == 4
    for cell in notebook.cells:
        assert cell.metadata == {}
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebooks")


class Ran:
    """A notebook that was run."""

    def __init__(self, name: str, folder: Path) -> None:
        place = folder / name
        place.mkdir()
        self.notebook = RENDER["run"](REPOSITORY / "notebooks" / f"{name}.ipynb", place)

    def cell(self, start: str) -> Any:
        """Return the only code cell of which a line starts so."""
        (found,) = (
            cell
            for cell in self.notebook.cells
            if cell.cell_type == "code" and re.search(rf"^{re.escape(start)}", cell.source, re.MULTILINE)
        )
        return found

    def html(self, start: str) -> str:
        """Return the HTML that a cell shows, which is one object and harmless."""
        (output,) = (each for each in self.cell(start).outputs if each.output_type != "stream")
        html = str(output["data"]["text/html"])
        checked(html)
        return html

    def text(self, start: str) -> str:
        """Return the text that stands for what a cell shows."""
        (output,) = (each for each in self.cell(start).outputs if each.output_type != "stream")
        return str(output["data"]["text/plain"])

    def page(self) -> str:
        """Return the rendered copy, which loads nothing."""
        page = str(RENDER["html"](self.notebook, "a notebook"))
        assert "<script" not in page
        assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
        return page


@pytest.mark.compiles
@pytest.mark.takes(15)
def test_the_tour_shows_what_it_says(folder: Path) -> None:
    ran = Ran("01_tour", folder)
    drawing = ran.html("graph = run.graphs[0]")
    assert drawing.count('class="ip-node ') == 3
    assert "extern_kernels.mm" in drawing
    assert "scores.py:6" in drawing
    assert 'class="ip-panel"' in drawing
    assert "<svg" in ran.html("graph.layouts()")
    assert "computes" in ran.html("graph.show(reduction.node)")
    assert "as dumped" in ran.html("graph.show(reduction.node)")
    assert "gelu" in ran.html('graph.show("scores.py:6")')
    kernels = ran.html("graph.kernels()")
    assert "cpp_fused" in kernels
    assert "<summary>" in kernels
    assert "before fusion" in ran.html("graph.fusion()")
    assert "A tour" in ran.page()


@pytest.mark.compiles
@pytest.mark.takes(15)
def test_the_buffer_that_is_not_channels_last_is_found_and_its_non_contiguous_read(folder: Path) -> None:
    ran = Ran("02_channels_last", folder)
    assert "channels_last" in ran.html("graph.layouts()")
    changed = ran.text("ip.LayoutRows(changed)")
    assert "buf1" in changed
    assert "arg0_1  " not in changed
    assert "in memory <b>dim" in ran.html("graph.layouts(buffer)")
    drawn = ran.html("graph.draw(buffer)")
    assert drawn.count('class="ip-wire ip-slow"') == 1
    assert "red arrow" in drawn
    (reader,) = set(re.findall(r"(op\d+) reads arg0_1 non-contiguously", changed))
    body = checked(ran.html("graph.show(gather.subject.name)")).text
    assert body.startswith(f"{reader}  pointwise")
    assert "computes" in body
    assert "arg0_1[" in body


@pytest.mark.compiles
@pytest.mark.takes(15)
def test_the_wrong_edit_is_refused_and_the_right_one_is_timed(folder: Path) -> None:
    ran = Ran("03_edit_a_kernel", folder)
    diffs = "".join(output.text for output in ran.cell("file = graph.write_bench_file(").outputs)
    assert "+                    #pragma GCC unroll 3" in re.sub(
        r"^\+ +#", "+                    #", diffs, flags=re.MULTILINE
    )
    assert "671L + ((-1L)*x2)" in diffs
    found = ran.html("bench = graph.run_bench_file")
    assert re.search(r"_v3 is WRONG in [\d,]+ of 150,528 elements: ", found)
    assert "not timed" in found
    said = ran.text("{variant.name")
    assert re.search(r"_v2': \(True, 0\)", said)
    assert re.search(r"_v3': \(False, [1-9]\d+\)", said)
    # what is plotted: the right edit against the pristine kernel, by process; never the wrong one
    plot = found[found.index("<svg") : found.rindex("</svg>")]
    assert all(f"process {at}" in plot for at in (1, 2, 3))
    assert "_v2" in plot
    assert "_v3" not in plot
    assert any(word in plot for word in ("FASTER", "SLOWER", "SAME", "UNDECIDED", "INVALID"))
    assert "the same within 5 %" in ran.html("ip.verdict(graph.path")


@pytest.mark.compiles
@pytest.mark.takes(15)
def test_two_dumps_are_told_apart(folder: Path) -> None:
    ran = Ran("04_two_dumps", folder)
    assert "compute differently" in ran.html("diff = ip.diff")
    assert "<summary>" in ran.html("diff = ip.diff")
    reads = {
        start: next(line for line in ran.text(start).splitlines() if line.startswith("op1"))
        for start in ("centred.graphs[0].nodes()", "one_pass.graphs[0].nodes()")
    }
    assert "arg0_1, buf0" in reads["centred.graphs[0].nodes()"]
    assert "arg0_1, buf0" not in reads["one_pass.graphs[0].nodes()"]
    assert ran.text('ip.diff("centred", "centred")') == "(True, False)"


@pytest.mark.compiles
@pytest.mark.takes(15)
def test_the_other_decision_is_right_and_what_changed_is_told(folder: Path) -> None:
    ran = Ran("05_the_other_decision", folder)
    assert "where the time goes" in ran.text("overview = ip.overview")
    assert "cpp_fused_flip_0" in ran.html("overview = ip.overview")
    assert "non-contiguous" in ran.html('first.why("op0"')
    assert "stride -1" in ran.text('first.why("op0"')
    answer = ran.text("answer = first.whatif")
    assert "compute what the graph does in float64" in answer
    assert "the graph, operator by operator" in answer
    assert "('scalar', 'vectorised')" in ran.text("graph = answer.graphs[0]")
    assert "run_" in ran.text("[(path.parents[2]")
    assert "compute what the graph does in float64" in ran.text("denied = last.whatif")


@pytest.mark.compiles
@pytest.mark.takes(15)
def test_a_function_and_a_block_of_the_notebook_are_recorded(folder: Path) -> None:
    ran = Ran("06_functions_of_a_notebook", folder)
    assert 'class="ip-node ' in ran.html('run = ip.dump(score, x, w, label="score")')
    assert "decided in" in ran.text('run.why("op1")')
    assert "extern_kernels" in ran.text("layer = torch.nn.Linear")
    assert re.search(r"_forward_.*_backward_", ran.text("[graph.name for graph"))
    assert ran.text("with ip.recording() as nothing") == "'compiled-before'"


def test_a_rendered_copy_escapes_what_a_cell_printed() -> None:
    cell = nbformat.v4.new_code_cell(
        "print('<b>')", outputs=[nbformat.v4.new_output("stream", text="\x1b[31m<script>alert(1)</script>")]
    )
    page = RENDER["html"](nbformat.v4.new_notebook(cells=[cell]), "<title>")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
    assert "\x1b" not in page


@pytest.mark.compiles
def test_a_wrong_result_is_followed_down_to_its_line(folder: Path) -> None:
    ran = Ran("07_a_wrong_result", folder)
    assert "aten.argmax" in ran.html("answer = ip.accuracy(run)")
    assert "lowering" in ran.text("graph = answer.record.graphs[0]")
    assert "('loop body', '182', 'wrong')" in ran.text("[(step.place")
    assert "return grey.argmax()" in ran.text("wrong.kernel_line")
    assert "aten.argmax" in ran.text("[(change.kind")


@pytest.mark.compiles
@pytest.mark.takes(60)
def test_a_slow_model_is_followed_from_its_overview_to_a_verdict(folder: Path) -> None:
    ran = Ran("08_a_slow_model", folder)
    assert "what was missed there" in ran.text("overview = ip.overview")
    drawn = ran.html("graph.draw()")
    assert "layers of" in drawn or "more layer of" in drawn
    assert "takes most time" in drawn
    assert 'class="ip-share"' in drawn
    assert "stride -1" in ran.text("missed = ")
    assert "scalar (non-contiguous 1 of 2 operations) -> vectorised" in ran.text(
        "settings = ip.BenchSettings"
    )
    assert re.match(r"\('(FASTER|SLOWER|SAME|UNDECIDED)', ", ran.text("call = answer.graphs"))
    assert "a page about slow: 1 graph" in ran.text("from pathlib")
    assert (folder / "08_a_slow_model" / "report.html").stat().st_size < 2e6
