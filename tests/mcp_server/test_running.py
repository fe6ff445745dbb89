"""A golden transcript of each tool that runs code, without what differs from call to call."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from inductor_probe.mcp_server.server import Server
from inductor_probe.mcp_server.tools import TOOLS
from tests.mcp_server.talk import call, masked, text_of

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.compiles, pytest.mark.takes(60)]
NETWORK = """
import torch

@torch.compile
def mirrored(image):
    return image.flip(-1)

mirrored(torch.randint(0, 255, (1, 3, 64, 64), dtype=torch.uint8))
"""
_VARYING = {"over_budget", "cut"}
"""Keys of a record that a busy machine adds, or leaves out."""
GOLDEN = {
    "accuracy": snapshot("""\
Right: 1 call judged.
calls, graphs, run, seconds, verb, verdict, version
"""),
    "bench": snapshot("""\
cpp_fused_flip_0_v2 is WRONG in 12,288 of 12,288 elements: ELEMENT AND TIMES
file, results, summary, verb, version
"""),
    "whatif": snapshot("""\
vectorising cpp_fused_flip_0: VERDICT
a, b, candidate, compile_s, graphs, summary, verb, version
"""),
}
ASKED: dict[str, dict[str, Any]] = {
    "accuracy": {"program": "flip"},
    "bench": {"target": "flip", "variants": ["cpp_fused_flip_0_v2=edited.py"], "budget": 0.3, "own": False},
    "whatif": {"program": "flip", "vectorise": ["op0"], "budget": 0.3},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    (root / "network.py").write_text(NETWORK)
    return root


@pytest.fixture(scope="module")
def dumped(root: Path) -> str:
    """What `dump` answers, after which the run flip is there, and an edited kernel of it."""
    answer = lines("dump", root, script="network.py", label="flip")
    code = next(root.glob("torch_compile_debug/run_*/torchinductor/*/output_code.py")).read_text()
    kernel = code[code.index("cpp_fused_flip_0 =") : code.index("''')") + 4]
    (root / "edited.py").write_text(kernel.replace("= tmp0;", "= tmp0 + 1;"))
    return answer


def lines(tool: str, root: Path, **arguments: Any) -> str:
    """Return what a client reads of a tool's answer: its sentence, and the keys of the record."""
    result = call(Server(root, allow_run=True), tool, **arguments, wait_s=500)
    assert not result.is_error, text_of(result)
    answer = result.structured_content or {}
    sentence = masked(answer["answer"], root)
    for pattern, mask in (
        (r"(?<=flip_0: ).*", "VERDICT"),
        (r"output 0\[.*", "ELEMENT AND TIMES"),
        (r"\d+(\.\d+)? (us|ms|s|min)\b", "TIME"),
    ):
        sentence = re.sub(pattern, mask, sentence)
    return f"{sentence}\n{', '.join(sorted(answer['data'].keys() - _VARYING))}\n"


def test_each_tool_that_runs_code_is_here() -> None:
    running = {tool.name for tool in TOOLS if tool.runs != "nothing"}
    assert running == {*ASKED, "dump", "overview", "expect"}, "those of the last two are in test_reading.py"


def test_dump(dumped: str) -> None:
    assert dumped == snapshot("""\
flip has 1 graph
exit_status, label, outcome, path, summary, verb, version
""")


@pytest.mark.parametrize("tool", ASKED)
def test_a_tool_that_runs_code(tool: str, root: Path, dumped: str) -> None:
    assert dumped
    assert lines(tool, root, **ASKED[tool]) == GOLDEN[tool]
