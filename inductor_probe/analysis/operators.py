"""The names of operators, in every way that torch and the files of a dump spell them.

| spelling | where it is printed |
|---|---|
| `torch.ops.aten.add.Tensor` | FX targets; library calls and `python_kernel_name` of torch 2.6 and later |
| `aten.cumsum.default` | library calls of torch 2.4; of all versions with `out` (`aten.randint.low_out`) |
| `aten.cumsum` | library calls of torch 2.1 and 2.2, without the overload; flop counts |
| `aten::add.Tensor` | schemas (`OpOverload.name()`), in messages of torch |
| `extern_kernels.mm` | calls of what inductor has registered as an `ExternKernelChoice`, of all versions |
| `mm` | the same in what max-autotune considered |
| `aoti_torch_cpu_addmm_out` | library calls of C++ wrappers: functions of AOTInductor's C interface |
| `aoti_torch_cpu__c10d_functional_all_reduce_` | collectives there, with the namespace as the others do |
| `ops.load` | loop bodies: a method of `OpsHandler` (`torch/_inductor/ops_handler.py`) |
| `torch.sym_float`, `+`, `[]`, `self` | FX: a function, an operation on sizes, an item, an attribute |

An overload without a name is `default` in Python (`OpOverload` in `torch/_ops.py`), and empty in a schema.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from inductor_probe.reader.cpp_wrapper import PROXY_CALL

_PYTHON_PREFIX = "torch.ops."
C10D = "_c10d_functional"
"""The namespace of collectives: torch/csrc/distributed/c10d/Functional.cpp."""
WAITS = ("wait_tensor", "wait_tensors")
"""The second waits for several, since torch 2.15."""
_COLLECTIVES = (C10D, "c10d_functional", "_c10d_functional_autograd")
_UNNAMED = ("", "default")
# torch/csrc/inductor/aoti_torch/c/shim.h, and torchgen/gen_aoti_c_shim.py for those of each device.
_SHIM = re.compile(r"(?P<namespace>aoti_torch_(?:cpu|cuda|mps|xpu|mtia))_(?P<name>\w+?)(?:_out)?")


class Operator(Struct, frozen=True):
    """An operator as a file names it: `aten.add.Tensor` of `torch.ops.aten.add.Tensor`.

    Attributes:
        namespace: `aten`, `prims`, `extern_kernels`, `ops`; empty where none is written.
        name: `add`, `index_put_`.
        overload: `Tensor`, `default`; empty where none is written.
    """

    namespace: str
    name: str
    overload: str = ""

    def __str__(self) -> str:
        return ".".join(part for part in (self.namespace, self.name, self.overload) if part)

    @property
    def packet(self) -> str:
        """The operator without its overload, what torch calls an `OpOverloadPacket`: `aten.add`."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def signature(self) -> str:
        """The operator with an overload that has a name: `aten.cumsum` for `aten.cumsum.default`."""
        return self.packet if self.overload in _UNNAMED else str(self)


@lru_cache(maxsize=4096)  # a graph calls few operators often
def operator(text: str) -> Operator:
    """Return the operator that `text` names, in any spelling; what is no dotted name is a name alone."""
    if match := _SHIM.fullmatch(text):
        if match["name"].startswith(f"{C10D}_"):
            return Operator(C10D, match["name"].removeprefix(f"{C10D}_"))
        return Operator(match["namespace"], match["name"])
    namespace, colons, rest = text.removeprefix(_PYTHON_PREFIX).partition("::")
    if not colons:
        namespace, _, rest = namespace.partition(".")
    name, _, overload = rest.partition(".")
    if not namespace or not name:  # `sum`, `0.`
        return Operator("", text.removeprefix(_PYTHON_PREFIX))
    return Operator(namespace, name, overload)


def collective(called: str) -> str | None:
    """Return which collective a library call is, or one of `WAITS`: `all_reduce_`; None of any other call."""
    call = operator(called)
    return call.name if call.namespace in _COLLECTIVES else None


def is_call_of(called: str, target: str) -> bool:
    """Return whether a library call may be of the operator that a node names as its target.

    A function of AOTInductor's C interface has the overload in its name, and the namespace where it is not
    aten's: `aoti_torch_cpu_sort_stable` is `aten.sort.stable`. Which operator the proxy executor runs is not
    in the text.
    """
    call, wanted = operator(called), operator(target)
    if call.name == wanted.name or called == PROXY_CALL:
        return True
    if not call.namespace.startswith("aoti_torch_"):
        return False
    return call.name in (
        f"{wanted.name}_{wanted.overload}",
        f"{wanted.namespace}_{wanted.name}",
        f"{wanted.namespace}_{wanted.name}_{wanted.overload}",
    )
