"""Divisions of indices by symbols: codegen/cpp_utils.py, `CppPrinter`, and codegen/triton.py."""

from __future__ import annotations

from inductor_probe.catalogue.entries import Cause, Kind, Operand, Outcome, Source

OPERANDS = (
    Operand("divisions", "names", "in the code, with torch's names of sizes; the last number of "
        "ModularIndexing(x, y, z), which is (x // y) % z, divides as well"),
    Operand("loops", "names", "whose variables are divided: each of their steps divides"),
)  # fmt: skip

OUTCOMES = (
    Outcome("divides-64-bit", "{subject} {n:?divides/divide} by sizes that are not known, in 64 bits",
        "missed"),
    Outcome("divides-32-bit", "{subject} {n:?divides/divide} by sizes that are not known, in 32 bits"),
)  # fmt: skip

CAUSES = (
    Cause("symbolic-divisor", "divides-64-bit divides-32-bit", "codegen/cpp_utils.py:CppPrinter.doprint", "",
        "{divisions:2} is computed in each step of {loops:3}: of a division by a number the compiler makes a "
        "multiplication; this is many times as slow, and is not vectorised on a CPU",
        "{divisions:1}, at run time", changes=(Source("static-size",
        "let the sizes that divide be known: dynamic=False, or torch._dynamo.mark_static of them"),),
        example="values.t().reshape(-1) + 1, values: float32 (37, 53), with dynamic=True"),
)  # fmt: skip

KIND = Kind(
    "divisions",
    "which nodes divide their index by sizes that are known at run time only",
    OUTCOMES,
    OPERANDS,
    CAUSES,
    common="divisions loops",
)
