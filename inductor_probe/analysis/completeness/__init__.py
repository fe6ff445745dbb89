"""What must be in the files of a graph besides what the readers ask for: see `check_graph`.

A reader takes every line that has a known form, so a line that is not there goes unnoticed by it. Here each
file is held against what the torch functions that print it guarantee: fields that every node has, names that
are defined before they are used, brackets that close. Nothing is run, compiled or imported. What a torch
function does not guarantee is not asked for: a false alarm is worse than a miss.
"""
