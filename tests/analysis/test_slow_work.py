"""What a loop nest may spend its time on, in dumps and on screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.annotation.annotate import nest_origins
from inductor_probe.analysis.slow_work import points, slow_operations
from inductor_probe.api.profile import joined
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.profile import NestTime, Profile
from inductor_probe.model.timing import PeakRate, Roofline
from inductor_probe.report.document import Line
from inductor_probe.report.pages.profile import slow_lines

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk

Read = Callable[..., CompiledGraph]
ROOFLINE = Roofline("2.13.0", "cpu", 1, 1 << 20, 1 << 25, (PeakRate("copy", "cache", 1 << 19, 1e9, 9),))


@pytest.mark.parametrize(
    ("name", "kernel", "nest", "operations", "count"),
    [
        ("torch-2.13.0-cpu-programs/control_flow", "cpp_fused__softmax_5", 1, ("exp", "div"), 256),
        ("torch-2.13.0-cpu-programs/masks", "cpp_fused_constant_pad_nd_flip", 3, ("sigmoid",), 150),
        ("torch-2.13.0-cpu/dynamic_shapes", "cpp_fused_cos_sin_sum_0", 2, ("cos",), 680),
        (
            "torch-2.13.0-cpu/scatter_into_clone",
            "cpp_fused_index_put_sum_0",
            2,
            ("indirect loads", "atomic adds"),
            2160,
        ),
    ],
)
def test_the_slow_operations_of_a_loop_nest(  # noqa: PLR0917 - a table
    read: Read, name: str, kernel: str, nest: int, operations: Sequence[str], count: int
) -> None:
    graph = read(name)
    full = next(each.name for each in graph.code.kernels if each.name.startswith(kernel))
    origin = nest_origins(graph, full)[nest - 1]
    assert slow_operations(graph, origin.nodes) == operations
    assert points(graph, origin.nodes, origin.nest) == count


def _text(line: object) -> str:
    assert isinstance(line, Line)
    return line.text if isinstance(line.text, str) else str(line.text)


def test_a_nest_far_from_a_copy_says_what_else_it_has_and_a_near_one_does_not(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rates far below any roofline stood there without a word of `tanh`."""
    monkeypatch.setattr("inductor_probe.machine.cpu.clock_hertz", lambda: 2e9)
    graph = read("torch-2.13.0-cpu/dynamic_shapes")  # loop nest 2: the cosines of 680 floats, 2 x 2720 bytes
    nest = NestTime("cpp_fused_cos_sin_sum_0", 2, "vectorised", 1, 2, (), 34e-6, 1e-9, 0.9, launches=1)
    whole = Profile(
        graph.name, "2.13.0", "cpu", 1, "tsc", 1e-4, 1e-4, 0.0, 9, (), (nest,), (), (), (), (), ROOFLINE
    )

    def lines(made: Profile) -> list[str]:
        shown = joined(cast("GraphOnDisk", SimpleNamespace(generated=graph)), made, None, {})
        return [_text(line) for line in slow_lines(shown)]

    assert lines(whole)[0] == (
        "loop nest 2 of cpp_fused_cos_sin_sum_0: cos: 100 cycles an element, 16.0 % of the rate of a copy"
    )
    assert "is inferred" in lines(whole)[1]
    for near in ({"seconds": 9e-6}, {"share": 0.01}, {"uncertainty": 1.0}):
        assert lines(replace(whole, nests=(replace(nest, **near),))) == []
    assert lines(replace(whole, roofline=None)) == []
