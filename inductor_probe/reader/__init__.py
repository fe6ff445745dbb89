"""Text to records, with the standard library alone: nothing of a dump is imported, executed or unpickled.

What was decided here:

- No torch version numbers here. Forms are recognised, not releases: a table maps keys to fields (`ir.py`),
  an unknown key is kept verbatim, a missing one is None. What is symbolic in a value must be Python, which
  `ast` checks; nothing evaluates it. A text is read once: a dump says the same things many times.
- Every line is accounted for. A reader returns what it could not read as problems with their lines;
  `probe check` counts them over everything below a path. A line that is not there has no form:
  `analysis/completeness/` asks for what the printing functions of torch guarantee, and for nothing else,
  since a false alarm is worse than a miss (`benchmarks/reading/damage.py` measures both). Sweeps over
  PyTorch's operator database (`benchmarks/sweeps/`) look for forms that no fixture has.
- A dump comes from a stranger. Nothing in it is imported, evaluated or unpickled; only regular files of
  known names are opened, archives are unpacked within bounds, and what acts on a terminal is shown as an
  escape at one place (`report/visible.py`).
"""
