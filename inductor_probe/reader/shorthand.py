"""The statements that a wrapper mostly consists of, read by pattern.

Python makes a tree of the whole text first, and that takes half of the time of reading a wrapper. So these
statements are replaced by numbers before, which stand in the tree at their places.
"""

from __future__ import annotations

import re
from functools import lru_cache

_SIZES = r"\((?:\d{1,18}(?:, \d{1,18})*,? ?)?\)"
_USUAL = re.compile(
    r"^(?P<indent> +)(?:"
    rf"assert_size_stride\((?P<asserted>\w+), (?P<asserted_size>{_SIZES}), (?P<asserted_stride>{_SIZES})"
    r"(?:, '\w+')?\)"
    r"|(?P<new>\w+) = empty_strided_(?P<new_device>\w+)"
    rf"\((?P<new_size>{_SIZES}), (?P<new_stride>{_SIZES}), torch\.(?P<new_dtype>\w+)\)"
    rf"|(?P<example>\w+) = rand_strided\((?P<example_size>{_SIZES}), (?P<example_stride>{_SIZES}), "
    r"device='(?P<example_device>[\w:]+)', dtype=torch\.(?P<example_dtype>\w+)\)"
    r")$",
    re.MULTILINE,
)


def shortened(wrapper: str) -> tuple[str, list[re.Match[str]]]:
    """Return the text of a wrapper with its usual statements as numbers, and what each number stands for."""
    usual: list[re.Match[str]] = []

    def number(match: re.Match[str]) -> str:
        usual.append(match)
        return f"{match['indent']}{len(usual) - 1}"

    return _USUAL.sub(number, wrapper), usual


@lru_cache(maxsize=4096)
def sizes(text: str) -> tuple[int, ...]:
    """Read `(4, 3)`, or the size or stride of a usual statement."""
    return tuple(int(part) for part in text[1:-1].split(",") if part.strip())
