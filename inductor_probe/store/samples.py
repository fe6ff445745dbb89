"""`output_code_bench.json`: the samples of all processes, from which the report can be made again."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inductor_probe import __version__
from inductor_probe.bench.overheads import overhead_samples
from inductor_probe.errors import NotFoundError, UnreadableError
from inductor_probe.machine.roofline import ceilings_from
from inductor_probe.model.bench import Resources, Variant
from inductor_probe.model.ceilings import Ceilings, KernelWork
from inductor_probe.model.kept import Kept
from inductor_probe.model.timing import Process, Quad, Series
from inductor_probe.reader.text import LARGEST_JSON, read_text

SCHEMA = 1
"""Of the JSON that a bench file writes, and of the file that keeps those of several processes."""
_MOST_SECONDS = 1e6


def kept_text(
    processes: Sequence[dict[str, Any]],
    margin: float,
    ceilings: Ceilings | None = None,
    works: Sequence[KernelWork] = (),
) -> str:
    """Return the text of a results file.

    Its keys are `schema`, `probe` (the version that wrote it), `margin`, `ceilings` (null, or `machine` and
    `works`: the fields of `Ceilings` and of each `KernelWork`), and `processes`: for each what the bench file
    wrote. That has `schema, graph, kernels, inputs, values, sizes, data, threads, seed, first,
    command, environment, warnings`; `variants`, what the checks found; and `comparisons`, each with
    `baseline`, `candidate` (null: timed alone), `spent` (seconds), and `quads` in the order they were taken:
    `order` (ABBA or BAAB), `seconds` (a call, for each of the four blocks), `guard` (B was A once more) and
    `disturbed` (what else ran meanwhile, or null).
    """
    measured = ceilings and {"machine": asdict(ceilings), "works": [asdict(work) for work in works]}
    kept = {
        "schema": SCHEMA,
        "probe": __version__,
        "margin": margin,
        "ceilings": measured,
        "processes": list(processes),
    }
    return json.dumps(kept, allow_nan=False) + "\n"


def read_kept(path: Path) -> Kept:
    """Read a results file.

    Raises:
        NotFoundError, UnreadableError: there is none, or it is something else.
    """
    if not path.exists():
        raise NotFoundError(f"{path} does not exist", "probe bench-kernel writes it beside output_code.py")
    text = read_text(path, largest=LARGEST_JSON)
    try:
        kept = json.loads(text)
        _check_schema(kept["schema"], path)
        processes = tuple(process_of(each) for each in kept["processes"])
        margin = float(kept["margin"])
        ceilings, works = _ceilings(kept.get("ceilings"))  # files from before they were kept have none
        if not processes or not 0 < margin < 1:
            raise ValueError("no process" if not processes else f"margin {margin}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableError(
            f"{path} is not what probe bench-kernel writes: {type(error).__name__}: {error}",
            "run probe bench-kernel again; a bench file's own --json is of one process, and no verdict",
        ) from error
    return Kept(processes, margin, ceilings, works)


def process_of(found: dict[str, Any]) -> Process:
    """Return what one run of a bench file wrote, as a record.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is something else.
    """
    if found["schema"] != SCHEMA:
        raise ValueError(f"schema {found['schema']}, not {SCHEMA}")
    return Process(
        graph=str(found["graph"]),
        kernels=tuple(map(str, found["kernels"])),
        inputs=str(found["inputs"]),
        values=str(found["values"]),
        data=str(found["data"]),
        threads=int(found["threads"]),
        first=str(found["first"]),
        seed=int(found["seed"]),
        command=tuple(map(str, found["command"])),
        environment=dict(found["environment"]),
        warnings=tuple(map(str, found["warnings"])),
        variants=tuple(_variant(each) for each in found["variants"]),
        series=tuple(_series(each) for each in found["comparisons"]),
        overheads=overhead_samples(found["overheads"]) if found.get("overheads") else None,
        ablations=tuple((str(name), str(what)) for name, what in found["ablations"].items()),
        resources=tuple(
            (str(name), Resources(int(each["registers"]), int(each["spills"]), int(each["shared"])))
            for name, each in found.get("resources", {}).items()
        ),
    )


def _ceilings(found: dict[str, Any] | None) -> tuple[Ceilings | None, tuple[KernelWork, ...]]:
    if found is None:
        return None, ()
    works = tuple(
        KernelWork(
            name=str(each["name"]),
            moved=None if each["moved"] is None else int(each["moved"]),
            flops=None if each["flops"] is None else int(each["flops"]),
            dtype=None if each["dtype"] is None else str(each["dtype"]),
            indirect=bool(each["indirect"]),
        )
        for each in found["works"]
    )
    return ceilings_from(found["machine"]), works


def _check_schema(schema: object, path: Path) -> None:
    if isinstance(schema, int) and schema > SCHEMA:
        raise UnreadableError(
            f"{path} was written by a newer probe (schema {schema})", "update inductor_probe"
        )


def _variant(each: dict[str, Any]) -> Variant:
    return Variant(
        name=str(each["name"]),
        correct=bool(each["correct"]),
        max_error=each["max_error"],
        mismatches=int(each["mismatches"]),
        elements=int(each["elements"]),
        first_bad=None if each["first_bad"] is None else tuple(map(int, each["first_bad"])),
        first_bad_output=each["first_bad_output"],
        note=each["note"],
        unedited=bool(each.get("unedited", False)),
    )


def _series(each: dict[str, Any]) -> Series:
    candidate = each["candidate"]
    quads = tuple(_quad(quad) for quad in each["quads"])
    if not quads:
        raise ValueError("a comparison without quads")
    if candidate is not None and all(quad.guard for quad in quads):
        raise ValueError(f"no quad with {candidate}")
    return Series(str(each["baseline"]), None if candidate is None else str(candidate), quads, each["spent"])


def _quad(each: dict[str, Any]) -> Quad:
    order, seconds, disturbed = each["order"], each["seconds"], each["disturbed"]
    if order not in ("ABBA", "BAAB"):
        raise ValueError(f"order {order}")
    first, second, third, fourth = map(float, seconds)
    if not all(math.isfinite(time) and 0 < time < _MOST_SECONDS for time in (first, second, third, fourth)):
        raise ValueError(f"times of {seconds} seconds")
    said = None if disturbed is None else str(disturbed)
    return Quad(order, (first, second, third, fourth), bool(each["guard"]), said)
