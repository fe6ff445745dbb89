"""A failing test shows its reason, not what torch logs for `tlparse`; what torch deprecates fails none."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let inductor import modules that torch deprecates: whichever test is first in a process is warned."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))


@pytest.fixture(autouse=True, scope="session")
def _no_trace_log() -> Iterator[None]:
    """Keep torch's structured trace (torch/_logging/_internal.py, `torch.__trace`) from pytest's capture."""
    log = logging.getLogger("torch.__trace")
    before, log.propagate = log.propagate, False
    yield
    log.propagate = before


@pytest.fixture(autouse=True)
def _memory_for_others() -> Iterator[None]:
    """Give back what torch keeps of the GPU's memory: processes beside this one test on the same GPU."""
    yield
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
