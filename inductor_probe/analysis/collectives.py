"""Collectives of a graph: what the wrapper calls, in which group, and where it waits for the result.

    buf4 = torch.ops._c10d_functional.all_gather_into_tensor.default(buf3, 2, '0')
    torch.ops._c10d_functional.wait_tensor.default(buf4)

or, in C++, a function of the C interface (`aoti_torch_cpu__c10d_functional_all_reduce_`), or the operator
called through Python.

The operators are those of torch/csrc/distributed/c10d/Functional.cpp: the name of the group comes last, after
the size of the group where the result has another size, and the reduction is the text before. A name that
ends in `_` writes in place, `_out` into the buffer that it is passed by name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inductor_probe.analysis.graph import index_of
from inductor_probe.analysis.links import links
from inductor_probe.analysis.operators import WAITS, collective
from inductor_probe.analysis.work import argument_bytes
from inductor_probe.model.code import ExternCall
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.pages import CollectiveRow

_NAME = re.compile(r"[A-Za-z_]\w*")
_SIZED = ("all_gather_into_tensor", "reduce_scatter_tensor")
_CHANGED = ("_coalesced", "_out")


def collectives(graph: CompiledGraph) -> tuple[CollectiveRow, ...]:
    """Return the collectives of a graph in the order of their calls."""
    code = graph.code
    if code is None:
        return ()
    calls = [(name, call) for call in code.externs if (name := collective(call.target))]
    calls.sort(key=lambda item: item[1].span.first)
    begun = [(name, call) for name, call in calls if name not in WAITS]
    waits = [call for name, call in calls if name in WAITS]
    return tuple(_row(graph, place, name, call, waits) for place, (name, call) in enumerate(begun, 1))


def _row(
    graph: CompiledGraph, place: int, name: str, call: ExternCall, waits: list[ExternCall]
) -> CollectiveRow:
    positional = [text for text in call.args if not re.match(r"\w+\s*=[^=]", text)]
    out = [text.partition("=")[2].strip() for text in call.args if re.match(r"out\s*=[^=]", text)]
    buffers = tuple(_buffers(graph, positional[0])) if positional else ()
    in_place = name.endswith("_")  # a wrapper in C++ names the handle that it is returned, too
    passed = positional[0] if positional else ""
    written = ", ".join(out) or ("" if in_place else ", ".join(call.outputs)) or passed
    results = tuple(_buffers(graph, ", ".join(out))) or (not in_place and call.outputs) or buffers
    texts = [text for text in map(_literal, positional[1:]) if isinstance(text, str)]
    numbers = [number for number in map(_literal, positional[1:]) if isinstance(number, int)]
    kind = name.removesuffix("_")
    for ending in _CHANGED:
        kind = kind.removesuffix(ending)
    linked = [
        link
        for link in links(graph).nodes.values()
        if any(span.first == call.span.first for span in link.launches)
    ]
    after = [wait for wait in waits if wait.span.first > call.span.first]
    waited = [wait for wait in after if set(_buffers(graph, ", ".join(wait.args))) & set(results)]
    until = waited[0].span.first if waited else None
    return CollectiveRow(
        place=place,
        name=name.removesuffix("_"),
        reduction=texts[0] if len(texts) > 1 else None,
        group=texts[-1] if texts else None,
        group_size=numbers[0] if numbers and kind in _SIZED else None,
        buffers=buffers,
        results=results,
        bytes_in=argument_bytes(graph, passed),
        bytes_out=argument_bytes(graph, written),
        nodes=tuple(link.node for link in linked),
        fx=tuple(dict.fromkeys(fx for link in linked for fx in link.fx)),
        span=call.span,
        waits=tuple(wait.span for wait in waited),
        meanwhile=tuple(_between(graph, call.span.first, until)) if until is not None else (),
    )


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _buffers(graph: CompiledGraph, text: str) -> Iterator[str]:
    """Yield the buffers and inputs in `reinterpret_tensor(buf0, ...)` or `[buf9, buf10]`, each once."""
    layouts = index_of(graph).layouts
    yield from dict.fromkeys(name for name in _NAME.findall(text) if name in layouts)


def _between(graph: CompiledGraph, first: int, last: int) -> Iterator[str]:
    code = graph.code
    if code is None:
        return
    calls = [(launch.span.first, launch.kernel) for launch in code.launches]
    calls += [(call.span.first, call.target) for call in code.externs if not collective(call.target)]
    yield from (name for line, name in sorted(calls) if first < line < last)
