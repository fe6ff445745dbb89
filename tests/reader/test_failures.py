"""Exceptions of torch's compiles as it prints them, and its log for tlparse, damaged or not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inductor_probe.analysis.expect import check_compiles
from inductor_probe.analysis.run_remarks import run_remarks, why_empty
from inductor_probe.analysis.summary import next_steps
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.manifest import CompileFailure, FailureStage, GraphBreak, GraphRecord, LimitHit
from inductor_probe.reader.failures import Frame, failure_of, frames_in, stage_of
from inductor_probe.reader.logs.trace import failures_of
from inductor_probe.report.words.remarks import sentence
from tests.builders import manifest

RUN = "run_2026_11_21_08_35_26_491105-pid_5172"
LOWERING = """LoweringException: RuntimeError: refused
  target: aten.digamma.default
  args[0]: TensorBox(StorageBox(
      stack_traces = {,
        File "/m.py", line 8, in f,
    ))
Found from :
   File "/m.py", line 3, in g
    f(x)
  File "/m.py", line 9, in f
    return torch.digamma(y) - 1
           ^^^^^^^^^^^^^^^^
"""
COMPILER = """CppCompileError: C++ compile error

Command:
g++ a.cpp

Output:
a.cpp: In function 'void kernel()':
/tmp/x/a.cpp:12:34: warning: overflow
/tmp/x/a.cpp:13:5: error: no match for 'operator+'
/tmp/x/a.cpp:14:5: error: another
"""
BACKEND = """backend='inductor' raised:
RuntimeError: Complex dtype is not supported

While executing %nan_to_num : [num_users=1] = call_function[target=torch.nan_to_num](args = (%x,))
Original traceback:
  File "/m.py", line 6, in clean
    return torch.nan_to_num(spectrum) * 0.5

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
"""


WORKER = """SubprocException: An exception occurred in a subprocess:

Name=triton_poi_fused_add_0
Traceback (most recent call last):
  File "/lib/torch/_inductor/compile_worker/subproc_pool.py", line 400, in do_job
    result = job()
  File "/lib/torch/_inductor/runtime/triton_heuristics.py", line 600, in _precompile_config
    binary = triton.compile(*compile_args)
  File "/lib/triton/compiler/compiler.py", line 300, in make_ir
    return ast_to_ttir(fn)
triton.compiler.errors.CompilationError: at 9:11:
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
           ^
AssertionError('no such dtype')
"""


def test_the_line_of_the_user_is_not_one_of_torch_that_calls_a_custom_operator() -> None:
    """The line was `torch/_library/custom_ops.py:863: return self._opoverload(*args, **kwargs)`."""
    torch = (
        '  File "/lib/torch/_library/custom_ops.py", line 863, in __call__\n    return self._opoverload(x)\n'
    )
    text = f'fake went wrong\n\nfrom user code:\n  File "/m.py", line 10, in f\n    return bad(x)\n{torch}'
    one = failure_of("TorchRuntimeError", text, ())
    assert (one.where, one.line) == ("/m.py:10", "return bad(x)")
    assert failure_of("TorchRuntimeError", text.replace("/m.py", "/torch/_x/m.py"), ()).line is not None


def test_what_a_worker_that_compiles_for_triton_raised_is_read_from_its_text() -> None:
    one = failure_of("InductorError", WORKER, [Frame("/lib/torch/_inductor/graph.py", "compile_to_module")])
    assert (one.stage, one.exception, one.node) == (
        "triton-compiler", "CompilationError", "triton_poi_fused_add_0",
    )  # fmt: skip
    assert one.message == "AssertionError('no such dtype')"


@pytest.mark.parametrize(
    ("raised", "text", "found"),
    [
        (
            "InductorError", LOWERING.replace("from :", "from : "),
            (
                "RuntimeError", "refused", None, "aten.digamma.default", "/m.py:9",
                "return torch.digamma(y) - 1",
            ),
        ),
        ("InductorError", COMPILER, ("CppCompileError", "no match for 'operator+'", None, None, None, None)),
        (
            "BackendCompilerFailed", BACKEND,
            (
                "RuntimeError", "Complex dtype is not supported", "nan_to_num", None, "/m.py:6",
                "return torch.nan_to_num(spectrum) * 0.5",
            ),
        ),
        ("KeyError", "'x'", ("KeyError", "'x'", None, None, None, None)),
        ("InductorError", "AssertionError: ", ("AssertionError", "", None, None, None, None)),
        ("InductorError", "", ("InductorError", "", None, None, None, None)),
    ],
)  # fmt: skip
def test_what_torch_wraps_around_an_exception_is_taken_off(
    raised: str, text: str, found: tuple[str | None, ...]
) -> None:
    one = failure_of(raised, text, ())
    assert (one.exception, one.message, one.node, one.target, one.where, one.line) == found


@pytest.mark.parametrize(
    ("frames", "stage"),
    [
        (("_dynamo/convert_frame.py _compile", "_dynamo/symbolic_convert.py step"), "dynamo"),
        (("_dynamo/output_graph.py call_user_compiler", "/m.py backend"), "backend"),
        (("_functorch/aot_autograd.py f", "fx/interpreter.py run_node"), "aot-autograd"),
        (("_inductor/compile_fx.py _compile_fx_inner",), "inductor"),
        (("_inductor/graph.py run_node", "_inductor/lowering.py f", "_inductor/ir.py create"), "lowering"),
        (("_inductor/graph.py codegen", "_inductor/scheduler.py _init", "/m.py f"), "scheduling"),
        (("_inductor/graph.py codegen", "_inductor/codegen/cpp.py load"), "code-generation"),
        (("_inductor/graph.py compile_to_module", "_inductor/cpp_builder.py build"), "cpp-compiler"),
        (("_dynamo/convert_frame.py _compile", "_dynamo/guards.py build"), "guards"),
        (("/home/u/torch/m.py run",), "unknown"),
        ((), "unknown"),
    ],
)
def test_the_stage_is_that_of_the_innermost_frame_that_is_known(
    frames: tuple[str, ...], stage: FailureStage
) -> None:
    pairs = [name.split() for name in frames]
    paths = [(file if file[0] == "/" else f"/lib/torch/{file}", function) for file, function in pairs]
    assert stage_of(Frame(file, function) for file, function in paths) == stage
    printed = "".join(f'  File "{file}", line 3, in {function}\n    x\n' for file, function in paths)
    assert stage_of(frames_in(f"Traceback (most recent call last):\n{printed}E: x\n")) == stage


def write_trace(folder: Path, *metrics: object) -> Path:
    run = folder / RUN
    run.mkdir()
    log = folder / "tlparse" / "dedicated_log_torch_trace_x.log"
    log.parent.mkdir()
    prefix = "V1121 08:35:26.487000 5172 torch/_dynamo/utils.py:2012] "
    headers = [
        {"compilation_metrics": one, "frame_id": n, "frame_compile_id": 0} for n, one in enumerate(metrics)
    ]
    log.write_text(
        "".join(f"{prefix}{json.dumps(header)}\n" for header in headers) + f'{prefix}{{"compilation_metr'
    )
    return run


SOFT = {"fail_type": "Unsupported", "fail_reason": "no\n  Explanation: not traced\n", "co_name": "f"}


def test_an_older_dump_takes_failures_from_torch_s_log(tmp_path: Path) -> None:
    hard = {"fail_type": "InductorError", "fail_reason": "TypeError: x", "exception_stack_trace": ["?", 3]}
    run = write_trace(tmp_path, {"fail_type": None}, hard, SOFT, SOFT, {"fail_type": 3, "fail_reason": []}, 7)
    failed = CompileFailure("unknown", "TypeError", "x", "InductorError", compile_id="1/0")
    assert failures_of(run, None) == (failed,)  # whether the others only broke a graph is not known
    broken = manifest(graph_breaks=(GraphBreak("no", None, "2/0"),))
    assert [one.compile_id for one in failures_of(run, broken)] == ["1/0", "3/0"]
    assert failures_of(run, manifest(failures=())) == ()


def test_a_run_whose_only_compile_failed_says_so_and_not_that_nothing_was_compiled(tmp_path: Path) -> None:
    failed = CompileFailure("decomposition", "RuntimeError", "no", "BackendCompilerFailed", function="clean")
    run = DebugDir(tmp_path / RUN, (), manifest(failures=(failed,)))
    why = why_empty(run)
    assert (
        sentence(why) == "the compile of clean failed in the decomposition of an operator: RuntimeError: no"
    )
    assert run_remarks(run, compiled=False) == (why,)
    assert next_steps((), (), empty=why) == ()  # nothing is wrong with the machine
    lacking = DebugDir(
        run.path, (), manifest(failures=(CompileFailure("inductor", "InvalidCxxCompiler", "", ""),))
    )
    assert [step.kind for step in next_steps((), (), empty=why_empty(lacking))] == ["doctor"]


def test_a_function_that_raised_at_the_recompile_limit_did_not_go_on_eagerly(tmp_path: Path) -> None:
    failed = CompileFailure(
        "dynamo", "FailOnRecompileLimitHit", "no", "FailOnRecompileLimitHit", function="f"
    )
    hits = (LimitHit("f", "m.py:1", None), LimitHit("g", "m.py:2", None))
    remarks = run_remarks(
        DebugDir(tmp_path / RUN, (), manifest(failures=(failed,), limit_hits=hits)), compiled=True
    )
    assert [(one.code, one.number("function")) for one in remarks] == [
        ("compile-failed", "f"), ("recompile-limit", "g"),
    ]  # fmt: skip


def test_a_compile_that_did_not_finish_fails_the_expectation_that_none_failed(tmp_path: Path) -> None:
    """Of a process that died by a signal while it compiled: "0 failed compiles", and all held."""
    graphs = (GraphRecord("a", "0/0", "first"), GraphRecord("b", "1/0", "first", finished=False))
    run = DebugDir(tmp_path / RUN, (), manifest(failures=(), graphs=graphs))
    checked = check_compiles([run])
    assert checked.standing == "fails"
    assert [remark.subject.name for remark in checked.remarks] == ["b"]
    assert check_compiles([run], ["a"]).standing == "holds"
    failure = CompileFailure("lowering", "KeyError", "x", "InductorError", graph="b")
    once = DebugDir(tmp_path / RUN, (), manifest(failures=(failure,), graphs=graphs))
    assert [remark.code for remark in check_compiles([once]).remarks] == ["compile-failed"]
