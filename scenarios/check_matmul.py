"""Matrix products with something to do to each element of the result.

By default the product is an extern call and the rest a kernel of its own. With `max_autotune` inductor times
its templates against the extern call, and a template that wins may take the rest in as its epilogue: Triton's
on CUDA, C++'s on the CPU, which has one for `bmm` of inputs and needs constant weights for the others. The
`template` cases leave the extern call out of the choice.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own name for it
from rounding import steps, total
from tensors import FLOATS, dtype_of, normal

from inductor_probe.scenario import Case, Check, Scenario


def mm(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return gelu(a b) + bias."""
    return F.gelu(a @ b) + bias


def addmm(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return relu(a b + bias): the bias belongs to the product."""
    return torch.relu(torch.addmm(bias, a, b))


def bmm(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return sigmoid(a b) * bias for each pair of matrices."""
    return torch.sigmoid(torch.bmm(a, b)) * bias


OPS = {"mm": mm, "addmm": addmm, "bmm": bmm}


def build(case: Case) -> Check:
    """Make matrices of deviation 1 and 1 / sqrt(k), so that a product is a sum of k terms and has deviation
    1.

    It is up to 6, and rounded with what comes after it three times. No epilogue here is steeper than 1.2.
    """
    dtype, k = dtype_of(case), case["k"]
    batch = (case["batch"],) if case["op"] == "bmm" else ()
    function = OPS[case["op"]]
    a = normal(case, *batch, case["m"], k)
    b = normal(case, *batch, k, case["n"]) / k**0.5
    return Check(
        function,
        (a, b, normal(case, case["n"])),
        references={"float64": lambda *inputs: function(*(tensor.double() for tensor in inputs))},
        tolerance=steps(dtype, 3, largest=6) + 1.2 * total(dtype, k, k**-0.5),
        options={
            "dynamic": case["dynamic"],
            "options": {
                "max_autotune": case["max_autotune"],
                "max_autotune_gemm_backends": case["backends"],
            },
        },
    )


LARGE = {"device": "cuda", "dtype": "bfloat16", "m": 4096, "n": 4096, "k": 4096}
HEADS = {"op": "bmm", "device": "cuda", "dtype": "bfloat16", "batch": 64, "m": 1024, "n": 1024, "k": 128}

scenario = Scenario(
    build,
    defaults={
        "device": "cpu",
        "dtype": "float32",
        "op": "mm",
        "max_autotune": False,
        "backends": "ATEN,TRITON,CPP",
        "batch": 4,
        "m": 64,
        "n": 96,
        "k": 128,
        "dynamic": False,
    },
    cases={
        "mm": {},
        "addmm": {"op": "addmm"},
        "bmm": {"op": "bmm"},
        "bmm_max_autotune": {"op": "bmm", "max_autotune": True},
        "bmm_template": {"op": "bmm", "max_autotune": True, "backends": "CPP"},
        "cuda_mm": {**LARGE},
        "cuda_addmm": {"op": "addmm", **LARGE},
        "cuda_bmm": {**HEADS},
        "cuda_mm_max_autotune": {"max_autotune": True, **LARGE},
        "cuda_addmm_max_autotune": {"op": "addmm", "max_autotune": True, **LARGE},
        "cuda_bmm_max_autotune": {"max_autotune": True, **HEADS},
        "cuda_mm_template": {"max_autotune": True, "backends": "TRITON", **LARGE},
        "cuda_bmm_template": {"max_autotune": True, "backends": "TRITON", **HEADS},
    },
    choices={"dtype": FLOATS, "op": tuple(OPS)},
)

if __name__ == "__main__":
    scenario.main()
