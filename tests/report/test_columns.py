"""Tables in a narrow terminal: words and names of files stay whole, and columns without room are named."""

from __future__ import annotations

from inductor_probe.api.verbs import open_graph
from inductor_probe.report.columns import Column, Columns
from inductor_probe.report.kernels import KernelTable
from inductor_probe.report.nodes import NodeTable
from inductor_probe.report.shown import to_text
from tests.conftest import DUMPS

TRAINING = DUMPS / "torch-2.13.0-cpu-programs" / "training" / "run_2026_01_01_00_00_00_000000-pid_1"


def training() -> str:
    return str(next((TRAINING / "torchinductor").glob("model__0_forward*")))


def test_a_table_breaks_lines_between_words() -> None:
    table = Columns([Column("buffer", folds=False), Column("readers")], [["buf9", "op10, op11, OUTPUT"]])
    assert to_text(table, width=20).splitlines() == [
        "buffer  readers",
        "buf9    op10, op11,",
        "        OUTPUT",
    ]


def test_a_word_wider_than_its_column_goes_on_in_the_next_line() -> None:
    table = Columns([Column("", folds=False), Column("readers")], [["a", "0123456789ABCDEF"]])
    lines = to_text(table, width=12).splitlines()[1:]
    assert "".join(line[3:] for line in lines) == "0123456789ABCDEF"


def test_the_name_of_a_file_is_shortened_from_the_left_and_never_split() -> None:
    columns = [Column("", folds=False), Column("from", path=True)]
    table = Columns(columns, [["a", "models/attention.py:12 +3"]])
    assert to_text(table, width=16).splitlines()[1] == "a  …ention.py:12"
    assert to_text(table, width=16).splitlines()[2].strip() == "+3"


def test_columns_left_out_of_a_narrow_table_are_named() -> None:
    graph = open_graph(training())
    for table, columns in (
        (KernelTable(graph.kernels()), "computes, loads, stores, from"),
        (NodeTable(graph.nodes()), "reads, ops, users, memory, from"),
    ):
        assert f"left out at 80 columns: {columns} (a pipe has them)" in to_text(table, width=80)
        assert "left out" not in to_text(table, width=10_000)
