"""What only reads: a golden transcript of each tool, limits, names that go from answer to question."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from inline_snapshot import snapshot

import inductor_probe as ip
from inductor_probe.mcp_server.server import Server
from inductor_probe.mcp_server.tools import TOOLS
from tests.dumps import ANTIALIAS, FLIP, LATEST, TRAINING
from tests.mcp_server.talk import call, talk, text_of, transcript

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with dumps of real programs."""
    root = tmp_path_factory.mktemp("root")
    for name, dump in (("flip", FLIP), ("first", LATEST / "hflip_cf"), ("aa", ANTIALIAS), ("mlp", TRAINING)):
        shutil.copytree(dump, root / name)
    return root


@pytest.fixture
def server(root: Path) -> Server:
    return Server(root)


def test_a_server_that_may_not_run_lists_what_reads(server: Server) -> None:
    tools = talk(server, lambda client: client.list_tools()).tools
    assert [tool.name for tool in tools] == [tool.name for tool in TOOLS if tool.runs != "all"]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)


def test_tools_say_whether_they_only_read(root: Path) -> None:
    listed = talk(Server(root, allow_run=True), lambda client: client.list_tools())
    reads = {tool.name: tool.annotations.read_only_hint for tool in listed.tools if tool.annotations}
    assert reads == {tool.name: tool.runs == "nothing" for tool in TOOLS}
    assert 10 <= len(reads) <= 14
    assert len(listed.model_dump_json(by_alias=True, exclude_none=True)) < 29_000
    for tool in listed.tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert "trust" not in tool.input_schema["properties"]


def test_runs(server: Server, root: Path) -> None:
    assert transcript(call(server, "runs", targets=["flip"]), root) == snapshot("""\
run                                      torch   device  graphs      size  age
RUN  2.13.0  cpu          1  10.1 KiB  AGE
--
answer: "1 run"
data: ["verb", "version", "rows"]
""")


def test_why(server: Server, root: Path) -> None:
    assert transcript(call(server, "why", target="aa"), root) == snapshot("""\
model__0_inference_0.0  3 conclusions (1 missed, 1 analysis, 1 passed), no recorded decision
! missed at op1: 20.2 MiB
          about  kind    decision                                                 bytes
missed    op1    layout  op1 reads arg0_1 non-contiguously (5 loads, indirect  20.2 MiB
                         index along innermost loop x2, 256 steps; stride 1
                         along x1, 3 steps; 20.2 MiB); arg0_1 is
                         channels_last, op1 writes buf1 as transposed [0, 2,
                         1, 3] (read)
analysis  op3    layout  op3 reads buf1 as transposed [0, 2, 1, 3] and writes     3 MiB
                         buf3 as contiguous (3 MiB) (read)
  --all shows 1 decision more, which went well
not recorded in this dump: any decision (`probe dump SCRIPT` of this version records what torch
decides, and why)
probe kernels, probe fusion and probe layouts show all that the dump itself proves
data has 2 of 3 rows.causes; rest: {"target": "aa", "fields": ["rows.causes"], "limit": 20, "offset": 2}
--
answer: "model__0_inference_0.0  3 conclusions (1 missed, 1 analysis, 1 passed), no recorded decision"
data: ["verb", "version", "rows"]
cut: [{"key": "rows.looked_for", "shown": 8, "of": 19}, {"key": "rows.causes", "shown": 2, "of": 3},
{"key": "rows.causes.remark", "shown": 4, "of": 12}, {"key": "rows.causes.fx", "shown": 16, "of":
80}, {"key": "rows.causes.sources", "shown": 4, "of": 25}]
rest: {"tool": "why", "arguments": {"target": "aa", "fields": ["rows.causes"], "limit": 20,
"offset": 2}, "command": "probe why aa --json"}
""")


def test_explain(server: Server, root: Path) -> None:
    assert transcript(call(server, "explain", code="few-shared-bytes"), root) == snapshot("""\
few-shared-bytes  fusion
  torch decides which nodes are fused, and what keeps others apart
! refused: <first> and <second> are not fused
  cause       neither reads what the other writes, and what both read[, <shared bytes>,] is fewer
              than the [<threshold> ]bytes from which torch fuses such nodes
  in short    [<shared bytes> ]shared[ < <threshold> B]
  decided in  InductorChoices.can_fuse_horizontal (torch/_inductor/choices.py)
  example     (x + scalar, y * scalar)
  changed by  torch._inductor.config.score_fusion_memory_threshold: fuses independent nodes that
              share as little
  or by       probe whatif SCRIPT --fuse op3,op4: for these names alone
  results     not known to differ but by rounding: probe whatif compares them

operand       type           what it is
threshold     number, bytes  from which torch fuses such nodes
shared_bytes  size, bytes    that torch counts as shared
--
answer: "few-shared-bytes  fusion"
data: ["verb", "version", "rows"]
""")


def test_show(server: Server, root: Path) -> None:
    assert transcript(call(server, "show", name="op0", target="flip"), root) == snapshot("""\
op0  pointwise  SchedulerNode(ComputedBuffer) on cpu
  graph       model__0_inference_0.0
  links       capture.py:34 -> rev -> op0 -> cpp_fused_flip_0 -> output_code.py:89
  kernel      cpp_fused_flip_0, launched at output_code.py:89
              the launch writes buf0
  FX nodes    rev
              the only FX node of its kernel
  from        /repro/capture.py:34 in <lambda>: run(lambda x: x.flip(-1),
              T(1,3,224,224,dtype=torch.uint8).contiguous(memory_format=torch.channels_last))
  loops       224 x 224 x 3
  operations  2: load 1, store 1
  users       OUTPUT
  read at     ir_post_fusion.txt:1
writes
  buffer                   stride               format                      how
  buf0 u8[1, 3, 224, 224]  [150528, 1, 672, 3]  channels_last [0, 2, 3, 1]  contiguous
reads
  buffer                    stride               format                    how
  arg0_1 u8[1, 3, 224,      [150528, 1, 672, 3]  channels_last [0, 2, 3,   contiguous in runs of 3,
  224]                                           1]                        reversed along p1
computes
  for p0 < 224, p1 < 224, p2 < 3
    buf0[0, p2, p0, p1] = arg0_1[0, p2, p0, 223 - p1]
  # arg0_1, buf0: u8[1, 3, 224, 224]
--
answer: "op0  pointwise  SchedulerNode(ComputedBuffer) on cpu"
data: ["verb", "version", "pages"]
""")


def test_layouts(server: Server, root: Path) -> None:
    assert transcript(call(server, "layouts", target="aa"), root) == snapshot("""\
model__0_inference_0.0  5 buffers: 3 contiguous, 1 channels_last, 1 transposed; accessed
non-contiguously: arg0_1
buffer  dtype    size              stride              format                 bytes  writer  readers
arg0_1  float32  [4, 3, 345, 456]  [471960, 1, 1368,   channels_last        7.2 MiB  input   op1
                                   3]
buf0    float32  [256, 1]          [1, 1]              contiguous             1 KiB  op0     op1
buf1    float32  [4, 3, 345, 256]  [264960, 256, 768,  transposed [0, 2,   4.04 MiB  op1     op3
                                   1]                  1, 3]
buf2    float32  [256, 1]          [1, 1]              contiguous             1 KiB  op2     op3
buf3    float32  [4, 3, 256, 256]  [196608, 65536,     contiguous             3 MiB  op3     OUTPUT
                                   256, 1]
  ! op1 reads arg0_1 non-contiguously (5 loads, indirect index along innermost loop x2, 256 steps;
    stride 1 along x1, 3 steps; 20.2 MiB); arg0_1 is channels_last, op1 writes buf1 as transposed
    [0, 2, 1, 3]
  - op3 reads buf1 as transposed [0, 2, 1, 3] and writes buf3 as contiguous (3 MiB)
data has 0 of 10 rows.reads; rest: {"target": "aa", "fields": ["rows"], "limit": 1, "offset": 0}
--
answer: "model__0_inference_0.0  5 buffers: 3 contiguous, 1 channels_last, 1 transposed; accessed
non-contiguously: arg0_1"
data: ["verb", "version", "rows"]
cut: [{"key": "rows.reads", "shown": 0, "of": 10}, {"key": "rows.origin.proofs", "shown": 0, "of":
5}, {"key": "rows.remarks", "shown": 0, "of": 4}, {"key": "rows.evidence", "shown": 0, "of": 9},
{"key": "rows.writes", "shown": 0, "of": 4}]
rest: {"tool": "layouts", "arguments": {"target": "aa", "fields": ["rows"], "limit": 1, "offset":
0}, "command": "probe layouts aa --json"}
""")


def test_fusion(server: Server, root: Path) -> None:
    assert transcript(call(server, "fusion", first="op0", second="op1", target="aa"), root) == snapshot("""\
op0 and op1  refused  in model__0_inference_0.0
! op0 and op1 are not fused: op0 writes buf0 at c0 over c0: 256, op1 reads it at c1 over c0: 4140,
  c1: 256; torch counts a buffer as shared only where both use it at the same index in the same
  loops, so it counts 0 bytes [accesses-differ] (inferred)
  probe why op0 op1 shows what was compared, and what changes it
  kernel  cpp_fused__to_copy_abs_…view_where_zeros_like_0 runs both all the same: a C++ function may
          have several loop nests

        op0                                            op1
does    pointwise                                      pointwise
writes  buf0                                           buf1
device  cpu                                            cpu
loops   256                                            1380 x 3 x 256
sizes   [256] and []                                   [1380, 3, 256] and []
from    iota, mul, add, convert_element_type, add_1,   iota, mul, add, convert_element_type, add_1,
        mul_1, sub, add_2, convert_element_type_1,     mul_1, sub, add_2, convert_element_type_1,
        clamp_min and 22 more                          clamp_min and 30 more
kernel  cpp_fused__to_copy_abs_…where_zeros_like_0     cpp_fused__to_copy_abs_…where_zeros_like_0
order  op0 before op1, which reads what op0 writes
loops  do not fit: the loops of op0 are (256), those of op1 (1380, 3, 256); C++ code has one loop
       nest for both only if these are equal, the first runs over all that the second reduces, or
       one is a single loop over as many elements; of the outer loops 0 agree
used by both
  ! buf0  op0 writes, op1 reads, no access is the same in both
      op0  c0 over c0: 256
... 4 more lines of the screen
data has 8 of 13 rows.causes.sources; rest: {"first": "op0", "second": "op1", "target": "aa",
"fields": ["rows.causes.sources"], "limit": 20, "offset": 8}
--
answer: "op0 and op1  refused  in model__0_inference_0.0"
data: ["verb", "version", "rows"]
cut: [{"key": "rows.facts.first", "shown": 8, "of": 32}, {"key": "rows.facts.second", "shown": 8,
"of": 40}, {"key": "rows.causes.fx", "shown": 8, "of": 41}, {"key": "rows.causes.sources", "shown":
8, "of": 13}]
rest: {"tool": "fusion", "arguments": {"first": "op0", "second": "op1", "target": "aa", "fields":
["rows.causes.sources"], "limit": 20, "offset": 8}, "command": "probe fusion op0 op1 aa --json"}
""")


def test_kernels(server: Server, root: Path) -> None:
    assert transcript(call(server, "kernels", target="aa"), root) == snapshot("""\
model__0_inference_0.0  1 kernel
kernel                                           how           nodes    reads    writes  calls
cpp_fused__to_copy_abs_…view_where_zeros_like_0  C++, 4/4 vec      4  7.2 MiB  7.04 MiB      1
left out at 100 columns: computes, loads, stores, from (a pipe has them)
data has 4 of 82 rows.fx_proofs; rest: {"target": "aa", "fields": ["rows.fx_proofs"], "limit": 20,
"offset": 4}
--
answer: "model__0_inference_0.0  1 kernel"
data: ["verb", "version", "rows"]
cut: [{"key": "rows.fx", "shown": 8, "of": 82}, {"key": "rows.fx_proofs", "shown": 4, "of": 82},
{"key": "rows.ops", "shown": 8, "of": 17}, {"key": "rows.sources", "shown": 4, "of": 14}, {"key":
"rows.args", "shown": 4, "of": 5}]
rest: {"tool": "kernels", "arguments": {"target": "aa", "fields": ["rows.fx_proofs"], "limit": 20,
"offset": 4}, "command": "probe kernels aa --json"}
""")


def test_diff(server: Server, root: Path) -> None:
    assert transcript(call(server, "diff", a="first", b="flip"), root) == snapshot("""\
A  ROOT/first/RUN
B  ROOT/flip/RUN

model__0_inference_0.0
  output 0 buf0 [1, 3, 224, 224]: was contiguous, is channels_last; stride: [150528, 50176, 224, 1]
  -> [150528, 1, 672, 3]
  input 0 arg0_1 [1, 3, 224, 224]: was contiguous, is channels_last; stride: [150528, 50176, 224, 1]
  -> [150528, 1, 672, 3]
  1 node does the same operations in other loops: op0
  1 of 1 kernel changed, in their code alone: -3 +7 lines

outputs
  output 0 buf0 [1, 3, 224, 224]
    was contiguous, is channels_last
    stride: [150528, 50176, 224, 1] -> [150528, 1, 672, 3]

inputs
  input 0 arg0_1 [1, 3, 224, 224]
    was contiguous, is channels_last
    stride: [150528, 50176, 224, 1] -> [150528, 1, 672, 3]

computation
  op0: the same operations in other loops (matched by the same operations)
    loops: [672, 224] -> [224, 224, 3]
    - load('arg0_1', 224*p0 - p1 + 223)   ir_post_fusion.txt:23
... 5 more lines of the screen
--
answer: "the graphs differ; model__0_inference_0.0: output 0 buf0 [1, 3, 224, 224]: was contiguous,
is channels_last; stride: [150528, 50176, 224, 1] -> [150528, 1, 672, 3]; model__0_inference_0.0:
input 0 arg0_1 [1, 3, 224, 224]: was contiguous, is channels_last; stride: [150528, 50176, 224, 1]
-> [15052..."
data: ["verb", "version", "diff", "summary"]
""")


def test_overview_without_measuring(server: Server, root: Path) -> None:
    assert transcript(call(server, "overview", program="aa"), root) == snapshot("""\
RUN: nothing was measured.
which kernels move the bytes
part                                               share     bytes  nodes   from
cpp_fused__to_copy_abs_…view_where_zeros_like_0  100.0 %  14.2 MiB  op0 +3  capture.py:50 +2
what was missed there
  share  about  decision
100.0 %  op1    op1 reads arg0_1 non-contiguously (5 loads, indirect index along innermost loop x2,
                256 steps; stride 1 along x1, 3 steps; 20.2 MiB); arg0_1 is channels_last, op1
                writes buf1 as transposed [0, 2, 1, 3] (read)
left out at 100 columns: cause (a pipe has them)
not looked at: nothing was measured: probe overview aa/RUN
measures it
--
answer: "RUN: nothing was measured."
page: "probe://page/RUN"
data: ["verb", "version", "run", "basis", "side", "parts", "costs", "tries", "left_out"]
""")


def test_expect(server: Server, root: Path) -> None:
    assert transcript(call(server, "expect", program="aa", kernels=["1"]), root) == snapshot("""\
model__0_inference_0.0
+ --kernels 1: 1 kernel: cpp_fused__to_copy_abs_…view_where_zeros_like_0
1 expectation: all hold
--
answer: "1 expectation: all hold"
data: ["verb", "version", "path", "ok", "graphs", "outcomes"]
""")


def test_names_go_from_answers_into_questions(server: Server) -> None:
    kernels = call(server, "kernels", target="aa", fields=["rows.name"]).structured_content
    assert kernels is not None
    for row in kernels["data"]["rows"]:
        assert row["name"] in text_of(call(server, "show", name=row["name"], target="aa"))


def test_all_rows_come_by_the_calls_in_rest(server: Server) -> None:
    arguments = {"fields": ["rows.code"], "limit": 20}
    codes: list[str] = []
    for _ in range(40):
        answer = call(server, "explain", **arguments).structured_content
        assert answer is not None
        codes += [row["code"] for row in answer["data"]["rows"]]
        if "rest" not in answer:
            break
        arguments = answer["rest"]["arguments"]
        assert answer["cut"][0]["of"] > answer["cut"][0]["shown"]
    assert codes == [row.code for row in ip.explain()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"frist": "op0"}, "[usage] why has no argument frist\nhint: did you mean first?"),
        ({"first": "op99", "target": "flip"}, "[not-found] model__0_inference_0.0 has no node"),
        ({"kinds": ["fusoin"]}, "[usage] why: Invalid enum value 'fusoin'"),
        ({"fields": ["rows.cause"], "target": "flip"}, "[not-found] the answer has no field rows.cause"),
        ({"limit": "many"}, "[usage] Expected `int | null`, got `str`"),
        ({"trust": True}, "[usage] why has no argument trust"),
    ],
)
def test_an_error_has_its_suggestion(server: Server, arguments: dict[str, object], message: str) -> None:
    result = call(server, "why", **arguments)
    assert result.is_error
    assert message in text_of(result)
    assert "\nhint: " in text_of(result)


def test_resources_are_pages_of_runs(tmp_path: Path) -> None:
    shutil.copytree(FLIP, tmp_path / "torch_compile_debug")
    (run,), server = (tmp_path / "torch_compile_debug").glob("run_*"), Server(tmp_path)
    for uri, text in (
        (run.name, "cpp_fused_flip_0"),
        (f"{run.name}/model__0_inference_0.0/code", "async_compile"),
    ):
        (content,) = talk(server, lambda client, uri=uri: client.read_resource(f"probe://run/{uri}")).contents
        assert text in getattr(content, "text", "")


def test_the_server_starts_without_torch_and_without_the_rooms_that_read() -> None:
    code = "import inductor_probe.mcp_server.server, sys; print([m for m in sys.modules if m in %r])"
    heavy = ("torch", "libcst", "inductor_probe.api", "inductor_probe.reader")
    ran = subprocess.run([sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
