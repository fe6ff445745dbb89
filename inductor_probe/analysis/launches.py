"""What every launch passes to its kernel: parameters matched with buffers and how they lie."""

from __future__ import annotations

import ast
import re

from inductor_probe.analysis.graph import buffer_in, index_of, once_per_graph
from inductor_probe.model.code import ExternCall, Kernel, Launch
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.kernels import KernelLaunch, Passed
from inductor_probe.reader.tensor_calls import dim

_KEYWORD = re.compile(r"\w+=(?!=)")


@once_per_graph
def launches(graph: CompiledGraph) -> dict[str, tuple[KernelLaunch, ...]]:
    """Return the launches of each generated kernel and the calls of each library kernel, in order."""
    if graph.code is None:
        return {}
    index = index_of(graph)
    launches: dict[str, list[KernelLaunch]] = {}
    for launch in graph.code.launches:
        if kernel := index.kernels.get(launch.kernel):
            launches.setdefault(launch.kernel, []).append(_launch(kernel, launch, index.layouts))
    for call in graph.code.externs:
        launches.setdefault(call.target, []).append(_call(call, index.layouts))
    return {name: tuple(calls) for name, calls in launches.items()}


def _launch(kernel: Kernel, launch: Launch, layouts: dict[str, BufferLayout]) -> KernelLaunch:
    args = (*kernel.args, *([None] * max(len(launch.args) - len(kernel.args), 0)))
    return KernelLaunch(
        tuple(
            Passed(arg, text, *_buffer(text, layouts) if arg is None or arg.role != "size" else (None, None))
            for arg, text in zip(args, launch.args, strict=False)
        ),
        launch.span,
        launch.keywords,
    )


def _call(call: ExternCall, layouts: dict[str, BufferLayout]) -> KernelLaunch:
    outputs = set(call.outputs)
    texts = [text for text in call.args if text.partition("=")[2] not in outputs or "=" not in text]
    return KernelLaunch(
        tuple(Passed(None, text, *_buffer(text, layouts)) for text in (*texts, *call.outputs)), call.span
    )


def _buffer(text: str, layouts: dict[str, BufferLayout]) -> tuple[str | None, BufferLayout | None]:
    if keyword := _KEYWORD.match(text):
        text = text[keyword.end() :]
    name = buffer_in(text)
    if not name.isidentifier():
        return None, None
    base = layouts.get(name)
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
