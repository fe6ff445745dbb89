"""Parameters of kernels whose text is shown and not read: Metal's and Pallas's.

They tell what a launch writes, so that the nodes that it computes are known. Their names come from
`KernelArgs` of torch/_inductor/codegen/common.py, as those of C++ and Triton do.

`MetalKernel.codegen_kernel` in torch/_inductor/codegen/mps.py prints

    kernel void generated_kernel(
        device float* out_ptr0,
        constant float* in_ptr0,
        constant long& ks0,
        uint xindex [[thread_position_in_grid]]
    ) {

and `PallasKernel._codegen_main_entry_default` in torch/_inductor/codegen/pallas.py

    def pallas_fused_add_0_main(out_ptr0_alias, in_ptr0, out_ptr0, stream=None):

in the order in which the wrapper passes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inductor_probe.backends import KernelText, role_of
from inductor_probe.model.code import KernelArg, PointerUse

_METAL = re.compile(r"\bkernel void \w+\((?P<parameters>[^{]*)\) \{")
_PALLAS = re.compile(r"^def \w+_main\((?P<parameters>[^)]*)\):$", re.MULTILINE)
_OF_THE_LAUNCH = ("[[", "error_buf", "stream=")
"""In parameters that the launch does not name: positions of a thread, the buffer of errors, the stream."""
_ALIAS = "_alias"


def read(source: str) -> KernelText:
    """Return the parameters of a kernel; none where its text is in neither form."""
    return KernelText(tuple(_parameters(source)), None)


def pointer_uses(source: str, pointers: frozenset[str]) -> tuple[PointerUse, ...]:
    """Return nothing: the lines of such a kernel are not read."""
    return ()


def _parameters(source: str) -> Iterator[KernelArg]:
    if (match := _METAL.search(source) or _PALLAS.search(source)) is None:
        return
    for parameter in match["parameters"].split(","):
        if not parameter.strip() or any(text in parameter for text in _OF_THE_LAUNCH):
            continue
        type_, _, name = parameter.strip().rpartition(" ")
        # `out_ptr0_alias` is the memory of `out_ptr0`, given away to Jax; it is passed a second time
        role = role_of(name.removesuffix(_ALIAS))
        yield KernelArg(name, role, type_.strip() or None)
