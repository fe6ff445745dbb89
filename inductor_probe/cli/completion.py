"""What the shell completes: scripts, runs and graphs, names in a graph, kernels, cases, settings, rewrites.

Each kind of word is a click parameter type that takes any text and knows how to complete it. Completing reads
what `probe` would read, runs nothing, and stays silent where that cannot be read: a message would land in the
middle of the line that is being typed.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from inductor_probe.errors import ProbeError
from inductor_probe.model.debug_dir import CompiledGraph

Source = Callable[[click.Context, str], Iterable[str]]
"""Returns words for what was typed so far; those that start with it are offered."""


class Words(click.ParamType):  # type: ignore[type-arg]
    """A text with completions.

    Args:
        name: what `--help` calls it.
        sources: where completions come from, in the order in which they are offered.
    """

    def __init__(self, name: str, *sources: Source) -> None:
        self.name = name
        self.sources = sources

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return what starts as `incomplete` does, each once."""
        words: dict[str, None] = {}
        for source in self.sources:
            try:
                words.update(dict.fromkeys(source(ctx, incomplete)))
            except (
                ProbeError,
                OSError,
                ValueError,
            ):  # no run here, a damaged dump: there is nothing to offer
                continue
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _paths(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Files and folders as a shell offers them; click offers either these or words."""
    head, slash, tail = incomplete.rpartition("/")
    folder = Path(os.path.expanduser(f"{head}/" if slash else "."))  # noqa: PTH111 - keeps `~nobody`
    prefix = head + slash
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith(tail) and (tail or not entry.name.startswith(".")):
            yield f"{prefix}{entry.name}{'/' if entry.is_dir() else ''}"


def _python_files(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield from (path for path in _paths(ctx, incomplete) if path.endswith((".py", "/")))


def _scenarios(_: click.Context, __: str) -> Iterator[str]:
    from inductor_probe.capture.scripts import SCENARIOS  # noqa: PLC0415 - only when a script is completed

    yield from sorted({path.name for folder in SCENARIOS for path in folder.glob("check_*.py")})


def _runs_and_graphs(_: click.Context, incomplete: str) -> Iterator[str]:
    from inductor_probe.discovery.discover import find, labels, name_of  # noqa: PLC0415 - as above

    here = Path.cwd()
    yield from (graph.name for graph in find(None, here).run.graphs)
    for label in labels(here):
        yield label
        if incomplete.startswith(label):
            run = find(label, here).run
            yield from (name_of(run, graph) for graph in run.graphs)


def _names(ctx: click.Context, _: str) -> Iterator[str]:
    """Nodes, buffers and inputs of the graphs that are meant."""
    for graph in _graphs(ctx):
        for top in graph.nodes:
            yield from (node.name for node in (top, *top.children))
            for leaf in top.leaves():
                yield leaf.name
                yield from (buffer.name for buffer in leaf.outputs)
        for allocation in graph.code.allocations if graph.code else ():
            if allocation.how == "input":
                yield allocation.name


def _kernels(ctx: click.Context, _: str) -> Iterator[str]:
    for graph in _graphs(ctx):
        yield from (kernel.name for kernel in graph.code.kernels) if graph.code else ()


def _graphs(ctx: click.Context) -> list[CompiledGraph]:
    from inductor_probe.discovery.discover import find  # noqa: PLC0415 - only when a name is completed
    from inductor_probe.reader.debug_dir import read_graph  # noqa: PLC0415 - as above

    there = find(_typed(ctx, "target"), Path.cwd())
    graphs = (there.graph,) if there.graph else there.run.graphs
    return [read_graph(graph, there.run.manifest, earlier=False) for graph in graphs]


def _typed(ctx: click.Context, argument: str) -> str | None:
    """Return an argument that was typed before: click sorts none where an option still lacks its value."""
    if (value := ctx.params.get(argument)) is not None:
        return str(value)
    names = [each.name for each in ctx.command.params if isinstance(each, click.Argument)]
    place = names.index(argument) if argument in names else len(ctx.args)
    return ctx.args[place] if len(ctx.args) > place else None


def _cases(ctx: click.Context, _: str) -> Iterator[str]:
    yield from _table_of(ctx, "cases")


def _knobs(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield from (f"{knob}=" for knob in _table_of(ctx, "defaults"))


def _table_of(ctx: click.Context, keyword: str) -> Iterator[str]:
    """Keys of `Scenario(..., cases={...})` in the script, which is parsed and not run."""
    from inductor_probe.capture.scripts import find_script  # noqa: PLC0415 - only when a case is completed

    script = find_script(str(_typed(ctx, "script")), Path.cwd())
    for node in ast.walk(ast.parse((Path.cwd() / script).read_bytes())):
        match node:
            case ast.Call(func=ast.Name(id="Scenario"), keywords=keywords):
                for each in keywords:
                    if each.arg == keyword and isinstance(each.value, ast.Dict):
                        keys = (key for key in each.value.keys if isinstance(key, ast.Constant))
                        yield from (str(key.value) for key in keys)


def _rewrites(ctx: click.Context, incomplete: str) -> Iterator[str]:
    from inductor_probe.api.bench import rewrites  # noqa: PLC0415 - imports libcst

    yield from (f"{name}:" for name, _, _ in rewrites())


SCRIPT = Words("script", _python_files, _scenarios)
TARGET = Words("run or graph", _runs_and_graphs, _paths)
NAME = Words("name", _names, _kernels, _runs_and_graphs, _paths)
KERNEL = Words("kernel", _kernels)
CASE = Words("case", _cases)
KNOB = Words("setting", _knobs)
REWRITE = Words("rewrite", _rewrites)
