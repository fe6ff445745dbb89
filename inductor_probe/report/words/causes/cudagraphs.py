"""Words for CUDA graphs: torch/_inductor/output_code.py, cudagraph_utils.py and scheduler.py."""

from __future__ import annotations

from inductor_probe.report.words.causes.rows import CauseWords, KindWords

WORDS = KindWords(
    outcomes={
        "captured": "CUDA graphs replay the graph",
        "partitioned": "CUDA graphs replay {partitions:# part} of the graph",
        "skipped": "no CUDA graph replays the graph",
        "at-run-time": "each call decides whether CUDA graphs replay the graph",
    },
    causes={
        "whole-graph": CauseWords("all of it can be captured", "all of it"),
        "partitions": CauseWords("{nodes:6} {n_cut:?is/are} left out ({reasons:4})", "without {reasons:3}"),
        "no-partition": CauseWords(
            "no part of it can be captured ({reasons:4})", "nothing to capture: {reasons:3}"
        ),
        "cudagraphs-off": CauseWords("triton.cudagraphs is off", "triton.cudagraphs is off"),
        "cpu-device": CauseWords(
            "{node} is on a CPU, and graph_partition, which would cut it out, is off", "{node} is on a CPU"
        ),
        "no-gpu-device": CauseWords("nothing of it runs on a GPU", "all on a CPU"),
        "incompatible-operator": CauseWords(
            "{operator} cannot be captured, and graph_partition, which would cut it out, is off",
            "{operator} cannot be captured",
        ),
        "incompatible-lowering": CauseWords("torch says: {text}", "{text}"),
        "dynamic-shapes": CauseWords(
            "its sizes are symbolic, and triton.cudagraph_skip_dynamic_graphs is on", "symbolic sizes"
        ),
        "moving-inputs": CauseWords(
            "it changes {inputs:6} in place, and is replayed only where {n_inputs:?it comes/they come} from "
            "another CUDA graph",
            "changes {inputs:3} in place",
        ),
        "mutated-inputs": CauseWords(
            "it changes its inputs in place[ ({inputs:6})]", "changes inputs in place"
        ),
    },
    changes={
        "without-cut": "move what is left out to the GPU, or replace it by operators that can be captured",
        "triton.cudagraphs": "decides whether launches are replayed as one; inputs that move are copied",
        "static-input": "let {inputs:3} be a parameter or buffer of the module, which stays where it is",
        "new-value": "return the new value, and do not write it into the input",
        "to-gpu": "make the value on the GPU",
        "graph_partition": "cuts out what cannot be captured, and captures the rest",
        "other-operator": "use an operator that does not wait for the device",
        "triton.cudagraph_skip_dynamic_graphs": "captures a graph for each size",
        "triton.cudagraph_support_input_mutation": "allows it where the inputs stay where they are",
    },
    derived=lambda operands: {
        "n_cut": len(operands.get("nodes", ())),
        "n_inputs": len(operands.get("inputs", ())),
    },
)
