"""A C++ kernel that reads a clock around each of its loop nests: a copy of its text with a few lines more.

    const int64_t probe_begin_2 = inductor_probe::now();
    #pragma omp for nowait
    for(int64_t x0=...)
    {
        ...
    }
    const int64_t probe_worked_2 = inductor_probe::now();
    #pragma omp barrier
    inductor_probe::note(65538, probe_begin_2, probe_worked_2, inductor_probe::now());

Each thread notes its own times; that it waits for the others is known since `omp for` has no barrier of its
own any more. The rows go to memory whose address is in the environment (`harness/profile.py` sets it and says
what is in it), as inductor passes an address to its kernels; where that says so, the clock is the CPU time of
the thread. Nothing else of the kernel is changed.
"""

from __future__ import annotations

import re

from inductor_probe.backends.cpp import SIGNATURE
from inductor_probe.model.code import LoopNest
from inductor_probe.model.profile import ClockName, ClockProblem

_PRAGMA = re.compile(r"\s*#pragma\b")
_SHARED_LOOP = re.compile(r"(?P<pragma>\s*#pragma omp for\b(?!.*\bnowait\b).*?)\s*")
_BODY = re.compile(r"\s*(?:noexcept\s*)?\{")
_NOW = {
    # Fences: what the processor does out of order before or behind must not be counted on the other side.
    "tsc": "__builtin_ia32_lfence();\n    const int64_t ticks = __builtin_ia32_rdtsc();\n"
    "    __builtin_ia32_lfence();",
    "steady_clock": "const int64_t ticks = nanoseconds();",
}
_SUPPORT = """
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif
namespace inductor_probe {
static int64_t* find_memory()
{
    const char* address = std::getenv("INDUCTOR_PROBE_EVENTS");
    return address ? reinterpret_cast<int64_t*>(std::strtoull(address, nullptr, 10)) : nullptr;
}
static int64_t* const memory = find_memory();
static inline bool on_cpu_time()
{
    return memory != nullptr && memory[2] != 0;
}
static inline int64_t nanoseconds()
{
#ifdef CLOCK_THREAD_CPUTIME_ID
    if (on_cpu_time()) {
        timespec mine;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mine);
        return mine.tv_sec * int64_t(1000000000) + mine.tv_nsec;
    }
#endif
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}
static inline int64_t now()
{
    asm volatile("" ::: "memory");
    if (on_cpu_time()) return nanoseconds();
    NOW
    asm volatile("" ::: "memory");
    return ticks;
}
static inline void note(int64_t what, int64_t begin, int64_t worked, int64_t end)
{
#ifdef _OPENMP
    const int64_t thread = omp_get_thread_num();
#else
    const int64_t thread = 0;
#endif
    if (memory == nullptr || thread >= memory[0]) return;
    int64_t* const mine = memory + 8 + thread * (8 + 4 * memory[1]);
    const int64_t row = mine[0]++;
    if (row >= memory[1]) return;
    int64_t* const place = mine + 8 + 4 * row;
    place[0] = what, place[1] = begin, place[2] = worked, place[3] = end;
}
struct Launch
{
    const int64_t what, at, begin;
    explicit Launch(int64_t what) : what(what), at(nanoseconds()), begin(now())
    {
        int64_t first = now();
        int64_t last = now();
        note(what + 0xFFFE, first, last, last);
        first = now();
        volatile int64_t steady = nanoseconds();
        (void)steady;
        last = now();
        note(what + 0xFFFF, first, last, last);
    }
    ~Launch()
    {
        const int64_t end = now();
        note(what, begin, at, end);
    }
};
}
"""


class NotClockedError(Exception):
    """A kernel's text is not of a form that clock reads can be put into."""

    def __init__(self, problem: ClockProblem) -> None:
        super().__init__(problem)
        self.problem = problem


def with_clock(source: str, nests: tuple[LoopNest, ...], number: int, clock: ClockName) -> str:
    """Return the text of a C++ kernel that notes the times of its launches and loop nests.

    Args:
        source: the kernel.
        nests: of `CppFacts`, with the lines of this text: those to be timed.
        number: of the kernel: launches are noted as `number << 16`, loop nest 1 as that + 1, and as
            + 0xFFFE and + 0xFFFF what does nothing, and what reads `steady_clock`: what a note costs.
        clock: what is read; `tsc` is of x86.

    Raises:
        NotClockedError: it defines no function, or a loop nest is no statement of its own.
    """
    signature = SIGNATURE.search(source)
    body = _BODY.match(source, signature.end()) if signature else None
    if signature is None or body is None:
        raise NotClockedError(ClockProblem("no-function"))
    code = number << 16
    lines = source.split("\n")
    before: dict[int, list[str]] = {}
    after: dict[int, list[str]] = {}
    for place, nest in enumerate(nests, 1):
        first = nest.line
        while first > 1 and _PRAGMA.match(lines[first - 2]):
            first -= 1
        _require_statement(lines, first, nest)
        indent = lines[nest.line - 1][: len(lines[nest.line - 1]) - len(lines[nest.line - 1].lstrip())]
        before[first] = [f"{indent}const int64_t probe_begin_{place} = inductor_probe::now();"]
        note = f"{indent}inductor_probe::note({code + place}, probe_begin_{place}, probe_worked_{place}, "
        after[nest.last] = [f"{indent}const int64_t probe_worked_{place} = inductor_probe::now();"]
        shared = [row for row in range(first, nest.line) if _SHARED_LOOP.fullmatch(lines[row - 1])]
        if shared:
            match = _SHARED_LOOP.fullmatch(lines[shared[0] - 1])
            lines[shared[0] - 1] = f"{match['pragma'] if match else ''} nowait"
            after[nest.last] += ["#pragma omp barrier", f"{note}inductor_probe::now());"]
        else:
            after[nest.last].append(f"{note}probe_worked_{place});")
    row = source.count("\n", 0, body.end())  # of the brace that opens the body, from 0
    column = body.end() - (source.rfind("\n", 0, body.end()) + 1)
    head, rest = lines[row][:column], lines[row][column:]
    lines[row] = f"{head} const inductor_probe::Launch probe_launch({code});{rest}"
    top = source.count("\n", 0, signature.start())
    made: list[str] = []
    for at, line in enumerate(lines, 1):
        if at - 1 == top:
            made += _SUPPORT.replace("NOW", _NOW[clock]).split("\n")
        made += [*before.get(at, ()), line, *after.get(at, ())]
    return "\n".join(made)


def _require_statement(lines: list[str], first: int, nest: LoopNest) -> None:
    """Refuse a nest that a declaration cannot stand above, or that does not end with its line.

    Raises:
        NotClockedError: it names its lines.
    """
    above = next((line.strip() for line in reversed(lines[: first - 1]) if line.strip()), "")
    if not above.endswith(("{", "}", ";")) or lines[nest.last - 1].strip() != "}":
        raise NotClockedError(ClockProblem("nest-inside", nest.line, nest.last))
