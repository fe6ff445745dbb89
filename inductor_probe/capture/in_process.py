"""Records what this process compiles, as a notebook's: torch is imported, and all is put back at the end.

A dump of a script has a process of its own, with hooks before torch is imported and empty caches. Here the
hooks are set in torch as it is, in every module that has a function by name, and taken away at the end; graph
caches are off meanwhile, so that all is compiled. Kernels are built in the caches of the process: what was
compiled is used on.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from inductor_probe.capture import hooks, processes
from inductor_probe.capture.compiler_logs import ARTIFACTS, ArtifactHandler, LimitHandler, keep
from inductor_probe.capture.dumping import DumpResult, Request
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.folders import make_folder, make_run, temporary_folder
from inductor_probe.capture.process import ChildOptions, Ended, Program
from inductor_probe.capture.recording import Recording
from inductor_probe.capture.torch_places import wraps_undone
from inductor_probe.errors import ProbeError
from inductor_probe.model.manifest import LOGS_DIR, Outcome, ScriptForm

_active: str | None = None
"""What is being recorded in this process."""
_GRAPH_CACHES = {
    "torch._inductor.config": ("fx_graph_cache", "fx_graph_remote_cache", "autotune_local_cache"),
    "torch._functorch.config": ("enable_autograd_cache", "enable_remote_autograd_cache"),
}
_MOST_COMPILES = 1 << 10


@contextmanager
def recorded(
    name: str,
    form: ScriptForm,
    *,
    label: str | None = None,
    save_inputs: bool = False,
    record: bool = True,
    out: Path | None = None,
) -> Iterator[list[DumpResult]]:
    """Record what this process compiles in the block; the list has the result when the block has ended.

    An error in the block passes through, and its run says that it failed.

    Args: see `inductor_probe.recording`; `name` is what is recorded, as the manifest calls it.

    Raises:
        ProbeError: something is being recorded already, or `probe dump` runs this process; torch is not
            installed; nothing can be written to `out`.
    """
    global _active  # noqa: PLW0603 - hooks are in the one torch of this process
    if _active is not None:
        raise ProbeError(f"{_active} is being recorded", "end that recording before the next one begins")
    if processes.STAGING in os.environ:
        raise ProbeError("`probe dump` records this process already", "look into its run: ip.open_run()")
    try:
        import_module("torch._inductor.compile_fx")
    except ImportError as error:
        raise ProbeError(f"torch cannot be imported: {error}", "install torch 2.11 or later") from error
    root = Path(out or os.environ.get("TORCH_COMPILE_DEBUG_DIR") or Path.cwd()).absolute()
    make_folder(root)
    options = ChildOptions(save_inputs, record)
    request = Request(name, (), (), (), label, options, str(root), False, Program(), form=form)
    started, begin = datetime.now(timezone.utc).astimezone(), time.perf_counter()
    results: list[DumpResult] = []
    with temporary_folder() as folder:
        recording = Recording(request, folder)
        run = make_run(root, os.getpid(), started)
        outcome: Outcome = "failed"
        by: str | None = None
        _active = name
        events = EventLog(folder.staging)
        try:
            with _hooks(events, options, run):
                yield results
            outcome = "ok"
        except KeyboardInterrupt:
            outcome, by = "interrupted", "SIGINT"
            raise
        finally:
            _active = None
            events.close()
            status = {"ok": 0, "failed": 1}.get(outcome)
            ended = Ended(os.getpid(), status, outcome, by, started, time.perf_counter() - begin)
            results.append(recording.finish(ended))


@contextmanager
def _hooks(events: EventLog, options: ChildOptions, run: Path) -> Iterator[None]:
    """Set hooks and settings for the block, and put back what was there."""
    logs = events.folder / LOGS_DIR
    with ExitStack() as undo:
        replace_imported = undo.enter_context(wraps_undone())
        undo.callback(_restore_loggers, events)
        limits, debug = (
            logging.getLogger(f"torch._{name}") for name in ("dynamo.convert_frame", "inductor.debug")
        )
        handler = LimitHandler(events)
        limits.addHandler(handler)
        undo.callback(limits.removeHandler, handler)
        debug.addFilter(hooks.is_news)
        undo.callback(debug.removeFilter, hooks.is_news)
        for name, hook in hooks.hooks_of(events, options):
            with suppress(ImportError):  # torch cannot import it either: nothing of it is used
                hooks.or_note(hook, events)(import_module(name))
        replace_imported()
        _keep_logs(logs, events)
        for module, settings in _settings(run):
            undo.enter_context(module.patch(settings))
        processes.count_from_here()
        _add_rank(events)
        try:
            yield
        finally:
            hooks.record_end(events)


def _keep_logs(logs: Path, events: EventLog) -> None:
    """Keep the artifacts of loggers that torch has made already; the hooks see those that it makes later."""
    internal: Any = sys.modules["torch._logging._internal"]
    formatter = internal.TorchLogsFormatter()
    for name in sorted(internal.log_registry.get_artifact_log_qnames()):
        log = logging.getLogger(name)
        artifact = getattr(log, "artifact_name", None)
        if artifact in ARTIFACTS and not _handlers(log, events):
            keep(log, logs / f"{artifact}.log", formatter, events)


def _handlers(log: object, events: EventLog) -> list[ArtifactHandler]:
    handlers = log.handlers if isinstance(log, logging.Logger) else ()
    return [one for one in handlers if isinstance(one, ArtifactHandler) and one.events is events]


def _restore_loggers(events: EventLog) -> None:
    for log in list(logging.root.manager.loggerDict.values()):
        for handler in _handlers(log, events):
            handler.restore()


def _settings(run: Path) -> Iterator[tuple[Any, dict[str, object]]]:
    """Yield modules of settings with what a dump needs: torch writes to `run`, and no graph is in a cache."""
    inductor = import_module("torch._inductor.config")
    wanted: dict[str, object] = {"trace.enabled": True, "trace.debug_dir": str(run)}
    if getattr(inductor.trace, "provenance_tracking_level", None) == 0:  # 1 where TORCH_COMPILE_DEBUG is set
        wanted["trace.provenance_tracking_level"] = 1
    yield inductor, wanted
    for name, switches in _GRAPH_CACHES.items():
        module = import_module(name)
        yield module, {switch: False for switch in switches if getattr(module, switch, None)}


def _add_rank(events: EventLog) -> None:
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        rank, size = distributed.get_rank(), distributed.get_world_size()
        events.write("rank", rank=rank, world_size=size, backend=distributed.get_backend())


def compile_and_call(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
) -> None:
    """Compile a function anew, whatever was compiled of it before, and call it once.

    Dynamo takes what it compiled of the same code with an equal backend before, and makes dynamic what
    differed then. So a function gets code of its own, and the backend is equal to none, for a module, whose
    `forward` stays as it is. The user's compiled functions stay, too.

    Args:
        function: a function, method or module, or what `torch.compile` made of one.
        inputs, arguments: of the call.
        options: for `torch.compile`: `dynamic`, `fullgraph`, `mode`, `options`.
    """
    torch: Any = import_module("torch")
    plain = getattr(function, "_torchdynamo_orig_callable", None) or getattr(function, "_orig_mod", function)
    plain = _with_own_code(plain)
    others = {name: value for name, value in options.items() if name not in ("mode", "options")}
    inductor = torch._TorchCompileInductorWrapper(
        options.get("mode"), options.get("options"), options.get("dynamic")
    )

    def backend(module: Any, examples: Any, **more: Any) -> Any:
        return inductor(module, examples, **more)

    dynamo = import_module("torch._dynamo.config")
    limits = ("recompile_limit", "accumulated_recompile_limit")  # each dump of a function counts as one
    higher = {name: max(getattr(dynamo, name), _MOST_COMPILES) for name in limits if hasattr(dynamo, name)}
    # Sizes and numbers that differed in calls before, of any code at the same line, would be dynamic.
    with dynamo.patch({**higher, "automatic_dynamic_shapes": False}):
        torch.compile(plain, backend=backend, **others)(*inputs, **arguments)


def _with_own_code(function: Any) -> Any:
    """Return a copy of a function or method whose code dynamo has not seen; anything else as it is."""
    if isinstance(function, MethodType):
        return MethodType(_with_own_code(function.__func__), function.__self__)
    if not isinstance(function, FunctionType):
        return function
    copy = FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(copy, function)
