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

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inductor_probe.errors import UnreadableError
from inductor_probe.model.ir import LARGEST_DIM
from inductor_probe.model.manifest import Manifest
from inductor_probe.reader.text import LARGEST_JSON, read_text

FORMAT = 1
_PAIRS = tuple[tuple[str, str], ...]


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """Return `manifest` as the object that `probe.json` holds."""
    data = {"format": FORMAT, **dataclasses.asdict(manifest)}
    for name in ("knobs", "versions", "machine", "environment"):
        data[name] = None if data[name] is None else dict(data[name])
    return data


def manifest_from_json(data: Any, path: Path) -> Manifest:
    """Return the manifest that `data`, read from `path`, stands for.

    Keys that are not known are ignored: a later version wrote them.

    Raises:
        UnreadableError: a key is missing that has no default, or a value is not of its type.
    """
    try:
        return typing.cast(Manifest, _record(Manifest, data, ""))
    except _ShapeError as error:
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


class _ShapeError(Exception):
    """A value is not what its field says; the message names the key."""


def _record(kind: type, data: Any, where: str) -> Any:
    """Return `data` as a record of the dataclass `kind`, whose annotations say what every key must hold."""
    if not isinstance(data, Mapping):
        raise _ShapeError(f"{where or 'it'} is not an object")
    hints = typing.get_type_hints(kind)
    values = {}
    for field in dataclasses.fields(kind):
        key = f"{where}.{field.name}".lstrip(".")
        if field.name in data:
            values[field.name] = _value(hints[field.name], data[field.name], key)
        elif field.default is dataclasses.MISSING:
            raise _ShapeError(f"{key} is missing")
    return kind(**values)


def _value(kind: Any, data: Any, where: str) -> Any:
    """Return `data` as a value of the annotation `kind`."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if data is None and type(None) in arguments:
            return None
        return _value(next(part for part in arguments if part is not type(None)), data, where)
    if origin is typing.Literal:
        if data not in arguments:
            raise _ShapeError(f"{where} is {data!r}, not one of {', '.join(map(str, arguments))}")
        return data
    if kind == _PAIRS:
        if not isinstance(data, Mapping):
            raise _ShapeError(f"{where} is not an object")
        return tuple((str(key), _value(str, value, f"{where}.{key}")) for key, value in data.items())
    if origin is tuple:
        if not isinstance(data, list):
            raise _ShapeError(f"{where} is not a list")
        return tuple(_value(arguments[0], item, f"{where}[{number}]") for number, item in enumerate(data))
    if dataclasses.is_dataclass(kind):
        return _record(typing.cast(type, kind), data, where)
    if type(data) is int and abs(data) > LARGEST_DIM:
        raise _ShapeError(f"{where} has more digits than an int64")
    if kind is float and type(data) is int:
        return float(data)
    if type(data) is not kind:  # bool is an int to isinstance
        raise _ShapeError(f"{where} is {type(data).__name__}, not {kind.__name__}")
    return data
