"""What torch's trace log says of the time of compiles: regions, metrics, the cache, runs of compilers.

Torch times regions (`dynamo_timed` of torch/_dynamo/utils.py) and writes the begin and the end of each, with
the id of the compile, as an event of Chromium's trace format (`ChromiumEventLogger`):

    V1128 17:13:11.58 31835 torch/_dynamo/utils.py:2350] {"chromium_event": {}, "frame_id": 0, ...}
        {"name": "entire_frame_compile", "ts": 1795885991583760.2, "args": {"compile_id": "0/0"}, "ph": "B"}

Regions of one id are inside of each other. Those without an id are of threads in which C++ compilers run
beside each other: begins and ends do not say which belong together. What those compiled, and how long, is in
artifacts that `probe` adds to the log (`capture/compilers.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from inductor_probe.files import object_of
from inductor_probe.model.compile_log import CompileLog, KeyPart, LoggedBuild, LoggedCache, Region
from inductor_probe.model.compile_time import BUILD_ARTIFACT, kernel_digest
from inductor_probe.reader.logs.trace import log_lines
from inductor_probe.reader.output_code import parse_output_code

_LONGEST_PAYLOAD = 1 << 24
_KEYS = (
    "chromium_event", "compilation_metrics", "inductor_output_code", "dynamo_cpp_guards_str", BUILD_ARTIFACT,
)  # fmt: skip
_CACHE = re.compile(r"(?:fx_graph|autograd)_cache_(\w+)")
_NO_ID = "None"


def read_compile_log(log: Path) -> CompileLog:
    """Read a trace log."""
    open_: list[_Open] = []
    regions: list[Region] = []
    metrics: list[Mapping[str, Any]] = []
    caches: list[LoggedCache] = []
    builds: list[LoggedBuild] = []
    kernels: dict[str, tuple[tuple[str, str], ...]] = {}
    guards: list[tuple[str, str]] = []
    last = 0.0
    for header, payload in _entries(log):
        if isinstance(one := header.get("compilation_metrics"), dict):
            metrics.append(one)
            builds += _triton_builds(one)
        elif "dynamo_cpp_guards_str" in header:
            guards.append((_compile_id(header), payload))
        elif "inductor_output_code" in header:
            for digest, name in _kernels(payload):
                kernels[digest] = (*kernels.get(digest, ()), (name, _compile_id(header)))
        elif isinstance(artifact := header.get("artifact"), dict):
            if artifact.get("name") == BUILD_ARTIFACT and (build := _build(object_of(payload))):
                builds.append(build)
        elif event := object_of(payload):
            name, compile_id, time, args = _event(event)
            last = max(last, time)
            if event.get("ph") == "i" and (cache := _CACHE.fullmatch(name)):
                caches.append(_cache(cache[1], compile_id, time, args))
            elif compile_id != _NO_ID and event.get("ph") == "B":
                open_.append(_Open(name, compile_id, time))
            elif compile_id != _NO_ID and event.get("ph") == "E":
                regions += _closed(open_, name, compile_id, time)
    while open_:  # the process ended within it
        regions.append(_close(open_, last, ended=False))
    return CompileLog(tuple(regions), tuple(metrics), tuple(caches), tuple(builds), kernels, tuple(guards))


def _kernels(text: str) -> Iterator[tuple[str, str]]:
    """Yield digests and names of the C++ kernels in a wrapper."""
    for kernel in parse_output_code(text, Path("output_code.py")).kernels:
        if kernel.backend == "cpp" and (digest := kernel_digest(kernel.source)):
            yield digest, kernel.name


class _Open(Struct):
    """A region whose end has not come; `inside` are the seconds of those in it."""

    name: str
    compile_id: str
    begin: float
    inside: float = 0.0


def _closed(open_: list[_Open], name: str, compile_id: str, time: float) -> Iterator[Region]:
    """End the innermost region of a name and id, and what is left open in it, which an exception ended."""
    if any((one.name, one.compile_id) == (name, compile_id) for one in open_):
        while (open_[-1].name, open_[-1].compile_id) != (name, compile_id):
            yield _close(open_, time, ended=False)
        yield _close(open_, time, ended=True)


def _close(open_: list[_Open], time: float, *, ended: bool) -> Region:
    one = open_.pop()
    seconds = max(time - one.begin, 0.0)
    if open_:
        open_[-1].inside += seconds
    own = max(seconds - one.inside, 0.0)
    return Region(one.name, one.compile_id, one.begin, seconds, own, len(open_), ended)


def _entries(log: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield headers that matter here, each with the text that is indented below it."""
    keys = [f'"{name}"' for name in _KEYS]
    header: Mapping[str, Any] | None = None
    payload: list[str] = []
    size = 0
    for line in log_lines(log):
        if line.startswith("\t"):
            size += len(line)
            if header is not None and size <= _LONGEST_PAYLOAD:
                payload.append(line[1:])
            continue
        if header is not None:
            yield header, "".join(payload)
        text = line.partition("] ")[2]
        header = object_of(text) if line.startswith("V") and any(key in text for key in keys) else None
        payload, size = [], 0
    if header is not None:
        yield header, "".join(payload)


def _compile_id(header: Mapping[str, Any]) -> str:
    return f"{header.get('frame_id')}/{header.get('frame_compile_id')}"


def _event(event: Mapping[str, Any]) -> tuple[str, str, float, Mapping[str, Any]]:
    """Return name, id of the compile, seconds, and arguments of an event."""
    args, time = event.get("args"), event.get("ts")
    args = args if isinstance(args, dict) else {}
    seconds = time / 1e6 if isinstance(time, (int, float)) else 0.0
    return str(event.get("name")), str(args.get("compile_id", _NO_ID)), seconds, args


def _cache(result: str, compile_id: str, time: float, args: Mapping[str, Any]) -> LoggedCache:
    """Read an answer of `AOTAutogradCache` or `FxGraphCache`: parts of a key are `[digest] name: value`."""
    parts: dict[str, KeyPart] = {}
    components = args.get("components")
    for text in components if isinstance(components, list) else ():
        digest, _, rest = str(text).partition("] ")
        part, _, value = rest.partition(": ")
        parts[part] = KeyPart(digest.lstrip("["), value)
    reason = args.get("cache_bypass_reason")
    return LoggedCache(compile_id, time, result, str(reason or ""), parts)


def _build(facts: Mapping[str, Any] | None) -> LoggedBuild | None:
    seconds = (facts or {}).get("seconds")
    if facts is None or not isinstance(seconds, (int, float)):
        return None
    return LoggedBuild(str(facts.get("kind")), "c++", float(seconds), str(facts.get("digest", "")))


def _triton_builds(metrics: Mapping[str, Any]) -> Iterator[LoggedBuild]:
    """Read `triton_kernel_compile_times_us`: a JSON text of names and microseconds, the longest few."""
    text = metrics.get("triton_kernel_compile_times_us")
    try:
        rows = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        rows = []
    for row in rows if isinstance(rows, list) else ():
        match row:
            case [str(name), int() | float() as microseconds]:
                compile_id = str(metrics.get("compile_id"))
                yield LoggedBuild("kernel", "triton", microseconds / 1e6, kernel=name, compile_id=compile_id)
            case _:
                continue
