"""Documents in a terminal: what is cut can be recognised, and what is left out is named."""

from __future__ import annotations

from inductor_probe.api.verbs import open_graph
from inductor_probe.report.document import (
    Code,
    Column,
    Document,
    Facts,
    Fold,
    Line,
    Name,
    Picture,
    RemarkLine,
    Table,
)
from inductor_probe.report.pages.kernels import kernel_table
from inductor_probe.report.pages.nodes import node_table
from inductor_probe.report.terminal import to_text
from inductor_probe.report.units import one_word
from inductor_probe.report.wrapping import shorten
from tests.conftest import DUMPS

TRAINING = DUMPS / "torch-2.13.0-cpu-programs" / "training" / "run_2026_01_01_00_00_00_000000-pid_1"
KERNEL = "cpp_fused__log_softmax_backward_data_0"


def training() -> str:
    return str(next((TRAINING / "torchinductor").glob("model__0_forward*")))


def lines(document: Document, width: int) -> list[str]:
    return to_text(document, width).splitlines()


def test_a_table_breaks_lines_between_words() -> None:
    table = Table([Column("buffer", fold="never"), Column("readers")], [["buf9", "op10, op11, OUTPUT"]])
    assert lines([table], 20) == ["buffer  readers", "buf9    op10, op11,", "        OUTPUT"]


def test_a_word_wider_than_its_column_goes_on_in_the_next_line_at_its_separators_alone() -> None:
    table = Table([Column("", fold="never"), Column("reads")], [["a", "0123456789ABCDEF"]])
    assert "".join(line[3:] for line in lines([table], 12)[1:]) == "0123456789ABCDEF"
    sentence = "reads torch/_inductor/codegen/cpp.py:12 at tmp0[3*x1+x0] of cpp_fused_add_2.5"
    assert lines([Line(sentence)], 15) == [
        "reads",
        "torch/",
        "_inductor/",
        "codegen/cpp.py:",
        "12 at",
        "tmp0[3*x1+x0]",
        "of",
        "cpp_fused_add_",
        "2.5",
    ]


def test_the_name_of_a_file_is_shortened_from_the_left_and_never_split() -> None:
    table = Table(
        [Column("", fold="never"), Column("from", fold="path")], [["a", "models/attention.py:12 +3"]]
    )
    # The gap before a column of places is narrower where one would be cut.
    assert lines([table], 19)[1:] == ["a  …attention.py:12", "   +3"]
    assert lines([table], 16)[1:] == ["a  …py:12 +3"]


def test_how_many_more_there_are_is_not_cut_out_of_a_name() -> None:
    """`_low_memory_max_…1` was the end of ` +1`, and no name."""
    assert shorten("_low_memory_max_pool_with_offsets +1", 19) == "_low_…offsets +1"


def test_columns_are_left_out_by_rank_before_a_name_is_cut_below_its_least() -> None:
    columns = [Column("kernel", fold="middle", least=30), Column("bytes", rank=1), Column("from", rank=2)]
    table = Table(columns, [[Name(KERNEL), "1 KiB", "a.py:12"]])
    assert lines([table], 60)[1] == f"{KERNEL}  1 KiB  a.py:12"
    assert lines([table], 50)[1] == "cpp_fused__log_…backward_data_0  1 KiB  a.py:12"
    assert lines([table], 45)[1:3] == [f"{KERNEL}  1 KiB", "left out at 45 columns: from (a pipe has"]
    assert lines([table], 40)[1] == "cpp_fused__log_…backward_data_0  1 KiB"
    assert lines([table], 30)[1] == "cpp_fused__log…backward_data_0"
    assert lines([table], 10_000)[1] == f"{KERNEL}  1 KiB  a.py:12"


def test_names_in_a_sentence_are_cut_only_if_it_then_fits_on_a_line() -> None:
    sentence = [("read by op1", "bold"), " in ", Name(KERNEL), " (ir.txt:12)"]
    assert lines([Line(sentence)], 100) == [f"read by op1 in {KERNEL} (ir.txt:12)"]
    assert lines([Line(sentence)], 55) == ["read by op1 in cpp_fused__log_…data_0 (ir.txt:12)"]
    assert KERNEL in "".join(lines([Line(sentence)], 45))


def test_long_tables_end_with_how_many_more_there_are_but_not_in_a_pipe() -> None:
    table = Table([Column("n")], [[str(number)] for number in range(9)], most=3, more="--all shows them")
    assert lines([table], 80)[-1] == "  and 6 more: --all shows them"
    assert len(lines([table], 10_000)) == 10


def test_further_lines_of_facts_and_remarks_begin_where_their_first_one_does() -> None:
    facts = Facts([("size", "[1, 2]"), ("none", ""), ("from", "one two\nthree")])
    shown = lines([facts, RemarkLine("hazard", "four five six", 2)], 14)
    assert shown == [
        "  size  [1, 2]",
        "  from  one",
        "        two",
        "        three",
        "  ! four five",
        "    six",
    ]


def test_cells_may_have_lines_in_several_styles() -> None:
    table = Table([Column("n", right=True), Column("reason")], [["1", [("bold", "bold"), "\nmeaning"]]], 2)
    for width in (40, 10_000):
        assert lines([table], width) == ["  n  reason", "  1  bold", "     meaning"]


def test_pictures_and_folds_are_not_made_for_a_terminal() -> None:
    def fail() -> str:
        raise AssertionError

    table = Table([Column("a"), Column("picture"), Column("b")], [["1", Picture(fail), "2"]])
    folds: Document = [Picture(fail), Fold("text", lambda: [Line(fail())]), table]
    assert lines(folds, 80) == ["a  b", "1  2"]


def test_lines_of_code_are_numbered_as_in_their_file_and_go_on_further_to_the_right() -> None:
    code = Code("if x:\n    y = first + second", first=99)
    for width in (40, 10_000):
        assert lines([code], width) == [" 99  if x:", "100      y = first + second"]
    assert lines([code], 24) == [" 99  if x:", "100      y = first +", "             second"]


def test_a_command_goes_on_behind_a_backslash_and_its_words_stay_whole() -> None:
    command = one_word("probe fusion op0_op1 op2_op3 torch_compile_debug/run_2026_01_01")
    line = Line(f"next: {command} (they share 4 KiB)", whole=True)
    assert lines([line], 100) == [
        "next: probe fusion op0_op1 op2_op3 torch_compile_debug/run_2026_01_01 (they share 4 KiB)"
    ]
    assert lines([line], 70) == [
        "next: probe fusion op0_op1 op2_op3 torch_compile_debug/run_2026_01_01",
        "(they share 4 KiB)",
    ]
    assert lines([line], 30) == [
        "next:",
        "probe fusion op0_op1 op2_op3 \\",
        "  torch_compile_debug/run_2026_01_01",
        "(they share 4 KiB)",
    ]
    assert "\n".join(lines([line], 30)[1:3]).replace("\\\n", "").split() == command.split("\xa0")


def test_what_has_no_room_beside_a_row_can_stand_below_it() -> None:
    columns = [Column("about"), Column("decision"), Column("changed by", rank=1, below=True)]
    table = Table(columns, [["op0", "scalar: a short loop", "cpp.simdlen = 256"], ["op1", "fused", "-"]], 2)
    assert lines([table], 50)[1] == "  op0    scalar: a short loop  cpp.simdlen = 256"
    assert lines([table], 40) == [
        "  about  decision",
        "  op0    scalar: a short loop",
        "      changed by  cpp.simdlen = 256",
        "  op1    fused",
    ]


def test_columns_left_out_of_a_narrow_table_are_named() -> None:
    graph = open_graph(training())
    for table, columns in (
        (kernel_table(graph.kernels()), "computes, loads, stores, from"),
        (node_table(graph.nodes()), "reads, ops, users, memory, from"),
    ):
        assert f"left out at 80 columns: {columns} (a pipe has them)" in to_text(table, width=80)
        assert "left out" not in to_text(table, width=10_000)
