"""Links in a dump: what they lead to outside of it belongs to something else, and is not read."""

from __future__ import annotations

import os
from pathlib import Path

from inductor_probe.model.span import Problem


def leads_to(path: Path, top: Path) -> Path | None:
    """Return where `path` leads, if it is a link that leads out of the folder `top`; else None."""
    if not os.path.islink(path):  # noqa: PTH114 - no name is too long for it
        return None
    real = Path(os.path.realpath(path))
    return None if real.is_relative_to(os.path.realpath(top)) else real


def not_followed(link: Path, real: Path) -> Problem:
    """Return the problem of a link that leads out of a dump."""
    return Problem(
        f"{link}: a link to {real}, which is not part of this dump and not read; name it by itself"
    )
