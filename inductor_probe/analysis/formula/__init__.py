"""A loop body as mathematics.

In order of use: `subscripts` says how the elements of a buffer may be written, `body` makes a graph of
`values` of the statements of a body (equal values become one), `shapes` finds what is computed several times
with other constants, `naming` decides what gets a name, `expressions` and `formula` make the records that are
shown. `decided` says which comparisons the loops decide; `code` and `indices` read in the text of the kernel
what it does beyond the body.
"""
