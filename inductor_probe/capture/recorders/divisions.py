"""Which generated code divides an index by a size that is known at run time only: nothing logs it.

A division by a number is a multiplication for the compiler; by a symbol it is a division, of 64 bits in C++.
For example `x.t().reshape(-1)` of symbolic sizes reads `in_ptr0[ks0*(x0 % ks1) + x0 // ks1]`: two divisions
an element, neither of which g++ vectorises.

It is seen where the division is printed: torch/utils/_sympy/printers.py for C++, and for Triton there and in
torch/_inductor/codegen/triton.py. One of sizes alone is not recorded: no loop computes it.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from inductor_probe.capture.recorders.decision_log import DecisionLog, printed, stack
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import DecisionKind, Outcome, TorchFrame

KIND: DecisionKind = "divisions"


def _printed(log: DecisionLog, _: TorchFrame, __: str, ___: object, division: Any) -> None:
    """Record that a kernel has the text of a division, if its divisor is a size, and the dividend none."""
    dividend, *divisors = division.args
    if all(divisor.is_number for divisor in divisors):
        return
    kernel = sys.modules["torch._inductor.virtualized"].V.kernel
    node, arguments = getattr(kernel, "current_node", None), getattr(kernel, "args", None)
    place = next(stack(sys._getframe(1)), None)  # what had it printed
    if node is None or arguments is None or place is None:
        return
    sizes = {text: size for size, text in arguments.sizevars.items()}
    loops = sorted(symbol.name for symbol in dividend.free_symbols if symbol.name not in sizes)
    if not loops:
        return
    known = {symbol: sizes[symbol.name] for symbol in division.free_symbols if symbol.name in sizes}
    text, name = printed(division.xreplace(known)), node.get_name()
    before = log.latest(KIND, name)
    seen = before.operand("divisions") if before is not None else None
    divisions = dict.fromkeys((*(seen if isinstance(seen, tuple) else ()), text))
    is_wide = getattr(kernel, "index_dtype", "") != "tl.int32"
    outcome: Outcome = "divides-64-bit" if is_wide else "divides-32-bit"
    log.record(
        KIND, ((name,),), outcome, "symbolic-divisor", place,
        operands={"divisions": tuple(divisions), "loops": tuple(loops)}, key=name,
    )  # fmt: skip


def _hook(names: tuple[str, ...], module: Any, log: DecisionLog) -> None:
    for name in names:
        wrap(module, name, log.observed(partial(_printed, log)))


HOOKS = {
    "torch.utils._sympy.printers": partial(
        _hook,
        (
            "CppPrinter._print_FloorDiv",
            "CppPrinter._print_ModularIndexing",
            "PythonPrinter._print_ModularIndexing",
        ),
    ),
    "torch._inductor.codegen.triton": partial(_hook, ("TritonPrinter._print_FloorDiv",)),
}
