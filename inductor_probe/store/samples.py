"""`output_code_bench.json`: the samples of all processes, from which the report can be made again.

One JSON object:

    {"schema": 2, "probe": "0.5.0", "margin": 0.01,
     "roofline": null, or {"machine": the fields of `Roofline`, "works": [those of each `KernelWork`]},
     "processes": [what each run of the bench file wrote],
     "own": the fields of `OwnCall`, or null, "no_own": those of `NoOwnCall`, or null}

What a run writes has the keys of `Process`, besides `schema`, `sizes` and `configs`; it is stored as it came.
One thing differs from the records: `flops` is a list of pairs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe import __version__
from inductor_probe.errors import NotFoundError, UnreadableError
from inductor_probe.files import LARGEST_JSON, json_of, read_text, write_whole
from inductor_probe.model.codec import Between, from_json, to_json
from inductor_probe.model.own_call import NoOwnCall, OwnCall
from inductor_probe.model.timing import KernelWork, OverheadSamples, Process, Roofline, Samples, Series

SCHEMA = 2
"""Of what a bench file writes, and of the file that holds that of several processes."""


class _Machine(Struct, frozen=True):
    machine: Roofline
    works: tuple[KernelWork, ...]


class _File(Struct, frozen=True):
    schema: int
    probe: str | None = None
    margin: Annotated[float, Between(0, 1)] = 0
    roofline: _Machine | None = None
    processes: tuple[Mapping[str, Any], ...] = ()
    own: OwnCall | None = None
    no_own: NoOwnCall | None = None


def add_own_call(path: Path, own: OwnCall | None, no_own: NoOwnCall | None) -> None:
    """Write into a results file what the user's own call took, or why it was not timed."""
    data = json_of(read_text(path, largest=LARGEST_JSON))
    data |= {"own": to_json(own) if own else None, "no_own": to_json(no_own) if no_own else None}
    write_whole(path, json.dumps(data, allow_nan=False) + "\n")


def samples_text(
    processes: Sequence[dict[str, Any]],
    margin: float,
    roofline: Roofline | None = None,
    works: Sequence[KernelWork] = (),
) -> str:
    """Return the text of a results file. `processes`: what runs of the bench file wrote, as they did."""
    machine = _Machine(roofline, tuple(works)) if roofline else None
    file = _File(SCHEMA, __version__, margin, machine, tuple(processes))
    return json.dumps(to_json(file), allow_nan=False) + "\n"


def read_samples(path: Path) -> Samples:
    """Read a results file.

    Raises:
        NotFoundError, UnreadableError: there is none, or it is something else.
    """
    if not path.exists():
        hint = "probe bench-kernel writes it next to output_code.py"
        if others := sorted(path.parent.glob(f"{path.stem}.*.json")):
            hint += f"; what probe whatif measured there is judged by probe verdict {others[-1]}"
        raise NotFoundError(f"{path} does not exist", hint)
    text = read_text(path, largest=LARGEST_JSON)
    try:
        data = json_of(text)
        schema = data.get("schema") if isinstance(data, dict) else None
        if isinstance(schema, int) and schema > SCHEMA:
            raise UnreadableError(
                f"{path} was written by a newer probe (schema {schema})", "update inductor_probe"
            )
        file = from_json(_File, data)
        if not file.processes or not 0 < file.margin < 1:
            raise ValueError(f"margin is {file.margin:g}" if file.processes else "no process")
        processes = [process_of(each, f"processes[{number}]") for number, each in enumerate(file.processes)]
        # Overheads of a CPU and of a GPU are divided in other ways: one table cannot have both.
        if len({each.overheads.device == "cpu" for each in processes if each.overheads}) > 1:
            raise ValueError("its processes ran on different devices")
        machine = file.roofline
        return Samples(
            tuple(processes),
            file.margin,
            machine.machine if machine else None,
            machine.works if machine else (),
            file.own,
            file.no_own,
        )
    except ValueError as error:
        raise UnreadableError(
            f"{path} is not what probe bench-kernel writes: {error}",
            "run probe bench-kernel again; a bench file's own --json is of one process, and no verdict",
        ) from error


def process_of(data: Any, where: str = "") -> Process:
    """Return what one run of a bench file wrote, as a record. `where` is the key of it, for messages.

    Raises:
        ValueError: it is something else; says which key.
    """
    overheads = None
    if isinstance(data, dict):
        if data.get("schema") != SCHEMA:
            raise ValueError(f"{where}.schema".lstrip(".") + f" is {data.get('schema')!r}, not {SCHEMA}")
        if data.get("overheads") is not None:
            overheads = overhead_samples(data["overheads"], f"{where}.overheads".lstrip("."))
        data = {key: value for key, value in data.items() if key != "overheads" and value is not None}
    process = from_json(Process, data, where)
    for number, series in enumerate(process.comparisons):
        check_quads(series, f"{where}.comparisons[{number}].quads".lstrip("."))
    return replace(process, overheads=overheads)


def check_quads(series: Series, place: str) -> None:
    """See that a ratio can be made of what was read.

    Raises:
        ValueError: it cannot; says what is wrong at `place`.
    """
    if not series.quads:
        raise ValueError(f"{place} is empty")
    if any(len(quad.seconds) != len(quad.order) for quad in series.quads):
        raise ValueError(f"{place} has one with more or fewer times than its order has blocks")
    if series.candidate is not None and all(quad.guard for quad in series.quads):
        raise ValueError(f"{place} has none with {series.candidate}")


def overhead_samples(data: Any, where: str = "overheads") -> OverheadSamples:
    """Return what a bench file wrote under `overheads`, as a record whose rounds can be taken apart.

    Raises:
        ValueError: it is something else; says which key.
    """
    if isinstance(data, dict) and isinstance(data.get("flops"), list):
        flops = [
            dict(zip(("operator", "flops"), pair, strict=False)) if isinstance(pair, list) else pair
            for pair in data["flops"]
        ]
        data = {**data, "flops": flops}
    samples = from_json(OverheadSamples, data, where)
    parts, cuda, place = samples.parts, samples.device != "cpu", f"{where}.parts"
    if (count := sum(part.kind == "call" for part in parts)) != 1:
        raise ValueError(f"{place} has {count} times of call instead of 1")
    for part in parts:  # `overheads_of` takes differences round by round
        if () in ((part.seconds, part.host) if cuda else (part.seconds,)):
            raise ValueError(f"{place} has no times of {part.name}")
    if len({len(series) for part in parts for series in (part.seconds, part.host, part.wall) if series}) > 1:
        raise ValueError(f"{place} has rounds of different length")
    return samples
