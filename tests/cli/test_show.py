"""`probe show` as a user meets it: every kind of page, at every width, in JSON, and what is not there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from inline_snapshot import snapshot

import inductor_probe as ip
from tests.conftest import DUMPS, Probe, Ran, Screen
from tests.dumps import ANTIALIAS, FLIP, FOREACH, TRAINING, graph_in

SHORT_SOFTMAX = DUMPS / "torch-2.13.0-cpu-programs" / "short_softmax"
OLD = DUMPS / "torch-2.2.2-cpu" / "inplace_mutation"


def shown(ran: Ran) -> str:
    assert ran.status == 0, ran.err
    assert "\x1b" not in ran.out
    return ran.out


def test_a_graph_in_outline_fits_a_screen(screen: Screen) -> None:
    out = screen("show", FLIP, columns=80)
    assert out == snapshot("""\
model__0_inference_0.0  torch 2.13.0+cpu
  inputs     arg0_1 u8[1, 3, 224, 224] channels_last
  outputs    buf0 u8[1, 3, 224, 224] channels_last
  nodes      1 before fusion, 1 after: 1 pointwise
  allocates  147 KiB in 1 buffer
kernels
  kernel            how           nodes  reads    writes   calls
  cpp_fused_flip_0  C++, 0/1 vec  op0    147 KiB  147 KiB  1
from your lines
  line           code                                           FX nodes  nodes
  capture.py:34  run(lambda x: x.flip(-1…torch.channels_last))  rev       op0
remarks
  ! cpp_fused_flip_0: 1 of 1 loop nest is scalar (kernel reads and writes 294
    KiB); the dump does not record why
""")
    assert len(out.splitlines()) <= 24


def test_a_node_is_linked_from_the_line_to_the_launch(screen: Screen) -> None:
    assert screen("show", "op0", FLIP) == snapshot("""\
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
""")


def test_the_dumped_text_has_its_line_numbers(probe: Probe) -> None:
    out = shown(probe("show", "op0", FLIP, "--raw"))
    lines = (graph_in(FLIP) / "ir_post_fusion.txt").read_text().split("\n")
    number = next(at for at, line in enumerate(lines, start=1) if line.startswith("class op0_loop_body"))
    assert f"{number}  class op0_loop_body:" in out
    assert "computes\n" not in out


def test_a_long_loop_body_becomes_a_few_lines(screen: Screen) -> None:
    remarks, formula = screen("show", "op3", ANTIALIAS).split("\n- ")[1].split("computes\n")
    assert remarks == snapshot(
        "op3 reads buf1 as transposed [0, 2, 1, 3] and writes buf3 as contiguous (3 MiB)\n"
    )
    assert formula == snapshot("""\
  for p0 < 4, p1 < 3, p2 < 256, p3 < 256
    t0 = (f32(p2) + 0.5) * 1.34765625
    i0 = max(i64(t0 - 1.34765625 + 0.5), 0)
    i1 = min(i64(t0 + 1.34765625 + 0.5), 345) - i0
    f(j) = where(j < i1, max(1.0 - abs((f32(j + i0) - t0 + 0.5) * 0.7420289855072464), 0.0), 0.0)
           / buf2[p2, 0]
    g(j) = buf1[p0, p1, min(i0 + j, 344), p3] * f(j)
    buf3[p0, p1, p2, p3] = g(0) + g(1) + g(2)
  # buf1: f32[4, 3, 345, 256]
  # buf2: f32[256, 1]
  # buf3: f32[4, 3, 256, 256]
  # an index that is a loaded value is taken as it is: the kernel wraps no negative one
  # such an index is not checked against the size
""")


def test_a_fused_node_shows_its_members(screen: Screen) -> None:
    members, _, accesses = screen("show", "op2_op3_op4", TRAINING).partition("writes\n")
    assert members == snapshot("""\
model__0_forward_1.0
op2_op3_op4  FusedSchedulerNode
  graph        model__0_forward_1.0
  name         op2_op3_op4
  nodes        3 in it
  kernel       cpp_fused_gelu_native_dropout_0
  launched     output_code.py:138
  same ranges  yes, they fit into one nest
nodes
  node  does       writes             loops  FX nodes
  op2   pointwise  buf2 f32[32, 256]  8192   inductor_random_default, inductor_lookup_seed_default
  op3   pointwise  buf3 b8[32, 256]   8192   gt
  op4   pointwise  buf4 f32[32, 256]  8192   mul_4, mul_3, mul_2, add and 3 more
""")
    for words in ("only inside  buf2 f32[32, 256]\n", "op2 computes\n", "op3 computes\n", "op4 computes\n"):
        assert f"\n{words}" in accesses


def test_a_name_in_several_graphs_shows_each(probe: Probe) -> None:
    out = shown(probe("show", "op0", TRAINING))
    assert "model__0_forward_1.0" in out
    assert "model__0_backward_3.1" in out
    one = shown(probe("show", "op0", graph_in(TRAINING, "backward")))
    assert "model__0_forward_1.0" not in one


def test_a_buffer_shows_its_layout_and_what_computes_it(probe: Probe) -> None:
    out = shown(probe("show", "buf1", ANTIALIAS))
    assert out.startswith("buf1  transposed [0, 2, 1, 3]\n")
    assert "from     clone (inferred: the last FX node that op1 computes)" in out
    assert "computed by op1" in out
    assert "read by op3 3 times" in out


def test_an_input_has_no_producer(probe: Probe) -> None:
    out = shown(probe("show", "arg0_1", ANTIALIAS))
    assert "computed by" not in out
    assert "read by op1" in out


def test_a_kernel_may_be_named_by_its_start(probe: Probe, screen: Screen) -> None:
    assert screen("show", "cpp_fused_fl", FLIP) == snapshot("""\
cpp_fused_flip_0  C++, 0/1 vec
  graph             model__0_inference_0.0
  computes          prims.rev
  nodes             op0
  FX nodes          rev
                    1 in torch's provenance file, 1 inferred from data flow
  from              /repro/capture.py:34 in <lambda>: run(lambda x: x.flip(-1),
                    T(1,3,224,224,dtype=torch.uint8).contiguous(memory_format=torch.channels_last))
  reads             147 KiB, 1 load in its text
  writes            147 KiB, 1 store in its text
  openmp            parallel
  index width       int64
  index type        int64_t
  division by zero  raises
  defined at        output_code.py:33
arguments
  name      role  type            passed  size
  in_ptr0   in    const uint8_t*  arg0_1  uint8 [1, 3, 224, 224]
  out_ptr0  out   uint8_t*        buf0    uint8 [1, 3, 224, 224]
loops
  scalar  x0 224 (omp for) > x1 224 (GCC ivdep) > x2 3 (GCC ivdep); it has reversed      lines 45-61
          accesses
launches
  output_code.py:89  arg0_1, buf0
! 1 of 1 loop nest is scalar (kernel reads and writes 294 KiB); the dump does not record why
""")
    assert 'extern "C"' in shown(probe("show", "cpp_fused_flip_0", FLIP, "--code"))


def test_an_fx_node_shows_what_became_of_it(screen: Screen) -> None:
    assert screen("show", "rev", FLIP) == snapshot("""\
rev  FX node
  graph  model__0_inference_0.0
  from   /repro/capture.py:34 in <lambda>: run(lambda x: x.flip(-1),
         T(1,3,224,224,dtype=torch.uint8).contiguous(memory_format=torch.channels_last))
FX nodes
  node  calls              type                arguments    value in
  rev   prims.rev.default  u8[1, 3, 224, 224]  arg0_1, [3]  buf0
scheduler nodes
  node  does       writes                   kernel            proof
  op0   pointwise  buf0 u8[1, 3, 224, 224]  cpp_fused_flip_0  the only FX node of its kernel
kernels
  launched at        kernel            proof
  output_code.py:89  cpp_fused_flip_0  torch's provenance file, inferred from data flow
""")


def test_what_torch_lists_for_a_kernel_is_not_denied(probe: Probe) -> None:
    """`show log` said that no scheduler node is known to compute it."""
    out = shown(probe("show", "log", SHORT_SOFTMAX))
    assert "no scheduler node" not in out
    assert "op1   pointwise  buf1 f32[5, 10, 1]  cpp_fused__log_softmax_0" in out
    assert "output_code.py:135  cpp_fused__log_softmax_0  torch's provenance file\n" in out
    assert "FX nodes    log, sum_1, exp\n" in shown(probe("show", "op1", SHORT_SOFTMAX))
    assert "from     log (" in shown(probe("layouts", "buf1", SHORT_SOFTMAX))
    kernel = shown(probe("show", "cpp_fused__log_softmax_0", SHORT_SOFTMAX))
    assert "6 in torch's provenance file, 5 inferred from data flow" in kernel


def test_where_torchs_file_and_the_data_flow_differ_the_page_says_so(probe: Probe, tmp_path: Path) -> None:
    copy = shutil.copytree(SHORT_SOFTMAX, tmp_path / "copy")
    (file,) = copy.glob("run_*/torchinductor/*/inductor_provenance_tracking_node_mappings.json")
    mapping = json.loads(file.read_text())
    mapping["cppCodeToPost"]["cpp_fused__log_softmax_0:1"] = ["sub", "sub_1", "exp", "sum_1", "log", "tan"]
    file.write_text(json.dumps(mapping))
    unlisted = "! torch does not list amax for the kernel: inferred from data flow for op0"
    page = shown(probe("show", "cpp_fused__log_softmax_0", copy))
    assert f"{unlisted}\n" in page
    assert "lists tan for the kernel, but the dumped FX graph has no such node" in page
    for name in ("amax", "op0"):
        out = shown(probe("show", name, copy))
        assert unlisted.replace("the kernel", "cpp_fused__log_softmax_0") in out


def test_a_view_is_said_to_be_one(screen: Screen) -> None:
    assert screen("show", "permute_3", TRAINING) == snapshot("""\
permute_3  FX node
  graph  model__0_backward_3.1
FX nodes
  node       calls                 type         arguments
  permute_3  aten.permute.default  f32[64, 32]  tangents_1, [1, 0]
permute_3 is a view of tangents_1: nothing is computed for it
""")


@pytest.mark.parametrize("place", ["capture.py:67", "/repro/capture.py:67"])
def test_a_line_shows_what_became_of_it(place: str, screen: Screen) -> None:
    assert screen("show", place, ANTIALIAS) == snapshot("""\
/repro/capture.py:67  line
  graph  model__0_inference_0.0
  from   /repro/capture.py:67 in aa_separable: h = (x[..., xi] * xw).sum(-1)
FX nodes
  node   calls                 type                    arguments
  index  aten.index.Tensor     f32[4, 3, 345, 256, 5]  arg0_1, [None, None, None, clamp_max_2]
  mul_6  aten.mul.Tensor       f32[4, 3, 345, 256, 5]  index, div
  sum_3  aten.sum.dim_IntList  f32[4, 3, 345, 256]     mul_6, [-1]
scheduler nodes
  node  does       writes                    kernel              proof
  op1   pointwise  buf1 f32[4, 3, 345, 256]  cpp_fused__…like_0  inferred: between what it reads and
                                                                 what it writes; inferred: torch
                                                                 lists clone for the kernel, and no
                                                                 other node of it may compute them
kernels
  launched at         kernel                             proof
  output_code.py:593  cpp_fused__to_…where_zeros_like_0  torch's provenance file, inferred from
                                                         data flow
""")


def test_what_was_changed_in_place_is_read_under_its_first_name(probe: Probe) -> None:
    out = shown(probe("show", "op20", FOREACH))
    assert "mutates arg0_1" in out
    assert "arg10_1 f32[64, 64]  [64, 1]  contiguous [0, 1]  contiguous" in out


@pytest.mark.parametrize(
    ("arguments", "page", "keys"),
    [
        (["op1"], "NodePage", {"graph", "parts", "writes", "reads", "inside", "node_class"}),
        (["buf1"], "BufferPage", {"row", "producer"}),
        (["sum_3"], "TracePage", {"graph", "what", "lines", "fx", "nodes", "kernels", "holds", "maybe"}),
        (["capture.py:67"], "TracePage", {"what", "lines", "fx", "nodes", "kernels"}),
        (["cpp_fused_"], "KernelRow", {"name", "backend", "nodes", "launches"}),
        ([], "GraphPage", {"inputs", "outputs", "kernels", "lines", "summary", "unlinked"}),
    ],
)
def test_json(probe: Probe, arguments: list[str], page: str, keys: set[str]) -> None:
    ran = probe("show", *arguments, ANTIALIAS, "--json")
    assert ran.status == 0, ran.err
    (found,) = json.loads(ran.out)["pages"]
    assert found["page"]["record"] == page
    assert keys <= set(found["page"])


def test_json_of_a_node_has_formula_links_and_dependencies(probe: Probe) -> None:
    (shown,) = json.loads(probe("show", "op3", ANTIALIAS, "--json", "--raw").out)["pages"]
    (part,) = shown["page"]["parts"]
    assert part["row"]["link"]["launches"][0]["first"] == 593
    assert "sum_4" in part["row"]["link"]["fx"]
    assert {dep["record"] for dep in (*part["met"], *part["unmet"])} == {"MemoryDep"}
    assert part["formula"]["loops"][0] == {"variable": "p0", "size": 4, "reduced": False}
    assert shown["text"]["op3"][0] == "class op3_loop_body:"
    (shown,) = json.loads(probe("show", "op3", ANTIALIAS, "--json", "--limit", "0").out)["pages"]
    assert shown["text"]["op3"][0].startswith("for p0 < 4, ")
    store = shown["page"]["parts"][0]["formula"]["statements"][-1]
    assert (store["record"], store["target"]) == ("Store", "buf3[p0, p1, p2, p3]")


def test_json_has_the_text_of_a_kernel_where_it_is_asked_for(probe: Probe) -> None:
    for options, has_text in ([], False), (["--code"], True):
        (shown,) = json.loads(probe("show", "cpp_fused_", ANTIALIAS, "--json", *options).out)["pages"]
        assert (shown["page"]["name"] in shown["text"]) is has_text
        assert "source" not in shown["page"]


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["show", "buf9", ANTIALIAS], "has no node, buffer, kernel, FX node or operator buf9", "buf3"),
        (["show", "op2", OLD], "has no node op2", "torch before 2.5 calls nodes after their buffers: buf2"),
        (["show", "capture.py:1", ANTIALIAS], "has no source line capture.py:1", "capture.py:"),
        (["show", "op99", TRAINING], "none of the 2 graphs", None),
        (["show", "op0", FLIP, "--annotate"], "--annotate needs the name of a kernel", "probe kernels"),
        (["show", "op0", FLIP, "-o", "x.cpp"], "-o needs --annotate", "--annotate -o FILE"),
        (["show", "cpp_fused_", TRAINING / "nowhere"], "does not exist", None),
        (["show", "op0"], "no run in", "probe dump"),
    ],
)
def test_what_is_not_there_gets_a_sentence(
    probe: Probe, arguments: list[str | Path], error: str, hint: str | None
) -> None:
    ran = probe(*arguments)
    assert ran.status == 2
    assert error in ran.err
    assert hint is None or hint in ran.err
    assert "Traceback" not in ran.err


def test_several_kernels_that_start_so_are_named(screen: Screen) -> None:
    assert screen("show", "cpp_fused_", graph_in(TRAINING, "backward")) == snapshot("""\
2> error: 2 kernels of model__0_backward_3.1 start with cpp_fused_
2> hint: did you mean cpp_fused_sum_1?
exit 2
""")


def test_annotated_text_is_written_once(probe: Probe, tmp_path: Path) -> None:
    assert "op0" in shown(probe("show", "cpp_fused_flip_0", FLIP, "--annotate"))
    target = tmp_path / "flip.cpp"
    assert probe("show", "cpp_fused_flip_0", FLIP, "--annotate", "-o", target).status == 0
    text = target.read_text()
    assert "op0" in text
    target.write_text("mine")
    ran = probe("show", "cpp_fused_flip_0", FLIP, "--annotate", "-o", target)
    assert ran.status == 2
    assert "--force" in ran.err
    assert target.read_text() == "mine"
    assert probe("show", "cpp_fused_flip_0", FLIP, "--annotate", "-o", target, "--force").status == 0
    assert target.read_text() == text


def test_the_api_mirrors_the_command() -> None:
    graph = ip.open_graph(FLIP)
    assert repr(graph.show("op0")).startswith("op0  pointwise")
    assert graph.show().shown.page == graph.show().record
    assert "<pre" in graph.show("buf0")._repr_html_()
    with pytest.raises(ip.NotFoundError):
        graph.show("buf9")


WEIGHT_ONLY = """
import torch
import torch._inductor.config as config

config.freezing = True


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-128, 127, (256, 512), dtype=torch.int8))
        self.register_buffer("scale", torch.rand(256, dtype=torch.bfloat16) / 128)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight.to(x.dtype)) * self.scale


with torch.no_grad():
    torch.compile(Linear().eval())(torch.randn(4, 512, dtype=torch.bfloat16))
"""


@pytest.mark.compiles
@pytest.mark.usefixtures("warm")
def test_the_page_of_an_operator_has_the_patterns_that_nearly_matched(tmp_path: Path, probe: Probe) -> None:
    """Weights in 8 bits become no int8 product: the pattern has its conversion where the graph transposes."""
    (tmp_path / "woq.py").write_text(WEIGHT_ONLY)
    run = ip.dump(tmp_path / "woq.py", out=tmp_path)
    (page,) = json.loads(probe("show", "mm", run.path, "--json", cwd=tmp_path).out)["pages"]
    rewrites = page["page"]["rewrites"]
    assert {cause["sources"][0]["line"] for cause in rewrites} == {15}
    shown = probe("show", "aten.mul", run.path, cwd=tmp_path).out
    assert "2 of the 4 nodes of woq_int8" in shown
    assert "then it has prims.convert_element_type.default where the graph has aten.permute.default" in shown
    assert shown.index("rewrites") < shown.index("FX nodes") < shown.index("cpp_fused_mul_1")
