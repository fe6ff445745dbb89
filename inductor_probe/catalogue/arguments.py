"""Arguments of generated functions: codegen/cpp.py and codegen/triton_combo_kernel.py."""

from __future__ import annotations

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source
from inductor_probe.catalogue.shared import number

OPERANDS = (
    Operand("arguments", "int", "of the function with it", "arguments"),
    Operand("limit", "int", "from which torch begins another one", "arguments"),
)  # fmt: skip

OUTCOMES = (Outcome("next-function", "another function begins behind {subject}"),)

CAUSES = (
    Cause("function-arguments", "next-function", "codegen/cpp.py:CppScheduling.codegen_node", "",
        "with it the C++ function of these loop nests has {arguments} arguments, more than {limit}; the "
        "nests that follow are another function, which is called by itself",
        "{arguments} arguments > {limit}", changes=(Source("fewer-tensors",
        "let fewer buffers be read and written, for example parameters that are views of one tensor"),),
        test="args_num > ?", values="arguments limit",
        example="torch._foreach_add(values, 1), values: 300 tensors of float32 of different sizes"),
    Cause("combo-arguments", "next-function",
        "codegen/triton_combo_kernel.py:ComboKernel._update_partition", "",
        "the nodes of one kernel would read and write {arguments} buffers with it, more than {limit}",
        "{arguments} buffers > {limit}", changes=(By("combo_kernel_max_num_args", number("arguments"),
        "puts as many into one kernel", "limit"),),
        test="partition_state.cur_count + node_rw_count > ?", values="arguments limit",
        outcome_words={"next-function": "another kernel begins with {subject}"},
        example="torch._foreach_add(values, 1), values: 130 tensors of float32, on a GPU"),
)  # fmt: skip

KIND = Kind(
    "arguments",
    "where a generated function ends, as it has many arguments",
    OUTCOMES,
    OPERANDS,
    CAUSES,
    common="arguments limit",
)
