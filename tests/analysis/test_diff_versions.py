"""Comparisons of the same program on another torch, of other programs, and of deep graphs."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.analysis.diff.graphs import diff_graphs, pair_graphs
from inductor_probe.analysis.diff.pairing import moved
from inductor_probe.model.diff import GraphDiff
from tests.dumps import folder_of, read_at


def around(diff: GraphDiff) -> list[str]:
    """Names of what differs around two graphs, but the settings of each torch."""
    return [fact.name for fact in diff.environment if "." not in fact.name]


@pytest.mark.parametrize("scenario", ["dynamic_shapes", "hflip_cl"])
def test_the_same_program_on_another_torch_has_the_same_nodes(scenario: str) -> None:
    old, new = (read_at(folder_of(f"torch-{version}-cpu/{scenario}")) for version in ("2.1.2", "2.13.0"))
    diff = diff_graphs(old, new)
    assert diff.matched_nodes == len({leaf.name for node in new.post for leaf in node.leaves()})
    assert not {node.kind for node in diff.nodes} & {"computes", "calls", "added", "removed"}
    assert diff.inputs == diff.outputs == ()
    assert around(diff) == ["torch"]


def test_flips_of_channels_last_images_changed_their_loops_between_versions() -> None:
    old, new = (read_at(folder_of(f"torch-{version}-cpu/hflip_cl")) for version in ("2.1.2", "2.13.0"))
    (node,) = diff_graphs(old, new).nodes
    assert (node.kind, node.loops and node.loops.a, node.loops and node.loops.b) == (
        "loops",
        "[224, 3, 224]",
        "[224, 224, 3]",
    )


def test_another_backend_is_said_once() -> None:
    cpu, gpu = (read_at(folder_of(f"torch-{name}/layernorm_grad")) for name in ("2.4.1-cpu", "2.11.0-cuda"))
    diff = diff_graphs(cpu, gpu)
    assert around(diff) == ["torch", "device", "backend"]
    assert not any(fact.name == "device" for change in diff.buffers for fact in change.facts)
    assert {"split", "changed"} & {match.relation for match in diff.kernels}


def test_fusion_of_torch_2_4_against_2_1_is_a_merger() -> None:
    old, new = (read_at(folder_of(f"torch-{version}-cpu/layernorm_grad")) for version in ("2.1.2", "2.4.1"))
    (fusion,) = diff_graphs(old, new).fusion
    assert fusion.relation == "merged"
    assert len(fusion.b) == 1


def test_graphs_are_paired_by_what_they_are() -> None:
    old = [read_at(folder_of("torch-2.1.2-cpu/layernorm_grad", at)) for at in (0, 1)]
    new = [read_at(folder_of("torch-2.13.0-cpu/mlp_train", at)) for at in (0, 1)]
    assert pair_graphs(old, list(reversed(old))) == {0: 1, 1: 0}
    assert pair_graphs(old, new) == {0: 0, 1: 1}, "by kind: forward with forward"
    hflip = [read_at(folder_of("torch-2.13.0-cpu/hflip_cl"))]
    assert pair_graphs(hflip, new) == {}


def chain(nodes: int, constants: dict[int, str]) -> str:
    """IR of a chain of like nodes, as deep as asked for; some have another constant."""
    blocks = []
    for at in range(nodes):
        source = f"buf{at - 1}" if at else "arg0_1"
        user = f"SchedulerNode(name='op{at + 1}')" if at + 1 < nodes else "OUTPUT"
        blocks.append(
            f"op{at}: SchedulerNode(ComputedBuffer)\n"
            f"op{at}.writes = [MemoryDep('buf{at}', c0, {{c0: 64}})]\n"
            f"op{at}.unmet_dependencies = [MemoryDep('{source}', c0, {{c0: 64}})]\n"
            f"op{at}.met_dependencies = []\n"
            f"op{at}.outputs = [\n"
            f"    buf{at}: ComputedBuffer\n"
            f"    buf{at}.layout = FixedLayout('cpu', torch.float32, size=[64], stride=[1])\n"
            f"    buf{at}.users = [NodeUser(node={user}, can_inplace=False, is_weak=False)]\n"
            "]\n"
            f"op{at}.group.device = cpu\n"
            f"op{at}.group.iteration = ((64,), ())\n"
            f"op{at}.sizes = ([64], [])\n"
            f"class op{at}_loop_body:\n"
            "    var_ranges = {p0: 64}\n"
            "    index0 = p0\n"
            "    def body(self, ops):\n"
            "        get_index = self.get_index('index0')\n"
            f"        load = ops.load('{source}', get_index)\n"
            f"        constant = ops.constant({constants.get(at, '2.0')}, torch.float32)\n"
            "        mul = ops.mul(load, constant)\n"
            "        get_index_1 = self.get_index('index0')\n"
            f"        store = ops.store('buf{at}', get_index_1, mul, None)\n"
            "        return store\n"
        )
    return "\n\n".join(blocks)


def test_one_change_in_a_deep_chain_of_like_nodes_is_one_change(tmp_path: Path) -> None:
    graphs = []
    for name, constants in (
        ("model__0_inference_0.0", {}),
        ("model__0_inference_0.1", {700: "5.0", 701: "7.0"}),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ir_post_fusion.txt").write_text(chain(2000, constants))
        graphs.append(read_at(tmp_path / name))
    diff = diff_graphs(*graphs)
    assert [(node.a, node.b, node.kind) for node in diff.nodes] == [
        ("op700", "op700", "computes"),
        ("op701", "op701", "computes"),
    ]


@given(st.permutations(range(7)))
def test_moved_are_the_fewest_without_which_the_rest_ascends(places: list[int]) -> None:
    found = moved(places)
    rest = [place for at, place in enumerate(places) if at not in found]
    assert rest == sorted(rest)
    longest = max(
        size
        for size in range(len(places) + 1)
        for kept in combinations(places, size)
        if list(kept) == sorted(kept)
    )
    assert len(rest) == longest
