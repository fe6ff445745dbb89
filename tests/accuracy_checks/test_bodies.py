"""Launches and loop bodies of right programs give what eager gives, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from inductor_probe.accuracy_checks.bodies import Bodies, NotEvaluableError
from inductor_probe.accuracy_checks.launches import check_launches, stands_for
from inductor_probe.accuracy_checks.stages import Lowered, Ran, Stages
from inductor_probe.capture.torch_places import wraps_undone

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.takes(40),
    pytest.mark.usefixtures("warm"),
    pytest.mark.filterwarnings("ignore"),  # torch's own, as it is imported and compiles
]


def pooled(x: torch.Tensor) -> Any:
    return torch.nn.functional.max_pool2d(x, 2), x.flip(-1).cumsum(2), x.mean((2, 3))


def gathered(x: torch.Tensor) -> Any:
    index = torch.tensor([3, 0, -1, 2])
    return x[:, :, index], x.softmax(-1), x.var(1), torch.cat([x[..., :3], x[..., 2:] * 2], -1)


def whole(x: torch.Tensor) -> Any:
    n = (x * 10).to(torch.int32)
    return n // 3, n % 7, (n << 1) ^ 5, x.argmax(-1), n.amax(1), (x > 0.2).any(-1), n.sum()


def halves(x: torch.Tensor) -> Any:
    h = x.bfloat16()
    return (h * h + h).sum(-1), torch.where(h > 0, h, -h), h.float().exp()


def written(x: torch.Tensor) -> Any:
    x.mul_(2)
    y = torch.zeros(4, 40).index_put_((torch.tensor([1, 2]),), x[0, 0, :2].repeat(1, 5)[:, :40])
    return y, x.sin()


def drawn(x: torch.Tensor) -> Any:
    return torch.nn.functional.dropout(x, 0.5) + 1, torch.rand(5)


def normal(x: torch.Tensor) -> Any:
    y = torch.nn.functional.layer_norm(x, x.shape[-1:])
    return torch.nn.functional.conv2d(y, torch.ones(4, 3, 3, 3)).relu().std()


PROGRAMS = [pooled, gathered, whole, halves, written, drawn, normal]


def ran(function: Callable[..., Any], *args: torch.Tensor) -> list[Ran]:
    """Compile a function, and return what its graphs got."""
    stages = Stages()
    with wraps_undone() as replace_imported:
        stages.install()
        replace_imported()
        settings = {"fx_graph_cache": False, "fallback_random": True}
        with (
            torch._inductor.config.patch(settings),
            torch._functorch.config.patch(enable_autograd_cache=False),
        ):
            torch._dynamo.reset()
            compiled = torch.compile(function)
            with stages.recorded() as runs, torch.no_grad():
                compiled(*args)
    return [one for one in runs if isinstance(one.of, Lowered)]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_launches_of_a_right_program_are_right(function: Callable[..., Any]) -> None:
    torch.manual_seed(1)
    runs = ran(function, torch.randn(2, 3, 8, 40))
    assert runs
    for one in runs:
        found = check_launches(one.of, one.inputs)
        assert not found.wrong, [(wrong.buffer, wrong.judged) for group, _ in found.wrong for wrong in group]
        assert not found.problem
        assert found.compared > 0


@pytest.mark.parametrize("function", [pooled, gathered, whole, halves, normal], ids=lambda one: one.__name__)
def test_a_loop_body_gives_what_eager_gives(function: Callable[..., Any]) -> None:
    torch.manual_seed(2)
    evaluated = 0
    for one in ran(function, torch.randn(2, 3, 8, 40)):
        bodies, stands = Bodies(one.of, one.inputs), stands_for(one.of)
        for node in stands.node.values():
            right = bodies._all.get(node)
            if right is None or not right.numel():
                continue
            for place in {0, right.numel() // 2, right.numel() - 1}:
                index = tuple(int(each) for each in torch.unravel_index(torch.tensor(place), right.shape))
                try:
                    value, _ = bodies.value_of(node, index)
                except NotEvaluableError:
                    continue
                evaluated += 1
                expected = right[index].double()
                assert torch.as_tensor(value).double().item() == pytest.approx(
                    expected.item(), rel=2e-2 if function is halves else 1e-4, abs=1e-5
                ), (node, index)
    assert evaluated >= 6
