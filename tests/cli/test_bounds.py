"""Hostile input of up to 200 MB: a sentence within 1 GB of memory and 10 s, by the limits of a process."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import DUMPS
from tests.dumps import copy_of, graph_in
from tests.fork_server import ForkServer

pytestmark = pytest.mark.takes(2)

FLIP = graph_in(DUMPS / "torch-2.13.0-cpu" / "hflip_cl")
CODE = (FLIP / "output_code.py").read_text()
IR = (FLIP / "ir_post_fusion.txt").read_text()
MEMORY = (1 << 30) + (256 << 20)
"""Bytes of address space. Python takes up to 256 MiB of it before it reads anything."""
SECONDS = 20
"""Of a processor, twice the bound: other tests run beside this one on the same cores."""
Bounded = Callable[..., tuple[int, str]]
LOG = "V1121 02:22:22.682000 15139 torch/_inductor/scheduler.py:2372] [0/0] [__fusion] "


@pytest.fixture
def bounded(fork_server: ForkServer, tmp_path: Path) -> Bounded:
    """Return what runs `probe` under the limits, and returns its status and all that it said."""

    def run(*arguments: str | Path) -> tuple[int, str]:
        ran = fork_server.run(
            [str(argument) for argument in arguments],
            tmp_path,
            {**os.environ, "COLUMNS": "2000"},  # no sentence is broken
            {resource.RLIMIT_AS: MEMORY, resource.RLIMIT_CPU: SECONDS},
        )
        said = ran.stdout + ran.stderr
        assert ran.returncode in (0, 1, 2), said[-500:]
        assert "internal error" not in said
        return ran.returncode, " ".join(said.split())

    return run


def repeated(text: str, size: float) -> str:
    return text * int(size // len(text))


def numbered(text: str, size: float) -> str:
    """Repeat `text` with its # replaced by a number that is another one each time."""
    return "".join(text.replace("#", str(number)) for number in range(int(size // (len(text) + 5))))


PROVENANCE = "inductor_provenance_tracking_node_mappings.json"
LINES = "lines, more than the limit of 500,000"
WORDS = "more than 300,000 words of Python"
STATEMENT = "a statement of more than 50,000 words"
BYTES = "bytes, more than the limit of 33,554,432"
CASES: dict[str, tuple[str, Callable[[], str], str]] = {
    "wide tuple of 3 MB": ("output_code.py", lambda: f"{CODE}\nx = ({repeated('a, ', 3e6)})\n", STATEMENT),
    "wide tuple of 12 MB": ("output_code.py", lambda: f"{CODE}\nx = ({repeated('a, ', 12e6)})\n", STATEMENT),
    "wide tuple of 30 MB within a function": (
        "output_code.py",
        lambda: CODE.replace("    return (", f"    x = ({repeated('a, ', 30e6)})\n    return ("),
        STATEMENT,
    ),
    "tiny statements": ("output_code.py", lambda: CODE + repeated("x\n", 0.9e6), WORDS),
    "millions of tiny statements": ("output_code.py", lambda: CODE + repeated("x\n", 30e6), LINES),
    "statements in one line": ("output_code.py", lambda: CODE + repeated("f();", 20e6), STATEMENT),
    "open brackets": ("output_code.py", lambda: f"{CODE}y = {repeated('(', 20e6)}\n", STATEMENT),
    "deep sum": ("output_code.py", lambda: f"{CODE}y = {repeated('a+', 4e4)}a\n", "nested too deeply"),
    "escapes": ("output_code.py", lambda: f'{CODE}y = "' + repeated('\\"', 20e6) + '"\n', WORDS),
    "open strings": ("output_code.py", lambda: CODE + repeated("\\'''", 20e6), WORDS),
    "an f-string": ("output_code.py", lambda: f"{CODE}y = f'{repeated('{a}', 2e5)}'\n", "f-strings of more"),
    "a string": ("output_code.py", lambda: f'{CODE}y = "{repeated("x", 30e6)}"\n', "whole"),
    "an int": ("output_code.py", lambda: f"{CODE}y = {repeated('9', 30e6)}\n", "not Python"),
    "one long line": ("output_code.py", lambda: f"{CODE}# {repeated('x', 30e6)}\N{GRINNING FACE}", "whole"),
    "200 MB of statements": ("output_code.py", lambda: repeated("x = 1\n", 200e6), BYTES),
    "kernels": (
        "output_code.py",
        lambda: repeated("k = async_compile.cpp_pybinding(['float*'], r'''int a;''')\n", 15e6),
        WORDS,
    ),
    "launches in one line below a long comment": (
        "output_code.py",
        lambda: CODE.replace(
            "    return (",
            repeated("    # x\n", 4e5) + f"    {repeated('cpp_fused_flip_0(a);', 1e5)}\n" + "    return (",
        ),
        "whole",
    ),
    "200 MB of IR blocks": ("ir_post_fusion.txt", lambda: repeated(f"{IR}\n\n", 200e6), BYTES),
    "as many IR blocks as are read": ("ir_post_fusion.txt", lambda: repeated(f"{IR}\n\n", 15e6), "whole"),
    "empty lines": ("ir_post_fusion.txt", lambda: repeated("\n", 30e6), LINES),
    "lines that are nothing": ("ir_post_fusion.txt", lambda: repeated("x\n", 0.9e6), "not read from here on"),
    "values that are nothing": (
        "ir_post_fusion.txt",
        lambda: "op0: SchedulerNode(ComputedBuffer)\n" + numbered("op0.sizes = ([a#, b], [c])\n", 12e6),
        "1,500,000 characters of unusual values came before it",
    ),
    "a wide value": (
        "ir_post_fusion.txt",
        lambda: f"op0: SchedulerNode(ComputedBuffer)\nop0.sizes = ({repeated('a,', 30e6)})\n",
        "a value of 30,000,002 characters",
    ),
    "nodes in nodes": (
        "ir_post_fusion.txt",
        lambda: numbered("op#: FusedSchedulerNode(X)\nop#.snodes[0] =\n", 8e6),
        "not understood",
    ),
    "FX lines that are nothing": ("fx_graph_readable.py", lambda: repeated("?\n", 0.9e6), "not read from"),
    "FX nodes": ("fx_graph_readable.py", lambda: numbered("  a# = b(a)\n", 6e6), "whole"),
    "wide JSON": (PROVENANCE, lambda: f"[{repeated('[],', 16e6)}[]]", "not a prov"),
    "deep JSON": (PROVENANCE, lambda: repeated("[", 16e6), "not a prov"),
    "200 MB of JSON": (PROVENANCE, lambda: repeated("[],", 200e6), "16,777,216"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_file_is_refused_within_1_gb_and_10_s(tmp_path: Path, case: str, bounded: Bounded) -> None:
    name, text, sentence = CASES[case]
    graph = copy_of(FLIP, tmp_path)
    (graph / name).write_text(text())
    status, said = bounded("check", graph)
    assert sentence in said, said[-600:]
    assert status == (0 if said.startswith("whole") else 1)
    if status:
        assert name in said
    assert "0 nodes" not in said  # the rest is read


def test_200_mb_of_garbage_in_every_file(tmp_path: Path, bounded: Bounded) -> None:
    graph = copy_of(FLIP, tmp_path)
    piece = os.urandom(1 << 20)
    garbage = tmp_path / "garbage"
    with garbage.open("wb") as file:
        for _ in range(200):
            file.write(piece)
    for file_of_graph in graph.iterdir():
        file_of_graph.unlink()
        os.link(garbage, file_of_graph)
    for verb in ("check", "layouts", "runs"):
        bounded(verb, graph.parents[1])


@pytest.mark.parametrize(
    "text", ["\n", "x", f"{LOG}cannot fuse op0 with op1: no shared data\n", f"{LOG}  a\n"]
)
def test_200_mb_of_a_log(tmp_path: Path, text: str, bounded: Bounded) -> None:
    graph = copy_of(FLIP, tmp_path)
    logs = graph.parents[1] / "probe_logs"
    logs.mkdir()
    (logs / "fusion.log").write_text(repeated(text, 200e6))
    _, said = bounded("check", graph.parents[1])
    assert text == "x" or "not read from here on: the logs of this run are too long" in said


def test_wide_tables_of_tunings_and_samples(tmp_path: Path, bounded: Bounded) -> None:
    graph = copy_of(FLIP, tmp_path)
    choices = repeated('{"name":"a","ms":1},', 15e6).rstrip(",")
    (graph / "probe_choices.jsonl").write_text(f'{{"operation": "mm", "inputs": [], "choices": [{choices}]}}')
    (graph / "output_code_bench.json").write_text(
        f'{{"schema": 1, "margin": 0.1, "processes": [{repeated("[],", 15e6)}[]]}}'
    )
    bounded("tunings", graph)
    status, said = bounded("verdict", graph)
    assert status == 2
    assert "is not what probe bench-kernel writes" in said
    for name in ("probe_choices.jsonl", "output_code_bench.json"):
        (graph / name).write_text(repeated("[],", 200e6))
    assert "200,000,000" in bounded("tunings", graph)[1].replace("199,999,998", "200,000,000")
    assert "more than the limit of 16,777,216" in bounded("verdict", graph)[1]


def test_a_wide_manifest(tmp_path: Path, bounded: Bounded) -> None:
    run = copy_of(FLIP, tmp_path).parents[1]
    (run / "probe.json").write_text(f'{{"graphs": [{repeated("{},", 16e6)}{{}}]}}')
    assert "more than the limit of 1,000,000" in bounded("check", run)[1]


@pytest.mark.parametrize(
    "verb", ["check", "show", "layouts", "runs", "nodes", "tunings", "verdict", "diff", "fusion"]
)
@pytest.mark.parametrize("target", ["/dev/zero", "x" * 5000, f"/{'x' * 5000}/y", "x" * 5000 + ".csv"])
def test_a_device_or_a_path_of_5000_characters_is_answered_with_a_sentence(
    tmp_path: Path, verb: str, target: str, probe: Callable[..., object]
) -> None:
    arguments = [verb, target] if verb in ("check", "runs") else [verb, "buf0", target]
    if verb in ("nodes", "tunings", "verdict", "diff"):
        arguments = [verb, target]
    ran = probe(*arguments)
    assert ran.status == 2  # type: ignore[attr-defined]  # of `Ran`
    assert "internal error" not in ran.err  # type: ignore[attr-defined]
    assert ran.err.startswith("error: ")  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [path.name for path in sorted(FLIP.iterdir())])
def test_a_link_to_a_device_as_a_file_of_a_dump(tmp_path: Path, name: str, bounded: Bounded) -> None:
    graph = copy_of(FLIP, tmp_path)
    (graph / name).unlink()
    (graph / name).symlink_to("/dev/zero")
    (graph / "probe_choices.jsonl").symlink_to("/dev/zero")
    for verb in ("check", "show", "tunings", "kernels"):
        status, said = bounded(verb, *(["--json"] if verb == "check" else []), graph)
        assert status in (0, 1, 2)
        if verb == "check":
            assert json.loads(said)["problems"] or name in said
