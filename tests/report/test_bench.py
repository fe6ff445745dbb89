from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from inductor_probe.model.bench import Ablation, BenchResult, Comparison, Measurement, Verdict
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.remark import Remark, Subject, measured, reported
from inductor_probe.model.timing import FlopCount, Variant
from inductor_probe.report.pages.bench import bench_page
from inductor_probe.report.terminal import to_text
from inductor_probe.report.units import duration
from inductor_probe.report.words.bench import clause, result_sentence, wrong_words
from inductor_probe.report.words.remarks import sentence

CHANGED = measured("input-changed", "analysis", Subject("variant", "k"), {"input": 0})
RAISED = reported("raises ValueError: x", Subject("variant", "k"))
KERNEL = "cpp_fused__to_copy_abs_add_arange_clamp_div_index_lt_mul_rsub_sub_sum_unsqueeze_0"


def comparison(
    low: float,
    high: float,
    verdict: Verdict,
    *,
    names: tuple[str, str] = ("k alone", "k_v2 alone"),
    reason: Remark | None = None,
    remarks: tuple[Remark, ...] = (),
    excluded: int = 0,
) -> Comparison:
    ratio = math.sqrt(low * high)
    a, b = (
        Measurement(name, 800, time, 2e-7) for name, time in zip(names, (1e-5, ratio * 1e-5), strict=True)
    )
    return Comparison(a, b, ratio, low, high, verdict, (ratio,) * 3, 412, excluded, reason, remarks)


def result(*comparisons: Comparison, variants: tuple[Variant, ...] = ()) -> BenchResult:
    return BenchResult(
        "model__0_inference_0.0",
        ("k",),
        "1x3x224x224 uint8 contiguous",
        "random",
        "warm",
        1,
        3,
        0.01,
        variants,
        comparisons,
        (),
        (),
    )


@pytest.mark.parametrize(
    ("low", "high", "verdict", "said"),
    [
        (1.016, 1.022, "SLOWER", "is 1.9 % slower than k (1.6 to 2.2 %"),
        (0.90, 0.94, "FASTER", "is 8.0 % faster than k (6.0 to 10.0 % less time"),
        (2.0, 2.1, "SLOWER", "takes 2.05x as long as k (2.00 to 2.10x"),
        (0.25, 0.26, "FASTER", "is 3.92x as fast as k (3.85 to 4.00x"),
        (0.997, 1.004, "SAME", "takes the same time as k within 1 % (-0.3 to +0.4 %"),
        (0.98, 1.05, "UNDECIDED", "against k is UNDECIDED (-2.0 to +5.0 %"),
    ],
)
def test_a_comparison_in_words(low: float, high: float, verdict: Verdict, said: str) -> None:
    found = comparison(low, high, verdict)
    assert clause(found, 3, 0.01) == f"k_v2 {said}, 3 processes, 412 quads)"


def test_the_report_ends_with_one_sentence() -> None:
    slower, same = comparison(1.016, 1.022, "SLOWER", excluded=5), comparison(0.997, 1.004, "SAME")
    said = result_sentence(result(same, slower, same))
    assert said == (
        "k_v2 is 1.9 % slower than k (1.6 to 2.2 %, 3 processes, 412 quads, 5 disturbed ones left out); "
        "2 others take the same time within 1 %."
    )
    assert to_text(bench_page(result(same, slower, same)), 400).splitlines()[-1] == said
    wrong = Variant("k_v3", False, None, 3, 9)
    assert result_sentence(result(variants=(wrong,))) == "k_v3 is wrong and not timed."
    assert result_sentence(result()) == "Nothing was compared."
    alone = replace(result(), alone=(Measurement("k alone", 24, 1e-5, 1e-7),))
    assert result_sentence(alone) == "k takes 10.00 us per call; nothing to compare with."
    assert "3 comparisons are not decided" in result_sentence(
        result(*[comparison(0.9, 1.1, "UNDECIDED")] * 3)
    )
    assert "2 more differ" in result_sentence(result(*[slower] * 5))


@pytest.mark.parametrize("width", [80, 120, 10_000])
def test_the_table_fits_its_terminal_and_tells_long_names_apart(width: int) -> None:
    long = comparison(1.016, 1.022, "SLOWER", names=(f"{KERNEL} alone", f"{KERNEL}_v2 alone"))
    shown = to_text(bench_page(result(long)), width)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= max(width, 80)
    (base,) = [line for line in lines if "10.00 us" in line]
    (candidate,) = [line for line in lines if "SLOWER" in line]
    assert base.split("  ")[0] != candidate.split("  ")[0]
    assert candidate.split()[-7:] == ["0.200", "us", "1.019x", "1.016", "to", "1.022", "SLOWER"]
    assert (f"{KERNEL}_v2 alone" in candidate) == (width == 10_000)


def test_remarks_and_why_nothing_is_decided_stand_below_the_table() -> None:
    subject = Subject("variant", "k_v2 alone")
    reason = measured("too-few-quads", "analysis", subject, {"seconds": 3})
    drift = measured("drift", "hazard", subject, {"change": -0.02})
    lines = to_text(
        bench_page(result(comparison(0.9, 1.1, "UNDECIDED", reason=reason, remarks=(drift,)))), 200
    ).splitlines()
    assert (
        "remark: times drift: k_v2 alone became 2.0% faster within a process, and the baseline with it"
        in lines
    )
    assert "UNDECIDED: k_v2 against k: needs about 3 s more, or more processes" in lines


def test_wrong_variants_are_said_and_have_no_time() -> None:
    wrong = Variant("k_v2", False, 0.25, 3, 9, (1, 2), 0, value=1.25, expected=1.0)
    shown = to_text(bench_page(result(variants=(wrong,))), 200)
    assert (
        "k_v2: WRONG: 3 of 9 elements are wrong, the largest error is 0.25; "
        "the first, output 0[1, 2], is 1.25 instead of 1; not timed\n"
    ) in shown
    assert "median" not in shown


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            Variant("k", False, None, 1, 1, (), 1, value="nan", expected=2),
            "1 of 1 elements are wrong; the first, output 1, is nan instead of 2",
        ),
        (
            Variant("k", False, None, 0, 0, remarks=(RAISED,)),
            "raises ValueError: x",
        ),
        (
            Variant("k", False, 1.0, 2, 4, (0,), 0, remarks=(CHANGED,), value=0.1, expected=0.3),
            "2 of 4 elements are wrong, the largest error is 1; "
            "the first, output 0[0], is 0.1 instead of 0.3; changes input 0, which call leaves alone",
        ),
        # results that an earlier version wrote have no values
        (Variant("k", False, 1.0, 2, 4, (0,), 0), "2 of 4 elements are wrong, the largest error is 1"),
    ],
)
def test_what_is_wrong_is_said_with_values(wrong: Variant, said: str) -> None:
    assert wrong_words(wrong, sentence) == said


def test_json_is_the_record() -> None:
    made = result(comparison(1.016, 1.022, "SLOWER"), variants=(Variant("k", True, 0.0, 0, 9),))
    made = replace(
        made,
        flops=(FlopCount("aten.mm", 8), FlopCount("aten.mm", 9)),
        ablations=(Ablation("no_loads", made.comparisons[0]), Ablation("no_loads", made.comparisons[0])),
        warnings=(CHANGED,),
    )
    assert from_json(BenchResult, json.loads(json.dumps(to_json(made), allow_nan=False))) == made


@pytest.mark.parametrize(
    ("seconds", "said"), [(2.5, "2.500 s"), (0.0123, "12.30 ms"), (1.55e-4, "155.0 us"), (math.nan, "-")]
)
def test_times_have_four_digits(seconds: float, said: str) -> None:
    assert duration(seconds) == said
