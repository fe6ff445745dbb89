"""CUDA graphs: torch/_inductor/output_code.py, cudagraph_utils.py and scheduler.py.

They are decided where a GPU is in the graph, or `triton.cudagraphs` asks for them.
"""

from __future__ import annotations

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source
from inductor_probe.model.decision import Decision

_DYNAMIC = "dynamic shape ops"


def _is_symbolic(decision: Decision) -> bool:
    reasons = decision.operand("reasons")
    return isinstance(reasons, tuple) and _DYNAMIC in reasons


def _is_not_symbolic(decision: Decision) -> bool:
    reasons = decision.operand("reasons")
    return not isinstance(reasons, tuple) or set(reasons) != {_DYNAMIC}


_SIZES = "captures a graph for each size"
_REPLAY = "decides whether launches are replayed as one; inputs that move are copied"
_SYMBOLIC = By("triton.cudagraph_skip_dynamic_graphs", "False", _SIZES, is_default=True, applies=_is_symbolic)
_PARTITION = By("graph_partition", "True", "cuts out what cannot be captured, and captures the rest")
_CUDAGRAPHS_OFF = By("triton.cudagraphs", "False", _REPLAY)
_WITHOUT_CUT = Source(
    "without-cut",
    "move what is left out to the GPU, or replace it by operators that can be captured",
    applies=_is_not_symbolic,
)
_OTHER_OPERATOR = Source("other-operator", "use an operator that does not wait for the device")

_POST_COMPILE = "output_code.py:CompiledFxGraph.post_compile"
_DEVICES = "cudagraph_utils.py:check_multiple_devices_or_any_cpu_nodes"
_FIRST_INCOMPATIBLE = "utils.py:get_first_incompatible_cudagraph_node"
_MUTATION = "cudagraph_utils.py:check_for_mutation_ignore_cuda_graph_managed_tensor"

OPERANDS = (
    Operand("partitions", "int", "that are captured"),
    Operand("nodes", "names", "that are left out"),
    Operand("reasons", "names", "why, in torch's words"),
    Operand("node", "text", "the first one on a CPU"),
    Operand("operator", "text", "that cannot be captured"),
    Operand("text", "text", "torch's own words"),
    Operand("inputs", "names", "that the graph changes in place"),
)  # fmt: skip

OUTCOMES = (
    Outcome("captured", "CUDA graphs replay the graph", "passed"),
    Outcome("partitioned", "CUDA graphs replay {partitions:# part} of the graph", "passed"),
    Outcome("skipped", "no CUDA graph replays the graph", "missed"),
    Outcome("at-run-time", "each call decides whether CUDA graphs replay the graph", "missed"),
)  # fmt: skip

CAUSES = (
    Cause("whole-graph", "captured", _POST_COMPILE, "partitions", "all of it can be captured", "all of it",
        example="values + 1, values: float32 (65,), with triton.cudagraphs = True"),
    Cause("partitions", "partitioned", _POST_COMPILE, "partitions nodes reasons",
        "{nodes:6} {n_cut:?is/are} left out ({reasons:4})", "without {reasons:3}", changes=(_SYMBOLIC,
        _WITHOUT_CUT),
        example="what an operator that cannot be captured makes, and more, with triton.cudagraphs = True"),
    Cause("no-partition", "skipped", _POST_COMPILE, "reasons",
        "no part of it can be captured ({reasons:4})", "nothing to capture: {reasons:3}",
        changes=(_SYMBOLIC, _WITHOUT_CUT),
        example="values + 1, with triton.cudagraphs = True, triton.cudagraph_skip_dynamic_graphs = True"),
    Cause("cudagraphs-off", "skipped", _POST_COMPILE, "", "triton.cudagraphs is off",
        "triton.cudagraphs is off", remark="analysis", changes=(By("triton.cudagraphs", "True", _REPLAY),),
        example="values + 1, values: float32 (64,)"),
    Cause("cpu-device", "skipped", _DEVICES, "node",
        "{node} is on a CPU, and graph_partition, which would cut it out, is off", "{node} is on a CPU",
        test="(cpu_node := ?",
        changes=(Source("to-gpu", "make the value on the GPU"), _PARTITION, _CUDAGRAPHS_OFF),
        example="values + 1, values: float32 (65,), with triton.cudagraphs = True, graph_partition = False"),
    Cause("no-gpu-device", "skipped", _DEVICES, "", "nothing of it runs on a GPU", "all on a CPU",
        remark="analysis", changes=(_CUDAGRAPHS_OFF,),
        example="values + 1, values: float32 (64,), with triton.cudagraphs = True"),
    Cause("incompatible-operator", "skipped", _FIRST_INCOMPATIBLE, "operator",
        "{operator} cannot be captured, and graph_partition, which would cut it out, is off",
        "{operator} cannot be captured",
        test=("is_cudagraph_unsafe_fx_node(?", "(val := ?"),
        changes=(_PARTITION, _OTHER_OPERATOR),
        example="what an operator that cannot be captured makes, and more, with triton.cudagraphs = True, "
        "graph_partition = False"),
    Cause("incompatible-lowering", "skipped", _POST_COMPILE, "text", "torch says: {text}", "{text}",
        changes=(_OTHER_OPERATOR,),
        example="values.index_put((values.cumsum(0) < 8,), torch.zeros(7)) + 1, with triton.cudagraphs = "
        "True, graph_partition = False"),
    Cause("dynamic-shapes", "skipped", _POST_COMPILE, "",
        "its sizes are symbolic, and triton.cudagraph_skip_dynamic_graphs is on", "symbolic sizes",
        changes=(_PARTITION, By("triton.cudagraph_skip_dynamic_graphs", "False", _SIZES, is_default=True)),
        example="values + 1, with triton.cudagraphs = True, graph_partition = False, "
        "triton.cudagraph_skip_dynamic_graphs = True"),
    Cause("moving-inputs", "at-run-time", _POST_COMPILE, "partitions inputs",
        "it changes {inputs:6} in place, and is replayed only where {n_inputs:?it comes/they come} from "
        "another CUDA graph", "changes {inputs:3} in place", changes=(Source("static-input",
        "let {inputs:3} be a parameter or buffer of the module, which stays where it is"),
        Source("new-value", "return the new value, and do not write it into the input")),
        example="values.add_(1), values: float32 (69,), with triton.cudagraphs = True"),
    Cause("mutated-inputs", "skipped", _MUTATION, "inputs",
        "it changes its inputs in place[ ({inputs:6})]", "changes inputs in place",
        changes=(By("triton.cudagraph_support_input_mutation", "True",
        "allows it where the inputs stay where they are"),),
        example="values.add_(1), with triton.cudagraphs = True, triton.cudagraph_support_input_mutation = "
        "False"),
)  # fmt: skip

KIND = Kind(
    "cudagraphs", "whether CUDA graphs replay a graph",
    OUTCOMES, OPERANDS, CAUSES,
    derived=lambda operands: {
        "n_cut": len(operands.get("nodes", ())),
        "n_inputs": len(operands.get("inputs", ())),
    },
    derives="n_cut n_inputs",
)  # fmt: skip
