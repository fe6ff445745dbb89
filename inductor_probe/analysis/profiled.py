"""How long each node after fusion takes in a call of its graph, as that was profiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from inductor_probe.model.nodes import NodeRow
from inductor_probe.model.profile import Profile


def node_seconds(nodes: Sequence[NodeRow], profile: Profile) -> dict[str, float]:
    """Return the seconds of nodes after fusion, by name.

    On a CPU those of the lines of the wrapper that launch them, launching included; on a GPU those of their
    kernels. What several nodes share is divided by their loop nests, where those were timed, else equally.
    """
    tops = {row.node: row.top or row.node for row in nodes}
    places: dict[int | str, dict[str, None]] = {}
    for row in nodes:
        lines: list[int | str] = [span.first for span in row.link.launches]
        for place in lines if profile.device == "cpu" else [row.link.kernel or ""]:
            places.setdefault(place, {})[tops[row.node]] = None
    nests = _of_nests(profile, tops)
    seconds: dict[str, float] = {}
    for place, whole in _timed(profile):
        names = places.get(place, {})
        weights = {name: nests.get(name, 0.0) for name in names}
        total = sum(weights.values())
        for name, weight in weights.items():
            share = weight / total if total else 1 / len(names)
            seconds[name] = seconds.get(name, 0.0) + max(whole, 0.0) * share
    return seconds


def _timed(profile: Profile) -> Iterator[tuple[int | str, float]]:
    """Yield what was timed: lines of the wrapper, or kernels on a GPU by name."""
    if profile.device == "cpu":
        lines = (line for line in profile.lines if line.kind in ("launch", "library"))
        yield from ((line.span.first, line.seconds) for line in lines)
    else:
        yield from ((part.name, part.seconds) for part in profile.parts if part.side == "device")


def _of_nests(profile: Profile, tops: Mapping[str, str]) -> dict[str, float]:
    """Return the seconds of loop nests by the nodes after fusion that they compute for."""
    seconds: dict[str, float] = {}
    for nest in profile.nests:
        names = {tops[node] for node in nest.nodes if node in tops}
        for name in names:
            seconds[name] = seconds.get(name, 0.0) + max(nest.seconds, 0.0) / len(names)
    return seconds
