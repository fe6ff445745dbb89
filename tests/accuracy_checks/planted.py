"""A script in which each function is wrong by one layer of the compiler: what is planted stands above it."""

import torch
from torch._inductor import config, decomposition, lowering
from torch._inductor.codegen.cpp import CppVecOverrides
from torch._inductor.dependencies import WeakDep
from torch._inductor.scheduler import BaseSchedulerNode
from torch._inductor.virtualized import ops

aten = torch.ops.aten
torch.manual_seed(0)
torch.set_num_threads(1)

decomposition.decompositions[aten.softplus.default] = lambda x, beta=1, threshold=20: (
    (1 + x.exp()).log() + 0.01
)
decomposition.decompositions[aten.elu_backward.default] = lambda grad, *args: grad * 1.01
lowering.lowerings[aten.tanh.default] = lowering.make_pointwise(
    lambda x: ops.mul(ops.tanh(x), ops.constant(1.01, torch.float32))
)
CppVecOverrides.sin = staticmethod(lambda x: f"{x}.cos()")
add_fake_dep = BaseSchedulerNode.add_fake_dep
BaseSchedulerNode.add_fake_dep = lambda node, dep: (
    None if isinstance(dep, WeakDep) else add_fake_dep(node, dep)
)


def swapped(graph: torch.fx.Graph) -> None:
    for node in list(graph.nodes):
        if node.target is aten.sub.Tensor:
            with graph.inserting_before(node):
                other = graph.call_function(aten.sub.Tensor, (node.args[1], node.args[0]))
                other.meta.update(node.meta)
            node.replace_all_uses_with(other)
            graph.erase_node(node)


config.post_grad_custom_post_pass = swapped


def decomposed(x):
    return torch.nn.functional.softplus(x) * 2


def lowered(x):
    h = (x * 2).tanh()
    return h.sum(0), h.exp()


def coded(x):
    return (x + 1).sin() * 3


def passed(x, y):
    return (x - y).relu() + 1


def twice(x):
    return x.sin() * 2 + (x * 3).tanh(), x + 1


def in_place(x):
    x.mul_(2)
    x.sin_()


def overwritten(x, y):
    flipped = x.flip(0) + y
    x.add_(y)
    return flipped


@torch.library.custom_op("planted::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


doubled.register_fake(torch.empty_like)


@torch.library.custom_op("planted::add_into", mutates_args=("out",))
def add_into(x: torch.Tensor, out: torch.Tensor) -> None:
    out.add_(x)


@torch.library.custom_op("planted::pair", mutates_args=())
def pair(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x + 1, x.clone()


pair.register_fake(lambda x: (torch.empty_like(x), torch.empty_like(x)))


def of_custom_operators(x):
    between = doubled(x + 1).sin()
    out = torch.zeros_like(x)
    add_into(between, out)
    more, same = pair(out)
    return more.exp() + same, out


def of_consequences(x, w):
    waves = (x @ w).sin()
    shares = waves.exp()
    return (shares / shares.sum(-1, keepdim=True)) @ w


def right(x):
    return x.exp().cumsum(0).mean(-1)


def rounded(x):
    return x / x.half().float()


def resized(x):
    return x.flip(0).tanh()


class Trained(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.last(torch.nn.functional.elu(self.first(x)))


if __name__ == "__main__":
    x = torch.randn(16, 32)
    for function in (decomposed, lowered, coded, twice, right, rounded):
        torch.compile(function)(x)
    torch.compile(passed)(x, torch.randn(16, 32))
    torch.compile(in_place)(x.clone())
    torch.compile(of_custom_operators)(x)
    torch.compile(of_consequences)(x, torch.randn(32, 32))
    torch.compile(overwritten)(x.clone(), torch.randn(32))
    dynamic = torch.compile(resized, dynamic=True)
    for size in (8, 12):
        dynamic(torch.randn(size, 32))
    torch.compile(Trained())(torch.randn(5, 8)).square().sum().backward()
