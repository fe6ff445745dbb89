"""A loop body as mathematics.

In order of use: `views` says how the places of a buffer may be written, `body` makes a graph of `values` of
the statements of a body (equal values become one), `shapes` finds what is computed several times with other
constants, `naming` decides what gets a name, `tree` makes the records that are shown.
"""

from inductor_probe.analysis.formula.formula import formula

__all__ = ["formula"]
