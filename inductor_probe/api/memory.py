"""What memory the graphs of a program take: read in their wrappers, and measured in the script's own call."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.api.opened import opened
from inductor_probe.api.session import Graph
from inductor_probe.model.memory import GraphMemory, MeasuredMemory, MemoryOutput
from inductor_probe.model.own_call import NoOwnCall
from inductor_probe.options.programs import MemoryOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.document import Document
from inductor_probe.report.pages.memory import memory_pages
from inductor_probe.report.shown import Shown


class Memory(Shown, Struct, frozen=True):
    """What memory graphs take: see `MemoryOutput`. With `everything` all that lives at any time is shown."""

    record: MemoryOutput
    everything: bool = False

    @property
    def output(self) -> MemoryOutput:
        """What `--json` prints, as a record."""
        return self.record

    @property
    def document(self) -> Document:
        """The peaks, what lives when as a plot, and what eager takes."""
        return memory_pages(self.record, everything=self.everything)


@takes(MemoryOptions)
def memory(options: MemoryOptions, progress: Progress) -> Memory:
    """Return what memory the graphs of a program take; its script runs again up to its call, if it may.

    Raises:
        NotFoundError: nothing was compiled. ProbeError, StoppedError: the script did not come to its end.
    """
    from inductor_probe.analysis.memory import memory_of
    from inductor_probe.api.own_call import program_of, wanted_of
    from inductor_probe.measuring.own_calls import measure_memory

    program = opened(options, progress)
    asked = [program] if isinstance(program, Graph) else [*program.graphs]
    run = program.run if isinstance(program, Graph) else program
    if not asked:
        raise run.empty()
    rows = memory_of(graph.compiled for graph in run.graphs)
    measured: tuple[MeasuredMemory, ...] = ()
    why: NoOwnCall | None = NoOwnCall("not-asked")
    if options.measure:
        script = program_of(run, trust=options.trust)
        if isinstance(script, NoOwnCall):
            why = script
        elif not (wanted := wanted_of(asked)):
            why = NoOwnCall("ahead-of-time")
        else:
            measured, why = measure_memory(script, wanted, progress.say)
    ids = {record.name: record.compile_id for record in run.manifest.graphs} if run.manifest else {}
    measured = tuple(replace(one, read=_read(one, rows, ids)) for one in measured)
    names = {graph.name for graph in asked}
    mine = tuple(row for row in rows if row.graph in names)
    return Memory(MemoryOutput(rows=mine, measured=measured, not_measured=why))


def _read(one: MeasuredMemory, rows: Sequence[GraphMemory], ids: dict[str, str | None]) -> int | None:
    """Return the peak that is read of the graphs of a call: one after the other, the largest of theirs.

    A frame that was compiled several times has graphs for several sizes, one of which this call runs.
    """
    mine = [row for row in rows if ids.get(row.graph) in one.graphs]
    frames = [name.partition("/")[0] for name in one.graphs]
    if len({*frames}) < len(frames) or any(row.device != one.device for row in mine):
        return None
    return max((row.peak for row in mine), default=None)
