"""Bench files of real dumps, as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inductor_probe.bench_file.source import bench_source
from inductor_probe.variants.code import read_code
from tests.dumps import graph_in


@pytest.fixture(scope="session")
def bench_text() -> Callable[..., str]:
    """Return the bench file of a dump."""

    def text(name: str, part: str = "") -> str:
        folder = graph_in(name, part)
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
