"""What was set otherwise: torch's configuration and the environment, on both sides of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inductor_probe.model.debug_dir import CompiledGraph
from inductor_probe.model.diff import FactChange
from inductor_probe.model.manifest import Manifest

# `probe dump` sets these: folders that are new each time, caches that are off. They explain nothing.
_OF_THE_DUMP = (
    "TORCH_COMPILE_DEBUG", "TORCH_COMPILE_DEBUG_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE", "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE",
    "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE", "TORCHINDUCTOR_FORCE_DISABLE_CACHES", "INDUCTOR_PROVENANCE",
)  # fmt: skip


def changed_settings(a: CompiledGraph, b: CompiledGraph) -> tuple[FactChange, ...]:
    """Return the settings of torch and the variables that changed between the runnables of two graphs.

    `fx_graph_runnable.py` has the settings that are not the default (`generate_config_string` of
    `torch._dynamo.debug_utils`), and from torch 2.9 on variables (`generate_env_vars_string` there).
    """
    if a.runnable is None or b.runnable is None:
        return ()
    changed = _changes(dict(a.runnable.settings), dict(b.runnable.settings), "default")
    if a.runnable.environment and b.runnable.environment:  # older releases print none
        changed += _variable_changes(a.runnable.environment, b.runnable.environment)
    return changed


def changed_variables(a: Manifest, b: Manifest) -> tuple[FactChange, ...]:
    """Return the variables that changed between two runs; nothing where one of them did not keep them."""
    if a.environment is None or b.environment is None:
        return ()
    return _variable_changes(a.environment, b.environment)


def _variable_changes(a: Iterable[tuple[str, str]], b: Iterable[tuple[str, str]]) -> tuple[FactChange, ...]:
    mine, other = ({name: value for name, value in side if name not in _OF_THE_DUMP} for side in (a, b))
    return _changes(mine, other, "not set")


def _changes(a: Mapping[str, str], b: Mapping[str, str], otherwise: str) -> tuple[FactChange, ...]:
    names = dict.fromkeys([*a, *b])
    return tuple(
        FactChange(name, a.get(name, otherwise), b.get(name, otherwise))
        for name in names
        if a.get(name) != b.get(name)
    )
