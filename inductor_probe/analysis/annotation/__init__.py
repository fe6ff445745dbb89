"""A kernel's text with, on each line, the node that it computes for."""
