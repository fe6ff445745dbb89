"""Whether a compiled script is right; and of what is wrong the operator, the line, the layer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.api.accuracy_trials import Costs, Flips
from inductor_probe.api.opened import opened
from inductor_probe.api.session import Graph, Run
from inductor_probe.errors import ProbeError
from inductor_probe.model.accuracy import (
    AccuracyOutput,
    CodeLine,
    GraphAccuracy,
    Verdict,
    WrongValue,
)
from inductor_probe.model.output import Output
from inductor_probe.model.own_call import NoOwnCall
from inductor_probe.options.programs import AccuracyOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.document import Document
from inductor_probe.report.pages.accuracy import accuracy_page
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.accuracy_checks.options import Key
    from inductor_probe.accuracy_checks.session import Judgement

_NO_CALL = "no call of what torch.compile returned was made; packages of AOTInductor are not judged"


class Accuracy(Shown, Struct, frozen=True):
    """What is right, rounded otherwise, and wrong: see `AccuracyOutput`."""

    record: AccuracyOutput

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return self.record

    @property
    def document(self) -> Document:
        """What is wrong, with its values, lines and layer."""
        return accuracy_page(self.record)


@takes(AccuracyOptions)
def accuracy(options: AccuracyOptions, progress: Progress) -> Accuracy:
    """Judge the calls of a program, whose script runs again, and follow down what is wrong.

    Raises:
        NotFoundError: nothing was compiled.
        ProbeError: the script cannot be run again; says why.
    """
    from inductor_probe.accuracy_checks.options import AccuracyOptions as Judging
    from inductor_probe.accuracy_checks.session import judge_program
    from inductor_probe.api.own_call import program_of

    which = opened(options, progress, target=options.target, may_fail=True)
    run = which.run if isinstance(which, Graph) else which
    if not run.graphs and not (run.manifest and run.manifest.failures):
        raise run.empty()
    program = program_of(run, trust=options.trust, may_fail=True, simulated=True)
    if isinstance(program, NoOwnCall):
        raise ProbeError(*_why_not(program, run))
    begin, try_s = time.monotonic(), options.try_s if options.tries else 0.0
    judging = Judging(seconds=options.budget, try_s=try_s, vary=options.vary)
    judgement = judge_program(program, judging, progress)
    names = _names(run)
    record = _record(run, judgement, names)
    if isinstance(which, Graph):
        record = replace(record, graphs=tuple(one for one in record.graphs if one.graph == which.name))
    if try_s > 0:
        record = Flips(run, program, judging, judgement.wrong_values, progress).tried(record)
    if options.cost:
        record = Costs(run, program, progress).measured(record)
    return Accuracy(replace(record, seconds=time.monotonic() - begin))


def _why_not(why: NoOwnCall, run: Run) -> tuple[str, str]:
    from inductor_probe.report.words.own_call import why_no_own_call

    return (
        f"{run.path.name} cannot be judged: {why_no_own_call(why)}",
        "probe accuracy SCRIPT dumps it first",
    )


def _names(run: Run) -> Mapping[Key, str]:
    """Return the names of graphs by compile id, kind, and which of those."""
    names: dict[Key, str] = {}
    counts: dict[tuple[str, str], int] = {}
    for record in run.manifest.graphs if run.manifest else ():
        kind = next((kind for kind in ("backward", "forward") if f"_{kind}_" in record.name), "inference")
        key = (record.compile_id or "", kind)
        number = counts.get(key, 0)
        counts[key] = number + 1
        names[key[0], key[1], number] = record.name
    return names


def _record(run: Run, judgement: Judgement, names: Mapping[Key, str]) -> AccuracyOutput:
    from inductor_probe.accuracy_checks.session import ORDER

    by_graph: dict[Key, list[WrongValue]] = {}
    nowhere: list[WrongValue] = []
    for key, value in judgement.wrong:
        if key is None:
            nowhere.append(value)
        else:
            by_graph.setdefault(key, []).append(value)
    compared = {key: (count, unknown) for key, count, unknown in judgement.compared}
    verdicts = dict(judgement.graphs)
    graphs = []
    for key in dict.fromkeys((*verdicts, *by_graph)):
        name = names.get(key, f"{key[1]} graph {key[0]}")
        graph = next((one for one in run.graphs if one.name == name), None)
        wrong = tuple(_with_kernel_line(value, graph) for value in by_graph.get(key, ()))
        verdict: Verdict = "wrong" if wrong else verdicts.get(key, "right")
        count, unknown = compared.get(key, (0, ()))
        graphs.append(
            GraphAccuracy(graph=name, verdict=verdict, wrong=wrong, compared=count, not_compared=unknown)
        )
    judged: list[Verdict] = [call.verdict for call in judgement.calls]
    worst: Verdict | None = None
    for verdict in judged:
        worst = verdict if worst is None or ORDER[verdict] > ORDER[worst] else worst
    return AccuracyOutput(
        run=run.path,
        verdict=worst,
        calls=tuple(
            replace(call, graphs=tuple(names[key] for key in keys if key in names))
            for call, keys in zip(judgement.calls, judgement.called, strict=True)
        ),
        graphs=tuple(graphs),
        wrong=tuple(nowhere),
        not_judged=judgement.not_judged,
        simulated=run.manifest.gpu.device if run.manifest and run.manifest.gpu else "",
        problem=judgement.problem or ("" if judgement.calls or judgement.not_judged else _NO_CALL),
    )


def _with_kernel_line(value: WrongValue, graph: Graph | None) -> WrongValue:
    """Add the line of generated code that computes it."""
    from inductor_probe.analysis.annotation.annotate import computing_line

    if graph is None or not value.kernel or not value.node:
        return value
    found = computing_line(graph.generated, value.kernel, value.node, value.operator.rpartition(".")[2])
    if found is None:
        return value
    return replace(value, kernel_line=CodeLine(str(graph.path / "output_code.py"), *found))
