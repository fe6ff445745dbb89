"""A client stays below the root, and runs nothing that it may not, least of all of a stranger's dump."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inductor_probe.errors import ProbeError
from inductor_probe.mcp_server.confined import refuse_outside
from inductor_probe.mcp_server.server import Server, read_workload
from tests.dumps import FLIP
from tests.mcp_server.talk import call, talk, text_of

pytestmark = pytest.mark.filterwarnings("ignore")
EVIL = "open({marker!r}, 'w').close()\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    shutil.copytree(FLIP, root / "flip")
    (tmp_path / "secret").mkdir()
    shutil.copytree(FLIP, tmp_path / "secret" / "dump")
    (root / "link").symlink_to(tmp_path / "secret")
    return root


@pytest.mark.parametrize(
    "value",
    [
        "/etc/passwd",
        "..",
        "flip/../../secret",
        "link",
        "link/dump",
        "link/new",
        "op0_v2=/etc/passwd",
        "x=../y",
        "~root",
    ],
)
def test_an_argument_that_leads_out_is_refused(root: Path, value: str) -> None:
    for arguments in ({"target": value}, {"knobs": {"inductor.x": value}}, {"variants": [value]}):
        with pytest.raises(ProbeError, match="outside of"):
            refuse_outside(arguments, root)


@pytest.mark.parametrize(
    "value", ["op0", "flip", "net.py:12", "flip:1", "triton_…_3", "[few-shared-bytes]", "a.b/c", ""]
)
def test_a_name_is_none(root: Path, value: str) -> None:
    refuse_outside({"target": value}, root)


def test_a_link_in_a_dump_leads_nowhere(root: Path, tmp_path: Path) -> None:
    code = next(root.glob("flip/run_*/torchinductor/*/output_code.py"))
    (tmp_path / "private.py").write_text(code.read_text().replace("cpp_fused_flip_0", "cpp_private"))
    code.unlink()
    code.symlink_to(tmp_path / "private.py")
    assert "cpp_private" not in call(Server(root), "kernels", target="flip").model_dump_json()


@pytest.mark.parametrize(("reading", "opened"), [(True, ["inside"]), (False, ["inside", "OUT/private"])])
def test_a_process_opens_no_link_that_leads_out(
    root: Path, tmp_path: Path, reading: bool, opened: list[str]
) -> None:
    (tmp_path / "private").write_text("secret")
    (root / "inside").write_text("")
    (root / "to_private").symlink_to(tmp_path / "private")
    code = f"""
from pathlib import Path
from inductor_probe.mcp_server.confined import confine
confine(Path({str(root)!r}), reading={reading})
for name in ("inside", "to_private", "link/dump", "/proc/self/status", "OUT/private"):
    try:
        path = Path({str(root)!r}, name.replace("OUT", {str(tmp_path)!r}))
        list(path.iterdir()) if path.is_dir() else path.read_text()
        print(name)
    except PermissionError:
        pass
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line for line in ran.stdout.split() if line != "/proc/self/status"] == opened


def test_a_dump_that_is_a_link_is_not_listed(root: Path) -> None:
    assert "secret" not in call(Server(root), "runs").model_dump_json()


@pytest.mark.parametrize("tool", ["dump", "whatif", "bench", "accuracy"])
def test_what_runs_is_not_there(root: Path, tool: str) -> None:
    result = call(Server(root), tool, script="evil.py")
    assert result.is_error
    assert "Unknown tool" in text_of(result)


def test_a_process_that_reads_starts_none(root: Path) -> None:
    code = f"""
import subprocess
from pathlib import Path
from inductor_probe.errors import ProbeError
from inductor_probe.mcp_server.confined import confine
confine(Path({str(root)!r}), reading=True)
try:
    subprocess.run(["true"], check=False)
except ProbeError as error:
    print(error.message)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "this server runs nothing\n"


@pytest.mark.parametrize(("tool", "more"), [("overview", {}), ("expect", {"kernels": ["1"]})])
def test_a_script_is_not_run_where_a_run_may_be_read(
    root: Path, tmp_path: Path, tool: str, more: dict[str, object]
) -> None:
    (root / "evil.py").write_text(EVIL.format(marker=str(tmp_path / "marker")))
    result = call(Server(root), tool, program="evil.py", **more)
    assert "evil.py is a script, and this server runs none" in text_of(result)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("bench", {"target": "flip", "budget": 0.3}),
        ("whatif", {"program": "flip", "scalar": ["op0"], "budget": 0.3}),
        ("accuracy", {"program": "flip"}),
        ("overview", {"program": "flip", "budget": 0.3}),
    ],
)
def test_nothing_of_a_strangers_dump_runs(
    root: Path, tmp_path: Path, tool: str, arguments: dict[str, object]
) -> None:
    code = next(root.glob("flip/run_*/torchinductor/*/output_code.py"))
    code.write_text(EVIL.format(marker=str(tmp_path / "marker")) + code.read_text())
    result = call(Server(root, allow_run=True), tool, **arguments)
    assert not (tmp_path / "marker").exists()
    assert result.is_error or tool == "overview"
    assert not result.is_error or "trust" in text_of(result) or "script" in text_of(result)


@pytest.mark.parametrize("value", ["soon", None, True])
def test_a_wait_that_is_no_number_starts_nothing(root: Path, value: object) -> None:
    result = call(Server(root, allow_run=True), "dump", script="net.py", wait_s=value)
    assert "it is a number of seconds" in text_of(result)


def test_no_module_of_the_root_is_imported(root: Path, tmp_path: Path) -> None:
    for name in ("json", "msgspec", "inductor_probe", "typing"):
        (root / f"{name}.py").write_text(EVIL.format(marker=str(tmp_path / "marker")))
    assert not call(Server(root), "kernels", target="flip").is_error
    assert not (tmp_path / "marker").exists()


def test_a_frozen_workload_takes_no_other_arguments(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "workload.json"
    file.write_text(json.dumps({"target": "flip", "variants": ["cpp_fused_flip_0_v2=edited.cpp"]}))
    server = Server(root, workload=read_workload(file))
    tools = {tool.name: tool for tool in talk(server, lambda client: client.list_tools()).tools}
    assert {"bench", "why"} <= tools.keys()
    assert not {"dump", "whatif"} & tools.keys()
    assert "variants" not in tools["bench"].input_schema["properties"]
    assert "variants is fixed by the workload" in text_of(call(server, "bench", variants=["x=y"]))


def test_with_a_frozen_workload_nothing_else_may_run(root: Path) -> None:
    """`dump` and scripts could make anew what the workload freezes."""
    workload = {"target": "flip", "variants": ["cpp_fused_flip_0_v2=edited.cpp"]}
    with pytest.raises(ProbeError, match="would let a client change what --workload freezes"):
        Server(root, allow_run=True, workload=workload)
    tools = talk(Server(root, workload=workload), lambda client: client.list_tools()).tools
    running = [tool for tool in tools if tool.annotations and not tool.annotations.read_only_hint]
    assert [tool.name for tool in running] == ["bench"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ('{"target": "a"}', "names no variants"),
        ('{"variants": ["a"], "x": 1}', "no argument x"),
    ],
)
def test_a_workload_that_is_none_is_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "workload.json").write_text(text)
    with pytest.raises(ProbeError, match=message):
        read_workload(tmp_path / "workload.json")
