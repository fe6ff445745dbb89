"""The names of operators, in every way that torch and the files of a dump spell them.

| spelling | where it is printed |
|---|---|
| `torch.ops.aten.add.Tensor` | FX targets; library calls and `python_kernel_name` of torch 2.6 and later |
| `aten.cumsum.default` | library calls of torch 2.4; of all versions with `out` (`aten.randint.low_out`) |
| `aten.cumsum` | library calls of torch 2.1 and 2.2, without the overload; flop counts |
| `aten::add.Tensor` | schemas (`OpOverload.name()`), in messages of torch |
| `extern_kernels.mm` | calls of what inductor has registered as an `ExternKernelChoice`, of all versions |
| `mm` | the same in what max-autotune considered |
| `ops.load` | loop bodies: a method of `OpsHandler` (`torch/_inductor/ops_handler.py`) |
| `torch.sym_float`, `+`, `[]`, `self` | FX: a function, an operation on sizes, an item, an attribute |

An overload without a name is `default` in Python (`OpOverload` in `torch/_ops.py`), and empty in a schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

_PYTHON_PREFIX = "torch.ops."
_UNNAMED = ("", "default")


@dataclass(frozen=True, slots=True)
class Operator:
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
    namespace, colons, rest = text.removeprefix(_PYTHON_PREFIX).partition("::")
    if not colons:
        namespace, _, rest = namespace.partition(".")
    name, _, overload = rest.partition(".")
    if not namespace or not name:  # `sum`, `0.`
        return Operator("", text.removeprefix(_PYTHON_PREFIX))
    return Operator(namespace, name, overload)
