"""Boxes with arrows between them, placed in layers from top to bottom.

The way of Sugiyama, Tagawa and Toda (1981): each box goes into the layer below all that it needs, an arrow
over several layers gets a place in each of them, layers are sorted by where their neighbours are, and boxes
move towards their neighbours as far as the others let them. All of it is linear in boxes, arrows and the
layers that these pass, or nearly.

No library took its place when that was tried. A drawing stands in notebooks without a script, so it is laid
out in Python: grandalf 0.8 (of 2023, GPL or EPL) takes three times as long for 400 boxes with long arrows and
makes them seven times as wide; fast-sugiyama 0.5 knows no sizes of boxes and needs Python 3.11; networkx has
no layout in layers that avoids crossings; dagre is JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

Point = tuple[float, float]
_ACROSS, _DOWN, _MARGIN = 26.0, 40.0, 6.0
_BEND = 10.0
"""Width that an arrow takes in a layer that it only passes."""
_SWEEPS = 8

_Key = str | tuple[str, str, int]
"""A box by its name, or the place of an arrow (from, to) in a layer."""


class Placed(Struct, frozen=True):
    """Where everything is, in pixels from the top left.

    Attributes:
        corners: the top left corner of each box.
        routes: for each arrow the points it goes through, from the lower edge of one box to the upper edge
            of the other; horizontally inside of both.
    """

    corners: Mapping[str, Point]
    routes: Mapping[tuple[str, str], tuple[Point, ...]]
    width: float
    height: float


def place(
    boxes: Mapping[str, tuple[float, float]],
    arrows: Sequence[tuple[str, str]],
    inner: Mapping[str, tuple[float, float]] | None = None,
) -> Placed:
    """Place boxes of a given width and height.

    Args:
        boxes: width and height by name.
        arrows: pairs of names. One that would close a circle points up; one from a box to itself is left out.
        inner: width and height of the part at the top left of a box that arrows meet, where that is not all.
    """
    arrows = [arrow for arrow in dict.fromkeys(arrows) if arrow[0] != arrow[1]]
    ranks = _ranks(boxes, arrows)
    layers, links = _layers(boxes, arrows, ranks)
    _sort(layers, links)
    widths = {key: boxes[key][0] if isinstance(key, str) else _BEND for layer in layers for key in layer}
    middles = _middles(layers, links, widths)
    tops, bottoms, y = [], [], _MARGIN
    for layer in layers:
        tops.append(y)
        y += max((boxes[key][1] for key in layer if isinstance(key, str)), default=0.0)
        bottoms.append(y)
        y += _DOWN
    left = min((middles[key] - widths[key] / 2 for layer in layers for key in layer), default=0.0) - _MARGIN
    middles = {key: middle - left for key, middle in middles.items()}
    corners = {name: (middles[name] - boxes[name][0] / 2, tops[ranks[name]]) for name in boxes}
    laid = _Laid({**boxes, **(inner or {})}, ranks, corners, middles, tops, bottoms)
    routes = laid.routes(arrows)
    width = max((middles[key] + widths[key] / 2 for layer in layers for key in layer), default=0.0) + _MARGIN
    return Placed(corners, routes, width, (bottoms[-1] if bottoms else 0.0) + _MARGIN)


def _ranks(boxes: Mapping[str, tuple[float, float]], arrows: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the layer of each box: below all it needs; one that needs nothing just above who needs it."""
    needs: dict[str, list[str]] = {name: [] for name in boxes}
    for first, second in arrows:
        needs[second].append(first)
    ranks: dict[str, int] = {}
    open_: set[str] = set()
    for start in boxes:
        stack = [start]
        while stack:
            name = stack[-1]
            waiting = [other for other in needs[name] if other not in ranks and other not in open_]
            if name in ranks or not waiting:
                stack.pop()
                open_.discard(name)
                ranks.setdefault(
                    name, max((ranks[other] + 1 for other in needs[name] if other in ranks), default=0)
                )
            else:
                open_.add(name)
                stack += waiting[:1]
    for name in boxes:
        users = [ranks[second] for first, second in arrows if first == name]
        if not needs[name] and users:
            ranks[name] = max(min(users) - 1, 0)
    return ranks


def _layers(
    boxes: Mapping[str, tuple[float, float]], arrows: Sequence[tuple[str, str]], ranks: Mapping[str, int]
) -> tuple[list[list[_Key]], list[tuple[_Key, _Key]]]:
    """Return what is in each layer, places of arrows included, and links from layer to layer."""
    layers: list[list[_Key]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for name in boxes:
        layers[ranks[name]].append(name)
    links: list[tuple[_Key, _Key]] = []
    for first, second in arrows:
        low, high = ranks[first], ranks[second]
        before: _Key = first
        for rank in range(low + 1, high):
            key = (first, second, rank)
            layers[rank].append(key)
            links.append((before, key))
            before = key
        if low < high:
            links.append((before, second))
    return layers, links


def _sort(layers: list[list[_Key]], links: Sequence[tuple[_Key, _Key]]) -> None:
    """Sort each layer by the mean place of its neighbours above, then below, a few times."""
    above, below = _neighbours(links)
    place_of = {key: float(index) for layer in layers for index, key in enumerate(layer)}
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else layers[::-1]:
            near = above if down else below
            targets = {
                key: _mean([place_of[other] for other in near.get(key, ())], place_of[key]) for key in layer
            }
            layer.sort(key=targets.__getitem__)
            place_of.update((key, float(index)) for index, key in enumerate(layer))


def _middles(
    layers: Sequence[Sequence[_Key]], links: Sequence[tuple[_Key, _Key]], widths: Mapping[_Key, float]
) -> dict[_Key, float]:
    """Return the middle of everything, as near to its neighbours as the order in its layer lets it."""
    above, below = _neighbours(links)
    middles: dict[_Key, float] = {}
    for layer in layers:
        middles.update(zip(layer, _spread([0.0] * len(layer), [widths[key] for key in layer]), strict=True))
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            near = [[*above.get(key, ()), *below.get(key, ())] for key in layer]
            targets = [
                _mean([middles[other] for other in others], middles[key])
                for key, others in zip(layer, near, strict=True)
            ]
            middles.update(zip(layer, _spread(targets, [widths[key] for key in layer]), strict=True))
    return middles


def _spread(targets: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Return middles in order, without overlap, with the least sum of squared distances from what is wanted.

    Without the widths between them that is isotonic regression: neighbours that are out of order are pooled,
    and share their mean.
    """
    offsets = [0.0]
    for index in range(1, len(widths)):
        offsets.append(offsets[-1] + (widths[index - 1] + widths[index]) / 2 + _ACROSS)
    pools: list[tuple[float, int]] = []  # mean, how many
    for middle, offset in zip(targets, offsets, strict=False):
        pools.append((middle - offset, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean_b, many_b), (mean_a, many_a) = pools.pop(), pools.pop()
            many = many_a + many_b
            pools.append(((mean_a * many_a + mean_b * many_b) / many, many))
    means = [mean for mean, many in pools for _ in range(many)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def _neighbours(links: Sequence[tuple[_Key, _Key]]) -> tuple[dict[_Key, list[_Key]], dict[_Key, list[_Key]]]:
    above: dict[_Key, list[_Key]] = {}
    below: dict[_Key, list[_Key]] = {}
    for first, second in links:
        above.setdefault(second, []).append(first)
        below.setdefault(first, []).append(second)
    return above, below


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


class _Laid(Struct, frozen=True):
    """Everything that an arrow's way depends on: `tops` and `bottoms` are those of the layers."""

    boxes: Mapping[str, tuple[float, float]]
    ranks: Mapping[str, int]
    corners: Mapping[str, Point]
    middles: Mapping[_Key, float]
    tops: Sequence[float]
    bottoms: Sequence[float]

    def routes(self, arrows: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[Point, ...]]:
        """Return the way of each arrow."""
        starts, ends = self._ports(arrows, 0), self._ports(arrows, 1)
        ways: dict[tuple[str, str], tuple[Point, ...]] = {}
        for first, second in arrows:
            between: list[Point] = []
            for rank in range(self.ranks[first] + 1, self.ranks[second]):
                x = self.middles[first, second, rank]
                between += [(x, self.tops[rank]), (x, self.bottoms[rank])]
            start = (starts[first, second], self.corners[first][1] + self.boxes[first][1])
            ways[first, second] = (start, *between, (ends[first, second], self.corners[second][1]))
        return ways

    def _ports(self, arrows: Sequence[tuple[str, str]], side: int) -> dict[tuple[str, str], float]:
        """Return where arrows meet their first (0) or second (1) box: in the middle half of its edge."""
        sharing: dict[str, list[tuple[str, str]]] = {}
        for arrow in sorted(arrows, key=lambda arrow: self._middle(arrow[1 - side])):
            sharing.setdefault(arrow[side], []).append(arrow)
        ports: dict[tuple[str, str], float] = {}
        for name, of_box in sharing.items():
            left, width = self.corners[name][0], self.boxes[name][0]
            for index, arrow in enumerate(of_box):
                ports[arrow] = left + width * (1 / 4 + (index + 1) / (len(of_box) + 1) / 2)
        return ports

    def _middle(self, name: str) -> float:
        return self.corners[name][0] + self.boxes[name][0] / 2
