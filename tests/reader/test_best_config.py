"""Configs of Triton kernels: in real logs, and in files that inductor itself writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inductor_probe.model.code import Kernel, KernelComment
from inductor_probe.model.span import Problem
from inductor_probe.reader.tunings import DESCENT, cached_configs, logged_configs

NAME = "triton_poi_fused_add_0"
CODE = "cabc4defghijklmnopqrstuvwxyz.py"


def run_of(corpus: Path, name: str) -> Path:
    (run,) = (corpus / "torch-2.11.0-cuda" / name).glob("**/run_*")
    return run


def test_every_config_of_a_real_log_is_read_with_time_registers_and_spills(corpus: Path) -> None:
    problems: list[Problem] = []
    (tuning,) = logged_configs(run_of(corpus, "transpose_chain"), problems)
    assert not problems
    assert (tuning.operation, tuning.source, tuning.cached) == (
        "triton_poi_fused_add_mul_permute_0",
        "log",
        False,
    )
    assert len(tuning.choices) == 5
    best = tuning.choices[0]
    assert (best.name, best.ms, best.registers, best.spills) == (tuning.generated, 0.020992, 18, 0)
    assert best.config == (("XBLOCK", "8"), ("YBLOCK", "32"), ("num_warps", "4"), ("num_stages", "1"))
    assert tuning.span is not None
    line = tuning.span.path.read_text().splitlines()[tuning.span.first - 1]
    assert line.endswith(f"Benchmark all input configs for {tuning.operation}, get:")


def test_what_coordinate_descent_tried_belongs_to_the_same_kernel(corpus: Path) -> None:
    found = logged_configs(run_of(corpus, "mm_epilogue_maxautotune"), [])
    (tuning,) = [each for each in found if each.operation == "triton_poi_fused_add_relu_1"]
    assert [choice.kind for choice in tuning.choices].count(DESCENT) == 3
    chosen = next(choice for choice in tuning.choices if choice.name == tuning.generated)
    assert dict(chosen.config)["XBLOCK"] == "256"


def test_no_line_of_a_real_log_that_has_a_time_is_lost(corpus: Path) -> None:
    logs = sorted((corpus / "torch-2.11.0-cuda").glob("*/stderr.txt"))
    timed = re.compile(r"triton_heuristics\.py:\d+\](?: \[\S+\])* (COORDESC: )?XBLOCK.*: ([\d.]+|inf), nreg ")
    compared = 0
    for log in logs:
        run = run_of(corpus, log.parent.name) if list(log.parent.glob("**/run_*")) else None
        if run is None or len(list(log.parent.glob("**/run_*"))) != 1:
            continue
        lines = sum(timed.search(line) is not None for line in log.read_text(errors="replace").splitlines())
        choices = sum(len(each.choices) for each in logged_configs(run, []))
        assert choices == lines, log
        compared += lines
    assert compared > 50


def kernel(place: Path) -> Kernel:
    comment = KernelComment(path=str(place))
    return Kernel(NAME, "triton", "", (), comment=comment)


def saved(cache_dir: Path, monkeypatch: pytest.MonkeyPatch, compiled: str | None) -> Path:
    """Let inductor save a config; return where the code of its kernel belongs."""
    pytest.importorskip("triton", reason="triton is not installed")
    from torch._inductor.runtime.autotune_cache import AutotuneCache  # noqa: PLC0415 - torch, where needed
    from triton import Config  # noqa: PLC0415

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache_dir))
    code = cache_dir / "ab" / CODE
    cache = AutotuneCache.create({"autotune_local_cache": True}, str(code), "hash of configs")
    assert cache is not None
    config = Config({"XBLOCK": 256}, num_warps=8, num_stages=1)
    cache.save(config, 12_000_000, found_by_coordesc=True, triton_cache_hash=compiled)
    return code


def test_a_config_that_inductor_saved_is_read_and_tied_to_its_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Triton's cache beside it tells the kernel: other kernels may share the folder."""
    code = saved(tmp_path, monkeypatch, "FOLDER")
    problems: list[Problem] = []
    assert cached_configs([kernel(code)], problems) == (), "nothing says whose it is"
    compiled = tmp_path / "triton" / "0" / "FOLDER"
    compiled.mkdir(parents=True)
    (compiled / f"{NAME}.json").write_text("{}")
    (found,) = cached_configs([kernel(code)], problems)
    assert not problems
    assert (found.operation, found.source, found.generated) == (NAME, "cache", "config_1")
    (choice,) = found.choices
    assert choice.config == (("XBLOCK", "256"), ("num_warps", "8"), ("num_stages", "1"))
    assert (choice.ms, choice.kind) == (None, DESCENT)
    (tmp_path / "ab" / "cut.best_config").write_text('{"XBLOCK": ')
    assert len(cached_configs([kernel(code)], problems)) == 1
    assert "cut.best_config:1: not a best config" in str(problems[0])


def test_a_config_that_coordinate_descent_found_is_tied_where_no_other_kernel_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torch does not note the compiled kernel in it (seen on 2.11 and 2.13)."""
    code = saved(tmp_path, monkeypatch, None)
    assert cached_configs([kernel(code)], []) == (), "the kernel's code is not there"
    code.write_text("# a kernel")
    (found,) = cached_configs([kernel(code)], [])
    assert (found.operation, found.choices[0].kind) == (NAME, DESCENT)
    code.with_name(CODE.replace("z.py", "y.py")).write_text("# another one in the same folder")
    assert cached_configs([kernel(code)], []) == ()


@pytest.mark.parametrize(
    "place", ["", "relative/ab/" + CODE, "/etc/passwd", "/x/cd/" + CODE, "/no/such/ab/" + CODE]
)
def test_a_place_that_is_none_of_inductors_cache_is_not_looked_at(place: str) -> None:
    problems: list[Problem] = []
    assert cached_configs([kernel(Path(place))], problems) == ()
    assert not problems
