"""The configs of a Triton kernel, from what the harness writes to the table."""

from __future__ import annotations

import json

import pytest
from inline_snapshot import snapshot

from inductor_probe.api.rows import ConfigSweeps
from inductor_probe.harness.configs import ConfigTime as Timed
from inductor_probe.harness.remarks import remark
from inductor_probe.model.autotuning import ConfigSweep
from inductor_probe.model.codec import from_json
from inductor_probe.report.pages.configs import sweep_sentence
from inductor_probe.report.terminal import to_text

CACHE = remark("autotune-cache-in-use", function="fn", torch="2.11")
CONFIGS = [
    Timed(
        {"XBLOCK": 64, "num_warps": 4},
        "asked",
        registers=32,
        spills=0,
        shared=0,
        correct=True,
        samples=[1e-6],
    ),
    Timed({"XBLOCK": 8, "num_warps": 4}, "inductor", chosen=True, correct=True, samples=[2e-6, 2e-6, 3e-6]),
    Timed({"XBLOCK": 512}, "scaled", remark=remark("config-not-run", error="out of resource: shared memory")),
]


def sweep(configs: list[Timed]) -> ConfigSweep:
    """Return what probe reads of what the harness writes."""
    written = {"kernel": "triton_poi_0", "configs": [each.plain() for each in configs], "remarks": [CACHE]}
    return from_json(ConfigSweep, json.loads(json.dumps(written)))


def test_a_sweep_is_a_table_with_the_chosen_config_and_a_sentence() -> None:
    assert to_text(ConfigSweeps([sweep(CONFIGS)]).document, 100) == snapshot("""\
configs of triton_poi_0
   XBLOCK  num_warps    us   mad  of chosen  regs  spills  shared  from      note
       64          4  1.00  0.00     0.500x    32       0       0  asked
*       8          4  2.00  0.00     1.000x                        inductor
      512                                                          scaled    does not run: out of
                                                                             resource: shared memory
XBLOCK=64 num_warps=4 takes 0.500x the time of the config that inductor chose; 1 of 3 have no time
fn is not available on torch 2.11: the cache may hide configs\
""")


def test_json_of_a_sweep_has_the_fields_of_the_record() -> None:
    (table,) = json.loads(json.dumps(ConfigSweeps([sweep(CONFIGS)]).json))["rows"]
    assert table["kernel"] == "triton_poi_0"
    assert table["configs"][0]["values"] == {"XBLOCK": 64, "num_warps": 4}
    assert table["configs"][2]["median"] is None


@pytest.mark.parametrize(
    ("configs", "sentence"),
    [
        (CONFIGS[1:2], "no config is more than 1 % faster than the one that inductor chose"),
        (CONFIGS[:1], "the config that inductor chose has no time"),
        (CONFIGS[2:], "the config that inductor chose has no time; 1 of 1 have no time"),
    ],
)
def test_what_cannot_be_compared_is_said(configs: list[Timed], sentence: str) -> None:
    assert sweep_sentence(sweep(configs).configs) == sentence
