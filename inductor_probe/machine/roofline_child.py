"""Measures what this machine reaches: a job of the process that has imported torch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from inductor_probe.machine.cpu import cache_sizes
from inductor_probe.model.codec import to_json
from inductor_probe.model.remark import Remark, Subject, measured
from inductor_probe.model.timing import PeakRate, Roofline

_FEWEST = 5
_MOST_COPIED = 1 << 29
_LEAST_COPIED = 1 << 26
_ON_CPU, _ON_CUDA = 1024, 4096
_GRAPH_CALLS = 20


def measure(file: dict[str, Any], request: dict[str, Any], tell: Callable[..., None]) -> None:
    """Send the roofline of a `device`, `cpu` or `cuda`, with so many `threads`, measured in `seconds`.

    `dtypes` are those of the matrix products to measure.
    """
    import torch

    device, threads, seconds, dtypes = (request[key] for key in ("device", "threads", "seconds", "dtypes"))
    begin = time.perf_counter()
    torch.set_num_threads(threads)
    cache, last, beyond = _sizes(device, threads)
    between = min(8 * cache, last // 4)
    copies = {"memory": beyond, "cache": cache // 2} | ({"last cache": between} if between > cache else {})
    share = seconds / (len(copies) + len(dtypes))
    peaks: list[PeakRate] = []
    remarks: list[Remark] = []
    for place, size in copies.items():
        source = torch.ones(size // 8, device=device)
        target = torch.ones_like(source)
        fastest, calls = _fastest(partial(target.copy_, source), device, share)
        moved = 2 * source.numel() * source.element_size()
        peaks.append(PeakRate("copy", place, moved, moved / fastest, calls))
        del source, target
    for name in dtypes:
        try:
            peaks.append(_product(name, device, share))
        except (RuntimeError, AttributeError) as error:
            numbers = {"dtype": name, "error": next(iter(str(error).splitlines()), type(error).__name__)}
            remarks.append(measured("matmul-not-measured", "analysis", Subject("machine", device), numbers))
    name = torch.cuda.get_device_name() if device == "cuda" else device
    roofline = Roofline(
        torch.__version__,
        name,
        threads,
        cache,
        last,
        tuple(peaks),
        tuple(remarks),
        time.perf_counter() - begin,
    )
    tell("roofline", roofline=to_json(roofline))


def _product(name: str, device: str, limit_s: float) -> PeakRate:
    import torch

    rows = _ON_CUDA if device == "cuda" else _ON_CPU
    # A small product first: where that is slow (no instructions for its dtype), the large one is not run.
    a = torch.ones(rows // 4, rows // 4, device=device, dtype=getattr(torch, name))
    a @ a
    _wait(device)
    begin = time.perf_counter()
    a @ a
    _wait(device)
    if (time.perf_counter() - begin) * 64 > limit_s:
        rows //= 4
    a = torch.rand(rows, rows, device=device).to(getattr(torch, name))
    b, out = a.t().contiguous(), torch.empty_like(a)
    seconds, calls = _fastest(lambda: torch.mm(a, b, out=out), device, limit_s)
    return PeakRate("matmul", name, rows, 2 * rows**3 / seconds, calls)


def _fastest(run: Callable[[], object], device: str, limit_s: float) -> tuple[float, int]:
    """Return the seconds of the fastest call, and how many there were."""
    import torch

    run()
    _wait(device)
    if cuda := device == "cuda":
        # Calls recorded as a CUDA graph: so short copies do not wait for their launches.
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(_GRAPH_CALLS):
                run()
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    # What others do to the core meanwhile does not count: no slice of a busy one is as long as a large copy.
    clock = time.perf_counter if cuda or torch.get_num_threads() > 1 else time.thread_time
    times: list[float] = []
    end = time.perf_counter() + limit_s
    while len(times) < _FEWEST or time.perf_counter() < end:
        begin = clock()
        if cuda:
            start.record()
            graph.replay()
            stop.record()
            stop.synchronize()
            times.append(start.elapsed_time(stop) / 1e3 / _GRAPH_CALLS)
        else:
            run()
            times.append(clock() - begin)
    return min(times), len(times)


def _wait(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def _sizes(device: str, threads: int) -> tuple[int, int, int]:
    """Return the bytes of a cache, of the last one, and of both buffers of a copy that no cache holds.

    The cache is the second level of as many cores; a GPU's L2 is both. Memory may be too small for the copy.
    """
    import torch

    if device == "cuda":
        cache = last = int(torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size)
        free = torch.cuda.mem_get_info()[0]
    else:
        sizes = cache_sizes()
        cache = sizes.get(2, 1 << 19) * threads
        last = max([cache, *sizes.values()])
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return cache, last, int(min(max(4 * last, _LEAST_COPIED), 2 * _MOST_COPIED, free // 4))
