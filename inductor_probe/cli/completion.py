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

from inductor_probe.errors import NotFoundError, ProbeError
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
            except (ProbeError, OSError, ValueError, LookupError):  # no run here, a damaged dump
                continue
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _paths(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Files and folders as a shell offers them; click offers either these or words."""
    head, slash, tail = incomplete.rpartition("/")
    folder = Path(os.path.expanduser(f"{head}/" if slash else "."))  # noqa: PTH111 - keeps `~nobody`
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith(tail) and (tail or not entry.name.startswith(".")):
            yield f"{head}{slash}{entry.name}{'/' if entry.is_dir() else ''}"


def _python_files(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield from (path for path in _paths(ctx, incomplete) if path.endswith((".py", "/")))


def _scenarios(ctx: click.Context, incomplete: str) -> Iterator[str]:
    from inductor_probe.capture.scripts import SCENARIOS

    yield from sorted({path.name for folder in SCENARIOS for path in folder.glob("check_*.py")})


def _runs_and_graphs(ctx: click.Context, incomplete: str) -> Iterator[str]:
    from inductor_probe.discovery.discover import find, labels

    here = Path.cwd()
    yield from (graph.name for graph in find(None, here).run.graphs)
    for label in labels(here):
        yield label
        if incomplete.startswith(label):
            yield from (f"{label}:{graph.order}" for graph in find(label, here).run.graphs)


def _targets(ctx: click.Context, incomplete: str) -> Iterator[str]:
    from inductor_probe.machine.targets import target_names

    yield from target_names()
    yield from (path for path in _paths(ctx, incomplete) if path.endswith((".toml", "/")))


def _nodes(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Nodes, fused or not."""
    tops = [top for graph in _graphs(ctx) for top in graph.nodes]
    yield from (node.name for top in tops for node in (top, *top.children, *top.leaves()))


def _buffers(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Buffers and inputs."""
    for graph in _graphs(ctx):
        leaves = [leaf for top in graph.nodes for leaf in top.leaves()]
        yield from (buffer.name for leaf in leaves for buffer in leaf.outputs)
        allocations = graph.code.allocations if graph.code else ()
        yield from (allocation.name for allocation in allocations if allocation.kind == "input")


def _kernels(ctx: click.Context, incomplete: str) -> Iterator[str]:
    codes = [graph.code for graph in _graphs(ctx) if graph.code]
    yield from (kernel.name for code in codes for kernel in code.kernels)


def _graphs(ctx: click.Context) -> list[CompiledGraph]:
    """Return the graphs of the run or graph that a word before names, else those of the latest run."""
    from inductor_probe.discovery.discover import find
    from inductor_probe.reader.debug_dir import read_graph

    for word in (*_typed(ctx), None):
        try:
            named = find(word, Path.cwd())
        except NotFoundError:
            continue
        graphs = (named.graph,) if named.graph else named.run.graphs
        return [read_graph(graph, named.run.manifest, earlier=False) for graph in graphs]
    return []


def _typed(ctx: click.Context) -> list[str]:
    """Return the arguments that were typed before: click sorts none where an option still lacks its value."""
    names = [parameter.name for parameter in ctx.command.params if isinstance(parameter, click.Argument)]
    values = [ctx.params.get(name) for name in names if name is not None]
    words = [word for value in values for word in (value if isinstance(value, tuple) else (value,)) if word]
    return [str(word) for word in words] or list(ctx.args)


def _keys_of_scenario(argument: str, suffix: str = "") -> Source:
    """Return a source of the keys of `Scenario(..., cases={...})` in the script: it is parsed, not run."""

    def keys(ctx: click.Context, incomplete: str) -> Iterator[str]:
        from inductor_probe.capture.scripts import find_script

        tree = ast.parse((Path.cwd() / find_script(_typed(ctx)[0], Path.cwd())).read_bytes())
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        keywords = [key for call in calls if ast.unparse(call.func) == "Scenario" for key in call.keywords]
        for keyword in keywords:
            if keyword.arg == argument and isinstance(keyword.value, ast.Dict):
                constants = (key for key in keyword.value.keys if isinstance(key, ast.Constant))
                yield from (f"{constant.value!s}{suffix}" for constant in constants)

    return keys


def _specs(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Rewrites; once one is typed, with its kernel or buffer."""
    from inductor_probe.variants.registry import REWRITES

    yield from (f"{name}:" for name in REWRITES)
    rewrite, colon, _ = incomplete.partition(":")
    if colon:
        source = _buffers if rewrite == "stride" else _kernels
        yield from (f"{rewrite}:{name}" for name in source(ctx, incomplete))


def _variants(ctx: click.Context, incomplete: str) -> Iterator[str]:
    name, equals, path = incomplete.partition("=")
    if equals:
        yield from (f"{name}={file}" for file in _paths(ctx, path))
    else:
        yield from (f"{kernel}_v2" for kernel in _kernels(ctx, incomplete))


def _topics(ctx: click.Context, incomplete: str) -> Iterator[str]:
    from inductor_probe.capture.torch_places import TOPICS

    yield from TOPICS


def _causes(ctx: click.Context, incomplete: str) -> Iterator[str]:
    from inductor_probe.catalogue import codes

    yield from codes()


def _node_kinds(ctx: click.Context, incomplete: str) -> Iterator[str]:
    from inductor_probe.api.rows import NODE_KINDS

    yield from NODE_KINDS


def _traits(ctx: click.Context, incomplete: str) -> Iterator[str]:
    from inductor_probe.api.rows import TRAITS

    yield from TRAITS


WORDS = {
    name: Words(name, *sources)
    for name, sources in {
        "gpu": (_targets,),
        "script": (_python_files, _scenarios),
        "run or graph": (_runs_and_graphs, _paths),
        "name": (_nodes, _buffers, _kernels, _runs_and_graphs, _paths),
        "buffer": (_buffers,),
        "kernel": (_kernels,),
        "kernel or graph": (_kernels, _runs_and_graphs, _paths),
        "subject": (_nodes, _buffers, _kernels),
        "variant": (_variants,),
        "module": (_python_files,),
        "place": (_topics,),
        "case": (_keys_of_scenario("cases"),),
        "knob": (_keys_of_scenario("defaults", "="),),
        "cause": (_causes,),
        "node kind": (_node_kinds,),
        "trait": (_traits,),
        "rewrite": (_specs, _runs_and_graphs, _paths),
    }.items()
}
"""What the words of an option or argument are -> click's type of it."""
