"""Runs a script as `python SCRIPT ARGS` would, after the hooks are set.

Command line: `child.py PARENT STAGING OPTIONS SCRIPT ARGS`, or `-m MODULE` in place of SCRIPT. PARENT is the
process that starts this one, and with which it ends; STAGING is the folder for events and logs, OPTIONS a
`ChildOptions` as JSON. The parent starts this file by its path rather than with `-m`, because only then does
Python end a process that Ctrl-C stopped by that signal.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import sys
from collections.abc import Callable
from functools import partial
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import wrapt

from inductor_probe.capture import hooks
from inductor_probe.capture.events import EventLog
from inductor_probe.capture.process import FIRST_NAME, OPTIONS_NAME, ChildOptions, end_with
from inductor_probe.capture.processes import variables_to_follow
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.codec import from_json

_FOLDERS = ("TORCH_COMPILE_DEBUG", "TORCH_COMPILE_DEBUG_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Variables that say where torch writes. A program of torch's own begins with those of the dump that wrote
it (`generate_env_vars_string` of torch/_dynamo/debug_utils.py), whose folders may be another machine's."""


def run_script(script: str, args: list[str]) -> None:
    """Execute `script` as the module `__main__`. Whatever it raises passes through."""
    restore = _own_folders()
    # At the beginning of torch's import, and where that was before the script, of what asks for the cache.
    for name in ("torch.torch_version", "torch._inductor.runtime.cache_dir_utils"):
        wrapt.register_post_import_hook(restore, name)
    wrapt.register_post_import_hook(partial(_compile_repros, restore), "torch._dynamo.repro.after_aot")
    path = Path(script).absolute()
    main = ModuleType("__main__")
    main.__dict__.update(
        __file__=str(path),
        __builtins__=__builtins__,
        __loader__=SourceFileLoader("__main__", str(path)),
        __cached__=None,
    )
    sys.modules["__main__"] = main
    sys.argv[:] = [script, *args]
    if not getattr(sys.flags, "safe_path", False):  # python -P, from 3.11
        sys.path[0] = str(path.resolve().parent)  # in place of this file's folder
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        exec(code, main.__dict__)  # noqa: S102 - running the user's script is the purpose
    except BaseException:
        _hide_frames_above(str(path))
        raise


def _own_folders() -> Callable[[object], None]:
    """Return what gives the variables of folders the values that they have now."""
    values = {name: os.environ.get(name) for name in _FOLDERS}

    def restore(_: object) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    return restore


def _compile_repros(restore: Callable[[object], None], after_aot: Any) -> None:
    """Let a program of torch's own compile its graph as a script would, so that each verb sees the call.

    `fx_graph_runnable.py` and those of torch's minifier end with `run_repro`, which hands the graph to
    inductor past `torch.compile`, or minifies it.
    """

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(mod: Any, load_args: Any, **kwargs: Any) -> Any:
            if kwargs.get("command") == "get_args":  # for a script that calls it by itself
                return original(mod, load_args, **kwargs)
            restore(None)  # torch may have been there before the script
            reader = after_aot.InputReader(save_dir=kwargs.get("save_dir"))
            load_args(reader)
            return sys.modules["torch"].compile(mod)(*reader.args)

        return run

    wrap(after_aot, "run_repro", around)


def run_module(name: str, *args: str, events: EventLog) -> None:
    """Execute a module as `python -m` does: a package's `__main__`. Whatever it raises passes through."""
    sys.argv[:] = [name, *args]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = str(Path.cwd())
    try:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = find_spec(f"{name}.__main__")
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        events.refuse(f"there is no module {name} that can be run", f"it is looked for in {Path.cwd()}, too")
        sys.exit(1)
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except BaseException:
        _hide_frames_above(str(spec.origin))
        raise


def _hide_frames_above(path: str) -> None:
    """Make the traceback start in the script, as it does when Python runs it."""
    show = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        start = trace
        while start is not None and start.tb_frame.f_code.co_filename != path:
            start = start.tb_next
        # A script that does not parse has no frame: its SyntaxError says where.
        show(kind, error.with_traceback(start), start)

    sys.excepthook = excepthook


def main() -> None:
    """Set the hooks, run the script, and tell at the end what is known only then."""
    parent, staging, options, script, *args = sys.argv[1:]
    end_with(int(parent))
    events = EventLog(Path(staging))
    hooks.install(events, from_json(ChildOptions, json.loads(options)))
    # Arguments that a scenario refuses leave no run: nothing was begun.
    wrapt.register_post_import_hook(
        lambda scenario: scenario.tell_refusals(events.refuse), "inductor_probe.scenario"
    )
    os.environ.update(variables_to_follow(Path(staging)))
    try:
        if script == "-m":
            run_module(*args, events=events)
        else:
            run_script(script, args)
    finally:
        hooks.record_end(events)


def follow(staging: str) -> None:
    """Follow this process as the script is followed, which started it: it is about to import torch."""
    options = from_json(ChildOptions, json.loads((Path(staging) / OPTIONS_NAME).read_text()))
    first = Path(staging) / FIRST_NAME
    is_first = first.exists() and first.read_text() == str(os.getpid())
    events = EventLog(Path(staging), is_first=is_first)
    hooks.install(events, options)
    atexit.register(hooks.record_end, events)


if __name__ == "__main__":
    main()
