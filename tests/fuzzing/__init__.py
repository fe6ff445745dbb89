"""Real dumps damaged at random, and every reading verb on them: see `benchmarks/reading/fuzz.py`, too."""
