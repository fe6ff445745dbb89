"""Where a C++ kernel reads and writes through its pointers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from inductor_probe.backends.brackets import inside
from inductor_probe.backends.cpp.loops import plain
from inductor_probe.model.code import PointerUse

# Begins with a line end, not with `^`: plain text is found without a look at every character.
_ALIAS = re.compile(r"\n[ \t]*auto\s+(?P<alias>\w+)\s*=\s*(?P<pointer>\w+)\s*;")
_ALIAS_LINE = re.compile(r"\s*auto\s+\w+\s*=\s*\w+\s*;")
_WORD = re.compile(r"[A-Za-z_]\w*")
_POINTER = re.compile(r"\b(?=[A-Za-z_])\w*_ptr\w*")
"""Nearly all pointers are called so, and then the other words of a line need no look."""
_CAST_OFFSET = re.compile(r"\s*\+\s*(?:static_cast<\w+>)?\(")
_NO_OFFSET = re.compile(r"\s*[,)]")
_ATOMIC = re.compile(r"\batomic_add\w*\s*(?:<[^()]*>)?\(\s*&?\s*$")
_TRANSPOSE = re.compile(r"transpose_mxn<.*?>\(\s*(?P<first>(?:_|masked_)?tmp\w*|\w+_ptr\w*)")
_ASSIGNED = re.compile(r"\s*=(?!=)")
_LONGEST = 20_000
"""Characters of a line at most: each use looks at what stands before it, and inductor's lines are short."""


def pointer_uses(source: str, pointers: frozenset[str]) -> tuple[PointerUse, ...]:
    """Return the lines that read or write through `pointers`, in order."""
    aliases = {
        found["alias"]: found["pointer"] for found in _ALIAS.finditer(source) if found["pointer"] in pointers
    }
    names = pointers | aliases.keys()
    odd = tuple(name for name in names if "_ptr" not in name)  # templates have names of their own
    words = _WORD if odd else _POINTER
    body = source.count("\n", 0, max(source.find("{"), 0)) + 1
    return tuple(
        use
        for number, line in enumerate(source.split("\n"), 1)
        if number > body and ("_ptr" in line or any(name in line for name in odd))
        for use in _uses(number, line, words, names, aliases)
    )


def _uses(
    number: int, line: str, words: re.Pattern[str], names: frozenset[str], aliases: dict[str, str]
) -> Iterator[PointerUse]:
    code = line.partition("//")[0]
    if len(code) > _LONGEST or _ALIAS_LINE.match(code):
        return
    for word in words.finditer(code):
        if (name := word[0]) in names:
            yield PointerUse(
                line=number,
                how=_how(code, word),
                pointer=aliases.get(name, name),
                index=_index(code, word.end()),
                alias=name if name in aliases else None,
                vector=code[word.end() : word.end() + 1] != "[",
            )


def _how(code: str, word: re.Match[str]) -> Literal["load", "store", "atomic"]:
    before = code[: word.start()]
    if "atomic_add" in before and _ATOMIC.search(before):
        return "atomic"
    if before.rstrip().endswith(".store("):
        return "store"
    if "transpose_mxn<" in code and (transposed := _TRANSPOSE.search(code)):
        return "load" if transposed["first"] == word[0] else "store"
    if code[word.end() : word.end() + 1] == "[":
        index = inside(code, word.end())
        if index is not None and _ASSIGNED.match(code, word.end() + len(index) + 2):
            return "store"
    return "load"


def _index(code: str, at: int) -> str | None:
    if code[at : at + 1] == "[":
        index = inside(code, at)
        return None if index is None else str(plain(index))
    if cast := _CAST_OFFSET.match(code, at):
        index = inside(code, cast.end() - 1)
        return None if index is None else str(plain(index))
    return "0" if _NO_OFFSET.match(code, at) else None
