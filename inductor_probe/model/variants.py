"""Variants: copies of a kernel or of the wrapper in a bench file, called `NAME_v3`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

VariantKind: TypeAlias = Literal["edit", "rewrite", "ablation"]
"""Written by hand or copied; made by a named rewrite; wrong on purpose, to see what a part costs."""

ABLATIONS = "ABLATIONS"
"""The table in a bench file that says what variants leave out: `{"cpp_fused_add_0_v3": "no_loads"}`.

They are timed although they compute other values, and are never an improvement.
"""


@dataclass(frozen=True, slots=True)
class NewVariant:
    """A variant that is to be added to a bench file.

    Attributes:
        name: `cpp_fused_add_0_v3`, or `call_v3`, whose text defines its `Runner_v3` as well.
        text: its statements, whole, each ending with a line end; no comment above them.
        comment: above it in the file: what it is, or the rewrite that made it.
        ablation: what it leaves out (`no_loads`), for an ablation.
    """

    name: str
    text: str
    comment: str
    kind: VariantKind = "edit"
    ablation: str | None = None


@dataclass(frozen=True, slots=True)
class VariantDiff:
    """How a variant's text differs from what it is a copy of.

    Attributes:
        name, base: `call_v3` and `call`. base is None when the file has nothing of that name any more.
        lines: a unified diff in which the names of the copies count as those of what they are copies of;
            empty when nothing else was changed.
    """

    name: str
    base: str | None
    kind: VariantKind
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RewriteRow:
    """A named rewrite, and what it applies to in a graph.

    Attributes:
        arguments: what stands behind the colon of a spec. help: what it does, one line.
        specs: of those tried, the ones that make variants of the graph: `index:cpp_fused_add_0 int64`.
    """

    name: str
    arguments: str
    help: str
    specs: tuple[str, ...] = ()
