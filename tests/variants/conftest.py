"""Bench files of real dumps, as text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from inductor_probe.bench_file.source import bench_source
from inductor_probe.variants.code import read_code
from tests.conftest import DUMPS


def graph(name: str, part: str = "") -> Path:
    """Return the folder of the first graph of a dump whose name holds `part`."""
    found = sorted((DUMPS / name).glob(f"run_*/torchinductor/*{part}*/output_code.py"))
    return found[0].parent


@pytest.fixture(scope="session")
def bench_text() -> Callable[..., str]:
    """Return the bench file of a dump."""

    def text(name: str, part: str = "") -> str:
        folder = graph(name, part)
        runnable = folder / "fx_graph_runnable.py"
        return bench_source(
            (folder / "output_code.py").read_text(),
            runnable.read_text() if runnable.exists() else None,
            folder.name,
        )

    return text


@pytest.fixture(scope="session")
def kernel_text() -> Callable[[str, str], str]:
    """Return the source of the only kernel whose name starts so, in a bench file."""

    def text(source: str, name: str, number: int = 0) -> str:
        code = read_code(source, number=number)
        return code.kernel(name).source

    return text
