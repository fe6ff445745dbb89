from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.api.verbs import open_graph
from inductor_probe.bench_file.bench_file import is_as_made, write_bench_file
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError
from tests.dumps import graph_in

FLIP = graph_in("torch-2.13.0-cpu/hflip_cl")


def edit(path: Path, before: str, after: str) -> bytes:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    return path.read_bytes()


def test_first_it_is_written_then_written_again(graph_dir: Path) -> None:
    dumped = (graph_dir / "output_code.py").read_bytes()
    file = write_bench_file(graph_dir)
    first = file.path.read_bytes()
    assert (file.state, file.kernels, file.edited) == ("written", ("cpp_fused_flip_0",), ())
    assert file.path == graph_dir / "output_code_bench.py"
    assert write_bench_file(graph_dir).state == "rewritten"
    assert file.path.read_bytes() == first
    assert (graph_dir / "output_code.py").read_bytes() == dumped


def test_an_unedited_file_follows_its_dump(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    edit(graph_dir / "output_code.py", "(1, 3, 224, 224)", "(2, 3, 224, 224)")
    assert write_bench_file(graph_dir).state == "rewritten"
    assert "(2, 3, 224, 224)" in path.read_text()


def test_an_edit_is_kept_byte_for_byte_and_named(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    text = path.read_text()
    head, copy = text.split("cpp_fused_flip_0_v2 = ")
    path.write_text(f"{head}cpp_fused_flip_0_v2 = {copy.replace('224L', '112L')}")
    edited = path.read_bytes()
    file = write_bench_file(graph_dir)
    assert (file.state, file.edited) == ("kept", ("cpp_fused_flip_0_v2",))
    assert file.pristine_edits == ()
    assert path.read_bytes() == edited
    assert not is_as_made(path.read_text()), "what is the user's must not be removed with the run"


def test_edits_of_pristine_parts_and_new_copies_are_told_apart(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    edit(path, "SIZES = {}", "SIZES = dict()")
    edit(path, "def make_inputs(", "cpp_fused_flip_0_v3 = cpp_fused_flip_0_v2\n\ndef make_inputs(")
    file = write_bench_file(graph_dir)
    assert set(file.edited) == {"SIZES", "cpp_fused_flip_0_v3"}
    assert file.pristine_edits == ("SIZES",)


def test_a_comment_is_an_edit_too_but_changes_no_name(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    path.write_text(path.read_text() + "# mine\n")
    file = write_bench_file(graph_dir)
    assert (file.state, file.edited) == ("kept", ())
    assert path.read_text().endswith("# mine\n")


def test_an_edit_that_is_not_python_is_kept_and_named_with_its_line(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    path.write_text(path.read_text() + "def (:\n")
    lines = len(path.read_text().splitlines())
    with pytest.raises(UnreadableError, match=rf"output_code_bench\.py:{lines}: your edit is not Python"):
        write_bench_file(graph_dir)
    assert path.read_text().endswith("def (:\n")


@pytest.mark.parametrize("percent", range(0, 100, 5))
def test_a_file_that_was_cut_short_anywhere_is_a_sentence_before_a_process_starts(
    graph_dir: Path, percent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bench_file(graph_dir).path
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * percent // 100])
    monkeypatch.setattr("subprocess.Popen", None)
    for trust in (False, True):
        with pytest.raises(
            UnreadableError, match=r"output_code_bench\.py:\d+: this file is incomplete"
        ) as raised:
            open_graph(graph_dir).bench_kernel(trust=trust)
        assert "to have it written again" in (raised.value.hint or "")
    assert path.read_bytes() == data[: len(data) * percent // 100]


def test_no_output_code(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no output_code\.py"):
        write_bench_file(tmp_path)


def test_output_code_that_is_cut_off_is_named_with_path_and_line(graph_dir: Path) -> None:
    code = graph_dir / "output_code.py"
    code.write_text(code.read_text()[:2000])
    with pytest.raises(UnreadableError) as caught:
        write_bench_file(graph_dir)
    assert f"{code}:" in caught.value.message
    assert not (graph_dir / "output_code_bench.py").exists()


def test_a_disk_that_takes_nothing(graph_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ProbeError, match="No space left on device"):
        write_bench_file(graph_dir)
    assert not (graph_dir / "output_code_bench.py").exists()
