"""`probe sweep-configs`: every autotuning config of Triton kernels, timed against each other."""

from __future__ import annotations

import re

import click

import inductor_probe as ip
from inductor_probe.api.trust import require_trust
from inductor_probe.cli.arguments import answer
from inductor_probe.cli.completion import KERNEL_OR_TARGET, MODULE
from inductor_probe.cli.quantities import Duration, Sizes
from inductor_probe.cli.screen import give, say
from inductor_probe.model.bench import BenchSettings

_CONFIGS = re.compile(r"\s*\w+\s*=.*", re.DOTALL)
"""`XBLOCK=1,8 num_warps=4`: neither a kernel nor a graph."""


@click.command()
@click.argument("words", nargs=-1, metavar="[KERNEL] [RUN|GRAPH] [TEXT]...", type=KERNEL_OR_TARGET)
@click.option(
    "--budget", type=Duration(), default="10s", help="Timing of each kernel: 500ms, 10s, 2m.  [10s]"
)
@click.option(
    "--cold/--warm", default=None, help="Do calls read their data from memory or from a cache?  [cold]"
)
@click.option("--size", "sizes", type=Sizes(), multiple=True, help="Bind a symbolic size: s77=128.")
@click.option(
    "--import",
    "imports",
    multiple=True,
    type=MODULE,
    metavar="MODULE",
    help="Import first: it registers custom operators.",
)
@click.option("--trust", is_flag=True, help="Run code not provably made here: read it first.")
@click.option("--json", is_flag=True, help="Print JSON with stable keys.")
def sweep_configs(
    words: tuple[str, ...],
    *,
    budget: float,
    cold: bool | None,
    sizes: tuple[tuple[str, int], ...],
    imports: tuple[str, ...],
    trust: bool,
    json: bool,
) -> int:
    """Check and time every config that inductor tries for a Triton kernel: this executes the dump's code.

    KERNEL is its name or the start of it; every Triton kernel of the graph if left out. RUN or GRAPH is a
    path, a graph's name, a label, or the start of one; the latest run if left out. TEXT adds configs of
    yours: XBLOCK=1,8 num_warps=4,8 adds each combination.
    """
    text = " ".join(word for word in words if _CONFIGS.fullmatch(word))
    names = [word for word in words if not _CONFIGS.fullmatch(word)]
    graph, kernel = answer(names, 1, _opened)
    settings = BenchSettings(kernel=kernel, budget=budget, cold=cold, sizes=sizes, imports=imports)
    require_trust(graph, trust=trust, imports=imports, rewriting=True)  # before anything is said
    say(f"running the kernels: this executes the code that inductor generated for {graph.name}")
    return give(graph.sweep_configs(settings, text, trust=trust), json=json)


def _opened(kernel: str | None, target: str | None) -> tuple[ip.Graph, str | None]:
    return ip.open_kernel(kernel, target) if kernel else (ip.open_graph(target), None)
