"""One rule from a string to a script or a dump, for the verbs that take both: expect, profile, whatif.

    1. what is there as a path: in a dump, or a folder or archive of one: that dump; another file: a script
    2. the label of a run that was made here
    3. a script of that name, here or in the project's scenarios, without its `.py` too
    4. whatever else names a run or graph: see `discovery/discover.py`

So nothing in a dump runs as a script, and no stranger's label takes the place of a script of the user's. What
only a script takes, as cases and arguments, makes 3 come before 2.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from inductor_probe.errors import NotFoundError, ProbeError, near_names


class Meaning(Struct, frozen=True):
    """What a string names: a script, or else the dump that `open_target` opens by `target`.

    `beside` says what else has that name, and which was taken; empty where nothing has.
    """

    script: Path | None = None
    target: str | None = None
    beside: str = ""


def meaning_of(word: str, cwd: Path, *, of_script: bool = False) -> Meaning:
    """Return what `word` names, seen from `cwd`. `of_script`: with it was given what only a script takes.

    Raises:
        NotFoundError: it names neither a script nor a run. ProbeError: it names a run, and `of_script`.
    """
    from inductor_probe.capture import find_script
    from inductor_probe.discovery.discover import find, labels, lies_in_dump, path_of, run_labelled
    from inductor_probe.store.made_here import is_recorded

    path, script, run, missing = path_of(word, cwd), None, None, None
    is_dump = path.exists() and (lies_in_dump(cwd / word) is not None or _is_dump(path))
    if not is_dump:
        run = None if path.exists() else run_labelled(word, cwd)
        try:
            script = find_script(word, cwd)
        except NotFoundError as error:
            missing = error
    if script is not None and run is None:
        return Meaning(script)
    if script is not None and run is not None:
        mine = is_recorded(run)
        if of_script or not mine:
            made = "" if mine else ", which was not made here"
            return Meaning(script, beside=f"{word} is the script {script}, and not the run {run.name}{made}")
        return Meaning(target=word, beside=f"{word} is the run {run.name}, and not the script {script}")
    if missing is not None:
        try:
            find(word, cwd)
        except NotFoundError:
            if near := near_names(word, labels(cwd)):
                raise NotFoundError(f"{missing.message}, and no run of that name", near) from None
            raise missing from None
    if of_script:
        raise ProbeError(
            f"{word} was made already: its cases, settings, arguments and GPU are those it was made with",
            "name the script to choose others",
        )
    return Meaning(target=word)


def _is_dump(path: Path) -> bool:
    """Whether what is at `path` is read as a dump: a script is not looked into.

    An archive is, also one that holds several dumps or none: it never runs as a script.
    """
    from inductor_probe.discovery.discover import dump_at
    from inductor_probe.discovery.dump_files import is_archive
    from inductor_probe.discovery.package import is_package

    if path.suffix == ".py":
        return False
    if is_archive(path) or is_package(path):
        return True
    try:
        return dump_at(path) is not None
    except NotFoundError:
        return False
