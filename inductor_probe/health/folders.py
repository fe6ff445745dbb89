"""The folders that dumps, caches and records are written to: can they be, and what is in them?"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from inductor_probe.model.health import Diagnostic, Fact, TorchSetup
from inductor_probe.store.made_here import record_path

_LITTLE = 2**30
"""Bytes: a run with its kernels takes some 10 MiB, one with CUDA and many graphs some hundred."""
_COUNTING_S = 2.0
"""A cache of millions of files is not counted to its end."""


def folder_diagnostics(
    setup: TorchSetup, here: Path, environment: Mapping[str, str] = os.environ
) -> Iterator[Diagnostic]:
    """Yield each folder with its free space. `here` is where dumps go unless a variable says otherwise."""
    yield _folder("dumps", Path(environment.get("TORCH_COMPILE_DEBUG_DIR") or here))
    try:
        temporary = Path(tempfile.gettempdir())
    except OSError as error:
        facts = _facts("temporary", error=error.strerror or str(error))
        yield Diagnostic("disk", "error", "folder-not-writable", facts)
    else:
        yield _folder("temporary", temporary)
    if setup.caches:
        yield _folder("caches", Path(setup.caches.folder))
    yield _folder("record", record_path(environment).parent)


def _folder(use: str, folder: Path) -> Diagnostic:
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    exists = existing == folder
    try:
        _write_in(existing)
        free = shutil.disk_usage(existing).free
    except OSError as error:
        facts = _facts(use, folder, exists, error=error.strerror or str(error))
        level = "warning" if use == "record" else "error"
        return Diagnostic("disk", level, "folder-not-writable", facts)  # type: ignore[arg-type] # one of two
    facts = _facts(use, folder, exists, free)
    if free < _LITTLE:
        return Diagnostic("disk", "warning", "little-space", facts)
    return Diagnostic("disk", "ok", "folder", facts)


def _write_in(folder: Path) -> None:
    """Make a file in a folder and write to it; it is gone afterwards.

    Raises:
        OSError: that cannot be done. A full disk refuses the first block, not the name.
    """
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".probe_", buffering=0) as file:
        file.write(b"\0" * 4096)
        os.fsync(file.fileno())


def _facts(
    use: str,
    folder: Path | None = None,
    exists: bool | None = None,
    free: int | None = None,
    error: str | None = None,
) -> tuple[tuple[str, Fact], ...]:
    path = None if folder is None else str(folder)
    return (("use", use), ("folder", path), ("exists", exists), ("free_bytes", free), ("error", error))


def caches_diagnostic(setup: TorchSetup) -> Diagnostic:
    """Return where torch's caches are, how much is in them, and which are on."""
    caches = setup.caches
    if caches is None:
        unknown: tuple[tuple[str, Fact], ...] = (("torch", setup.version), ("error", setup.error("caches")))
        return Diagnostic("caches", "warning", "caches-not-available", unknown)
    size, files, whole = folder_size(Path(caches.folder))
    facts: tuple[tuple[str, Fact], ...] = (
        ("folder", caches.folder),
        ("bytes", size),
        ("files", files),
        ("whole", whole),
        ("disabled", caches.disabled),
        ("fx_graph", caches.fx_graph),
        ("autograd", caches.autograd),
        ("autotune", caches.autotune),
        ("remote", caches.remote),
    )
    if caches.remote and not caches.disabled:
        return Diagnostic("caches", "warning", "caches-remote", facts)
    return Diagnostic("caches", "ok", "caches", facts)


def folder_size(folder: Path, seconds: float = _COUNTING_S) -> tuple[int, int, bool]:
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
