"""Which generated code divides an index by a size that is known at run time only: nothing logs it.

A division by a number is a multiplication for the compiler; by a symbol it is a division, of 64 bits in C++.
For example `x.t().reshape(-1)` of symbolic sizes reads `in_ptr0[ks0*(x0 % ks1) + x0 // ks1]`: two divisions
an element, neither of which g++ vectorises.

It is seen where the division is printed: torch/utils/_sympy/printers.py for C++, and for Triton there and in
torch/_inductor/codegen/triton.py. One of sizes alone is not recorded: no loop computes it.
"""

from __future__ import annotations

import sys
from typing import Any

from inductor_probe.capture.recorders.base import Call, Cause, Recorder, sees
from inductor_probe.capture.recorders.decision_log import node_in, printed, stack


class Divisions(Recorder):
    """Records the divisions by sizes that the code of a node has."""

    KIND = "divisions"

    @sees("torch.utils._sympy.printers", "CppPrinter._print_FloorDiv", "CppPrinter._print_ModularIndexing",
        "PythonPrinter._print_ModularIndexing")  # fmt: skip
    @sees("torch._inductor.codegen.triton", "TritonPrinter._print_FloorDiv")
    def printed(self, _: Call, __: Any, division: Any) -> None:
        """Record that a kernel has the text of a division by a size, if the dividend has none."""
        dividend, *divisors = division.args
        if all(divisor.is_number for divisor in divisors):
            return
        kernel = sys.modules["torch._inductor.virtualized"].V.kernel
        name, arguments = node_in(kernel), getattr(kernel, "args", None)
        place = next(stack(sys._getframe(1)), None)  # what had it printed
        if not name or arguments is None or place is None:
            return
        sizes = {text: size for size, text in arguments.sizevars.items()}
        loops = sorted(symbol.name for symbol in dividend.free_symbols if symbol.name not in sizes)
        if not loops:
            return
        known = {symbol: sizes[symbol.name] for symbol in division.free_symbols if symbol.name in sizes}
        before = self.log.latest(self.KIND, name)
        seen = before.operand("divisions") if before is not None else None
        printed_before = seen if isinstance(seen, tuple) else ()
        divisions = dict.fromkeys((*printed_before, printed(division.xreplace(known))))
        is_wide = getattr(kernel, "index_dtype", "") != "tl.int32"
        cause = Cause("symbolic-divisor", {"divisions": tuple(divisions), "loops": tuple(loops)})
        self.record("divides-64-bit" if is_wide else "divides-32-bit", cause, place, (name,), key=name)
