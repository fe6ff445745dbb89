"""`.probe/results/NAME.json`: what `probe perf` measured, a file a run; and an index over a folder of them.

    {"schema": 1, "run": {the fields of `PerfRun`}}

A file is written whole after each row, so that whatever ends the run loses at most the row that is being
measured. No name is given twice, and nothing is overwritten but a run's own file by itself.

`index.sqlite` beside the files holds what a list shows of each, so that listing a thousand runs does not read
their samples. It is made from the files, and only from them: where it is missing, damaged or of another
version it is made again, and an entry counts as long as its file has the size and the time it had then.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError, near_names
from inductor_probe.files import read_text, write_whole
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.perf import PerfRun, ResultEntry
from inductor_probe.store.samples import check_quads

FOLDER = Path(".probe", "results")
SCHEMA = 1
_INDEX = "index.sqlite"
_INDEX_VERSION = 1
_LARGEST = 256 << 20
"""A row of three processes with 60 quads each has 30 kB; a full matrix has some hundred rows."""
_LATEST = "latest"


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
    """Read a file of results.

    Raises:
        NotFoundError, UnreadableError: there is none; it was written by another version; or it is damaged.
    """
    text = read_text(path, from_dump=False, largest=_LARGEST)
    if not text:
        raise UnreadableError(f"{path} is empty: nothing was measured", "probe results --prune removes it")
    try:
        data = json.loads(text)
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
    except (ValueError, RecursionError) as error:
        raise UnreadableError(
            f"{path} is not what probe perf writes: {error}",
            "it was damaged or edited: take a copy of it from elsewhere, or measure again with probe perf",
        ) from error
    return run


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


def entries(folder: Path) -> tuple[ResultEntry, ...]:
    """Return all results of a folder, the newest first; one that cannot be read says why."""
    paths = sorted(folder.glob("*.json"), key=lambda path: path.name, reverse=True)
    if not paths:
        return ()
    known = _indexed(folder)
    rows, changed = [], dict[str, tuple[str, str]]()
    for path in paths:
        try:
            facts = path.stat()
        except FileNotFoundError:  # it was removed since
            continue
        stamp = f"{facts.st_mtime_ns}-{facts.st_size}"
        stamp_then, text = known.get(path.name, ("", ""))
        entry = _entry_from(text) if stamp_then == stamp else None
        if entry is None:
            try:
                entry = entry_of(path, read_run_file(path))
            except UnreadableError as error:
                entry = ResultEntry(path.stem, path, size=facts.st_size, problem=error.message)
            changed[path.name] = (stamp, json.dumps(to_json(entry)))
        rows.append(entry)
    gone = known.keys() - {path.name for path in paths}
    if changed or gone:
        _put(folder, changed, gone)
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


def _entry_from(text: str) -> ResultEntry | None:
    try:
        return from_json(ResultEntry, json.loads(text))
    except ValueError:
        return None


def _indexed(folder: Path) -> dict[str, tuple[str, str]]:
    """Return what the index has of each file; nothing where there is no index that can be used."""
    path = folder / _INDEX
    if not path.is_file():
        return {}
    try:
        with closing(sqlite3.connect(path)) as index:
            if index.execute("PRAGMA user_version").fetchone()[0] != _INDEX_VERSION:
                raise sqlite3.DatabaseError
            rows: list[tuple[Any, ...]] = index.execute("SELECT file, stamp, entry FROM results").fetchall()
            return {str(file): (str(stamp), str(entry)) for file, stamp, entry in rows}
    except sqlite3.DatabaseError:  # damaged, or of another version: it is made again
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return {}


def _put(folder: Path, changed: dict[str, tuple[str, str]], gone: Iterable[str]) -> None:
    """Bring the index up to date; a folder that cannot be written to has none."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / _INDEX)) as index, index:
        index.execute(f"PRAGMA user_version = {_INDEX_VERSION}")
        index.execute("CREATE TABLE IF NOT EXISTS results (file TEXT PRIMARY KEY, stamp TEXT, entry TEXT)")
        rows = [(file, stamp, entry) for file, (stamp, entry) in changed.items()]
        index.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", rows)
        index.executemany("DELETE FROM results WHERE file = ?", [(file,) for file in gone])
