"""What all workers of a session share: a folder, what is made once in it, and what g++ made of a text.

Nothing outlives the session: the next one compiles with the real compiler again, and dumps with torch.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

_COMPILER = r"""#!/bin/bash
# g++ for tests: what it made of a source with these arguments is copied when they come again.
# Inductor compiles the same trials in each process, and tests dump the same kernels in many.
real={real} kept={kept}
source= out= before= preprocesses= words=()
if [ -n "$TESTS_COMPILE_NOTHING" ]; then
    case " $* " in
    *.cpp\ *) echo "this test compiles: give it the mark, pytest.mark.compiles" >&2; exit 1 ;;
    esac
fi
for word in "$@"; do
    case "$before:$word" in
        -o:*) out=$word; word=OUT ;;
        *:*.cpp | *:*.hpp) [ -z "$source" ] || exec "$real" "$@"; source=$word; word=SOURCE ;;
        *:-E) preprocesses=1 ;;
        *:-S | *:-M* | *:-x | *:@* | *:-save-temps*) exec "$real" "$@" ;;
    esac
    words+=("$word")
    before=$word
done
case "$preprocesses: $* " in 1:*" -P "* | :*) ;; *) exec "$real" "$@" ;; esac  # -P: without the path
case "$source:$out" in /*:/*) ;; *) exec "$real" "$@" ;; esac
[ -f "$source" ] || exec "$real" "$@"
key=$({{ printf '%s\0' "${{words[@]}}" "$CPATH" "$CPLUS_INCLUDE_PATH" "$LIBRARY_PATH"; cat -- "$source"; }} |
    sha256sum)
key=$kept/${{key%% *}}
if [ -e "$key" ]; then
    cat -- "$key.said" >&2
    exec cp -- "$key" "$out"
fi
"$real" "$@" 2>"$key.$$.said"
status=$?
cat -- "$key.$$.said" >&2
if [ $status = 0 ]; then
    cp -- "$out" "$key.$$"
    mv -- "$key.$$.said" "$key.said" && mv -- "$key.$$" "$key"
else
    rm -f "$key.$$.said"
fi
exit $status
"""


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder of this session that all workers of pytest-xdist see."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder `name` of the session; the first who asks makes what is in it, others wait for that.

    Args:
        make: is called with the folder, which is empty. When it raises, the next who asks makes it.
    """
    folder = shared_folder(factory) / name
    done = folder.with_name(f"{name}.done")
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def compiler_folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the front of PATH, with a `g++` that compiles a text once in a session."""

    def make(folder: Path) -> None:
        kept = folder / "kept"
        kept.mkdir()
        if real := shutil.which("g++"):
            compiler = folder / "g++"
            compiler.write_text(_COMPILER.format(real=real, kept=kept))
            compiler.chmod(0o755)

    return made_once(factory, "compiler", make)
