"""The programs with which torch tests the compiler, kept from one dump to the next.

Before its first C++ kernel, inductor compiles up to ten programs and loads each in a process, to know which
vectors the compiler can build (`VecISA.check_build` in `torch/_inductor/cpu_vec_isa.py`). It does so once
per cache folder. A dump has an empty one, so that nothing of the script's is found compiled; these programs,
which are no part of the script, would then be half of the processor time of dumping a small one.

Torch names each after a hash of its text, the flags, the compiler's version and torch's. So an equal name is
an equal program, and one that was kept is built by the very command that would run now. It is still loaded.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from inductor_probe.store.made_here import other_writers

_OF_CHECKS = b"_chk_kernel"
"""In the name of the function of each such program, and of no kernel."""
_LARGEST_SOURCE = 4096
_PROGRAM = "*/*.cpp"


def checks_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where programs are kept: below XDG_CACHE_HOME, or `~/.cache` without it."""
    named = environment.get("XDG_CACHE_HOME", "")
    cache = Path(named) if named.startswith("/") else Path(environment.get("HOME") or Path.home()) / ".cache"
    return cache / "inductor_probe" / "isa_checks"


@contextmanager
def isa_checks_kept(cache: Path) -> Iterator[None]:
    """Put the programs that are kept into inductor's empty cache, and afterwards keep those that are new.

    A folder that cannot be written, or that others than this user may write, is left alone: torch compiles
    the programs then, as it would have.
    """
    kept = checks_folder()
    with suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        _copy(kept, cache)
    try:
        yield
    finally:
        with suppress(OSError):
            _copy(cache, kept)


def _copy(source: Path, target: Path) -> None:
    """Copy the programs of one folder that the other lacks, each whole or not at all."""
    if other_writers(source) or other_writers(target):
        return
    for program in source.glob(_PROGRAM):
        library = program.with_suffix(".so")
        new = target / library.relative_to(source)
        if not new.exists() and library.is_file() and _is_check(program):
            new.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _copy_whole(program, new.with_suffix(".cpp"))
            _copy_whole(library, new)  # last what torch looks for


def _is_check(program: Path) -> bool:
    return program.stat().st_size <= _LARGEST_SOURCE and _OF_CHECKS in program.read_bytes()


def _copy_whole(source: Path, target: Path) -> None:
    descriptor, name = tempfile.mkstemp(dir=target.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        shutil.copyfile(source, temporary)
        temporary.chmod(source.stat().st_mode & 0o700)
        temporary.replace(target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
