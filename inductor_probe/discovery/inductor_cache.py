"""Where the graphs of an empty run are: on a warm cache torch compiles nothing, and so dumps nothing.

Every compile with TORCH_COMPILE_DEBUG=1 leaves a copy of the graph's folder in inductor's cache, beside the
generated code: `<cache>/oa/coa7klbe....py` and `<cache>/oa/coa7klbe....debug/`. A later run that finds the
graph in the cache writes no folder. From torch 2.12 on it writes a trace log, which names that code: those
graphs are the run's, proved. Before that nothing names them, and what the caches hold are candidates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.model.debug_dir import DebugDir, GraphDir
from inductor_probe.reader.debug_dir import graph_dir
from inductor_probe.reader.logs.trace import log_lines, trace_events, trace_log

_KIND = re.compile(r"# AOT ID: \['\d+_(inference|forward|backward|joint)'\]")
_DEBUG_TRACE = re.compile(r"debug trace: (\S.*?)\s*$")
_FRESH = (
    "`probe dump SCRIPT` compiles with caches of its own; so does TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 "
    "TORCH_COMPILE_DEBUG=1 python SCRIPT"
)


def with_cached_graphs(run: DebugDir) -> DebugDir:
    """Return `run`; if it is empty, with the graphs that it provably took from inductor's cache instead."""
    if run.graphs or run.manifest:  # `probe dump` compiles on empty caches
        return run
    graphs = []
    for order, code in enumerate(code_in_cache(run.path)):
        if graph := _graph(code.with_suffix(".debug")):
            graphs.append(replace(graph, order=order, kind=_kind(graph.path / "output_code.py")))
    return replace(run, graphs=tuple(graphs), cached=bool(graphs))


def way_to_graphs(run: DebugDir) -> str:
    """Say how to come by the graphs of a run that is empty."""
    code = code_in_cache(run.path)
    if code:
        state = "has no .debug folder beside it" if os.path.exists(code[0]) else "is gone"  # noqa: PTH110 - no name is too long for it
        return f"torch took its code from {code[0]}, which {state}. {_FRESH}"
    for cache in _caches():
        folders = debug_folders(cache)
        if folders:
            return (
                f"inductor's cache {cache} holds {len(folders)} graphs of earlier compiles, none of "
                f"them known to be of this run; the latest is {folders[0]}. {_FRESH}"
            )
    return _FRESH


def code_in_cache(run: Path) -> tuple[Path, ...]:
    """Return the generated code that the process of `run` used, as its trace log names it, in order."""
    log = trace_log(run)
    if log is None:
        return ()
    paths: dict[Path, None] = {}
    for event in trace_events(log, "inductor_output_code"):
        code = event["inductor_output_code"]
        name = code.get("file_path") or code.get("filename")
        if isinstance(name, str) and name.endswith(".py") and "\0" not in name:
            paths[Path(name)] = None
    return tuple(paths)


def graphs_named_in(log: Path) -> tuple[Path, ...]:
    """Return the folders that lines `... debug trace: FOLDER` of a log name, those that are there."""
    named = (_DEBUG_TRACE.search(line) for line in log_lines(log) if "debug trace: " in line)
    folders = dict.fromkeys(Path(match[1]) for match in named if match and "\0" not in match[1])
    return tuple(folder for folder in folders if _graph(folder))


def debug_folders(cache: Path) -> tuple[Path, ...]:
    """Return the graphs that are kept in a cache of inductor, the latest first."""
    folders = []
    for folder in cache.glob("??/*.debug"):
        with suppress(OSError):
            if graph_dir(folder):
                folders.append((folder.stat().st_mtime, folder))
    return tuple(folder for _, folder in sorted(folders, reverse=True))


def _graph(folder: Path) -> GraphDir | None:
    """Return a graph whose folder a log names: the name may be anything."""
    try:
        return graph_dir(folder)
    except OSError:  # too long for a name
        return None


def _caches() -> Iterator[Path]:
    """Yield where inductor keeps its cache, as torch chooses the place."""
    import getpass  # noqa: PLC0415 - both are slow to import, and empty runs are rare
    import tempfile  # noqa: PLC0415

    if named := os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        yield Path(named).absolute()
    try:
        user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
    except (KeyError, OSError, ImportError):
        user = f"uid_{os.getuid()}"
    yield Path(tempfile.gettempdir(), f"torchinductor_{user}")


def _kind(code: Path) -> str | None:
    match = next((match for line in islice(log_lines(code), 5) if (match := _KIND.match(line))), None)
    return match[1] if match else None
