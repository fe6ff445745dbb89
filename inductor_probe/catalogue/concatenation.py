"""Concatenations: lowering.py, `cat`."""

from __future__ import annotations

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source
from inductor_probe.catalogue.shared import POINTWISE_CAT, number, where

_CAT = "lowering.py:cat"
_FORCE = By("force_pointwise_cat", "True", POINTWISE_CAT)
_ELEMENTS, _PARTS = "element-by-element", "in-parts"
"""Outcomes."""

OPERANDS = (
    Operand("operands", "int", "that are joined", "tensors"),
    Operand("limit", "int", "most operands that torch computes within one kernel", "tensors"),
    Operand("setting", "text", "that has this limit, where torch has one"),
    Operand("shared", "names", "operands that other FX nodes read, too"),
)

OUTCOMES = (
    Outcome("element-by-element", "{subject} is computed element by element, its operands under masks"),
    Outcome("in-parts", "the {operands:# operand} of {subject} {operands:?is/are} written into parts of one "
        "buffer"),
)  # fmt: skip

CAUSES = (
    Cause("on-cpu", _PARTS, _CAT, "",
        "on a CPU torch does nothing else: each operand that is computed here has loops of its own, and what "
        "reads the result reads memory", "on a CPU", changes=(_FORCE,), test="cpu_device",
        example="torch.cat((values.exp(), values), -1) * 2, values: float32 (64, 32)"),
    Cause("pointwise-cat-forced", _ELEMENTS, _CAT, "",
        "force_pointwise_cat is on", "force_pointwise_cat",
        changes=(Source("unforced", "leave force_pointwise_cat off, so that torch chooses; time it"),),
        test="config.force_pointwise_cat",
        example="torch.cat((values.exp(), values), -1), with force_pointwise_cat = True"),
    Cause("read-pointwise", _ELEMENTS, _CAT, "",
        "all that reads it is pointwise, and an operand need not be stored then; the kernel evaluates each "
        "operand under a mask", "read by pointwise operators",
        test=("not has_multi_consumers and ?", "fuse_pointwise_use or ?"),
        example="torch.cat((values.sin(), others), -1) * 2, on a GPU"),
    Cause("all-computed", _ELEMENTS, _CAT, "",
        "each operand would need a kernel that writes it in any case, and none is a reduction",
        "each operand is computed here", example="torch.cat((values.sin(), others.cos()), -1), on a GPU"),
    Cause("operand-read-elsewhere", _PARTS, _CAT, "shared",
        "other operators read {shared|'an operand'}, too: torch stores what it would compute or read once "
        "more",
        "an operand has other readers", changes=(_FORCE,),
        example="(torch.cat((sine, others), -1) * 2, sine + 1), sine = values.sin(), on a GPU"),
    Cause("many-operands", _PARTS, _CAT, "limit setting",
        "of more than {limit} operands torch computes none within one kernel, as registers would be "
        "spilled", "more than {limit} operands",
        changes=(By("max_complex_pointwise_cat_inputs", number("operands"), "lets all operands be "
        "computed within one kernel", "limit", applies=where("setting", "max_complex_pointwise_cat_inputs")),
        _FORCE), example="torch.cat([values + others * i for i in range(12)], -1) * 2, on a GPU"),
    Cause("operands-in-memory", _PARTS, _CAT, "",
        "each operand is in memory or can be written into its part, so that nothing would be saved",
        "operands are stored", example="torch.cat((values.sum(0), others.sum(0)), -1) * 2, on a GPU"),
    Cause("not-read-pointwise", _PARTS, _CAT, "",
        "what reads it is not pointwise, or it is a result, and an operand is a reduction or stored",
        "not read by pointwise operators", changes=(Source("pointwise-reader",
        "read it with pointwise operators alone, or reduce the operands before they are joined"),),
        example="torch.cat((values.sin(), others.sum(0)), -1), on a GPU"),
)  # fmt: skip

KIND = Kind(
    "concatenation",
    "whether a concatenation is computed element by element, or in parts of one buffer",
    OUTCOMES,
    OPERANDS,
    CAUSES,
    common="operands",
)
