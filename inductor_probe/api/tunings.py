"""What inductor chose among for a graph: of templates, and of configs of Triton kernels."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.analysis.links import linked_tunings
from inductor_probe.api.rows import Rows
from inductor_probe.errors import ProbeError
from inductor_probe.files import LARGEST_JSON, read_text
from inductor_probe.model.autotuning import Tuning, TuningsOutput
from inductor_probe.reader.tunings import cached_configs, logged_configs, read_tunings, tuning_of_log
from inductor_probe.report.document import Document
from inductor_probe.store.choices import tunings_from_csv, tunings_to_csv

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk

_SETTABLE = re.compile(r"[XYZR]\d?_?BLOCK|num_warps|num_stages")


class Tunings(Rows[Tuning]):
    """What was autotuned, each with every choice."""

    record = TuningsOutput
    noun = "tuning"
    nothing = (
        "nothing was autotuned in it, or it was not recorded: dump what calls "
        "torch.compile(mode='max-autotune')"
    )

    @property
    def csv(self) -> str:
        """The tunings as a small table, which `tunings` reads back."""
        return tunings_to_csv(self)

    def _view(self) -> Document:
        from inductor_probe.report.pages.tunings import tuning_tables

        return tuning_tables(self)


def tunings_of_table(table: Path) -> Tunings:
    """Return the tunings of a `.csv` table that was exported before.

    Raises:
        NotFoundError, UnreadableError: no such file, or it is something else.
    """
    return Tunings(tunings_from_csv(read_text(table, largest=LARGEST_JSON), table))


def tunings_of(graph: GraphOnDisk) -> Tunings:
    """Return what was autotuned in a graph; empty where it was not recorded."""
    found = read_tunings(graph.path)
    problems = list(found.problems)
    kernels = graph.generated.code.kernels if graph.generated.code else ()
    templates = linked_tunings(graph.generated, found.tunings)
    if not templates:
        linked = linked_tunings(graph.generated, map(tuning_of_log, graph.run.logs.autotunes))
        alone = len(graph.run.graphs) == 1  # else only what is proved to be of this graph
        templates = tuple(tuning for tuning in linked if alone or tuning.kernel)
    triton = {kernel.name for kernel in kernels if kernel.backend == "triton"}
    logged = logged_configs(graph.run.path, problems) if triton else ()
    own = _of_graph(graph, [tuning for tuning in logged if tuning.operation in triton])
    cached = [replace(each, kernel=each.operation) for each in cached_configs(kernels, problems)]
    return Tunings((*templates, *own, *cached), problems)


def _of_graph(graph: GraphOnDisk, logged: list[Tuning]) -> list[Tuning]:
    """Say of which kernel each is: not proved where other graphs of the run have one of that name, too."""
    others = [other.path / "output_code.py" for other in graph.run.graphs if other.path != graph.path]
    texts = [read_text(path) for path in others if path.exists()] if logged else []
    found = []
    for tuning in logged:
        shared = any(f"{tuning.operation} = async_compile." in text for text in texts)
        found.append(replace(tuning, generated=None) if shared else replace(tuning, kernel=tuning.operation))
    return found


def tuned_rewrites(graph: GraphOnDisk, table: Path) -> tuple[str, ...]:
    """Return rewrites that give Triton kernels of a graph the configs of a table that was exported before.

    Raises:
        NotFoundError, UnreadableError: no such table, or it is something else.
        ProbeError: it has no config for a kernel of this graph.
    """
    kernels = {each.name for each in graph.generated.code.kernels} if graph.generated.code else set()
    found: dict[str, None] = {}
    for tuning in tunings_of_table(table):
        chosen = next((each for each in tuning.choices if each.name == tuning.generated), tuning.fastest)
        if tuning.of_kernel and tuning.operation in kernels and chosen:
            values = [f"{name}={value}" for name, value in chosen.config if _SETTABLE.fullmatch(name)]
            found[f"triton:{tuning.operation} {' '.join(values)}"] = None
    if not found:
        raise ProbeError(
            f"{table} has no config for a Triton kernel of {graph.name}",
            "probe tunings --csv writes such a table; kernels go by their names",
        )
    return tuple(found)
