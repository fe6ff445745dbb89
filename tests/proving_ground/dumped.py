"""What torch decided of the programs: each is dumped once in a session, all of a device in one process."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from inductor_probe import capture
from inductor_probe.model.decision import DECISIONS_NAME, Decision, DecisionKind
from inductor_probe.model.manifest import Manifest, Note
from inductor_probe.reader.debug_dir import read_run
from inductor_probe.store.decisions import read_decisions
from tests.proving_ground.every_program import PROGRAMS
from tests.proving_ground.programs import FLIPPED
from tests.shared import made_once

_FOLDER = Path(__file__).parent
SCRIPTS = {"cpu": _FOLDER / "sampled.py", "cuda": _FOLDER / "every_program.py"}
_PRINTED = "printed.txt"

Decided = Callable[[str, DecisionKind], list[Decision]]
"""From a case and a kind to the decisions of that kind in its graphs."""


def programs_of(items: Sequence[pytest.Item]) -> list[str]:
    """Return the programs that selected tests are about, so that a few tests compile a few programs."""
    names = (item.callspec.params.get("program") for item in items if hasattr(item, "callspec"))
    return [name for name in dict.fromkeys(names) if name in PROGRAMS and PROGRAMS[name].is_here]


def decided_by(factory: pytest.TempPathFactory, programs: Sequence[str]) -> Decided:
    """Return what reads decisions; the first that is asked for dumps all programs of its device."""

    def decisions(case: str, kind: DecisionKind) -> list[Decision]:
        device = PROGRAMS[case.removesuffix(FLIPPED)].device
        of_device = [name for name in programs if PROGRAMS[name].device == device]
        folder = made_once(factory, f"causes-{device}", lambda folder: _dump(of_device, device, folder))
        lines = (folder / _PRINTED).read_text().splitlines()
        results = [line for line in lines if line.split(maxsplit=1)[:1] == [case]]
        assert [line.endswith("MISMATCH") for line in results] == [False], "\n".join(results or lines[-30:])
        manifest, graphs = _read(folder)
        assert [note for note in manifest.notes if not _is_expected(note)] == []
        names = [graph.name for graph in manifest.graphs if graph.case == case]
        assert names
        read = [read_decisions(graphs[name] / DECISIONS_NAME) for name in names if name in graphs]
        assert read
        assert all(each.complete for each in read)
        return [decision for each in read for decision in each.decisions if decision.kind == kind]

    return decisions


def _is_expected(note: Note) -> bool:
    """Tell whether a note is about large inputs, or about a rule of torch 2.11 of which no cause is known.

    With cooperative reductions on, that release splits no reduction, also not those that do not cooperate.
    """
    is_old = torch.__version__.startswith("2.11.") and "cooperative reduction" in str(note.values)
    return note.code == "graph-not-computed" or is_old


def _dump(programs: Sequence[str], device: str, folder: Path) -> None:
    """Dump the two cases of each program; what the script prints says how each of them ended."""
    is_simulated = device == "cuda" and not torch.cuda.is_available()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(_FOLDER.parents[1]), prepend=os.pathsep)
        capture.dump(
            SCRIPTS[device],
            cases=[f"{name}{end}" for name in programs for end in ("", FLIPPED)],
            target="h200" if is_simulated else None,
            out=folder,
            output=folder / _PRINTED,
        )


@functools.cache
def _read(folder: Path) -> tuple[Manifest, dict[str, Path]]:
    run = read_run(next((folder / "torch_compile_debug").glob("run_*")))
    assert run.manifest is not None
    return run.manifest, {graph.name: graph.path for graph in run.graphs}
