"""One C++ kernel of a dump as a program of its own, for perf, gdb and Compiler Explorer."""
