"""Profiles: what `probe profile --json` printed into a file, and what a run has of it in `PROFILE_NAME`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from inductor_probe.errors import ProbeError, UnreadableError
from inductor_probe.files import LARGEST_JSON, json_of, read_text, write_whole
from inductor_probe.model.codec import ShapeError, from_json, to_json
from inductor_probe.model.own_call import NoOwnCall, OwnCall
from inductor_probe.model.profile import PROFILE_NAME, Profile, ProfileOutput


def read_profiles(path: Path) -> ProfileOutput:
    """Read a file that `probe profile --json` wrote.

    Raises:
        NotFoundError: no such file. UnreadableError: not written by that command, or by another version.
    """
    text = read_text(path, largest=LARGEST_JSON)
    hint = "write one with probe profile GRAPH --json > FILE"
    try:
        data = json_of(text)
    except ValueError as error:
        raise UnreadableError(f"{path} cannot be read as JSON: {error}", hint) from error
    if not isinstance(data, dict) or data.get("verb") != "profile":
        raise UnreadableError(f"{path} was not written by probe profile --json", hint)
    try:
        return from_json(ProfileOutput, data)
    except ShapeError as error:
        raise UnreadableError(f"{path} was written by another version of probe: {error}", hint) from error


def add_to_run(
    run: Path, profiles: Sequence[Profile], own: Sequence[OwnCall], no_own: NoOwnCall | None
) -> None:
    """Write what was profiled of a run into its folder, in the place of what was known of the same graphs."""
    known = profiles_of_run(run) or ProfileOutput(profiles=())
    graphs = {profile.graph for profile in profiles}
    ids = {name for call in own for name in call.graphs}
    output = ProfileOutput(
        profiles=(
            *(one for one in known.profiles if one.graph not in graphs),
            *(replace(profile, timeline=()) for profile in profiles),
        ),
        own=(*(call for call in known.own if ids.isdisjoint(call.graphs)), *own),
        no_own=no_own,
    )
    write_whole(run / PROFILE_NAME, json.dumps(to_json(output)) + "\n")


def profiles_of_run(run: Path) -> ProfileOutput | None:
    """Return what was profiled of a run; None where nothing was, or it cannot be read: it is made again."""
    path = run / PROFILE_NAME
    try:
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, ProbeError):
        return None


@lru_cache(maxsize=8)  # each graph of a run asks for it
def _read(path: Path, changed: int) -> ProfileOutput:
    return read_profiles(path)


def profile_of_graph(run: Path, graph: Path, name: str) -> Profile | None:
    """Return the profile of a graph; None where it was not profiled, or its code was changed since."""
    code = graph / "output_code.py"
    try:
        if (run / PROFILE_NAME).stat().st_mtime < (code.stat().st_mtime if code.exists() else 0.0):
            return None
    except OSError:  # it was not profiled
        return None
    output = profiles_of_run(run)
    return next((one for one in output.profiles if one.graph == name), None) if output else None
