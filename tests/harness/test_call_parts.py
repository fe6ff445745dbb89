"""What a call of a compiled callable consists of, in the process that compiled it."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._inductor.codecache import PyCodeCache
from torch._inductor.output_code import CompiledFxGraph

from inductor_probe.bench.call_parts import call_parts_of
from inductor_probe.harness.call_parts import NothingCompiledError, measure_call_parts
from inductor_probe.harness.marked_wrappers import note_times
from inductor_probe.model.codec import from_json
from inductor_probe.model.timing import CallSamples

WRAPPER = """void inductor_entry_impl(
    AtenTensorHandle* input_handles
) {
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, size, stride, &buf0_handle));
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_cpu_addmm_out(buf0, arg0_1, arg1_1, arg2_1, 1L, 1L));
    cpp_fused_tanh_0((float*)(buf0.data_ptr()));
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(arg0_1, buf0, 0));
} // inductor_entry_impl
"""


def measured(function: Any, *args: Any, **options: Any) -> dict[str, Any]:
    return measure_call_parts(function, args, {}, 0.1, random.Random(0), **options)  # noqa: S311


def test_a_call_that_dynamo_compiled_nothing_of_has_no_parts() -> None:
    with pytest.raises(NothingCompiledError):
        measured(torch.sin, torch.ones(3))


def test_a_wrapper_in_cpp_notes_what_it_runs_and_nothing_else() -> None:
    text, lines = note_times(WRAPPER)
    assert [(line.kind, line.target, line.first) for line in lines] == [
        ("library", "aoti_torch_cpu_addmm_out", 5),
        ("launch", "cpp_fused_tanh_0", 6),
        ("copy", "aoti_torch_copy_", 7),
    ]
    assert "probe_note(1);\n    cpp_fused_tanh_0((float*)(buf0.data_ptr()));\nprobe_note(-2);" in text
    assert text.count("probe_note(") == 7  # its definition, too


@pytest.mark.compiles
@pytest.mark.filterwarnings("ignore")  # of torch about its own parts
@pytest.mark.parametrize("long", [False, True], ids=["a level at a time", "long calls: all levels at once"])
def test_parts_of_a_forward_with_a_break_and_its_backward_and_all_is_put_back(
    long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if long:
        monkeypatch.setattr("inductor_probe.harness.call_parts.LONG_S", 0.0)
    weight = torch.ones(8, requires_grad=True)

    def function(x: torch.Tensor) -> torch.Tensor:
        y = (x * weight).sin()
        torch._dynamo.graph_break()
        return y.cos()

    compiled, x = torch.compile(function), torch.rand(8)

    def backward(out: torch.Tensor) -> None:
        out.sum().backward()

    for _ in range(2):
        backward(compiled(x))
    before = CompiledFxGraph.__call__, [_code(module) for module in PyCodeCache.modules]
    restored: list[int] = []
    found = measured(compiled, x, backward=backward, restore=lambda: restored.append(1), most=2)
    assert (CompiledFxGraph.__call__, [_code(module) for module in PyCodeCache.modules]) == before
    assert not any("probe_mark" in vars(module) for module in PyCodeCache.modules)
    assert restored
    assert (found["device"], found["graphs"], found["remarks"]) == ("cpu", 2, [])
    kinds = {part["kind"] for part in found["parts"]}
    assert kinds >= {
        "compiled", "forward", "dynamo", "between", "fx", "fx-backward", "call", "call-backward", "kernel",
        "guards",
    }  # fmt: skip
    parts = call_parts_of([from_json(CallSamples, json.loads(json.dumps(found)))])
    host = [row for row in parts.rows if row.side == "host"]
    assert sum(row.seconds for row in host[:-1]) == pytest.approx(host[-1].seconds)
    assert all(row.seconds >= 0 for row in host)
    assert {"guards", "entry", "between", "autograd", "wrapper", "kernel", "backward"} <= {
        row.kind for row in host
    }


def _code(module: SimpleNamespace) -> Any:
    """Return the code of a wrapper; None of a module without one: kernels that other tests compiled."""
    call = getattr(getattr(module, "Runner", module), "call", None)
    return getattr(call, "__code__", None)
