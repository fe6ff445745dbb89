"""What inductor tuned Triton kernels to: what its log says of it, and the `.best_config` files of its cache.

A log at debug level (`TORCH_LOGS=+inductor`) has every config with its time, registers and spills:

    Benchmark all input configs for triton_poi_fused_add_0, get:
    XBLOCK: 256, num_warps: 4, num_ctas: 1, num_stages: 1: 0.0173, nreg 16, nspill 0, #shared-mem 0
    Best config for triton_poi_fused_add_0: XBLOCK: 256, ...

A `.best_config` has the one that was best, and no time of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductor_probe.errors import ProbeError
from inductor_probe.files import LARGEST_JSON, read_text
from inductor_probe.model.autotuning import TemplateChoice, Tuning
from inductor_probe.model.code import Kernel, Pairs
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.logs.lines import LogBounds, log_places, raw_lines, read_raw_line
from inductor_probe.reader.template_choices import in_order

DESCENT = "coordinate descent"
_SPEAKERS = (b"triton_heuristics", b"coordinate_descent_tuner")
_START = re.compile(r"Benchmark all input configs for (\w+), get:|= Do coordinate descent tuning for (\w+) =")
_TIMED = re.compile(
    r"(?:(?P<descent>COORDESC: )|Best config for \w+: )?(?P<config>\w+: .*): (?P<ms>[\d.e+-]+|inf|nan), "
    r"nreg (?P<registers>\d+), nspill (?P<spills>\d+), #shared-mem"
)
_BEST = re.compile(
    r"(?:Best config for \w+: (?P<tried>\w+: .*): \S+, nreg|Function hash \w+ has best config (?P<found>.+))"
)
_USUAL = {"num_ctas": "1", "maxnreg": "None"}
_NOT_VALUES = ("configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash", "extra_options",
               "num_consumer_groups", "num_buffers_warp_spec")  # fmt: skip
_PLACE = re.compile(r"(?P<cache>/.+)/(?P<folder>[a-z0-9]{2})/c(?P=folder)[a-z0-9]{20,}\.py")


def logged_configs(run: Path, problems: list[Problem]) -> tuple[Tuning, ...]:
    """Read which configs were timed for Triton kernels, off the logs of a run; in the order of the log."""
    bounds = LogBounds()
    found: list[Tuning] = []
    for place in log_places(run, problems):
        found = [tuning for path in place.files for tuning in _of_log(path, bounds, problems)]
        if found:
            break
    problems.extend(map(Problem, bounds.stopped))
    return tuple(found)


@dataclass(slots=True)
class _Timing:
    """A kernel that is being tuned."""

    name: str
    line: int
    last: int
    rows: dict[str, TemplateChoice] = field(default_factory=dict)
    best: str | None = None

    def take(self, text: str) -> None:
        """Take a line that may tell of a config: of those two say the same, the first one counts."""
        if timed := _TIMED.match(text):
            ms = float(timed["ms"])
            choice = TemplateChoice(
                f"config_{len(self.rows) + 1}",
                ms if 0 < ms < float("inf") else None,
                DESCENT if timed["descent"] else None,
                _pairs(timed["config"]),
                int(timed["registers"]),
                int(timed["spills"]),
            )
            self.rows.setdefault(timed["config"], choice)
        if best := _BEST.match(text):
            self.best = best["tried"] or best["found"]

    def tuning(self, path: Path) -> Tuning:
        """Return what was found."""
        best = self.rows.get(self.best or "")
        return Tuning(
            operation=self.name,
            inputs=(),
            choices=in_order(self.rows.values()),
            source="log",
            complete=True,
            cached=False,  # with a cached config nothing is timed
            generated=best.name if best else None,
            span=Span(path, self.line, self.last),
        )


def _of_log(path: Path, bounds: LogBounds, problems: list[Problem]) -> Iterator[Tuning]:
    now: _Timing | None = None
    try:
        for number, raw in raw_lines(path, bounds):
            if not any(speaker in raw for speaker in _SPEAKERS):
                continue
            text = read_raw_line(number, raw).text
            if start := _START.match(text):
                name = start[1] or start[2]
                if now is None or now.name != name or start[1]:
                    if now is not None and now.rows:
                        yield now.tuning(path)
                    now = _Timing(name, number, number)
            elif now is not None:
                now.take(text)
                now.last = number
    except OSError as error:
        problems.append(Problem(f"cannot read {path}: {error.strerror or error}"))
    if now is not None and now.rows:
        yield now.tuning(path)


def _pairs(text: str) -> Pairs:
    """Read `XBLOCK: 256, num_warps: 4, num_ctas: 1`; what is as usual is left out."""
    parts = (part.partition(":") for part in text.split(","))
    found = tuple((name.strip(), value.strip()) for name, _, value in parts)
    return tuple((name, value) for name, value in found if _USUAL.get(name) != value)


def cached_configs(kernels: Iterable[Kernel], problems: list[Problem]) -> tuple[Tuning, ...]:
    """Read the best config of each Triton kernel whose cache is still where its comment says.

    A file does not name its kernel: `_is_of` says how it is known.
    """
    found = []
    for kernel in kernels:
        place = _PLACE.fullmatch((kernel.comment and kernel.comment.path) or "")
        if kernel.backend != "triton" or place is None:
            continue
        cache = Path(place["cache"])
        for path in sorted((cache / place["folder"]).glob("*.best_config")):
            values = _values(path, problems)
            if values and _is_of(kernel, cache, path, values):
                found.append(_best(kernel.name, path, values))
    return tuple(found)


def _is_of(kernel: Kernel, cache: Path, path: Path, values: dict[str, Any]) -> bool:
    """Tell whether a config is of a kernel whose code lies in the folder of the config.

    It names the folder of Triton's cache with the compiled kernel, whose files are called as the kernel is.
    What coordinate descent found names none: then the folder must hold one config and the code of one kernel.
    """
    compiled = values.get("triton_cache_hash")
    if isinstance(compiled, str):
        return bool(re.fullmatch(r"\w+", compiled)) and any(
            cache.glob(f"triton/*/{compiled}/{kernel.name}.json")
        )
    return all(len(list(path.parent.glob(pattern))) == 1 for pattern in ("*.best_config", "c*.py"))


def _best(kernel: str, path: Path, values: dict[str, Any]) -> Tuning:
    config = tuple((str(name), str(value)) for name, value in values.items() if name not in _NOT_VALUES)
    by_descent = DESCENT if values.get("found_by_coordesc") is True else None
    choice = TemplateChoice("config_1", None, by_descent, config)
    return Tuning(
        kernel, (), (choice,), "cache", complete=False, generated=choice.name, span=Span(path, 1, 1)
    )


def _values(path: Path, problems: list[Problem]) -> dict[str, Any]:
    try:
        values = json.loads(read_text(path, largest=LARGEST_JSON))
    except ProbeError as error:
        problems.append(Problem(str(error)))
        return {}
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        problems.append(Problem("not a best config: cut off while it was written?", Span(path, 1, 1)))
        return {}
    return values
