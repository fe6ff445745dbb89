"""Buffers that are realised or inlined: torch/_inductor/ir.py, `StorageBox`, and graph.py, `run_node`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.catalogue.entries import By, Cause, Kind, Operand, Outcome, Source, Turn
from inductor_probe.catalogue.shared import ASKED, COMMON_OF_ASKED, POINTWISE_CAT, number, unless, where


def _derived(operands: Mapping[str, Any]) -> Mapping[str, Any]:
    words = {}
    if operands.get("stored") is False:
        words["memory"] = "that is never in memory, since whatever reads it is fused with it"
    if (users := operands.get("users")) is not None:
        lowering = operands.get("repeated_by")
        words["used"] = f"is used {users} times by {lowering}" if lowering else f"has {users} users"
        words["repeat"] = "would be repeated each time" if lowering else "its users would repeat"
        words["each"] = "each time" if lowering else "in each"
        words["uses"] = f"{users} uses by {lowering}" if lowering else f"{users} users"
    return words


_MORE = {
    "realize_opcount_threshold": "a value of more operations is realised",
    "realize_acc_reads_threshold": "a value of more reads is realised",
}


def _limits(name: str, operand: str, limit: str, change: int = 0) -> tuple[By, ...]:
    """Return the settings that hold a limit: one for all devices, else one for a CPU, and one for a GPU.

    That of all devices is None by default since torch 2.13, and counts wherever it is a number.
    """
    value, effect = number(operand, change), _MORE[name]
    of_cpu = name.replace("realize_", "realize_cpu_")
    return (
        By(name, value, effect, present=limit, applies=where("setting", name)),
        By(of_cpu, value, f"{effect} on a CPU", present=limit, applies=where("setting", of_cpu)),
        By(name, value, effect, applies=where("setting", f"_{name}_default")),
    )


_USERS = "realize_opusers_threshold"
_SIZE = "realize_acc_reads_size_threshold"
_READS = "a value of more reads is realised"
_by_users = where("repeated_by", None)
"""Several FX nodes use the value: an `expand` counts as many uses as it repeats each element."""

_REALIZE = "ir.py:StorageBox.realize"
_SHOULD_REALIZE_ON_REUSE = "ir.py:StorageBox.should_realize_on_reuse"
_HAS_EXCEEDED_MAX_READS = "ir.py:StorageBox.has_exceeded_max_reads"
_RUN_NODE = "graph.py:GraphLowering.run_node"

OPERANDS = (
    *ASKED,
    Operand("node", "text", "the FX node of the value"),
    Operand("stored", "flag",
        "false where nothing was ever in memory, since it is fused into its only readers or inlined"),
    Operand("type", "text", "Reduction, Scan, Sort, ..."),
    Operand("users", "int",
        "FX nodes that use the value; with `repeated_by`, how often that uses each element"),
    Operand("repeated_by", "text",
        "a function of lowering.py that uses each element often: expand, repeat, unfold"),
    Operand("reads", "int", "of its expression", "reads"),
    Operand("reads_limit", "number", "more reads are realised", "reads"),
    Operand("bytes_limit", "int", "of all that is read", "bytes"),
    Operand("setting", "text", "that holds the limit"),
    Operand("operations", "int", "of its expression", "operations"),
    Operand("operations_limit", "number", "more operations are realised", "operations"),
    Operand("users_limit", "number", "the limit on operations is lower with more users than that"),
    Operand("heavy", "names", "operations that are too much work on a CPU to be repeated"),
    Operand("user", "text", "the operator that reads buffers only"),
    Operand("into", "names", "buffers in whose loops it is computed"),
)  # fmt: skip

OUTCOMES = (
    Outcome("realised", "{subject} is a buffer of its own[ {memory}]"),
    Outcome("inlined", "{subject} is computed within its users[, in {into}]", "passed"),
)  # fmt: skip

CAUSES = (
    Cause("reduction", "realised", _REALIZE, "type", "the result of a {type} always is",
        "a {type} always is a buffer", example="values.sum(-1) + 1, values: float32 (8, 64)"),
    Cause("reads", "realised", _SHOULD_REALIZE_ON_REUSE, "users reads reads_limit setting repeated_by",
        "{node} {used} and has {reads} reads, more than {setting} = {reads_limit}, which {repeat}",
        "{reads} reads > {reads_limit}, {uses}", remark="missed", changes=(By("realize_reads_threshold",
        number("reads"), _READS, present="reads_limit"), Source("one-user",
        "let the value have one user, or make it of fewer reads", applies=_by_users), Turn("inline")),
        example="what uses a sum of five tensors twice"),
    Cause("operations", "realised", _HAS_EXCEEDED_MAX_READS,
        "users setting operations operations_limit repeated_by users_limit",
        "{node} has {operations:# operation}, more than the {operations_limit} that one expression may "
        "have[ with more than {users_limit} users] ({setting})[; it {used}]",
        "{operations:# operation} > {operations_limit}", remark="missed",
        changes=(*_limits("realize_opcount_threshold", "operations", "operations_limit"), By(_USERS,
        number("users"), "a value of more users is realised earlier on a CPU", present="users_limit",
        applies=where("setting", _USERS)), Turn("inline")),
        example="what uses the result of more than fifty operations twice, with realize_opcount_threshold "
        "= 40"),
    Cause("heavy-operations", "realised", _SHOULD_REALIZE_ON_REUSE, "users heavy repeated_by",
        "{node} {used}, and on a CPU {heavy} would be too much work to repeat {each}", "{heavy} for {uses}",
        remark="analysis", changes=(Source("one-user-alone", "let the value have one user",
        applies=_by_users), Turn("inline")), example="what uses an exponential twice"),
    Cause("accumulated-reads", "realised", _HAS_EXCEEDED_MAX_READS,
        "reads reads_limit setting bytes_limit users repeated_by",
        "{node} has come to {reads} reads, [more than {setting} = {reads_limit}][of {bytes_limit} or more "
        "in all]", "{reads} reads[ > {reads_limit}]", remark="missed",
        changes=(*_limits("realize_acc_reads_threshold", "reads", "reads_limit"), By(_SIZE, "None",
        "does not count the bytes that are read", present="bytes_limit", applies=where("setting", _SIZE)),
        Turn("inline")),
        example="the sum of all rows of a sum, which has one user, with realize_acc_reads_threshold = 12"),
    Cause("output", "realised", _RUN_NODE, "", "the graph returns {node}", "returned by the graph",
        example="values + 1, values: float32 (8, 64)"),
    Cause("as-strided-input", "realised", _RUN_NODE, "",
        "an as_strided or resize reads {node}, and needs strides of memory to do so", "read by as_strided",
        changes=(Source("slice", "take a slice or a view of the value in place of as_strided"),),
        example="(values + 1).as_strided((4, 4), (1, 8)).sum(), values: float32 (8, 64)"),
    Cause("extern-operand", "realised", "ir.py:ExternKernel.realize_input", "",
        "{operator|function} reads {node}, and calls a kernel that takes buffers",
        "operand[ of {operator}]", example="(left + 1) @ right, left: float32 (8, 8), right: float32 (8, 8)"),
    Cause("user-needs-buffer", "realised", _RUN_NODE, "users user",
        "{node} has {users} users, and one of them, {user}, reads a buffer only",
        "{user} reads a buffer only", example="value = left + right; (value @ right, value.sum())"),
    Cause("hint", "realised", "ir.py:StorageBox.realize_hint", "",
        "[{operator}: ]{function} reads each element of {node} more than once",
        "read more than once by {function}", changes=(Turn("inline"),),
        example="functional.max_pool2d(image + other, 3)"),
    Cause("concatenation", "realised", "ir.py:ConcatKernel.realize_into", "",
        "{node} is written straight into its part of the result[ of {operator}]", "part of a concatenation",
        changes=(By("force_pointwise_cat", "True", POINTWISE_CAT,
        applies=where("operator", "aten.cat.default")),), example="torch.cat([left + 1, right + 2])"),
    Cause("mutation", "realised", "ir.py:MutationLayoutSHOULDREMOVE.realize_into", "",
        "{node} is written into a tensor in place[ ({operator})], and what read that before needs a value "
        "of its own", "written in place", example="values.add_(1); values.sum(), values: float32 (8, 8)"),
    Cause("split-reduction", "realised", "ir.py:Reduction.check_for_split_dense_dim_reindexing", "",
        "{operator|function} is done in parts, and torch divides it by the strides of {node}",
        "divided by {operator|function}", example="(values * values).sum(), values: float32 (4194304,)"),
    Cause("lowering", "realised", _REALIZE, "", "{function} asks for it when it lowers[ {operator}]",
        "{function} asks for it", example="torch.index_put(values + 1, (rows,), values)"),
    Cause("single-user", "inlined", _SHOULD_REALIZE_ON_REUSE, "users into", "it has a single user",
        "a single user", example="(values + 1).sum(dim=1) * 2, values: float32 (8, 8)"),
    Cause("cheap", "inlined", _SHOULD_REALIZE_ON_REUSE,
        "users reads reads_limit setting operations operations_limit into repeated_by",
        "each of its {users} users repeats {reads:# read} and {operations:# operation}, within limits of "
        "{reads_limit} and {operations_limit}",
        "{reads:# read}, {operations:# operation} for {users} users", remark="analysis",
        changes=(By("realize_reads_threshold", number("reads", -1), _READS, present="reads_limit",
        applies=unless("reads", 0)),
        *_limits("realize_opcount_threshold", "operations", "operations_limit", change=-1),
        Turn("realize")), example="what uses a square twice"),
)  # fmt: skip

KIND = Kind(
    "realization", "whether a value becomes a buffer, or is computed within its users",
    OUTCOMES, OPERANDS, CAUSES, common=f"{COMMON_OF_ASKED} node stored", derived=_derived,
    derives="memory used repeat each uses",
)  # fmt: skip
