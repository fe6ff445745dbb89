"""Constants of real graphs, folded by torch's own ConstantFolder, without a compile."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch

from inductor_probe.capture import constants
from inductor_probe.capture.constants import ConstantKeeper


def folded(keeper: ConstantKeeper, module: torch.fx.GraphModule) -> dict[str, Any]:
    """Fold the constants of a graph as freezing does, and return the values of its nodes by name."""
    # It brings all of inductor, which no other test needs in a worker that collects them.
    from torch._inductor.constant_folding import ConstantFolder  # noqa: PLC0415

    values: dict[str, Any] = {}

    class Folder(ConstantFolder):  # type: ignore[misc]
        def run_node(self, node: torch.fx.Node) -> Any:
            values[node.name] = super().run_node(node)
            keeper.packed(self, node, values[node.name])
            return values[node.name]

    Folder(module).run()
    return values


def graph_of(weight: torch.Tensor, operator: Any, *arguments: Any) -> torch.fx.GraphModule:
    module = torch.nn.Module()
    module.register_buffer("weight", weight)
    graph = torch.fx.Graph()
    packed = graph.call_function(operator, (graph.get_attr("weight"), *arguments))
    graph.output(graph.call_function(torch.ops.aten.relu.default, (packed,)))
    return torch.fx.GraphModule(module, graph)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_packed_weight_is_kept_as_what_it_was_packed_from(tmp_path: Path, dtype: torch.dtype) -> None:
    keeper, weight = ConstantKeeper(unlimited=False), torch.randn(48, 32).to(dtype)
    module = graph_of(weight, torch.ops.mkldnn._reorder_linear_weight, 16)
    packed = folded(keeper, module)["_reorder_linear_weight"]
    keeper.add_constants(str(tmp_path), {"_frozen_param1": packed})
    part, fact = keeper.facts(str(tmp_path))
    assert (fact["kind"], fact["operator"]) == ("packed", "mkldnn._reorder_linear_weight")
    assert fact["arguments"] == ["_frozen_param1_part0", "16"]
    data = (tmp_path / "probe_constants" / part["saved"]).read_bytes()
    assert part["sha256"] == hashlib.sha256(data).hexdigest()
    again = torch.frombuffer(bytearray(data), dtype=dtype).as_strided(part["size"], part["stride"])
    assert torch.equal(again, packed.to_dense())
    assert torch.equal(torch.ops.mkldnn._reorder_linear_weight(again, 16).to_dense(), packed.to_dense())


def test_a_part_that_is_a_constant_too_has_the_name_of_that(tmp_path: Path) -> None:
    keeper, weight = ConstantKeeper(unlimited=False), torch.randn(48, 32)
    module = graph_of(weight, torch.ops.mkldnn._reorder_linear_weight, 16)
    packed = folded(keeper, module)["_reorder_linear_weight"]
    keeper.add_constants(str(tmp_path), {"packed": packed, "original": module.weight})
    facts = {fact["name"]: fact for fact in keeper.facts(str(tmp_path))}
    assert sorted(facts) == ["original", "packed"]
    assert facts["packed"]["arguments"] == ["original", "16"]
    assert (tmp_path / "probe_constants" / facts["original"]["saved"]).stat().st_size == 48 * 32 * 4


def test_a_weight_that_was_packed_unseen_is_opaque(tmp_path: Path) -> None:
    keeper = ConstantKeeper(unlimited=False)
    keeper.add_constants(str(tmp_path), {"w": torch.randn(4, 4).to_mkldnn()})
    (fact,) = keeper.facts(str(tmp_path))
    assert (fact["kind"], fact["not_kept"]) == ("opaque", "unknown-packing")


def test_a_view_keeps_the_bytes_that_it_spans(tmp_path: Path) -> None:
    table = torch.arange(24, dtype=torch.uint8).reshape(4, 6)
    keeper = ConstantKeeper(unlimited=False)
    keeper.add_constants(str(tmp_path), {"rows": table[1:3, 2:5]})
    (fact,) = keeper.facts(str(tmp_path))
    assert (fact["size"], fact["stride"], fact["bytes"]) == ([2, 3], [6, 1], 9)
    assert (tmp_path / "probe_constants" / "rows.bin").read_bytes() == bytes(range(8, 17))


def test_large_constants_are_kept_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "LARGEST_CONSTANT", 100)
    monkeypatch.setattr(constants, "LARGEST_CONSTANTS", 150)
    values = {"small": torch.ones(20), "large": torch.ones(30), "one_more": torch.zeros(20)}
    keeper = ConstantKeeper(unlimited=False)
    keeper.add_constants(str(tmp_path), values)
    reasons = {fact["name"]: fact.get("not_kept") for fact in keeper.facts(str(tmp_path))}
    assert reasons == {"small": None, "large": "too-large", "one_more": "graph-too-large"}
    keeper = ConstantKeeper(unlimited=True)
    keeper.add_constants(str(tmp_path), values)
    assert all(fact["saved"] for fact in keeper.facts(str(tmp_path)))
