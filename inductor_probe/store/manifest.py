"""`probe.json` to `Manifest` and back.

The file is one JSON object with the attributes of `Manifest` under their own names, records in it likewise:

    {"format": 1, "command": [...], "script": "...", "scenario": "...", "cases": [...],
     "knobs": {"device": "cpu"}, "label": null, "versions": {"torch": "2.13.0", ...},
     "machine": {"cpu": "...", ...}, "started": "2026-01-31T12:00:00+00:00", "duration_s": 11.5,
     "outcome": "ok", "exit_status": 0, "compiled_frames": 3, "ended_by": null,
     "graphs": [{"name": "model__0_inference_0.0", "compile_id": "0/0", "why": "first", "guards": [],
                 "case": null,
                 "inputs": [{"name": "arg0_1", "kind": "tensor", "value": null, "size": [2, 3],
                             "stride": [3, 1], "offset": 0, "dtype": "uint8", "device": "cpu",
                             "minimum": 0, "maximum": 9, "saved": null}],
                 "origins": [{"buffer": "buf0", "origin_node": "rev", "origins": ["rev"]}],
                 "finished": true}],
     "graph_breaks": [{"reason": "...", "where": "f.py:3", "compile_id": "0/0"}],
     "limit_hits": [{"function": "f", "where": "f.py:1", "reason": "..."}], "notes": [],
     "environment": {"OMP_NUM_THREADS": "4", ...}}

`knobs`, `versions`, `machine` and `environment` are objects; everything plural besides is a list.
Keys are only ever added.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from inductor_probe.errors import UnreadableError
from inductor_probe.files import LARGEST_JSON, read_text
from inductor_probe.model.codec import Json, ShapeError, from_json, to_json
from inductor_probe.model.manifest import Manifest

FORMAT = 1


def manifest_to_json(manifest: Manifest) -> dict[str, Json]:
    """Return `manifest` as the object that `probe.json` holds."""
    return {"format": FORMAT, **cast("dict[str, Json]", to_json(manifest))}


def manifest_from_json(data: Any, path: Path) -> Manifest:
    """Return the manifest that `data`, read from `path`, stands for.

    Keys that are not known are ignored: a later version wrote them.

    Raises:
        UnreadableError: a key is missing that has no default, or a value is not of its type.
    """
    try:
        return from_json(Manifest, data)
    except ShapeError as error:
        raise UnreadableError(f"{path} is not a manifest: {error}", "dump the script again") from None


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
        UnreadableError: it is not a manifest.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{path} is not JSON: {error}", "dump the script again") from error
    return manifest_from_json(data, path)
