"""The search: what is left out of a program as long as a predicate holds, in phases until nothing more goes.

Parts are left out by ddmin, as in A. Zeller and R. Hildebrandt, "Simplifying and Isolating
Failure-Inducing Input", IEEE Transactions on Software Engineering 28(2), 2002: halves of what is left, and
what remains without each; then quarters; and so on to single parts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from inductor_probe.reduction import smaller
from inductor_probe.reduction.program import Input, Program

_MOST_ROUNDS = 4
Part = TypeVar("Part")


class OverBudgetError(Exception):
    """The time for the search is over."""


class Asker(Protocol):
    """Who asks programs whether the predicate holds."""

    def first(self, programs: Iterable[Program]) -> tuple[int, Program] | None:
        """Return the first of some programs, in their order, that shows it, with its place.

        Raises:
            OverBudgetError: no time is left.
        """

    def forms(self, program: Program) -> tuple[smaller.Forms, ...] | None:
        """Return what the values of a program are, for each call; None where it cannot be run."""


def ddmin(parts: Sequence[Part], first: Callable[[Iterable[Sequence[Part]]], int | None]) -> Sequence[Part]:
    """Return some of the parts, none of which can be left out: 1-minimal in the words of the paper.

    `first` says which of several choices, in their order, is the first that will do.
    """
    count = 2
    while len(parts) > 1:
        size = -(-len(parts) // count)
        chunks = [parts[begin : begin + size] for begin in range(0, len(parts), size)]
        # What was behind the part that went is tried next: so one sweep leaves out all that can go.
        rests = [[*parts[begin + size :], *parts[:begin]] for begin in range(0, len(parts), size)]
        rests = rests if len(chunks) > 2 else []
        choices = [*(chunks if len(chunks) < 9 else ()), *rests]  # a small chunk alone seldom shows it
        place = first(iter(choices))
        if place is not None:
            is_chunk = len(choices[place]) <= size
            parts, count = choices[place], 2 if is_chunk else max(count - 1, 2)
        elif size == 1:
            break
        else:
            count = min(count * 2, len(parts))
    return parts


class Search:
    """Reduces a program.

    Args:
        asker: asks candidates. operators: that it is about, as far as that is known.
        made: facts of the values of lines, for those that become inputs.
        better: is called with each program that shows it and is smaller than all before.
    """

    def __init__(
        self,
        asker: Asker,
        operators: Collection[str],
        made: Mapping[str, Input],
        better: Callable[[str, Program], None],
    ) -> None:
        self._asker, self._made, self._better = asker, made, better
        self._operators = operators
        self._phase = ""

    def reduced(self, program: Program) -> Program:
        """Return the smallest program that was seen to show it, whichever way the search ends."""
        self.program = program
        try:
            self._leave_near()
            for _ in range(_MOST_ROUNDS):
                before = self.program
                self._round()
                if self.program == before:
                    break
        except OverBudgetError:
            self._phase = "budget"
        return self.program

    @property
    def is_over_budget(self) -> bool:
        """Whether there was more to try."""
        return self._phase == "budget"

    def _leave_near(self) -> None:
        """Leave what is probably enough, before anything is tried that costs a compile of nearly all."""
        whole = self.program
        if forms := self._asker.forms(whole):
            parts = (
                smaller.only(whole, forms, some, self._made)
                for some in smaller.around(whole, self._operators)
            )
            self._take("operators", (one for one in parts if one and len(one.lines) < len(whole.lines)))

    def _round(self) -> None:
        self._repeat("around", smaller.without_frame)
        self._take("values", smaller.drawn_but(self.program, ()))
        self._outputs()
        self._lines()
        self._repeat("bypasses", self._bypassed)
        self._repeat("inputs", smaller.merged)
        self._repeat("arguments", smaller.without_arguments)
        for size in smaller.sizes_of(self.program):
            self._take("sizes", self._checked(smaller.resized(self.program, size)))
        self._repeat("inputs", lambda program: self._checked(smaller.simpler_inputs(program)))
        self._draw()

    def _take(self, phase: str, programs: Iterable[Program]) -> int | None:
        self._phase = phase
        answer = self._asker.first(programs)
        if answer is None:
            return None
        place, self.program = answer
        self._better(phase, self.program)
        return place

    def _repeat(self, phase: str, candidates: Callable[[Program], Iterable[Program]]) -> None:
        while self._take(phase, candidates(self.program)) is not None:
            pass

    def _checked(self, programs: Iterable[Program]) -> Iterator[Program]:
        """Leave out programs that cannot be run at all: sizes that do not fit each other."""
        return (program for program in programs if self._asker.forms(program) is not None)

    def _bypassed(self, program: Program) -> Iterable[Program]:
        forms = self._asker.forms(program)
        return self._checked(smaller.bypassed(program, forms[0])) if forms else ()

    def _by_parts(
        self, phase: str, parts: Sequence[str], smaller_with: Callable[[Collection[str]], Program | None]
    ) -> None:
        """Leave out parts of the program as it is now: ddmin asks of what is left of it."""

        def first(choices: Iterable[Sequence[str]]) -> int | None:
            places: list[int] = []

            def programs() -> Iterator[Program]:
                for place, names in enumerate(choices):
                    if (program := smaller_with({*names})) is not None:
                        places.append(place)
                        yield program

            place = self._take(phase, programs())
            return None if place is None else places[place]

        ddmin(parts, first)

    def _outputs(self) -> None:
        whole = self.program
        self._by_parts("outputs", whole.outputs, lambda names: smaller.with_outputs(whole, names))

    def _lines(self) -> None:
        whole = self.program
        forms = self._asker.forms(whole)
        if forms is None:
            return
        names = [line.name for line in whole.lines]
        self._by_parts("operators", names, lambda some: smaller.only(whole, forms, some, self._made))

    def _draw(self) -> None:
        """Draw values that do not matter: all of them, or all but some."""
        whole = self.program
        real = [one.name for one in whole.inputs if one.values]
        if real and self._take("values", smaller.drawn_but(whole, ())) is None:
            self._by_parts("values", real, lambda some: next(smaller.drawn_but(whole, some), None))
