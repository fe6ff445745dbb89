"""Whether a matrix product on a GPU is padded to sizes that its fast kernels take, and by which rule.

torch/_inductor/fx_passes/pad_mm.py, `should_pad`: it can be padded where a size is no multiple of 8 (of 4 for
float32), and is worth it where the product is bound by arithmetic and was faster when both ways were timed.
For example 1023 x 1021 by 1021 x 1019 in float32 would become 1024 x 1024 by 1024 x 1020.

The pattern matcher asks, as the check of a pattern: the rewrite, or its refusal, is recorded in
`rewrites.py`.
"""

from __future__ import annotations

import sys
from typing import Any

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, sees, watches
from inductor_probe.capture.recorders.decision_log import DecisionLog, cause_of_branch, size_of

_PAD_MM = "torch._inductor.fx_passes.pad_mm"
_FILE = "fx_passes/pad_mm.py"


@watches(_PAD_MM, "can_pad", "_should_pad")
class Padding(Recorder):
    """Keeps what was asked of each product.

    `_seen` is of the present question, `_answers` are remembered as by torch, and `_causes` are by FX node.
    """

    KIND = "rewrite"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._seen: Cause | None = None
        self._answers: dict[str, Cause] = {}
        self._causes: dict[str, Cause] = {}

    def cause_of(self, names: tuple[str, ...]) -> Cause | None:
        """Return why the product among `names`, FX nodes, was padded or not."""
        return next((self._causes[name] for name in names if name in self._causes), None)

    @sees(_PAD_MM, "should_pad", watches=True)
    def asked(
        self, call: Call, match: Any, first: Any, second: Any, operator: Any, *_: Any, **__: Any
    ) -> None:
        """Keep why `should_pad` said so."""
        seen, self._seen = self._seen, None
        key = str([operator, *((value.shape, value.stride(), value.dtype) for value in (first, second))])
        if seen is not None:
            self._answers[key] = seen
        cause = _cause(call.path, first, second, self._answers.get(key))
        for node in match.nodes:
            self._causes.pop(node.name, None)
            if cause is not None:
                self._causes[node.name] = cause

    @sees(_PAD_MM, "is_mm_compute_bound")
    def bound_known(self, call: Call, rows: int, inner: int, columns: int, *_: object) -> None:
        """See whether arithmetic bounds a product; what does not is not timed."""
        if not all(isinstance(size, int) for size in (rows, inner, columns)):
            return  # to compare symbolic ones would be a guard
        moved = rows * inner + inner * columns + rows * columns
        if not call.result and moved:
            self._seen = Cause("memory-bound", {"operations_per_element": rows * inner * columns / moved})

    @sees(_PAD_MM, "is_padded_faster")
    def timed(self, call: Call, _: object, plain: float, padded: float) -> None:
        """See how long both ways took."""
        if self.log.simulated and plain == padded:
            self._seen = Cause("times-simulated")
        else:
            times: Operands = {"plain_ms": float(plain), "padded_ms": float(padded)}
            self._seen = Cause("padding-faster" if call.result else "padding-slower", times)


def _cause(path: CallPath | None, first: Any, second: Any, seen: Cause | None) -> Cause | None:
    """Return what decided; None for another rule: by the last branch in which a function returned."""
    operands: Operands = {
        "sizes": tuple(str(size_of(size)) for size in (*first.shape[-2:], second.shape[-1])),
        "alignment": int(sys.modules[_PAD_MM].get_alignment_size_dtype(first.dtype)),
    }
    for one in [path, *(path.inner[::-1] if path is not None else ())]:
        if (code := cause_of_branch(one, "rewrite", _FILE)) != "unlisted-test":
            return Cause(code, operands)
    return None if seen is None else Cause(seen.code, {**operands, **seen.operands})
