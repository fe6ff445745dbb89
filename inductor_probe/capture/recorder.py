"""Writes down what inductor's dump leaves out, as events: a graph's compile and real inputs, its constants,
its buffers' origins, the choices that were timed. Called in the child, between the user's operations: it
imports nothing that the script has not imported, and leaves no trace in them.
"""

from __future__ import annotations

import ctypes
import functools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from inductor_probe.capture.constants import ConstantKeeper
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.failures import failure_facts
from inductor_probe.capture.torch_places import wrap
from inductor_probe.capture.torch_settings import not_in_force
from inductor_probe.model.autotuning import CHOICES_NAME
from inductor_probe.model.code import FOLDING, qualified
from inductor_probe.model.manifest import INPUTS_DIR
from inductor_probe.reader.failures import SOFT

_PENDING = "_inductor_probe_pending"
_Args = ParamSpec("_Args")


def compile_id() -> str | None:
    """Return dynamo's id of the compile in progress (`0/1`: frame 0, its second compile), if there is one."""
    context = getattr(sys.modules.get("torch._guards"), "CompileContext", None)
    current = context.current_compile_id() if context is not None else None
    return None if current is None else str(current)


def _case_name() -> str | None:
    """Return the scenario's case that is running, if one is."""
    scenario = sys.modules.get("inductor_probe.scenario")
    case = scenario.current_case() if scenario is not None else None
    return None if case is None else str(case.name)


def _allows_tf32() -> bool | None:
    """Return whether float32 may be rounded in matrix products; None where this torch does not say."""
    matmul = sys.modules["torch"].backends.cuda.matmul
    try:
        return bool(matmul.allow_tf32)
    except (AttributeError, RuntimeError):  # what `fp32_precision` was set to has no answer to that
        precision = getattr(matmul, "fp32_precision", None)
        return precision == "tf32" if precision in ("tf32", "ieee") else None


def _debug_folder() -> str | None:
    """Return the folder of the graph that inductor is compiling now."""
    virtualized: Any = sys.modules.get("torch._inductor.virtualized")
    return getattr(virtualized.V.debug, "_path", None) if virtualized is not None else None


def subgraph_name() -> str | None:
    """Return the name of the subgraph that inductor is compiling now, None for a graph itself.

    `GraphLowering.name` is set for subgraphs, and for a choice that autotuning compiles to time it. What
    folds the constants of a package has none: it gets that of the function in C++ that it becomes.
    """
    virtualized: Any = sys.modules.get("torch._inductor.virtualized")
    graph = virtualized.V.graph if virtualized is not None else None
    if getattr(graph, "is_const_graph", False):
        return FOLDING
    name = getattr(graph, "name", None)
    return name if isinstance(name, str) and name.isidentifier() else None


def _never_fails(
    method: Callable[Concatenate[Recorder, _Args], None],
) -> Callable[Concatenate[Recorder, _Args], None]:
    """Turn any error of a recording method into a note: what it reads is private to torch and may change."""

    @functools.wraps(method)
    def guarded(self: Recorder, /, *args: _Args.args, **kwargs: _Args.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # the user's compile must not end for it
            self.events.note(
                "recorder-failed", recorder=method.__name__, error=f"{type(error).__name__}: {error}"
            )

    return guarded


def _became(nodes: Iterable[Any]) -> dict[str, list[str]]:
    """Return what the user called, and the operators that were decomposed, with the FX nodes they became.

    Dynamo leaves in a node the function or module that was called, and the tracer of AOTAutograd the operator
    that is being decomposed: `source_fn_stack` and `original_aten` of `Node.meta`, of which inductor names
    kernels (`get_fused_kernel_name` in `torch/_inductor/utils.py`). `torch.export` leaves the operator that
    its program has, as the first of `from_node`.
    """
    became: dict[str, list[str]] = {}
    for node in nodes:
        if node.op != "call_function":
            continue
        stack = node.meta.get("source_fn_stack") or node.meta.get("fwd_source_fn_stack")
        called = stack[-1][1] if stack else None
        aten = getattr(node.meta.get("original_aten"), "_overloadpacket", None)
        names = (
            called if isinstance(called, str) else getattr(called, "__name__", None),
            aten and str(aten),
            _exported(node),
        )
        packet = str(getattr(node.target, "_overloadpacket", ""))
        for name in dict.fromkeys(names):
            if name and name not in (packet, packet.rpartition(".")[2]):
                became.setdefault(name, []).append(node.name)
    return became


def _exported(node: Any) -> str | None:
    """Return the operator of an exported program that a node comes from: `aten.conv2d`."""
    sources = node.meta.get("from_node")
    target = ""
    while sources:
        target = str(getattr(sources[-1], "target", ""))  # of dynamo's graph it is `<function relu at 0x..>`
        sources = getattr(sources[-1], "from_node", None)
    return target.rpartition(".")[0] if target.startswith("aten.") else None


class Recorder:
    """Events of graphs: `graph` when the folder is made, `origins` when fused, `constants` when there is
    code, `finished` when everything is in the folder, `inputs` when first called; `failed` of a compile that
    ends in an exception.

    Args:
        events: where they go.
        save_inputs: keep the bytes of the inputs' storages, and constants of any size.
        settings: of torch, that the dump is made with.
    """

    def __init__(
        self, events: EventLog, *, save_inputs: bool, settings: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.events = events
        self._settings = settings
        self.save_inputs = save_inputs
        self._timings_before: int | None = None
        self._constants = ConstantKeeper(unlimited=save_inputs)
        self._gone: tuple[str | None, dict[str, list[str]]] = (None, {})

    @_never_fails
    def graph_opened(self, context: Any) -> None:
        """Record a graph whose DebugContext was entered."""
        if context._path:  # None where the script has switched tracing off
            facts: dict[str, Any] = {
                "compile_id": compile_id(),
                "case": _case_name(),
                "allows_tf32": _allows_tf32(),
            }
            if overridden := not_in_force(self._settings):
                facts["overridden"] = overridden
            self.events.write("graph", path=context._path, **facts)

    @_never_fails
    def graph_closed(self, context: Any, kind: object, error: BaseException | None, trace: object) -> None:
        """Record that the compile of a graph has come to its end, so that its files are whole."""
        if context._path and error is None:
            self.events.write("finished", path=context._path)
        elif isinstance(error, Exception):
            self.events.write("failed", compile_id=compile_id(), path=context._path, **failure_facts(error))
        self._constants.forget(context._path)

    @_never_fails
    def frame_failed(self, error: Exception, *, let_through: bool) -> None:
        """Record that the compile of a frame ended in an exception, unless that may only break the graph."""
        if not let_through and any(kind.__name__ in SOFT for kind in type(error).__mro__):
            return
        number = compile_id() or getattr(error, "compile_id", None)  # dynamo sets it as it lets it through
        self.events.write("failed", compile_id=number and str(number), path=None, **failure_facts(error))

    @_never_fails
    def graph_written(self, formatter: Any, module: Any, *_: Any, **__: Any) -> None:
        """Keep the constants of the FX graph that was written to `fx_graph_runnable.py`, and what it was."""
        path = formatter.handler._path
        self._constants.add_attributes(path, module)
        became = _became(module.graph.nodes)
        number, gone = self._gone
        for name, nodes in gone.items() if number == compile_id() else ():
            became.setdefault(name, []).extend(nodes)
        self.events.write("became", path=path, became=became)

    def around_passes(self, passes: Callable[..., Any]) -> Callable[..., Any]:
        """Return `joint_graph_passes` or `freeze` so that it is known what they take out of a graph.

        They run before the graph is written: what became a constant, or part of another operator, is in none.
        """

        def run_and_note(*args: Any, **kwargs: Any) -> Any:
            modules = [value for value in args if hasattr(getattr(value, "graph", None), "nodes")]
            # `freeze` takes dynamo's graph first, then the one that it changes.
            before = list(modules[-1].graph.nodes) if modules else []
            result = passes(*args, **kwargs)
            self._taken_out(before, result[0] if isinstance(result, tuple) else result)
            return result

        return run_and_note

    @_never_fails
    def _taken_out(self, before: Sequence[Any], module: Any) -> None:
        """Remember what those nodes stood for that a graph does not have any more."""
        number = compile_id()
        if number != self._gone[0]:
            self._gone = (number, {})
        left = {node.name for node in module.graph.nodes}
        for name, nodes in _became(node for node in before if node.name not in left).items():
            self._gone[1].setdefault(name, []).extend(nodes)

    def around_folding(self, run_node: Callable[..., Any]) -> Callable[..., Any]:
        """Return `ConstantFolder.run_node` so that it reports how it packs a constant."""

        def run_and_note(folder: Any, node: Any) -> Any:
            result = run_node(folder, node)
            self.folded(folder, node, result)
            return result

        return run_and_note

    @_never_fails
    def folded(self, folder: Any, node: Any, result: Any) -> None:
        """Remember how a constant was packed, if this node did that."""
        self._constants.packed(folder, node, result)

    @_never_fails
    def graph_fused(self, formatter: Any, nodes: Iterable[Any]) -> None:
        """Record the FX origins of every buffer that is there after fusion."""
        folds = subgraph_name() == FOLDING  # its buffers have the names of the graph's own
        rows = []
        for leaf in _leaves(nodes):
            origin = leaf.node.get_origin_node()
            origins = sorted(node.name for node in leaf.node.get_origins())
            for buffer in leaf.get_outputs():
                name = buffer.get_name()
                rows.append(
                    [
                        qualified(name, FOLDING) if folds else name,
                        origin.name if origin is not None else None,
                        origins,
                    ]
                )
        self.events.write("origins", path=formatter.handler._path, origins=rows)

    @_never_fails
    def expect_call(self, compiled: Any, graph: Any) -> None:
        """Remember on `compiled` where its inputs belong, until it is called."""
        if path := _debug_folder():
            compiled.__dict__[_PENDING] = (path, tuple(graph.graph_input_names))
            self.keep_constants(path, graph)

    @_never_fails
    def keep_constants(self, path: str, graph: Any) -> None:
        """Keep the constants of a graph that there is code of, and record them all."""
        self._constants.add_constants(path, graph.constants)
        self.events.write("constants", path=path, constants=self._constants.facts(path))

    @_never_fails
    def compiled_ahead(self, graph: Any) -> None:
        """Record the constants and example inputs of a graph that AOTInductor compiles: nobody calls it."""
        if path := _debug_folder():
            self.keep_constants(path, graph)
            pairs = zip(graph.graph_input_names, graph.example_inputs, strict=False)
            facts = [fact for name, value in pairs if (fact := _example_fact(name, value)) is not None]
            self.events.write("inputs", path=path, inputs=facts)

    def called(self, compiled: Any, inputs: Sequence[Any]) -> None:
        """Record the inputs of a first call. Later calls cost a look into a dict."""
        pending = compiled.__dict__.pop(_PENDING, None)
        if pending is None:
            return
        fake = sys.modules.get("torch._subclasses.fake_tensor")
        if fake is not None and any(isinstance(value, fake.FakeTensor) for value in inputs):
            compiled.__dict__[_PENDING] = pending  # traced through, not run: the real call is still to come
            return
        path, names = pending
        self.first_call(path, names, inputs)

    @_never_fails
    def first_call(self, path: str, names: Sequence[str], inputs: Sequence[Any]) -> None:
        """Record what each input is, before the graph runs: it may write into them."""
        facts = []
        others: dict[str, list[str]] = {}  # a DeviceMesh is passed once for each parameter
        for name, value in zip(names, inputs, strict=True):
            fact = input_fact(name, value, Path(path) if self.save_inputs else None)
            if fact is None:
                others.setdefault(type(value).__name__, []).append(name)
            else:
                facts.append(fact)
        for kind, of_kind in others.items():
            text = of_kind[0] + (f" (and {len(of_kind) - 1} more)" if len(of_kind) > 1 else "")
            self.events.note("input-not-recorded", input=text, graph=Path(path).name, type=kind)
        self.events.write("inputs", path=path, inputs=facts)

    def keep_choices(self, select_algorithm: Any) -> None:
        """Subscribe to each operation that torch autotunes, with the times of all choices.

        What they are subscribed to is made with the first of them, as torch hashes all of Triton for it
        (`CacheBase.get_system` in `torch/_inductor/codecache.py`): hundreds of megabytes, for most graphs
        in vain.
        """
        self._timings_before = _timings()
        subscribed: list[object] = []

        def around(get: Callable[[], Any]) -> Callable[[], Any]:
            def get_and_subscribe() -> Any:
                cache = get()
                if not any(cache is one for one in subscribed):
                    subscribed.append(cache)
                    cache.add_feedback_saver(self.choices_timed)
                return cache

            return get_and_subscribe

        wrap(select_algorithm, "get_algorithm_selector_cache", around)

    @_never_fails
    def choices_timed(
        self, timings: dict[Any, float], operation: str, nodes: list[Any], *_: Any, **__: Any
    ) -> None:
        """Write every choice for an operation beside the graph that it is for."""
        now = _timings()
        is_cached, self._timings_before = now == self._timings_before, now
        folder = _debug_folder()
        if folder is None or not Path(folder).is_dir():
            return
        line = {
            "operation": operation,
            "inputs": [_shape_text(node) for node in nodes],
            "cached": is_cached,
            "choices": [
                {
                    "name": str(choice.name),
                    "ms": float(ms) if math.isfinite(ms) else None,
                    "kind": str(choice.info_dict().get("backend", "")).lower() or None,
                    "config": str(choice.description or ""),
                }
                for choice, ms in timings.items()
            ],
        }
        with (Path(folder) / CHOICES_NAME).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _timings() -> int:
    """Return how often choices were timed; times from a cache do not count."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    return int(utils.counters["inductor"]["select_algorithm_autotune"]) if utils is not None else 0


def _shape_text(node: Any) -> str:
    size = "x".join(map(str, node.get_size())) or "scalar"
    return f"{size} {str(node.get_dtype()).removeprefix('torch.')}"


def _leaves(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield the scheduler nodes in `nodes` that stand for one operation each."""
    for node in nodes:
        parts = node.get_nodes()
        if len(parts) == 1 and parts[0] is node:
            yield node
        else:
            yield from _leaves(parts)


def input_fact(name: str, value: Any, save_to: Path | None) -> dict[str, Any] | None:
    """Return what `InputFact` holds of `value`, or None for what is neither a tensor nor a whole number.

    Args:
        name: the placeholder's.
        value: what the graph was called with.
        save_to: the graph's folder, to keep the tensor's storage in; None to keep nothing.
    """
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    if isinstance(value, (int, torch.SymInt)):
        return {"name": name, "kind": "symint", "value": int(value)}
    if not isinstance(value, torch.Tensor):
        return None
    fact: dict[str, Any] = {
        "name": name,
        "kind": "tensor",
        "size": list(value.shape),
        "dtype": str(value.dtype).removeprefix("torch."),
        "device": str(value.device),
    }
    if value.layout is not torch.strided:
        return fact
    fact |= {"stride": list(value.stride()), "offset": value.storage_offset()}
    # Modes of the user (a flop counter, a profiler of dispatches) must not see what is done here.
    with torch.no_grad(), _disable_current_modes():
        once = _without_repeats(value)
        fact |= _extremes(once) or _spread(once)
        if save_to is not None:
            fact["saved"] = _save_storage(value, save_to / INPUTS_DIR / f"{name}.bin")
    return fact


def _example_fact(name: str, value: Any) -> dict[str, Any] | None:
    """Return what `InputFact` holds of an example, which may be a fake tensor; None where that is unknown."""
    import torch

    if isinstance(value, (int, torch.SymInt)):
        number = _hint(value)
        return None if number is None else {"name": name, "kind": "symint", "value": number}
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    size, stride = ([_hint(dim) for dim in dims] for dims in (value.shape, value.stride()))
    if None in (*size, *stride):
        return None
    return {
        "name": name,
        "kind": "tensor",
        "size": size,
        "stride": stride,
        "offset": _hint(value.storage_offset()) or 0,
        "dtype": str(value.dtype).removeprefix("torch."),
        "device": str(value.device),
    }


def _hint(number: Any) -> int | None:
    """Return what a size was in the example; None of one that only the data decides."""
    if isinstance(number, int):
        return number
    hint = number.node.hint
    return None if hint is None else int(hint)


def _without_repeats(tensor: Any) -> Any:
    """Return each element once of a tensor that repeats all of them, as `expand` makes it."""
    if 0 not in tensor.stride():
        return tensor
    return tensor[tuple(slice(None if step else 1) for step in tensor.stride())]


def _extremes(tensor: Any) -> dict[str, int]:
    """Return the least and greatest value of an integer or boolean tensor that has any."""
    import torch

    if tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized or not tensor.numel():
        return {}
    if tensor.dtype in (torch.uint16, torch.uint32):  # torch has no aminmax for these
        tensor = tensor.to(torch.int64)
    elif tensor.dtype is torch.uint64:  # as signed numbers, shifted down by 2**63: the order stays
        low, high = torch.aminmax(tensor.view(torch.int64) ^ -(2**63))
        return {"minimum": int(low) + 2**63, "maximum": int(high) + 2**63}
    low, high = torch.aminmax(tensor)
    return {"minimum": int(low), "maximum": int(high)}


def _spread(tensor: Any) -> dict[str, float]:
    """Return mean and standard deviation of a tensor of floats that are all finite."""
    import torch

    if not tensor.is_floating_point() or not tensor.numel():
        return {}
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():  # nothing may wait for the GPU then
        return {}
    try:
        deviation, mean = (float(number) for number in torch.std_mean(tensor, correction=0))
    except (NotImplementedError, RuntimeError):  # floats of 8 bits, of which torch computes nothing
        return {}
    return {"mean": mean, "deviation": deviation} if math.isfinite(mean + deviation) else {}


def _save_storage(tensor: Any, path: Path) -> str:
    """Write the bytes of the whole storage that `tensor` is a view of; return the file's name."""
    storage = tensor.untyped_storage().cpu()
    path.parent.mkdir(exist_ok=True)
    size = storage.nbytes()
    data = (ctypes.c_char * size).from_address(storage.data_ptr()) if size else b""
    path.write_bytes(data)
    return path.name
