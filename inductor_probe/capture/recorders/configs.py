"""With which configs a Triton kernel is offered to be run: block sizes, warps and stages, and why so many.

The kernel's source calls a heuristic of torch/_inductor/runtime/triton_heuristics.py with size hints (its
sizes rounded up to powers of two) and with what the code generator counted: loads, reductions, the hint. The
heuristic answers a list of configs. One is compiled and run; several are compiled, and timed when the kernel
is first called. For example `x + 1` of 600 x 1024 has the size hint x=1048576, for which `pointwise`
offers XBLOCK=512 and XBLOCK=1024; a sum over its rows with the hint INNER is given one config.

The heuristic runs when the kernel is loaded, in this process or in one of torch's compile workers. Either way
this process has the `CachingAutotuner` in the end, with the configs that it was made with, or, once they are
compiled, those that could be compiled. The heuristic is asked once more here, with what the kernel has: it is
watched, and the tests by which it chooses are the cause. Its nodes are known where its source is named.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from inductor_probe.capture.branches import CallPath, calls, matches
from inductor_probe.capture.recorders.base import Call, Cause, Operands, Recorder, Tests, sees
from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    debug_folder,
    names_of,
    place_of,
    size_of,
    test_at,
)
from inductor_probe.model.decision import CauseCode, TorchTest

_HEURISTIC = re.compile(r"^\s*@triton_heuristics\.(\w+)\(", re.MULTILINE)
_HEURISTICS = "torch._inductor.runtime.triton_heuristics"
_WATCHED = {
    _HEURISTICS: (
        "pointwise", "foreach", "_reduction_configs", "_persistent_reduction_configs",
        "filter_reduction_configs_for_determinism",
    ),
    "torch._inductor.heuristics.triton_codegen.pointwise": (
        "PointwiseHeuristic._configs_1d", "PointwiseHeuristic._configs_2d", "PointwiseHeuristic._configs_3d",
    ),
    "torch._inductor.heuristics.triton_codegen.reduction": (
        "ReductionHeuristic.get_configs", "ReductionHeuristic.get_persistent_configs",
    ),
}  # fmt: skip
"""What chooses configs; since torch 2.14 in modules of its own."""
_Rule = tuple[CauseCode, Mapping[str, bool]]
_TUNED: tuple[_Rule, ...] = tuple(
    ("max-autotune", {f"inductor_meta.get({setting!r})": True})
    for setting in ("max_autotune", "max_autotune_pointwise")
)
_NOT_TUNED = {"inductor_meta.get('max_autotune_pointwise')": False}
_SWITCH, _HINT = "inductor_meta.get('autotune_pointwise', ?)", "reduction_hint == ReductionHint.?"
_REDUCTION: tuple[_Rule, ...] = (
    ("matrix-product", {"triton_meta.get('native_matmul')": True}),
    ("tiled-reduction", {"'y' in size_hints": True}),
    ("max-autotune", {"max_autotune_enabled": True}),
    ("short-rows", {"rnumel >= ?": False}),
    ("whole-row-config", {_HINT: True, "loads_and_red <= ?": True}),
    ("known-hint", {_HINT: True}),
    ("default-hint", {_HINT: False}),
)
_RULES: dict[str, tuple[_Rule, ...]] = {
    "pointwise": (
        *_TUNED,
        ("pointwise-autotuning-off", {_SWITCH: False}),
        ("one-input-one-output", {"tile_hint == TileHint.SQUARE": True}),
        ("pointwise-autotuning", {_SWITCH: True}),
        ("three-loops", _NOT_TUNED),
    ),
    "foreach": (*_TUNED, ("foreach-warps", _NOT_TUNED)),
    **dict.fromkeys(("reduction", "persistent_reduction", "cooperative_reduction", "split_scan"), _REDUCTION),
}
"""Causes of each heuristic, and tests that hold or do not: the first whose tests were all made counts."""
_FILTERED = {"_do_filter_due_to_inductor_config()": True, "len(configs) == ?": False}
_ONE = (
    "pointwise-autotuning-off", "one-input-one-output", "three-loops", "foreach-warps", "template-config",
    "known-hint", "combo-kernel", "unlisted-test",
)  # fmt: skip
"""Causes that say already why there is one config; others offer several, of which one may be left."""


class _Named(Struct, frozen=True):
    """A kernel as `define_kernel` named it, once for each group of nodes that has it.

    blocks: of a template, whose text they are put into.
    """

    heuristic: str
    is_square: bool
    numels: Mapping[str, Any]
    nodes: tuple[str, ...]
    blocks: Mapping[str, Any]


class Configs(Recorder):
    """Keeps kernels by name, as they are named and as they are loaded, until both are known."""

    KIND = "configs"

    def __init__(self, log: DecisionLog) -> None:
        super().__init__(log)
        self._folder: str | None = None
        self._named: dict[str, list[_Named]] = {}
        self._tuners: dict[str, Any] = {}

    @sees("torch._inductor.codegen.triton", "TritonScheduling.define_kernel")
    def kernel_named(self, call: Call, _: object, source: str, schedule: Any, kernel: Any) -> None:
        """Remember which nodes a kernel is of, and which heuristic its source calls."""
        self._follow_graph()
        leaves = [leaf for node in schedule if hasattr(node, "get_nodes") for leaf in node.get_nodes()]
        match = _HEURISTIC.search(source)
        if match is None or not leaves:
            return
        name, is_square = call.result, "tile_hint=TileHint.SQUARE" in source
        meta = getattr(kernel, "meta", None) or {}
        blocks = {key: value for key, value in meta.items() if key.startswith(("BLOCK", "GROUP"))}
        one = _Named(match[1], is_square, dict(getattr(kernel, "numels", {})), names_of(leaves), blocks)
        self._named.setdefault(name, []).append(one)
        if name in self._tuners:
            self._record(one, name, self._tuners[name])

    @sees("torch._inductor.async_compile", "AsyncCompile.triton")
    def kernel_loaded(self, call: Call, *_: Any, **__: Any) -> None:
        """See a kernel that was loaded here; one that a worker loads is seen when it arrives."""
        if getattr(call.result, "configs", None):
            self.kernel_compiled(call, call.result)

    @sees(_HEURISTICS, "CachingAutotuner.precompile")
    def kernel_compiled(self, _: Call, tuner: Any, *__: Any, **___: Any) -> None:
        """See a kernel whose configs have been compiled, here or in a worker."""
        self._follow_graph()
        name = tuner.inductor_meta.get("kernel_name")
        if name is None or name in self._tuners:
            return
        self._tuners[name] = tuner
        for one in self._named.get(name, ()):
            self._record(one, name, tuner)

    def _follow_graph(self) -> None:
        """Forget the kernels of the graph before: names are counted in each graph."""
        if debug_folder() != self._folder:
            self._folder, self._named, self._tuners = debug_folder(), {}, {}

    def _record(self, kernel: _Named, name: str, tuner: Any) -> None:
        configs = [*(tuner.configs or [result.config for result in tuner.compile_results])]
        meta = tuner.inductor_meta
        hints: Mapping[str, int] = tuner.size_hints or {}
        groups = meta.get("combo_tuning_groups", ())  # of a combo kernel: its parts are timed one by one
        offered = len(configs) if not groups else max(len(group["configs"]) for group in groups)
        for module, names in _WATCHED.items():
            for watched in names if module in sys.modules else ():
                self.log.watch(sys.modules[module], watched)
        operands: Operands = {
            "kernel": name,
            "heuristic": kernel.heuristic,
            "configs": tuple(_text(config, kernel.blocks) for config in configs),
        }
        if hints:
            numels = [(key, kernel.numels.get(key)) for key in hints]
            operands["size_hints"] = tuple(f"{key}={size}" for key, size in hints.items())
            operands["numels"] = tuple(f"{key}={size_of(size)}" for key, size in numels if size is not None)
        operands |= {key: int(meta[key]) for key in ("num_load", "num_reduction") if key in meta}
        cause = _cause(kernel, tuner, offered).behind(operands)
        outcome: Any = "one-config" if offered == 1 else "several-configs"
        place = place_of(getattr(sys.modules[_HEURISTICS], kernel.heuristic))
        self.record(outcome, cause, place, kernel.nodes, key=(kernel.nodes, name), frames=())


def _cause(kernel: _Named, tuner: Any, count: int) -> Cause:
    """Return why there are that many configs."""
    meta = tuner.inductor_meta
    hint = getattr(meta.get("reduction_hint"), "name", None)
    operands: Operands = {} if hint is None else {"hint": hint}
    parts = meta.get("combo_grid_meta") or {}
    if "heuristic_0" in parts:
        return Cause("combo-kernel", _of_parts(parts, meta.get("combo_tuning_groups", ())))
    if kernel.heuristic == "template":
        return Cause("template-config", operands)
    cached = str((getattr(tuner, "autotune_cache_info", None) or {}).get("autotune_cache_state"))
    if cached == "hit":  # the config that an earlier run timed as the best
        return Cause("unlisted-test", operands)
    made = _asked(kernel, tuner)
    code, tests = _rule(kernel.heuristic, made)
    if count == 1 and code not in _ONE:
        filtered = _held(made, _FILTERED)
        code, tests = ("deterministic", filtered) if filtered else ("one-fits", tests)
    return Cause(code, operands, tests)


def _asked(kernel: _Named, tuner: Any) -> list[TorchTest]:
    """Return the tests, the latest first, that the heuristic of a kernel makes of what its tuner has."""
    module = sys.modules[_HEURISTICS]
    arguments: dict[str, Any] = {
        "triton_meta": {**tuner.triton_meta, "device": tuner.device_props},
        # It must not read the config that an earlier run took, and takes some keys out.
        "inductor_meta": {**tuner.inductor_meta, "force_disable_caches": True},
        "filename": tuner.filename,
    }
    if kernel.heuristic != "foreach":
        arguments["size_hints"] = dict(tuner.size_hints)
    if kernel.heuristic == "pointwise":
        arguments["tile_hint"] = module.TileHint.SQUARE if kernel.is_square else None
    elif "reduction_hint" in tuner.inductor_meta:
        arguments["reduction_hint"] = tuner.inductor_meta["reduction_hint"]
    with calls() as made:
        getattr(module, kernel.heuristic)(**arguments)
    return [test_at(path, one) for path in _flat(reversed(made)) for one in path.all()]


def _flat(paths: Iterable[CallPath]) -> Iterator[CallPath]:
    for path in paths:
        yield path
        yield from _flat(reversed(path.inner))


def _rule(heuristic: str, made: list[TorchTest]) -> tuple[CauseCode, Tests]:
    """Return by which rule of its heuristic configs are offered, with the tests that say so."""
    for cause, conditions in _RULES.get(heuristic, ()):
        if tests := _held(made, conditions):
            return cause, tests
    return "unlisted-test", tuple(made[:1])


def _held(made: list[TorchTest], conditions: Mapping[str, bool]) -> Tests:
    """Return the tests of these texts; none if one was not made, or came out otherwise when it was last."""
    tests = [next((one for one in made if matches(one.text, text)), None) for text in conditions]
    pairs = zip(tests, conditions.values(), strict=True)
    held = tuple(one for one, truth in pairs if one is not None and one.truth is truth)
    return held if len(held) == len(conditions) else ()


def _of_parts(parts: Mapping[str, Any], groups: Iterable[Mapping[str, Any]]) -> Operands:
    """Return the sizes of the kernels in a combo kernel, and what is tried for each; equal ones at once."""
    count = int(parts["num_kernels"])
    sizes = [parts[f"size_hints_{number}"] for number in range(count)]
    return {
        "parts": count,
        "sizes_of_parts": tuple(" ".join(f"{key}={value}" for key, value in one.items()) for one in sizes),
        "configs_of_parts": tuple(
            f"{', '.join(map(str, group['member_indices']))}: {_text(config)}"
            for group in groups
            for config in group["configs"]
        ),
    }


def _text(config: Any, blocks: Mapping[str, Any] = MappingProxyType({})) -> str:
    """`XBLOCK=256 num_warps=4 num_stages=1`."""
    values = {**blocks, **config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
    return " ".join(f"{name}={value}" for name, value in values.items())
