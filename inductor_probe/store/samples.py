"""`output_code_bench.json`: the samples of all processes, from which the report can be made again."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import starmap
from pathlib import Path
from typing import Any, get_args

from inductor_probe import __version__
from inductor_probe.errors import NotFoundError, UnreadableError
from inductor_probe.files import LARGEST_JSON, read_text
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.remark import Remark, Subject, reported
from inductor_probe.model.timing import (
    Element,
    FlopCount,
    KernelWork,
    Order,
    OverheadSamples,
    PeakRate,
    Process,
    Quad,
    Resources,
    Roofline,
    Samples,
    Series,
    TimedPart,
    Variant,
    What,
)
from inductor_probe.store.json_object import JsonObject

SCHEMA = 2
"""Of the JSON that a bench file writes, and of the file that holds those of several processes.

Schema 1 had sentences where schema 2 has remarks (`warnings`, `disturbed`, `notes`), and `ceilings` for
`roofline`, with `found` for `peaks`. It is still read: an edited bench file keeps the harness that it
was made with.
"""
SHORTEST_S, LONGEST_S = 1e-15, 1e6
"""Seconds of a call that a clock can have given: beyond them their ratios are no numbers any more."""
_LARGEST_RATE = 1e21
"""Bytes or operations a second: more than any machine has."""


def samples_text(
    processes: Sequence[dict[str, Any]],
    margin: float,
    roofline: Roofline | None = None,
    works: Sequence[KernelWork] = (),
) -> str:
    """Return the text of a results file.

    Its keys are `schema`, `probe` (the version that wrote it), `margin`, `roofline` (null, or `machine` and
    `works`: the fields of `Roofline` and of each `KernelWork`), and `processes`: for each what the bench file
    wrote. That has `schema, graph, kernels, inputs, values, sizes, data, threads, seed, first,
    command, environment, warnings`; `variants`, what the checks found; and `comparisons`, each with
    `baseline`, `candidate` (null: timed alone), `spent` (seconds), and `quads` in the order they were taken:
    `order` (ABBA or BAAB), `seconds` (a call, for each of the four blocks), `guard` (B was A once more) and
    `disturbed` (null, or a remark: what else ran meanwhile).
    """
    measured = roofline and {"machine": to_json(roofline), "works": to_json(list(works))}
    results = {
        "schema": SCHEMA,
        "probe": __version__,
        "margin": margin,
        "roofline": measured,
        "processes": list(processes),
    }
    return json.dumps(results, allow_nan=False) + "\n"


def read_samples(path: Path) -> Samples:
    """Read a results file.

    Raises:
        NotFoundError, UnreadableError: there is none, or it is something else.
    """
    if not path.exists():
        raise NotFoundError(f"{path} does not exist", "probe bench-kernel writes it beside output_code.py")
    text = read_text(path, largest=LARGEST_JSON)
    try:
        results = JsonObject(json.loads(text))
        _check_schema(results.value("schema"), path)
        processes = tuple(map(_process, results.objects("processes")))
        margin = results.number("margin", 0, 1)
        key = next((key for key in ("roofline", "ceilings") if results.has(key)), None)
        measured = results.object(key) if key else None
        if not processes or not 0 < margin < 1:
            raise ValueError("no process" if not processes else f"margin is {margin:g}")
        _check_devices(processes)
        return Samples(
            processes,
            margin,
            roofline_from(measured.object("machine")) if measured else None,
            tuple(map(_work, measured.objects("works"))) if measured else (),
        )
    except (ValueError, RecursionError) as error:
        raise UnreadableError(
            f"{path} is not what probe bench-kernel writes: {error}",
            "run probe bench-kernel again; a bench file's own --json is of one process, and no verdict",
        ) from error


def process_of(found: object) -> Process:
    """Return what one run of a bench file wrote, as a record.

    Raises:
        ValueError: it is something else; says which key.
    """
    return _process(JsonObject(found))


def _process(found: JsonObject) -> Process:
    if (schema := found.integer("schema")) not in range(1, SCHEMA + 1):
        raise ValueError(f"{found.path('schema')} is {schema}, not 1 to {SCHEMA}")
    ablations = found.object("ablations")
    resources = found.object("resources") if found.has("resources") else None
    return Process(
        graph=found.text("graph"),
        kernels=found.texts("kernels"),
        inputs=found.text("inputs"),
        values=found.text("values"),
        data=found.text("data"),
        threads=found.integer("threads"),
        first=found.text("first"),
        seed=found.integer("seed"),
        command=found.texts("command"),
        environment=_environment(found.object("environment")),
        warnings=_remarks(found, "warnings", Subject("run", "")),
        variants=tuple(map(_variant, found.objects("variants"))),
        series=tuple(map(_series, found.objects("comparisons"))),
        overheads=overhead_samples(found.object("overheads")) if found.has("overheads") else None,
        ablations=tuple((name, ablations.text(name)) for name in ablations.names()),
        resources=tuple((name, _resources(resources.object(name))) for name in resources.names())
        if resources
        else (),
    )


def _environment(found: JsonObject) -> dict[str, str | float | None]:
    values = {name: found.value(name) for name in found.names()}
    for name, value in values.items():
        if not isinstance(value, str | int | float | None):
            raise ValueError(f"{found.path(name)} is neither a string nor a number")
    return values


def _resources(found: JsonObject) -> Resources:
    return Resources(found.integer("registers"), found.integer("spills"), found.integer("shared"))


def _work(found: JsonObject) -> KernelWork:
    return KernelWork(
        name=found.text("name"),
        moved=found.integer("moved") if found.value("moved") is not None else None,
        flops=found.integer("flops") if found.value("flops") is not None else None,
        dtype=found.text("dtype") if found.value("dtype") is not None else None,
        indirect=found.flag("indirect"),
    )


def _check_schema(schema: object, path: Path) -> None:
    if isinstance(schema, int) and schema > SCHEMA:
        raise UnreadableError(
            f"{path} was written by a newer probe (schema {schema})", "update inductor_probe"
        )


def _check_devices(processes: Sequence[Process]) -> None:
    """Overheads of a CPU and of a GPU are divided in other ways: one table cannot have both."""
    devices = {process.overheads.device == "cpu" for process in processes if process.overheads is not None}
    if len(devices) > 1:
        raise ValueError("its processes ran on different devices")


def _variant(found: JsonObject) -> Variant:
    name = found.text("name")
    return Variant(
        name=name,
        correct=found.flag("correct"),
        max_error=found.number("max_error", 0, sys.float_info.max)
        if found.value("max_error") is not None
        else None,
        mismatches=found.integer("mismatches"),
        elements=found.integer("elements"),
        first_bad=found.integers("first_bad") if found.value("first_bad") is not None else None,
        first_bad_output=found.integer("first_bad_output")
        if found.value("first_bad_output") is not None
        else None,
        remarks=_remarks(found, "remarks" if found.has("remarks") else "note", Subject("variant", name)),
        unedited=found.flag("unedited") if found.has("unedited") else False,
        value=_element(found, "value"),
        expected=_element(found, "expected"),
    )


def _element(found: JsonObject, key: str) -> Element:
    """Read a value of a tensor; files from before they were kept have none."""
    value = found.value(key) if found.has(key) else None
    if not isinstance(value, bool | int | float | str | None):
        raise ValueError(f"{found.path(key)} is not a number or text")
    return value


def _series(found: JsonObject) -> Series:
    candidate = found.text("candidate") if found.value("candidate") is not None else None
    quads = tuple(map(_quad, found.objects("quads")))
    if not quads:
        raise ValueError(f"{found.path('quads')} is empty")
    if candidate is not None and all(quad.guard for quad in quads):
        raise ValueError(f"{found.path('quads')} has none with {candidate}")
    return Series(found.text("baseline"), candidate, quads, found.number("spent", 0, LONGEST_S))


def _quad(found: JsonObject) -> Quad:
    seconds = found.numbers("seconds", SHORTEST_S, LONGEST_S)
    if len(seconds) != 4:
        raise ValueError(f"{found.path('seconds')} has {len(seconds)} times, not 4")
    first, second, third, fourth = seconds
    disturbed = _remarks(found, "disturbed", Subject("machine", "cpu"))
    order = found.choice("order", get_args(Order))
    return Quad(
        order, (first, second, third, fourth), found.flag("guard"), disturbed[0] if disturbed else None
    )


def _remarks(found: JsonObject, key: str, subject: Subject) -> tuple[Remark, ...]:
    """Read remarks: a list of them, one, or null. Schema 1 has sentences, about `subject`."""
    value = found.value(key)
    values = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(
        reported(each, subject) if isinstance(each, str) else from_json(Remark, each, found.path(key))
        for each in values
    )


def overhead_samples(found: JsonObject) -> OverheadSamples:
    """Return what a bench file wrote under `overheads`, as a record.

    Raises:
        ValueError: it is something else; says which key.
    """
    parts = tuple(map(_part, found.objects("parts")))
    samples = OverheadSamples(
        device=found.text("device"),
        allocations=found.integer("allocations"),
        parts=parts,
        flops=tuple(starmap(FlopCount, found.counts("flops"))) if found.has("flops") else None,
        repeated=sum(each.integer("repeated") for each in found.objects("parts")),
        disturbed=sum(each.integer("disturbed") for each in found.objects("parts")),
        remarks=_remarks(found, "remarks" if found.has("remarks") else "notes", Subject("graph", "")),
    )
    _check_rounds(samples, found.path("parts"))
    return samples


def _part(found: JsonObject) -> TimedPart:
    kind = found.choice("kind", ("kernel", "library", "call", "compiled", "guards"))
    seconds, host, wall = (found.numbers(name, SHORTEST_S, LONGEST_S) for name in ("seconds", "host", "wall"))
    return TimedPart(kind, found.text("name"), seconds, host, wall)


def roofline_from(said: JsonObject) -> Roofline:
    """Return what the child printed, as a record.

    Raises:
        ValueError: it is something else; says which key.
    """
    return Roofline(
        torch=said.text("torch"),
        device=said.text("device"),
        threads=said.integer("threads"),
        cache=said.integer("cache"),
        last_cache=said.integer("last_cache"),
        peaks=tuple(map(_peak, said.objects("peaks" if said.has("peaks") else "found"))),
        remarks=_remarks(said, "remarks" if said.has("remarks") else "notes", Subject("machine", "")),
    )


def _check_rounds(samples: OverheadSamples, path: str) -> None:
    """Refuse what cannot be taken apart round by round: see `overheads_of`."""
    parts, cuda = samples.parts, samples.device != "cpu"
    for kind, least in (("call", 1), ("compiled", 0), ("guards", 0)):
        if not least <= sum(part.kind == kind for part in parts) <= 1:
            raise ValueError(f"{path} has not one time of {kind}")
    for part in parts:
        needed = {part.seconds} if part.kind != "compiled" or not cuda else set()
        needed |= {part.host} if part.kind == "guards" or cuda else set()
        if () in needed:
            raise ValueError(f"{path} has no times of {part.name}")
    if len({len(series) for part in parts for series in (part.seconds, part.host, part.wall) if series}) > 1:
        raise ValueError(f"{path} has rounds of different length")


def _peak(said: JsonObject) -> PeakRate:
    return PeakRate(
        what=said.choice("what", get_args(What)),
        place=said.text("place"),
        size=said.integer("size"),
        rate=said.number("rate", 1, _LARGEST_RATE),
        calls=said.integer("calls"),
    )
