"""One candidate: as keywords spell it, what its names mean in a graph, and the run that it leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from inductor_probe.api.baseline import AnyRun, as_it_is, check_same_program, dumped_to_the_end
from inductor_probe.api.on_disk import GraphOnDisk
from inductor_probe.catalogue.templates import listed
from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.debug_dir import DebugDir
from inductor_probe.model.flip import FLIP_KINDS, Flip, at_once, parse_flip
from inductor_probe.model.whatif import Candidate

_MOST_NAMES = 8


def candidate_of(changes: Mapping[str, object]) -> Candidate:
    """Return the candidate that keywords spell: `set`, `env`, or decisions by name (`no_fuse="op3,op4"`).

    Raises:
        ProbeError: a keyword or its value means nothing, or two of them cannot hold at once.
    """
    from inductor_probe.capture.torch_settings import is_setting

    named = {name.replace("_", "-"): value for name, value in changes.items()}
    pairs: dict[str, list[tuple[str, str]]] = {}
    for name in ("set", "env"):
        value = named.pop(name, {})
        if not isinstance(value, Mapping):
            raise ProbeError(f"{name}={value!r} is not a dict", f'for example {name}={{"NAME": "VALUE"}}')
        pairs[name] = [(str(key), str(each)) for key, each in value.items()]
    flips = []
    for name, value in named.items():
        if name not in FLIP_KINDS:
            raise ProbeError(f"nothing is changed by {name}=", near_names(name, ("set", "env", *FLIP_KINDS)))
        if value is not True and (value is False or not isinstance(value, (str, int))):
            raise ProbeError(
                f"{name}={value!r} is not text",
                'write it as on the command line: fuse="op3,op4", looped=True',
            )
        flips.append(parse_flip(name if value is True else f"{name} {value}"))
    return Candidate(
        settings=tuple(pair for pair in pairs["set"] if is_setting(pair[0])),
        knobs=tuple(pair for pair in pairs["set"] if not is_setting(pair[0])),
        variables=tuple(pairs["env"]),
        flips=at_once(flips),
    )


def with_meaning(candidate: Candidate, graphs: Sequence[GraphOnDisk]) -> Candidate:
    """Return a candidate whose flips have what their names mean in the graphs of A.

    Of several graphs `op0` is another node in each: the flip becomes one for each graph that has it.

    Raises:
        NotFoundError: none of the graphs has a subject of that name; near names are offered.
        ProbeError: two of its flips cannot hold at once in a graph.
    """
    from inductor_probe.analysis.flips import resolved

    flips: list[Flip] = []
    for flip in candidate.flips:
        of_flip = []
        missing: NotFoundError | None = None
        for graph in graphs:
            if flip.graph not in (None, graph.name):
                continue
            try:
                meant = resolved(graph.compiled, flip)
            except NotFoundError as error:
                missing = missing or error
            else:
                scope = graph.name if flip.subjects and len(graphs) > 1 else flip.graph
                of_flip.append(replace(meant, graph=scope))
        if not of_flip:
            names = [graph.name for graph in graphs]
            raise missing or NotFoundError(
                f"{graphs[0].run.path.name} has no graph {flip.graph} for {flip.option}",
                f"its {'graph is' if len(names) == 1 else 'graphs are'} {listed(names, _MOST_NAMES)}",
            )
        flips += dict.fromkeys(of_flip)  # without a subject it is one for all graphs
    return replace(candidate, flips=at_once(flips))


def dumped_otherwise(
    graph: GraphOnDisk,
    kind: Callable[[DebugDir, str | None], AnyRun],
    candidate: Candidate | None,
    changes: Mapping[str, object],
    *,
    trust: bool,
) -> tuple[Candidate, AnyRun]:
    """Return a candidate, and the run that it leads to; see `Graph.whatif`."""
    if candidate is not None and not isinstance(candidate, Candidate):
        raise ProbeError(f"invalid candidate {candidate!r}", 'spell it in keywords: whatif(vectorise="op0")')
    if candidate is not None and changes:
        raise ProbeError(
            "a candidate is given, and keywords", "give one of them: candidate | other joins two"
        )
    candidate = candidate_of(changes) if candidate is None else candidate
    if not candidate.words:
        raise ProbeError("nothing is to be different", 'for example set={"inductor.cpp.simdlen": 256}')
    candidate = with_meaning(candidate, [graph])
    if len(graph.run.graphs) > 1:  # other graphs may have nodes of the same names
        flips = tuple(replace(flip, graph=flip.graph or graph.name) for flip in candidate.flips)
        candidate = replace(candidate, flips=flips)
    recipe = replace(as_it_is(graph.run, trust=trust), baseline=graph.run.path.name)
    other = dumped_to_the_end(recipe, kind, candidate)
    if not other.graphs:
        raise other.empty()
    check_same_program(graph.run, other, candidate, lambda: dumped_to_the_end(recipe, kind))
    return candidate, other
