"""Kernels compiled ahead of time, without the device that would run them: resources and machine code.

Triton's in a child process, for a GPU that need not be there; how warps reach memory, followed through
TTGIR; the machine code of C++ loops, and what GCC and clang say of them; two kernels compared.
"""
