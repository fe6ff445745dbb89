"""`probe rewrite`: the rewrites that make variants of kernels: listed, or added to the bench file."""

from __future__ import annotations

import re
from pathlib import Path

import click

import inductor_probe as ip
from inductor_probe.cli.bench_kernel import say_written
from inductor_probe.cli.completion import REWRITE
from inductor_probe.cli.screen import give, say, show_json
from inductor_probe.errors import ExitCode
from inductor_probe.model.bench import RewriteOutput

_SPEC = re.compile(r"\w+(@v\d+)?:(?!\d+$)[^/]+", re.DOTALL)
"""`loops:cpp_fused_0 x1,x2` is one; `gpt_block:1` is a graph."""


@click.command()
@click.argument("words", nargs=-1, metavar="[GRAPH] [SPEC]...", type=REWRITE)
@click.option(
    "--tuned",
    type=click.Path(path_type=Path),
    metavar="TABLE.csv",
    help="Triton: add variants with the configs that probe tunings --csv exported.",
)
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def rewrite(words: tuple[str, ...], tuned: Path | None, json: bool) -> int:
    """List the rewrites with what they apply to in a graph; with SPEC, add variants to its bench file.

    A SPEC is one that the list shows, for example 'loops:cpp_fused_add_0 x1,x2'; NAME@v3:... rewrites the
    variants _v3. A rewrite changes every place that depends on it, or is refused with the line. Nothing is
    run: probe bench-kernel checks and times what is in the file.

    GRAPH is a graph's name (model__0_inference_0.0), the start of it, or a path; it may be left out when the
    latest run has only one.
    """
    specs = [word for word in words if _SPEC.fullmatch(word)]
    targets = [word for word in words if word not in specs]
    if len(targets) > 1:
        raise click.UsageError(f"one graph, not {' and '.join(targets)}; a SPEC is REWRITE:ARGUMENTS")
    graph = ip.open_graph(targets[0] if targets else None)
    if not specs and tuned is None:
        status = give(graph.rewrites(), json=json)
        if not json:
            say(f"next: probe rewrite {graph.short_name} SPEC adds its variants to the bench file")
        return status
    file = ip.rewrite(*specs, target=graph.path, tuned=tuned)
    say_written(file, json=json)
    if json:
        show_json(RewriteOutput(file=file))
    say(f"next: probe bench-kernel {graph.short_name}")
    return ExitCode.OK
