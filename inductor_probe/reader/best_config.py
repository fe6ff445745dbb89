"""Inductor's autotune cache: `.best_config` files beside generated kernels."""

from __future__ import annotations

import json
from pathlib import Path

from inductor_probe.errors import ProbeError
from inductor_probe.model.span import Problem, Span
from inductor_probe.model.templates import BestConfig
from inductor_probe.reader.text import read_text

_NOT_VALUES = ("configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash", "extra_options")


def best_configs(cache: Path, problems: list[Problem]) -> tuple[BestConfig, ...]:
    """Read every best config below a cache directory (`TORCHINDUCTOR_CACHE_DIR`), by path.

    A file does not name its kernel. It names the folder of Triton's cache that holds the compiled one, whose
    files are called as the kernel is.
    """
    names = {
        path.parent.name: path.stem
        for path in sorted(cache.glob("triton/*/*/*.json"))
        if not path.name.startswith("__grp__")
    }
    found = []
    for path in sorted([*cache.glob("*.best_config"), *cache.glob("*/*.best_config")]):
        try:
            values = json.loads(read_text(path))
        except ProbeError as error:
            problems.append(Problem(str(error)))
            continue
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            problems.append(Problem("not a best config: cut off while it was written?", Span(path, 1, 1)))
            continue
        folder, took = values.get("triton_cache_hash"), values.get("time_taken_ms")
        found.append(
            BestConfig(
                path,
                tuple((str(name), str(value)) for name, value in values.items() if name not in _NOT_VALUES),
                by_descent=values.get("found_by_coordesc") is True,
                took_ms=took if isinstance(took, int) else None,
                kernel=names.get(str(folder)) if folder else None,
                triton_hash=str(folder) if folder else None,
            )
        )
    return tuple(found)
