"""Whether anyone but this user can have written a file: by owner and mode of it and of its folders."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterable
from pathlib import Path

from inductor_probe.model.runs import OtherWriters


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
        return OtherWriters(path, owner=_user(status.st_uid))
    by_group = status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid)
    if not (by_group or status.st_mode & stat.S_IWOTH):
        return None
    # In a folder with the sticky bit, as /tmp is one, each takes away and renames files of his own only.
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return None
    return OtherWriters(path, mode=stat.S_IMODE(status.st_mode))


def first_other_writers(paths: Iterable[Path]) -> OtherWriters | None:
    """Return who else may have written the first such path of `paths`."""
    return next((found for path in paths if (found := other_writers(path))), None)


def _is_private(group: int) -> bool:
    """Tell whether only this user is in a group, which has his name then, and is his primary one.

    `useradd` makes such groups (`USERGROUPS_ENAB`), and gives files to them to write: umask 002.
    """
    try:
        user, entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and entry.gr_name == user.pw_name and set(entry.gr_mem) <= {user.pw_name}


def _user(number: int) -> str:
    try:
        return f"user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"user {number}"
