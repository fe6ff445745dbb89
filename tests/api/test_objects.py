"""The Python API: the same words as the command line, and objects that show themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import inductor_probe as ip
from inductor_probe.analysis.fusion import log
from tests.conftest import DUMPS

ANTIALIAS = DUMPS / "torch-2.13.0-cpu" / "aa_separable_cl"


def test_a_run_gives_graphs_and_graphs_give_layouts() -> None:
    run = ip.open_run(ANTIALIAS)
    (row,) = run.graphs[0].layouts("buf1")
    assert row.memory_format == "transposed"
    assert run.layouts("buf1") == run.graphs[0].layouts("buf1") == ip.layouts("buf1", ANTIALIAS)


def test_several_graphs_must_be_named() -> None:
    training = DUMPS / "torch-2.13.0-cpu" / "mlp_train"
    with pytest.raises(ip.ProbeError, match="has 2 graphs: name one"):
        ip.open_graph(training)
    run = ip.open_run(training)
    assert run.graph("model__0_backward_3.1").folder.kind == "backward"
    with pytest.raises(ip.NotFoundError, match="has no graph nope"):
        run.graph("nope")


def test_a_buffer_that_no_graph_has_is_told_once_for_all() -> None:
    with pytest.raises(ip.NotFoundError, match="none of the 2 graphs"):
        ip.layouts("buf99", DUMPS / "torch-2.13.0-cpu" / "mlp_train")


def test_objects_show_themselves_as_text_and_as_html() -> None:
    run = ip.open_run(ANTIALIAS)
    page = run.graphs[0].layouts("buf1")
    assert repr(page).startswith("buf1  transposed [0, 2, 1, 3]\n")
    assert "<svg" in page._repr_html_()
    assert "buf0" in repr(run.graphs[0].layouts())
    assert "model__0_inference_0.0" in repr(run)
    assert "op1 reads arg0_1 non-contiguously" in repr(run.graphs[0])


def test_unknown_names_of_the_package_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'dmup'"):
        _ = ip.dmup  # type: ignore[attr-defined]


def test_problems_travel_with_the_rows(tmp_path: Path) -> None:
    (graph,) = ip.open_run(ANTIALIAS).graphs
    copy = tmp_path / graph.name
    copy.mkdir()
    (copy / "ir_post_fusion.txt").write_text((graph.path / "ir_post_fusion.txt").read_text()[:-300])
    rows = ip.layouts(None, copy)
    assert [row.buffer for row in rows if row.producer] == ["buf0", "buf1", "buf2", "buf3"]
    assert any("not understood" in problem.message and problem.span for problem in rows.problems)


def test_a_graph_matches_the_fusion_log_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question about a name did so anew."""
    matched: list[int] = []
    match = log.match_log

    def counted(*arguments: Any) -> Any:
        matched.append(1)
        return match(*arguments)

    monkeypatch.setattr(log, "match_log", counted)
    graph = ip.open_run(ANTIALIAS).graphs[0]
    for _ in range(2):
        graph.fusion("op0")
        graph.why("op0")
    assert len(matched) == 1
