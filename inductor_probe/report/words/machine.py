"""Words for what spoils times on a machine: its processors, and its GPU."""

from __future__ import annotations

from collections.abc import Callable

from inductor_probe.model.remark import Remark
from inductor_probe.report.units import counted

_THROTTLED_BY = {
    "power_limit": "the power limit",
    "hardware_slowdown": "a slow-down by hardware",
    "sync_boost": "another GPU that it is synchronised with",
    "software_thermal": "its temperature (by the driver)",
    "hardware_thermal": "its temperature (by hardware)",
    "power_brake": "the power supply",
    "thermal": "its temperature",
    "board_limit": "the board's limit",
    "reliability": "reliability",
}


def machine_sentence(remark: Remark) -> str:
    """Say what is wrong, and what to do about it where something can be done."""
    return "; ".join(filter(None, what_and_remedy(remark)))


def what_and_remedy(remark: Remark) -> tuple[str, str]:
    """Return what is wrong, and what to do about it; without a remedy that is empty."""
    return MACHINE_WORDS[remark.code](remark)


def _fixed_threads(remark: Remark) -> tuple[str, str]:
    numbers = remark.scalars
    threads, fixed = numbers["threads"], " or ".join(str(numbers["fixed"]).split(", "))
    what = f"--threads {threads} does not reach {_kernels(remark)}, whose text fixes {fixed}"
    return what, f"dump with OMP_NUM_THREADS={threads} for kernels that have as many"


def _more_threads(remark: Remark) -> tuple[str, str]:
    what = (
        f"{_who(remark)}, and {_processors(remark)} may run them: they take turns and wait for each other, "
        "so that the time is not the kernel's"
    )
    return what, _fewer(remark)


def _cpu_quota(remark: Remark) -> tuple[str, str]:
    numbers = remark.scalars
    period = f" of {float(numbers['period_s']) * 1000:.0f} ms" if "period_s" in numbers else ""
    what = (
        f"{_who(remark)}, and the control group has a quota of {numbers['quota']:g} processors (cpu.max): "
        f"once it is used up, all stand still for the rest of the period{period}"
    )
    return what, _fewer(remark)


def _busy_processors(remark: Remark) -> tuple[str, str]:
    numbers = remark.scalars
    several = int(numbers["threads"]) > 1
    waits = ", which wait for the one that does not run" if several else ""
    what = (
        f"{_who(remark)}{waits}, and others keep {numbers['busy']:.1f} of {_processors(remark)} busy: "
        "samples can take a thousand times as long"
    )
    return what, "wait until those are done" + (f", or {_fewer(remark)}" if several else "")


def _stolen_processors(remark: Remark) -> tuple[str, str]:
    what = (
        f"the hypervisor took {remark.scalars.get('stolen'):.2f} of {_processors(remark)} away just now: "
        "another guest is busy, and nothing here can stop it"
    )
    return what, "time more, or elsewhere"


def _varying_clocks(remark: Remark) -> tuple[str, str]:
    governors = " and ".join(str(remark.scalars.get("governors")).split(", "))
    what = f"the governor {governors} changes clocks while kernels run"
    return what, "`sudo cpupower frequency-set -g performance` holds them"


def _gpu_not_readable(remark: Remark) -> tuple[str, str]:
    return f"{remark.scalars.get('reason')}: throttling would go unnoticed", ""


def _gpu_throttled(remark: Remark) -> tuple[str, str]:
    numbers = remark.scalars
    reasons = " and ".join(
        _THROTTLED_BY.get(reason, reason) for reason in str(numbers["reasons"]).split(", ")
    )
    clocks = f" ({numbers['mhz']:g} of {numbers['max_mhz']:g} MHz)" if "mhz" in numbers else ""
    return f"the GPU's clock is throttled by {reasons}{clocks}: times are too long", ""


def _gpu_was_throttled(remark: Remark) -> tuple[str, str]:
    reasons = [(name.removesuffix("_s"), seconds) for name, seconds in remark.numbers]
    each = " and ".join(f"{_THROTTLED_BY.get(name, name)} for {seconds:.2g} s" for name, seconds in reasons)
    return f"the GPU's clock was throttled by {each} meanwhile: times are too long", ""


def _gpu_shared(remark: Remark) -> tuple[str, str]:
    numbers = remark.scalars
    count, pids = int(numbers["processes"]), str(numbers["pids"])
    more = " ..." if count > len(pids.split(", ")) else ""
    compute = "computes" if count == 1 else "compute"
    processes = counted(count, "other process", "other processes")
    return f"{processes} {compute} on this GPU ({pids}{more}): times hold their work, too", ""


def _gpu_busy(remark: Remark) -> tuple[str, str]:
    busy = remark.scalars.get("busy")
    return f"the GPU was {busy:.0%} busy before anything was timed: something else runs on it", ""


def _who(remark: Remark) -> str:
    return f"{_kernels(remark)}: {counted(int(remark.scalars.get('threads') or 0), 'thread')}"


def _kernels(remark: Remark) -> str:
    names = [subject.name for subject in remark.subjects]
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _processors(remark: Remark) -> str:
    return counted(int(remark.scalars.get("processors") or 0), "processor")


def _fewer(remark: Remark) -> str:
    by_dump = remark.scalars.get("set_by") == "dump"
    return "dump with a smaller OMP_NUM_THREADS" if by_dump else "give a smaller --threads"


MACHINE_WORDS: dict[str, Callable[[Remark], tuple[str, str]]] = {
    "fixed-threads": _fixed_threads,
    "more-threads-than-processors": _more_threads,
    "cpu-quota": _cpu_quota,
    "busy-processors": _busy_processors,
    "stolen-processors": _stolen_processors,
    "varying-clocks": _varying_clocks,
    "gpu-not-readable": _gpu_not_readable,
    "gpu-throttled": _gpu_throttled,
    "gpu-was-throttled": _gpu_was_throttled,
    "gpu-shared": _gpu_shared,
    "gpu-busy": _gpu_busy,
}
