"""What is recorded while a script runs: a function for each module of torch, called when that is imported.

The places that are wrapped are those of the table in `torch_places`. Nothing here imports torch: a script may
set environment variables before it does. A place that a release of torch does not have costs a note in the
manifest, not the run.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import wrapt

from inductor_probe.capture import compilers, flips, processes, recorders, targets, torch_settings
from inductor_probe.capture.compiler_logs import ARTIFACTS, TUNERS, LimitHandler, attach, keep
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.process import ChildOptions
from inductor_probe.capture.processes import STAGING
from inductor_probe.capture.recorder import Recorder, subgraph_name
from inductor_probe.capture.recorders.decision_log import DecisionLog
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.manifest import LOGS_DIR

_IR_FILES = ("ir_pre_fusion", "ir_post_fusion")


def install(events: EventLog, options: ChildOptions) -> None:
    """Register hooks for torch's modules. Call it before the script runs, from a process without torch."""
    logging.getLogger("torch._dynamo.convert_frame").addHandler(LimitHandler(events))
    logging.getLogger("torch._inductor.debug").addFilter(is_news)
    wrapt.register_post_import_hook(_followed(events.staging), "torch.torch_version")
    for name, hook in (*hooks_of(events, options), *processes.hooks(events, record_end)):
        wrapt.register_post_import_hook(or_note(hook, events), name)
    for name, set_all in torch_settings.hooks(options.settings, events):
        wrapt.register_post_import_hook(set_all, name)


def hooks_of(events: EventLog, options: ChildOptions) -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yield modules of torch, with what is to be called with each to see what is compiled."""
    recorder = Recorder(events, save_inputs=options.save_inputs, settings=options.settings)
    logs = events.folder / LOGS_DIR
    logs.mkdir(exist_ok=True)
    hooks: dict[str, Callable[[Any], None]] = {
        "torch._logging._internal": lambda module: _keep_artifacts(module, logs, events),
        "torch._dynamo.guards": _log_recompiles,
        "torch._dynamo.utils": processes.see_resets,
        "torch._dynamo.convert_frame": lambda module: _see_failures(module, recorder),
        "torch._inductor.debug": lambda module: _see_graphs(module, recorder),
        "torch._inductor.scheduler": _print_whole_nodes,
        "torch._inductor.constant_folding": lambda module: wrap(
            module, "ConstantFolder.run_node", recorder.around_folding
        ),
        "torch._inductor.freezing": lambda module: wrap(module, "freeze", recorder.around_passes),
        "torch._inductor.fx_passes.joint_graph": lambda module: wrap(
            module, "joint_graph_passes", recorder.around_passes
        ),
        "torch._inductor.output_code": lambda module: _see_first_calls(module, recorder),
        "torch._inductor.codecache": lambda module: _see_code(module, recorder, events.staging),
        "torch._inductor.select_algorithm": recorder.keep_choices,
    }
    hooks |= compilers.hooks()
    for tuner in TUNERS:
        hooks[f"torch._inductor.runtime.{tuner}"] = lambda module: _keep_tuning(module, logs, events)
    simulated = targets.hooks(options.target, events) if options.target else ()
    log = DecisionLog(events, simulated=options.target is not None)
    flipped = flips.hooks(options.flips, events, log)
    recorded = recorders.hooks(log) if options.record else ()
    yield from (*simulated, *hooks.items(), *flipped, *recorded)


def _followed(staging: Path) -> Callable[[ModuleType], None]:
    """Return what says anew, when torch begins to be imported, by which dump this process is followed.

    `fx_graph_runnable.py` names the dump that wrote it.
    """

    def follow(torch_version: ModuleType) -> None:
        if STAGING in os.environ:
            os.environ[STAGING] = str(staging)

    return follow


def is_news(record: logging.LogRecord) -> bool:
    """Return False for torch's warnings about where it dumps: the table after the dump says that better."""
    return " debug trace: " not in record.getMessage()


def or_note(hook: Callable[[Any], None], events: EventLog) -> Callable[[ModuleType], None]:
    """Return `hook` so that what the installed torch does not have becomes a note."""

    def hook_or_note(module: ModuleType) -> None:
        try:
            hook(module)
        except (AttributeError, TypeError, ValueError) as error:  # renamed, another signature, gone
            events.note("hook-failed", torch=_torch_version(), module=module.__name__, error=str(error))

    return hook_or_note


def _keep_artifacts(internal: Any, logs: Path, events: EventLog) -> None:
    """Attach our handlers whenever torch configures an artifact's logger: on creation and by `set_logs`."""
    formatter = internal.TorchLogsFormatter()

    def around(configure: Callable[[logging.Logger], None]) -> Callable[[logging.Logger], None]:
        def configure_and_attach(log: logging.Logger) -> None:
            if getattr(log, "artifact_name", None) in ARTIFACTS:
                attach(log, configure, logs, formatter, events)
            else:
                configure(log)

        return configure_and_attach

    wrap(internal, "configure_artifact_log", around)


def _keep_tuning(tuner: Any, logs: Path, events: EventLog) -> None:
    """Keep which configs were timed: torch logs that at debug level only, and in no artifact."""
    formatter = sys.modules["torch._logging._internal"].TorchLogsFormatter()
    keep(tuner.log, logs / f"{tuner.__name__.rpartition('.')[2]}.log", formatter, events)


def _log_recompiles(guards: Any) -> None:
    """Let dynamo say why it recompiles: it asks the settings of TORCH_LOGS, not the logger's level."""
    wrap(guards, "is_recompiles_enabled", lambda _: lambda: True)


def _see_failures(convert_frame: Any, recorder: Recorder) -> None:
    """See exceptions that end the compile of a frame, and those that dynamo lets through to the script.

    What it cannot trace ends a compile, too, and only breaks the graph, unless it is let through.
    """
    wrap(convert_frame, "_compile", _failing(lambda error: recorder.frame_failed(error, let_through=False)))
    wrap(
        convert_frame,
        "CatchErrorsWrapper.__call__",
        _failing(lambda error: recorder.frame_failed(error, let_through=True)),
    )


def _failing(record: Callable[[Exception], None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what makes of a function one that calls `record` with the exception that it raises."""

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def call_or_record(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except Exception as error:
                record(error)
                raise

        return call_or_record

    return around


def _see_graphs(debug: Any, recorder: Recorder) -> None:
    """See each graph's folder when it is made, written and complete, and the nodes when they are fused.

    `fx_graph_runnable.py` sets `trace.enabled` as it was while torch wrote it: off.
    """

    def traced(enter: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def enter_traced(self: Any) -> Any:
            sys.modules["torch._inductor.config"].trace.enabled = True
            return enter(self)

        return enter_traced

    wrap(debug, "DebugContext.__enter__", lambda enter: traced(_then(recorder.graph_opened)(enter)))
    wrap(debug, "DebugContext.__exit__", _then(recorder.graph_closed))
    wrap(debug, "DebugFormatter.fx_graph", _then(recorder.graph_written))
    wrap(debug, "DebugFormatter.ir_post_fusion", _then(recorder.graph_fused))
    wrap(debug, "DebugContext.fopen", apart)


def apart(fopen: Callable[..., Any]) -> Callable[..., Any]:
    """Let the IR of a subgraph go to a file of its own: torch writes each over that of the graph."""

    def fopen_apart(self: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
        kind, _, ending = filename.rpartition(".")
        if kind in _IR_FILES and (name := subgraph_name()):
            filename = f"{kind}.{name}.{ending}"
        return fopen(self, filename, *args, **kwargs)

    return fopen_apart


def _print_whole_nodes(scheduler: Any) -> None:
    """Let a node without device code be printed without it: torch drops all that it holds with that.

    `BaseSchedulerNode.debug_str` ignores what fails in `debug_str_extra`, which prints the nodes in a fused
    one and then the device code. A foreach node that something was fused into has no `debug_device_str` to
    make that of, and Triton code of nodes in a foreach node may not be made for all of them together.
    """

    def around(device_code: Callable[[Any], list[str]]) -> Callable[[Any], list[str]]:
        def device_code_if_any(self: Any) -> list[str]:
            try:
                return device_code(self)
            except Exception:
                return []

        return device_code_if_any

    wrap(scheduler, "BaseSchedulerNode._debug_str_for_device", around)


def _see_first_calls(output_code: Any, recorder: Recorder) -> None:
    """See a compiled graph's inputs when it is first called. Python looks `__call__` up on the class."""
    signature = inspect.signature(output_code.CompiledFxGraph.__init__)
    if "graph" not in signature.parameters:
        raise TypeError("CompiledFxGraph is made without a graph")

    def expect_call(self: Any, *args: Any, **kwargs: Any) -> None:
        recorder.expect_call(self, signature.bind(self, *args, **kwargs).arguments["graph"])

    def around_call(call: Callable[..., Any]) -> Callable[..., Any]:
        def record_and_call(self: Any, inputs: Any) -> Any:
            recorder.called(self, inputs)
            return call(self, inputs)

        return record_and_call

    wrap(output_code, "CompiledFxGraph.__init__", _then(expect_call))
    wrap(output_code, "CompiledFxGraph.__call__", around_call)


def _see_code(codecache: Any, recorder: Recorder, folder: Path) -> None:
    """See what AOTInductor compiles, which is not called here; preprocess headers in a folder of the dump.

    A script that is killed meanwhile would leave them in the folder for temporary files.
    """

    def in_folder(precompile: Callable[..., str]) -> Callable[..., str]:
        def precompile_there(*args: Any, **kwargs: Any) -> str:
            own = ModuleType("tempfile")
            own.__dict__.update(vars(tempfile), TemporaryDirectory=partial(TemporaryDirectory, dir=folder))
            codecache.tempfile = own
            try:
                return precompile(*args, **kwargs)
            finally:
                codecache.tempfile = tempfile

        return precompile_there

    signature = inspect.signature(codecache.AotCodeCompiler.compile)
    if "graph" not in signature.parameters:
        raise TypeError("AotCodeCompiler.compile takes no graph")

    def around(compile_graph: Callable[..., Any]) -> Callable[..., Any]:
        def record_and_compile(cls: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
            recorder.compiled_ahead(graph)
            return compile_graph(cls, graph, *args, **kwargs)

        return record_and_compile

    wrap(codecache, "AotCodeCompiler.compile", around)
    wrap(codecache, "_precompile_header", in_folder)


def _then(record: Callable[..., None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what makes of a function one that calls it, and then `record` with the same arguments."""

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def call_and_record(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            record(*args, **kwargs)
            return result

        return call_and_record

    return around


def record_end(events: EventLog) -> None:
    """Record what is known when the script, or a process of its, has ended. Nothing is imported for it.

    The script may have ended in the middle of `import torch`, or with a GPU that answers nothing any more.
    Then its own exception is on the way to the user, and none of ours may take its place.
    """
    if events.is_new_fork:  # nothing was compiled in it
        return
    facts: dict[str, Any] = {"compiled_frames": 0, "time": time.time()}
    if sys.modules.get("torch") is not None:
        try:
            _add_torch_facts(facts, events)
        except Exception as error:
            events.note("end-incomplete", error=f"{type(error).__name__}: {error}")
    events.write("end", **facts)


def _add_torch_facts(facts: dict[str, Any], events: EventLog) -> None:
    torch: Any = sys.modules["torch"]
    counts = processes.dynamo_counts()
    frames = counts.get("frames", 0) - processes.counted_before_fork("frames")
    facts["compiled_frames"] = int(frames)
    if "seconds" in counts:
        facts["compile_s"] = round(counts["seconds"] - processes.counted_before_fork("seconds"), 3)
    facts["torch"] = str(torch.__version__)
    if triton := sys.modules.get("triton"):
        facts["triton"] = getattr(triton, "__version__", None)
    facts["threads"] = torch.get_num_threads()
    if torch.cuda.is_initialized():
        facts["gpu"] = torch.cuda.get_device_name()
    known = sys.modules["torch._logging._internal"].log_registry.artifact_names
    for artifact in sorted(set(ARTIFACTS) - set(known)):
        events.note("log-missing", torch=str(torch.__version__), artifact=artifact)


def _torch_version() -> str:
    version = sys.modules.get("torch.version") or sys.modules.get("torch")
    return str(getattr(version, "__version__", "?"))
