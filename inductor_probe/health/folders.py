"""The folders that dumps, caches and records are written to: can they be, and what room is left?"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from inductor_probe.model.health import Fact, Finding, TorchSetup
from inductor_probe.report.units import bytes_text
from inductor_probe.store.made_here import record_path

_LITTLE = 2**30
"""Bytes: a run with its kernels takes some 10 MiB, one with CUDA and many graphs some hundred."""


def folder_findings(
    setup: TorchSetup, here: Path, environment: Mapping[str, str] = os.environ
) -> Iterator[Finding]:
    """Yield each folder with its free space. `here` is where dumps go unless a variable says otherwise."""
    dumps = Path(environment.get("TORCH_COMPILE_DEBUG_DIR") or here)
    yield _folder("dumps", dumps, "go elsewhere, or name a folder that can be written with --out")
    try:
        temporary = Path(tempfile.gettempdir())
    except OSError as error:
        text = f"no folder for temporary files can be written: {error.strerror or error}"
        yield Finding(
            "disk", "needs", text, "let TMPDIR name a folder that can be written", _facts("temporary")
        )
    else:
        yield _folder("temporary", temporary, "let TMPDIR name a folder that can be written")
    if setup.caches:
        remedy = "let TORCHINDUCTOR_CACHE_DIR name a folder that can be written"
        yield _folder("caches", Path(setup.caches.folder), remedy)
    record = record_path(environment).parent
    remedy = "let XDG_STATE_HOME name a folder that can be written; till then bench files need --trust"
    yield _folder("record", record, remedy, needed=False)


def _folder(use: str, folder: Path, remedy: str, *, needed: bool = True) -> Finding:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    shown = folder if there == folder else f"{folder} (to be made)"
    try:
        _write_in(there)
        free = shutil.disk_usage(there).free
    except OSError as error:
        text = f"{_USES[use]} cannot be written in {folder}: {error.strerror or error}"
        return Finding("disk", "needs" if needed else "note", text, remedy, _facts(use, folder))
    text = f"{_USES[use]} in {shown}: {bytes_text(free)} free"
    facts = _facts(use, folder, free)
    if free < _LITTLE:
        return Finding(
            "disk", "note", text, "free some space: probe runs --older-than 7d lists old runs", facts
        )
    return Finding("disk", "fine", text, facts=facts)


def _write_in(folder: Path) -> None:
    """Make a file in a folder and write to it; it is gone afterwards.

    Raises:
        OSError: that cannot be done. A full disk refuses the first block, not the name.
    """
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".probe_", buffering=0) as file:
        file.write(b"\0" * 4096)
        os.fsync(file.fileno())


_USES = {
    "dumps": "dumps",
    "temporary": "temporary files, and caches of probe dump",
    "caches": "inductor's own caches",
    "record": "the record of what was made here",
}


def _facts(use: str, folder: Path | None = None, free: int | None = None) -> tuple[tuple[str, Fact], ...]:
    return (("use", use), ("folder", None if folder is None else str(folder)), ("free_bytes", free))
