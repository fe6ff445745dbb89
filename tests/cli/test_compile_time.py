"""`probe compile-time`: real scripts, with torch's own trace, and logs that are cut or mixed up."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

import inductor_probe as ip
from inductor_probe.analysis.compile_time import compile_times, phase_of, warm_compile
from inductor_probe.model.compile_log import CompileLog
from inductor_probe.model.compile_time import Compile, CompileTimes, Guard, Specialisation, kernel_digest
from inductor_probe.reader.logs.compile_time import read_compile_log
from inductor_probe.reader.logs.guards import guards_of, user_name
from inductor_probe.report.pages.compile_time import compile_time_pages, guard_pages, summary_sentence
from inductor_probe.report.terminal import to_text
from tests.conftest import PROBE

NETWORK = """
import torch

def scaled(values, factor):
    return torch.relu(values @ values.t()).softmax(-1) * factor

compiled = torch.compile(scaled, dynamic=False)
compiled(torch.ones(8, 8, requires_grad=True), 2.0).sum().backward()
compiled(torch.ones(4, 4, requires_grad=True), 2.0)
"""
LINES = (
    ("B", "dynamo", 0.0, "0/0"),
    ("B", "backend_compile", 1.0, "0/0"),
    ("B", "GraphLowering.run", 2.0, "0/0"),
    ("E", "GraphLowering.run", 5.0, "0/0"),
    ("i", "fx_graph_cache_miss", 5.5, "0/0"),
    ("B", "compile_file", 5.6, "None"),
    ("E", "backend_compile", 6.0, "0/0"),
    ("E", "dynamo", 10.0, "0/0"),
)


def event(ph: str, name: str, second: float, compile_id: str, **args: object) -> str:
    """Return an event as `ChromiumEventLogger` writes it."""
    body = {"name": name, "ts": second * 1e6, "args": {"compile_id": compile_id, **args}, "ph": ph}
    text = json.dumps(body, indent=0).replace("\n", "\n\t")
    return f'V1128 17:13:11.582000 31835 torch/_dynamo/utils.py:2350] {{"chromium_event": {{}}}}\n\t{text}\n'


def written(folder: Path, *lines: str) -> Path:
    log = folder / "dedicated_log_torch_trace_x.log"
    log.write_text("".join(lines))
    return log


def test_own_times_of_regions_add_up_to_the_whole(tmp_path: Path) -> None:
    log = read_compile_log(written(tmp_path, *(event(*line) for line in LINES)))
    row = compile_times("net.py", log, None, dumped=False)
    assert {one.phase: one.seconds for one in row.phases} == {"dynamo": 5.0, "lowering": 3.0, "other": 2.0}
    assert row.seconds == 10.0
    assert [one.cache.result for one in row.compiles if one.cache] == ["miss"]


def test_a_miss_names_what_an_earlier_key_of_the_same_graph_has_otherwise(tmp_path: Path) -> None:
    def compiled(begin: float, compile_id: str, threads: str, graph: str) -> list[str]:
        function = f"[cc] fx_kwargs[decompose]: <function f at 0x7f88{begin}>"
        parts = [
            f"[a{graph}] gm: {graph}", f"[b{threads}] inductor_config[cpp.threads]: {threads}", function,
        ]  # fmt: skip
        return [
            event("B", "dynamo", begin, compile_id),
            event("i", "fx_graph_cache_miss", begin + 1, compile_id, components=parts),
            event("E", "dynamo", begin + 2, compile_id),
        ]

    first = [
        *compiled(0, "0/0", "1", "add"),
        *compiled(10, "0/1", "2", "add"),
        *compiled(20, "1/0", "2", "mul"),
    ]
    row = compile_times("net.py", read_compile_log(written(tmp_path, *first)), None, dumped=False)
    caches = [one.cache for one in row.compiles]
    assert [cache.differs for cache in caches if cache] == [
        None, ("inductor_config[cpp.threads]: 2, and 1 before",), None,
    ]  # fmt: skip


GRAPH = """def forward(self, arg0_1):
    sin = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
    add = torch.ops.aten.add.Tensor(sin, {});  sin = None
    return (add,)
"""


def test_a_miss_of_a_warm_cache_names_the_line_of_the_graph_that_is_another(tmp_path: Path) -> None:
    def compiled(folder: str, number: str) -> CompileLog:
        lines = [
            event("B", "dynamo", 0, "0/0"),
            event(
                "i", "fx_graph_cache_miss", 1, "0/0", components=[f"[{number}] gm: {GRAPH.format(number)}"]
            ),
            event("E", "dynamo", 2, "0/0"),
        ]
        (tmp_path / folder).mkdir()
        return read_compile_log(written(tmp_path / folder, *lines))

    warm = warm_compile(compiled("second", "0.25"), compiled("first", "0.5"))
    line = "add = aten.add.Tensor(sin, {})"
    (reason,) = warm.reasons
    assert reason.endswith(f"a line of the graph: {line.format('0.25')}, and {line.format('0.5')} before")


FRAMES = """\
V1129 00:28:36.721000 1 torch/_logging/structured.py:28] {"str": ["/home/user/net.py", 2]}
V1129 00:28:36.721000 1 torch/_logging/structured.py:28] {"str": ["/lib/torch/nn/modules/module.py", 4]}
V1129 00:28:36.721000 1 torch/_dynamo/convert_frame.py:303] {"dynamo_start": {"stack": [\
{"line": 20, "name": "<module>", "filename": 2}, {"line": 9, "name": "__call__", "filename": 4}, \
{"line": 13, "name": "forward", "filename": 2}]}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}
V1129 00:28:36.877000 1 torch/fx/experimental/symbolic_shapes.py:7649] {"symbolic_shape_specialization": \
{"symbol": "s77", "sources": ["L['x'].size()[0]"], "value": "6", "user_stack": [{"line": 14, "name": \
"forward", "filename": 2, "loc": "return x + self.bias"}]}, "frame_id": 0, "frame_compile_id": 0}
""".replace("\\\n", "")


def test_a_dimension_that_became_a_constant_is_shown_with_its_line(tmp_path: Path) -> None:
    lines = [event(*LINES[0]), *FRAMES.splitlines(keepends=True), event(*LINES[-1])]
    row = compile_times("net.py", read_compile_log(written(tmp_path, *lines)), None, dumped=False)
    (one,) = row.compiles
    assert one.called == "/home/user/net.py:20"
    assert one.specialised == (
        Specialisation("x.size()[0]", "6", "/home/user/net.py:14", "return x + self.bias"),
    )
    assert "x.size()[0] was dynamic, and became the constant 6 at" in to_text(compile_time_pages([row]))


def test_of_what_was_compiled_again_the_guards_that_are_others_are_shown() -> None:
    def compiled(number: int) -> Compile:
        guards = (Guard("TENSOR_MATCH", "x", "float32 [4]"), Guard("EQUALS_MATCH", "n", f"n == {number}"))
        return Compile(f"0/{number}", "f", "net.py:3", 1.0, (), guards=guards)

    row = CompileTimes("net.py", False, 2.0, (compiled(0), compiled(1)), (), ())
    assert to_text(guard_pages([row]), width=80) == snapshot("""\
0/0 f: 2 guards
  value  has to be    for the line  code
  x      float32 [4]
  n      n == 0

0/1 f: 2 guards
  1 guard as in 0/0 (--all), and:
  value  has to be  for the line  code
  n      n == 1\
""")
    assert to_text(guard_pages([row], everything=True)).count("float32 [4]") == 2


def test_what_an_exception_ended_is_closed_with_what_is_around_it(tmp_path: Path) -> None:
    lines = [LINES[0], LINES[1], LINES[2], LINES[-1]]
    log = read_compile_log(written(tmp_path, *(event(*line) for line in lines)))
    assert [(one.name, one.seconds, one.ended) for one in log.regions] == [
        ("GraphLowering.run", 8.0, False), ("backend_compile", 9.0, False), ("dynamo", 10.0, True),
    ]  # fmt: skip


@given(
    st.lists(st.sampled_from([*LINES, "cut", "{", '\t{"ph": 1}', 'V] {"chromium_event": 3}']), max_size=20)
)
def test_a_log_that_is_cut_or_mixed_up_is_read_as_far_as_it_goes(
    tmp_path_factory: pytest.TempPathFactory, lines: list[object]
) -> None:
    texts = [event(*line) if isinstance(line, tuple) else f"{line}\n" for line in lines]
    log = read_compile_log(written(tmp_path_factory.mktemp("log"), *texts))
    row = compile_times("net.py", log, None, dumped=False)
    assert to_text(compile_time_pages([row]))
    assert to_text(guard_pages([row]))
    assert all(one.seconds >= 0 for one in row.phases)
    assert warm_compile(log, log).seconds == pytest.approx(row.seconds)


def test_a_kernel_has_one_digest_in_the_wrapper_and_in_the_file_made_of_it() -> None:
    kernel = '#include "x.h"\nextern "C" void kernel(float* a)\n{\n    a[0] = 1;\n}\n'
    assert kernel_digest(kernel) == kernel_digest(f"{kernel}\nstatic PyObject* kernel_py() {{\n}}\n") != ""
    assert kernel_digest(kernel + kernel) == kernel_digest("int x;") == ""


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("pass.post_grad_passes.remove_noop_ops", "post-grad-passes"),
        ("Scheduler.fused_nodes", "scheduling"),
        ("Scheduler.codegen", "code-generation"),
        ("PyCodeCache.load_by_key_path", "loading"),
        ("CachingAutotuner.benchmark_all_configs", "autotuning"),
        ("CacheBase.get_system.triton_key", "caches"),
        ("FxGraphCache.load", "caches"),
    ],
)
def test_regions_of_torch_belong_to_a_phase(name: str, phase: str) -> None:
    assert phase_of(name) == phase


TREE = """
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GLOBAL_STATE: ___check_global_state() against {"allow_tf32":false}
| +- GuardManager: source=L['x'], accessed_by=FrameLocalsGuardAccessor(key='x', framelocals_idx=1)
| | +- TENSOR_MATCH: check_tensor(L['self']._modules['lin']._parameters['bias'], Parameter, DispatchKeySet(\
CPU), torch.float32, device=None, requires_grad=True, size=[None, 8], stride=[8, 1])  # return \
F.linear(input, self.weight, self.bias)  # nn/modules/linear.py:134 in forward
| | +- EQUALS_MATCH: L['mode'] == 'relu'          # return x if mode == "relu" else -x  # net.py:11 in forward
| | | +- TYPE_MATCH: ___check_type_id(L['self'].scale, 940), type=<class 'float'>  # x * s  # net.py:10 in f
+- LAMBDA_GUARD: 2 <= L['x'].size()[0] <= 4096  # x + 1  # net.py:9 in forward (user code shown is first use)
+- LAMBDA_GUARD: L['n'] != 1  # (_prims_common/__init__.py:285 in check_contiguous_sizes_strides)
Guard latency = 90.96 us
""".replace("\\\n", "")


def test_guards_are_put_in_words_of_the_user() -> None:
    assert [(one.value, one.text, one.where) for one in guards_of(TREE)] == snapshot(
        [
            ("", "grad mode, autocast, threads, deterministic algorithms as they were", ""),
            (
                "self.lin.bias",
                "float32 [*, 8], strides [8, 1], requires grad",
                "nn/modules/linear.py:134",
            ),
            ("mode", "mode == 'relu'", "net.py:11"),
            ("self.scale", "of type float", "net.py:10"),
            ("x", "2 <= x.size()[0] <= 4096", "net.py:9"),
            ("n", "n != 1", "_prims_common/__init__.py:285"),
        ]
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("L['self'].__dict__['_modules']['lin']._parameters['bias']", "self.lin.bias"),
        ("not ___dict_contains('forward', L['self'].__dict__)", "'forward' not in self.__dict__"),
        ("___dict_contains('k', L['options'])", "'k' in options"),
    ],
)
def test_values_are_called_as_in_the_program(text: str, shown: str) -> None:
    assert user_name(text) == shown


@given(st.text(alphabet="|+- LG[]'_:#(),\nxyz", max_size=200))
def test_any_text_is_read_as_guards(text: str) -> None:
    assert all(one.kind for one in guards_of(f"+- LAMBDA_GUARD: {text}"))


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compile_time")
    (folder / "net.py").write_text(NETWORK)
    return folder


@pytest.mark.compiles
@pytest.mark.takes(25)
def test_a_script_is_run_with_empty_caches_and_then_with_full_ones(network: Path) -> None:
    (row,) = ip.compile_time(network / "net.py")
    first, backward, second = row.compiles
    assert (first.function, first.where.rpartition("/")[2]) == ("scaled", "net.py:4")
    assert (first.compile_id, backward.compile_id, second.compile_id) == ("0/0", "0/0", "0/1")
    assert backward.backward
    assert "size mismatch" in second.reason
    assert ("factor", "factor == 2.0") in {(one.value, one.text) for one in first.guards}
    assert sum(one.seconds for one in row.phases) == pytest.approx(row.seconds, rel=1e-6)
    kernels = {one.kernel for one in row.builds if one.kind == "kernel"}
    assert {name[:9] for name in kernels} == {"cpp_fused"}
    assert all(one.compile_id for one in row.builds if one.kernel)
    assert row.warm is not None
    assert row.warm.hits
    assert not row.warm.misses
    assert not row.dumped


@pytest.mark.compiles
@pytest.mark.usefixtures("warm")
def test_of_a_dump_the_log_beside_it_is_read(network: Path) -> None:
    run = ip.dump(network / "net.py", out=network / "out")
    (row,) = ip.compile_time(run)
    assert row.dumped
    assert [name for one in row.compiles for name in one.graphs] == [graph.name for graph in run.graphs]
    assert {one.kind for one in row.builds} >= {"kernel"}
    assert '"traceEvents"' in ip.compile_time(run).chrome
    compiling = ip.overview(run, measure=False).record.compiling
    assert compiling is not None
    assert (compiling.seconds, compiling.compiles, compiling.again) == (row.seconds, 3, 1)
    assert summary_sentence(compiling) in str(ip.overview(run, measure=False))


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("print(1)", (), "compiled nothing"),
        ("raise SystemExit(3)", (), "ended with status 3, and compiled nothing"),
        ("raise SystemExit(3)", ("--grow", "2,4"), "invalid numbers 2,4"),
        ("raise SystemExit(3)", ("--grow", "1,2,4"), "ended with status 3, and compiled nothing"),
        (
            "import torch._inductor.config",
            ("--set", "inductor.cpp.simdle=1"),
            "has no setting inductor.cpp.simdle",
        ),
    ],
)
def test_bad_input_gets_a_sentence(
    tmp_path: Path, text: str, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "script.py").write_text(text)
    command = [*PROBE, "compile-time", "script.py", "--no-warm", *arguments]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert message in ended.stderr
