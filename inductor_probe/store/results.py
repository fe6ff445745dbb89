"""`.probe/results/NAME.json`: what `probe perf` measured, a file a run; and an index over a folder of them.

    {"schema": 1, "run": {the fields of `PerfRun`}}

A file is written whole after each row, so that whatever ends the run loses at most the row that is being
measured. No name is given twice, and nothing is overwritten but a run's own file by itself.

`index.cache` beside the files holds what a list shows of each, as JSON, so that listing a thousand runs does
not read their samples. It is made from the files, and only from them: where it is missing, damaged or of
another version it is made again, and an entry counts as long as its file has the size and the time it had
then. It may be anybody's: nothing is removed by what it says, and no path or name is taken from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError, near_names
from inductor_probe.files import LARGEST_JSON, json_of, read_text, write_whole
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.perf import PerfRun, ResultEntry
from inductor_probe.store.samples import check_quads

FOLDER = Path(".probe", "results")
SCHEMA = 1
_INDEX = "index.cache"
_INDEX_VERSION = 2
_LARGEST = 64 << 20
"""A row of three processes with 60 quads each has 30 kB; a full matrix has some hundred rows."""
_LATEST = "latest"
_BEGINNING = b'{"schema": '


def new_name(folder: Path, subject: str, when: datetime) -> str:
    """Reserve a name that no file has, by making an empty file: `20261123-120000-check_hflip`.

    Raises:
        ProbeError: the folder cannot be made, or written to.
    """
    words = "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in subject)
    base = f"{when:%Y%m%d-%H%M%S}-{words}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, 1000):
            name = base if number == 1 else f"{base}-{number}"
            with suppress(FileExistsError):
                os.close(os.open(folder / f"{name}.json", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
                return name
    except OSError as error:
        raise ProbeError(
            f"cannot write results into {folder}: {error.strerror or error}",
            "choose another folder with --results, or free some space",
        ) from error
    raise ProbeError(f"{folder} has a thousand results of this second", "wait a second")


def write_run(folder: Path, run: PerfRun) -> Path:
    """Write a run's file, whole.

    Raises:
        ProbeError: the disk is full, or the folder is gone. The file is as it was.
    """
    path = folder / f"{run.name}.json"
    write_whole(path, json.dumps({"schema": SCHEMA, "run": to_json(run)}, allow_nan=False) + "\n")
    return path


def read_run_file(path: Path) -> PerfRun:
    """Read a file of results. A run's name is that of its file, whatever the file says.

    Raises:
        NotFoundError, UnreadableError: there is none; it was written by another version; or it is damaged.
    """
    text = read_text(path, largest=_LARGEST)
    if not text:
        raise UnreadableError(f"{path} is empty: nothing was measured", "probe results --prune removes it")
    try:
        data = json_of(text)
        schema = data.get("schema") if isinstance(data, dict) else None
        if isinstance(schema, int) and schema != SCHEMA:
            newer = "a newer" if schema > SCHEMA else "an older"
            raise UnreadableError(
                f"{path} was written by {newer} probe (schema {schema}, this one reads {SCHEMA})",
                "update inductor_probe" if schema > SCHEMA else "measure again with probe perf",
            )
        if schema is None:
            raise ValueError("it has no schema")
        run = from_json(PerfRun, data.get("run"), "run")
        for row in run.rows:
            for number, process in enumerate(row.processes):
                for series in process.series:
                    check_quads(series, f"row {row.key.case}, process {number + 1}: quads")
    except ValueError as error:
        raise UnreadableError(
            f"{path} is not what probe perf writes: {error}",
            "it was damaged or edited: take a copy of it from elsewhere, or measure again with probe perf",
        ) from error
    return replace(run, name=path.stem)


def entry_of(path: Path, run: PerfRun) -> ResultEntry:
    """Return what a list shows of a run."""
    columns = dict.fromkeys(
        facts.name for row in run.rows for process in row.processes[:1] for facts in process.columns
    )
    torches = {one.torch: None for node in run.machines for one in (node.interpreter, node.other) if one}
    return ResultEntry(
        name=path.stem,
        path=path,
        scenario=run.scenario,
        started=run.started,
        torch=" and ".join(torches),
        host=", ".join(node.name for node in run.machines),
        rows=len(run.rows),
        planned=run.planned,
        finished=run.finished,
        columns=tuple(columns),
        size=path.stat().st_size,
    )


def entries(folder: Path, *, indexed: bool = True) -> tuple[ResultEntry, ...]:
    """Return all results of a folder, the newest first; one that cannot be read says why.

    With `indexed=False` each file is read: for a list by which files are removed.
    """
    paths = sorted(folder.glob("*.json"), key=lambda path: path.name, reverse=True)
    if not paths:
        return ()
    known = _indexed(folder) if indexed else {}
    rows, stamped = [], dict[str, tuple[str, ResultEntry]]()
    for path in paths:
        try:
            facts = path.stat()
        except FileNotFoundError:  # it was removed since
            continue
        stamp = f"{facts.st_mtime_ns}-{facts.st_size}"
        stamp_then, entry = known.get(path.name, ("", None))
        if entry is None or stamp_then != stamp:
            try:
                entry = entry_of(path, read_run_file(path))
            except UnreadableError as error:
                entry = ResultEntry(path.stem, path, problem=error.message)
        entry = replace(entry, name=path.stem, path=Path(path.name), size=facts.st_size)
        stamped[path.name] = stamp, entry
        rows.append(replace(entry, path=path))
    if stamped != known:
        _write_index(folder, stamped)
    return tuple(rows)


def find_results(folder: Path, word: str) -> Path:
    """Return the file that a word means: a path, a name, the start of one, `latest` or `latest~1`.

    Raises:
        NotFoundError: it means none, or several.
    """
    path = Path(word)
    if path.suffix == ".json" or os.sep in word:
        if not path.is_file():
            raise NotFoundError(f"{path} does not exist", "probe results lists what was measured here")
        return path
    names = sorted((path.stem for path in folder.glob("*.json")), reverse=True)
    if word == _LATEST or word.startswith(f"{_LATEST}~"):
        back = word.partition("~")[2] or "0"
        if back.isdecimal() and int(back) < len(names):
            return folder / f"{names[int(back)]}.json"
        raise NotFoundError(
            f"there is no {word} in {folder}: it has {len(names)} results", "measure with probe perf"
        )
    matching = [word] if word in names else [name for name in names if word in name]
    if len(matching) == 1:
        return folder / f"{matching[0]}.json"
    if matching:
        raise NotFoundError(f"{word} may mean {len(matching)} results", f"there is {', '.join(matching[:4])}")
    hint = near_names(word, names) or "probe perf measures; --results names another folder"
    raise NotFoundError(f"there are no results {word} in {folder}", hint)


def is_ours(path: Path) -> bool:
    """Whether a file begins as results do, or is empty as one whose name was reserved: no other JSON does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_BEGINNING)) in (b"", _BEGINNING)


def remove(rows: Iterable[ResultEntry]) -> None:
    """Delete files of results.

    Raises:
        ProbeError: one cannot be deleted.
    """
    for entry in rows:
        try:
            entry.path.unlink(missing_ok=True)
        except OSError as error:
            raise ProbeError(f"cannot remove {entry.path}: {error.strerror or error}") from error


class _Index(Struct, frozen=True):
    version: int
    entries: tuple[tuple[str, tuple[str, ResultEntry]], ...]


def _indexed(folder: Path) -> dict[str, tuple[str, ResultEntry]]:
    """Return what the index has of each file, with the stamp; nothing where none can be used."""
    try:
        index = from_json(_Index, json_of(read_text(folder / _INDEX, largest=LARGEST_JSON)))
    except (ProbeError, ValueError):  # none, damaged, or of another version: it is made again
        return {}
    return dict(index.entries) if index.version == _INDEX_VERSION else {}


def _write_index(folder: Path, entries: dict[str, tuple[str, ResultEntry]]) -> None:
    """Write the index anew; a folder that cannot be written to has none."""
    with suppress(ProbeError):
        index = _Index(_INDEX_VERSION, tuple(entries.items()))
        write_whole(folder / _INDEX, json.dumps(to_json(index)) + "\n")
