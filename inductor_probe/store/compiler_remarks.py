"""`probe_compiler.json` beside a graph's `output_code.py`: what a compiler said of its C++ kernels.

`probe asm` writes it where the dump was made here; `probe why` shows it beside what inductor decided. Remarks
on a text that was changed since are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from inductor_probe import __version__
from inductor_probe.errors import UnreadableError
from inductor_probe.files import LARGEST_JSON, digest_of, json_of, read_text, write_whole
from inductor_probe.model.assembly import REMARKS_NAME, KernelRemarks
from inductor_probe.model.codec import from_json, to_json


class _Index(Struct, frozen=True):
    """The file. `probe`: version that wrote it."""

    probe: str
    kernels: tuple[KernelRemarks, ...]


def keep_remarks(graph: Path, remarks: KernelRemarks) -> None:
    """Write what was said of a kernel, in the place of what was said of it before.

    A file that cannot be read is made anew: it holds nothing but answers that can be had again.
    """
    try:
        others = [one for one in _read(graph) if one.kernel != remarks.kernel]
    except UnreadableError:
        others = []
    index = _Index(__version__, (*others, remarks))
    write_whole(graph / REMARKS_NAME, json.dumps(to_json(index), indent=1) + "\n")


def read_remarks(graph: Path, sources: Mapping[str, str]) -> tuple[KernelRemarks, ...]:
    """Return what was said of kernels whose texts, by name, are as they were then.

    Raises:
        UnreadableError: the file is cut, or of another form.
    """
    return tuple(
        one for one in _read(graph) if one.kernel in sources and one.digest == digest_of(sources[one.kernel])
    )


def _read(graph: Path) -> Iterable[KernelRemarks]:
    path = graph / REMARKS_NAME
    if not path.exists():
        return ()
    try:
        return from_json(_Index, json_of(read_text(path, largest=LARGEST_JSON))).kernels
    except ValueError as error:
        raise UnreadableError(
            f"{path} cannot be read: {error}", "remove it: probe asm makes it again"
        ) from error
