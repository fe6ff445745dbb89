"""A layout as a picture: which elements lie side by side in memory.

A row of cells stands for memory from its begin. Each cell holds the index along the dimension that runs
fastest; a line under some cells is one step of the dimension that runs next. An image that is channels-last
looks like `0 1 2 | 0 1 2 | 0 1 2`, one that is not like `0 1 2 ... 223 | 0 1 2 ... 223`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import LayoutRow
from inductor_probe.report.html import escaped

_CHANNELS = ("#e5534b", "#3fa35b", "#3b82f6", "#c69026", "#a371f7", "#1aa3a8")
_MOST_APART = len(_CHANNELS)
"""So many cells of a run are distinguished by colour; a longer run is shown by its begin and end."""
_CELLS = 18
_WIDE, _HIGH, _GAP = 24, 19, 5
_SMALL, _LOW = 6, 11


class _Order(Struct, frozen=True):
    """The dimensions of a layout that steps can be taken along, slowest first."""

    size: tuple[Dim, ...]
    stride: tuple[Dim, ...]
    dims: tuple[int, ...]

    @property
    def fastest(self) -> int:
        return self.dims[-1]

    @property
    def runs(self) -> int:
        """How many steps of the second fastest dimension are shown; one where there is none."""
        if len(self.dims) < 2:
            return 1
        most = max(2, _CELLS // len(_run(self.size[self.fastest])))
        after = self.size[self.dims[-2]]
        return min(most, after) if isinstance(after, int) else most

    @property
    def spread(self) -> int:
        """Elements skipped from one cell to the next."""
        stride = self.stride[self.fastest]
        return stride - 1 if isinstance(stride, int) else 0

    @property
    def padded(self) -> bool:
        """Whether there is memory between two runs that the buffer does not use."""
        if len(self.dims) < 2:
            return False
        size, stride, after = self.size[self.fastest], self.stride[self.fastest], self.stride[self.dims[-2]]
        if isinstance(size, int) and isinstance(stride, int) and isinstance(after, int):
            return after > size * stride
        return False


def index_picture(row: LayoutRow) -> str:
    """Return how a buffer lies in memory as SVG with a sentence; nothing where its order is not known."""
    order = _order(row)
    if order is None:
        return ""
    cells = "".join(_big_cells(order))
    width = _width(order)
    words = "".join(f"<div>{text}</div>" for text in _sentences(order))
    svg = (
        f'<svg width="{width + 80}" height="48" viewBox="0 0 {width + 80} 48" role="img" '
        f'font-size="11" font-family="monospace"><title>{escaped(_title(order))}</title>{cells}</svg>'
    )
    return f'<div class="ip-i2">{svg}<div class="ip-dim">{words}</div></div>'


def small_picture(row: LayoutRow) -> str:
    """Return the same without words, as high as a line of a table."""
    order = _order(row)
    if order is None:
        return ""
    parts, x = [], 0.0
    for run in range(order.runs):
        for number, index in enumerate(_run(order.size[order.fastest])):
            if index is not None:
                parts.append(_rect(x, _SMALL - 1, _LOW, *_colour(order, number)))
            x += _SMALL
        x += 3 if run < order.runs - 1 else 0
    return (
        f'<svg width="{x:g}" height="{_LOW}" viewBox="0 0 {x:g} {_LOW}" role="img">'
        f"<title>{escaped(_title(order))}</title>{''.join(parts)}</svg>"
    )


def _order(row: LayoutRow) -> _Order | None:
    layout = row.layout
    if layout is None or layout.size is None or layout.stride is None or row.dim_order is None:
        return None
    size, stride = layout.size, layout.stride
    rank = len(size)
    if len(stride) != rank or sorted(row.dim_order) != list(range(rank)):
        return None
    dims = tuple(dim for dim in row.dim_order if size[dim] not in (0, 1) and stride[dim] != 0)
    return _Order(size, stride, dims) if dims else None


def _run(size: Dim) -> list[str | None]:
    """Return the indices that are shown of a run; None stands for those left out."""
    if isinstance(size, int):
        if size <= _MOST_APART:
            return [str(index) for index in range(size)]
        return ["0", "1", "2", None, str(size - 1)]
    return ["0", "1", "2", None, "last"]


def _colour(order: _Order, number: int) -> tuple[str, float]:
    size = order.size[order.fastest]
    if isinstance(size, int) and size <= _MOST_APART:
        return _CHANNELS[number], 0.5
    return "#3b82f6", 0.15 + 0.13 * number


def _rect(x: float, width: float, height: float, fill: str, opacity: float) -> str:
    return (
        f'<rect x="{x:g}" y="0" width="{width:g}" height="{height:g}" '
        f'fill="{fill}" fill-opacity="{opacity:g}"></rect>'
    )


def _width(order: _Order) -> float:
    cells = len(_run(order.size[order.fastest]))
    return order.runs * (cells * _WIDE + _GAP + (_WIDE if order.padded else 0))


def _big_cells(order: _Order) -> Iterator[str]:
    run, x = _run(order.size[order.fastest]), 0.0
    for step in range(order.runs):
        begin = x
        for number, index in enumerate(run):
            if index is None:
                yield _text(x + _WIDE / 2, 14, "…")
            else:
                yield _rect(x, _WIDE - 1, _HIGH, *_colour(order, number))
                yield _text(x + _WIDE / 2, 14, index)
            x += _WIDE
        if len(order.dims) > 1:
            yield (
                f'<path d="M{begin:g} 24v4h{x - begin - 1:g}v-4" fill="none" stroke="currentColor" '
                'stroke-opacity="0.6"></path>'
            )
            yield _text((begin + x) / 2, 42, f"{step}")
        if order.padded:
            yield (
                f'<rect x="{x:g}" y="0.5" width="{_WIDE - 2}" height="{_HIGH - 1}" fill="none" '
                'stroke="#888" stroke-dasharray="3 2"></rect>'
            )
            x += _WIDE
        x += _GAP
    yield _text(x + 8, 14, f"dim {order.fastest}", "start")
    if len(order.dims) > 1:
        yield _text(x + 8, 42, f"dim {order.dims[-2]}", "start")


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escaped(text)}</text>'


def _title(order: _Order) -> str:
    return f"in memory dim {order.fastest} runs fastest{_after(order.dims)}"


def _after(dims: Sequence[int]) -> str:
    others = [f"dim {dim}" for dim in reversed(dims[:-1])]
    return f", then {', '.join(others)}" if others else ""


def _sentences(order: _Order) -> Iterator[str]:
    dim = order.fastest
    yield (
        f"in memory <b>dim {dim}</b> runs fastest ({escaped(str(order.size[dim]))} steps of stride "
        f"{escaped(str(order.stride[dim]))}){escaped(_after(order.dims))}"
    )
    if order.spread > 0:
        yield f"between two cells {order.spread} elements are skipped"
    if order.padded:
        yield "dashed: memory that is left empty"
    flat = [
        str(dim) for dim, stride in enumerate(order.stride) if stride == 0 and order.size[dim] not in (0, 1)
    ]
    if flat:
        yield f"stride 0: all indices of dim {', '.join(flat)} are the same element"
