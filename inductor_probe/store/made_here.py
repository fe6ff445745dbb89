"""The user's record of what `probe dump` made on this machine: the proof that a dump is no stranger's.

A file outside of every dump, in the user's own folder for state: one line for each graph, with a digest of
all that code to run is made from, and one for each run, with a digest of all that it was made with: script,
arguments, variables, settings. Nothing in a dump can put a line there, whatever it claims about itself.
"""

from __future__ import annotations

import grp
import hashlib
import json
import os
import platform
import pwd
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.files import LARGEST_BYTES, LARGEST_JSON, json_of, read_text, refuse_long_numbers
from inductor_probe.model.codec import to_json
from inductor_probe.model.manifest import CONSTANTS_DIR, MANIFEST_NAME, Manifest
from inductor_probe.model.runs import MadeHere, OtherWriters, RecordProblem


def other_writers(path: Path, status: os.stat_result | None = None) -> OtherWriters | None:
    """Return who else may have written `path`, None if nobody but this user and root.

    Args:
        path: a file or folder. One that is not there was written by nobody.
        status: of the file that was opened there, where that was asked already.
    """
    try:
        status = path.stat() if status is None else status
    except OSError:
        return None
    if status.st_uid not in (os.geteuid(), 0):
        try:
            return OtherWriters(path, owner=f"user {pwd.getpwuid(status.st_uid).pw_name}")
        except KeyError:
            return OtherWriters(path, owner=f"user {status.st_uid}")
    by_group = status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid)
    if not (by_group or status.st_mode & stat.S_IWOTH):
        return None
    # In a folder with the sticky bit, as /tmp is one, each takes away and renames files of his own only.
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return None
    return OtherWriters(path, mode=stat.S_IMODE(status.st_mode))


def first_other_writers(paths: Iterable[Path]) -> OtherWriters | None:
    """Return who else may have written the first such path of `paths`."""
    return next(filter(None, map(other_writers, paths)), None)


def _is_private(group: int) -> bool:
    """Return whether only this user is in a group, which has his name then, and is his primary one.

    `useradd` makes such groups (`USERGROUPS_ENAB`), and gives files to them to write: umask 002.
    """
    try:
        user, entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}


COMPARED_FILES = (
    "output_code.py",
    "output_code.cpp",
    "fx_graph_runnable.py",
    "fx_graph_readable.py",
    "fx_graph_transformed.py",
    "ir_pre_fusion.txt",
    "ir_post_fusion.txt",
)
"""What a bench file, or a program, is made from; the graph's facts in `probe.json` come to it."""
_CODES = ("output_code.py", "output_code.cpp")
_MACHINE_ID = Path("/etc/machine-id")


class GraphTexts(Struct, frozen=True):
    """What code of a graph is made from, each file read once: what is judged is what is used.

    Attributes:
        graph: its folder.
        run: the folder of its run, if that has a manifest.
        files: text by name, None for a file that is not there.
        manifest: text of the run's manifest.
    """

    graph: Path
    run: Path | None
    files: Mapping[str, str | None]
    manifest: str | None


def graph_texts(graph: Path, run: Path | None) -> GraphTexts:
    """Read what code of a graph is made from. `run` is the folder of its manifest, if it has one.

    Raises:
        ProbeError: one of the files cannot be read.
    """
    files = {name: _text(graph / name) for name in COMPARED_FILES}
    return GraphTexts(graph, run, files, _text(run / MANIFEST_NAME, LARGEST_JSON) if run else None)


def _text(path: Path, largest: int = LARGEST_BYTES) -> str | None:
    try:
        return refuse_long_numbers(read_text(path, largest=largest), path)
    except NotFoundError:
        return None


def record_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the record is: below XDG_STATE_HOME, or `~/.local/state` without it."""
    named = environment.get("XDG_STATE_HOME", "")
    home = Path(environment.get("HOME") or "~").expanduser()
    state = Path(named) if named.startswith("/") else home / ".local" / "state"
    return state / "inductor_probe" / "made_here.jsonl"


def remember(
    graphs: Iterable[Path],
    run: Path,
    record: Path | None = None,
    *,
    manifest: Mapping[str, Any] | None = None,
    written: set[str] | None = None,
) -> None:
    """Write down that the graphs in these folders of `run` were made here, as they are now.

    The supervisor of a dump calls this, not the script: for graphs that the recorder saw being compiled. What
    others made does not get in that way. The script itself could write anything to the record, since it runs
    as the same user, on that user's wish: it needs no such record to run code.

    Args:
        graphs: their folders; those without code are left out. run: the folder of their manifest.
        record: see `record_path`.
        manifest: what `probe.json` will hold after this call; what it holds now if left out. Recording it
            first leaves no moment in which `probe.json` says what the record does not know.
        written: lines that earlier calls for this run wrote: not written again; this call's are added.

    Raises:
        ProbeError: the record cannot be written, or a graph not be read.
    """
    record = record or record_path()
    machine = _machine()
    lines = []
    for graph in graphs:
        if any((graph / name).is_file() for name in _CODES):
            texts = graph_texts(graph, run)
            facts = _facts(texts) if manifest is None else _facts_digest(graph.name, manifest)
            digests = _file_digests(texts)
            entry = {"files": _digest(digests), "facts": facts, "each": digests, "machine": machine}
            lines.append(json.dumps({**entry, "folder": os.path.realpath(graph)}) + "\n")
    _append(record, lines, written)


def remember_recipe(
    run: Path,
    manifest: Manifest,
    script: Path,
    record: Path | None = None,
    *,
    written: set[str] | None = None,
) -> None:
    """Write down how the run in the folder `run` was made, so that it may be made again: see `remember`.

    Args:
        manifest: what `probe.json` will say of it. script: where the script lies that it names.

    Raises:
        ProbeError: the record cannot be written.
    """
    place = {"script": os.path.realpath(script), "content": _content(script), "run": os.path.realpath(run)}
    line = json.dumps({"recipe": _recipe(manifest), "machine": _machine(), **place}) + "\n"
    _append(record or record_path(), [line], written)


def _append(record: Path, lines: Iterable[str], written: set[str] | None) -> None:
    lines = [line for line in lines if written is None or line not in written]
    if not lines:
        return
    try:
        record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Appended in one piece: dumps that end at the same time do not cut each other's lines.
        descriptor = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab", buffering=0) as file:
            file.write("".join(lines).encode())
    except OSError as error:
        raise ProbeError(
            f"cannot record in {record} that the dump was made here: {error.strerror or error}",
            "running its code will need --trust",
        ) from error
    if written is not None:
        written.update(lines)


def made_here(
    graph: Path, run: Path | None, record: Path | None = None, *, texts: GraphTexts | None = None
) -> MadeHere:
    """Look a graph's folder up in the record. `run` is the folder of its manifest, if it has one.

    Args:
        texts: its files, where they were read already.

    Raises:
        ProbeError: the graph cannot be read.
    """
    texts = texts or graph_texts(graph, run)
    entries, problem = _entries(record or record_path())
    files, facts, folder = _digest(_file_digests(texts)), _facts(texts), Path(os.path.realpath(graph))
    same = [entry for entry in entries if entry.get("files") == files and facts in (None, entry.get("facts"))]
    constants = (
        folder / CONSTANTS_DIR
    )  # their digests are among the facts: a bench file compares them as it loads
    compared = [*folders_of(folder), *(folder / name for name in COMPARED_FILES)]
    compared += [constants, *sorted(constants.glob("*.bin"))]
    return MadeHere(
        same=bool(same),
        place=any(entry.get("folder") == str(folder) for entry in same),
        changed=not same and any(entry.get("folder") == str(folder) for entry in entries),
        problem=problem,
        others=first_other_writers([*compared, *([run / MANIFEST_NAME] if run else [])]),
    )


def recipe_made_here(run: Path, manifest: Manifest) -> tuple[MadeHere, Path | None]:
    """Look up how a run was made; return what the record says of it, and where it says that its script lies.

    Args:
        manifest: of the run, as it was read: what is judged is what is used.
    """
    entries, problem = _entries(record_path())
    recipe, folder = _recipe(manifest), os.path.realpath(run)
    same = [entry for entry in entries if entry.get("recipe") == recipe]
    here = [entry for entry in same if entry.get("run") == folder]
    script = Path(str(here[-1].get("script"))) if here else None
    made = MadeHere(
        same=bool(same),
        place=bool(here),
        changed=not here and any(entry.get("run") == folder for entry in entries),
        problem=problem,
        others=first_other_writers([run, run / MANIFEST_NAME, *([script] if script else [])]),
    )
    return made, script


def script_changed(run: Path, script: Path) -> bool | None:
    """Whether a script has other text than when a run was made with it; None where that was not recorded."""
    folder = os.path.realpath(run)
    entries = _entries(record_path())[0]
    # Of one that was edited while it ran the first is what torch compiled.
    contents = (entry.get("content") for entry in entries if entry.get("run") == folder)
    before = next(filter(None, contents), None)
    return None if before is None else before != _content(script)


def _content(script: Path) -> str | None:
    """Return a digest of the text of a script; None where it cannot be read."""
    try:
        return hashlib.sha256(script.read_bytes()).hexdigest()
    except OSError:
        return None


def is_recorded(run: Path) -> bool:
    """Whether `probe dump` made a run in this folder, whatever is in it by now."""
    folder = os.path.realpath(run)
    return any(
        entry.get("run") == folder or str(entry.get("folder", "")).startswith(f"{folder}{os.sep}")
        for entry in _entries(record_path())[0]
    )


def edited_files(graphs: Iterable[Path]) -> dict[Path, tuple[str, ...]]:
    """Return which of `COMPARED_FILES` in these folders are no longer as `probe dump` left them there.

    A folder that the record does not have is left out: made elsewhere, or by torch alone.

    Raises:
        ProbeError: a file cannot be read.
    """
    made = {
        entry["folder"]: entry["each"]
        for entry in _entries(record_path())[0]
        if "folder" in entry and isinstance(entry.get("each"), dict)
    }
    edited = {}
    for graph in graphs:
        if before := made.get(os.path.realpath(graph)):
            now = _file_digests(graph_texts(graph, None))
            edited[graph] = tuple(name for name in COMPARED_FILES if before.get(name) != now.get(name))
    return edited


def folders_of(graph: Path) -> list[Path]:
    """Return a graph's folder and those around it that belong to the dump: last that of its run."""
    return [graph, *graph.parents[:2]] if graph.parent.name == "torchinductor" else [graph]


def _file_digests(texts: GraphTexts) -> dict[str, str]:
    return {
        name: "missing" if text is None else hashlib.sha256(text.encode()).hexdigest()
        for name, text in texts.files.items()
        if text is not None or name != _CODES[1]  # a graph has one of the two: most have no C++
    }


def _facts(texts: GraphTexts) -> str | None:
    """Digest what the manifest says of a graph, as it stands there: with keys that a later probe adds."""
    if texts.manifest is None:
        return None
    try:
        return _facts_digest(texts.graph.name, json_of(texts.manifest))
    except (ValueError, KeyError, TypeError):
        return "unreadable"


def _facts_digest(name: str, manifest: Mapping[str, Any]) -> str:
    return _digest([graph for graph in manifest["graphs"] if graph["name"] == name])


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _recipe(manifest: Manifest) -> str:
    """Digest all that a run is made again from."""
    gpu = manifest.gpu
    made_from = (
        *(manifest.form, manifest.script, manifest.command, manifest.cases, manifest.knobs),
        *(manifest.settings, manifest.variables, manifest.flips),
        *((gpu.target, gpu.figures) if gpu else ()),
    )
    return _digest(to_json(made_from))


def _entries(record: Path) -> tuple[list[dict[str, Any]], RecordProblem | None]:
    """Return what the record holds of this machine; or why somebody else may have written it."""
    try:
        for path in (record.parent, record):
            status = path.stat()
            if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022:
                return [], RecordProblem("other-writers", path)
        text = read_text(record, from_dump=False)
    except FileNotFoundError:
        return [], None
    except (OSError, ProbeError) as error:
        return [], RecordProblem("unreadable", record, str(error))
    machine = _machine()
    entries = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:  # cut off: the disk was full
            continue
        if isinstance(entry, dict) and entry.get("machine") == machine:
            entries.append(entry)
    return entries, None


def _machine() -> str:
    """Return a digest that sets this machine apart from others with the same home folder, without its id."""
    try:
        name = _MACHINE_ID.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        name = ""
    return hashlib.sha256(f"inductor_probe {name or platform.node()}".encode()).hexdigest()[:32]
