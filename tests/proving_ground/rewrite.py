"""Which pass or pattern rewrote FX nodes: a program for each cause, with its flip."""

from __future__ import annotations

import torch

from inductor_probe.scenario import Scenario
from tests.proving_ground.programs import Program, scenario_of
from tests.proving_ground.tensors import floats


def attention(values: torch.Tensor) -> torch.Tensor:
    """Return attention as it is written out: a pattern of fuse_attention.py."""
    return (values @ values.transpose(-2, -1) / 4).softmax(-1) @ values


def attention_of_sums(values: torch.Tensor) -> torch.Tensor:
    """Return the same with weights that are normalised otherwise, which is no pattern."""
    weights = (values @ values.transpose(-2, -1) / 4).exp()
    return (weights / weights.sum(-1, keepdim=True)) @ values


def copied(values: torch.Tensor) -> torch.Tensor:
    """Return a sum of a copy."""
    return values.clone() + 1


def add_zeros(values: torch.Tensor) -> torch.Tensor:
    """Return the values plus a tensor of zeros."""
    return (values + torch.zeros_like(values)).sin()


def add_ones(values: torch.Tensor) -> torch.Tensor:
    """Return the values plus a tensor of ones."""
    return (values + torch.ones_like(values)).sin()


def scaled_ones(values: torch.Tensor) -> torch.Tensor:
    """Return the values plus a constant that is computed."""
    return values + torch.ones_like(values) * 3


def affine(values: torch.Tensor) -> torch.Tensor:
    """Return a product with a bias: inductor keeps both in one call on a CPU."""
    return torch.addmm(values[0], values, values).relu()


def product(values: torch.Tensor) -> torch.Tensor:
    """Return the same without a bias."""
    return (values @ values).relu()


def noise(values: torch.Tensor) -> torch.Tensor:
    """Return two tensors of random numbers, whose seeds are made in one call."""
    return values + (torch.rand(values.shape) < 2) * (torch.rand(values.shape) < 2)


PROGRAMS = {
    "attention": Program(
        code="pattern",
        function=attention,
        inputs=lambda: floats(2, 4, 16, 16),
        among=("replaced",),
        operands={"pattern": "_sfdp_pattern_1_inference", "stage": "joint_graph"},
        flipped_function=attention_of_sums,
    ),
    "attention_without_patterns": Program(
        code="pattern",
        function=attention,
        inputs=lambda: floats(2, 4, 16, 16),
        among=("replaced",),
        flip={"pattern_matcher": False},
    ),
    "attention_without_pass": Program(
        code="pattern",
        function=attention,
        inputs=lambda: floats(2, 4, 16, 16),
        among=("replaced",),
        flip={"disabled_passes": "pass_pattern_0,pass_pattern_1"},
    ),
    "copy": Program(
        code="no-op",
        function=copied,
        inputs=lambda: floats(64),
        operands={"nodes": ("clone",), "operators": ("aten.clone.default",)},
        flip={"disabled_passes": "remove_noop_ops"},
    ),
    "zeros": Program(
        code="identity",
        function=add_zeros,
        inputs=lambda: floats(64),
        operands={"nodes": ("add",), "by": ("arg0_1",), "stage": "joint_graph"},
        flipped_function=add_ones,
    ),
    "zeros_kept": Program(
        code="identity",
        function=add_zeros,
        inputs=lambda: floats(64),
        flip={"joint_graph_constant_folding": False},
    ),
    "constant": Program(
        code="uniform-value",
        function=scaled_ones,
        inputs=lambda: floats(64),
        operands={"value": "3.0", "nodes": ("mul",)},
        flip={"joint_graph_constant_folding": False},
    ),
    "bias": Program(
        code="check-refused",
        function=affine,
        inputs=lambda: floats(16, 16),
        operands={"check": "should_prefer_unfused_addmm", "patterns": ("unfuse_bias_add_to_pointwise",)},
        flipped_function=product,
    ),
    "seeds": Program(
        code="pass",
        function=noise,
        inputs=lambda: floats(64),
        about=(
            "inductor_seed_default_1",
            "inductor_seed_default",
            "inductor_seeds_default",
            "inductor_lookup_seed_default",
            "inductor_lookup_seed_default_1",
        ),
        operands={"pass": "fuse_seed_creation_pass"},
        flip={"fallback_random": True},
    ),
}

scenario: Scenario = scenario_of(PROGRAMS)

if __name__ == "__main__":
    scenario.main()
