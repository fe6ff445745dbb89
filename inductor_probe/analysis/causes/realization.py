"""Buffers realised or inlined: what is missed, and what turns it (shown in `tests/proving_ground`)."""

from __future__ import annotations

from collections.abc import Callable

from inductor_probe.analysis.causes.rules import By, Condition, Rules, Source
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.decision import Decision


def _value(operand: str, less: int = 0) -> Callable[[Decision], str | None]:
    """Return what offers the number in an operand as the limit: torch realises above a limit, not at it."""

    def value(decision: Decision) -> str | None:
        number = decision.operand(operand)
        return str(number - less) if isinstance(number, int) else None

    return value


def _where(operand: str, *values: str) -> Condition:
    return lambda decision, _: decision.operand(operand) in values


_ACCUMULATED = "realize_acc_reads_threshold"
_USERS = "realize_opusers_threshold"
_SIZE = "realize_acc_reads_size_threshold"


def _has_users(decision: Decision, _: CompiledGraph) -> bool:
    """Whether several FX nodes use the value: an `expand` counts as many uses as it repeats each element."""
    return decision.operand("repeated_by") is None


def _limits(name: str, operand: str, limit: str, less: int = 0) -> tuple[By, ...]:
    """Return the settings that hold a limit: one for all devices, else one for a CPU, and one for a GPU.

    That of all devices is None by default since torch 2.13, and counts wherever it is a number.
    """
    value = _value(operand, less)
    of_cpu = name.replace("realize_", "realize_cpu_")
    return (
        By(name, value, present=limit, applies=_where("setting", name)),
        By(of_cpu, value, present=limit, applies=_where("setting", of_cpu)),
        By(name, value, applies=_where("setting", f"_{name}_default")),
    )


RULES = Rules(
    kinds={
        "inlined": "passed",
        "reads": "missed",
        "operations": "missed",
        "accumulated-reads": "missed",
        "heavy-operations": "analysis",
        "cheap": "analysis",
    },
    changes={
        "reads": (
            By("realize_reads_threshold", _value("reads"), present="reads_limit"),
            Source("one-user", applies=_has_users),
        ),
        "operations": (
            *_limits("realize_opcount_threshold", "operations", "operations_limit"),
            By(_USERS, _value("users"), present="users_limit", applies=_where("setting", _USERS)),
        ),
        "accumulated-reads": (
            *_limits(_ACCUMULATED, "reads", "reads_limit"),
            By(_SIZE, "None", present="bytes_limit", applies=_where("setting", _SIZE)),
        ),
        "heavy-operations": (Source("one-user-alone", applies=_has_users),),
        "as-strided-input": (Source("slice"),),
        "concatenation": (
            By(
                "force_pointwise_cat",
                "True",
                applies=_where("operator", "aten.cat.default"),
            ),
        ),
        "cheap": (
            By(
                "realize_reads_threshold", _value("reads", 1), present="reads_limit",
                applies=lambda decision, _: decision.operand("reads") != 0,
            ),
            *_limits("realize_opcount_threshold", "operations", "operations_limit", less=1),
        ),
    },
)  # fmt: skip
