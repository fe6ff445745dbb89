"""The user's compiled callables, found while his script runs.

`torch.compile` of a function, a module or a method, `module.compile()` and the decorator all end in one
place of torch, which gets what is compiled and returns what the script calls. What it returns is wrapped
here: each call is counted, and what dynamo compiles in it is noted by its compile id, as in a dump.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any

import wrapt

from inductor_probe.capture.torch_places import wrap

Values = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass
class Compiling:
    """A call in which something was compiled: its inputs, copied before, and how torch was set then."""

    number: int
    values: Values
    form: list[Any]
    context: Callable[[ExitStack], None]


@dataclass
class Callee:
    """A compiled callable: `compiled` is what torch made of `eager`, or the module that calls it.

    Attributes:
        calls: so far. compiled_in: by compile id, the call that compiled it. timed: ids that were.
    """

    eager: Callable[..., Any]
    compiled: Callable[..., Any]
    code: CodeType | None
    calls: int = 0
    compiled_in: dict[str, Compiling] = field(default_factory=dict)
    timed: set[str] = field(default_factory=set)


class Callables:
    """Finds callables; `before` is called before each call of one, while nothing of ours runs (`busy`)."""

    def __init__(self) -> None:
        self.callees: list[Callee] = []
        self.compiles = 0
        self.busy = False
        self.running = threading.local()

    def before(self, callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Do what is to be done before a call."""
        raise NotImplementedError

    def install(self) -> None:
        """Set the hooks. Call it before torch is imported."""
        wrapt.register_post_import_hook(
            lambda module: wrap(module, "_TorchDynamoContext.__call__", self._around_compile),
            "torch._dynamo.eval_frame",
        )
        wrapt.register_post_import_hook(
            lambda module: wrap(module, "_compile", self._around_frame), "torch._dynamo.convert_frame"
        )

    def _around_compile(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """See what is compiled, and return what counts the calls of it in its place."""

        def compile_and_see(context: Any, fn: Any) -> Any:
            eval_frame = sys.modules["torch._dynamo.eval_frame"]
            result = make(context, fn)
            if isinstance(result, FunctionType) and isinstance(context, eval_frame.OptimizeContext):
                return self._seen(eval_frame.innermost_fn(fn), result)
            if isinstance(result, eval_frame.OptimizedModule):
                forward = vars(result).get("forward")
                for callee in self.callees[-2:]:
                    if forward is not None and getattr(forward, "__wrapped__", None) is callee.compiled:
                        # Its `forward` is what is called for each call of it: without our counting then.
                        callee.compiled = _WithForward(result, callee.compiled)
                        callee.eager = result._orig_mod
                        callee.code = code_of(callee.eager)
            return result

        return compile_and_see

    def _seen(self, eager: Callable[..., Any], compiled: Callable[..., Any]) -> Callable[..., Any]:
        callee = Callee(eager, compiled, code_of(eager))
        self.callees.append(callee)

        @functools.wraps(compiled)
        def call_and_count(*args: Any, **kwargs: Any) -> Any:
            if self.busy or is_traced():
                return compiled(*args, **kwargs)
            self.before(callee, args, kwargs)
            stack: list[Callee] = self._stack
            stack.append(callee)
            try:
                return compiled(*args, **kwargs)
            finally:
                stack.pop()

        # torch/_dynamo/eval_frame.py, innermost_fn: it follows a wrapper that has its own id there
        call_and_count._torchdynamo_wrapper_id = id(call_and_count)  # type: ignore[attr-defined]
        return call_and_count

    @property
    def _stack(self) -> list[Callee]:
        if not hasattr(self.running, "stack"):
            self.running.stack = []
        stack: list[Callee] = self.running.stack
        return stack

    def _around_frame(self, compile_frame: Callable[..., Any]) -> Callable[..., Any]:
        """Note the compile id of each frame, with the call that it is compiled in."""

        def compile_and_note(*args: Any, **kwargs: Any) -> Any:
            self.compiles += 1
            if self._stack and (callee := self._stack[-1]) and not self.busy:
                compiling: Compiling | None = getattr(self.running, "compiling", None)
                if compiling is not None:
                    callee.compiled_in[str(kwargs.get("compile_id"))] = compiling
            return compile_frame(*args, **kwargs)

        return compile_and_note


class _WithForward:
    """A compiled module whose calls reach torch's own wrapper, not ours that counts."""

    def __init__(self, module: Any, forward: Callable[..., Any]) -> None:
        self.module, self.forward = module, forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        attributes = self.module.__dict__
        counted, attributes["forward"] = attributes["forward"], self.forward
        try:
            return self.module(*args, **kwargs)
        finally:
            attributes["forward"] = counted


def module_of(function: Callable[..., Any]) -> Any:
    """Return the module, if a callable is one or the `forward` of one; else None."""
    owner = getattr(function, "__self__", function)
    of_module = function is owner or getattr(function, "__name__", "") != "forward"
    return owner if of_module and hasattr(type(owner), "forward") else None


def code_of(function: Callable[..., Any]) -> CodeType | None:
    """Return the code that a callable runs: of a module that of its `forward`."""
    module = module_of(function)
    return getattr(inspect.unwrap(function if module is None else type(module).forward), "__code__", None)


def name_of(function: Callable[..., Any]) -> str:
    """Return what the user calls it: `UNet` for a module, `step` for a function."""
    if (module := module_of(function)) is not None:
        return type(module).__name__
    name = getattr(function, "__qualname__", type(function).__name__)
    return str(name.rpartition("<locals>.")[2])


def where_of(callee: Callee) -> str | None:
    """Return where its code begins: `/home/u/model.py:12`; None where that is in torch."""
    if callee.code is None or f"{os.sep}torch{os.sep}" in callee.code.co_filename:
        return None
    return f"{callee.code.co_filename}:{callee.code.co_firstlineno}"


def form_of(values: Any) -> list[Any]:
    """Return what decides which compiled code a call runs, of its tensors."""
    torch = sys.modules["torch"]
    leaves = torch.utils._pytree.tree_leaves(values)
    return [
        (tuple(one.shape), one.stride() if one.layout == torch.strided else None, one.dtype, one.device)
        for one in leaves
        if isinstance(one, torch.Tensor)
    ]


def copied(values: Any) -> Any:
    """Copy the tensors among arguments. What else holds tensors is not copied."""
    torch = sys.modules["torch"]

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or isinstance(value, torch.nn.Parameter):
            return value
        return value.detach().clone().requires_grad_(value.requires_grad)

    return torch.utils._pytree.tree_map(copy, values)


def context() -> Callable[[ExitStack], None]:
    """Return what sets torch as it is now: gradients, inference mode, autocast."""
    torch = sys.modules["torch"]
    grad, inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    casts = [
        (kind, torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)
    ]

    def enter(stack: ExitStack) -> None:
        if inference:
            stack.enter_context(torch.inference_mode())
        stack.enter_context(torch.set_grad_enabled(grad))
        for kind, dtype in casts:
            stack.enter_context(torch.autocast(kind, dtype))

    return enter


def is_traced() -> bool:
    """Whether torch traces the program now, so that nothing is really called."""
    torch = sys.modules["torch"]
    return bool(
        torch._guards.TracingContext.try_get() is not None
        or torch._C._is_tracing()
        or torch._C._len_torch_dispatch_stack()
    )


@contextmanager
def untraced() -> Iterator[None]:
    """Let dynamo compile nothing of ours: a call may come from within what it compiled."""
    eval_frame: ModuleType = sys.modules["torch._dynamo.eval_frame"]
    prior = eval_frame.set_eval_frame(None)
    try:
        yield
    finally:
        eval_frame._maybe_set_eval_frame(prior)
