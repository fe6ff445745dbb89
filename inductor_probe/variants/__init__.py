"""Variants of kernels and of the wrapper in a bench file: copies by name, named rewrites, their diffs."""
