"""The records everything else passes around: read this room first.

Records are frozen and hold tuples. What is read (`ir`, `code`, `fx`, `manifest`, `debug_dir`) and what is
concluded (`layouts`) or timed (`bench`) are different types.
"""
