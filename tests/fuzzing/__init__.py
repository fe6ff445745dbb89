"""Real dumps damaged at random, and every reading verb on them: for a test and for `benchmarks/fuzz.py`."""
