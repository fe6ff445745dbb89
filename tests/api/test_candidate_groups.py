"""Which candidates are dropped, in which order the others come, and what a dump of several says of each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

import inductor_probe as ip
from inductor_probe.analysis.causes.candidates import candidates_of, offers_of
from inductor_probe.analysis.causes.times import Times
from inductor_probe.analysis.links import links
from inductor_probe.api.candidate_groups import Plan, at_once, members_of, plan_of, plan_text
from inductor_probe.api.on_disk import GraphOnDisk
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.profile import NestTime
from inductor_probe.model.whatif import Candidate, Trial, TrialReason
from inductor_probe.report.pages.whatif import trials_page
from inductor_probe.report.terminal import to_text
from inductor_probe.report.words.whatif import trial_words

pytestmark = [pytest.mark.compiles, pytest.mark.usefixtures("warm")]
SCRIPT = """
import torch

def network(a, b, c, d):
    return [x.flip(-1) * 2 + 1 for x in (a, b, c)], torch.sin(d)

shapes = [(n, 40) for n in (8, 16, 24)]
torch.compile(network)(*map(torch.randn, shapes), torch.randn(1000))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ip.Run:
    folder = tmp_path_factory.mktemp("groups")
    (folder / "network.py").write_text(SCRIPT)
    return ip.dump(folder / "network.py", out=folder)


def timed(run: ip.Run, seconds: Mapping[str, float], rest: float = 1e-6, call: float = 1e-3) -> GraphOnDisk:
    """Give the loop nests that compute some nodes these times, all others `rest`; return the graph."""
    (graph,) = run.graphs
    nests, numbers = [], dict[str, int]()
    for name, link in ip.open_run(run.path).graphs[0].compiled and _links(graph).items():
        kernel = link or "none"
        numbers[kernel] = numbers.get(kernel, 0) + 1
        nests.append(
            NestTime(
                kernel, numbers[kernel], "vectorised", 1, 2, (), seconds.get(name, rest), 0.0, 0.0,
                nodes=(name,),
            )
        )  # fmt: skip
    kernels = {kernel: sum(one.seconds for one in nests if one.kernel == kernel) for kernel in numbers}
    graph.__dict__["times"] = Times(kernels, tuple(nests), call)
    return graph


def _links(graph: GraphOnDisk) -> dict[str, str | None]:
    return {name: link.kernel for name, link in links(graph.compiled).nodes.items()}


def test_what_has_less_of_the_call_than_the_margin_is_dropped(run: ip.Run) -> None:
    graph = timed(run, {"op0": 5e-4})
    candidates = candidates_of([graph.compiled], 1)
    plan = plan_of(run, candidates, BenchSettings(margin=0.01), 1)
    kept = {candidate for entry in plan.entries for candidate in entry}
    assert kept | {offer.candidate for offer in plan.dropped} == set(candidates)
    assert all((offer.at_most or 0.0) < 0.01 for offer in plan.dropped)
    about_op0 = [one for one in candidates if "op0" in str(one) and "fuse" not in str(one)]
    assert about_op0
    assert set(about_op0) <= kept
    assert plan.dropped
    text = plan_text(plan, run, 90.0, 0.01)
    assert text.startswith(f"{len(candidates)} candidates: {len(kept)} can gain more than 1 % of a call")
    assert "90 s at most" in text


def test_nothing_is_dropped_that_was_not_timed(run: ip.Run) -> None:
    graph = run.graphs[0]
    graph.__dict__["times"] = Times()
    candidates = candidates_of([graph.compiled], 1)
    plan = plan_of(run, candidates, BenchSettings(margin=0.01), 1)
    assert not plan.dropped
    assert plan.entries == tuple((candidate,) for candidate in [entry[0] for entry in plan.entries])


def test_what_somebody_asks_for_comes_first_and_is_not_dropped(run: ip.Run) -> None:
    graph = timed(run, {})
    mine = Candidate(settings=(("inductor.my_own", "1"),))
    plan = plan_of(run, [*candidates_of([graph.compiled], 1), mine], BenchSettings(margin=0.01), 1)
    assert plan.entries[0] == (mine,)


def test_candidates_that_have_nothing_to_do_with_each_other_are_compiled_at_once(run: ip.Run) -> None:
    graph = timed(run, {}, rest=3e-5)
    plan = plan_of(run, candidates_of([graph.compiled], 1), BenchSettings(margin=0.01), 1)
    groups = [entry for entry in plan.entries if len(entry) > 1]
    assert groups
    for group in groups:
        pieces = [piece for candidate in group for piece in plan.offers[candidate].pieces]
        assert len(pieces) == len(set(pieces))
        assert all(str(candidate) in str(at_once(group)) for candidate in group)


def group_of(run: ip.Run) -> tuple[Plan, tuple[Candidate, ...]]:
    plan = plan_of(run, candidates_of([run.graphs[0].compiled], 1), BenchSettings(margin=0.01), 1)
    return plan, next(entry for entry in plan.entries if len(entry) > 1)


def test_only_a_member_whose_loop_nests_are_faster_is_promising(run: ip.Run) -> None:
    a = timed(run, {}, rest=3e-5)
    plan, group = group_of(run)
    first, *others = group
    node = next(iter(plan.offers[first].causes[0][1].nodes))
    b = timed(ip.open_run(run.path), {node: 1e-5}, rest=3.3e-5)
    members = members_of(group, plan, [(a, b)], 0.01)
    assert members is not None
    by_name = {member.candidate: member for member in members}
    assert by_name[first].promising
    assert by_name[first].ratio < 0.5
    assert not any(by_name[other].promising for other in others)
    assert all(by_name[other].ratio == pytest.approx(1.05, abs=0.06) for other in others)


def test_a_call_that_is_faster_for_no_known_reason_has_all_members_tried_alone(run: ip.Run) -> None:
    a = timed(run, {}, rest=3e-5)
    plan, group = group_of(run)
    b = timed(ip.open_run(run.path), {}, rest=3e-5, call=8e-4)
    members = members_of(group, plan, [(a, b)], 0.01)
    assert members is not None
    assert all(member.promising for member in members)
    b.__dict__["times"] = Times()
    assert members_of(group, plan, [(a, b)], 0.01) is None


def test_a_group_is_turned_timed_and_judged(run: ip.Run) -> None:
    """The whole way, with torch and the compiler; how far it comes in its budget is the machine's."""
    run.graphs[0].forget_times()
    trials = run.graphs[0].try_all(BenchSettings(margin=0.01), budget=15.0, again=True)
    assert {trial.candidate for trial in trials.trials if not trial.together} >= set(
        ip.candidates_of(run, threads=1)
    )
    assert run.graphs[0].times.call
    for trial in trials.trials:
        assert trial.rank != "dropped" or (trial.at_most is not None and trial.at_most < 0.01)
        if trial.reason and trial.reason.code == "among-others":
            assert trial.reason.others >= 1
            assert trial.reason.ratio is not None


def test_screens_say_why_a_candidate_was_not_compiled() -> None:
    scalar = Candidate(settings=(("inductor.x", "1"),))
    dropped = Trial(scalar, "dropped", at_most=0.0042)
    assert trial_words(dropped, 0.01) == "at most 0.42 % of the call"
    among = Trial(scalar, "loss", reason=TrialReason("among-others", ratio=1.318, others=1))
    assert trial_words(among, 0.01) == "what it is about takes 1.32x as long, turned together with 1 other"
    text = to_text(trials_page([dropped, replace(among, candidate=Candidate(variables=(("Y", "1"),)))]))
    assert "1 candidate not compiled: what each is about takes at most 0.42 % of the call" in text
    assert "inductor.x" not in text


def test_the_share_that_a_decision_about_a_buffer_can_gain_has_its_readers(
    run: ip.Run, tmp_path: Path
) -> None:
    graph = timed(run, {"op0": 4e-4, "op1": 2e-4})
    offers = offers_of([graph.compiled], 1, {graph.name: graph.times})
    of_nests = [one for one in offers if str(one.candidate).startswith(("vectorise op0", "scalar op0"))]
    assert [one.at_most for one in of_nests] == [pytest.approx(0.4)] * len(of_nests)
    fused = [one for one in offers if "op0,op1" in str(one.candidate)]
    assert all(one.at_most == pytest.approx(0.6) for one in fused)
