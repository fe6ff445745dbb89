"""Tunings as a small table: CSV, a row a choice, and back without a loss."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import get_args

from inductor_probe.errors import UnreadableError
from inductor_probe.files import cell, json_of, text_of_cell
from inductor_probe.model.autotuning import TemplateChoice, Tuning, TuningSource

COLUMNS = ("tuning", "operation", "inputs", "source", "complete", "cached", "kernel", "generated",
           "choice", "ms", "kind", "config", "registers", "spills", "graph")  # fmt: skip
_WITHOUT_GRAPH = COLUMNS[:-1]
"""Tables from before a run of several graphs had one."""
_FLAGS = {"": None, "no": False, "yes": True}
_FLAG_TEXTS = {value: text for text, value in _FLAGS.items()}


def tunings_to_csv(tunings: tuple[Tuning, ...]) -> str:
    """Return a table with a header and a row for each choice; a tuning without any has a row of its own.

    `inputs` and `config` are JSON; an empty cell stands for what is not known. Texts are quoted, all of them:
    a carriage return is not by itself. None is a formula to a spreadsheet: see `files.cell`.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(COLUMNS)
    for number, tuning in enumerate(tunings, 1):
        shared = [
            number, tuning.operation, json.dumps(tuning.inputs), tuning.source, _FLAG_TEXTS[tuning.complete],
            _FLAG_TEXTS[tuning.cached], tuning.kernel, tuning.generated,
        ]  # fmt: skip
        for choice in tuning.choices:
            config = json.dumps(choice.config)
            cells = [*shared, choice.name, choice.ms, choice.kind, config, choice.registers, choice.spills]
            cells.append(tuning.graph)
            writer.writerow("" if value is None else cell(value) for value in cells)
        if not tuning.choices:
            cells = [*shared, *[None] * 6, tuning.graph]
            writer.writerow("" if value is None else cell(value) for value in cells)
    return out.getvalue()


def tunings_from_csv(text: str, path: Path | str = "table") -> tuple[Tuning, ...]:
    """Read a table that `tunings_to_csv` made; `path` is what an error names.

    Raises:
        UnreadableError: another form; says the line.
    """
    reader = csv.reader(io.StringIO(text))
    groups: dict[str, tuple[list[str], list[TemplateChoice]]] = {}
    try:
        header = next(reader, [])
        if tuple(header) not in (COLUMNS, _WITHOUT_GRAPH):
            raise ValueError(f"its columns are not {', '.join(COLUMNS)}")
        for row in (list(map(text_of_cell, row)) for row in reader):
            if len(row) != len(header):
                raise ValueError(f"{len(row)} cells instead of {len(header)}")
            number, (name, ms, kind, config, *counts) = row[0], row[8:14]
            shared = [*row[1:8], *(row[14:] or [""])]
            choices = groups.setdefault(number, (shared, []))[1]
            if name:
                pairs = tuple((str(key), str(value)) for key, value in json_of(config))
                registers, spills = (int(count) if count else None for count in counts)
                time = float(ms) if ms else None
                choices.append(TemplateChoice(name, time, kind or None, pairs, registers, spills))
        return tuple(_tuning(shared, choices) for shared, choices in groups.values())
    except (ValueError, TypeError, KeyError, csv.Error) as error:
        raise UnreadableError(
            f"{path}:{reader.line_num}: not a table of template choices: {error}",
            "export it again, or repair that line",
        ) from error


def _tuning(shared: list[str], choices: list[TemplateChoice]) -> Tuning:
    operation, inputs, source, complete, cached, kernel, generated, graph = shared
    named: dict[str, TuningSource] = {name: name for name in get_args(TuningSource)}
    return Tuning(
        operation=operation,
        inputs=tuple(json_of(inputs)),
        choices=tuple(choices),
        source=named[source],
        complete=bool(_FLAGS[complete]),
        cached=_FLAGS[cached],
        kernel=kernel or None,
        generated=generated or None,
        graph=graph or None,
    )
