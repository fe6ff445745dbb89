"""What every launch passes to its kernel: parameters matched with buffers and how they lie."""

from __future__ import annotations

import ast
import re

from inductor_probe.analysis.links import buffer_in
from inductor_probe.model.code import ExternCall, Kernel, Launch
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.kernels import KernelLaunch, Passed
from inductor_probe.reader.tensor_calls import dim

_KEYWORD = re.compile(r"\w+=(?!=)")


def launches(graph: CompiledGraph) -> dict[str, tuple[KernelLaunch, ...]]:
    """Return the launches of each generated kernel and the calls of each library kernel, in order."""
    if graph.code is None:
        return {}
    known = buffer_layouts(graph)
    kernels = {kernel.name: kernel for kernel in graph.code.kernels}
    found: dict[str, list[KernelLaunch]] = {}
    for launch in graph.code.launches:
        if kernel := kernels.get(launch.kernel):
            found.setdefault(launch.kernel, []).append(_launch(kernel, launch, known))
    for call in graph.code.externs:
        found.setdefault(call.target, []).append(_call(call, known))
    return {name: tuple(calls) for name, calls in found.items()}


def buffer_layouts(graph: CompiledGraph) -> dict[str, BufferLayout]:
    """Return how each buffer lies: as the IR prints it, or else as the wrapper allocates it."""
    found: dict[str, BufferLayout] = {}
    for allocation in graph.code.allocations if graph.code else ():
        layout = allocation.layout
        if layout is None and allocation.of is not None and allocation.how in ("reuse", "alias"):
            layout = found.get(allocation.of)
        if layout is not None:
            found[allocation.name] = layout
    for top in graph.nodes:
        for leaf in top.leaves():
            for name, layout, _ in leaf.layouts:
                _prefer(found, name, layout)
            for buffer in leaf.outputs:
                if buffer.layout is not None:
                    _prefer(found, buffer.name, buffer.layout)
    return found


class Memory:
    """Which buffers have the same memory, one after the other: `buf3 = buf1; del buf1  # reuse`."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._older = {
            allocation.name: allocation.of
            for allocation in (graph.code.allocations if graph.code else ())
            if allocation.of is not None and allocation.how in ("reuse", "view", "alias")
        }
        self._renamed: dict[str, list[str]] = {}
        for top in graph.nodes:
            for leaf in top.leaves():
                for buffer in leaf.outputs:
                    for mutated in buffer.mutations:
                        self._renamed.setdefault(mutated, []).append(buffer.name)

    def names(self, buffer: str) -> tuple[str, ...]:
        """Return `buffer` and those whose memory it took over, latest first."""
        names = [buffer]
        while (older := self._older.get(names[-1])) and older not in names:
            names.append(older)
        return tuple(names)

    def renamed(self, buffer: str) -> tuple[str, ...]:
        """Return the names that nodes have for `buffer` once one of them has changed it."""
        return tuple(self._renamed.get(buffer, ()))


def _prefer(found: dict[str, BufferLayout], name: str, layout: BufferLayout) -> None:
    if layout.size is not None and layout.dtype is not None:
        found[name] = layout


def _launch(kernel: Kernel, launch: Launch, known: dict[str, BufferLayout]) -> KernelLaunch:
    args = (*kernel.args, *([None] * max(len(launch.args) - len(kernel.args), 0)))
    return KernelLaunch(
        tuple(
            Passed(arg, text, *_buffer(text, known) if arg is None or arg.role != "size" else (None, None))
            for arg, text in zip(args, launch.args, strict=False)
        ),
        launch.span,
        launch.keywords,
    )


def _call(call: ExternCall, known: dict[str, BufferLayout]) -> KernelLaunch:
    outputs = set(call.outputs)
    texts = [text for text in call.args if text.partition("=")[2] not in outputs or "=" not in text]
    return KernelLaunch(
        tuple(Passed(None, text, *_buffer(text, known)) for text in (*texts, *call.outputs)), call.span
    )


def _buffer(text: str, known: dict[str, BufferLayout]) -> tuple[str | None, BufferLayout | None]:
    if keyword := _KEYWORD.match(text):
        text = text[keyword.end() :]
    name = buffer_in(text)
    if not name.isidentifier():
        return None, None
    base = known.get(name)
    if name == text:
        return (
            (name, base)
            if base is not None or name.startswith(("buf", "arg", "primals", "_"))
            else (None, None)
        )
    return name, _view(text, base)


def _view(text: str, base: BufferLayout | None) -> BufferLayout | None:
    """`reinterpret_tensor(buf0, (4, 3), (3, 1), 0)` in the dtype of what it views."""
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match call:
        case ast.Call(args=[_, ast.Tuple(elts=size), ast.Tuple(elts=stride), *_]) if base is not None:
            dims = tuple(map(dim, size)), tuple(map(dim, stride))
            return BufferLayout("View", base.device, base.dtype, *dims)
    return None
