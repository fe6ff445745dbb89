"""Writes down what inductor's dump leaves out: a graph's compile, its real inputs, its buffers' origins."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.inputs import input_fact, is_fake
from inductor_probe.capture.torch_state import case_name, compile_id, debug_folder

_PENDING = "_inductor_probe_pending"
_Args = ParamSpec("_Args")


def _never_fails(
    method: Callable[Concatenate[Recorder, _Args], None],
) -> Callable[Concatenate[Recorder, _Args], None]:
    """Turn any error of a recording method into a note: what it reads is private to torch and may change."""

    @functools.wraps(method)
    def guarded(self: Recorder, /, *args: _Args.args, **kwargs: _Args.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # the user's compile must not end for it
            self.events.note(f"{method.__name__} could not be recorded: {type(error).__name__}: {error}")

    return guarded


class Recorder:
    """Events of graphs: `graph` when the folder is made, `origins` when fused, `finished` when
    everything is in the folder, `inputs` when first called.

    Args:
        events: where they go.
        save_inputs: keep the bytes of the inputs' storages.
    """

    def __init__(self, events: EventLog, *, save_inputs: bool) -> None:
        self.events = events
        self.save_inputs = save_inputs

    @_never_fails
    def graph_opened(self, context: Any) -> None:
        """Record a graph whose debug context was entered."""
        if context._path:  # None where the script has switched tracing off
            self.events.write("graph", path=context._path, compile_id=compile_id(), case=case_name())

    @_never_fails
    def graph_closed(self, context: Any, error: BaseException | None) -> None:
        """Record that the compile of a graph has come to its end, so that its files are whole."""
        if context._path and error is None:
            self.events.write("finished", path=context._path)

    @_never_fails
    def graph_fused(self, context: Any, nodes: Iterable[Any]) -> None:
        """Record the FX origins of every buffer that is there after fusion."""
        found = []
        for leaf in _leaves(nodes):
            origin = leaf.node.get_origin_node()
            origins = sorted(node.name for node in leaf.node.get_origins())
            for buffer in leaf.get_outputs():
                found.append([buffer.get_name(), origin.name if origin is not None else None, origins])
        self.events.write("origins", path=context._path, origins=found)

    @_never_fails
    def expect_call(self, compiled: Any, graph: Any) -> None:
        """Remember on `compiled` where its inputs belong, until it is called."""
        if path := debug_folder():
            compiled.__dict__[_PENDING] = (path, tuple(graph.graph_input_names))

    def called(self, compiled: Any, inputs: Sequence[Any]) -> None:
        """Record the inputs of a first call. Later calls cost a look into a dict."""
        pending = compiled.__dict__.pop(_PENDING, None)
        if pending is None:
            return
        if any(map(is_fake, inputs)):  # traced through, not run: the real call is still to come
            compiled.__dict__[_PENDING] = pending
            return
        path, names = pending
        self.first_call(path, names, inputs)

    @_never_fails
    def first_call(self, path: str, names: Sequence[str], inputs: Sequence[Any]) -> None:
        """Record what each input is, before the graph runs: it may write into them."""
        facts = []
        for name, value in zip(names, inputs, strict=True):
            fact = input_fact(name, value, Path(path) if self.save_inputs else None)
            if fact is None:
                self.events.note(
                    f"input {name} of {Path(path).name} is a {type(value).__name__}: not recorded"
                )
            else:
                facts.append(fact)
        self.events.write("inputs", path=path, inputs=facts)


def _leaves(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the scheduler nodes in `nodes` that stand for one operation each."""
    for node in nodes:
        parts = node.get_nodes()
        if len(parts) == 1 and parts[0] is node:
            yield node
        else:
            yield from _leaves(parts)
