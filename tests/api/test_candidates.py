"""Many ways to compile one run: what each is found to be, and how a run is made once more."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe import cli
from inductor_probe.api import candidates
from inductor_probe.api.baseline import Recipe, recipe_of, why_not_as_it_is
from inductor_probe.api.candidate import candidate_of
from inductor_probe.api.candidate_dumps import Dumped, last_error
from inductor_probe.api.candidates import try_candidates
from inductor_probe.model.bench import CALL, OTHER_CALL, BenchSettings
from inductor_probe.model.codec import from_json
from inductor_probe.model.flip import Flip
from inductor_probe.model.remark import Subject, measured
from inductor_probe.model.whatif import WHATIF_NAME, Candidate, Trial, TrialReason, TrialsIndex, Turned
from inductor_probe.report.words.whatif import trial_words
from inductor_probe.store.samples import read_samples
from inductor_probe.store.trials import write_trials
from tests.api.test_whatif import dumps
from tests.report.test_bench import comparison
from tests.schemas import schema_faults

__all__ = ["dumps"]

pytestmark = pytest.mark.usefixtures("warm")
FASTER = Candidate(settings=(("inductor.cpp.enable_tiling_heuristics", "False"),))
ALSO_FASTER = Candidate(settings=(("inductor.also", "1"),))
EQUAL = Candidate(settings=(("inductor.without_effect", "1"),))
WRONG = Candidate(knobs=(("values", "two"),))
REFUSED = Candidate(settings=(("inductor.unknown", "1"),))
FAILS = Candidate(variables=(("FAILS", "1"),))
RUNS = {FASTER: "vectorised", ALSO_FASTER: "vectorised", EQUAL: "plain", WRONG: "other_values"}


class Known(Recipe):
    """Runs that are there already, in place of dumps."""

    def dump(
        self,
        kind: Callable[..., Any],
        candidate: Candidate | None = None,
        *,
        output: Path | None = None,
        beside_others: bool = False,
    ) -> Any:
        """Return the run of a candidate, fail as torch would, or be interrupted."""
        candidate = candidate or Candidate()
        if candidate == REFUSED:
            raise ip.ProbeError("torch has no setting inductor.unknown")
        if candidate == FAILS:
            run = ip.open_run("plain")
            assert run.manifest is not None
            assert output is not None
            output.write_text("Traceback:\n  File x\ntorch._inductor.exc.InductorError: no\n\nhint\n")
            run.debug_dir = replace(
                run.debug_dir, manifest=replace(run.manifest, outcome="failed", dump=None)
            )
            return run
        if candidate not in RUNS:
            raise KeyboardInterrupt
        return ip.open_run(RUNS[candidate])


@pytest.fixture
def here(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(dumps)
    (ip.open_run("plain").path / WHATIF_NAME).unlink(missing_ok=True)
    return dumps


def tried(*candidates: Candidate, budget: float | None = 1200.0, **options: bool) -> Any:
    """Try candidates against the run as it is, each measured for as short as can be."""
    return try_candidates(
        ip.open_run("plain"),
        candidates,
        Known(script=Path("mirror.py")),
        ip.Run,
        BenchSettings(budget=0.3),
        budget=budget,
        **options,
    )


@pytest.mark.compiles
def test_candidates_are_ranked_and_kept_on_disk(here: Path) -> None:
    trials = tried(EQUAL, REFUSED, FAILS, WRONG, FASTER, ALSO_FASTER)
    ranks = {trial.candidate: trial for trial in trials.trials if not trial.together}
    assert ranks[EQUAL].rank == "no-change"
    assert (ranks[EQUAL].looks, ranks[EQUAL].reason) == (0, TrialReason("same-code"))
    assert (ranks[REFUSED].rank, ranks[REFUSED].reason) == (
        "impossible",
        TrialReason("refused", "torch has no setting inductor.unknown"),
    )
    assert (ranks[FAILS].rank, ranks[FAILS].reason) == (
        "impossible",
        TrialReason("script-failed", "torch._inductor.exc.InductorError: no"),
    )
    assert ranks[WRONG].rank == "wrong"
    assert "cpp_fused_add_flip_0 of B is WRONG in 12,288 of 12,288 elements" in trial_words(
        ranks[WRONG], 0.01
    )
    assert ranks[WRONG].call is None
    # which of the two is measured is known, how fast they are is not: a loaded machine may leave it open
    # what somebody asks for comes before what `why` offers
    assert ranks[ALSO_FASTER].looks >= 1
    assert ranks[FASTER].rank == ranks[ALSO_FASTER].rank
    assert ranks[FASTER].same_as == ALSO_FASTER
    assert trials.trials[0].rank in ("gain", "undecided", "no-change")
    index = from_json(TrialsIndex, json.loads(trials.path.read_text()))
    assert index.trials == trials.trials
    assert schema_faults("whatif", trials.json) == []
    assert "torch has no setting" in trials.markdown
    assert "torch has no setting" in repr(trials)  # as a Python prompt shows it
    assert "<table" in trials._repr_html_()  # and a notebook
    (facts,) = [one for one in ip.runs(here) if one.path == trials.run.path]
    assert not ip.plan_removal(facts).blockers


@pytest.mark.compiles
def test_without_a_budget_each_is_timed_once_and_shown_with_all_of_it(here: Path) -> None:
    trials = tried(EQUAL, FASTER, ALSO_FASTER, budget=None)
    assert [answer.candidate for answer in trials.answers] == [EQUAL, FASTER, ALSO_FASTER]
    (faster,) = [trial for trial in trials.trials if trial.candidate == FASTER]
    assert faster.looks == 1
    shown = trials.markdown
    assert "Not timed: names and spelling aside, A and B are the same code." in shown
    assert "A and B compute what the graph does in float64" in shown
    assert "cpp_fused_add_flip_0 of B" in shown  # kernels, too, where each is timed once
    assert f"Not timed: B is the same code as with {FASTER}." in " ".join(shown.split())
    assert "3 candidates" in shown.rstrip().splitlines()[-1]


@pytest.mark.compiles
def test_all_of_a_look_goes_to_the_whole_call(here: Path) -> None:
    """Its kernels, eager and the overheads of A took two thirds of it: most first looks decided nothing."""
    (trial,) = tried(FASTER, budget=1.0).trials
    assert trial.turned == Turned(("vectorisation",), "vectorised", ("cpp_fused_add_flip_0",))
    assert trial.file is not None
    processes = read_samples(trial.file.with_suffix(".json")).processes
    assert {(one.baseline, one.candidate) for process in processes for one in process.comparisons} == {
        (CALL, OTHER_CALL)
    }
    assert all(process.overheads is None for process in processes)


@pytest.mark.compiles
def test_a_look_that_had_no_time_for_the_whole_call_is_no_end(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU, pairs of kernels took the first second: those candidates were impossible ever after."""
    timed, looks = candidates.timed_graph, []

    def without_call(*sides: Any, **options: Any) -> Any:
        graph = timed(*sides, **options)
        looks.append(graph)
        if len(looks) > 1:
            return graph
        left = measured(
            "no-budget-left", "analysis", Subject("call", "call"), {"least_s": 1.0, "left_s": 0.0}
        )
        assert graph.result is not None
        result = replace(graph.result, comparisons=(), warnings=(*graph.result.warnings, left))
        return replace(graph, result=result)

    monkeypatch.setattr(candidates, "timed_graph", without_call)
    tried(FASTER, timed=False)
    (trial,) = tried(FASTER, budget=60.0).trials
    assert len(looks) > 1
    assert (trial.rank, trial.looks) != ("impossible", 1)
    assert trial.call is not None


@pytest.mark.compiles
def test_what_was_done_before_an_interruption_is_kept(here: Path) -> None:
    trials = tried(EQUAL, Candidate(settings=(("interrupts", "1"),)), FASTER)
    assert trials.interrupted
    assert [trial.candidate for trial in trials.trials] == [EQUAL]
    assert from_json(TrialsIndex, json.loads(trials.path.read_text())).trials == trials.trials


@pytest.mark.compiles
@pytest.mark.parametrize("again", ["plain", "wide"])
def test_a_script_that_compiles_another_program_each_time_is_refused(
    again: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting may change the program itself: A, made again, tells which of both it is."""
    monkeypatch.setitem(RUNS, EQUAL, "adding")
    monkeypatch.setitem(RUNS, Candidate(), again)
    if again == "plain":
        (trial,) = tried(EQUAL, timed=False).trials
        assert (trial.candidate, trial.rank) == (EQUAL, "not-tried")
    else:
        with pytest.raises(
            ip.ProbeError, match=r"does not compile the same program each time.*had the input arg0_1 of type"
        ):
            tried(EQUAL)


@pytest.mark.compiles
def test_a_flip_leaves_the_program_as_it_is(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it does not, the script compiles another one each time: that needs no second dump of A."""
    flip = candidate_of({"scalar": "op0"})
    monkeypatch.setitem(RUNS, flip, "adding")
    with pytest.raises(ip.ProbeError, match=r"mirror\.py does not compile the same program each time"):
        tried(EQUAL, flip)
    known = json.loads((ip.open_run("plain").path / WHATIF_NAME).read_text())
    assert [trial["rank"] for trial in known["trials"]] == ["no-change"]


@pytest.mark.compiles
def test_a_later_call_goes_on_where_one_ended(here: Path) -> None:
    compiled = tried(EQUAL, FASTER, ALSO_FASTER, REFUSED, timed=False)
    ranks = {trial.candidate: trial for trial in compiled.trials}
    assert (ranks[FASTER].rank, ranks[FASTER].looks) == ("not-tried", 0)
    assert ranks[FASTER].run is not None
    assert ranks[EQUAL].rank == "no-change"
    runs = dict(RUNS)
    RUNS.clear()  # a dump would be an interruption now
    try:
        later = tried(EQUAL, FASTER, ALSO_FASTER, REFUSED)
    finally:
        RUNS.update(runs)
    assert not later.interrupted
    ranks = {trial.candidate: trial for trial in later.trials}
    assert max(ranks[FASTER].looks, ranks[ALSO_FASTER].looks) >= 1
    assert (ranks[FASTER].same_as, ranks[ALSO_FASTER].same_as) in ((None, FASTER), (ALSO_FASTER, None))
    assert ranks[REFUSED].rank == "impossible"
    begun = ranks[FASTER].looks
    ended = {trial.candidate: trial for trial in tried(FASTER, budget=0.001).trials}
    assert ended[FASTER].looks == begun, "what is known is not measured again"
    assert len(from_json(TrialsIndex, json.loads(later.path.read_text())).trials) == len(later.trials)


@pytest.mark.compiles
def test_a_dump_that_was_only_written_down_is_compared_once_and_listed_once(here: Path) -> None:
    """Of two with the same code, one was listed twice: with its graph, and as not tried in any."""
    run = ip.open_run("plain")
    known = [Dumped(candidate, ip.open_run("vectorised")).trial for candidate in (FASTER, ALSO_FASTER)]
    write_trials(run.path, known, BenchSettings(), torch="")
    trials = tried(FASTER, ALSO_FASTER, timed=False).trials
    assert [trial.rank for trial in trials] == ["not-tried", "not-tried"]
    assert {trial.candidate for trial in trials} == {FASTER, ALSO_FASTER}
    assert {trial.graph for trial in trials} == {run.graphs[0].name}


@pytest.mark.compiles
def test_what_was_compiled_without_a_gpu_is_timed_where_there_is_one(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was called impossible, which no later call tries again."""
    monkeypatch.setattr("inductor_probe.api.whatif.missing_gpu", lambda graph: "NVIDIA H200")
    (compiled,) = tried(FASTER, timed=False).trials
    assert (compiled.rank, compiled.reason) == ("not-tried", TrialReason("no-gpu", subjects=("NVIDIA H200",)))
    assert trial_words(compiled, 0.01) == (
        "compiled, and not timed yet: it was compiled for a simulated NVIDIA H200, "
        "and this machine has no GPU to run it on"
    )
    monkeypatch.undo()
    monkeypatch.chdir(here)
    (timed,) = tried(FASTER).trials
    assert (timed.rank, timed.reason) == ("gain", None)
    monkeypatch.setattr("inductor_probe.api.whatif.missing_gpu", lambda graph: "NVIDIA H200")
    assert tried(FASTER, timed=False).trials == (timed,)


@pytest.mark.compiles
def test_of_two_with_the_same_code_one_is_the_first_in_whatever_order_they_are_tried(here: Path) -> None:
    """Else each is the same as the other, and no gain is tried with others at once."""
    for order in ((FASTER, ALSO_FASTER), (ALSO_FASTER, FASTER)):
        trials = tried(*order, timed=False).trials
        assert {trial.candidate: trial.same_as for trial in trials} == {order[0]: None, order[1]: order[0]}


@pytest.mark.compiles
def test_a_candidate_is_right_where_the_run_is_wrong_itself(here: Path, tmp_path: Path) -> None:
    """F1: it was WRONG, and later not known, as it was compared with A."""
    before = ip.open_run("plain").path
    moved = tmp_path / "torch_compile_debug" / before.name
    shutil.copytree(before, moved)
    code = moved / "torchinductor" / ip.open_run("plain").graphs[0].name / "output_code.py"
    text = code.read_text()
    code.write_text(text.replace("static_cast<uint8_t>(1)", "static_cast<uint8_t>(3)"))
    assert code.read_text() != text
    settings = BenchSettings(budget=0.3)
    a = ip.open_run(moved)
    trials = try_candidates(a, [FASTER], Known(script=Path("mirror.py")), ip.Run, settings, trust=True)
    (trial,) = trials.trials
    assert (trial.rank, trial.reason and trial.reason.code) == ("right", "baseline-wrong")
    assert trial_words(trial, 0.01).startswith("A is wrong (output 0[0")
    assert trial_words(trial, 0.01).endswith("); B is right")


@pytest.mark.compiles
def test_code_that_does_not_compile_is_not_called_wrong(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A split scan with 64-bit indices was WRONG, which Triton does not compile: it computes nothing."""
    before = ip.open_run("vectorised").path
    moved = tmp_path / "torch_compile_debug" / before.name
    shutil.copytree(before, moved)
    code = moved / "torchinductor" / ip.open_run("vectorised").graphs[0].name / "output_code.py"
    code.write_text(code.read_text().replace("int64_t", "int65_t"))
    monkeypatch.setitem(RUNS, FASTER, str(moved))
    (trial,) = tried(FASTER, budget=None, trust=True).trials
    assert (trial.rank, trial.reason and trial.reason.code) == ("impossible", "not-compiled")
    assert "does not compile" in trial_words(trial, 0.01)
    assert "int65_t" in trial_words(trial, 0.01)


@pytest.mark.compiles
def test_what_is_known_stays_where_another_candidate_is_tried(here: Path) -> None:
    tried(EQUAL)
    others = tried(FASTER, timed=False)
    assert [trial.candidate for trial in others.trials] == [FASTER]
    known = from_json(TrialsIndex, json.loads(others.path.read_text())).trials
    assert {trial.candidate for trial in known} == {EQUAL, FASTER}


@pytest.mark.compiles
def test_a_cut_file_of_trials_is_refused_and_left(here: Path) -> None:
    path = tried(EQUAL).path
    path.write_text(path.read_text()[:40])
    with pytest.raises(ip.ProbeError, match=r"probe_whatif\.json cannot be read"):
        tried(EQUAL)
    assert len(path.read_text()) == 40


@pytest.mark.compiles
def test_what_the_budget_leaves_out_is_listed_as_not_tried(here: Path) -> None:
    trials = tried(EQUAL, FASTER, budget=0.001)
    assert {trial.candidate: trial.rank for trial in trials.trials} == {
        EQUAL: "no-change",
        FASTER: "not-tried",
    }


@pytest.mark.compiles
def test_a_run_is_made_again_as_it_was(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ip.open_run("vectorised")
    recipe = recipe_of(run)
    assert recipe.script.resolve() == (here / "mirror.py").resolve()
    assert recipe.args == ("one",)
    assert recipe.knobs == {"inductor.cpp.enable_tiling_heuristics": "False"}
    assert why_not_as_it_is(run, recipe) is None
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    assert why_not_as_it_is(run, recipe) == "ATEN_CPU_CAPABILITY was not set, and is avx2 here"
    monkeypatch.delenv("ATEN_CPU_CAPABILITY")
    assert run.manifest is not None
    versions = tuple((name, "2.1.0" if name == "torch" else text) for name, text in run.manifest.versions)
    run.debug_dir = replace(run.debug_dir, manifest=replace(run.manifest, versions=versions))
    assert "it was dumped with torch 2.1.0, and this is torch" in (why_not_as_it_is(run, recipe) or "")


@pytest.mark.compiles
def test_a_script_that_was_changed_since_is_dumped_again(here: Path) -> None:
    run = ip.open_run("plain")
    script = here / "mirror.py"
    before, text = script.stat(), script.read_text()
    try:
        script.write_text(f"{text}\n# of another day\n")
        os.utime(script, (before.st_atime, before.st_mtime))  # as a copy has it: its time says nothing
        assert why_not_as_it_is(run, recipe_of(run)) == f"{recipe_of(run).script} was changed since"
    finally:
        script.write_text(text)
    assert why_not_as_it_is(run, recipe_of(run)) is None  # written anew, and the same


@pytest.mark.compiles
def test_a_run_whose_script_is_gone_is_refused(here: Path) -> None:
    run = ip.open_run("plain")
    assert run.manifest is not None
    run.debug_dir = replace(run.debug_dir, manifest=replace(run.manifest, script="gone.py"))
    with pytest.raises(ip.NotFoundError, match=r"was made from gone\.py, and there is no such script"):
        recipe_of(run, trust=True)


@pytest.mark.compiles
def test_the_settings_that_why_offers_are_candidates(here: Path) -> None:
    assert FASTER in ip.candidates_of(ip.open_run("plain"))
    assert Candidate(flips=(Flip("vectorise", ("op0",)),)) in _without_origins(ip.open_run("plain"))
    assert FASTER not in ip.candidates_of(ip.open_run("vectorised"))


def _without_origins(run: ip.Run) -> list[Candidate]:
    return [
        replace(one, flips=tuple(replace(flip, origins=()) for flip in one.flips))
        for one in ip.candidates_of(run)
    ]


@pytest.mark.compiles
def test_a_run_and_a_decision_are_enough(here: Path, probe: Callable[..., Any]) -> None:
    ran = probe(
        *("whatif", "plain", "--vectorise", "op0", "--budget", "300ms"),
        cwd=here,
    )
    assert ran.status == 0, ran.err
    assert "A is torch_compile_debug/run_" in ran.err
    assert "--vectorise op0: turned in model__0_inference_0.0: op0 is vectorised" in ran.out
    assert "asked for: op0: scalar (" in ran.out
    last = ran.out.rstrip().splitlines()[-1]
    assert last.startswith("vectorising cpp_fused_add_flip_0: ")
    assert last.endswith(", same result")


@pytest.mark.compiles
@pytest.mark.parametrize(("share", "status"), [("5%", 1), ("10%", 0)])
def test_a_gain_beyond_what_is_allowed_fails_where_that_is_asked_for(
    here: Path, share: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gain = Trial(FASTER, "gain", "g", call=comparison(0.89, 0.91, "FASTER"))
    same = replace(gain, candidate=ALSO_FASTER, same_as=FASTER)
    slower = Trial(EQUAL, "loss", "g", call=comparison(1.4, 1.6, "SLOWER"))

    def known(a: ip.Run, *arguments: object, **options: object) -> ip.Trials:
        return ip.Trials(a, (gain, same, slower))

    monkeypatch.setattr("inductor_probe.api.otherwise.try_candidates", known)
    assert cli.run(["whatif", "plain", "--try-all", "--fail-if-faster", share]) == status
    shown = capsys.readouterr()
    says = f"{FASTER}: 10.0 % faster (9.0 to 11.0 % less time), same result"
    assert f"Best of 3 candidates: {says} (1 loss)." in " ".join(shown.out.split())
    assert shown.err.count("is left on the table") == bool(status), "one line for the same code"
    assert (f"over 5 % is left on the table: {says}" in " ".join(shown.err.split())) == bool(status)


@pytest.mark.compiles
def test_what_a_graph_cannot_take_is_refused_before_a_dump(here: Path) -> None:
    graph, runs = ip.open_run("plain").graphs[0], len(ip.runs(here))
    with pytest.raises(ip.ProbeError, match="invalid candidate 'op0'"):
        graph.whatif("op0")  # type: ignore[arg-type]  # what somebody may type
    with pytest.raises(ip.ProbeError, match="a candidate is given, and keywords"):
        graph.whatif(FASTER, scalar="op0")
    with pytest.raises(ip.ProbeError, match="nothing is to be different"):
        graph.whatif()
    for budget in (0, -1.0, True, "10s"):
        with pytest.raises(ip.ProbeError, match=r"invalid budget .*: give seconds"):
            graph.try_all(budget=budget)  # type: ignore[arg-type]  # as above
    assert len(ip.runs(here)) == runs


@pytest.mark.compiles
def test_a_run_in_an_archive_is_refused_before_a_dump(here: Path, tmp_path: Path) -> None:
    """Nothing can be written beside what is in an archive."""
    path = ip.open_run("plain").path
    archive = shutil.make_archive(
        str(tmp_path / "sent"), "gztar", path.parents[1], path.relative_to(path.parents[1])
    )
    graph = ip.open_run(archive).graphs[0]
    for tries in (graph.try_all, partial(graph.whatif, scalar="op0")):
        with pytest.raises(ip.ProbeError, match="cannot be compared with a new run: it is in an archive"):
            tries(trust=True)


def test_the_message_of_torch_is_the_last_exception_of_what_was_printed() -> None:
    assert last_error(["x", "ValueError: a", "  at y", "Set TORCH_LOGS for more"]) == "ValueError: a"
    assert last_error(["only this", ""]) == "only this"
    assert last_error([]) == ""
