"""For every cause code a small program that shows it, and the flip that turns the decision.

A cause counts when flipping it flips the decision. Each script here is a scenario of its own
(`probe dump tests/proving_ground/vectorisation.py`); `test_causes.py` dumps them all, most of those for
a CPU without g++ (`sampled.py`).
"""
