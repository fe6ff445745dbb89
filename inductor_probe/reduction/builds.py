"""Builds of torch: interpreters that have one, and environments that are made of releases."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

import inductor_probe
from inductor_probe.discovery.archive import archives_folder
from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.options.verb import Progress

_ASK = "import torch, inductor_probe.reduction.child; print(torch.__version__)"
_RELEASE = re.compile(r"\d+(\.\d+)+(\w+|\.dev\d+)?")
_CONSTRAINT = "(constraint)"
"""In what pip prints where its own configuration holds a package at another release."""


class Build(Struct, frozen=True):
    """A build of torch.

    Attributes:
        name: `torch 2.13.0`. python: the interpreter that has it.
    """

    name: str
    python: Path


def build_of(python: Path) -> Build:
    """Return which torch an interpreter has.

    Raises:
        RunFailedError: it has none, or has not this package.
    """
    try:
        done = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, check=False)
    except OSError as error:
        raise RunFailedError(f"{python} cannot be started: {error.strerror}", "give its path") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it ended"])[-1]
        raise RunFailedError(
            f"{python} cannot run the script: {last}",
            f"it needs torch and this package: {python} -m pip install torch {_this_package()}",
        )
    return Build(f"torch {done.stdout.split()[-1]}", python)


def environment_of(release: str, progress: Progress) -> Path:
    """Return the interpreter of an environment with a release of torch, `2.11` or `2.11.0`; made once.

    It stays in the folder of caches.

    Raises:
        ProbeError: it is not the number of a release.
        RunFailedError: there is no such release, or pip may not install it here.
    """
    if not _RELEASE.fullmatch(release):  # it is the name of a folder that is removed
        raise ProbeError(f"invalid release of torch: {release}", "name one as 2.11 or 2.11.0")
    folder = archives_folder().with_name("torch") / release
    python, done = folder / "bin/python", folder / "made"
    if done.exists():
        return python
    version = release if release.count(".") > 1 else f"{release}.*"
    command = [str(python), "-m", "pip", "install", f"torch=={version}", _this_package()]
    progress.say(f"making {folder}, several GB: {shlex.join(command)}")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        shutil.rmtree(folder)
        lines = [line.strip() for line in (installed.stdout + installed.stderr).splitlines()]
        held = next((line for line in lines if _CONSTRAINT in line), "")
        why = held or next((line for line in lines if line.startswith("ERROR")), "it failed")
        hint = (
            "pip's own configuration holds it there (pip config list); PIP_CONSTRAINT=/dev/null lifts that "
            "for one command"
        )
        raise RunFailedError(
            f"pip installs no torch {release} here: {why}",
            hint if held else "name interpreters that have it: --python PATH",
        )
    done.touch()
    return python


def _this_package() -> str:
    """Return how pip is asked for this package: the checkout that runs, or its release."""
    root = Path(inductor_probe.__file__).parents[1]
    is_checkout = (root / "pyproject.toml").exists()
    return str(root) if is_checkout else f"inductor_probe=={inductor_probe.__version__}"


def builds_of(pythons: tuple[Path, ...], releases: tuple[str, ...], progress: Progress) -> list[Build]:
    """Return the builds that are named, in order; of releases environments are made.

    Raises:
        ProbeError: it is one alone.
    """
    named = [*pythons, *(environment_of(release, progress) for release in releases)]
    if len(named) < 2:
        raise ProbeError("one build is named", "name two or more, in order: --python A --python B")
    builds = [build_of(Path(os.path.abspath(python))) for python in named]  # noqa: PTH100 - links stay
    names = [build.name for build in builds]
    return [
        Build(f"{build.name} ({build.python})", build.python) if names.count(build.name) > 1 else build
        for build in builds
    ]
