"""Two devices, one program: kernels of both beside each other, by what of the program they compute.

A kernel is tied to the one of the other side that is most like it: by the FX nodes and scheduler nodes that
both have, the lines of the user's program, and the operators (each a Jaccard index, from 0 to 1). What ties
hold together is a group: `kernel_ab` of a CPU and `kernel_a`, `kernel_b` of a GPU. A library function is one
row for all of its calls, and tied to others alone: `addmm` that is called in each layer would hold the whole
network together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from inductor_probe.analysis.diff.fx import match_fx
from inductor_probe.analysis.diff.graphs import described
from inductor_probe.analysis.diff.matching import match_nodes
from inductor_probe.analysis.diff.pairing import components
from inductor_probe.analysis.diff.side import ComparedGraph
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.machine.roofline import roofline_row, runs_kernel
from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.diff import DeviceDiff, DeviceGroup, DeviceKernel
from inductor_probe.model.kernels import KernelRow
from inductor_probe.model.profile import Profile, ProfilePart
from inductor_probe.model.timing import KernelWork

_Rows = Mapping[str, KernelRow]


def compare_devices(
    a: CompiledGraph, b: CompiledGraph, profile_a: Profile | None, profile_b: Profile | None
) -> DeviceDiff:
    """Pair the kernels of two graphs; a profile of a graph gives times, and shares of the roofline."""
    side_a, side_b = ComparedGraph(a), ComparedGraph(b)
    rows_a, rows_b = ({row.name: row for row in kernel_rows(graph)} for graph in (a, b))
    sides = components(_ties(side_a, side_b, rows_a, rows_b))
    tied = [{name for group in sides for name in group[side]} for side in (0, 1)]
    sides += [((name,), ()) for name in rows_a if name not in tied[0]]
    sides += [((), (name,)) for name in rows_b if name not in tied[1]]
    groups = [
        DeviceGroup(
            tuple(_kernel(rows_a[name], profile_a) for name in rows_a if name in names_a),
            tuple(_kernel(rows_b[name], profile_b) for name in rows_b if name in names_b),
            tuple(dict.fromkeys(op for name in names_a for op in rows_a[name].ops))
            or tuple(dict.fromkeys(op for name in names_b for op in rows_b[name].ops)),
        )
        for names_a, names_b in sides
    ]
    groups.sort(key=_weight, reverse=True)
    return DeviceDiff(
        described(side_a), described(side_b), tuple(groups), profile_a is not None, profile_b is not None
    )


def _weight(group: DeviceGroup) -> tuple[float, int]:
    """Sort by the time on A, then on B, else by bytes."""
    kernels = group.a or group.b
    return sum(kernel.seconds or 0.0 for kernel in kernels), sum(kernel.moved or 0 for kernel in kernels)


def _ties(a: ComparedGraph, b: ComparedGraph, rows_a: _Rows, rows_b: _Rows) -> Iterator[tuple[str, str]]:
    """Yield for each kernel of either side the one of the other that is most like it."""
    fx = match_fx(a.graph.fx, b.graph.fx, a.symbols, b.symbols)
    partners = dict(match_nodes(a, b, fx).partners())
    alike: dict[str, dict[str, float]] = {}
    for name, row in rows_a.items():
        nodes = {f"fx {fx.nodes.get(node, node)}" for node in row.fx}
        nodes |= {partners.get(node, f"A {node}") for node in row.nodes}
        for other, row_b in rows_b.items():
            pairs = (
                (nodes, {*(f"fx {node}" for node in row_b.fx), *row_b.nodes}),
                ({*row.sources}, {*row_b.sources}),
                ({*row.ops}, {*row_b.ops}),
            )
            likeness = sum(len(one & two) / len(one | two) for one, two in pairs if one or two)
            if likeness and (row.backend == "extern") == (row_b.backend == "extern"):
                alike.setdefault(name, {})[other] = likeness
    for name, others in alike.items():
        yield name, max(others, key=others.__getitem__)
    for other in rows_b:
        names = {name: others[other] for name, others in alike.items() if other in others}
        if names:
            yield max(names, key=names.__getitem__), other


def _kernel(row: KernelRow, profile: Profile | None) -> DeviceKernel:
    sizes = [size for size in (row.bytes_read, row.bytes_written) if isinstance(size, int)]
    made = DeviceKernel(row.name, row.nodes, sum(sizes) if len(sizes) == 2 else None)
    if row.bound is not None:
        made = replace(made, bound=row.bound.seconds)
    part = _part(row, profile)
    if part is None or profile is None:
        return made
    made = replace(made, seconds=part.seconds, uncertainty=part.uncertainty)
    if profile.roofline is None or part.seconds <= part.uncertainty:
        return made
    types = [passed.layout.dtype for launch in row.launches for passed in launch.passed if passed.layout]
    work = KernelWork(row.name, part.moved, part.flops, next(iter(types), None))
    shares = roofline_row(work, part.seconds, max(1, part.count), profile.roofline, cold=False)
    known = [share for share in (shares.share, shares.flop_share) if share is not None]
    return replace(made, share=max(known, default=None))


def _part(row: KernelRow, profile: Profile | None) -> ProfilePart | None:
    """Return the time of a kernel on its device: on a CPU that is the host."""
    if profile is None:
        return None
    side = "host" if profile.device == "cpu" else "device"
    parts = (one for one in profile.parts if one.side == side and one.kind in ("kernel", "library"))
    return next((one for one in parts if runs_kernel(row.name, one.kind, one.name)), None)
