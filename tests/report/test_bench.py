from __future__ import annotations

import json
import math

import pytest
from msgspec.structs import replace

from inductor_probe.model.bench import Ablation, BenchResult, BenchSettings, Measurement
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.comparison import Comparison, Verdict
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.timing import FlopCount, Variant
from inductor_probe.report.pages.bench import bench_page
from inductor_probe.report.terminal import to_text
from inductor_probe.report.units import NO_BREAK, duration
from inductor_probe.report.words.bench import clause, next_steps, result_sentence, wrong_words
from inductor_probe.report.words.remarks import sentence
from tests.builders import bench_result, comparison

CHANGED = measured("input-changed", "analysis", Subject("variant", "k"), {"input": 0})
RAISED = measured("raises", "analysis", Subject("variant", "k"), {"error": "ValueError: x"})
TOO_FEW = measured("too-few-quads", "analysis", Subject("variant", "k_v2"), {"seconds": 30})
KERNEL = "cpp_fused__to_copy_abs_add_arange_clamp_div_index_lt_mul_rsub_sub_sum_unsqueeze_0"


def said(result: BenchResult, places: dict[str, str]) -> list[str]:
    """Return what is next as a terminal shows it: a command is one word in it, for where lines end."""
    return [step.replace(NO_BREAK, " ") for step in next_steps(result, "g", places, 10)]


@pytest.mark.parametrize(
    ("low", "high", "verdict", "said"),
    [
        (1.016, 1.022, "SLOWER", "k_v2 is 1.9 % slower than k (1.6 to 2.2 %"),
        (0.90, 0.94, "FASTER", "k_v2 is 8.0 % faster than k (6.0 to 10.0 % less time"),
        (2.0, 2.1, "SLOWER", "k_v2 takes 2.05x as long as k (2.00 to 2.10x"),
        (0.25, 0.26, "FASTER", "k_v2 is 3.92x as fast as k (3.85 to 4.00x"),
        (0.997, 1.004, "SAME", "k_v2 takes the same time as k within 1 % (-0.3 to +0.4 %"),
        (0.98, 1.05, "UNDECIDED", "no verdict for k_v2 against k (-2.0 to +5.0 %"),
        (0.98, 1.05, "INVALID", "invalid measurement of k_v2 against k (-2.0 to +5.0 %"),
    ],
)
def test_a_comparison_in_words(low: float, high: float, verdict: Verdict, said: str) -> None:
    assert clause(comparison(low, high, verdict), 0.01) == f"{said})"


def test_the_report_answers_first() -> None:
    """The sentence was below all tables."""
    slower, same = comparison(1.016, 1.022, "SLOWER"), comparison(0.997, 1.004, "SAME")
    eager = comparison(0.5, 0.52, "FASTER", names=("the graph, operator by operator", "Compiled call"))
    lines = to_text(bench_page(bench_result(eager, same, slower)), 400).splitlines()
    assert lines[:3] == [
        "k_v2 is 1.9 % slower than k (1.6 to 2.2 %).",
        "k_v2 takes the same time as k within 1 % (-0.3 to +0.4 %).",
        "Compiled call is 1.96x as fast as the graph, operator by operator (1.92 to 2.00x).",
    ]
    assert result_sentence(bench_result(same, slower)) == "; ".join(text[:-1] for text in lines[:2]) + "."
    wrong = Variant("k_v3", False, None, 3, 9)
    assert result_sentence(bench_result(variants=(wrong,))) == (
        "k_v3 is WRONG in 3 of 9 elements: it does not agree with the reference."
    )
    alone = replace(bench_result(), times=(Measurement("k alone", 1e-5, 1e-7, 24, "quads"),))
    assert result_sentence(alone) == "k takes 10.00 us a call; nothing to compare with."
    assert "2 more comparisons: 2 slower" in result_sentence(bench_result(*[slower] * 5))
    assert result_sentence(bench_result()) == "Every variant is correct; no times were measured."


@pytest.mark.parametrize("width", [80, 120, 10_000])
def test_the_table_fits_its_terminal_and_tells_long_names_apart(width: int) -> None:
    long = comparison(1.016, 1.022, "SLOWER", names=(f"{KERNEL} alone", f"{KERNEL}_v2 alone"))
    shown = to_text(bench_page(bench_result(long)), width)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= max(width, 80)
    (base,) = [line for line in lines if "10.00 us" in line]
    (candidate,) = [line for line in lines if "SLOWER" in line]
    assert base.split("  ")[0] != candidate.split("  ")[0]
    assert candidate.split()[-7:] == ["10.19", "us", "1.019x", "1.016", "to", "1.022", "SLOWER"]
    assert (f"  {KERNEL}_v2 " in candidate) == (width == 10_000)


def test_why_nothing_is_decided_is_in_the_answer_and_warnings_come_last() -> None:
    subject = Subject("variant", "k_v2 alone")
    reason = measured("too-few-quads", "analysis", subject, {"seconds": 3})
    drift = measured("drift", "hazard", subject, {"change": -0.22})
    undecided = comparison(0.9, 1.1, "UNDECIDED", reason=reason, remarks=(drift,))
    lines = to_text(bench_page(bench_result(undecided)), 200).splitlines()
    assert lines[0] == (
        "no verdict for k_v2 against k (-10.0 to +10.0 %): needs about 3 s more, or more processes."
    )
    assert lines[-1] == ("warning: drift of 22% within a process (k_v2 became faster): affects both variants")


def test_the_same_warning_about_several_comparisons_is_one_line() -> None:
    """There were eight lines of `... is two-humped in process 1`."""
    pairs = [
        comparison(
            1.1,
            1.2,
            "SLOWER",
            names=(f"k{number} alone", f"k{number}_v2 alone"),
            remarks=(measured("drift", "hazard", Subject("variant", f"k{number}"), {"change": number / 10}),),
        )
        for number in range(1, 9)
    ]
    text = to_text(bench_page(bench_result(*pairs)), 200)
    assert text.count("drift") == 1
    assert "drift of 80%" in text
    assert "(and 7 more comparisons)" in text
    assert to_text(bench_page(bench_result(*pairs), details=True), 200).count("drift of") == 8


def test_what_the_check_could_not_compare_is_a_warning() -> None:
    numbers = {"left": 12, "elements": 16}
    exceeded = measured("range-exceeded", "analysis", Subject("graph", ""), numbers)
    call = Variant("call", True, 0.0, 0, 16, remarks=(exceeded,))
    last = to_text(bench_page(bench_result(variants=(call,))), 200).splitlines()[-1]
    assert last == (
        "warning: with these inputs, 12 of 16 elements leave the range of their dtype, and are compared with "
        "those of the pristine call only"
    )


def test_wrong_variants_come_first_and_have_no_time() -> None:
    wrong = Variant("k_v2", False, 0.25, 3, 9, (1, 2), 0, value=1.25, expected=1.0)
    shown = to_text(bench_page(bench_result(variants=(wrong,))), 200)
    assert shown.startswith(
        "k_v2 is WRONG in 3 of 9 elements: output 0[1, 2] is 1.25, expected 1; largest error 0.25; "
        "not timed.\n"
    )
    assert "ratio" not in shown


def test_a_kernel_and_the_wrapper_that_launches_it_are_wrong_in_one_sentence() -> None:
    wrong = Variant("call_v2", False, 0.25, 3, 9, (1, 2), 0, value=1.25, expected=1.0)
    both = bench_result(variants=(wrong, replace(wrong, name="k_v2")))
    shown = to_text(bench_page(both), 200)
    assert shown.startswith("k_v2 is WRONG in 3 of 9 elements")
    assert "largest error 0.25 (call_v2 too); not timed." in shown
    assert said(both, {"k_v2": "b.py:9"}) == ["correct k_v2 (b.py:9), then probe bench-kernel g"]


def test_a_copy_is_not_called_correct_where_it_equals_a_call_that_is_wrong() -> None:
    """F1: "call is WRONG", next line "correct: call_v2", and then the machine was blamed."""
    call = Variant("call", False, 40.0, 1, 2, (), 0, value=0, expected=40, eager=40)
    copies = [replace(call, name=name, unedited=True) for name in ("k_v2", "call_v2")]
    right = Variant("k_v3", True, 0.0, 0, 2)
    result = bench_result(variants=(call, *copies, right))
    assert to_text(bench_page(result), 200).splitlines()[:2] == [
        "call is WRONG in 1 of 2 elements: output 0 is 0, eager 40; largest error 40 (k_v2, call_v2 too); "
        "not timed.",
        "k_v3 is right.",
    ]
    assert [step.split(" ")[:2] for step in next_steps(result, "g", {}, 10)] == [["probe", "why"]]


def test_where_eager_is_off_itself_both_are_said() -> None:
    off = Variant("call", False, 0.5, 1, 9, (3,), 0, value=1.5, expected=1.0, eager=1.25)
    shown = to_text(bench_page(bench_result(variants=(off,))), 200)
    assert "output 0[3] is 1.5, eager 1.25, in float64 1;" in shown


@pytest.mark.parametrize(
    ("comparisons", "steps"),
    [
        ([], ["edit k_v2 (b.py:9), or see probe rewrite g for variants, then probe bench-kernel g"]),
        (
            [comparison(0.8, 0.9, "FASTER")],
            ["probe bench-kernel g --inputs random,zeros --threads 1,2 shows whether that holds elsewhere"],
        ),
        ([comparison(0.999, 1.001, "SAME")], ["probe rewrite g lists other variants"]),
        (
            [comparison(0.9, 1.1, "UNDECIDED", reason=TOO_FEW)],
            ["probe bench-kernel g --budget 55s measures for longer"],
        ),
        (
            [comparison(0.9, 1.1, "INVALID")],
            ["probe doctor shows what disturbs this machine; measure again when that has ended"],
        ),
    ],
)
def test_the_next_step_depends_on_what_was_found(comparisons: list[Comparison], steps: list[str]) -> None:
    """It was `edit a _v2` whatever was found."""
    assert said(bench_result(*comparisons), {"k_v2": "b.py:9"}) == steps


def test_of_many_kernels_the_step_to_time_another_is_shown() -> None:
    times = (
        Measurement("k in one call", 1e-5, 0.0, 1, "once"),
        Measurement("m alone", 1e-5, 1e-7, 24, "quads"),
    )
    steps = said(replace(bench_result(), times=times), {})
    assert steps[1] == "probe bench-kernel g --kernel NAME times one of those timed in one call only (1)"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            Variant("k", False, None, 1, 1, (), 1, value="nan", expected=2),
            "output 1 is nan, expected 2",
        ),
        (
            Variant("k", False, None, 0, 0, remarks=(RAISED,)),
            "raises ValueError: x",
        ),
        (
            Variant("k", False, 1.0, 2, 4, (0,), 0, remarks=(CHANGED,), value=0.1, expected=0.3),
            "output 0[0] is 0.1, expected 0.3; largest error 1; changes input 0, which call leaves alone",
        ),
        # results that an earlier version wrote have no values
        (Variant("k", False, 1.0, 2, 4, (0,), 0), "largest error 1"),
    ],
)
def test_what_is_wrong_is_said_with_values(wrong: Variant, said: str) -> None:
    assert wrong_words(wrong, sentence) == said


def test_json_is_the_record() -> None:
    made = bench_result(comparison(1.016, 1.022, "SLOWER"), variants=(Variant("k", True, 0.0, 0, 9),))
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


def test_a_variant_that_does_not_compile_names_its_line_first() -> None:
    """The message named a file in the cache of the compiler."""
    numbers = {
        "line": 151,
        "error": "'tmp9' was not declared",
        "message": "   24 | = tmp9;\n      |   ^~~~\nIn file included from x.h:1,\n",
    }
    error = measured("variant-not-compiled", "analysis", Subject("variant", "k_v2"), numbers)
    raised = measured(
        "raises",
        "analysis",
        Subject("variant", "call_v2"),
        {"error": "NotLoadedError: k_v2 does not compile"},
    )
    variants = (
        Variant("call_v2", False, None, 0, 0, remarks=(raised,)),
        Variant("k_v2", False, None, 0, 0, remarks=(error,)),
    )
    lines = to_text(bench_page(bench_result(variants=variants)), 200).splitlines()
    assert lines[:3] == [
        "k_v2 does not compile: output_code_bench.py:151: 'tmp9' was not declared (call_v2 too); not timed.",
        "      151 | = tmp9;",
        "          |   ^~~~",
    ]
    assert said(bench_result(variants=variants), {}) == [
        "correct k_v2 (output_code_bench.py:151), then probe bench-kernel g"
    ]


def test_the_command_that_measured_is_in_the_details() -> None:
    settings = BenchSettings(kernel="k", budget=2.0, cold=True, sizes=(("s77", 128),), cxxflags=("-O2", "-g"))
    made = bench_result(comparison(1.1, 1.2, "SLOWER"), command=settings.command("g"), torch="2.13.0")
    lines = to_text(bench_page(made, details=True), 200).splitlines()
    assert (
        "command: probe bench-kernel g --kernel k --budget 2s --cxxflags '-O2 -g' --cold --size s77=128"
        in lines
    )
    assert "torch 2.13.0" in to_text(bench_page(made), 200)
    assert BenchSettings().command("g") == ("probe", "bench-kernel", "g")
