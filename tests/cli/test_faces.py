"""The command line as a user meets it: help, versions, widths, pipes, JSON, and every kind of bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import inductor_probe
from inductor_probe import cli
from tests.conftest import DUMPS, PROBE, Probe, Ran
from tests.dumps import ANTIALIAS, FLIP, LAYERNORM, TRAINING, copy_of, graph_in


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A copy of a graph that a test may damage."""
    return copy_of(graph_in(FLIP), tmp_path)


def test_help_groups_verbs_by_question(probe: Probe) -> None:
    for arguments in ([], ["--help"]):
        ran = probe(*arguments)
        assert ran.status == 0
        for question in ("What was compiled:", "Why:", "How fast:"):
            assert question in ran.out


VERBS = [verb for verbs in cli.VERBS.values() for verb in verbs]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(probe: Probe, verb: str) -> None:
    ran = probe(verb, "--help")
    assert ran.status == 0
    assert "--json" in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines())


def test_version_names_torch_without_importing_it(probe: Probe) -> None:
    ran = probe("--version")
    assert ran.out.startswith(f"inductor_probe {inductor_probe.__version__}, torch 2.")


@pytest.mark.parametrize("name", inductor_probe.__all__)
def test_every_name_of_the_package_is_what_it_says(name: str) -> None:
    found = getattr(inductor_probe, name)
    assert callable(found)
    assert found.__name__ == name


def test_layouts_never_imports_torch() -> None:
    code = (
        "import sys; from inductor_probe.cli import run;"
        f"status = run(['layouts', {str(ANTIALIAS)!r}]);"
        "heavy = {'torch', 'libcst', 'numpy'} & set(sys.modules); sys.exit(status or bool(heavy))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_json_of_a_buffer_has_the_documented_keys(probe: Probe) -> None:
    ran = probe("layouts", "buf1", ANTIALIAS, "--json")
    (row,) = json.loads(ran.out)["rows"]
    assert {
        "graph",
        "buffer",
        "layout",
        "memory_format",
        "size_bytes",
        "producer",
        "writes",
        "reads",
        "origin",
    } <= set(row)
    assert row["layout"] == {
        "kind": "FixedLayout",
        "device": "cpu",
        "dtype": "float32",
        "size": [4, 3, 345, 256],
        "stride": [264960, 256, 768, 1],
        "offset": 0,
        "extras": {},
    }
    assert row["reads"][0]["strides"] == {"p0": 264960, "p1": 256, "p2": "indirect", "p3": 1}
    assert (row["reads"][0]["node"], row["reads"][0]["pattern"]["kind"]) == ("op3", "contiguous")
    assert row["reads"][0]["generated"]["form"] == "vector"


def test_json_of_a_remark_has_its_fields_and_no_sentence(probe: Probe) -> None:
    (row,) = json.loads(probe("layouts", "buf1", ANTIALIAS, "--json").out)["rows"]
    remark = row["remarks"][0]
    assert set(remark) == {
        "code",
        "kind",
        "subject",
        "numbers",
        "cost",
        "evidence",
        "settings",
        "knowledge",
        "also",
        "decisions",
    }
    assert (remark["code"], remark["kind"], remark["knowledge"]) == ("noncontiguous-access", "missed", "read")
    assert remark["subject"] == {"type": "node", "name": "op1"}
    assert (remark["numbers"]["buffer"], remark["numbers"]["loop"]) == ("arg0_1", "x2")
    assert {Path(span["path"]).name for span in remark["evidence"]} == {
        "ir_post_fusion.txt",
        "output_code.py",
    }
    assert all(" " not in str(value).replace(", ", ",") for value in remark["numbers"].values())


SCREENS: list[tuple[str | Path, ...]] = [
    ("layouts", ANTIALIAS),
    ("layouts", "buf1", ANTIALIAS),
    *(("show", name, ANTIALIAS) for name in ("op1", "buf1", "sum_3", "capture.py:67", "cpp_fused_")),
    *(("nodes", dump) for dump in (TRAINING, LAYERNORM, ANTIALIAS)),
    *(("kernels", dump) for dump in (TRAINING, LAYERNORM)),
    *(("fusion", *names, LAYERNORM) for names in ((), ("op0",), ("op0", "op4"), ("op2", "op3"))),
    ("diff", *(DUMPS / f"torch-{version}-cpu" / "layernorm_grad" for version in ("2.1.2", "2.4.1")), "--all"),
]


@pytest.mark.parametrize("words", SCREENS, ids=lambda words: " ".join(map(str, words[:-1])))
def test_a_screen_fits_its_terminal_and_a_pipe_gets_whole_lines_without_colours(
    probe: Probe, words: tuple[str | Path, ...]
) -> None:
    status = 1 if words[0] == "diff" else 0
    for width in (60, 80, 140) if words[0] == "nodes" else (80, 140):
        ran = probe(*words, COLUMNS=str(width))
        assert ran.status == status, ran.err
        assert all(len(line) <= width for line in ran.out.splitlines())
    ran = probe(*words)
    assert ran.status == status
    assert "\x1b" not in ran.out
    assert all(line == line.rstrip() for line in ran.out.splitlines())


def test_a_pipe_gets_a_row_in_one_line(probe: Probe) -> None:
    (line,) = [line for line in probe("layouts", ANTIALIAS).out.splitlines() if line.startswith("buf1 ")]
    assert "  [264960, 256, 768, 1]    transposed [0, 2, 1, 3]  4.04 MiB  op1     op3" in line


def test_colours_obey_no_color(probe: Probe) -> None:
    coloured = probe("layouts", ANTIALIAS, FORCE_COLOR="1", COLUMNS="100")
    assert "\x1b[31m" in coloured.out or "\x1b[1;31m" in coloured.out
    plain = probe("layouts", ANTIALIAS, FORCE_COLOR="1", NO_COLOR="1", COLUMNS="100")
    assert "\x1b[31m" not in plain.out
    assert "\x1b[1;31m" not in plain.out


def test_head_may_close_the_pipe(tmp_path: Path) -> None:
    command = (
        f"{sys.executable} -m inductor_probe layouts --json {ANTIALIAS} | head -1; exit ${{PIPESTATUS[0]}}"
    )
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_full_disk_behind_a_pipe_is_a_sentence(tmp_path: Path, options: list[str]) -> None:
    command = [*PROBE, "show", str(FLIP)]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*command, *options], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ran.returncode == 2
    assert ran.stderr.splitlines() == [
        "error: cannot write the output: No space left on device",
        "hint: free some space, and run it again",
    ]


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_traceback(tmp_path: Path, closed: str) -> None:
    command = f"{sys.executable} -m inductor_probe check {FLIP} {closed}"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode in (0, 1)
    assert "Traceback" not in ran.stdout + ran.stderr
    missing = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m inductor_probe show nothing {closed}"], cwd=tmp_path, check=False
    )
    assert missing.returncode == 2


def test_completion_is_there() -> None:
    script = Path(sys.executable).parent / "probe"
    environment = {"_PROBE_COMPLETE": "bash_source", "PATH": "/usr/bin:/bin"}
    ran = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    assert "complete" in ran.stdout


def complaint(ran: Ran) -> list[str]:
    """The two lines of a failure; nothing else may be on stderr, and no traceback."""
    assert ran.status == 2
    assert ran.out == ""
    lines = ran.err.splitlines()
    assert lines[0].startswith("error: ")
    assert all(line.startswith("hint: ") for line in lines[1:])
    return lines


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["layouts"], "no run in", "probe dump check_hflip.py"),
        (["layouts", "buf0", "model__0"], "so no graph or run called model__0", "probe dump"),
        (["layouts", "buf0", "nowhere/at/all"], "nowhere/at/all does not exist", None),
        (["layouts", "buf0", "."], "is not a debug dir", "run_* folder"),
        (
            ["layouts", "buf8", ANTIALIAS],
            "FX node or operator buf8",
            "did you mean buf3",
        ),
        (["layouts", "--jsn"], "No such option '--jsn'", "probe layouts --help"),
        (["layout"], "unknown verb layout", "did you mean layouts"),
        (["bench-kernel"], "no run in", "probe dump"),
        (["bench-kernel", "--cxxflags", "'-O2"], "No closing quotation", "probe bench-kernel --help"),
        (["dump", "no_such_script.py"], "no_such_script.py", None),
        (["dump"], "Missing argument 'SCRIPT'", "probe dump --help"),
        (
            ["dump", "check_hflip.py", "--set", "dtype"],
            "invalid setting --set dtype: write NAME=VALUE",
            "--set dtype=float32",
        ),
    ],
)
def test_bad_input_gets_a_sentence(probe: Probe, arguments: list[str], error: str, hint: str | None) -> None:
    lines = complaint(probe(*arguments))
    assert error in lines[0]
    if hint is not None:
        assert hint in lines[1]


def test_an_unknown_graph_offers_near_ones(probe: Probe, graph: Path, tmp_path: Path) -> None:
    lines = complaint(probe("layouts", "buf0", "model__0_inferense_0.0", cwd=tmp_path))
    assert lines[1] == "hint: did you mean model__0_inference_0.0?"


def test_a_truncated_ir_file_is_named_and_the_rest_is_shown(
    probe: Probe, graph: Path, tmp_path: Path
) -> None:
    file = graph / "ir_post_fusion.txt"
    file.write_text(file.read_text()[:-120])
    ran = probe("layouts", cwd=tmp_path)
    assert "buf0" in ran.out
    assert "ir_post_fusion.txt:" in ran.err
    assert ran.status == 2
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("damage", [b"\x00\x01\x02", b"op0: \xff\xfe"])
def test_a_binary_ir_file_is_named(probe: Probe, graph: Path, tmp_path: Path, damage: bytes) -> None:
    file = graph / "ir_post_fusion.txt"
    file.write_bytes(damage)
    ran = probe("layouts", "buf0", cwd=tmp_path)
    assert f"{file.name}:1: not text" in ran.err
    assert "buf0" in ran.out  # ir_pre_fusion.txt still tells


def test_an_unreadable_file_is_named(probe: Probe, graph: Path, tmp_path: Path) -> None:
    # A folder in a file's place cannot be read by anyone, root included.
    file = graph / "ir_post_fusion.txt"
    file.unlink()
    file.mkdir()
    ran = probe("layouts", cwd=tmp_path)
    assert f"cannot read {file}" in ran.err
    assert "buf0" in ran.out


def test_internal_errors_are_sentences_and_tracebacks_on_request(probe: Probe, tmp_path: Path) -> None:
    code = (
        "import inductor_probe.cli.graphs as verbs, sys; from inductor_probe.cli import run\n"
        "def broken(*_, **__): raise RuntimeError('x')\n"
        "verbs.resolve = broken\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    for arguments, has_traceback in ((["layouts"], False), (["--traceback", "layouts"], True)):
        ran = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert ran.returncode != 0
        assert ("Traceback" in ran.stderr) == has_traceback
        assert ("internal error: RuntimeError: x" in ran.stderr) != has_traceback
        assert (
            "report what `probe --traceback layouts` and `probe --version` print" in ran.stderr
        ) != has_traceback
