"""Runs a loop body operation by operation, and evaluates its formula: two ways to the same numbers.

Both use the same operations.
"""

from tests.analysis.evaluation.body import BodyMachine
from tests.analysis.evaluation.formula import FormulaMachine
from tests.analysis.evaluation.world import NotEvaluatedError, World, points

__all__ = ["BodyMachine", "FormulaMachine", "NotEvaluatedError", "World", "points"]
