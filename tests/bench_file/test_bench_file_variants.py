"""What is the user's in a bench file outlives everything that is made afresh around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inductor_probe import files
from inductor_probe.bench_file import bench_file
from inductor_probe.bench_file.bench_file import is_as_made, write_bench_file
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.report.pages.bench import bench_file_lines
from inductor_probe.report.terminal import to_text
from inductor_probe.variants.bench_variants import ablations, add_variant, orphaned_variants, variant_diffs
from tests.dumps import graph_in

FLIP = graph_in("torch-2.13.0-cpu/hflip_cl")
KERNEL = "cpp_fused_flip_0"


def definition(path: Path, name: str) -> str:
    """The text from the comment of a kernel's copy to its last quote."""
    text = path.read_text()
    start = text.index(f"{name} = async_compile")
    start = text.rindex("\n\n", 0, start) + 2
    return text[start : text.index("''')", start) + 4]


def dump_again(graph_dir: Path) -> None:
    """Another dump in the same place: other sizes, so that all that is pristine is new."""
    code = graph_dir / "output_code.py"
    code.write_text(code.read_text().replace("(1, 3, 224, 224)", "(2, 3, 224, 224)"))


def edit_copy(path: Path, before: str, after: str) -> str:
    text = path.read_text()
    head, copy = text.split(f"{KERNEL}_v2 = ")
    assert before in copy.partition("''')")[0]
    path.write_text(f"{head}{KERNEL}_v2 = {copy.replace(before, after, 1)}")
    return definition(path, f"{KERNEL}_v2")


def test_an_edited_copy_is_taken_over_byte_for_byte_into_a_fresh_file(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    mine = edit_copy(path, "auto tmp0 =", "auto tmp0 =  /* mine: é */")
    dump_again(graph_dir)
    file = write_bench_file(graph_dir)
    assert (file.state, file.edited) == ("rewritten", (f"{KERNEL}_v2",))
    assert definition(path, f"{KERNEL}_v2") == mine
    assert "(2, 3, 224, 224)" in path.read_text()
    assert not is_as_made(path.read_text())
    again = path.read_bytes()
    assert write_bench_file(graph_dir).state == "kept"
    assert path.read_bytes() == again


def test_added_copies_with_their_comments_and_wrappers_are_taken_over(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    kernel = definition(path, f"{KERNEL}_v2").replace("_v2", "_v3").replace("to edit", "my own words")
    wrapper = "# how I call it\ndef call_v3(args):\n    return call(args)  # for now\n"
    text = path.read_text().replace("\nasync_compile.wait", f"\n{kernel}\n\n\nasync_compile.wait")
    path.write_text(text.replace("def make_inputs(", f"{wrapper}\n\ndef make_inputs("))
    dump_again(graph_dir)
    file = write_bench_file(graph_dir)
    assert set(file.edited) == {f"{KERNEL}_v3", "call_v3"}
    text = path.read_text()
    assert kernel in text
    assert wrapper in text
    assert (
        text.index(kernel) < text.index("async_compile.wait") < text.index(wrapper) < text.index("AtenGraph")
    )
    compile(text, str(path), "exec")


def test_untouched_copies_follow_the_dump(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    edit_copy(path, "auto tmp0 =", "auto tmp0 = /* mine */")
    code = graph_dir / "output_code.py"
    code.write_text(
        code.read_text().replace("def call(self, args):", "def call(self, args):\n        assert args")
    )
    write_bench_file(graph_dir)
    assert path.read_text().count("        assert args") == 2, "call_v2 is a copy that nobody touched"


@pytest.mark.parametrize("moment", ["reading", "writing"])
def test_an_edit_that_is_saved_while_a_variant_is_added_stays_beside_it(
    graph_dir: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The moment is chosen here: right after the file was read, or right before it is written."""
    path = write_bench_file(graph_dir).path
    where, name = (bench_file, "add_variant") if moment == "reading" else (files, "_exchange")
    at_that_moment, edits = getattr(where, name), 0

    def edited_first(*arguments: object) -> object:
        nonlocal edits
        if edits == 0:
            edits += 1
            edit_copy(path, "auto tmp0 =", "auto tmp0 = /* mine */")
        return at_that_moment(*arguments)

    monkeypatch.setattr(where, name, edited_first)
    file = write_bench_file(graph_dir, variants=((f"{KERNEL}_v3", None),))
    assert (edits, file.reread, file.edited) == (1, True, (f"{KERNEL}_v2", f"{KERNEL}_v3"))
    assert definition(path, f"{KERNEL}_v3")
    assert "/* mine */" in definition(path, f"{KERNEL}_v2")
    said = to_text(bench_file_lines(file, path))
    assert "another program saved it, too: it was read again, and what was saved stays in it" in said
    assert not write_bench_file(graph_dir).reread


def test_a_bench_file_that_changes_all_the_time_is_left_alone(
    graph_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bench_file(graph_dir).path

    def edited_first(*arguments: Any) -> str:
        path.write_text(path.read_text() + "# once more\n")
        return add_variant(*arguments)

    monkeypatch.setattr(bench_file, "add_variant", edited_first)
    with pytest.raises(ProbeError, match="was changed by another program each of the 5 times"):
        write_bench_file(graph_dir, variants=((f"{KERNEL}_v3", None),))
    text = path.read_text()
    assert text.endswith("# once more\n" * 5)
    assert f"{KERNEL}_v3" not in text


def test_variants_of_a_kernel_that_is_gone_are_kept_and_named(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    mine = edit_copy(path, "auto tmp0 =", "auto tmp0 = /* mine */")
    code = graph_dir / "output_code.py"
    code.write_text(code.read_text().replace(KERNEL, "cpp_fused_rev_0"))
    file = write_bench_file(graph_dir)
    assert file.kernels == ("cpp_fused_rev_0",)
    assert f"{KERNEL}_v2" in file.edited
    assert mine in path.read_text()
    assert orphaned_variants(path.read_text()) == (f"{KERNEL}_v2",)
    compile(path.read_text(), str(path), "exec")


def test_an_edit_elsewhere_keeps_the_file_and_adds_only_what_is_asked_for(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    path.write_text(path.read_text().replace("SIZES = {}", "SIZES = dict()"))
    edited = path.read_text()
    dump_again(graph_dir)
    file = write_bench_file(graph_dir, variants=((f"{KERNEL}_v3", None),))
    assert file.state == "kept"
    assert "SIZES" in file.pristine_edits
    text = path.read_text()
    added = definition(path, f"{KERNEL}_v3")
    assert text.replace(f"\n\n\n{added}", "") == edited


def test_blank_lines_around_copies_are_no_edit(graph_dir: Path) -> None:
    path = write_bench_file(graph_dir).path
    path.write_text(path.read_text().replace(f"# {KERNEL}_v2:", f"\n\n\n# {KERNEL}_v2:"))
    dump_again(graph_dir)
    assert write_bench_file(graph_dir).state == "rewritten"


def test_variants_and_rewrites_are_written_at_once_or_not_at_all(graph_dir: Path) -> None:
    with pytest.raises(ProbeError, match="write KERNEL"):
        write_bench_file(graph_dir, variants=((f"{KERNEL}_v3", None),), rewrites=("loops:nothing",))
    assert not (graph_dir / "output_code_bench.py").exists()
    with pytest.raises(NotFoundError, match="no rewrite loop"):
        write_bench_file(graph_dir, rewrites=("loop:x",))
    file = write_bench_file(
        graph_dir,
        variants=((f"{KERNEL}_v3", None), ("call_v3", None)),
        rewrites=(f"index:{KERNEL} int32", f"ablation:{KERNEL}"),
    )
    text = file.path.read_text()
    kinds = {each.name: each.kind for each in variant_diffs(text)}
    assert kinds[f"{KERNEL}_v4"] == "rewrite"
    assert {name: kinds[name] for name in ablations(text)} == dict.fromkeys(
        (f"{KERNEL}_v5", f"{KERNEL}_v6"), "ablation"
    )
    assert "    return" not in text[text.index("ABLATIONS = ") : text.index("def make_inputs")]
    assert f"{KERNEL}_v3(" in text[text.index("class Runner_v3") : text.index("AtenGraph")]
    dump_again(graph_dir)
    write_bench_file(graph_dir)
    assert ablations(file.path.read_text()) == ablations(text)
