"""Whether a matrix product on a GPU is padded to sizes that its fast kernels take, and by which rule.

torch/_inductor/fx_passes/pad_mm.py, `should_pad`: it can be padded where a size is no multiple of 8 (of 4 for
float32), and is worth it where the product is bound by arithmetic and was faster when both ways were timed.
For example 1023 x 1021 by 1021 x 1019 in float32 would become 1024 x 1024 by 1024 x 1020.

The pattern matcher asks, as the check of a pattern: the rewrite, or its refusal, is recorded in
`rewrites.py`.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, field
from typing import Any

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.decision_log import DecisionLog, cause_of_branch, size_of
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, TorchFrame

KIND: DecisionKind = "rewrite"
Cause = tuple[CauseCode, dict[str, Operand]]
_FILE = "fx_passes/pad_mm.py"


@dataclass
class Padding:
    """What was asked of each product. `seen`: of the present question; torch remembers answers, as we do."""

    log: DecisionLog
    seen: Cause | None = None
    answers: dict[str, Cause] = field(default_factory=dict)
    causes: dict[str, Cause] = field(default_factory=dict)

    def cause_of(self, names: tuple[str, ...]) -> Cause | None:
        """Return why the product among `names`, FX nodes, was padded or not."""
        return next((self.causes[name] for name in names if name in self.causes), None)

    def asked(
        self, _: TorchFrame, path: CallPath | None, __: bool, match: Any, first: Any, second: Any,
        operator: Any, *___: Any, **____: Any,
    ) -> None:  # fmt: skip
        """Keep why `should_pad` said so."""
        seen, self.seen = self.seen, None
        key = str([operator, *((value.shape, value.stride(), value.dtype) for value in (first, second))])
        if seen is not None:
            self.answers[key] = seen
        cause = _cause(path, first, second, self.answers.get(key))
        for node in match.nodes:
            self.causes.pop(node.name, None)
            if cause is not None:
                self.causes[node.name] = cause

    def bound_known(
        self, _: TorchFrame, is_bound: bool, rows: int, inner: int, columns: int, *__: object
    ) -> None:
        """See whether arithmetic bounds a product; what does not is not timed."""
        if not all(isinstance(size, int) for size in (rows, inner, columns)):
            return  # to compare symbolic ones would be a guard
        moved = rows * inner + inner * columns + rows * columns
        if not is_bound and moved:
            self.seen = "memory-bound", {"operations_per_element": rows * inner * columns / moved}

    def timed(self, _: TorchFrame, is_faster: bool, __: object, plain: float, padded: float) -> None:
        """See how long both ways took."""
        times: dict[str, Operand] = {"plain_ms": float(plain), "padded_ms": float(padded)}
        if self.log.simulated and plain == padded:
            self.seen = "times-simulated", {}
        else:
            self.seen = ("padding-faster" if is_faster else "padding-slower"), times


def _cause(path: CallPath | None, first: Any, second: Any, seen: Cause | None) -> Cause | None:
    """Return what decided; None for another rule: by the last branch in which a function returned."""
    pad_mm: Any = sys.modules["torch._inductor.fx_passes.pad_mm"]
    operands: dict[str, Operand] = {
        "sizes": tuple(str(size_of(size)) for size in (*first.shape[-2:], second.shape[-1])),
        "alignment": int(pad_mm.get_alignment_size_dtype(first.dtype)),
    }
    for one in [path, *(path.inner[::-1] if path is not None else ())]:
        if (cause := cause_of_branch(one, "rewrite", _FILE)) != "unlisted-test":
            return cause, operands
    return None if seen is None else (seen[0], {**operands, **seen[1]})


padding = functools.cache(Padding)
"""One a log: patterns are applied in another module."""


def _hook(pad_mm: Any, log: DecisionLog) -> None:
    one = padding(log)
    for place in ("should_pad", "can_pad", "_should_pad"):
        log.watch(pad_mm, place)
    wrap(pad_mm, "should_pad", log.followed(one.asked))
    wrap(pad_mm, "is_mm_compute_bound", log.observed(one.bound_known))
    wrap(pad_mm, "is_padded_faster", log.observed(one.timed))


HOOKS = {"torch._inductor.fx_passes.pad_mm": _hook}
