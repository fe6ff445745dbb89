"""Torch's reasons not to fuse: the numbers in them, and the settings that may change them.

What a reason means is in `report/words/fusion.py`. "First" and "second" are the nodes of `cannot fuse <first>
with <second>`: the first would run before the second in the fused kernel.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from inductor_probe.model.fusion import NumberName, Refusal
from inductor_probe.model.fusion_reasons import REASONS
from inductor_probe.model.fx import Runnable
from inductor_probe.model.ir import SchedulerNode
from inductor_probe.model.setting import CONFIG, Setting

NUMBERS: Mapping[str, tuple[NumberName, ...]] = {
    form: reason.numbers for form, reason in REASONS.items() if reason.numbers
}
"""Reasons with operands, a `%s` each."""
_FIXED = ("node1 is not TritonTemplateBuffer",)
"""Reasons without numbers that a form with a `%s` would fit as well."""


class _Change(NamedTuple):
    """A value of a setting that may change a refusal.

    Attributes:
        value: as torch's source spells it; None where another number may.
        gpu: only code for GPUs reads the setting. pointwise: it does nothing for reductions.
        fitting: the backend refuses all the same where the loops of both do not fit one kernel.
        unset: False where the value is torch's default, so that it is offered only if the dump has another.
    """

    value: str | None
    gpu: bool = False
    pointwise: bool = False
    fitting: bool = False
    unset: bool = True


SETTINGS: Mapping[str, _Change] = {
    "aggressive_fusion": _Change("True", pointwise=True, fitting=True),
    "benchmark_fusion": _Change("False", gpu=True),
    "combo_kernels": _Change("True", gpu=True),
    "cutlass.cutlass_epilogue_fusion_enabled": _Change("True", gpu=True),
    "epilogue_fusion": _Change("True", unset=False),
    "epilogue_fusion_user_defined_triton_kernel": _Change("True", gpu=True),
    "loop_index_inversion_in_fusion": _Change("True", fitting=True, unset=False),
    "loop_ordering_after_fusion": _Change("True", gpu=True, fitting=True),
    "max_fusion_size": _Change(None),
    "max_fusion_unique_io_buffers": _Change(None),
    "prologue_fusion": _Change("True"),
    "score_fusion_memory_threshold": _Change(None),
    "split_reductions": _Change("False"),
    "triton.mix_order_reduction": _Change("True", gpu=True),
    "triton.native_matmul": _Change("False", gpu=True),
    "triton.tiling_prevents_pointwise_fusion": _Change("False", gpu=True),
    "triton.tiling_prevents_reduction_fusion": _Change("False", gpu=True),
}
"""Settings by their names below `torch._inductor.config`."""

_SETTINGS_OF: Mapping[str, tuple[str, ...]] = {
    "memory deps did not match": ("loop_ordering_after_fusion",),
    "node1's triton kernel doesn't support epilogue fusion": ("epilogue_fusion_user_defined_triton_kernel",),
    "no shared data": ("loop_ordering_after_fusion", "aggressive_fusion"),
    "no shared data due to indexing mismatch": (
        "loop_ordering_after_fusion", "loop_index_inversion_in_fusion",
    ),
    "score_fusion_memory_threshold": ("score_fusion_memory_threshold",),
    "exceeds max fusion": ("max_fusion_size",),
    "fusion_prevent_too_many_reads_and_writes": ("max_fusion_unique_io_buffers",),
    "template epilogue not satisfied": ("epilogue_fusion",),
    "prologue fusion turned off": ("prologue_fusion",),
    "register spilling of the first kernel": ("benchmark_fusion",),
    "register spilling of the second kernel": ("benchmark_fusion",),
    "register spilling of the fused kernel": ("benchmark_fusion",),
    "numel/rnumel mismatch (reduce) (%s, %s), (%s, %s)": ("triton.mix_order_reduction", "split_reductions"),
    "numel/rnumel mismatch (non-reduce) (%s, %s), (%s, %s)": ("combo_kernels",),
    "tiling mismatch (%s, %s, %s)": ("triton.tiling_prevents_pointwise_fusion",),
    "invalid tiling for reduction": ("triton.tiling_prevents_reduction_fusion",),
    "invalid loop order and tiling for native matmul": ("triton.native_matmul",),
    "cutlass epilogue fusion is not enabled": ("cutlass.cutlass_epilogue_fusion_enabled", "epilogue_fusion"),
}  # fmt: skip


def _pattern(form: str) -> re.Pattern[str]:
    """Make a form a pattern: the `%s` of a tuple are one group, to be split at its commas."""
    text = re.sub(r"%s(?:, %s)+", "%s", form)
    return re.compile("(.*?)".join(re.escape(part) for part in text.split("%s")), re.DOTALL)


_PATTERNS = tuple((_pattern(form), form) for form in NUMBERS)


@lru_cache(maxsize=4096)
def explain(reason: str) -> Refusal:
    """Return a reason with its numbers; one of an unknown form is its own form."""
    headline = reason.partition("\n")[0].strip()
    for pattern, form in _PATTERNS if headline not in _FIXED else ():
        if match := pattern.fullmatch(headline):
            values = (value for group in match.groups() for value in _values(group))
            return Refusal(reason, form, tuple(zip(NUMBERS[form], values, strict=False)))
    return Refusal(reason, headline)


def _values(group: str) -> list[str]:
    """Split `256, 1280`, the numbers of a tuple: one may be `Max(1, s0)`, so it is parsed."""
    if "," not in group:
        return [group]
    encoded = f"({group})".encode()
    try:
        node = ast.parse(encoded, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [group]
    if not isinstance(node, ast.Tuple) or not node.elts:
        return [group]
    return [encoded[part.col_offset : part.end_col_offset].decode() for part in node.elts]


class PairTraits(NamedTuple):
    """What decides whether a setting does anything for a node: where it runs, and whether it reduces."""

    on_cpu: bool
    reduces: bool


def traits_of(leaves: Iterable[SchedulerNode]) -> PairTraits:
    """Return the traits of a node that is made of `leaves`."""
    rows = list(leaves)
    return PairTraits(any(leaf.device == "cpu" for leaf in rows), any(map(is_reduction, rows)))


def is_reduction(node: SchedulerNode) -> bool:
    """Whether an unfused node reduces: its loops are `((512,), (1000,))` in C++, `(512, 1000)` in Triton."""
    return node.iteration is not None and len(node.iteration) > 1 and node.iteration[1] not in ((), 1)


def settings_for(
    form: str,
    pairs: Iterable[tuple[PairTraits, PairTraits]],
    runnable: Runnable | None,
    loops_fit: bool | None = None,
) -> tuple[Setting, ...]:
    """Return the settings that may change a refusal of some of the pairs, with their present values.

    Args:
        form: of the refusal.
        pairs: the traits of both nodes of each pair that is refused so.
        runnable: of the graph: it has the settings that are not torch's default.
        loops_fit: whether the loops of the pairs fit one kernel, None where that is not known.
    """
    kinds = set(pairs)
    settings: list[Setting] = []
    for name in _SETTINGS_OF.get(form, ()):
        change = SETTINGS[name]
        if (change.fitting and loops_fit is False) or not any(_applies(change, *pair) for pair in kinds):
            continue
        full = f"{CONFIG}.{name}"
        value = dict(runnable.settings).get(full, "default") if runnable else None
        is_set = value not in ("default", None)
        if (value is None or value != change.value) and (change.unset or is_set):
            settings.append(Setting(full, change.value, value))
    return tuple(settings)


def _applies(change: _Change, first: PairTraits, second: PairTraits) -> bool:
    if change.gpu and (first.on_cpu or second.on_cpu):
        return False
    return not (change.pointwise and (first.reduces or second.reduces))
