"""Casts to half precision and back: codegen/cpp.py, `CppOverrides.to_dtype`."""

from __future__ import annotations

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome
from inductor_probe.catalogue.shared import where

OPERANDS = (
    Operand("dtype", "text", "that the value is rounded to in eager mode"),
    Operand("rounds", "text", "the node that casts to it"),
    Operand("setting", "text", "with which this torch rounds"),
)

OUTCOMES = (
    Outcome("rounding-left-out",
        "{subject} goes on with float32, where eager mode has rounded to {dtype}"),
)  # fmt: skip

CAUSES = (
    Cause("cast-back", "rounding-left-out", "codegen/cpp.py:CppOverrides.to_dtype", "dtype rounds setting",
        "of what {rounds} casts to {dtype}, a cast back is the value itself", "cast back from {dtype}",
        changes=(By("emulate_precision_casts", "True", "rounds where eager mode does, and is slower",
        differs=True, applies=where("setting", "emulate_precision_casts")),),
        example="values - values.half().float(), values: float32 (4096,)"),
)  # fmt: skip

KIND = Kind(
    "casts",
    "whether a value is rounded to half precision and back",
    OUTCOMES,
    OPERANDS,
    CAUSES,
)
