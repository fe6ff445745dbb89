"""Caches that would hide compiles, and the limits of recompiles."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from inductor_probe.model.health import Fact, Finding, Limit, TorchSetup
from inductor_probe.report.units import bytes_text, counted

_LOOK_S = 2.0
"""A cache of millions of files is not counted to its end."""


def cache_findings(setup: TorchSetup) -> Iterator[Finding]:
    """Yield where caches are, which are on, and the recompile limits."""
    if setup.version is None:
        return
    yield from _caches(setup)
    yield _limits(setup)


def _caches(setup: TorchSetup) -> Iterator[Finding]:
    caches = setup.caches
    if caches is None:
        text = f"not available on torch {setup.version}: {setup.error('caches')}"
        yield Finding("caches", "note", text, "look for them yourself; probe dump has caches of its own")
        return
    size, files, whole = folder_size(Path(caches.folder))
    facts: tuple[tuple[str, Fact], ...] = (
        ("folder", caches.folder),
        ("bytes", size),
        ("files", files),
        ("disabled", caches.disabled),
        ("fx_graph", caches.fx_graph),
        ("autograd", caches.autograd),
        ("autotune", caches.autotune),
        ("remote", caches.remote),
    )
    held = f"{'' if whole else 'more than '}{bytes_text(size)} in {counted(files, 'file')}"
    names = {"FX graphs": caches.fx_graph, "autograd": caches.autograd, "autotuning": caches.autotune}
    on = [] if caches.disabled else [name for name, value in names.items() if value]
    text = f"on for {', '.join(on)}" if on else "all off"
    text += f", in {caches.folder} ({held})"
    text += ": a script run by itself compiles nothing that it finds there" if on else ""
    text += "; probe dump has empty ones of its own"
    if caches.remote and not caches.disabled:
        which = ", ".join(caches.remote)
        text += f"; remote caches are on ({which}): they hide compiles; probe dump has them off"
        remedy = "unset TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE and its like to see every compile"
        yield Finding("caches", "note", text, remedy, facts)
    else:
        yield Finding("caches", "fine", text, facts=facts)


def folder_size(folder: Path, seconds: float = _LOOK_S) -> tuple[int, int, bool]:
    """Return bytes and number of the files below a folder, and whether all were counted in `seconds`."""
    size = files = 0
    end = time.monotonic() + seconds
    folders = [str(folder)]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:
            continue  # not there, or not ours to look into
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    size, files = size + entry.stat(follow_symlinks=False).st_size, files + 1
            except OSError:
                continue  # gone meanwhile
        if time.monotonic() > end:
            return size, files, False
    return size, files, True


def _limits(setup: TorchSetup) -> Finding:
    if not setup.limits:
        text = f"not available on torch {setup.version}: {setup.error('limits')}"
        return Finding("recompiles", "note", text, "watch for limits that probe dump says were hit")
    facts = tuple((limit.name, limit.value) for limit in setup.limits)
    text = ", ".join(f"{_words(limit)} at most {limit.value}" for limit in setup.limits)
    changed = [limit for limit in setup.limits if limit.default not in (None, limit.value)]
    if changed:
        were = ", ".join(f"{limit.name} is {limit.default}" for limit in changed)
        text, remedy = f"{text}; torch's own {were}", "look for what sets them when Python starts"
        return Finding("recompiles", "note", text, remedy, facts)
    return Finding("recompiles", "fine", f"{text} (torch's own), after that eager", facts=facts)


def _words(limit: Limit) -> str:
    return "of all together" if "accumulated" in limit.name else "of one function"
