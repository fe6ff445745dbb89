"""The parts of a call as a flame view: each part as wide as its time, what it consists of below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from inductor_probe.model.profile import Profile, ProfilePart
from inductor_probe.report.html import escaped
from inductor_probe.report.units import duration
from inductor_probe.report.wrapping import shorten

_WIDE, _HIGH, _GAP, _LETTER = 960, 20, 1, 6.6
_WRAPPER = ("launches", "allocation", "check", "free", "other")
_COLOURS = {
    "whole": "#8a919c", "call": "#8a919c", "kernel": "#3b82f6", "nest": "#1aa3a8",
    "outside": "#8a919c", "library": "#a371f7", "wrapper": "#e08c1a", "line": "#e5a95c", "gap": "#888888",
}  # fmt: skip
_LEAST_WIDE = 760
_SHORTEST_NAME = 8
_LEAST = 0.4
"""Pixels: a narrower part is not drawn; nobody could point at it."""


@dataclass
class _Box:
    """A part with what it consists of."""

    name: str
    kind: str
    seconds: float
    about: str = ""
    inside: list[_Box] = field(default_factory=list)


def flame_page(profiles: Sequence[Profile]) -> str:
    """Return a page with the flame view of each graph."""
    figures = "".join(
        f"<h2>{escaped(profile.graph)}</h2>\n<div>{flame_svg(profile)}</div>\n" for profile in profiles
    )
    # Where a window is narrower than names can be read in, the picture scrolls in it.
    style = (
        "body{font:14px sans-serif;margin:min(2em,4vw);color:#222;background:#fff}"
        f"h2{{font-size:15px;overflow-wrap:anywhere}}div{{overflow-x:auto}}svg{{min-width:{_LEAST_WIDE}px}}"
    )
    return (
        "<!doctype html>\n<meta charset=utf-8>\n"
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>probe profile</title>\n<style>{style}</style>\n"
        f"<p>Each part is as wide as its time; point at one to see it in full.</p>\n{figures}"
    )


def flame_svg(profile: Profile) -> str:
    """Return the flame view of a profile as SVG that stands in HTML: the host, and below it the GPU."""
    roots = [_boxes(profile), *_device_boxes(profile)]
    totals = [max(root.seconds, sum(box.seconds for box in root.inside)) or 1.0 for root in roots]
    shapes, row = "", 0
    for root, total in zip(roots, totals, strict=True):
        shapes += "".join(_shapes(root, 0.0, row, _WIDE / max(totals), total))
        row += _depth(root) + 1
    high = (row - 1) * (_HIGH + _GAP)
    return (
        f'<svg width="100%" viewBox="0 0 {_WIDE} {high}" xmlns="http://www.w3.org/2000/svg" '
        f'font-family="sans-serif" font-size="11">{shapes}</svg>'
    )


def _boxes(profile: Profile) -> _Box:
    """Return the parts of the host as a tree: on CUDA what the GPU does is a tree of its own."""
    call = _Box("Compiled call", "whole", profile.whole.seconds)
    wrapper = _Box("wrapper", "wrapper", 0.0)
    for part in profile.parts:
        if part.side != "host" or part.seconds <= 0:
            continue
        if part.kind in ("kernel", "library"):
            call.inside.append(_kernel(profile, part))
        elif part.kind in _WRAPPER:
            wrapper.inside.append(_Box(part.name, "wrapper", part.seconds, inside=_lines(profile, part)))
        elif part.kind == "gap":
            call.inside.append(_Box("in no part", "gap", part.seconds))
    wrapper.seconds = sum(box.seconds for box in wrapper.inside)
    call.inside.append(wrapper)
    return call


def _device_boxes(profile: Profile) -> Iterator[_Box]:
    """Yield what the GPU does in a call as a tree, if there is a GPU."""
    parts = [part for part in profile.parts if part.side == "device" and part.seconds > 0]
    for call in [part for part in parts if part.kind == "call"]:
        yield _Box(
            "GPU",
            "call",
            call.seconds,
            inside=[
                _Box("in no kernel", "gap", part.seconds) if part.kind == "gap" else _kernel(profile, part)
                for part in parts
                if part is not call
            ],
        )


def _kernel(profile: Profile, part: ProfilePart) -> _Box:
    box = _Box(part.name, part.kind, part.seconds, _about(part.nodes, map(str, part.sources)))
    if part.kind == "kernel":
        box.inside = [
            _Box(
                f"loop nest {nest.number}" if nest.number else "outside of loop nests",
                "nest" if nest.number else "outside",
                nest.seconds,
                _about(nest.nodes, map(str, nest.sources)),
            )
            for nest in profile.nests
            if nest.kernel == part.name and nest.seconds > 0
        ]
    return box


def _lines(profile: Profile, part: ProfilePart) -> list[_Box]:
    return [
        _Box(line.code, "line", line.seconds, f"{line.span.path.name}:{line.span.first}")
        for line in profile.lines
        if line.kind == part.kind and line.seconds > 0
    ]


def _about(nodes: Iterable[str], sources: Iterable[str]) -> str:
    return "\n".join(filter(None, (", ".join(nodes), "\n".join(sources))))


def _depth(box: _Box) -> int:
    return 1 + max(map(_depth, box.inside), default=0)


def _label(box: _Box, room: int) -> str:
    """Return what fits: name and time; the name shortened, or alone, before a digit is left out."""
    time = f" {duration(box.seconds)}"
    if len(box.name) <= room < len(box.name) + len(time):
        return box.name
    left = room - len(time)
    return shorten(box.name, left) + time if left >= _SHORTEST_NAME else shorten(box.name, room)


def _shapes(box: _Box, left: float, row: int, scale: float, total: float) -> Iterator[str]:
    wide = box.seconds * scale
    if wide < _LEAST:
        return
    top = row * (_HIGH + _GAP)
    share = f"{box.seconds / total * 100:.1f} %"
    about = "\n".join(filter(None, (f"{box.name}: {duration(box.seconds)}, {share}", box.about)))
    room = int((wide - 6) / _LETTER)
    label = escaped(_label(box, room)) if room > 3 else ""
    yield (
        f'<g><title>{escaped(about)}</title><rect x="{left:.2f}" y="{top}" width="{wide:.2f}" '
        f'height="{_HIGH}" fill="{_COLOURS[box.kind]}" stroke="#fff" stroke-width="0.5"/>'
    )
    if label:
        yield f'<text x="{left + 3:.2f}" y="{top + 14}" fill="#fff">{label}</text>'
    yield "</g>"
    for inside in box.inside:
        yield from _shapes(inside, left, row + 1, scale, total)
        left += inside.seconds * scale
