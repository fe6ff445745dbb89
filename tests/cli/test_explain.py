"""`probe explain`: what the code of a cause means, the list of codes, and what is near an unknown one."""

from __future__ import annotations

import json

import pytest
from inline_snapshot import snapshot

import inductor_probe as ip
from inductor_probe.catalogue import KINDS, codes
from inductor_probe.catalogue.schema import with_causes
from inductor_probe.model.output import output_schema
from tests.fuzzing.tries import ask
from tests.schemas import schema_faults


def screen(*words: str) -> str:
    answer = ask(["explain", *words], columns=80)
    assert answer.status == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    return answer.out


def test_a_page_of_a_code() -> None:
    assert screen("fusion-size-limit") == snapshot("""\
fusion-size-limit  fusion
  torch decides which nodes are fused, and what keeps others apart
! refused: <first> and <second> are not fused
  cause       fused, they would be <nodes> nodes[, and a fused node has at most
              <limit>]
  in short    <nodes> nodes[ > <limit>]
  decided in  InductorChoices.can_fuse (torch/_inductor/choices.py)
  example     (x + 1, x * 2), x: float32 (64, 64), with max_fusion_size = 1
  changed by  torch._inductor.config.max_fusion_size: lets a fused node have as
              many nodes
  or by       probe whatif SCRIPT --fuse op3,op4: for these names alone
  results     not known to differ but by rounding: probe whatif compares them

operand       type         what it is
nodes         size, nodes  of the fused node
limit         size         torch fuses no more
shared_bytes  size, bytes  that torch counts as shared
""")


def test_a_code_in_brackets_as_the_screen_has_it() -> None:
    assert screen("[fusion-size-limit]") == screen("fusion-size-limit")


def test_a_code_of_several_kinds_shows_each() -> None:
    heads = [line for line in screen("loop-orders-off").splitlines() if line.startswith("loop-orders-off")]
    assert heads == ["loop-orders-off  layout", "loop-orders-off  loops"]
    assert screen("loop-orders-off", "--kind", "loops").startswith("loop-orders-off  loops")


def test_a_change_that_changes_results_says_so() -> None:
    page, other = (" ".join(screen(code).split()) for code in ("fallback-random", "no-lowering"))
    assert "eager mode [results may differ]" in page
    assert "[results may differ]" not in other
    assert "results not known to differ but by rounding" in other


def test_the_list_has_every_code_below_its_kind() -> None:
    text = screen()
    lines = text.splitlines()
    assert [line.partition(":")[0] for line in lines if ": torch decides" in line] == [*KINDS]
    starts = {line.partition(" ")[0] for line in lines}
    assert {*codes()} | {"turned", "unlisted-test"} <= starts
    assert "threads" not in screen("--kind", "tiling,configs")


def test_an_unknown_code_offers_near_ones() -> None:
    answer = ask(["explain", "fusion-size-limits"])
    assert answer.status == 2
    assert "no cause has the code fusion-size-limits" in answer.err
    assert "did you mean fusion-size-limit" in answer.err
    answer = ask(["explain", "fusion-size-limit", "--kind", "tiling"])
    assert "no cause of tiling has the code fusion-size-limit" in answer.err


def test_json_and_python_have_the_entry() -> None:
    answer = ask(["explain", "fusion-size-limit", "--json"])
    printed = json.loads(answer.out)
    assert schema_faults("explain", printed) == []
    [row] = printed["rows"]
    assert row["operands"][0] == {
        "name": "nodes",
        "type": "size",
        "text": "of the fused node",
        "unit": "nodes",
    }
    assert [change["type"] for change in row["changes"]] == ["setting", "flip"]
    [explanation] = ip.explain("fusion-size-limit")
    assert explanation.function == "InductorChoices.can_fuse"
    with pytest.raises(ip.NotFoundError):
        ip.explain("too-hot")


def test_the_schema_of_decisions_has_codes_and_operands() -> None:
    properties = with_causes(output_schema("why"))["$defs"]["Decision"]["properties"]
    assert {*properties["cause"]["examples"]} == {*codes()}
    shared = properties["operands"]["properties"]["shared_bytes"]
    assert "fusion: that torch counts as shared (bytes)" in shared["description"]
