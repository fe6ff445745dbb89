"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from inductor_probe.errors import ProbeError


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path` under a temporary name in the same folder, then rename it into place.

    A reader sees the old content or the new one, never a part, whatever happens in between.

    Raises:
        ProbeError: the folder is missing or read-only, or the disk is full. `path` is as it was.
    """
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        temporary = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise ProbeError(
            f"cannot write {path}: {error.strerror or error}",
            "free some space or make the folder writable; nothing was changed",
        ) from error


def _umask() -> int:
    """Return the process's umask: it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
