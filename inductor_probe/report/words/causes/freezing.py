"""Words for freezing: torch/_inductor/freezing.py and constant_folding.py."""

from __future__ import annotations

from inductor_probe.report.words.causes.rows import CauseWords, KindWords

WORDS = KindWords(
    outcomes={
        (
            "frozen",
            "attributes",
        ): "{attributes:# attribute} of the graph {attributes:?is a constant/are constants}",
        "frozen": "{constants:# input} of the graph became {constants:?a constant/constants}",
        "not-frozen": "no input of the graph became a constant",
        ("not-frozen", "kept-parameter"): "{subject} stayed an input of the graph",
        "folded": "{nodes:4} became a constant",
    },
    causes={
        "parameters": CauseWords(
            "freezing is on, and they are parameters or buffers that the graph neither changes nor returns; "
            "{folded:# value} of constants alone {folded:?was/were} computed ahead; what changes a parameter "
            "after the compile is not seen",
            "{constants:# constant}, {folded:# value} computed ahead",
        ),
        "no-parameters": CauseWords(
            "freezing is on, and none of the {inputs:# input} is a parameter or buffer that the graph "
            "neither changes nor returns",
            "no parameters",
        ),
        "attributes": CauseWords(
            "freezing is on, and parameters and buffers are attributes of the graph that was exported, no "
            "inputs; {folded:# value} of constants alone {folded:?was/were} computed ahead",
            "{attributes:# attribute}, {folded:# value} computed ahead",
        ),
        "gradients-enabled": CauseWords(
            "freezing is on, and needs torch.no_grad() or inference mode", "gradients are enabled"
        ),
        "kept-parameter": CauseWords(
            "freezing is on, and the program {does} that parameter or buffer", "the program {does} it"
        ),
        "frozen-inputs": CauseWords("{operators:2} of constants alone", "{operators:2} of constants"),
    },
    changes={
        "freezing": "keeps parameters as inputs, with the values that they have at each call; kernels for "
        "packed weights are then not available",
        "frozen-early": "set it for the process (torch._inductor.config.freezing = True), not as an option "
        "of torch.compile: dynamo makes parameters constants or inputs before it sees options",
        "own-parameters": "compile a module that owns its weights, and does not change them",
        "own-value": "compute the new value, and change the parameter or buffer outside of the graph",
        "no-gradients": "compile and call it below torch.no_grad()",
    },
    derived=lambda operands: {"does": "changes" if operands.get("changed") else "returns"},
)
