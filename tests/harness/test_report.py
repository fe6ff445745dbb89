from __future__ import annotations

import torch

from inductor_probe.harness.checks import Check
from inductor_probe.harness.measure import describe
from inductor_probe.harness.report import Timed, table
from inductor_probe.harness.timing import Quad


def test_the_table_fits_80_columns_and_shows_what_is_wrong() -> None:
    long = "cpp_fused__to_copy_abs_add_arange_clamp_div_index_lt_mul_rsub_sub_sum_unsqueeze_0 alone"
    quads = [Quad("ABBA", [1e-5, 1.1e-5, 1.1e-5, 1e-5], False, None)] * 3
    quads.append(Quad("ABBA", [1e-5, 1e-5, 1e-5, 1e-5], True, None))
    lines = table([Timed("Compiled call", long, quads, 1.0), Timed(long, None, quads[3:], 1.0)], ["call_v2"])
    assert max(map(len, lines.splitlines())) <= 80
    head, first, second, alone, wrong = lines.splitlines()
    assert head.split() == ["median", "us", "MAD", "us", "ratio"]
    assert first.split() == ["Compiled", "call", "10.00", "0.00"]
    assert second.endswith("unsqueeze_0 alone      11.00       0.00     1.100x")
    assert alone.split()[0].startswith("..")
    assert wrong == "call_v2: WRONG, not timed"


def test_inputs_and_findings_in_words() -> None:
    image = torch.zeros(1, 3, 4, 4, dtype=torch.uint8)
    assert describe([5, image.contiguous(memory_format=torch.channels_last)]) == "1x3x4x4 uint8 channels_last"
    assert describe([image, torch.ones(2)]) == "1x3x4x4 uint8 contiguous"
    assert describe([3]) == "no tensor inputs"
    check = Check("v", False, 2.0, 3, 9, (1, 2), 0, 5.0, 7.0)
    said = "v: WRONG, 3 of 9 elements, max error 2; first at output 0[1, 2]: 5.0 instead of 7.0"
    assert check.sentence() == said
    assert Check("v", max_error=0.0).sentence() == "v: correct, max error 0"
