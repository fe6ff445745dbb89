from __future__ import annotations

import pytest
import torch

from inductor_probe.harness.alone import print_row
from inductor_probe.harness.checks import Check
from inductor_probe.harness.measure import describe


def test_a_row_of_the_table_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    long = "cpp_fused__to_copy_abs_add_arange_clamp_div_index_lt_mul_rsub_sub_sum_unsqueeze_0 alone"
    print_row("Compiled call", [1e-5, 1.1e-5, 1.2e-5])
    print_row(long, [1.1e-5] * 3, "1.100x")
    first, second = capsys.readouterr().out.splitlines()
    assert first.split() == ["Compiled", "call", "11.00", "1.00"]
    assert second.endswith("unsqueeze_0 alone      11.00       0.00     1.100x")
    assert len(second) <= 80


def test_inputs_and_findings_in_words() -> None:
    image = torch.zeros(1, 3, 4, 4, dtype=torch.uint8)
    assert describe([5, image.contiguous(memory_format=torch.channels_last)]) == "1x3x4x4 uint8 channels_last"
    assert describe([image, torch.ones(2)]) == "1x3x4x4 uint8 contiguous"
    assert describe([3]) == "no tensor inputs"
    check = Check("v", False, 2.0, 3, 9, (1, 2), 0, 5.0, 7.0)
    said = "v: WRONG, 3 of 9 elements, max error 2; first at output 0[1, 2]: 5.0 instead of 7.0"
    assert check.sentence() == said
    assert Check("v", max_error=0.0).sentence() == "v: correct, max error 0"
