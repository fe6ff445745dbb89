"""The compiler's logs: prefixes of every torch, messages of several lines, files, and text that is none."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.logs import CompilerLogs
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.reader.logs.fusion_reasons import explain
from inductor_probe.reader.logs.lines import read_line
from inductor_probe.reader.logs.run_logs import read_logs
from tests.conftest import DUMPS

LOGGED = sorted(DUMPS.glob("*/*/stderr.txt"))
DOTTED = "[2026-11-21 02:40:38,375] "
GLOG = "V1121 02:22:22.682000 15139 torch/_inductor/scheduler.py:2372] [0/0] [__fusion] "


def logs_of(name: str) -> CompilerLogs:
    (run,) = (DUMPS / name).glob("run_*")
    return read_logs(read_run(run))


def read_text_as_log(folder: Path, text: str | bytes, name: str = "stderr.txt") -> CompilerLogs:
    run = folder / "torch_compile_debug" / "run_2026_11_21_02_22_10_123456-pid_15139"
    (run / "torchinductor").mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    return read_logs(DebugDir(run, (), None))


@pytest.mark.parametrize(
    ("line", "artifact", "trace", "pid", "text"),
    [
        (f"{DOTTED}[0/0] torch._inductor.scheduler.__fusion: [DEBUG] f 1", "fusion", "0/0", None, "f 1"),
        (f"{DOTTED}torch._inductor.scheduler: [DEBUG] scheduling x", None, None, None, "scheduling x"),
        (f"{DOTTED}[1/2_1] torch._dynamo.x: [INFO] ", None, "1/2_1", None, ""),
        ("V1121 02:28:01.063000 139809708297088 a.py:627] [0/0] [__fusion] m", "fusion", "0/0", None, "m"),
        (f"{GLOG}  two spaces", "fusion", "0/0", 15139, "  two spaces"),
        ("[rank1]:V1121 02:22:22.682000 7 torch/a.py:1] [!0/0] [__schedule] x", "schedule", "!0/0", 7, "x"),
        (f"{GLOG}cause \x1b[31m1.2\x1b[39mx", "fusion", "0/0", 15139, "cause 1.2x"),
        (GLOG.rstrip(), "fusion", "0/0", 15139, ""),
    ],
)  # fmt: skip
def test_prefixes_of_every_torch(
    line: str, artifact: str | None, trace: str | None, pid: int | None, text: str
) -> None:
    read = read_line(1, line)
    assert (read.artifact, read.trace_id, read.pid, read.text) == (artifact, trace, pid, text)
    assert read.source is not None


def test_a_line_without_a_prefix_is_counted(tmp_path: Path) -> None:
    logs = read_text_as_log(tmp_path, f"Warning: x\n  more\n{GLOG}found 0 possible fusions\n")
    assert (logs.files[0].lines, logs.files[0].unread, len(logs.fusions)) == (3, 0, 1)


@pytest.mark.parametrize("path", LOGGED, ids=lambda path: f"{path.parents[1].name}-{path.parent.name}")
def test_every_line_of_the_fixtures_is_understood(path: Path) -> None:
    (run,) = path.parent.glob("run_*")
    logs = read_logs(read_run(run))
    assert not logs.problems
    assert logs.files[0].lines == path.read_text().count("\n")
    assert sum(file.unread for file in logs.files) == 0
    assert logs.fusions
    assert all(log.complete for log in logs.fusions)


def test_rounds_as_torch_counts_them() -> None:
    forward = logs_of("torch-2.4.1-cpu/layernorm_grad").fusions[0]
    counts = [(part.number, part.nodes_before, part.nodes_after) for part in forward.rounds]
    assert counts == [(1, 5, 3), (2, 3, 1)]
    fused = [a for part in forward.rounds for a in part.attempts if a.outcome == "fused"]
    assert len(fused) == 4
    assert all(attempt.applying and attempt.span for attempt in fused)


def test_the_pass_after_the_rounds_is_a_round_without_a_number() -> None:
    log = logs_of("torch-2.13.0-cpu/multi_output_no_fuse").fusions[0]
    assert log.rounds[-1].number is None
    assert log.rounds[-1].candidates
    assert log.rounds[0].shared


def test_torch_2_2_lists_pairs_that_may_be_fused() -> None:
    (log,) = logs_of("torch-2.2.2-cpu/inplace_mutation").fusions
    possible = [a for part in log.rounds for a in part.attempts if a.outcome == "possible"]
    assert len(possible) == sum(part.possible or 0 for part in log.rounds) > 0
    assert all(attempt.first.startswith("buf") for attempt in possible)


def test_candidates_name_their_origins_and_those_fused_their_members() -> None:
    (forward, _) = logs_of("torch-2.11.0-cuda/layernorm_grad").fusions
    first, last = forward.rounds[0].candidates, forward.rounds[-1].candidates
    assert [candidate.name for candidate in first] == ["op0", "op1", "op3", "op4", "op5"]
    welford = first[0].members[0]
    assert (welford.kind, welford.details, welford.origins) == (
        "WelfordReduction", ("[768]", "welford_reduce"), ("var_mean",)
    )  # fmt: skip
    assert [member.node for member in last[0].members] == ["op0", "op1", "op3", "op4", "op5"]
    assert last[0].members[0].origins == ("var_mean",)


def test_logs_that_nothing_is_concluded_from_have_known_forms(tmp_path: Path) -> None:
    schedule, tiling = (GLOG.replace("fusion", name) for name in ("schedule", "loop_tiling"))
    logs = read_text_as_log(
        tmp_path,
        f"{schedule}Schedule:\n{schedule} [SchedulerNode(name='op0')]\n"
        # SIMDScheduling._codegen_reduction_with_sub_parent_epilogue
        f"{schedule}Sub-parent epilogue:\n{schedule} [SchedulerNode(name='op1')]\n"
        f"{tiling}Normalized Fused reads: FusedNormalizedReadsWrites(index_vars=[n0],\n{tiling}reads={{}})\n"
        f"{schedule.replace('682', '683')}Skedule:\n",
    )
    assert (logs.files[0].lines, logs.files[0].unread) == (7, 1)
    assert "not understood: [schedule] Skedule:" in str(logs.problems[0])


AUTOTUNE = """\
Autotune Choices Stats:
{"num_choices": 2, "num_triton_choices": 1, "best_kernel": "triton_mm_4"}
AUTOTUNE mm(256x256, 256x256)
strides: [256, 1], [256, 1]
dtypes: torch.float32, torch.float32
  triton_mm_4 0.0168 ms 100.0% ACC_TYPE='tl.float32', ALLOW_TF32=False
  mm inf ms 0.0%
SingleProcess AUTOTUNE benchmarking takes 0.3168 seconds and 8.8931 seconds precompiling for 2 choices
"""


def test_autotune_blocks_are_read_between_other_lines(tmp_path: Path) -> None:
    logs = read_text_as_log(tmp_path, f"hello\n{AUTOTUNE}{GLOG}found 0 possible fusions\nbye\n")
    (block,) = logs.autotunes
    assert block.operation == "mm(256x256, 256x256)"
    times = [(choice.name, choice.ms) for choice in block.choices]
    assert times == [("triton_mm_4", 0.0168), ("mm", float("inf"))]
    assert block.choices[0].config.startswith("ACC_TYPE")
    assert not logs.problems


def test_a_timed_fusion(tmp_path: Path) -> None:
    sides = "fusing OrderedSet(['buf0']) with OrderedSet(['buf1'])"
    slow = f"cannot fuse (benchmark): {sides} cause \x1b[31m1.234\x1b[39mx slowdown"
    fast = "can fuse (benchmark): fusing {'buf0'} with {'buf1'} cause \x1b[32m2.5\x1b[39mx speedup"
    combo = "can fuse (benchmark): fusing causes 1.5x speedup"
    logs = read_text_as_log(tmp_path, "".join(f"{GLOG}{text}\n" for text in (slow, fast, combo)))
    assert not logs.problems
    timed = logs.fusions[0].rounds[0].benchmarks
    assert [(row.first, row.second, row.faster, row.factor) for row in timed] == [
        (("buf0",), ("buf1",), False, 1.234), (("buf0",), ("buf1",), True, 2.5), ((), (), True, 1.5)
    ]  # fmt: skip


# Scheduler.speedup_by_fusion.log_fusion; Scheduler._fusion_memory_update;
# CUDACombinedScheduling._benchmark_nvgemm_module, twice
NOTES = """\
can fuse (assumed): fusing OrderedSet(['buf0']) with OrderedSet(['buf1', 'buf2']) (benchmarking skipped)
fusion memory simulation ended with 3145728 live bytes; expected 3149824
NVGEMM fused kernel compilation failed for /tmp/torchinductor_me/ab/cab.py: RuntimeError: no kernel
NVGEMM fused kernel benchmark failed for /tmp/torchinductor_me/ab/cab.py: RuntimeError: CUDA error
""".splitlines()


@pytest.mark.parametrize("note", NOTES)
def test_what_torch_says_beside_fusions_is_a_note_of_the_round(tmp_path: Path, note: str) -> None:
    logs = read_text_as_log(tmp_path, f"{GLOG}fusing op0 with op1\n{GLOG}{note}\n{GLOG}fusing op2 with op3\n")
    assert not logs.problems
    (part,) = logs.fusions[0].rounds
    assert part.notes == (note,)
    assert [attempt.second for attempt in part.attempts] == ["op1", "op3"]
    assert not part.benchmarks  # nothing was timed


def test_a_pair_that_would_raise_peak_memory_is_refused_for_that(tmp_path: Path) -> None:
    # Scheduler._can_fuse_peak_memory_check
    line = "memory-timeline fusion rejected op0_op1 with op4: estimated peak delta 1048576 bytes"
    logs = read_text_as_log(tmp_path, f"{GLOG}found 1 possible fusions\n{GLOG}{line}\n")
    assert not logs.problems
    (row,) = logs.fusions[0].rounds
    (attempt,) = row.attempts
    assert (attempt.first, attempt.second, attempt.outcome) == ("op0_op1", "op4", "refused")
    assert explain(attempt.reason or "")[1] == (("peak_delta_bytes", 1048576),)


def test_loops_that_were_not_reindexed_are_a_note(tmp_path: Path) -> None:
    # Scheduler._reindexing_regresses_memory_coalescing; MemoryCoalescing is a dataclass of tiling_utils.py
    coalescing = "MemoryCoalescing(coalesced=4096, uncoalesced=64)"
    line = (
        f"rejecting reindex of op0 and op1: unfused memory ({coalescing}, {coalescing}) (cost=8448), "
        f"fused memory {coalescing} (cost=12544)"
    )
    logs = read_text_as_log(tmp_path, f"{GLOG.replace('fusion', 'loop_ordering')}{line}\n")
    assert not logs.problems
    assert logs.fusions[0].rounds[0].notes == (line,)
    assert not logs.fusions[0].rounds[0].attempts


def test_a_traceback_with_empty_lines_belongs_to_its_note(tmp_path: Path) -> None:
    # Scheduler.speedup_by_combo_kernel, with exc_info: the prefix is on every line
    note = """\
ComboKernel benchmark: 1-th subkernel failed in the pool
Traceback (most recent call last):
  File "/venv/torch/_inductor/scheduler.py", line 12849, in speedup_by_combo_kernel
    future.result()
RuntimeError: out of resources

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
RuntimeError: no result"""
    lines = "".join(f"{GLOG}{line}\n" for line in note.split("\n"))
    logs = read_text_as_log(tmp_path, f"{lines}{GLOG}fusing op0 with op1\n")
    assert not logs.problems
    (part,) = logs.fusions[0].rounds
    assert part.notes == (note,)
    assert len(part.attempts) == 1
    other = f"{GLOG}fusing op0 with op1\n{GLOG}\n{GLOG}a line of no form\n"
    assert read_text_as_log(tmp_path, other).files[0].unread == 2


def test_a_line_of_an_unknown_form_is_a_problem_with_its_place(tmp_path: Path) -> None:
    logs = read_text_as_log(
        tmp_path, f"{GLOG}found 0 possible fusions\n{GLOG.replace('682', '683')}fuzing a\n"
    )
    assert [str(problem).rpartition("/")[2] for problem in logs.problems] == [
        "stderr.txt:2: not understood: [fusion] fuzing a"
    ]
    assert logs.files[0].unread == 1


def test_a_reason_may_hold_colons_and_more_lines(tmp_path: Path) -> None:
    text = f"{GLOG}cannot fuse op1 with op2: a: b\n{GLOG}  a detail of it\n"
    (attempt,) = read_text_as_log(tmp_path, text).fusions[0].rounds[0].attempts
    assert (attempt.first, attempt.second, attempt.reason) == ("op1", "op2", "a: b\n  a detail of it")


def test_lines_of_another_process_beside_the_run_are_not_its_own(tmp_path: Path) -> None:
    begin = "===== attempting fusion (1/10): 1 nodes =====\n"
    other = GLOG.replace("15139", "99")
    logs = read_text_as_log(tmp_path, f"{other}{begin}{GLOG}{begin}")
    assert len(logs.fusions) == 1
    (tmp_path / "stderr.txt").unlink()
    assert read_text_as_log(tmp_path, f"{other}{begin}", "other.log").files == ()


def test_what_probe_dump_kept_is_taken_before_what_lies_beside(tmp_path: Path) -> None:
    text = f"{GLOG}===== attempting fusion (1/10): 1 nodes =====\n{GLOG}fusing op0 with op1\n"
    read_text_as_log(tmp_path, text)
    kept = tmp_path / "torch_compile_debug" / "run_2026_11_21_02_22_10_123456-pid_15139" / "probe_logs"
    kept.mkdir()
    (kept / "fusion.log").write_text(text)
    score = "torch/_inductor/scheduler.py:9] [0/0] [__loop_ordering] op0 and op1 has 64 shared data\n"
    (kept / "loop_ordering.log").write_text(f"V1121 02:22:22.682000 15139 {score}")
    logs = read_text_as_log(tmp_path, text)
    assert {file.path.parent.name for file in logs.files} == {"probe_logs"}
    (log,) = logs.fusions
    assert [row.amount for row in log.rounds[0].shared] == [64]
    assert len(log.rounds[0].attempts) == 1


def test_a_run_without_logs_reads_as_empty() -> None:
    assert logs_of("torch-2.13.0-cpu/hflip_cl") == CompilerLogs()


@pytest.mark.parametrize("damage", ["cut", "flip", "insert", "shuffle"])
def test_a_damaged_log_is_read_as_far_as_it_goes(tmp_path: Path, damage: str) -> None:
    source = (DUMPS / "torch-2.11.0-cuda" / "layernorm_grad" / "stderr.txt").read_bytes()[:12_000]
    rng = random.Random(7)  # noqa: S311 - damage, not secrets
    for _ in range(25):
        data = bytearray(source)
        match damage:
            case "cut":
                data = data[rng.randrange(len(data)) : rng.randrange(len(data))] or data[:100]
            case "flip":
                for _ in range(40):
                    data[rng.randrange(len(data))] = rng.randrange(256)
            case "insert":
                at = rng.randrange(len(data))
                data[at:at] = rng.choice([b"\0", b"\xff\xfe", b"\r", b"(" * 5000, b"'" * 999, b"\x1b[31m"])
            case "shuffle":
                lines = bytes(data).splitlines(keepends=True)
                rng.shuffle(lines)
                data = bytearray(b"".join(lines))
        logs = read_text_as_log(tmp_path, bytes(data).replace(b"1237 ", b"15139 "))
        assert sum(file.lines for file in logs.files) <= data.count(b"\n") + 1


MESSAGES = st.sampled_from([
    "===== attempting fusion (1/10): 3 nodes =====", "===== attempting fusion (2/10): 3 nodes =====",
    "cannot fuse op0 with op1: no shared data", "fusing op0 with op1", "found 3 possible fusions",
    "fuse_nodes_once, candidates:", "  SchedulerNode(name='op0'), Pointwise(['[8]', 'origins={a}'])",
    "  FusedSchedulerNode(nodes=op0_op1), snodes: [\"SchedulerNode(name='op0')\", '((((']",
    "completed fusion round (1/10): fused 3 nodes into 2 nodes", "===== fusion complete (1 iterations) =====",
    "op0 and op1 has 12 shared data", "Schedule:", " [SchedulerNode(name='op0')]", "",
    "Normalized Fused reads: FusedNormalizedReadsWrites(index_vars=[n0])", "possibly bad tiling: [{}]",
    "AUTOTUNE mm(1x1)", "  mm 1.0.0 ms 9.9.9% x", "Exception in compiling epilogue: x",
])  # fmt: skip
ARTIFACTS = st.sampled_from([
    "[__fusion] ", "[__loop_ordering] ", "[__schedule] ", "[__loop_tiling] ", "[__perf_hints] ", "", "[__x] ",
])  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(ARTIFACTS, st.one_of(MESSAGES, st.text(max_size=40))), max_size=30))
@example([("[__loop_tiling] ", "Normalized Fused reads: FusedNormalizedReadsWrites(" + "(" * 3000)])
@example([("[__fusion] ", "  SchedulerNode(name='op0'), Pointwise(['\\d', " + "[" * 3000)])
def test_any_sequence_of_messages_is_read(tmp_path: Path, lines: list[tuple[str, str]]) -> None:
    prefix = "V1121 02:22:22.682000 15139 torch/_inductor/scheduler.py:2372] [0/0] "
    text = "".join(f"{prefix}{artifact}{message}\n" for artifact, message in lines)
    logs = read_text_as_log(tmp_path, text)
    attempts = sum(len(part.attempts) for log in logs.fusions for part in log.rounds)
    known = ("cannot fuse op0", "fusing op0")
    assert attempts >= sum(
        artifact == "[__fusion] " and message.startswith(known) for artifact, message in lines
    )


def test_a_long_line_and_many_lines_are_read(tmp_path: Path) -> None:
    text = f"{GLOG}{'x' * 2_000_000}\n" + "[2026-11-21 02:40:38,375] " + "a.__b" * 100_000 + "\n"
    logs = read_text_as_log(tmp_path, text)
    assert logs.files[0].lines == 2


def test_a_log_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    read_text_as_log(tmp_path, f"{GLOG}found 0 possible fusions\n")
    (tmp_path / "loop.log").symlink_to(tmp_path / "loop.log")
    (tmp_path / "folder.log").mkdir()
    logs = read_text_as_log(tmp_path, f"{GLOG}found 0 possible fusions\n")
    assert len(logs.fusions) == 1
    shutil.rmtree(tmp_path / "folder.log")


def test_every_line_of_the_corpus_is_understood(corpus: Path) -> None:
    graphs = fusions = 0
    for run in sorted(corpus.glob("torch-2*/*/torch_compile_debug/run_*")):
        read = read_run(run)
        logs = read_logs(read)
        assert not logs.problems, run
        assert sum(file.unread for file in logs.files) == 0
        if "torch-2.1." not in str(run):  # it has no log of fusion
            graphs += len(read.graphs)
            fusions += len(logs.fusions)
            assert all(log.complete for log in logs.fusions)
    assert fusions == graphs > 290
