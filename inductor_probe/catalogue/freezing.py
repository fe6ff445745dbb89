"""Freezing: torch/_inductor/freezing.py, `freeze`, and constant_folding.py, under `config.freezing`."""

from __future__ import annotations

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source

_FREEZING_OFF = By(
    "freezing",
    "False",
    "keeps parameters as inputs, with the values that they have at each call; kernels for packed weights are "
    "then not available",
    differs=True,
)

_FREEZE = "freezing.py:freeze"

OPERANDS = (
    Operand("constants", "int", "inputs that became such"),
    Operand("inputs", "int", "that stayed"),
    Operand("folded", "int", "values that were computed ahead"),
    Operand("attributes", "int", "parameters that were attributes of the graph"),
    Operand("changed", "flag", "whether the program changes it in place, or returns it"),
    Operand("nodes", "names", "that are computed ahead"),
    Operand("operators", "names", "what they call"),
)  # fmt: skip

OUTCOMES = (
    Outcome("frozen", "{constants:# input} of the graph became {constants:?a constant/constants}", "passed"),
    Outcome("not-frozen", "no input of the graph became a constant", "missed"),
    Outcome("folded", "{nodes:4} became a constant", "passed"),
)  # fmt: skip

CAUSES = (
    Cause("parameters", "frozen", _FREEZE, "constants inputs folded",
        "freezing is on, and they are parameters or buffers that the graph neither changes nor returns; "
        "{folded:# value} of constants alone {folded:?was/were} computed ahead; what changes a parameter "
        "after the compile is not seen", "{constants:# constant}, {folded:# value} computed ahead",
        changes=(_FREEZING_OFF,), example="what a module with parameters of its own computes"),
    Cause("no-parameters", "not-frozen", _FREEZE, "constants inputs folded",
        "freezing is on, and none of the {inputs:# input} is a parameter or buffer that the graph neither "
        "changes nor returns", "no parameters", changes=(Source("frozen-early",
        "set it for the process (torch._inductor.config.freezing = True), not as an option of "
        "torch.compile: dynamo makes parameters constants or inputs before it sees options"),
        Source("own-parameters", "compile a module that owns its weights, and does not change them")),
        example="what a module with parameters of its own computes, with freezing = True"),
    Cause("attributes", "frozen", _FREEZE, "constants inputs folded attributes",
        "freezing is on, and parameters and buffers are attributes of the graph that was exported, no "
        "inputs; {folded:# value} of constants alone {folded:?was/were} computed ahead",
        "{attributes:# attribute}, {folded:# value} computed ahead",
        outcome_words={"frozen":
        "{attributes:# attribute} of the graph {attributes:?is a constant/are constants}"},
        example="what a module with parameters of its own computes"),
    Cause("gradients-enabled", "not-frozen", "compile_fx.py:compile_fx", "",
        "freezing is on, and needs torch.no_grad() or inference mode", "gradients are enabled",
        changes=(Source("no-gradients", "compile and call it below torch.no_grad()"),),
        example="what a module with parameters of its own computes, with freezing = True"),
    Cause("kept-parameter", "not-frozen", "freezing.py:replace_params_with_constants", "changed",
        "freezing is on, and the program {does} that parameter or buffer", "the program {does} it",
        remark="analysis", outcome_words={"not-frozen": "{subject} stayed an input of the graph"},
        changes=(Source("own-value",
        "compute the new value, and change the parameter or buffer outside of the graph"),),
        example="what a module with a buffer that it changes computes"),
    Cause("frozen-inputs", "folded", "constant_folding.py:replace_node_with_constant", "nodes operators",
        "{operators:2} of constants alone", "{operators:2} of constants", changes=(_FREEZING_OFF,),
        example="the same with a weight that is computed of a parameter, and transposed: one constant"),
)  # fmt: skip

KIND = Kind(
    "freezing", "which parameters of a graph became constants",
    OUTCOMES, OPERANDS, CAUSES,
    derived=lambda operands: {"does": "changes" if operands.get("changed") else "returns"}, derives="does",
)  # fmt: skip
