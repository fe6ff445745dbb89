"""How a verb is called in Python, with its options as keywords, and what it says while it works."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from msgspec import Struct

P = ParamSpec("P")
Options = TypeVar("Options")
Options_contra = TypeVar("Options_contra", contravariant=True)
Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)


class Progress:
    """What hears a verb at work: this one hears nothing. It is called with what is done next.

    Args:
        step: is called in its place.
    """

    def __init__(self, step: Callable[[str], object] | None = None) -> None:
        self._step = step

    def __call__(self, text: str) -> None:
        """Hear what is done next, in the place of what was."""
        if self._step is not None:
            self._step(text)

    def part(self, view: Any) -> None:
        """Take a part of the answer, as soon as it is there; the answer has all of it."""

    def say(self, text: Any) -> None:
        """Hear what stays true, a text or pieces of one with styles: what was made, and what is executed."""

    def warn(self, text: str) -> None:
        """Hear what may mislead, or was left out."""


def several(values: Any) -> tuple[Any, ...]:
    """Return the values of an option: in Python one of them may stand for itself."""
    return tuple(values) if isinstance(values, (list, tuple)) else (values,)


class Verb(Protocol[P, Options_contra, Answer_co]):
    """The type of a verb: it takes the record of its options, or what that is made of."""

    __name__: str

    @overload
    def __call__(
        self, options: Options_contra, /, *, progress: Callable[[str], object] | None = None
    ) -> Answer_co: ...
    @overload
    def __call__(self, *args: P.args, **keywords: P.kwargs) -> Answer_co: ...


def record_of(verb: Any) -> type[Struct]:
    """Return the record of the options that a verb takes: `input_schema(record_of(ip.perf))`."""
    record: type[Struct] = verb.__wrapped__
    return record


def takes(
    record: Callable[P, Options],
) -> Callable[[Callable[[Options, Progress], Answer]], Verb[P, Options, Answer]]:
    """Make a verb of a function of the record of its options and of what hears it at work.

    In Python the verb takes one, or keywords for its fields; and `progress`, a `Progress` or a function that
    is called with what is done next.
    """

    def decorate(function: Callable[[Options, Progress], Answer]) -> Verb[P, Options, Answer]:
        def call(*args: Any, progress: Callable[[str], object] | None = None, **keywords: Any) -> Answer:
            is_record = len(args) == 1 and isinstance(args[0], cast("type", record)) and not keywords
            options = args[0] if is_record else record(*args, **keywords)
            return function(options, progress if isinstance(progress, Progress) else Progress(progress))

        verb: Any = update_wrapper(call, function)
        verb.__wrapped__ = record  # whose signature is the verb's
        return cast("Verb[P, Options, Answer]", verb)

    return decorate
