"""One C++ kernel of a dump as a program of its own, for perf, gdb and Compiler Explorer."""

from inductor_probe.cpp_program.program import cpp_program
from inductor_probe.cpp_program.sizes import recorded_sizes

__all__ = ["cpp_program", "recorded_sizes"]
