"""An `output_code.py` that somebody edited: what is torch's is read, and the rest named once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inductor_probe.analysis.check import check_graph
from inductor_probe.analysis.links import links
from inductor_probe.analysis.symbols import symbols
from inductor_probe.reader.debug_dir import graph_dir, read_graph, texts_of
from inductor_probe.reader.output_code import parse_output_code
from tests.conftest import DUMPS

OWN = """
import time
import numpy as np
from my_tools import compare

SIZES = [(4, 3), (8, 3)]
compare.level, other = 3, 4
for size in SIZES:
    print(size)


def timed(fn, n=10):
    times = []
    for i in range(n):
        t0 = time.perf_counter()
        fn()
        times.append(time.perf_counter() - t0)
    x = np.array(times)
    x[0] += 1
    return min(times)


class Harness:
    def run(self):
        return timed(lambda: None)

"""


@pytest.fixture(params=["torch-2.1.2-cpu/hflip_cl", "torch-2.13.0-cpu/hflip_cl"])
def edited(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (run,) = (DUMPS / request.param).glob("run_*")
    shutil.copytree(run, tmp_path / "run")
    (folder,) = (tmp_path / "run" / "torchinductor").glob("model_*")
    code = folder / "output_code.py"
    text = code.read_text().replace("async_compile.wait(globals())", f"{OWN}async_compile.wait(globals())", 1)
    indent = "        " if "class Runner" in text else "    "
    text = text.replace("args.clear()\n", f"args.clear()\n{indent}t0 = time.perf_counter()\n", 1)
    text = text.replace("return (buf0, )", f"compare.check(t0)\n{indent}return (buf0, )", 1)
    code.write_text(text)
    return folder


def test_code_that_was_added_is_one_remark_and_no_problem(edited: Path) -> None:
    folder = graph_dir(edited)
    assert folder is not None
    graph = read_graph(folder)
    checked = check_graph(graph, texts_of(graph))
    assert checked.problems == ()
    (remark,) = checked.remarks
    assert remark.code == "added-code"
    lines = (edited / "output_code.py").read_text().split("\n")
    added = {lines[n - 1].strip() for span in remark.evidence for n in range(span.first, span.last + 1)}
    assert {"import time", "x[0] += 1", "class Harness:", "t0 = time.perf_counter()"} <= added
    assert "compare.check(t0)" in added
    assert not any("empty_strided" in line or "assert_size_stride" in line for line in added)


def test_what_torch_wrote_beside_it_is_read(edited: Path) -> None:
    folder = graph_dir(edited)
    assert folder is not None
    graph = read_graph(folder)
    assert graph.code is not None
    assert graph.code.inputs == ("arg0_1",)
    assert graph.code.returns == ("buf0",)
    assert len(graph.code.launches) == 1
    assert links(graph).unlinked == ()


def test_a_statement_of_no_known_form_alone_stays_a_problem() -> None:
    text = (
        "import torch\ndef call(args):\n    arg0_1, = args\n    frobnicate(arg0_1)\n    return (arg0_1, )\n"
    )
    code = parse_output_code(text, Path("output_code.py"))
    assert code.added == ()
    assert [problem.message for problem in code.problems] == [
        "unknown statement of the wrapper: frobnicate(arg0_1)"
    ]


def test_a_stream_function_of_backends_without_streams_is_torch_s() -> None:
    text = "import torch\ndef get_raw_stream(_):\n    return 0\ndef call(args):\n    return ()\n"
    assert parse_output_code(text, Path("output_code.py")).added == ()


def test_a_dtype_is_no_symbolic_size() -> None:
    (path,) = DUMPS.glob("torch-2.1.2-cpu/hflip_cl/run_*/torchinductor/model_*")
    folder = graph_dir(path)
    assert folder is not None
    graph = read_graph(folder)
    assert graph.fx is not None
    assert (graph.fx.inputs[0].type or "").startswith("u8[")
    assert symbols(graph) == ()
