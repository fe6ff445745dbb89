"""The options that turn a decision of the compiler by name, of the verbs that dump: `--scalar op0`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import click

from inductor_probe.cli.completion import SUBJECT
from inductor_probe.model.flip import FLIP_KINDS, FlipKind, flip_of

_HELP: dict[FlipKind, tuple[str, str]] = {
    "vectorise": ("NODE", "C++: vectorise the loop nest that holds the node."),
    "scalar": ("NODE", "C++: do not vectorise it."),
    "fuse": ("NODE,NODE", "Fuse two nodes, where that is legal."),
    "no-fuse": ("NODE,NODE", "Keep two nodes apart."),
    "layout": ("BUFFER=ORDER", "Lay a buffer out as channels_last, or contiguous."),
    "realize": ("NAME", "Store the value of an FX node, which torch computes in its users."),
    "inline": ("BUFFER", "Compute a value in its users, which torch stores."),
    "reduction-hint": ("[BUFFER=]HINT", "INNER, OUTER, OUTER_TINY or DEFAULT."),
    "split": ("[BUFFER=]N", "Do a reduction in N parts; 1 for no parts."),
    "persistent": ("[NODE]", "Triton: hold all elements of a reduction in one tile."),
    "looped": ("[NODE]", "Triton: reduce in a loop."),
    "index-dtype": ("[NODE=]TYPE", "Triton: int32 or int64 indices."),
    "threads": ("[NODE=]N", "C++: threads of a loop nest."),
}


def _add(ctx: click.Context, param: click.Parameter, arguments: tuple[str, ...]) -> None:
    kind = cast("FlipKind", (param.name or "").replace("_", "-"))
    flips = tuple(flip_of(kind, argument) for argument in arguments)
    ctx.params["flips"] = (*ctx.params.get("flips", ()), *flips)


def flip_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a verb, which gets what they ask for as `flips`, in the order of their kinds."""
    for kind in reversed(FLIP_KINDS):
        metavar, text = _HELP[kind]
        # `--persistent` may stand alone, so what follows it is its subject only if it is no option.
        alone: dict[str, Any] = {"is_flag": False, "flag_value": ""} if metavar == "[NODE]" else {}
        option = click.option(
            f"--{kind}", multiple=True, type=SUBJECT, callback=_add, expose_value=False, metavar=metavar,
            help=text, **alone,
        )  # fmt: skip
        function = option(function)
    return function
