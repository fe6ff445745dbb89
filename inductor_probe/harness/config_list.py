"""The configs of a Triton kernel: those that inductor tries, and those that are asked for."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch

from inductor_probe.harness.remarks import Remark, remark

HEURISTICS = "torch._inductor.runtime.triton_heuristics"  # imported when a kernel is there: that takes long
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")  # of a config, beside its block sizes


def parse_configs(text: str) -> dict[str, list[int]]:
    """Read `XBLOCK=1,8,32 num_warps=4,8`: each combination is a config.

    Raises:
        ValueError: another form; says which part.
    """
    asked: dict[str, list[int]] = {}
    for part in text.split():
        match = re.fullmatch(r"([A-Za-z_]\w*)=(\d+(?:,\d+)*)", part)
        if match is None:
            raise ValueError(
                f"cannot read {part!r}: write NAME=1,8,32 for each block size, num_warps, num_stages"
            )
        asked.setdefault(match[1], []).extend(int(number) for number in match[2].split(","))
    return asked


def asked_configs(text: str, base: Any, parameters: list[str]) -> list[Any]:
    """Return a config for each combination in `text`; what it does not name is as in `base`.

    `RBLOCK` means `R0_BLOCK` where the kernel has that.

    Raises:
        ValueError: the kernel has no such parameter; says which it has.
    """
    values: dict[str, list[int]] = {}
    for name, numbers in parse_configs(text).items():
        own = "R0_BLOCK" if name == "RBLOCK" and name not in parameters else name
        known = [each for each in parameters if each in base.kwargs or each.endswith("BLOCK")]
        if own not in known and own not in OPTIONS:
            raise ValueError(f"this kernel has no {name} to set; it has {', '.join([*known, *OPTIONS[:2]])}")
        values[own] = numbers
    configs = []
    for combination in itertools.product(*values.values()) if values else ():
        config = deepcopy(base)
        for name, number in zip(values, combination, strict=True):
            if name in OPTIONS:
                setattr(config, name, number)
            else:
                config.kwargs[name] = number
        config.found_by_coordesc = False
        configs.append(config)
    return configs


def config_values(config: Any) -> dict[str, int]:
    """Return a config as a dictionary: block sizes, then options that are not at their default."""
    options = {name: getattr(config, name, None) for name in OPTIONS}
    return {
        **config.kwargs,
        **{
            name: value
            for name, value in options.items()
            if value is not None and not (name == "num_ctas" and value == 1)
        },
    }


def fresh_autotuner(kernel: Any, remarks: list[Remark]) -> Any:
    """Return the kernel as if it was just read: with all its configs, and nothing compiled.

    A kernel that has run keeps the config that it chose; one that is in the autotune cache starts with it.

    Raises:
        ValueError: its source file is gone.
    """
    path = Path(_source_file(kernel))
    spec = importlib.util.spec_from_file_location(f"configs_of_{path.stem}", path)
    if spec is None or spec.loader is None or not path.exists():
        raise ValueError(f"the source of {kernel.fn.__name__} is not at {path} any more")
    module = importlib.util.module_from_spec(spec)
    with _no_autotune_cache(remarks):
        spec.loader.exec_module(module)
    return getattr(module, kernel.fn.__name__)


def _source_file(kernel: Any) -> str:
    if kernel.filename:
        return str(kernel.filename)
    jit = kernel.fn if kernel.fn.fn is not None else kernel._reload_kernel().fn  # a worker compiled it
    return str(jit.fn.__code__.co_filename)


@contextmanager
def _no_autotune_cache(remarks: list[Remark]) -> Iterator[None]:
    triton_heuristics = importlib.import_module(HEURISTICS)
    name = "check_autotune_cache"
    kept = getattr(triton_heuristics, name, None)
    if kept is None:
        remarks.append(remark("autotune-cache-in-use", function=name, torch=torch.__version__))
        yield
        return
    setattr(triton_heuristics, name, lambda configs, *_: (configs, None, {}))
    try:
        yield
    finally:
        setattr(triton_heuristics, name, kept)
