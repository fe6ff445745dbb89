"""A C++ kernel as a program of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from inductor_probe.model.output import Output


@dataclass(frozen=True, kw_only=True)
class ExportCppOutput(Output):
    """A C++ kernel as a program.

    Attributes:
        path: the file that it is in. command: what compiles it. text: the program.
    """

    verb: Literal["export-cpp"] = "export-cpp"
    kernel: str
    path: Path
    command: tuple[str, ...]
    text: str
