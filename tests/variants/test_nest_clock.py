"""Clock reads around the loop nests of C++ kernels: what is added, and that nothing else changes."""

from __future__ import annotations

import re

import pytest

from inductor_probe.backends import cpp
from inductor_probe.model.code import CppFacts, LoopNest
from inductor_probe.variants.code import read_code
from inductor_probe.variants.nest_clock import NotClockedError, with_clock
from tests.conftest import python_graph_dirs

PARALLEL = """
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0)
{
    #pragma omp parallel num_threads(2)
    {
        int tid = omp_get_thread_num();
        {
            #pragma omp for collapse(2)
            for(int64_t x0=0L; x0<64L; x0+=1L)
            {
                for(int64_t x1=0L; x1<8L; x1+=1L)
                {
                    out_ptr0[x1 + 8L*x0] = in_ptr0[x1 + 8L*x0];
                }
            }
        }
    }
}
"""


def nests_of(source: str) -> tuple[LoopNest, ...]:
    details = cpp.read(source).details
    assert isinstance(details, CppFacts)
    return details.data_nests


def without_clock(text: str) -> str:
    """Take away what `with_clock` adds."""
    start = text.index("\n#include <chrono>")
    end = text.index("~Launch()")
    text = text[:start] + text[text.index("};\n}\n\n", end) + len("};\n}\n\n") :]
    text = re.sub(r" const inductor_probe::Launch probe_launch\(\d+\);", "", text)
    lines = [
        line for line in text.split("\n") if "inductor_probe::" not in line and "omp barrier" not in line
    ]
    return "\n".join(line.removesuffix(" nowait") for line in lines)


def kernels() -> list[tuple[str, str]]:
    made = []
    for folder in python_graph_dirs():
        code = read_code((folder / "output_code.py").read_text())
        made += [
            (f"{folder.parents[3].name}/{name}", kernel.source)
            for name, kernel in code.kernels.items()
            if kernel.backend.name == "cpp"
        ]
    return made


def test_of_every_kernel_of_the_fixtures_nothing_but_clock_reads_is_added() -> None:
    counted = 0
    for name, source in kernels():
        nests = nests_of(source)
        text = with_clock(source, nests, 3, "tsc")
        assert without_clock(text).split() == source.split(), name
        for number in range(1, len(nests) + 1):
            assert text.count(f"probe_begin_{number} = inductor_probe::now();") == 1
            assert text.count(f"inductor_probe::note({(3 << 16) + number}, ") == 1
        counted += len(nests)
    assert counted > 100


def test_a_loop_that_threads_share_shows_what_each_waits_for_the_others() -> None:
    text = with_clock(PARALLEL, nests_of(PARALLEL), 0, "steady_clock")
    lines = [line.strip() for line in text.split("\n")]
    begin = lines.index("const int64_t probe_begin_1 = inductor_probe::now();")
    assert lines[begin + 1] == "#pragma omp for collapse(2) nowait"
    worked = lines.index("const int64_t probe_worked_1 = inductor_probe::now();")
    assert lines[worked + 1] == "#pragma omp barrier"
    assert lines[worked + 2] == (
        "inductor_probe::note(1, probe_begin_1, probe_worked_1, inductor_probe::now());"
    )
    assert "__builtin_ia32" not in text, "a processor without it has to compile it"


def test_a_nest_that_a_declaration_cannot_stand_above_is_refused_with_its_line() -> None:
    source = PARALLEL.replace(
        "        {\n            #pragma omp for collapse(2)\n", "        if (tid == 0)\n"
    )
    with pytest.raises(NotClockedError, match=r"nest-inside.*line=8, last=14"):
        with_clock(source, nests_of(source), 0, "tsc")


def test_a_text_without_a_function_is_refused() -> None:
    with pytest.raises(NotClockedError, match="no-function"):
        with_clock("int x;", (), 0, "tsc")
