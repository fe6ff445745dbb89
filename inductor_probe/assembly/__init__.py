"""Kernels compiled ahead of time, without the device that would run them: resources and machine code."""
