"""Words for buffers realised or inlined: torch/_inductor/ir.py, `StorageBox`, and graph.py, `run_node`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inductor_probe.report.words.causes.rows import POINTWISE_CAT, CauseWords, KindWords


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


WORDS = KindWords(
    outcomes={
        "realised": "{subject} is a buffer of its own[ {memory}]",
        "inlined": "{subject} is computed within its users[, in {into}]",
    },
    causes={
        "reduction": CauseWords("the result of a {type} always is", "a {type} always is a buffer"),
        "reads": CauseWords(
            "{node} {used} and has {reads} reads, more than {setting} = {reads_limit}, which {repeat}",
            "{reads} reads > {reads_limit}, {uses}",
        ),
        "operations": CauseWords(
            "{node} has {operations:# operation}, more than the {operations_limit} that one expression may "
            "have[ with more than {users_limit} users] ({setting})[; it {used}]",
            "{operations:# operation} > {operations_limit}",
        ),
        "heavy-operations": CauseWords(
            "{node} {used}, and on a CPU {heavy} would be too much work to repeat {each}",
            "{heavy} for {uses}",
        ),
        "accumulated-reads": CauseWords(
            "{node} has come to {reads} reads, [more than {setting} = {reads_limit}]"
            "[of {bytes_limit} or more in all]",
            "{reads} reads[ > {reads_limit}]",
        ),
        "output": CauseWords("the graph returns {node}", "returned by the graph"),
        "as-strided-input": CauseWords(
            "an as_strided or resize reads {node}, and needs strides of memory to do so",
            "read by as_strided",
        ),
        "extern-operand": CauseWords(
            "{operator|function} reads {node}, and calls a kernel that takes buffers",
            "operand[ of {operator}]",
        ),
        "user-needs-buffer": CauseWords(
            "{node} has {users} users, and one of them, {user}, reads a buffer only",
            "{user} reads a buffer only",
        ),
        "hint": CauseWords(
            "[{operator}: ]{function} reads each element of {node} more than once",
            "read more than once by {function}",
        ),
        "concatenation": CauseWords(
            "{node} is written straight into its part of the result[ of {operator}]",
            "part of a concatenation",
        ),
        "mutation": CauseWords(
            "{node} is written into a tensor in place[ ({operator})], and what read that before needs a "
            "value of its own",
            "written in place",
        ),
        "split-reduction": CauseWords(
            "{operator|function} is done in parts, and torch divides it by the strides of {node}",
            "divided by {operator|function}",
        ),
        "lowering": CauseWords(
            "{function} asks for it when it lowers[ {operator}]", "{function} asks for it"
        ),
        "single-user": CauseWords("it has a single user", "a single user"),
        "cheap": CauseWords(
            "each of its {users} users repeats {reads:# read} and {operations:# operation}, within limits "
            "of {reads_limit} and {operations_limit}",
            "{reads:# read}, {operations:# operation} for {users} users",
        ),
    },
    changes={
        "realize_reads_threshold": "a value of more reads is realised",
        "realize_opusers_threshold": "a value of more users is realised earlier on a CPU",
        "realize_opcount_threshold": "a value of more operations is realised",
        "realize_cpu_opcount_threshold": "a value of more operations is realised on a CPU",
        "realize_acc_reads_threshold": "a value of more reads is realised",
        "realize_cpu_acc_reads_threshold": "a value of more reads is realised on a CPU",
        "realize_acc_reads_size_threshold": "does not count the bytes that are read",
        "force_pointwise_cat": POINTWISE_CAT,
        "one-user-alone": "let the value have one user",
        "one-user": "let the value have one user, or make it of fewer reads",
        "slice": "take a slice or a view of the value in place of as_strided",
    },
    derived=_derived,
)
