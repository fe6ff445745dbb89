from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.errors import NotFoundError, UnreadableError
from inductor_probe.model.manifest import (
    BufferOrigin,
    GraphBreak,
    GraphRecord,
    InputFact,
    LimitHit,
    Note,
)
from inductor_probe.store.manifest import manifest_to_json, parse_manifest, read_manifest
from tests.builders import manifest

TENSOR = InputFact("arg0_1", "tensor", None, (2, 3), (3, 1), 4, "int64", "cuda:0", -1, 9, "arg0_1.bin")
SYMINT = InputFact("s0", "symint", 5)
MANIFEST = manifest(
    cases=("a",),
    knobs=(("device", "cpu"),),
    versions=(("torch", "2.13.0"), ("python", "3.11.7")),
    machine=(("cores", "2"),),
    outcome="interrupted",
    exit_status=-2,
    compiled_frames=None,
    graphs=(
        GraphRecord(
            "model__0_inference_0.0",
            "0/1",
            "recompile",
            ("0/0: n == 1",),
            "a",
            (TENSOR, SYMINT),
            (BufferOrigin("buf0", None, ("add", "mul")),),
        ),
    ),
    graph_breaks=(GraphBreak("why", "f.py:3", None),),
    limit_hits=(LimitHit("f", None, None),),
    notes=(Note("log-missing", (("torch", "2.13.0"), ("artifact", "loop_tiling"))),),
)
PATH = Path("run/probe.json")


def as_read() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(manifest_to_json(MANIFEST)))
    return data


def test_what_was_written_is_what_is_read() -> None:
    assert parse_manifest(json.dumps(as_read()), PATH) == MANIFEST


def test_pairs_are_objects_and_the_format_is_numbered() -> None:
    data = as_read()
    assert (data["format"], data["knobs"], data["versions"]["torch"]) == (1, {"device": "cpu"}, "2.13.0")


def test_keys_of_a_later_version_are_ignored_and_defaults_may_be_missing() -> None:
    data = as_read()
    data["colour"] = data["graphs"][0]["colour"] = "blue"
    del data["notes"], data["graphs"][0]["guards"]
    read = parse_manifest(json.dumps(data), PATH)
    assert (read.notes, read.graphs[0].guards, read.graphs[0].inputs) == ((), (), (TENSOR, SYMINT))


def test_whole_seconds_are_a_duration() -> None:
    assert parse_manifest(json.dumps({**as_read(), "duration_s": 3}), PATH).duration_s == 3.0


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"outcome": "fine"}, "outcome is 'fine', not one of 'ok', 'failed', 'interrupted'"),
        ({"exit_status": True}, "exit_status is True, not an integer"),
        ({"exit_status": "0"}, "exit_status is '0', not an integer"),
        ({"cases": "a"}, "cases is 'a', not a list"),
        ({"cases": [1]}, r"cases\[0\] is 1, not a string"),
        ({"duration_s": float("nan")}, "duration_s is nan, not a finite number"),
        ({"exit_status": 2**63}, "exit_status is not between"),
        ({"knobs": []}, "knobs is a list, not an object"),
        ({"graphs": [{"compile_id": None, "why": None}]}, r"graphs\[0\].name is missing"),
        ({"graphs": ["g"]}, r"graphs\[0\] is 'g', not an object"),
        (
            {"graph_breaks": [{"reason": None, "where": None}]},
            r"graph_breaks\[0\].reason is None, not a string",
        ),
    ],
)
def test_wrong_value_is_named(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UnreadableError, match=f"^run/probe.json is not a manifest: {complaint}"):
        parse_manifest(json.dumps({**as_read(), **change}), PATH)


def test_a_manifest_of_a_later_format_names_it() -> None:
    with pytest.raises(UnreadableError, match=r"written by a newer probe \(format 2\)") as error:
        parse_manifest(json.dumps({**as_read(), "format": 2}), PATH)
    assert error.value.hint == "update inductor_probe"


def test_list_instead_of_an_object_is_refused() -> None:
    with pytest.raises(UnreadableError, match="the value is a list, not an object"):
        parse_manifest(json.dumps([]), PATH)


def test_file_that_is_gone_or_damaged_is_said(tmp_path: Path) -> None:
    path = tmp_path / "probe.json"
    with pytest.raises(NotFoundError, match="does not exist"):
        read_manifest(path)
    path.write_text('{"format": 1, ')
    with pytest.raises(UnreadableError, match="cannot be read as JSON"):
        read_manifest(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableError, match="not text"):
        read_manifest(path)
