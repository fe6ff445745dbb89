"""With which configs a Triton kernel is offered to be run: block sizes, warps and stages, and why so many.

The kernel's source calls a heuristic of torch/_inductor/runtime/triton_heuristics.py with size hints (its
sizes rounded up to powers of two) and with what the code generator counted: loads, reductions, the hint. The
heuristic answers a list of configs. One is compiled and run; several are compiled, and timed when the kernel
is first called. For example `x + 1` of 600 x 1024 has the size hint x=1048576, for which `pointwise`
offers XBLOCK=512 and XBLOCK=1024; a sum over its rows with the hint INNER is given one config.

The heuristic runs when the kernel is loaded, in this process or in one of torch's compile workers. Either way
this process has the `CachingAutotuner` in the end, with the configs that it was made with, or, once they are
compiled, those that could be compiled. Which nodes the kernel is of is known where its source is named.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from inductor_probe.capture.recorders.decision_log import (
    DecisionLog,
    UnknownPathError,
    debug_folder,
    place_of,
    size_of,
)
from inductor_probe.capture.torch_places import wrap
from inductor_probe.model.decision import CauseCode, DecisionKind, Operand, Outcome, TorchFrame

KIND: DecisionKind = "configs"

_HEURISTIC = re.compile(r"^\s*@triton_heuristics\.(\w+)\(", re.MULTILINE)
_HINTED = ("INNER", "OUTER", "OUTER_TINY")
_LONG_ROW = (
    256  # a literal of _persistent_reduction_configs: shorter ones of INNER are tried with each XBLOCK
)
_FEW_ACCESSES = 8  # a literal of _reduction_configs, for the config that has a whole row in a block


class _Named(Struct, frozen=True):
    """A kernel as `define_kernel` named it, once for each group of nodes that has it.

    blocks: of a template, whose text they are put into.
    """

    heuristic: str
    is_square: bool
    is_product: bool
    numels: Mapping[str, Any]
    nodes: tuple[str, ...]
    blocks: Mapping[str, Any]


@dataclass
class _Recorder:
    log: DecisionLog
    folder: str | None = None
    named: dict[str, list[_Named]] = field(default_factory=dict)
    tuners: dict[str, Any] = field(default_factory=dict)

    def kernel_named(
        self, _: TorchFrame, name: str, __: object, source: str, schedule: Any, kernel: Any
    ) -> None:
        """Remember which nodes a kernel is of, and which heuristic its source calls."""
        self._follow_graph()
        leaves = [leaf for node in schedule if hasattr(node, "get_nodes") for leaf in node.get_nodes()]
        nodes = tuple(leaf.get_name() for leaf in leaves)
        match = _HEURISTIC.search(source)
        if match is None or not nodes:
            return
        numels = getattr(kernel, "numels", {})
        is_square = "tile_hint=TileHint.SQUARE" in source
        is_product = "'native_matmul': True" in source
        blocks = {
            key: value
            for key, value in (getattr(kernel, "meta", None) or {}).items()
            if key.startswith(("BLOCK", "GROUP"))
        }
        one = _Named(match[1], is_square, is_product, dict(numels), nodes, blocks)
        self.named.setdefault(name, []).append(one)
        if name in self.tuners:
            self._record(one, name, self.tuners[name])

    def kernel_loaded(self, _: TorchFrame, kernel: Any, *__: Any, **___: Any) -> None:
        """See a kernel that was loaded here; one that a worker loads is seen when it arrives."""
        if getattr(kernel, "configs", None):
            self._offered(kernel)

    def kernel_compiled(self, _: TorchFrame, __: object, tuner: Any, *___: Any, **____: Any) -> None:
        """See a kernel whose configs have been compiled, here or in a worker."""
        self._offered(tuner)

    def _offered(self, tuner: Any) -> None:
        self._follow_graph()
        name = tuner.inductor_meta.get("kernel_name")
        if name is None or name in self.tuners:
            return
        self.tuners[name] = tuner
        for one in self.named.get(name, ()):
            self._record(one, name, tuner)

    def _follow_graph(self) -> None:
        """Forget the kernels of the graph before: names are counted in each graph."""
        if debug_folder() != self.folder:
            self.folder = debug_folder()
            self.named, self.tuners = {}, {}

    def _record(self, kernel: _Named, name: str, tuner: Any) -> None:
        configs = [*(tuner.configs or [result.config for result in tuner.compile_results])]
        meta = tuner.inductor_meta
        state = str((getattr(tuner, "autotune_cache_info", None) or {}).get("autotune_cache_state"))
        if state == "hit":
            raise UnknownPathError("the config that an earlier run found best was read from a cache")
        hints: Mapping[str, int] = tuner.size_hints or {}
        groups = meta.get("combo_tuning_groups", ())  # of a combo kernel: its parts are timed one by one
        offered = len(configs) if not groups else max(len(group["configs"]) for group in groups)
        cause, more = _cause(kernel, tuner, offered, hints)
        operands: dict[str, Operand] = {
            "kernel": name,
            "heuristic": kernel.heuristic,
            "configs": tuple(_text(config, kernel.blocks) for config in configs),
        }
        if hints:
            numels = [(key, kernel.numels.get(key)) for key in hints]
            operands["size_hints"] = tuple(f"{key}={size}" for key, size in hints.items())
            operands["numels"] = tuple(f"{key}={size_of(size)}" for key, size in numels if size is not None)
        operands |= {key: int(meta[key]) for key in ("num_load", "num_reduction") if key in meta}
        outcome: Outcome = "one-config" if offered == 1 else "several-configs"
        heuristics = sys.modules["torch._inductor.runtime.triton_heuristics"]
        place = place_of(getattr(heuristics, kernel.heuristic))
        self.log.record(
            KIND, (kernel.nodes,), outcome, cause, place, operands=operands | more, key=(kernel.nodes, name),
            frames=(),
        )  # fmt: skip


def _cause(
    kernel: _Named, tuner: Any, count: int, hints: Mapping[str, int]
) -> tuple[CauseCode, dict[str, Operand]]:
    """Return why there are that many configs."""
    meta = tuner.inductor_meta
    hint = getattr(meta.get("reduction_hint"), "name", None)
    operands: dict[str, Operand] = {} if hint is None else {"hint": hint}
    parts = meta.get("combo_grid_meta") or {}
    if "heuristic_0" in parts:
        return "combo-kernel", _of_parts(parts, meta.get("combo_tuning_groups", ()))
    cause, is_one = _rule(kernel, meta, hint, hints)
    reduces = kernel.heuristic not in ("pointwise", "template", "foreach")
    filtered = ("deterministic", "force_filter_reduction_configs", "are_deterministic_algorithms_enabled")
    if is_one and count > 1:
        raise UnknownPathError(f"{count} configs, where {cause} leaves one")
    if not is_one and count == 1:
        if reduces and any(meta.get(key) for key in filtered):
            return "deterministic", operands
        return "one-fits", operands
    return cause, operands


def _of_parts(parts: Mapping[str, Any], groups: Iterable[Mapping[str, Any]]) -> dict[str, Operand]:
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


def _rule(
    kernel: _Named, meta: Mapping[str, Any], hint: str | None, hints: Mapping[str, int]
) -> tuple[CauseCode, bool]:
    """Return by which rule of its heuristic configs are offered, and whether that offers one."""
    tunes = bool(meta.get("max_autotune") or meta.get("max_autotune_pointwise"))
    match kernel.heuristic:
        case "pointwise":
            return _pointwise_rule(kernel, meta, hints, tunes=tunes)
        case "foreach":
            return ("max-autotune", False) if tunes else ("foreach-warps", True)
        case "template":
            return "template-config", True
        case "reduction" | "split_scan" | "cooperative_reduction" | "persistent_reduction":
            pass
        case other:
            raise UnknownPathError(f"the heuristic {other}")
    if kernel.is_product:
        return "matrix-product", False
    if "y" in hints:
        return "tiled-reduction", False
    if tunes:
        return "max-autotune", False
    is_persistent = meta.get("persistent_reduction", kernel.heuristic == "persistent_reduction")
    row = math.prod(size for key, size in hints.items() if key.startswith("r"))
    if is_persistent:
        if hint == "INNER" and row < _LONG_ROW:
            return "short-rows", False
    elif meta.get("add_persistent_rblock"):
        accesses = int(meta.get("num_load", 0)) + int(meta.get("num_reduction", 0))
        if hint in _HINTED and accesses <= _FEW_ACCESSES:
            return "whole-row-config", False
    return ("known-hint", True) if hint in _HINTED else ("default-hint", False)


def _pointwise_rule(
    kernel: _Named, meta: Mapping[str, Any], hints: Mapping[str, int], *, tunes: bool
) -> tuple[CauseCode, bool]:
    if tunes:
        return "max-autotune", False
    if len(hints) == 3:
        return "three-loops", True
    if not meta.get("autotune_pointwise", True):
        return "pointwise-autotuning-off", True
    if len(hints) == 2 and kernel.is_square:
        return "one-input-one-output", True
    return "pointwise-autotuning", False


def _text(config: Any, blocks: Mapping[str, Any] = MappingProxyType({})) -> str:
    """`XBLOCK=256 num_warps=4 num_stages=1`."""
    values = {**blocks, **config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
    return " ".join(f"{name}={value}" for name, value in values.items())


_recorder = functools.cache(_Recorder)
"""One a log: its hooks are called when each module is imported."""

HOOKS = {
    "torch._inductor.codegen.triton": lambda module, log: wrap(
        module, "TritonScheduling.define_kernel", log.observed(_recorder(log).kernel_named)
    ),
    "torch._inductor.async_compile": lambda module, log: wrap(
        module, "AsyncCompile.triton", log.observed(_recorder(log).kernel_loaded)
    ),
    "torch._inductor.runtime.triton_heuristics": lambda module, log: wrap(
        module, "CachingAutotuner.precompile", log.observed(_recorder(log).kernel_compiled)
    ),
}
