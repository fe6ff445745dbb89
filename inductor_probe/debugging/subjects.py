"""What happens to a buffer, a pair of nodes or a kernel, as places in the compiler with conditions.

Buffers and operations get their names in lowering, one after the other, and kernels when their code is
there: a kernel that is still being tiled is known by the number that it will get.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inductor_probe.debugging.wanted import Wanted
from inductor_probe.errors import ProbeError

_NODES = r"(?:op|buf)\d+(?:_(?:op|buf)\d+)*"
_PAIR = re.compile(rf"({_NODES})\s*,\s*({_NODES})")
_BUFFER = re.compile(r"(?:\w+_)?buf\d+")
_OPERATION = re.compile(r"(?:\w+_)?op\d+")
_KERNEL = re.compile(r"(cpp|triton)_\w*?_?(\d+)")
_FLEXIBLE = "type(self.layout).__name__ == 'FlexibleLayout'"
_FREEZE = ("", "_with_stride_order", "_with_fill_order", "_with_same_order", "_with_exact_strides")


def wanted_for(subject: str) -> tuple[Wanted, ...]:
    """Return where to stop for `subject`: `buf3`, `op3`, `op3,op4`, or a kernel's name.

    Raises:
        ProbeError: it is none of these.
    """
    if match := _PAIR.fullmatch(subject):
        return tuple(_pair(match[1], match[2]))
    if match := _KERNEL.fullmatch(subject):
        return tuple(_kernel(subject, match[1], int(match[2])))
    if _BUFFER.fullmatch(subject):
        return tuple(_buffer(subject))
    if _OPERATION.fullmatch(subject):
        return tuple(_operation(subject))
    raise ProbeError(
        f"--break-on {subject} is no buffer, node, pair or kernel",
        "for example buf3, op3, op3,op4 or cpp_fused_add_0; places in the code go to --break",
    )


def _buffer(name: str) -> Iterator[Wanted]:
    yield Wanted(
        "torch._inductor.graph:GraphLowering.register_buffer",
        f"name == {name!r}",
        f"{name} is realised",
        at="return",
    )
    mine = f"self.name == {name!r} and {_FLEXIBLE}"
    yield Wanted("torch._inductor.ir:ComputedBuffer.decide_layout", mine, f"the layout of {name} is decided")
    for how in _FREEZE:
        yield Wanted(f"torch._inductor.ir:Buffer.freeze_layout{how}", mine, f"the layout of {name} is fixed")


def _operation(name: str) -> Iterator[Wanted]:
    yield Wanted(
        "torch._inductor.graph:GraphLowering.register_operation",
        f"name == {name!r}",
        f"{name} is made",
        at="return",
    )
    yield Wanted(
        "torch._inductor.scheduler:SchedulerNode.codegen",
        f"self.get_name() == {name!r}",
        f"code of {name} is generated",
    )


def _pair(first: str, second: str) -> Iterator[Wanted]:
    names = ", ".join(repr(side.split("_")) for side in (first, second))
    condition = f"are_nodes(node1, node2, {names})"
    pair = f"{first} and {second}"
    scheduler = "torch._inductor.scheduler:Scheduler"
    yield Wanted(f"{scheduler}.can_fuse", condition, f"{pair} are tried for fusion")
    yield Wanted(f"{scheduler}.fuse_two_nodes", condition, f"{pair} are fused")


def _kernel(name: str, language: str, number: int) -> Iterator[Wanted]:
    soon = f"next_kernel() == {number}"
    if language == "cpp":
        cpp = "torch._inductor.codegen.cpp"
        yield Wanted(f"{cpp}:TilingSelect.select_tiling", soon, f"what becomes kernel {number} is tiled")
        define = f"{cpp}:CppScheduling.define_kernel"
    else:
        simd = "torch._inductor.codegen.simd:SIMDScheduling.codegen_node_schedule"
        yield Wanted(simd, soon, f"what becomes kernel {number} is about to be tiled")
        define = "torch._inductor.codegen.triton:TritonScheduling.define_kernel"
    yield Wanted(define, f"kernel_name == {name!r}", f"{name} is generated", at="return")
