"""The code of a kernel without what differs from dump to dump and from torch to torch for no reason.

Left out are the kernel's name, comments, paths and hashes. Size arguments are called by the order of their
first use, 64-bit integers by one name; casts between them and brackets around a product in a sum are dropped.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from functools import lru_cache

from inductor_probe.model.code import Kernel
from inductor_probe.model.diff import CodeChange

_RULES: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "cpp": (
        (re.compile(r"//.*"), ""),
        (re.compile(r'#include\s+(?:"[^"]*"|<[^>]*>)'), "#include"),
        (re.compile(r"\blong long\b|\blong\b"), "int64_t"),
        (re.compile(r"\bunsigned char\b"), "uint8_t"),
        (re.compile(r"\bat::native::div_floor_integer\b"), "c10::div_floor_integer"),
        (re.compile(r"\bi(?=\d+\b)"), "x"),
        # A cast of what is a 64-bit integer already; one of a value (`tmp3`) is a conversion.
        (re.compile(r"\bstatic_cast<int64_t>\((\d+L?|x\d+|size\d+)\)"), r"\1"),
    ),
    "triton": (
        (re.compile(r"^\s*#.*"), ""),
        (re.compile(r"'(?:kernel_name|backend_hash)': '[^']*',? ?"), ""),
        (re.compile(r"\bfilename=[^,]*,"), ""),
    ),
}
_HASH = re.compile(r"\b(?:[0-9A-Fa-f]{32,}|c[a-z2-7]{51})\b")
_SIZE = re.compile(r"\bks\d+\b")
_NEGATIVE = re.compile(r"(?<![\w)\]>])\((-\d+L?)\)")
_PRODUCT = re.compile(r"(?<=[-+(,=\[])( ?)\((-?[\w.]+(?:\*[\w.]+)+)\)(?=\s*[+),;\]]| -)")


def normal_type(text: str) -> str:
    """Return the type of an argument under the one name that all versions of torch could give it."""
    return text.replace("unsigned char", "uint8_t").replace("long", "int64_t")


@lru_cache(maxsize=4096)
def normal_source(kernel: Kernel) -> tuple[str, ...]:
    """Return the lines of a kernel in normal form, empty ones left out."""
    text = kernel.source.replace(kernel.name, "KERNEL")
    text = re.sub(r"\bdef triton_\w+\(", "def KERNEL(", text)
    text = _HASH.sub("HASH", text)
    sizes: dict[str, str] = {}
    text = _SIZE.sub(lambda match: sizes.setdefault(match[0], f"size{len(sizes)}"), text)
    lines = []
    for line in text.split("\n"):
        shown = line
        for pattern, replacement in _RULES.get(kernel.backend, ()):
            shown = pattern.sub(replacement, shown)
        shown = _NEGATIVE.sub(r"\1", shown)
        # A bracket after a minus sign may hold a product all the same: `-(2*x)` is `-2*x`.
        shown = _PRODUCT.sub(r"\1\2", shown)
        words = shown.split()
        if words:
            indent = len(shown) - len(shown.lstrip())
            lines.append(" " * indent + " ".join(words))
    return tuple(lines)


def code_change(a: Kernel, b: Kernel) -> CodeChange | None:
    """Count the lines that only one of two kernels has; None when their normal forms are equal."""
    lines_a, lines_b = normal_source(a), normal_source(b)
    if lines_a == lines_b:
        return None
    counts_a, counts_b = Counter(lines_a), Counter(lines_b)
    removed, added = (counts_a - counts_b).total(), (counts_b - counts_a).total()
    if removed == added == 0:  # the same lines in another order
        removed = added = sum(mine != other for mine, other in zip(lines_a, lines_b, strict=True))
    return CodeChange(removed, added)


def code_diff(a: Kernel, b: Kernel, context: int = 3) -> tuple[str, ...]:
    """Return the unified diff of the normal forms of two kernels."""
    lines_a, lines_b = normal_source(a), normal_source(b)
    return tuple(difflib.unified_diff(lines_a, lines_b, a.name, b.name, n=context, lineterm=""))
