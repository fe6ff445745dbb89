"""The comments above a kernel, a launch or a library call to a record, line by line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from inductor_probe.model.code import PLACEHOLDER, FragmentNode, KernelComment
from inductor_probe.model.span import Span
from inductor_probe.reader.values import listed_names

_ATEN = re.compile(
    r"# (?:(?:Topologically Sorted|Unsorted) )?Source Nodes: \[.*?\], Original ATen: \[(?P<names>.*)\]"
)
_MAPPING = re.compile(r"#   (?P<source>\S*) => (?P<names>.+)")
_NODE = re.compile(
    r"#   %(?P<name>\w+) : (?:Tensor \"(?P<type>[^\"]*)\")?.*?"
    r"(?:= (?P<placeholder>PlaceHolder)\[|call_\w+\[target=(?P<target>[^\]]+)\](?P<args>.*))"
)
_INPUT = re.compile(r"%(\w+)")
_RETURN = re.compile(r"#   return (?P<names>.*)")
_HANDLE = re.compile(r"# \[Provenance debug handles\] .+:(?P<number>\d{1,18})")
_PATH = re.compile(r"# kernel path: (?P<path>.+)")
_STREAM = re.compile(r"\w+ = get_raw_stream\(")
"""A statement that stands between the comment of a launch and the launch."""


def kernel_comment(lines: Sequence[str], first: int, path: Path) -> KernelComment | None:
    """Return the comment above the statement that begins in line `first` (1-based); None when there is none.

    `lines` is the file `path`, split.
    """
    end = first - 1
    if end > 0 and _STREAM.match(lines[end - 1].strip()):
        end -= 1
    start = end
    while start > 0 and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return parse_kernel_comment(lines[start:end], Span(path, start + 1, end)) if start < end else None


def parse_kernel_comment(lines: Sequence[str], span: Span | None = None) -> KernelComment:
    """Read comment lines; what is not known is passed over."""
    aten: tuple[str, ...] = ()
    mapping: list[tuple[str, tuple[str, ...]]] = []
    fragment: list[FragmentNode] = []
    returns: tuple[str, ...] = ()
    handle: int | None = None
    cached: str | None = None
    for line in map(str.strip, lines):
        if match := _NODE.match(line):
            fragment.append(_node(match))
        elif match := _MAPPING.fullmatch(line):
            mapping.append((match["source"], listed_names(match["names"])))
        elif match := _ATEN.match(line):
            aten = listed_names(match["names"])
        elif match := _RETURN.fullmatch(line):
            returns = tuple(name.removeprefix("%") for name in listed_names(match["names"]))
        elif match := _HANDLE.fullmatch(line):
            handle = int(match["number"])
        elif match := _PATH.fullmatch(line):
            cached = match["path"]
    return KernelComment(
        aten=aten,
        mapping=tuple(mapping),
        fragment=tuple(fragment),
        returns=returns,
        handle=handle,
        path=cached,
        lines=tuple(line.strip().removeprefix("#").removeprefix(" ") for line in lines),
        span=span,
    )


def _node(match: re.Match[str]) -> FragmentNode:
    if match["placeholder"]:
        return FragmentNode(match["name"], PLACEHOLDER, match["type"])
    inputs = tuple(dict.fromkeys(_INPUT.findall(match["args"])))
    return FragmentNode(match["name"], match["target"], match["type"], inputs)
