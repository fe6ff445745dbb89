"""What came of PyTorch's samples of operators: the sentence of each code of `model/op_check.py`."""

from __future__ import annotations

from collections.abc import Mapping

from inductor_probe.catalogue.templates import fill
from inductor_probe.model.op_check import FailureCode, FailureKind, OpFailure

KIND_WORDS: Mapping[FailureKind, str] = {
    "raises": "raises, where eager does not",
    "values": "wrong values",
    "form": "wrong dtype, size or number of outputs",
    "strides": "other strides than eager",
    "gradients": "wrong gradients",
    "killed": "killed the process",
    "decomposition-not-called": "the decomposition was not called",
}
FAILURE_SENTENCES: Mapping[FailureCode, str] = {
    "raises": "{error}: {text}",
    "outputs": "compiled returns {compiled:# value}, eager {eager}",
    "value": "output {number} is {compiled}, eager gives {eager}",
    "no-gradient": "gradient {number} is None if compiled",
    "gradient-for-none": "gradient {number} is not None if compiled",
    "type": "{what} {number} is of type {compiled}, eager gives a tensor",
    "dtype": "{what} {number} has dtype {compiled}, eager gives {eager}",
    "size": "{what} {number} has size ({compiled}), eager gives ({eager})",
    "stride": "{what} {number} of size ({size}) has stride ({compiled}), eager gives ({eager})",
    "elements": "{what} {number} is {compiled}[ at ({place})], eager gives {eager}[, float64 {float64}]; "
    "{wrong} of {elements:# element} {wrong:?is/are} wrong, by {error} at most",
    "signal": "the process was killed by signal {signal}",
    "status": "the process ended with status {status}",
    "not-called": "torch traced the sample without calling it",
}


def failure_sentence(failure: OpFailure) -> str:
    """Return what was seen in the smallest sample: `output 0 has dtype float32, eager gives uint8`."""
    return fill(FAILURE_SENTENCES[failure.code], dict(failure.numbers))
