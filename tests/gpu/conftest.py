"""A failing test shows its reason, and not what torch logs for `tlparse`."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _no_trace_log() -> Iterator[None]:
    """Keep torch's structured trace (torch/_logging/_internal.py, `torch.__trace`) from pytest's capture."""
    log = logging.getLogger("torch.__trace")
    before, log.propagate = log.propagate, False
    yield
    log.propagate = before
