"""Profiles that `probe profile --json` printed into a file."""

from __future__ import annotations

from pathlib import Path

from inductor_probe.errors import UnreadableError
from inductor_probe.files import LARGEST_JSON, json_of, read_text
from inductor_probe.model.codec import ShapeError, from_json
from inductor_probe.model.profile import ProfileOutput


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
