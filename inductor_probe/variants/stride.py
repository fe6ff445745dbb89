"""The rewrite `stride`: a buffer laid out anew, in the wrapper and in every kernel that reaches it."""

from __future__ import annotations

import re
from dataclasses import replace

from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import NewVariant
from inductor_probe.variants.code import Code
from inductor_probe.variants.coordinates import Layout
from inductor_probe.variants.memory import WrapperMemory, edited, relaunched
from inductor_probe.variants.relaid import relaid

_ARGUMENTS = re.compile(r"\s*(?P<buffer>\w+)\s*=\s*(?P<stride>\([\d\s,]*\)|\w+)\s*")


def stride(code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
    """Return a `call` that lays a buffer out anew, and copies of the kernels that read or write it.

    Args:
        code: what it is a variant of.
        arguments: `buf1=(3072,1,96,3)`, `buf1=channels_last` or `buf1=contiguous`.
        comment: of the variants.

    Raises:
        NotFoundError: there is no such buffer.
        ProbeError: the strides do not fit its size, or a place that depends on them cannot follow.
    """
    given = _ARGUMENTS.fullmatch(arguments)
    if given is None:
        raise ProbeError(
            f"stride wants BUFFER=(strides), channels_last or contiguous, not {arguments!r}",
            "stride:buf1=channels_last",
        )
    walker = WrapperMemory(code, given["buffer"])
    old = walker.layout_of()
    new = Layout(old.size, _strides(given["stride"], old, given["buffer"]))
    if new == old:
        raise ProbeError(f"{given['buffer']} has the strides {old.stride} already", "name others")
    memory = walker.follow(new.stride)
    number = code.next_number
    sources: dict[str, str] = {}
    handed: dict[str, tuple[int, ...]] = {}
    renamed: dict[int, tuple[str, str]] = {}
    for launch in memory.launches:
        kernel = code.kernels[launch.kernel]
        if handed.setdefault(launch.kernel, launch.at) != launch.at:
            raise ProbeError(
                f"{code.path}:{launch.line}: {kernel.name} is handed {given['buffer']} in several ways",
                "nothing was changed: make that variant by hand, the bench file checks it",
            )
        renamed[launch.line] = (kernel.name, f"{launch.kernel}_v{number}")
        if launch.kernel not in sources:
            names = [arg.name for arg in kernel.backend.read(kernel.source).args]
            source = kernel
            for at in launch.at:
                source = replace(source, source=relaid(source, names[at], old, new))
            sources[launch.kernel] = source.source
    wrapper = {
        each.name: edited(each.text, [*memory.edits.get(each.name, []), *relaunched(each, renamed)])
        for each in code.wrapper
    }
    return code.with_sources(sources, comment, wrapper=wrapper)


def _strides(text: str, old: Layout, buffer: str) -> tuple[int, ...]:
    rank = len(old.size)
    if text.startswith("("):
        strides = tuple(map(int, re.findall(r"\d+", text)))
        if len(strides) != rank:
            raise ProbeError(
                f"{buffer} has {rank} dimensions of size {old.size}, not {len(strides)}",
                "give a stride for each",
            )
        if Layout(old.size, strides).overlaps():
            raise ProbeError(
                f"strides {strides} of size {old.size} let elements of {buffer} share a place, or interleave",
                "each stride must step over the whole extent of all smaller ones",
            )
        return strides
    orders = {"contiguous": tuple(range(rank)), "channels_last": (0, *range(2, rank), 1)}
    if text not in orders or (text == "channels_last" and rank not in (4, 5)):
        raise ProbeError(
            f"{text} is no memory format for {buffer} of size {old.size}",
            "contiguous, channels_last (4-D and 5-D), or strides",
        )
    strides_by_dim, step = dict.fromkeys(range(rank), 1), 1
    for dim in reversed(orders[text]):
        strides_by_dim[dim] = step
        step *= max(old.size[dim], 1)
    return tuple(strides_by_dim[dim] for dim in range(rank))
