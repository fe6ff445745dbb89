"""What was autotuned: choices of a graph's operations, and configs of its Triton kernels.

Into the folder of a graph, `probe dump` writes a line an operation (`probe_choices.jsonl`):

    {"operation": "mm", "inputs": ["256x256 float32"], "cached": false, "choices": [
     {"name": "triton_mm_4", "ms": 0.0168, "kind": "triton", "config": "BLOCK_M=64, num_warps=4"}]}

and torch a line a choice (`autotuning_result_json_list.txt`, where `config.trace.log_autotuning_results` is
set; torch/_inductor/debug.py, DebugFormatter.log_autotuning_results).

A log at debug level (`TORCH_LOGS=+inductor`) has every config of a kernel with its time, registers and spills
(runtime/triton_heuristics.py, CachingAutotuner.benchmark_all_configs and autotune_to_one_config):

    Benchmark all input configs for triton_poi_fused_add_0, get:
    XBLOCK: 256, num_warps: 4, num_ctas: 1, num_stages: 1: 0.0173, nreg 16, nspill 0, #shared-mem 0
    Best config for triton_poi_fused_add_0: XBLOCK: 256, ...

A `.best_config` in inductor's cache has the best one, without times (runtime/autotune_cache.py,
AutotuneCache.save).
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inductor_probe.backends.brackets import split_arguments
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.files import LARGEST_JSON, object_of, read_text
from inductor_probe.model.autotuning import CHOICES_NAME, TemplateChoice, Tuning, TuningsRead
from inductor_probe.model.code import Kernel, Pairs
from inductor_probe.model.logs import Autotune
from inductor_probe.model.record import grouped
from inductor_probe.model.span import Problem, Span
from inductor_probe.reader.logs.lines import LogBounds, log_places, raw_lines, read_raw_line

TORCHS_NAME = "autotuning_result_json_list.txt"
_OF_OPERATION = ("op_name", "cuda_device_name", "cuda_device_count", "input_nodes", "autotuning_time",
                 "precompile_time", "prescreening_time")  # fmt: skip
_RESULT = "benchmark_result"


def read_tunings(folder: Path) -> TuningsRead:
    """Read what was autotuned in the graph of `folder`; empty where it was not recorded."""
    problems: list[Problem] = []
    for name, read in ((CHOICES_NAME, _by_probe), (TORCHS_NAME, _by_torch)):
        path = folder / name
        try:
            text = read_text(path, largest=LARGEST_JSON)
        except NotFoundError:
            continue
        except ProbeError as error:
            problems.append(Problem(str(error)))
            continue
        tunings = tuple(read(path, text, problems))
        lines = sum(bool(line.strip()) for line in text.split("\n"))
        return TuningsRead(tunings, tuple(problems), path, lines)
    return TuningsRead((), tuple(problems))


def _by_probe(path: Path, text: str, problems: list[Problem]) -> Iterator[Tuning]:
    for span, row in _objects(path, text, problems):
        try:
            yield Tuning(
                operation=str(row["operation"]),
                inputs=tuple(map(str, row["inputs"])),
                choices=_in_order(map(_choice, row["choices"])),
                source="probe",
                complete=True,
                cached=row.get("cached"),
                span=span,
            )
        except (KeyError, TypeError, AttributeError):
            problems.append(
                Problem("not a list of choices: it lacks a part, or one is of another form", span)
            )


def _choice(row: dict[str, Any]) -> TemplateChoice:
    kind = str(row.get("kind") or "").lower() or None
    return TemplateChoice(str(row["name"]), _ms(row["ms"]), kind, config_of(str(row.get("config", ""))))


def _by_torch(path: Path, text: str, problems: list[Problem]) -> Iterator[Tuning]:
    """Lines of one operation follow each other, and say the same of it."""

    def same(place: tuple[Span, dict[str, Any]]) -> str:
        return json.dumps([place[1].get(name) for name in _OF_OPERATION], sort_keys=True)

    for rows in grouped(_objects(path, text, problems), same).values():
        (first, row), (last, _) = rows[0], rows[-1]
        nodes = row.get("input_nodes")
        yield Tuning(
            operation=str(row.get("op_name")),
            inputs=tuple(
                f"{'x'.join(part.strip() for part in str(node.get('size', '')).strip('[]()').split(','))} "
                f"{str(node.get('dtype', '')).removeprefix('torch.')}"
                for node in (nodes if isinstance(nodes, list) else ())
                if isinstance(node, dict)
            ),
            choices=_in_order(_torchs_choice(row) for _, row in rows),
            source="torch",
            complete=True,
            span=Span(path, first.first, last.last),
        )


def _torchs_choice(row: dict[str, Any]) -> TemplateChoice:
    config = {name: value for name, value in row.items() if name not in (*_OF_OPERATION, _RESULT)}
    kind = str(config.pop("backend", "") or "").lower() or None
    name = str(config.pop("kernel_call_name", "") or config.pop("kernel_name", "") or kind)
    pairs = tuple((key, str(value)) for key, value in config.items())
    return TemplateChoice(name, _ms(row.get(_RESULT)), kind, pairs)


def _objects(path: Path, text: str, problems: list[Problem]) -> Iterator[tuple[Span, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        span = Span(path, number, number)
        if (row := object_of(line)) is not None:
            yield span, row
        else:
            problems.append(Problem("not a line of JSON: cut off while it was written?", span))


def tuning_of_log(block: Autotune) -> Tuning:
    """Return what an AUTOTUNE block of a log says: torch prints the best ten choices."""
    operation, _, sizes = block.operation.partition("(")
    dtypes = [
        part.strip().removeprefix("torch.")
        for fact in block.facts
        if fact.startswith("dtypes:")
        for part in fact.partition(":")[2].split(",")
    ]
    shapes = [part.strip() for part in sizes.removesuffix(")").split(",")]
    if len(dtypes) == len(shapes):
        shapes = [f"{shape} {dtype}" for shape, dtype in zip(shapes, dtypes, strict=True)]
    counts = [words[-2] for fact in block.facts if (words := fact.split())[1:] and words[-1] == "choices"]
    return Tuning(
        operation=operation,
        inputs=tuple(shapes),
        choices=_in_order(
            TemplateChoice(choice.name, choice.ms, _kind(choice.name), config_of(choice.config))
            for choice in block.choices
        ),
        source="log",
        complete=counts == [str(len(block.choices))],
        cached=False,  # nothing is printed for times that come from the cache
        span=block.logged.span,
    )


def _kind(name: str) -> str:
    start = name.partition("_")[0]
    return start if start in ("triton", "cpp", "cutlass", "ck") else "extern"


def config_of(text: str) -> Pairs:
    """Read `ACC_TYPE='tl.float32', BLOCK_M=64, num_warps=4`; the quotes are left out."""
    parts = (part.partition("=") for part in split_arguments(text) if "=" in part)
    return tuple((name.strip(), value.strip().strip("'\"")) for name, _, value in parts)


def _in_order(choices: Iterable[TemplateChoice]) -> tuple[TemplateChoice, ...]:
    """Sort choices from fastest to slowest, those without a time last."""
    return tuple(sorted(choices, key=lambda choice: math.inf if choice.ms is None else choice.ms))


def _ms(value: Any) -> float | None:
    """Return a time; what is infinite, not a number, or too large for a float is none."""
    return float(value) if isinstance(value, int | float) and abs(value) <= sys.float_info.max else None


DESCENT = "coordinate descent"
_LOGGERS = (b"triton_heuristics", b"coordinate_descent_tuner")
# The second: runtime/coordinate_descent_tuner.py, CoordescTuner.autotune.
_START = re.compile(r"Benchmark all input configs for (\w+), get:|= Do coordinate descent tuning for (\w+) =")
# COORDESC and "has best config": CachingAutotuner._coordinate_descent_tuning.
_TIMED = re.compile(
    r"(?:(?P<descent>COORDESC: )|Best config for \w+: )?(?P<config>\w+: .*): (?P<ms>[\d.e+-]+|inf|nan), "
    r"nreg (?P<registers>\d+), nspill (?P<spills>\d+), #shared-mem"
)
_BEST = re.compile(
    r"(?:Best config for \w+: (?P<tried>\w+: .*): \S+, nreg|Function hash \w+ has best config (?P<found>.+))"
)
_DEFAULTS = {"num_ctas": "1", "maxnreg": "None"}
_NOT_VALUES = ("configs_hash", "found_by_coordesc", "time_taken_ms", "triton_cache_hash", "extra_options",
               "num_consumer_groups", "num_buffers_warp_spec")  # fmt: skip
_CACHED_CODE = re.compile(r"(?P<cache>/.+)/(?P<folder>[a-z0-9]{2})/c(?P=folder)[a-z0-9]{20,}\.py")


def logged_configs(run: Path, problems: list[Problem]) -> tuple[Tuning, ...]:
    """Read which configs were timed for Triton kernels, off the logs of a run; in the order of the log."""
    bounds = LogBounds()
    tunings: list[Tuning] = []
    for place in log_places(run, problems):
        tunings = [tuning for path in place.files for tuning in _of_log(path, bounds, problems)]
        if tunings:
            break
    problems.extend(map(Problem, bounds.stopped))
    return tuple(tunings)


@dataclass(slots=True)
class _Timing:
    """A kernel that is being tuned."""

    name: str
    line: int
    last: int
    rows: dict[str, TemplateChoice] = field(default_factory=dict)
    best: str | None = None

    def take(self, text: str) -> None:
        """Take a line that may be about a config: of those two say the same, the first one counts."""
        if match := _TIMED.match(text):
            ms = float(match["ms"])
            choice = TemplateChoice(
                f"config_{len(self.rows) + 1}",
                ms if 0 < ms < float("inf") else None,
                DESCENT if match["descent"] else None,
                _pairs(match["config"]),
                int(match["registers"]),
                int(match["spills"]),
            )
            self.rows.setdefault(match["config"], choice)
        if match := _BEST.match(text):
            self.best = match["tried"] or match["found"]

    def tuning(self, path: Path) -> Tuning:
        best = self.rows.get(self.best or "")
        return Tuning(
            operation=self.name,
            inputs=(),
            choices=_in_order(self.rows.values()),
            source="log",
            complete=True,
            cached=False,  # with a cached config nothing is timed
            generated=best.name if best else None,
            span=Span(path, self.line, self.last),
        )


def _of_log(path: Path, bounds: LogBounds, problems: list[Problem]) -> list[Tuning]:
    timings: list[_Timing] = []
    try:
        for number, raw in raw_lines(path, bounds):
            if not any(logger in raw for logger in _LOGGERS):
                continue
            text = read_raw_line(number, raw).text
            if start := _START.match(text):
                name = start[1] or start[2]
                if not timings or timings[-1].name != name or start[1]:
                    timings.append(_Timing(name, number, number))
            elif timings:
                timings[-1].take(text)
                timings[-1].last = number
    except OSError as error:
        problems.append(Problem(f"cannot read {path}: {error.strerror or error}"))
    return [timing.tuning(path) for timing in timings if timing.rows]


def _pairs(text: str) -> Pairs:
    """Read `XBLOCK: 256, num_warps: 4, num_ctas: 1`; defaults are left out."""
    parts = (part.partition(":") for part in text.split(","))
    pairs = tuple((name.strip(), value.strip()) for name, _, value in parts)
    return tuple((name, value) for name, value in pairs if _DEFAULTS.get(name) != value)


def cached_configs(kernels: Iterable[Kernel], problems: list[Problem]) -> tuple[Tuning, ...]:
    """Read the best config of each Triton kernel whose cache is still where its comment says.

    A file does not name its kernel: `_is_of` says how it is known.
    """
    tunings = []
    for kernel in kernels:
        match = _CACHED_CODE.fullmatch((kernel.comment and kernel.comment.path) or "")
        if kernel.backend != "triton" or match is None:
            continue
        cache = Path(match["cache"])
        for path in sorted((cache / match["folder"]).glob("*.best_config")):
            values = _values(path, problems)
            if values and _is_of(kernel, cache, path, values):
                config = tuple(
                    (str(name), str(value)) for name, value in values.items() if name not in _NOT_VALUES
                )
                kind = DESCENT if values.get("found_by_coordesc") is True else None
                choice = TemplateChoice("config_1", None, kind, config)
                tunings.append(
                    Tuning(
                        kernel.name,
                        (),
                        (choice,),
                        "cache",
                        complete=False,
                        generated=choice.name,
                        span=Span(path, 1, 1),
                    )
                )
    return tuple(tunings)


def _is_of(kernel: Kernel, cache: Path, path: Path, values: dict[str, Any]) -> bool:
    """Return whether a config is of a kernel whose code lies in the folder of the config.

    It names the folder of Triton's cache with the compiled kernel, whose files are called as the kernel is.
    What coordinate descent found names none: then the folder must hold one config and the code of one kernel.
    """
    compiled = values.get("triton_cache_hash")
    if isinstance(compiled, str):
        return bool(re.fullmatch(r"\w+", compiled)) and any(
            cache.glob(f"triton/*/{compiled}/{kernel.name}.json")
        )
    return all(len(list(path.parent.glob(pattern))) == 1 for pattern in ("*.best_config", "c*.py"))


def _values(path: Path, problems: list[Problem]) -> dict[str, Any]:
    try:
        values = object_of(read_text(path, largest=LARGEST_JSON))
    except ProbeError as error:
        problems.append(Problem(str(error)))
        return {}
    if values is None:
        problems.append(Problem("not a best config: cut off while it was written?", Span(path, 1, 1)))
    return values or {}
