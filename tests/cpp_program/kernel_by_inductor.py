"""Runs a C++ kernel as inductor loads it, on the inputs that its program makes; prints checksums as JSON.

The inputs and checksums are computed here a second time, from their description, with numpy.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import torch
from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile

DTYPES = {
    "float": torch.float32, "double": torch.float64, "bool": torch.bool, "uint8_t": torch.uint8,
    "int64_t": torch.int64, "int32_t": torch.int32, "at::BFloat16": torch.bfloat16, "at::Half": torch.float16,
}  # fmt: skip


def mix(numbers: Any) -> Any:
    with np.errstate(over="ignore"):
        x = np.asarray(numbers, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def filled(memory: dict[str, Any], position: int, seed: int) -> torch.Tensor:
    dtype, elements = DTYPES[memory["type"]], int(memory["elements"])
    with np.errstate(over="ignore"):
        random = mix(mix(seed + position) + np.arange(elements, dtype=np.uint64))
    if dtype is torch.bool:
        return torch.from_numpy((random & np.uint64(1)).astype(np.bool_))
    if not dtype.is_floating_point:
        low, high = int(memory["low"] or 0), int(memory["high"] or 0)
        return torch.from_numpy((random % np.uint64(high - low + 1)).astype(np.int64) + low).to(dtype)
    fractions = (random >> np.uint64(40)).astype(np.float32) / np.float32(8388608) - np.float32(1)
    return torch.from_numpy(fractions).to(dtype)


def checksum(tensor: torch.Tensor) -> str:
    unit = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[tensor.element_size()]
    words = tensor.view(torch.uint8).numpy().view(unit).astype(np.uint64)
    with np.errstate(over="ignore"):
        bits = mix(mix(np.arange(len(words), dtype=np.uint64)) ^ words).sum(dtype=np.uint64)
    return f"{int(bits):016x}"


def main() -> None:
    task = json.load(sys.stdin)
    config.cpp.simdlen = task["simdlen"]
    compiler = AsyncCompile()
    kernel = compiler.cpp_pybinding(task["types"], task["source"])
    scope = {"kernel": kernel}
    compiler.wait(scope)
    tensors = {memory["name"]: filled(memory, at, task["seed"]) for at, memory in enumerate(task["memories"])}
    scope["kernel"](*tensors.values())
    written = {memory["name"] for memory in task["memories"] if memory["use"] != "in"}
    sys.stdout.write(
        json.dumps({name: checksum(tensors[name]) for name in tensors if name in written}) + "\n"
    )


if __name__ == "__main__":
    main()
