"""What the files of a graph lack of what torch guarantees: see `check_files`.

A reader takes every line that has a known form, so it cannot notice a line that is missing. Here each file is
compared with what the torch functions that print it guarantee: fields that every node has, names that are
defined before they are used, brackets that close. Nothing is run, compiled or imported. What a torch function
does not guarantee is not required: a false alarm is worse than a miss.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeAlias, TypeVar

from inductor_probe.model.span import Span

Defect: TypeAlias = "tuple[int | Span | None, str]"
"""Something missing or wrong in a file: its line number (or its span, None where unknown), and a sentence."""


_Found = TypeVar("_Found")
_LONGEST = 4_000
"""Characters of a text of which the answer is remembered."""


def once_per_text(find: Callable[[str], _Found]) -> Callable[[str], _Found]:
    """Decorate a function of a text: graphs of a process share most of their lines, headers and kernels."""
    remembered = lru_cache(maxsize=8_192)(find)
    return lambda text: remembered(text) if len(text) <= _LONGEST else find(text)


class SoundTexts:
    """Texts in which nothing was wrong: one that comes again, in another file or graph, is not gone through.

    Only hashes of them are held.
    """

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def defects(self, text: str, check: Callable[[], Iterable[Defect]]) -> Iterable[Defect]:
        """Return what `check` finds, which depends on `text` alone; nothing if it found nothing before."""
        key = hash(text)
        if key in self._hashes:
            return ()
        found = list(check())
        if not found:
            self._hashes.add(key)
        return found
