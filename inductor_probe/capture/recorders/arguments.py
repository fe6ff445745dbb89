"""Where a generated function ends because of how many arguments it has: nothing logs it.

torch/_inductor/codegen/cpp.py, `CppScheduling.codegen_node`: C++ loop nests that follow each other are put
into one function, until that has more arguments than the limit; then it is ended. For example, of 300 tensors
to each of which 1 is added, the first 251 are in one function of 502 arguments.
codegen/triton_combo_kernel.py, `ComboKernel._update_partition`: of independent nodes, and of the parts of a
foreach node, the next one that would make it more than `combo_kernel_max_num_args` begins another kernel.
Both are watched: the limit is torch's.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from inductor_probe.capture.branches import CallPath
from inductor_probe.capture.recorders.decision_log import DecisionLog, cause_of_test, test_at
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import DecisionKind, TorchFrame

KIND: DecisionKind = "arguments"

_NODE, _PART = "CppScheduling.codegen_node", "ComboKernel._update_partition"


def _generated(log: DecisionLog, place: TorchFrame, path: CallPath | None, _: None, *given: Any) -> None:
    """Record that a node, the last argument, fills a function or begins the next one."""
    for seen in path.all() if path is not None else ():
        if path is not None and seen.truth and (known := cause_of_test(KIND, path.sites.function, seen)):
            names = tuple(node.get_name() for node in given[-1].get_nodes())
            log.record(
                KIND, (names,), "next-function", known[0], place, operands=known[1], key=names,
                tests=(test_at(path, seen),),
            )  # fmt: skip


def _hook(name: str, module: Any, log: DecisionLog) -> None:
    log.watch(module, name)
    wrap(module, name, log.followed(partial(_generated, log)))


HOOKS = {
    "torch._inductor.codegen.cpp": partial(_hook, _NODE),
    "torch._inductor.codegen.triton_combo_kernel": partial(_hook, _PART),
}
