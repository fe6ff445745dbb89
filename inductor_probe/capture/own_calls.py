"""The user's compiled callables, found while his script runs, and timed where he calls them.

`torch.compile` of a function, a module or a method, `module.compile()` and the decorator all end in one
place of torch, which gets what is compiled and returns what the script calls. What it returns is wrapped
here: each call is counted, and what dynamo compiles in it is noted by its compile id, as in a dump.

A callable is timed at its first call that compiles nothing, and is like the one that compiled the graph
asked for: its tensors have the same sizes, strides, dtypes. Where the script ends before, or time is up, it
is timed on copies of the inputs of that one. Then the script goes on to the next callable, or is ended.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import wrapt
from msgspec import Struct

from inductor_probe.capture.torch_places import wrap

if TYPE_CHECKING:
    from inductor_probe.harness.own_calls import OwnCall

SPINNING_S = 0.003
"""How long threads of OpenMP of the other process may go on spinning after its lap: libgomp's some 1 ms."""
Values = tuple[tuple[Any, ...], dict[str, Any]]


class OwnRequest(Struct, frozen=True):
    """What a process is to time; it gets this as JSON.

    Attributes:
        wanted: compile ids of graphs, each with whether the script runs its backward.
        seconds: of timing each callable. precision: width of the interval of a log-ratio that ends it.
        seed: of the order. candidate_first: the compiled side is set up first.
        limit_s: from its start the script may run so long; then the next call is timed as it is.
        most: callables that are timed.
        parts: seconds of timing what a call consists of; 0: it is not.
        laps: run laps of the first one as lines of the other pipe ask for, in place of timing it.
    """

    wanted: tuple[tuple[str, bool], ...]
    seconds: float = 2.0
    precision: float = 0.0025
    seed: int = 0
    candidate_first: bool = False
    limit_s: float = 600.0
    most: int = 8
    parts: float = 0.0
    laps: bool = False


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


class OwnCalls:
    """Finds callables, and times those that were asked for.

    Args:
        tell: sends an event. ask: returns the next line of what is asked for, None at the end.
    """

    def __init__(
        self, request: OwnRequest, tell: Callable[..., None], ask: Callable[[], str | None] = lambda: None
    ) -> None:
        self._request, self._tell, self._ask = request, tell, ask
        self._begin = time.monotonic()
        self._callees: list[Callee] = []
        self._running = threading.local()
        self._compiles = 0
        self._busy = False
        self._sent = 0

    def install(self) -> None:
        """Set the hooks. Call it before torch is imported."""
        wrapt.register_post_import_hook(
            lambda module: wrap(module, "_TorchDynamoContext.__call__", self._around_compile),
            "torch._dynamo.eval_frame",
        )
        wrapt.register_post_import_hook(
            lambda module: wrap(module, "_compile", self._around_frame), "torch._dynamo.convert_frame"
        )

    def at_end(self, ending: str) -> None:
        """Time what was compiled and not timed yet, once the script has ended; say what was not found."""
        for callee in self._callees:
            if self._waiting(callee) and not self._over:
                self._time_again(callee)
        self._tell("over", ending=ending, callables=len(self._callees), timed=self._sent)

    def _around_compile(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """See what is compiled, and return what counts the calls of it in its place."""

        def compile_and_see(context: Any, fn: Any) -> Any:
            eval_frame = sys.modules["torch._dynamo.eval_frame"]
            result = make(context, fn)
            if isinstance(result, FunctionType) and isinstance(context, eval_frame.OptimizeContext):
                return self._seen(eval_frame.innermost_fn(fn), result)
            if isinstance(result, eval_frame.OptimizedModule):
                forward = vars(result).get("forward")
                for callee in self._callees[-2:]:
                    if forward is not None and getattr(forward, "__wrapped__", None) is callee.compiled:
                        # Its `forward` is what is called for each call of it: without our counting then.
                        callee.compiled = _WithForward(result, callee.compiled)
                        callee.eager = result._orig_mod
                        callee.code = _code_of(callee.eager)
            return result

        return compile_and_see

    def _seen(self, eager: Callable[..., Any], compiled: Callable[..., Any]) -> Callable[..., Any]:
        callee = Callee(eager, compiled, _code_of(eager))
        self._callees.append(callee)

        @functools.wraps(compiled)
        def call_and_count(*args: Any, **kwargs: Any) -> Any:
            if self._busy or _is_traced():
                return compiled(*args, **kwargs)
            self._before(callee, args, kwargs)
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
        if not hasattr(self._running, "stack"):
            self._running.stack = []
        stack: list[Callee] = self._running.stack
        return stack

    def _around_frame(self, compile_frame: Callable[..., Any]) -> Callable[..., Any]:
        """Note the compile id of each frame, with the call that it is compiled in."""

        def compile_and_note(*args: Any, **kwargs: Any) -> Any:
            self._compiles += 1
            if self._stack and (callee := self._stack[-1]) and not self._busy:
                compiling: Compiling = self._running.compiling
                callee.compiled_in[str(kwargs.get("compile_id"))] = compiling
            return compile_frame(*args, **kwargs)

        return compile_and_note

    def _before(self, callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Time a call that is asked for before it is made; else copy its inputs, in case it compiles."""
        callee.calls += 1
        form = _form_of((args, kwargs))
        late = time.monotonic() - self._begin > self._request.limit_s
        waiting = self._waiting(callee)
        if any(late or callee.compiled_in[one].form == form for one in waiting):
            if all(callee.compiled_in[one].form != form for one in waiting):
                self._time_again(callee)
            else:
                self._time(callee, waiting, (args, kwargs), callee.calls, after=None)
        elif late:
            for other in self._callees:
                if self._waiting(other):
                    self._time_again(other)
        if self._over:
            self._tell("over", ending="ended", callables=len(self._callees), timed=self._sent)
            end_process()
        self._running.compiling = Compiling(callee.calls, _copied((args, kwargs)), form, _context())

    def _waiting(self, callee: Callee) -> list[str]:
        """Return the compile ids of a callable that are asked for, and were not timed yet."""
        ids = [one for one, _ in self._request.wanted]
        return [one for one in ids if one in callee.compiled_in and one not in callee.timed]

    @property
    def _over(self) -> bool:
        timed = {one for callee in self._callees for one in callee.timed}
        return self._sent >= self._request.most or all(one in timed for one, _ in self._request.wanted)

    def _time_again(self, callee: Callee) -> None:
        """Time a callable on copies of the inputs of the call that compiled what is asked for."""
        waiting = self._waiting(callee)
        compiling = callee.compiled_in[waiting[-1]]
        with ExitStack() as stack:
            compiling.context(stack)
            self._time(callee, waiting, compiling.values, compiling.number, after=callee.calls)

    def _time(
        self, callee: Callee, ids: Sequence[str], values: Values, number: int, *, after: int | None
    ) -> None:
        """Time a call, with which all graphs of its callable are done.

        `after`: how many calls there were, where it is made again on copies of its inputs.
        """
        from inductor_probe.harness.jobs import memory_ran_out  # noqa: PLC0415 - torch is there now
        from inductor_probe.harness.own_calls import OwnCall  # noqa: PLC0415
        from inductor_probe.harness.reference import first_line  # noqa: PLC0415

        callee.timed.update(callee.compiled_in)
        self._busy = True
        alike = [other for other in self._callees if other.code is callee.code or other is callee]
        backward = dict(self._request.wanted)
        reached, self._sent = time.monotonic() - self._begin, self._sent + 1
        self._tell(
            "reached",
            ids=[*callee.compiled_in],
            name=_name_of(callee.eager),
            where=_where(callee),
            call=number,
            calls=after,
            instances=len(alike),
            reached_s=reached,
        )
        try:
            with _untraced():
                with_backward = any(backward.get(one) for one in ids)
                own = OwnCall(callee.eager, callee.compiled, *values, backward=with_backward)
                self._measure(own)
        except Exception as error:  # whatever his program, or torch, may raise
            text = first_line(error)
            self._tell("not-timed", code="memory" if memory_ran_out(text) else "raises", message=text)
        finally:
            self._busy = False

    def _measure(self, own: OwnCall) -> None:
        remarks = own.check()
        compiles = self._compiles
        self._tell("call", remarks=[[code, values] for code, values in remarks], **own.facts())
        if self._request.laps:
            self._serve(own)
        else:
            request = self._request
            series = own.time(
                request.seconds, request.precision, request.seed, candidate_first=request.candidate_first
            )
            self._tell("series", series=series, compiled=self._compiles - compiles)
            if request.parts:
                self._tell_parts(own)

    def _tell_parts(self, own: OwnCall) -> None:
        """Time what a call consists of, and say so; or why that cannot be had."""
        from inductor_probe.harness.reference import first_line  # noqa: PLC0415

        try:
            self._tell("parts", parts=own.parts(self._request.parts, self._request.seed))
        except Exception as error:  # what torch may raise where a private part of it is another
            self._tell("no-parts", message=f"{type(error).__name__}: {first_line(error)}")

    def _serve(self, own: OwnCall) -> None:
        """Run laps of both sides as they are asked for: see `measuring/interleaved.py`."""
        from inductor_probe.harness.laps import kept_lap  # noqa: PLC0415
        from inductor_probe.harness.quads import run_once  # noqa: PLC0415

        sides = own.sides(candidate_first=self._request.candidate_first)
        self._tell("ready")
        while line := self._ask():
            command = json.loads(line)
            if command.get("end"):
                break
            side, number = sides[command["lap"]], command["number"]
            if own.device == "cpu" and sys.modules["torch"].get_num_threads() > 1:
                time.sleep(SPINNING_S)
            run_once(side, number)
            lap = kept_lap(side, number)
            self._tell("lap", seconds=lap.seconds, lost=lap.lost)
        own.state.restore()


class _WithForward:
    """A compiled module whose calls reach torch's own wrapper, not ours that counts."""

    def __init__(self, module: Any, forward: Callable[..., Any]) -> None:
        self.module, self.forward = module, forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.module.__dict__["forward"] = self.forward
        return self.module(*args, **kwargs)


def end_process() -> None:
    """End the process, and nothing of what the script would do at its end."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def _module_of(function: Callable[..., Any]) -> Any:
    """Return the module, if a callable is one or the `forward` of one; else None."""
    owner = getattr(function, "__self__", function)
    of_module = function is owner or getattr(function, "__name__", "") != "forward"
    return owner if of_module and hasattr(type(owner), "forward") else None


def _code_of(function: Callable[..., Any]) -> CodeType | None:
    """Return the code that a callable runs: of a module that of its `forward`."""
    module = _module_of(function)
    return getattr(inspect.unwrap(function if module is None else type(module).forward), "__code__", None)


def _name_of(function: Callable[..., Any]) -> str:
    """Return what the user calls it: `UNet` for a module, `step` for a function."""
    if (module := _module_of(function)) is not None:
        return type(module).__name__
    name = getattr(function, "__qualname__", type(function).__name__)
    return str(name.rpartition("<locals>.")[2])


def _where(callee: Callee) -> str | None:
    """Return where its code begins: `/home/u/model.py:12`; None where that is in torch."""
    if callee.code is None or f"{os.sep}torch{os.sep}" in callee.code.co_filename:
        return None
    return f"{callee.code.co_filename}:{callee.code.co_firstlineno}"


def _form_of(values: Any) -> list[Any]:
    """Return what decides which compiled code a call runs, of its tensors."""
    torch = sys.modules["torch"]
    leaves = torch.utils._pytree.tree_leaves(values)
    return [
        (tuple(one.shape), one.stride() if one.layout == torch.strided else None, one.dtype, one.device)
        for one in leaves
        if isinstance(one, torch.Tensor)
    ]


def _copied(values: Any) -> Any:
    """Copy the tensors among arguments. What else holds tensors is not copied."""
    torch = sys.modules["torch"]

    def copied(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or isinstance(value, torch.nn.Parameter):
            return value
        return value.detach().clone().requires_grad_(value.requires_grad)

    return torch.utils._pytree.tree_map(copied, values)


def _context() -> Callable[[ExitStack], None]:
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


def _is_traced() -> bool:
    """Whether torch traces the program now, so that nothing is really called."""
    torch = sys.modules["torch"]
    return bool(
        torch._guards.TracingContext.try_get() is not None
        or torch._C._is_tracing()
        or torch._C._len_torch_dispatch_stack()
    )


@contextmanager
def _untraced() -> Iterator[None]:
    """Let dynamo compile nothing of ours: a call may come from within what it compiled."""
    eval_frame: ModuleType = sys.modules["torch._dynamo.eval_frame"]
    prior = eval_frame.set_eval_frame(None)
    try:
        yield
    finally:
        eval_frame._maybe_set_eval_frame(prior)
