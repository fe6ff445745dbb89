"""Getting the text of a file, or a sentence that says why not."""

from __future__ import annotations

from pathlib import Path

from inductor_probe.errors import NotFoundError, UnreadableError


def read_text(path: Path) -> str:
    """Return the text of `path`.

    Raises:
        NotFoundError: there is no such file.
        UnreadableError: no permission, a folder, or bytes that are not UTF-8 text; says the first bad line.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError(f"{path} does not exist") from error
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror or error}") from error
    bad = data.find(b"\0")
    if bad < 0:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            bad = error.start
    line = data.count(b"\n", 0, bad) + 1
    raise UnreadableError(
        f"{path}:{line}: not text (byte {bad} of {len(data)})",
        "the file was damaged or replaced; dump the script again",
    )
