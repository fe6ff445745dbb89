"""Where a generated function ends because of how many arguments it has: nothing logs it.

torch/_inductor/codegen/cpp.py, `CppScheduling.codegen_node`: C++ loop nests that follow each other are put
into one function, until that has more arguments than the limit; then it is ended. For example, of 300 tensors
to each of which 1 is added, the first 251 are in one function of 502 arguments.
codegen/triton_combo_kernel.py, `ComboKernel._update_partition`: of independent nodes, and of the parts of a
foreach node, the next one that would make it more than `combo_kernel_max_num_args` begins another kernel.
Both are watched: the limit is torch's.
"""

from __future__ import annotations

from typing import Any

from inductor_probe.capture.recorders.base import Call, Cause, Recorder, sees
from inductor_probe.capture.recorders.decision_log import cause_of_test, names_of, test_at


class Arguments(Recorder):
    """Records that a node fills a function, or begins the next one."""

    KIND = "arguments"

    @sees("torch._inductor.codegen.cpp", "CppScheduling.codegen_node", watches=True)
    @sees("torch._inductor.codegen.triton_combo_kernel", "ComboKernel._update_partition", watches=True)
    def generated(self, call: Call, *given: Any) -> None:
        """Record what was compared with a limit when a node, the last argument, was generated."""
        path = call.path
        for seen in path.all() if path is not None else ():
            if path is not None and seen.truth and (known := cause_of_test(self.KIND, call.function, seen)):
                names, tests = names_of(given[-1].get_nodes()), (test_at(path, seen),)
                self.record("next-function", Cause(*known, tests), call.place, names, key=names)
