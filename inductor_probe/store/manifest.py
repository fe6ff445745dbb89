"""`probe.json` to `Manifest` and back: one JSON object with the fields of `Manifest`, written by the codec.

    {"format": 1, "command": [...], "script": "...", "cases": [...], "knobs": {"device": "cpu"},
     "versions": {"torch": "2.13.0", ...}, "started": "2026-01-31T12:00:00+00:00", "outcome": "ok",
     "graphs": [{"name": "model__0_inference_0.0", "compile_id": "0/0", "why": "first",
                 "inputs": [{"name": "arg0_1", "kind": "tensor", "size": [2, 3], ...}], ...}],
     "graph_breaks": [{"reason": "...", "where": "f.py:3", "compile_id": "0/0"}], ...}

Keys are only ever added.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from inductor_probe.errors import UnreadableError
from inductor_probe.files import LARGEST_JSON, json_of, read_text
from inductor_probe.model.codec import Json, ShapeError, from_json, to_json
from inductor_probe.model.manifest import Manifest

FORMAT = 1


def manifest_to_json(manifest: Manifest) -> dict[str, Json]:
    """Return `manifest` as the object that `probe.json` holds."""
    return {"format": FORMAT, **cast("dict[str, Json]", to_json(manifest))}


def read_manifest(path: Path) -> Manifest:
    """Read `probe.json`.

    Raises:
        NotFoundError: it is not there.
        UnreadableError: it cannot be read, or is not a manifest.
    """
    return parse_manifest(read_text(path, largest=LARGEST_JSON), path)


def parse_manifest(text: str, path: Path) -> Manifest:
    """Read the text of `probe.json`; `path` is what an error names.

    Raises:
        UnreadableError: a later probe wrote it in another format, or it is not a manifest.
    """
    try:
        data: Any = json_of(text)
        version = data.get("format") if isinstance(data, dict) else None
        if isinstance(version, int) and version > FORMAT:
            raise UnreadableError(
                f"{path} was written by a newer probe (format {version})", "update inductor_probe"
            )
        return from_json(Manifest, data)
    except ShapeError as error:
        raise UnreadableError(f"{path} is not a manifest: {error}", "dump the script again") from None
    except ValueError as error:
        raise UnreadableError(f"{path} cannot be read as JSON: {error}", "dump the script again") from error
