"""Where the time of compiling went: torch's regions as phases, compiles by id, misses of the cache in words.

A region's own time is what no region within it has, so that phases add up to the whole: in one of 13.3 s
`entire_frame_compile` has 13.3, and 0.02 of its own; `async_compile.wait` within it 4.2, all its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args

from inductor_probe.model.compile_log import (
    CompileLog,
    Frame,
    KeyPart,
    LoggedCache,
    LoggedSpecialisation,
    Region,
)
from inductor_probe.model.compile_time import (
    Build,
    BuildKind,
    CacheLookup,
    CacheResult,
    Compile,
    CompileSummary,
    CompileTimes,
    Phase,
    PhaseTime,
    RegionTime,
    Specialisation,
    WarmCompile,
)
from inductor_probe.model.manifest import Manifest
from inductor_probe.model.record import grouped
from inductor_probe.reader.logs.guards import guards_of, user_name

_PHASES: Sequence[tuple[str, Phase]] = (
    (r"PyCodeCache.*|GraphLowering\.compile_to_fn|.*load_by_key.*", "loading"),
    (r"build_guards|guard_.*", "guards"),
    (r"dynamo|entire_frame_compile|compile_attempt_.*|bytecode_tracing|insert_deferred.*|gc", "dynamo"),
    (r"pass\.pre_grad.*|_recursive_pre_grad.*", "pre-grad-passes"),
    (r"pass\.joint_graph.*|_recursive_joint_graph.*", "joint-passes"),
    (r"pass\.post_grad.*|_recursive_post_grad.*", "post-grad-passes"),
    (r"GraphLowering\.run|additional_fake_tensor_prop|GraphLowering\..*output.*", "lowering"),
    (r"Scheduler\.codegen|.*WrapperCodegen\..*|GraphLowering\.codegen|code_gen", "code-generation"),
    (r"Scheduler\..*", "scheduling"),
    (r"compile_file|.*compile_cpp.*", "cpp-compiler"),
    (r"async_compile\.wait|.*wait_.*future.*", "waiting"),
    (r".*(bench|autotun|choice).*|AlgorithmSelector.*", "autotuning"),
    (r"CachingAutotuner.*|.*triton_(?!key).*|TritonBundler.*", "triton-compiler"),
    (r".*(Cache|cache|torch_key|triton_key).*|pgo\..*", "caches"),
    (r"create_aot_dispatcher_function|aot_.*|min_cut.*|backward\._backward_impl", "aot-autograd"),
)
"""Names of regions, as `re.fullmatch` takes them; the first that fits counts."""
_RESULTS = frozenset(get_args(CacheResult))
_FRAME = re.compile(r"Line: (?P<line>\d+), Name: (?P<name>.*), Filename: (?P<file>.*)")
_OF_TORCH = re.compile(r"(?:^|/)torch/(?:_\w+|nn|optim|utils|fx|autograd|distributed)/")
_BACKWARD = "entire_backward_compile"
_GRAPH = "gm"
"""The part of a cache's key that is the graph itself, as the code of an FX graph."""
_LONGEST_TEXT = 80
"""Characters of a part of a key that are shown."""
_MOST_LINES = 5
"""Lines of the code of a graph that may be another: where there are more, it is another graph."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def phase_of(name: str) -> Phase:
    """Return the phase that a region of torch belongs to."""
    return next((phase for pattern, phase in _PHASES if re.fullmatch(pattern, name)), "other")


def compile_times(
    subject: str,
    log: CompileLog,
    manifest: Manifest | None,
    *,
    dumped: bool,
    warm: WarmCompile | None = None,
    exit_status: int | None = None,
) -> CompileTimes:
    """Return where the time went, of all that a log has; of a dump its manifest says how the script ended."""
    compiles = tuple(_compiles(log, manifest))
    builds = [*_builds(log)]
    return CompileTimes(
        subject=subject,
        dumped=dumped,
        seconds=sum(one.seconds for one in compiles),
        compiles=compiles,
        phases=_phases(log.regions),
        regions=_regions(log.regions),
        builds=tuple(sorted(builds, key=lambda one: -one.seconds)),
        build_seconds=sum(one.seconds for one in builds),
        warm=warm,
        exit_status=manifest.exit_status if manifest is not None else exit_status,
    )


def compile_summary(rows: Sequence[CompileTimes]) -> CompileSummary | None:
    """Return what the compiles of all processes of a run took; None where nothing was timed."""
    phases: defaultdict[Phase, float] = defaultdict(float)
    for one in (part for row in rows for part in row.phases):
        phases[one.phase] += one.seconds
    if not phases:
        return None
    compiles = [one for row in rows for one in row.compiles]
    again = [one.seconds for one in compiles if one.reason]
    phase = max(phases, key=phases.__getitem__)
    return CompileSummary(
        sum(one.seconds for one in compiles), len(compiles), phase, phases[phase], len(again), sum(again)
    )


def warm_compile(log: CompileLog, cold: CompileLog) -> WarmCompile:
    """Return what a second run of the same script took, and why its cache missed what the first left."""
    compiles = [*_compiles(log, None, cold.caches)]
    caches = [(one, one.cache) for one in compiles if one.cache is not None]
    results = [cache.result for _, cache in caches]
    reasons = (f"{one.function}: {_why(cache)}" for one, cache in caches if cache.result != "hit")
    return WarmCompile(
        seconds=sum(one.seconds for one in compiles),
        phases=_phases(log.regions),
        hits=results.count("hit"),
        misses=results.count("miss"),
        bypassed=results.count("bypass"),
        reasons=tuple(dict.fromkeys(reasons)),
    )


def _why(cache: CacheLookup) -> str:
    """Return why a cache that another run had filled was of no use."""
    return (
        " ".join(cache.reason.split())
        or "; ".join(cache.differs or ())
        or "no graph like it was compiled before"
    )


def _phases(regions: Iterable[Region]) -> tuple[PhaseTime, ...]:
    seconds: defaultdict[Phase, float] = defaultdict(float)
    for region in regions:
        seconds[phase_of(region.name)] += region.own
    rows = sorted(seconds.items(), key=lambda row: -row[1])
    return tuple(PhaseTime(phase, own) for phase, own in rows if own > 0)


def _regions(regions: Iterable[Region]) -> tuple[RegionTime, ...]:
    rows = (
        RegionTime(
            name, phase_of(name), sum(one.own for one in of_name), len(of_name),
            len({one.compile_id for one in of_name}),
        )
        for name, of_name in grouped(regions, lambda region: region.name).items()
    )  # fmt: skip
    return tuple(sorted(rows, key=lambda row: -row.seconds))


def _compiles(
    log: CompileLog, manifest: Manifest | None, earlier: Sequence[LoggedCache] = ()
) -> Iterator[Compile]:
    """Yield each outermost region with what is in it: a forward and its backward are two of one id."""
    metrics = grouped(log.metrics, lambda row: (str(row.get("compile_id")), row.get("is_forward") is False))
    trees = grouped(log.guards, lambda guard: guard[0])
    starts = dict(log.starts)
    constants = grouped(log.specialisations, lambda one: one.compile_id)
    inside: list[Region] = []
    forwards: dict[str, tuple[str, str]] = {}
    for region in log.regions:  # in the order of their ends
        inside.append(region)
        if region.depth:
            continue
        backward = any(one.name == _BACKWARD for one in inside)
        rows = metrics.get((region.compile_id, backward), [])
        row = rows.pop(0) if rows else {}
        function, where = _user_frame(row) or forwards.get(region.compile_id, ("", ""))
        forwards[region.compile_id] = function, where
        of_id = trees.get(region.compile_id, []) if not backward else []
        guards = tuple(guards_of(of_id.pop(0)[1])) if of_id else ()
        asked = [one for one in log.caches if region.begin <= one.time <= region.begin + region.seconds]
        before = [*earlier, *(one for one in log.caches if one.time < region.begin)]
        yield Compile(
            compile_id=region.compile_id,
            function=function,
            where=where,
            seconds=region.seconds,
            phases=_phases(inside),
            backward=backward,
            graphs=_graphs(manifest, region.compile_id, backward=backward),
            operators=_number(row, "graph_op_count"),
            guards=guards,
            guard_us=_number(row, "guard_latency_us") if guards else None,
            reason=str(row.get("recompile_reason") or ""),
            cache=_lookup(asked, before) if asked else None,
            failed=str(row.get("fail_type") or ""),
            called=_caller(starts.get(region.compile_id, ())),
            specialised=tuple(_specialised(constants.get(region.compile_id, ()))) if not backward else (),
        )
        inside = []


def _specialised(logged: Iterable[LoggedSpecialisation]) -> Iterator[Specialisation]:
    for one in logged:
        frame = next((frame for frame in reversed(one.frames) if not _OF_TORCH.search(frame.file)), None)
        where = f"{frame.file}:{frame.line}" if frame else ""
        for source in one.sources:
            yield Specialisation(user_name(source), one.value, where, frame.code if frame else "")


def _caller(stack: Sequence[Frame]) -> str:
    """Return the line that called what is compiled: the innermost of the user's below it."""
    callers = (one for one in reversed(stack[:-1]) if not _OF_TORCH.search(one.file))
    return next((f"{one.file}:{one.line}" for one in callers), "")


def _user_frame(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what was compiled, `("forward", "net.py:12")`; of a module the line that calls it.

    dynamo compiles a function of its own around a module, which is torch's: then the stack has the caller.
    """
    name, file, line = (row.get(f"co_{key}") for key in ("name", "filename", "firstlineno"))
    if not isinstance(name, str):
        return None
    if isinstance(file, str) and not _OF_TORCH.search(file):
        return name, f"{file}:{line}"
    stack = row.get("stack_trace")
    frames = (_FRAME.match(str(text)) for text in (reversed(stack) if isinstance(stack, list) else ()))
    frame = next((one for one in frames if one and not _OF_TORCH.search(one["file"])), None)
    return (frame["name"], f"{frame['file']}:{frame['line']}") if frame else (name, f"{file}:{line}")


def _graphs(manifest: Manifest | None, compile_id: str, *, backward: bool) -> tuple[str, ...]:
    graphs = manifest.graphs if manifest is not None else ()
    return tuple(
        graph.name for graph in graphs
        if graph.compile_id == compile_id and (graph.why == "backward") is backward
    )  # fmt: skip


def _number(row: Mapping[str, Any], name: str) -> int | None:
    value = row.get(name)
    return value if isinstance(value, int) else None


def _lookup(asked: Sequence[LoggedCache], earlier: Sequence[LoggedCache]) -> CacheLookup:
    """Return what caches answered in a compile, the last of those that were asked for a graph.

    A miss is compared with the most similar earlier key of the same graph.
    """
    last = asked[-1]
    result = cast("CacheResult", last.result if last.result in _RESULTS else "bypass")
    reason = next((one.reason for one in reversed(asked) if one.reason), "") if result != "hit" else ""
    if result != "miss":
        return CacheLookup(result, reason)
    alike = [differing for one in earlier if (differing := _differing(last.parts, one.parts)) is not None]
    return CacheLookup(result, reason, min(alike, key=len, default=None))


def _differing(now: Mapping[str, KeyPart], before: Mapping[str, KeyPart]) -> tuple[str, ...] | None:
    """Return what two keys have otherwise; None where they are of graphs that have little in common.

    Digests are compared, as texts have addresses of functions in them that are no part of a key.
    """
    if _GRAPH not in now or _GRAPH not in before:
        return None
    lines: list[tuple[str, str]] = []
    if now[_GRAPH].digest != before[_GRAPH].digest:
        both = [_code(key[_GRAPH].text) for key in (now, before)]
        if len(both[0]) != len(both[1]):
            return None
        lines = [(new, old) for new, old in zip(*both, strict=True) if new != old]
        if len(lines) > min(_MOST_LINES, len(both[0]) // 2):
            return None
    names = [
        name for name in {**now, **before} if name != _GRAPH and _digest(now, name) != _digest(before, name)
    ]
    texts = [(name, _text(now, name), _text(before, name)) for name in names]
    texts += [("a line of the graph", *_apart(new, old)) for new, old in lines]
    differing = [f"{name}: {new}, and {old} before" for name, new, old in texts]
    if now[_GRAPH].digest != before[_GRAPH].digest and not lines:
        differing.append("what the graph holds beside its code: a constant, or metadata of its nodes")
    return tuple(differing)


def _code(text: str) -> list[str]:
    """Return the statements of an FX graph, without the `arg0_1 = None` behind them that frees memory."""
    lines = (line.partition(";")[0].strip() for line in text.splitlines())
    return [line.replace("torch.ops.", "") for line in lines if line]


def _apart(new: str, old: str) -> tuple[str, str]:
    """Return two statements, from a little before what differs where they are long."""
    begin = next((i for i, (a, b) in enumerate(zip(new, old, strict=False)) if a != b), 0)
    start = new.rfind(" ", 0, max(begin - _LONGEST_TEXT // 2, 0)) + 1
    return _short(new[start:]), _short(old[start:])


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."


def _digest(key: Mapping[str, KeyPart], name: str) -> str:
    return key[name].digest if name in key else ""


def _text(key: Mapping[str, KeyPart], name: str) -> str:
    return _short(_ADDRESS.sub("", key[name].text)) if name in key else "not there"


def _builds(log: CompileLog) -> Iterator[Build]:
    for one in log.builds:
        of_text = log.kernels.get(one.digest) or ((one.kernel, one.compile_id),)
        names, ids = ({pair[place] for pair in of_text} for place in (0, 1))
        name, compile_id = (members.pop() if len(members) == 1 else "" for members in (names, ids))
        kind = cast("BuildKind", one.kind if one.kind in get_args(BuildKind) else "other")
        yield Build(kind, "triton" if one.compiler == "triton" else "c++", one.seconds, name, compile_id)
