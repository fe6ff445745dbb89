"""A wrong call followed down: through decompositions, passes and launches, to what is wrong first."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from inductor_probe.accuracy.calls import CheckedCall
from inductor_probe.accuracy.decompositions import Decompositions
from inductor_probe.accuracy.faults import Fault
from inductor_probe.accuracy.kernels import explain
from inductor_probe.accuracy.launches import check_launches
from inductor_probe.accuracy.passes import check_passes
from inductor_probe.accuracy.stages import Lowered, Stages
from inductor_probe.harness.own_calls import COMPILED, EAGER


def follow(call: CheckedCall, stages: Stages) -> Iterator[Fault]:
    """Yield what is wrong in a call, in the order in which the compiler comes to it."""
    with stages.recorded() as runs:
        call.run(COMPILED)
    table = Decompositions()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        call.run(EAGER, table)
    yield from table.faults.values()
    yield from check_passes(runs)
    for ran in runs:
        if isinstance(ran.of, Lowered):
            launched = check_launches(ran.of, ran.inputs)
            for line in dict.fromkeys(one.line for one in launched.wrong):
                wrong = [one for one in launched.wrong if one.line == line]
                yield from explain(ran.of, ran.inputs, wrong, launched.written[line])
