"""Compiles that fail, one at each stage; the script catches every exception."""

from unittest.mock import patch

import torch
import torch._dynamo
from torch._inductor import decomposition, lowering
from torch._inductor.codegen.cpp import CppKernelProxy
from torch._inductor.scheduler import Scheduler

aten = torch.ops.aten


def refuse(*args, **kwargs):
    raise RuntimeError("refused by the script")


def in_dynamo(x):
    y = x + 1
    print("a graph break")
    return y * 2


def in_decomposition(x):
    return torch.nn.functional.silu(x) * 2


def in_lowering(x):
    y = x * 2
    return torch.digamma(y) - 1


def in_scheduling(x):
    return x.cos() + 3


def in_code_generation(x):
    return x.sin() - 4


def in_compiler(x):
    return torch.sum(x, 0, dtype=torch.bool)


def in_guards(x):
    return x @ torch.ones(16, 10) + torch.zeros(6, 10)


def in_backward(x):
    return torch.sinh(x) * 5


def attempt(function, x, **options):
    torch._dynamo.reset()
    try:
        result = torch.compile(function, **options)(x)
        if result.requires_grad:
            result.sum().backward()
        print(function.__name__, "compiled")
    except Exception as error:
        print(function.__name__, "raised", type(error).__name__)


x = torch.randn(6, 16)
attempt(in_dynamo, x, fullgraph=True)
with patch.dict(decomposition.decompositions, {aten.silu.default: refuse}):
    decomposition.fast_random_decomps.cache_clear()
    attempt(in_decomposition, x)
decomposition.fast_random_decomps.cache_clear()
with patch.dict(lowering.lowerings, {aten.digamma.default: refuse}):
    attempt(in_lowering, x)
with patch.object(Scheduler, "fuse_nodes", refuse):
    attempt(in_scheduling, x)
with patch.object(CppKernelProxy, "codegen_nodes", refuse):
    attempt(in_code_generation, x)
attempt(in_compiler, torch.arange(32).view(4, 8))
marked = x.clone()
torch._dynamo.mark_dynamic(marked, 0)
attempt(in_guards, marked)
with patch.dict(lowering.lowerings, {aten.cosh.default: refuse}):  # the derivative of sinh
    attempt(in_backward, x.clone().requires_grad_())
torch._dynamo.reset()
