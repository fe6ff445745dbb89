"""What was autotuned in a graph: from what `probe dump` or torch itself wrote into its folder.

`probe_choices.jsonl` has a line an operation:

    {"operation": "mm", "inputs": ["256x256 float32"], "cached": false, "choices": [
     {"name": "triton_mm_4", "ms": 0.0168, "kind": "triton", "config": "BLOCK_M=64, num_warps=4"}]}

`autotuning_result_json_list.txt` (`torch._inductor.config.trace.log_autotuning_results`) has a line a choice.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from inductor_probe.backends.brackets import split_arguments
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.files import LARGEST_JSON, read_text
from inductor_probe.model.autotuning import CHOICES_NAME, TemplateChoice, Tuning, TuningsRead
from inductor_probe.model.code import Pairs
from inductor_probe.model.logs import Autotune
from inductor_probe.model.span import Problem, Span

TORCHS_NAME = "autotuning_result_json_list.txt"
_OF_ALL = ("op_name", "cuda_device_name", "cuda_device_count", "input_nodes", "autotuning_time",
           "precompile_time", "prescreening_time", "benchmark_result")  # fmt: skip


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
        return TuningsRead(tuple(read(path, text, problems)), tuple(problems))
    return TuningsRead((), tuple(problems))


def _by_probe(path: Path, text: str, problems: list[Problem]) -> Iterator[Tuning]:
    for span, found in _objects(path, text, problems):
        try:
            yield Tuning(
                operation=str(found["operation"]),
                inputs=tuple(map(str, found["inputs"])),
                choices=in_order(_choice(each) for each in found["choices"]),
                source="probe",
                complete=True,
                cached=found.get("cached"),
                span=span,
            )
        except (KeyError, TypeError, AttributeError):
            problems.append(
                Problem("not a list of choices: it lacks a part, or one is of another form", span)
            )


def _choice(found: dict[str, Any]) -> TemplateChoice:
    kind = found.get("kind")
    config = config_of(str(found.get("config", "")))
    return TemplateChoice(str(found["name"]), _ms(found["ms"]), str(kind).lower() if kind else None, config)


def _by_torch(path: Path, text: str, problems: list[Problem]) -> Iterator[Tuning]:
    """Lines of one operation follow each other, and say the same of it."""
    groups: dict[str, list[tuple[Span, dict[str, Any]]]] = {}
    for span, found in _objects(path, text, problems):
        same = json.dumps([found.get(name) for name in _OF_ALL[:-1]], sort_keys=True)
        groups.setdefault(same, []).append((span, found))
    for lines in groups.values():
        first = lines[0][1]
        nodes = first.get("input_nodes")
        yield Tuning(
            operation=str(first.get("op_name")),
            inputs=tuple(
                f"{'x'.join(part.strip() for part in str(node.get('size', '')).strip('[]()').split(','))} "
                f"{str(node.get('dtype', '')).removeprefix('torch.')}"
                for node in (nodes if isinstance(nodes, list) else ())
                if isinstance(node, dict)
            ),
            choices=in_order(_torchs_choice(found) for _, found in lines),
            source="torch",
            complete=True,
            span=Span(path, lines[0][0].first, lines[-1][0].last),
        )


def _torchs_choice(found: dict[str, Any]) -> TemplateChoice:
    own = {name: value for name, value in found.items() if name not in _OF_ALL}
    kind = str(own.pop("backend", "") or "").lower() or None
    name = str(own.pop("kernel_call_name", "") or own.pop("kernel_name", "") or kind)
    return TemplateChoice(
        name, _ms(found.get("benchmark_result")), kind, tuple((key, str(value)) for key, value in own.items())
    )


def _objects(path: Path, text: str, problems: list[Problem]) -> Iterator[tuple[Span, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        span = Span(path, number, number)
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            yield span, found
        else:
            problems.append(Problem("not a line of JSON: cut off while it was written?", span))


def tuning_of_log(block: Autotune) -> Tuning:
    """Return what an AUTOTUNE block of a log tells: torch prints the best ten choices."""
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
    counted = [words[-2] for fact in block.facts if (words := fact.split())[1:] and words[-1] == "choices"]
    return Tuning(
        operation=operation,
        inputs=tuple(shapes),
        choices=in_order(
            TemplateChoice(each.name, each.ms, _kind(each.name), config_of(each.config))
            for each in block.choices
        ),
        source="log",
        complete=counted == [str(len(block.choices))],
        cached=False,  # nothing is printed for times that come from the cache
        span=block.at.span,
    )


def _kind(name: str) -> str:
    start = name.partition("_")[0]
    return start if start in ("triton", "cpp", "cutlass", "ck") else "extern"


def config_of(text: str) -> Pairs:
    """Read `ACC_TYPE='tl.float32', BLOCK_M=64, num_warps=4`; the quotes are left out."""
    parts = (part.partition("=") for part in split_arguments(text) if "=" in part)
    return tuple((name.strip(), value.strip().strip("'\"")) for name, _, value in parts)


def in_order(choices: Iterable[TemplateChoice]) -> tuple[TemplateChoice, ...]:
    """Sort choices from fastest to slowest, those without a time last."""
    return tuple(sorted(choices, key=lambda choice: math.inf if choice.ms is None else choice.ms))


def _ms(value: Any) -> float | None:
    """Return a time; what is infinite, not a number, or too large for a float is none."""
    return float(value) if isinstance(value, int | float) and abs(value) <= sys.float_info.max else None
