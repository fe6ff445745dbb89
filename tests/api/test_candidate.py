"""One candidate: how it is spelled, and what the names of its flips mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.api.candidate import candidate_of, with_meaning
from inductor_probe.model.flip import Flip
from inductor_probe.model.whatif import Candidate
from tests.conftest import DUMPS

TRAINING: Path = next((DUMPS / "torch-2.13.0-cpu-programs" / "training").glob("run_*"))


@pytest.mark.parametrize(
    ("changes", "candidate"),
    [
        ({"set": {"inductor.cpp.simdlen": 256}}, Candidate(settings=(("inductor.cpp.simdlen", "256"),))),
        ({"set": {"size": 4}, "env": {"A": 1}}, Candidate(knobs=(("size", "4"),), variables=(("A", "1"),))),
        ({"scalar": "op0"}, Candidate(flips=(Flip("scalar", ("op0",)),))),
        ({"no_fuse": "op0,op1"}, Candidate(flips=(Flip("no-fuse", ("op0", "op1")),))),
    ],
)
def test_keywords_spell_a_candidate(changes: Mapping[str, object], candidate: Candidate) -> None:
    assert candidate_of(changes) == candidate


def test_a_keyword_that_is_unknown_is_refused_with_near_names() -> None:
    with pytest.raises(ip.ProbeError) as error:
        candidate_of({"vectorize": "op0"})
    assert error.value.hint is not None
    assert "vectorise" in error.value.hint
    with pytest.raises(ip.ProbeError, match="is not a dict"):
        candidate_of({"set": "inductor.x=1"})


@pytest.mark.parametrize("value", [False, None, 1.5, ["op0"], {"op0": 1}])
def test_a_decision_whose_value_is_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(ip.ProbeError) as error:
        candidate_of({"scalar": value})
    assert error.value.message == f"scalar={value!r} is not text"
    assert error.value.hint is not None


def test_a_candidate_is_written_as_on_the_command_line() -> None:
    candidate = candidate_of({"set": {"inductor.x": "a b"}, "env": {"N": "1"}, "layout": "buf0=contiguous"})
    assert candidate.command == "--set 'inductor.x=a b' --env N=1 --layout buf0=contiguous"
    other = candidate_of({"set": {"inductor.x": "2", "inductor.y": "3"}})
    assert (candidate | other).settings == (("inductor.x", "a b"), ("inductor.y", "3"))


def test_a_flip_of_what_is_not_there_is_refused_before_a_dump() -> None:
    with pytest.raises(ip.NotFoundError, match="has no op99 for --scalar op99"):
        with_meaning(candidate_of({"scalar": "op99"}), ip.open_run(str(TRAINING)).graphs)


def test_a_flip_in_a_graph_that_is_not_there_names_those_that_are() -> None:
    graphs = ip.open_run(str(TRAINING)).graphs
    with pytest.raises(ip.NotFoundError, match=r"run_\S+ has no graph nope for --scalar nope:op0") as error:
        with_meaning(candidate_of({"scalar": "nope:op0"}), graphs)
    assert error.value.hint == f"its graphs are {graphs[0].name}, {graphs[1].name}"


def test_a_name_that_several_graphs_have_is_turned_in_each_by_what_it_means_there() -> None:
    """It was looked up in the first graph alone, and in no other was there a node of that FX node."""
    forward, backward = ip.open_run(str(TRAINING)).graphs
    both = with_meaning(candidate_of({"scalar": "op0"}), (forward, backward))
    assert [*map(str, both.flips)] == [f"scalar {graph.name}:op0" for graph in (forward, backward)]
    assert str(both.in_graph(backward.name)) == "scalar op0"
    assert str(with_meaning(candidate_of({"threads": 1}), (forward, backward))) == "threads 1"
    assert str(with_meaning(candidate_of({"scalar": "op0"}), (forward,))) == "scalar op0"


def test_a_flip_of_all_graphs_and_its_opposite_in_one_are_refused() -> None:
    graphs = ip.open_run(str(TRAINING)).graphs
    candidate = Candidate(flips=(Flip("scalar", ("op0",)), Flip("vectorise", ("op0",), None, graphs[1].name)))
    with pytest.raises(ip.ProbeError, match="cannot hold at once"):
        with_meaning(candidate, graphs)
