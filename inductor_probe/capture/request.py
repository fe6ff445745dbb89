"""What is to be dumped, and how: `probe dump` tells its supervisor."""

from __future__ import annotations

import json
from dataclasses import dataclass

from inductor_probe.capture.process import Program
from inductor_probe.model.codec import from_json, to_json


@dataclass(frozen=True, slots=True)
class Request:
    """A script to run under the recorder. `root` is where torch makes its folder; for the rest see `dump`."""

    script: str
    arguments: tuple[str, ...]
    cases: tuple[str, ...]
    knobs: tuple[tuple[str, str], ...]
    label: str | None
    save_inputs: bool
    root: str
    stdout_to_stderr: bool
    program: Program

    def to_line(self) -> bytes:
        """Return the request as a line of JSON. Bytes of a path that are not text become surrogates."""
        return json.dumps(to_json(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Request:
        """Return the request that `to_line` made."""
        return from_json(cls, json.loads(line))
