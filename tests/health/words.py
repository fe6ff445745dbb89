"""What a diagnostic says, for tests of what it was made from."""

from __future__ import annotations

from inductor_probe.model.health import Diagnostic
from inductor_probe.report.words.health import text_and_remedy


def text(diagnostic: Diagnostic) -> str:
    return text_and_remedy(diagnostic)[0]


def remedy(diagnostic: Diagnostic) -> str | None:
    return text_and_remedy(diagnostic)[1]
