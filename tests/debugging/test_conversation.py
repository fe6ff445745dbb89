"""A real conversation with debugpy's adapter: attach, stop in the compiler, look, step, go on, end."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.debugging.sources import Source, find_module
from inductor_probe.reader.debug_dir import read_run
from tests.debugging.client import ANSWER_S, Client, start

pytestmark = pytest.mark.compiles

SCRIPT = """
import torch

def normed(x):
    return x / x.sum(-1, keepdim=True)

out = torch.compile(normed)(torch.ones(8, 64))
print("done", tuple(out.shape))
"""
KERNEL = "cpp_fused_div_sum_0"


@functools.cache
def cpp() -> Source:
    """Return where kernels of C++ are generated."""
    return find_module("torch._inductor.codegen.cpp")


def own_line() -> int:
    """Return a breakpoint that the client sets itself, in a file where stops were asked for when it began."""
    return int(cpp().named("CppScheduling.flush")[0].node.body[0].lineno)


@dataclass
class Stopped:
    """What a client sees at a stop."""

    function: str
    file: str
    line: int
    depth: int
    locals: dict[str, str]
    extra: str = ""


@dataclass
class Talk:
    """A whole session: where it stopped, and how `probe debug` ended."""

    stops: list[Stopped]
    status: int
    out: str
    err: str
    cwd: Path

    def at(self, function: str) -> list[Stopped]:
        return [stop for stop in self.stops if stop.function == function]


def look(client: Client, thread: int, frames: list[dict[str, Any]]) -> Stopped:
    top = frames[0]
    seen = Stopped(top["name"], top["source"]["path"], top["line"], len(frames), client.locals(top))
    if seen.function == "can_fuse":
        seen.extra = client.evaluate("(node1.get_name(), node2.get_name())", top)
    if seen.function == "lines":
        client.ask("next", threadId=thread)
        _, frames = client.stopped()
        seen.extra = f"{frames[0]['name']}:{frames[0]['line']}"
    return seen


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Talk:
    cwd = tmp_path_factory.mktemp("talk")
    script = cwd / "script.py"
    script.write_text(SCRIPT)
    process, port, said = start(
        cwd,
        "script.py",
        "--break",
        "torch._inductor.codegen.cpp:LoopLevel.lines if self.size == 8",
        "--break",
        "torch._inductor.codegen.cpp:LoopLevel.lines if self.size.no_such_thing",
        *(word for subject in ("buf0", "op0,op1", KERNEL) for word in ("--break-on", subject)),
    )
    stops = []
    with process:
        with Client(port) as client:
            # What an editor sends that was not told otherwise: libraries are not one's own code.
            client.attach({str(cpp().path): [own_line()], str(script): [8]}, justMyCode=True)
            while client.happened("stopped", "terminated") == "stopped":
                thread, frames = client.stopped()
                stops.append(look(client, thread, frames))
                client.ask("continue", threadId=thread)
        out, err = process.communicate(timeout=ANSWER_S)
    return Talk(stops, process.returncode, out, "".join(said) + err, cwd)


def test_a_function_stops_in_its_own_frame_with_its_locals(talk: Talk) -> None:
    stops = talk.at("lines")
    assert stops
    entry = cpp().named("LoopLevel.lines")[0].node.body[0].lineno
    for stop in stops:
        assert (Path(stop.file), stop.line) == (cpp().path, entry)
        assert re.match(r"LoopLevel\(var=x0, size=8\b", stop.locals["self"])
        assert stop.depth > 30  # torch's frames are all there, down to the script


def test_stepping_stays_in_torch_whatever_the_client_calls_its_own(talk: Talk) -> None:
    second = cpp().named("LoopLevel.lines")[0].node.body[1].lineno
    assert {stop.extra for stop in talk.at("lines")} == {f"lines:{second}"}


def test_a_buffer_stops_when_realised_and_when_its_layout_is_decided(talk: Talk) -> None:
    (realised,) = talk.at("register_buffer")
    assert realised.locals["name"] == "'buf0'"
    decided = [stop for stop in talk.stops if stop.function.startswith(("decide_layout", "freeze_layout"))]
    assert decided
    assert all("name='buf0', layout=FlexibleLayout" in stop.locals["self"] for stop in decided)


def test_a_pair_stops_when_it_is_tried_for_fusion(talk: Talk) -> None:
    tried = talk.at("can_fuse")
    assert tried
    assert {stop.extra for stop in tried} == {"('op0', 'op1')"}


def test_a_kernel_stops_when_tiled_and_when_generated(talk: Talk) -> None:
    assert talk.at("select_tiling")
    (generated,) = talk.at("define_kernel")
    assert generated.locals["kernel_name"] == f"'{KERNEL}'"


def test_the_client_s_own_breakpoints_live_beside_those_of_the_command_line(talk: Talk) -> None:
    assert {stop.line for stop in talk.at("flush")} == {own_line()}
    (last,) = talk.at("<module>")
    assert (last.line, Path(last.file)) == (8, talk.cwd / "script.py")


def test_a_condition_that_fails_is_said_once_and_the_compile_goes_on(talk: Talk) -> None:
    assert len(re.findall(r"the condition of .*LoopLevel\.lines failed: AttributeError", talk.err)) == 1


def test_the_script_ends_by_itself_and_the_dump_is_made(talk: Talk) -> None:
    assert talk.status == 0, talk.err
    assert talk.out.startswith("done (8, 64)\n")
    (path,) = talk.cwd.glob("torch_compile_debug/run_*")
    run = read_run(path)
    assert run.manifest is not None
    assert (run.manifest.outcome, run.manifest.notes) == ("ok", ())
    assert len(run.graphs) == 1
    assert KERNEL in (run.graphs[0].path / "output_code.py").read_text()
    assert (talk.cwd / ".vscode" / "launch.json").exists()
