"""What a dump needs to follow the processes that its script starts or forks.

A Python that is started is reached through its environment: `startup/sitecustomize.py` is first in its
PYTHONPATH. `torch.multiprocessing.spawn`, `torchrun` and `subprocess` all pass the environment on, and an
environment that a followed process makes for a Python gets what is needed; `python -E`, `-I` and `-S` look at
none of it, and are watched from outside (`unfollowed.py`). A fork has the hooks already.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from inductor_probe.capture.events import EventLog
from inductor_probe.capture.process import NAMES_OF_DUMP
from inductor_probe.capture.torch_places import wrap

STARTUP = Path(__file__).with_name("startup")
STAGING = "INDUCTOR_PROBE_STAGING"  # as in startup/sitecustomize.py
_PYTHON = re.compile(r"python[\d.]*")
_before_fork: dict[str, float] = {}
_before_resets = 0.0
"""Seconds of compiling that `torch._dynamo.reset` has made dynamo forget."""
"""What dynamo had counted when this process was forked, or a recording began in it."""


def variables_to_follow(staging: Path) -> dict[str, str]:
    """Return the variables with which a Python, and what it starts, reports to the dump of `staging`."""
    before = os.environ.get("PYTHONPATH")
    return {
        STAGING: str(staging),
        "PYTHONPATH": os.pathsep.join([str(STARTUP), *([before] if before else [])]),
    }


def hooks(
    events: EventLog, record_end: Callable[[EventLog], None]
) -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yield the modules that start, end or number processes, with what is to be called at their import."""
    os.register_at_fork(after_in_child=_after_fork)
    yield "torch.distributed.distributed_c10d", lambda module: _see_ranks(module, events)
    yield "subprocess", lambda module: _see_status(module.Popen, "_handle_exitstatus", events)
    yield "subprocess", lambda module: _pass_on(module.Popen, events)
    yield "multiprocessing.popen_fork", lambda module: _see_status(module.Popen, "poll", events)
    yield "multiprocessing.util", lambda module: _see_end_of_forks(module, events, record_end)


def count_from_here() -> None:
    """Let what dynamo has counted so far not count."""
    _before_fork.update(dynamo_counts())


def counted_before_fork(name: str) -> float:
    """Return what `dynamo_counts` said when this process was forked, or a recording began; 0 otherwise."""
    return _before_fork.get(name, 0)


def dynamo_counts() -> dict[str, float]:
    """Return how many frames dynamo has handed to a backend, and the seconds that compiling took."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is None:
        return {}
    # What its `calculate_time_spent` adds up; in nanoseconds.
    spent = getattr(dynamo, "cumulative_time_spent_ns", {})
    phases = [spent[phase] for phase in _COMPILING if phase in spent]
    counts = {"frames": dynamo.counters["stats"]["unique_graphs"]}
    seconds = sum(phases) / 1e9 + _before_resets
    return {**counts, "seconds": seconds} if seconds else counts


def keep_seconds(dynamo: Any) -> None:
    """Keep the seconds of compiling of which `torch._dynamo.reset` makes dynamo forget."""

    def around(reset: Callable[..., Any]) -> Callable[..., Any]:
        def keep_and_reset(*args: Any, **kwargs: Any) -> Any:
            global _before_resets  # noqa: PLW0603 - dynamo's are of the process, too
            _before_resets = dynamo_counts().get("seconds", 0.0)
            return reset(*args, **kwargs)

        return keep_and_reset

    wrap(dynamo, "reset_frame_count", around)


_COMPILING = ("entire_frame_compile", "entire_backward_compile")
"""What dynamo calls the phases that together are all of compiling: torch/_dynamo/utils.py."""


def _after_fork() -> None:
    count_from_here()
    # torch names its run's folder once a process, after the process (`get_debug_dir`): the fork would dump
    # among the graphs of its parent.
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    forget = getattr(getattr(dynamo, "_get_debug_dir", None), "cache_clear", None)
    if forget is not None:
        forget()


def _see_ranks(distributed: Any, events: EventLog) -> None:
    def around(initialise: Callable[..., Any]) -> Callable[..., Any]:
        def initialise_and_record(*args: Any, **kwargs: Any) -> Any:
            result = initialise(*args, **kwargs)
            rank, size = distributed.get_rank(), distributed.get_world_size()
            events.write("rank", rank=rank, world_size=size, backend=distributed.get_backend())
            return result

        return initialise_and_record

    wrap(distributed, "init_process_group", around)


def _see_status(popen: Any, name: str, events: EventLog) -> None:
    """See with which status a process ends, as the one that started it learns that."""
    original = getattr(popen, name)

    @functools.wraps(original)
    def call_and_record(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.returncode
        result = original(self, *args, **kwargs)
        if before is None and self.returncode is not None and not events.is_new_fork:
            events.write("child-ended", pid=self.pid, status=self.returncode)
        return result

    setattr(popen, name, call_and_record)


def _pass_on(popen: Any, events: EventLog) -> None:
    """Add what following needs to the environment that a script makes for a Python, as `env={}`."""
    original = popen.__init__

    @functools.wraps(original)
    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        env, program = kwargs.get("env"), kwargs.get("executable") or kwargs.get("args", args and args[0])
        if isinstance(env, Mapping) and _is_python(program) and not kwargs.get("shell"):
            kwargs["env"] = _with_variables(env, events.staging)
        original(self, *args, **kwargs)

    popen.__init__ = start


def _is_python(program: Any) -> bool:
    first = program[0] if isinstance(program, (list, tuple)) and program else program
    if not isinstance(first, (str, os.PathLike)):
        return False
    path = os.fspath(first)
    return path == sys.executable or (isinstance(path, str) and bool(_PYTHON.fullmatch(Path(path).name)))


def _with_variables(env: Mapping[str, str], staging: Path) -> Mapping[str, str]:
    if not all(isinstance(name, str) for name in env) or not staging.is_dir():  # bytes; the dump has ended
        return env
    before = env.get("PYTHONPATH", "").split(os.pathsep)
    paths = [str(STARTUP), *(path for path in before if path not in ("", str(STARTUP)))]
    dumped = {name: os.environ[name] for name in NAMES_OF_DUMP if name in os.environ}
    return {**dumped, **env, STAGING: str(staging), "PYTHONPATH": os.pathsep.join(paths)}


def _see_end_of_forks(util: ModuleType, events: EventLog, record_end: Callable[[EventLog], None]) -> None:
    """See the end of a process of multiprocessing, which leaves by `os._exit`, without what `atexit` has."""

    def at_end_of_fork(events: EventLog) -> None:
        util.Finalize(None, record_end, args=(events,), exitpriority=-100)

    util.register_after_fork(events, at_end_of_fork)
