"""Which code of a dump runs without --trust: only what `probe dump` made here, and what its user wrote there.

Every bench file here is really run where it may, in processes of its own, and leaves a marker then.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.api.trust import require_trust, texts_to_run
from inductor_probe.bench_file.bench_file import BENCH_NAME, seal
from inductor_probe.cli import run as probe
from inductor_probe.errors import ProbeError, UnreadableError
from inductor_probe.model.bench import BenchSettings
from inductor_probe.store.made_here import remember
from tests.dumps import run_in

STRANGER = 4711
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to other users")


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "MARKER"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A graph's folder that the record knows, in its place, with its bench file as it is made."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    source = run_in("torch-2.13.0-cpu/hflip_cl")
    run = Path(shutil.copytree(source, tmp_path / "here" / source.name))
    for path in (run, *run.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    graph = next(run.glob("torchinductor/*/output_code.py")).parent
    remember([graph], run)
    ip.open_graph(graph).write_bench_file()
    return graph


@pytest.fixture
def sent(mine: Path, tmp_path: Path) -> Path:
    """The same dump as it came back from somebody: in another folder."""
    run = Path(shutil.copytree(mine.parents[1], tmp_path / "back" / mine.parents[1].name))
    return run / "torchinductor" / mine.name


def rewrite(graph: Path, edit: Callable[[str], str]) -> None:
    path = graph / BENCH_NAME
    text = path.read_text()
    changed = edit(text)
    assert changed != text
    path.write_bytes(changed.encode())


def refused(
    graph: Path, *options: str, capsys: pytest.CaptureFixture[str], verb: str = "bench-kernel"
) -> str:
    """Run the verb, which must refuse before it writes or says anything; return its sentence."""
    before = {path: path.read_bytes() for path in graph.rglob("*") if path.is_file()}
    assert probe([verb, str(graph), "--budget", "300ms", *options]) == 2
    out, err = capsys.readouterr()
    assert out == "" or list(json.loads(out)) == ["verb", "error", "version"]
    assert err.startswith("error: "), err
    assert {path: path.read_bytes() for path in graph.rglob("*") if path.is_file()} == before
    return " ".join(err.split())


def test_a_dump_that_came_back_as_it_was_sent_may_run(sent: Path) -> None:
    assert require_trust(ip.open_graph(sent), trust=False) == (sent / BENCH_NAME).read_text()
    (sent / BENCH_NAME).unlink()
    assert require_trust(ip.open_graph(sent), trust=False) is None


def code(marker: Path) -> str:
    return f"import os; os.mkdir({str(marker)!r}); os._exit(1)"


def first(text: str, statements: str) -> str:
    """Return a bench file that begins with other statements: nothing of torch is run after them."""
    future = "from __future__ import annotations\n"
    assert future in text
    return text.replace(future, f"{future}{statements}\n", 1)


def test_a_comment_that_hides_code_behind_an_encoding_does_not_run(
    mine: Path, sent: Path, marker: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even with --trust, and where the user might have written it: nobody who reads it sees what it does."""
    cookie = "# -*- coding: raw_unicode_escape -*-\n"
    for graph in (sent, mine):
        rewrite(graph, lambda text: text.replace("\n", f"\n{cookie}# \\u000a{code(marker)}\n", 1))
        for options in ((), ("--trust",), ("--no-run",)):
            said = refused(graph, *options, capsys=capsys)
            assert f"{BENCH_NAME}:2: names the encoding raw_unicode_escape" in said
    assert not marker.exists()


def in_the_seal(text: str) -> str:
    return text.replace("\n", " # coding: raw_unicode_escape\n# \\u000aimport os\n", 1)


def test_an_encoding_on_the_line_with_the_digests_is_seen(
    sent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(sent, in_the_seal)
    assert f"{BENCH_NAME}:1: names the encoding" in refused(sent, capsys=capsys)


EDITS: tuple[Callable[[str], str], ...] = (
    lambda text: text + "# a comment\n",
    lambda text: text.replace("# cpp_fused_flip_0_v2: a copy", "# cpp_fused_flip_0_v2: a  copy"),
    lambda text: text + "\n",
    lambda text: text + "# a comment\rimport os\n",
    lambda text: text + "# a comment\x0c\nimport os\n",
    lambda text: text + "# a comment\u2028import os\n",
    lambda text: f"\n{text}",
    lambda text: f"import os\n{text}",
    lambda text: text.replace("\n", "; import os\n", 1),
    lambda text: text.replace("auto tmp0", "auto  tmp0"),
    lambda text: text.replace("Bench(globals()", "Bench(globals() or exec('')"),
    lambda text: text.replace("''')\n", "'''); import os\n", 1),
)


def test_any_edit_of_a_dump_that_came_back_needs_trust(
    sent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, made = ip.open_graph(sent), (sent / BENCH_NAME).read_text()
    for edit in EDITS:
        (sent / BENCH_NAME).write_text(made)
        rewrite(sent, edit)
        with pytest.raises(ProbeError, match="in another folder, and nothing records who wrote the variants"):
            require_trust(graph, trust=False, rewriting=True)
    assert "in another folder" in refused(sent, capsys=capsys)
    assert require_trust(graph, trust=True) == (sent / BENCH_NAME).read_text()


@pytest.mark.parametrize("line_end", ["\r\n", "\r"])
def test_other_line_ends_are_the_same_text(sent: Path, line_end: str) -> None:
    """Python compiles the same: git may have changed them on the way."""
    rewrite(sent, lambda text: text.replace("\n", line_end))
    assert "\r" not in str(require_trust(ip.open_graph(sent), trust=False))


def test_variants_are_added_to_a_dump_that_came_back_with_trust_only(
    sent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "in another folder" in refused(sent, "--variant", "cpp_fused_flip_0_v3", capsys=capsys)
    assert probe(["bench-kernel", str(sent), "--no-run", "--variant", "cpp_fused_flip_0_v3"]) == 0
    assert "cpp_fused_flip_0_v3" in (sent / BENCH_NAME).read_text()


def test_a_bench_file_of_another_probe_is_made_afresh_and_runs(sent: Path) -> None:
    """Nobody edited it: it would be rewritten before it is run."""
    rewrite(sent, lambda text: seal(old := text.partition("\n")[2].replace("Bench file of", "Bench of"), old))
    graph = ip.open_graph(sent)
    require_trust(graph, trust=False, rewriting=True)
    with pytest.raises(ProbeError, match="in another folder"):
        require_trust(graph, trust=False)
    assert graph.write_bench_file().state == "rewritten"
    require_trust(graph, trust=False)


@pytest.mark.usefixtures("warm_here")
def test_ones_own_comments_and_edits_run_where_the_dump_was_made(mine: Path, marker: Path) -> None:
    rewrite(mine, lambda text: first(text, f"# a comment of mine\n{code(marker)}"))
    assert probe(["bench-kernel", str(mine), "--budget", "300ms"]) == 2, "it ended without results"
    assert marker.is_dir()


@pytest.mark.usefixtures("warm_here")
def test_what_was_judged_is_run_whatever_is_swapped_meanwhile(
    mine: Path, marker: Path, tmp_path: Path
) -> None:
    """Another process that swaps the file all the time, from before it is judged until the run has ended."""
    path, other = mine / BENCH_NAME, tmp_path / "other"
    rewrite(mine, lambda text: first(text, "import sys, time; time.sleep(0.3); sys.exit('as judged')"))
    graph, end = ip.open_graph(mine), threading.Event()
    file = graph.write_bench_file()
    judged = path.read_bytes()
    told = []

    def swap() -> None:
        while not end.is_set():
            other.write_text(f"{code(marker)}\n")
            other.replace(path)

    def progress(text: str) -> None:
        if not told:
            swapping.start()
            while path.read_bytes() == judged:
                pass
        told.append(text)

    swapping = threading.Thread(target=swap)
    try:
        with pytest.raises(ProbeError, match="as judged"):
            graph.run_bench_file(file, BenchSettings(budget=0.3), progress=progress)
    finally:
        end.set()
        swapping.join()
    assert told
    assert not marker.exists()
    assert code(marker) in path.read_text()


@as_root
@pytest.mark.parametrize(
    "which", [BENCH_NAME, "output_code.py", ".", "..", "../..", "fx_graph_runnable.py", "ir_post_fusion.txt"]
)
def test_a_dump_in_the_same_place_of_another_user_does_not_run(
    mine: Path, marker: Path, which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(mine, lambda text: first(text, code(marker)))
    (mine / which).touch()
    os.chown(mine / which, STRANGER, STRANGER)
    if which == "fx_graph_runnable.py":
        remember([mine], mine.parents[1])  # the fixture has none
    said = refused(mine, capsys=capsys)
    assert f"belongs to user {STRANGER}: it may hold their code" in said
    assert "then add --trust" in said
    assert not marker.exists()


@pytest.mark.parametrize("which", [BENCH_NAME, "output_code.py", ".", "..", "../.."])
def test_what_others_may_write_does_not_run_until_they_may_not(
    mine: Path, marker: Path, which: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rewrite(mine, lambda text: first(text, code(marker)))
    path = Path(os.path.realpath(mine / which))
    path.chmod(0o777 if path.is_dir() else 0o666)
    said = refused(mine, capsys=capsys)
    assert f"other users may write to {path} (mode 0{path.stat().st_mode & 0o777:o})" in said
    assert f"hint: chmod go-w {path} if nobody changed it; or read" in said
    assert not marker.exists()
    path.chmod(path.stat().st_mode & ~0o022)
    require_trust(ip.open_graph(mine), trust=False)


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("bench-kernel", ()),
        ("bench-kernel", ("--json",)),
        ("bench-kernel", ("--variant", "cpp_fused_flip_0_v3")),
        ("sweep-configs", ()),
    ],
)
@pytest.mark.parametrize("bench", [True, False])
def test_a_strangers_dump_is_refused_before_anything_is_said_or_written(
    sent: Path, verb: str, options: tuple[str, ...], bench: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    code_file = sent / "output_code.py"
    code_file.write_text(code_file.read_text() + "\n")
    if not bench:
        (sent / BENCH_NAME).unlink()
    said = refused(sent, *options, capsys=capsys, verb=verb)
    assert f"nothing shows that {sent} was made on this machine" in said
    assert (sent / BENCH_NAME).exists() is bench
    with pytest.raises(ProbeError, match="nothing shows"):
        ip.open_graph(sent).bench_kernel()
    assert (sent / BENCH_NAME).exists() is bench


def test_a_file_to_import_that_came_with_the_dump_needs_trust(
    sent: Path, mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for graph in (sent, mine):
        (graph.parents[1] / "operators.py").write_text("raise SystemExit('ran')\n")
        (graph.parents[1] / "operators.py").chmod(0o644)
    theirs = sent.parents[1] / "operators.py"
    said = refused(sent, "--import", str(theirs), capsys=capsys)
    assert f"--import {theirs} is in the dump {sent.parents[1]}: nothing shows that it is yours" in said
    link = tmp_path / "link.py"
    link.symlink_to(theirs)
    assert "is in the dump" in refused(sent, "--import", str(link), capsys=capsys)
    require_trust(ip.open_graph(mine), trust=False, imports=[str(mine.parents[1] / "operators.py")])
    require_trust(ip.open_graph(sent), trust=False, imports=[str(mine.parents[1] / "operators.py"), "json"])
    with pytest.raises(ProbeError, match="is in the dump"):  # `probe whatif --runs` ran it
        texts_to_run(ip.open_graph(sent), trust=False, imports=[str(theirs)])


def test_a_bench_file_that_is_a_link_to_nothing(mine: Path) -> None:
    (mine / BENCH_NAME).unlink()
    (mine / BENCH_NAME).symlink_to("nowhere.py")
    with pytest.raises(UnreadableError, match="is a link to a file that does not exist"):
        ip.open_graph(mine).write_bench_file()
    assert (mine / BENCH_NAME).is_symlink()
