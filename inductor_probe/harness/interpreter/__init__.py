"""Triton kernels without a GPU: triton's interpreter runs them on CPU tensors, within their memory.

`triton.runtime.interpreter` runs the Python of a kernel, program by program, and computes each operation on
blocks with numpy. What it lacks for inductor's kernels is here: `memory` (pointers that know what they point
to), `operations` (arithmetic as a GPU does it, reductions and scans of whole blocks), `libdevice` (what
NVIDIA ships as bitcode), `kernels` (a kernel's text to something that `call` can launch), `cuda_names` (what
a wrapper asks of CUDA), `checks` (the job).
"""
