"""The part of a bench file that is the same in all of them: real modules here, pasted there.

They import torch and nothing of this package but each other, and are pasted in the order of `MODULES`.
"""

MODULES = ("bench", "inputs", "checks", "judge", "stats", "timing", "launches", "report", "main")
