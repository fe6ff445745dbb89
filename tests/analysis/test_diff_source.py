"""Which differences of kernel code are spelling."""

from __future__ import annotations

import pytest

from inductor_probe.analysis.diff.kernels import code_diff
from inductor_probe.analysis.diff.normal_forms import normal_source
from inductor_probe.model.code import Kernel


def cpp(text: str, name: str = "cpp_fused_0") -> Kernel:
    return Kernel(name, "cpp", text, ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("out[static_cast<long>(x0 + (3L*x1))] = tmp0;", "out[static_cast<int64_t>(x0 + 3L*x1)] = tmp0;"),
        ("a = 223L + ((-1L)*x1);", "a = 223L + -1L*x1;"),
        ("x0<static_cast<long>(ks1); f(ks0)", "x0<static_cast<int64_t>(ks7); f(ks3)"),
        ("tmp2 = x;  // cpp_fused_0", "tmp2 = x;"),
    ],
)
def test_spelling_of_code_does_not_count(old: str, new: str) -> None:
    assert normal_source(cpp(old)) == normal_source(cpp(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a = (x0 + x1)*3L;", "a = x0 + x1*3L;"),
        ("a = x0 - (x1 - x2);", "a = x0 - x1 - x2;"),
        ("a = x0 / (x1*x2);", "a = x0 / x1*x2;"),
        ("a = x0 % (3L*x2);", "a = x0 % 3L*x2;"),
        ("static_cast<int64_t>(tmp3)", "tmp3"),
        ("f(ks0, ks1)", "f(ks0, ks0)"),
    ],
)
def test_meaning_of_code_counts(old: str, new: str) -> None:
    assert normal_source(cpp(old)) != normal_source(cpp(new))
    assert code_diff(cpp(old), cpp(new))[-2:] == (
        f"-{normal_source(cpp(old))[0]}",
        f"+{normal_source(cpp(new))[0]}",
    )
