from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inductor_probe.scenario import Case, Check, Scenario, current_case, run_case
from tests.scenarios.conftest import SCENARIOS


def double(x: torch.Tensor, *, by: int = 2) -> torch.Tensor:
    return x * by


def wrong(x: torch.Tensor) -> torch.Tensor:
    return x * 2 + 0.5


def build(case: Case) -> Check:
    reference = wrong if case["wrong"] else double
    x = torch.rand(case["size"], dtype=getattr(torch, case["dtype"]))
    return Check(double, (x,), references={"reference": reference}, options={"backend": "eager"})


SCENARIO = Scenario(
    build,
    defaults={"device": "cpu", "size": 4, "dtype": "float32", "wrong": False, "scale": 1.5},
    cases={"small": {}, "large": {"size": 64}, "cuda_small": {"device": "cuda"}, "bad": {"wrong": True}},
    choices={"dtype": ("float32", "float64")},
)
NO_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has what the test needs missing")


def run(*argv: str) -> int:
    with pytest.raises(SystemExit) as caught:
        SCENARIO.main(argv)
    assert isinstance(caught.value.code, int)
    return int(caught.value.code)


def test_list_is_an_aligned_table_that_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--list") == 0
    assert capsys.readouterr().out.splitlines() == [
        "case        device  size  dtype    wrong  scale",
        "small       cpu     4     float32  False  1.5",
        "large       cpu     64    float32  False  1.5",
        "cuda_small  cuda    4     float32  False  1.5",
        "bad         cpu     4     float32  True   1.5",
    ]


def test_one_line_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--case", "small", "--case", "large") == 0
    assert capsys.readouterr().out.splitlines() == [
        "small  float32 [4] stride [1]  max error: eager 0, reference 0  ok",
        "large  float32 [64] stride [1]  max error: eager 0, reference 0  ok",
    ]


def test_mismatch_is_shown_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--case", "bad", "--case", "small") == 1
    bad, small = capsys.readouterr().out.splitlines()
    assert bad.endswith("max error: eager 0, reference 0.5  MISMATCH")
    assert small.endswith("ok")


@pytest.mark.parametrize(
    ("argv", "error", "hint"),
    [
        (["--case", "smal"], "no case 'smal' in this scenario", "did you mean small or cuda_small?"),
        (["--case", "small", "--set", "sise=3"], "case small has no knob 'sise'", "did you mean size?"),
        (["--set", "size=big"], "knob size cannot be 'big'", "it takes a value of type int"),
        (["--set", "wrong=maybe"], "knob wrong cannot be 'maybe'", "it takes true or false"),
        (["--set", "dtype=float16"], "knob dtype cannot be 'float16'", "did you mean float64 or float32?"),
        (["--set", "size"], "--set 'size' is not knob=value", "for example --set device=cuda"),
        (["--set", "device=abacus", "--case", "small"], "case small cannot run: torch has no device", ""),
        (["--colour"], "unrecognized arguments: --colour", "--help lists its options"),
    ],
)
def test_bad_arguments_get_a_sentence_and_a_hint(
    capsys: pytest.CaptureFixture[str], argv: list[str], error: str, hint: str
) -> None:
    assert run(*argv) == 2
    said = capsys.readouterr()
    assert said.out == ""
    first, second = said.err.splitlines()
    assert first.startswith(f"error: {error}")
    assert second.startswith("hint: ")
    assert hint in second


@NO_CUDA
def test_case_without_its_device_is_skipped_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--set", "wrong=no") == 0
    assert "cuda_small  skipped: cuda is not available" in capsys.readouterr().out.splitlines()
    assert run("--case", "cuda_small") == 2
    assert "error: case cuda_small cannot run: cuda is not available" in capsys.readouterr().err


def test_set_is_typed_by_the_knob() -> None:
    (case,) = SCENARIO.select(["bad"], ["size=7", "wrong=false", "scale=2", "dtype=float64"])
    assert case.knobs == {"device": "cpu", "size": 7, "dtype": "float64", "wrong": False, "scale": 2.0}
    assert type(case["scale"]) is float
    assert SCENARIO.case("bad")["wrong"] is True


def test_running_case_is_known_while_it_runs_only() -> None:
    seen: list[Case | None] = []

    def watching(case: Case) -> Check:
        seen.append(current_case())
        return build(case)

    scenario = Scenario(watching, SCENARIO.defaults, SCENARIO.cases)
    run_case(scenario, scenario.case("small"))
    assert seen == [scenario.case("small")]
    assert current_case() is None


def test_cases_do_not_recompile_each_other() -> None:
    frames = torch._dynamo.utils.counters["frames"]
    before = frames["ok"]
    # Were the code object shared, the limit of 1 would leave the second and third size eager.
    with torch._dynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        for size in (3, 4, 5):
            (case,) = SCENARIO.select(["small"], [f"size={size}"])
            assert run_case(SCENARIO, case)[1]
    assert frames["ok"] - before == 3


def test_scenario_keeps_a_function_s_defaults_and_does_not_let_inputs_be_changed() -> None:
    def into(x: torch.Tensor, *, by: float = 3.0) -> torch.Tensor:
        return x.mul_(by)

    def in_place(case: Case) -> Check:
        return Check(into, (torch.ones(3),), options={"backend": "eager"})

    line, right = run_case(Scenario(in_place, {}, {"one": {}}), Case("one", {}))
    assert right, line


def test_step_calls_the_compiled_function_and_the_eager_one() -> None:
    called: list[object] = []

    def count(values: list[torch.Tensor]) -> None:
        values[0].add_(1)

    def twice(function: Callable[..., None], values: list[torch.Tensor]) -> list[torch.Tensor]:
        called.append(function)
        function(values)
        function(values)
        return values

    values = [torch.zeros(3)]
    check = Check(count, (values,), {"2": lambda x: x[0] + 2}, options={"backend": "eager"}, step=twice)
    line, right = run_case(Scenario(lambda _: check, {}, {"one": {}}), Case("one", {}))
    assert right, line
    assert line.endswith("max error: eager 0, 2 0  ok")
    assert called[0] is count
    assert called[1] is not count  # the compiled one
    assert values[0].tolist() == [2.0, 2.0, 2.0], (
        "only the compiled function writes into the inputs themselves"
    )


def test_many_outputs_are_compared_and_counted() -> None:
    def outputs(x: torch.Tensor) -> list[torch.Tensor]:
        return [x + i for i in range(7)]

    def last_one_wrong(x: torch.Tensor) -> list[torch.Tensor]:
        return [*outputs(x)[:-1], x]

    check = Check(outputs, (torch.ones(2),), {"wrong": last_one_wrong}, options={"backend": "eager"})
    line, right = run_case(Scenario(lambda _: check, {}, {"one": {}}), Case("one", {}))
    assert not right
    assert line.endswith("float32 [2] stride [1]; 3 more  max error: eager 0, wrong 6  MISMATCH")


def test_nan_of_a_later_output_is_not_lost() -> None:
    """`max` over several errors forgot a NaN that was not the first."""

    def two(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, x

    def nan(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, x * float("nan")

    check = Check(two, (torch.ones(2),), {"nan": nan}, options={"backend": "eager"})
    line, right = run_case(Scenario(lambda _: check, {}, {"one": {}}), Case("one", {}))
    assert not right, line
    assert "nan nan" in line


def test_nan_and_other_shapes_are_mismatches() -> None:
    for reference in (lambda x: x * float("nan"), lambda x: (x * 2)[:2]):
        check = Check(double, (torch.ones(4),), {"reference": reference}, options={"backend": "eager"})
        scenario = Scenario(lambda case, check=check: check, {}, {"one": {}})
        assert not run_case(scenario, scenario.case("one"))[1]


def test_list_of_a_script_needs_no_package_beside_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCENARIOS / "check_hflip.py"), "--list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()][:4] == [
        "case", "channels_first", "channels_last", "sliced",
    ]  # fmt: skip


@pytest.mark.compiles
def test_script_compiles_and_checks_itself(tmp_path: Path) -> None:
    words = ["--case", "separable_channels_last", "--set", "height=40", "--set", "width=50"]
    words += ["--set", "out_height=24", "--set", "out_width=20", "--threads", "1"]
    done = subprocess.run(
        [sys.executable, str(SCENARIOS / "check_interpolate_bilinear_aa.py"), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("separable_channels_last  float32 [4, 3, 24, 20] stride")
    assert done.stdout.endswith("  ok\n")


def test_a_list_whose_reader_has_gone_ends_without_a_traceback() -> None:
    script = SCENARIOS / "check_hflip.py"
    reads, writes = os.pipe()
    os.close(reads)
    ran = subprocess.run(
        [sys.executable, str(script), "--list"], stdout=writes, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writes)
    assert (ran.returncode, ran.stderr) == (0, "")
