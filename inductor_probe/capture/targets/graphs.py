"""What a compiled graph returns where its kernels cannot run: the values that its FX graph computes in eager.

A graph whose values, intermediate ones too, have more than `LARGEST_BYTES` is not computed: that would take
longer than its compile. It returns zeros of the right shapes, as does one with operators that only a GPU has,
and a note says so.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.torch_places import wrap

_COMPILERS = {
    "torch._inductor.async_compile": ("AsyncCompile", ("cpp", "cpp_pybinding", "triton", "multi_kernel")),
    "torch._inductor.codecache": ("CppPythonBindingsCodeCache", ("load_pybinding",)),  # wrappers in C++
}
_NO_KERNEL = re.compile(r"Could not run '(?P<operator>[\w:.]+)'")
"""What c10's dispatcher says of an operator without a kernel, before a list of all devices that have one."""
LARGEST_BYTES = 256 << 20
_GRAPH = "_inductor_probe_graph"
_OF_SCRIPT = "triton_kernel_wrapper"
"""In names of the operators that launch a Triton kernel of the user's (torch/_higher_order_ops)."""


class _NoKernel:
    """Stands where a compiled kernel would; nothing calls it."""

    def __init__(self, *_args: object, **_kwargs: object) -> None: ...

    def __getattr__(self, name: str) -> _NoKernel:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_args: object, **_kwargs: object) -> None: ...


def leave_kernels_out() -> Callable[[], None]:
    """Let wrappers load without their kernels, whose text is all that is wanted; return what ends that."""
    before: list[tuple[Any, str, Any]] = []
    for module, (owner, names) in _COMPILERS.items():
        place = getattr(import_module(module), owner)
        before += [(place, name, vars(place)[name]) for name in names if name in vars(place)]
    for place, name, _ in before:
        setattr(place, name, _NoKernel)

    def undo() -> None:
        for place, name, was in before:
            setattr(place, name, was)

    return undo


def _is_of_device(lowered: Any) -> bool:
    return "cuda" in lowered.device_types


class Graphs:
    """Computes compiled graphs.

    Args:
        events: takes the notes.
        is_computed: which graphs, as `GraphLowering` has lowered them; those of the simulated device.
    """

    def __init__(self, events: EventLog, is_computed: Callable[[Any], bool] = _is_of_device) -> None:
        self._events, self._is_computed = events, is_computed

    def hook(self, output_code: Any) -> None:
        """Keep the FX graph of each compiled graph that is computed, and let calls of it compute that."""
        signature = inspect.signature(output_code.CompiledFxGraph.__init__)
        if not {"graph", "gm"} <= signature.parameters.keys():
            raise TypeError("CompiledFxGraph is made without its FX graph")

        def around_init(init: Callable[..., None]) -> Callable[..., None]:
            def init_and_keep(compiled: Any, *args: Any, **kwargs: Any) -> None:
                init(compiled, *args, **kwargs)
                arguments = signature.bind(compiled, *args, **kwargs).arguments
                if self._is_computed(arguments["graph"]):
                    debug = sys.modules["torch._inductor.virtualized"].V.debug
                    name = Path(getattr(debug, "_path", None) or "").name
                    compiled.__dict__[_GRAPH] = (arguments["gm"], name)

            return init_and_keep

        def around_call(call: Callable[..., Any]) -> Callable[..., Any]:
            def compute_or_call(compiled: Any, inputs: Any) -> Any:
                kept = compiled.__dict__.get(_GRAPH)
                if kept is None:
                    return call(compiled, inputs)
                module, name = kept
                return self._compute(compiled, module, name, inputs)

            return compute_or_call

        wrap(output_code, "CompiledFxGraph.__init__", around_init)
        wrap(output_code, "CompiledFxGraph.__call__", around_call)

    def _compute(self, compiled: Any, module: Any, name: str, inputs: Any) -> Any:
        torch = sys.modules["torch"]
        values = list(inputs)
        if isinstance(inputs, list):
            inputs.clear()  # as a generated wrapper does: nothing else keeps them alive
        with torch.no_grad():
            shapes, size = self._shapes(module, values)
            results: Any = None
            if size <= LARGEST_BYTES:
                results = self._run(module, name, values)
            else:
                self._note(name, f"its values have {size >> 20} MiB")
            if results is None:
                results = [_zeros(value) for value in shapes]
        strides = compiled.output_strides or [None] * len(results)
        rows = zip_longest(results, strides, shapes)
        return tuple(_with_strides(value, stride or _strides(fake)) for value, stride, fake in rows)

    def _run(self, module: Any, name: str, values: list[Any]) -> Any:
        if any(_OF_SCRIPT in str(node.target) for node in module.graph.nodes):
            self._note(name, "it launches a Triton kernel of the script, and none is compiled for such a GPU")
            return None
        interpreter = _interpreter(module)
        try:
            results = interpreter.run(*values)
        except Exception as error:  # the script goes on, with zeros
            missing = _NO_KERNEL.match(str(error))
            text = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            self._note(name, f"{missing['operator']} has no kernel for the CPU" if missing else text)
            return None
        interpreter.env.clear()  # autograd takes a gradient as it is where nobody else has it, or else a copy
        return results if isinstance(results, (list, tuple)) else [results]

    def _shapes(self, module: Any, values: list[Any]) -> tuple[list[Any], int]:
        """Return what the graph returns as fake tensors, and the bytes of all its values.

        Nothing, and 0, where shapes depend on values.
        """
        torch = sys.modules["torch"]
        fake = sys.modules["torch._subclasses.fake_tensor"]
        interpreter = _interpreter(module, garbage_collect_values=False)
        try:
            with fake.FakeTensorMode(allow_non_fake_inputs=True) as mode:
                fakes = [mode.from_tensor(v) if isinstance(v, torch.Tensor) else v for v in values]
                results = interpreter.run(*fakes)
        except Exception:  # nobody can say: it is computed, or fails with a note
            return [], 0
        size = sum(map(_bytes, interpreter.env.values()))
        return (list(results) if isinstance(results, (list, tuple)) else [results]), size

    def _note(self, name: str, reason: str) -> None:
        self._events.note("graph-not-computed", graph=name, reason=reason)


def _interpreter(module: Any, **options: Any) -> Any:
    """Return what runs a graph as torch compiled it: `reinplace_inplaceable_ops_core` changed its operators.

    What was `_foreach_add` and is `_foreach_add_` returns nothing in eager, its lowering what it wrote to.
    """
    interpreter = sys.modules["torch"].fx.Interpreter(module, **options)
    call = interpreter.call_function

    def call_function(target: Any, args: Any, kwargs: Any) -> Any:
        result = call(target, args, kwargs)
        is_written_list = result is None and str(target).startswith("aten._foreach_")
        return args[0] if is_written_list else result

    interpreter.call_function = call_function
    return interpreter


def _bytes(value: Any) -> int:
    return value.numel() * value.element_size() if hasattr(value, "element_size") else 0


def _zeros(value: Any) -> Any:
    if not hasattr(value, "element_size"):
        return value
    torch = sys.modules["torch"]
    new = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return new.zero_()


def _strides(fake: Any) -> Any:
    """Return the strides that a result has on a GPU, which may choose them otherwise than a CPU."""
    return fake.stride() if hasattr(fake, "element_size") else None


def _with_strides(value: Any, strides: Any) -> Any:
    """Return a result with the strides that the compiled graph gives it, where those are numbers.

    Those of dimensions of one element, too: another graph takes the result, with its strides as they are.
    """
    if strides is None or not hasattr(value, "element_size"):
        return value
    wanted = tuple(map(int, strides)) if all(str(step).isdecimal() for step in strides) else None
    if wanted is None or wanted == value.stride():
        return value
    torch = sys.modules["torch"]
    new = torch.empty_strided(value.shape, wanted, dtype=value.dtype, device=value.device)
    return new.copy_(value)
