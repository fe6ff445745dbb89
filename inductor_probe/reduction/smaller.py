"""What can be left out of a program, or be simpler: each function returns, or yields, smaller programs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import replace

from inductor_probe.reduction.program import (
    Form,
    Input,
    Line,
    Program,
    contiguous,
    numbers_changed,
    numbers_of,
)

Forms = Mapping[str, "Form | None"]
"""What each name of a call is; None for what is no tensor."""

_SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_RARE, _MOST_RARE, _RINGS = 2, 8, 3
"""A call that so many lines make is rare; so many of those are tried; with neighbours so far around."""
_OPTIONAL = re.compile(r", \w+ ?= ?(?:[\w.]+|\([^()]*\))(?=[,)])")


def only(
    program: Program, forms: tuple[Forms, ...], names: Collection[str], made: Mapping[str, Input]
) -> Program | None:
    """Return the part of a program that has these lines only; None where it would compute nothing.

    A value that comes from another line is an input of the same size, strides and dtype. Values that
    only other lines used are returned. What is no tensor cannot be an input: a line that uses it goes, too.

    Args:
        forms: of all values, for each call. made: facts of the values of lines, as inputs.
    """
    lines: list[Line] = []
    have = {one.name for one in program.inputs}
    fresh: dict[str, None] = {}
    for line in program.lines:
        if line.name not in names:
            continue
        outside = [name for name in line.uses if name not in have]
        if any(form.get(name) is None for name in outside for form in forms):
            continue
        fresh.update(dict.fromkeys(outside))
        have |= {line.name, *outside}
        lines.append(line)
    used = {name for line in lines for name in line.uses}
    mine = {line.name for line in lines}
    was_output = [name for name in program.outputs if name in mine]
    ends = [
        line.name
        for line in lines
        if line.name not in used and not line.effect and line.name not in was_output
    ]
    outputs = (*was_output, *(name for name in ends if forms[0].get(name) is not None))
    if not lines or not outputs:
        return None
    calls = tuple(
        (
            *call,
            *(
                _as_input(made.get(name), name, form[name], backward=program.backward)
                for name in fresh
                if name not in {one.name for one in call}
            ),
        )
        for call, form in zip(program.calls, forms, strict=True)
    )
    return replace(program, calls=calls, lines=tuple(lines), outputs=outputs).pruned()


def _as_input(made: Input | None, name: str, form: Form | None, *, backward: bool) -> Input:
    assert form is not None  # noqa: S101 - `only` has asked
    one = replace(made, form=form) if made else Input(name, form)
    return replace(one, requires_grad=True) if backward and form.is_floating else one


def around(program: Program, operators: Collection[str]) -> Iterator[Collection[str]]:
    """Yield names of lines that call what it is about, or what few lines call; then with their neighbours.

    Among layers that are alike it is seldom about what they all do.
    """
    about = [re.compile(rf"(?<![a-z]){re.escape(one.rpartition('.')[2])}(?![a-z])") for one in operators]
    calling = [{line.name for line in program.lines if one.search(line.code)} for one in about]
    alike: dict[str, set[str]] = {}
    for line in program.lines:
        alike.setdefault(re.sub(r"\d+", "", line.code), set()).add(line.name)
    rare = sorted((names for names in alike.values() if len(names) <= _RARE), key=len)
    starts = [names for names in (set[str]().union(*calling), *calling, *rare[:_MOST_RARE]) if names]
    for _ in range(_RINGS):
        yield from starts
        starts = [names | _near(program, names) for names in starts]


def _near(program: Program, names: Collection[str]) -> set[str]:
    """Return what some lines use, and the lines that use them."""
    used = {use for line in program.lines if line.name in names for use in line.uses}
    return used | {line.name for line in program.lines if not {*line.uses}.isdisjoint(names)}


def with_outputs(program: Program, names: Collection[str]) -> Program | None:
    """Return a program that returns some of its outputs only."""
    outputs = tuple(name for name in program.outputs if name in names)
    return replace(program, outputs=outputs).pruned() if outputs else None


def bypassed(program: Program, forms: Forms) -> Iterator[Program]:
    """Yield programs in which an input of a line, of its size, strides and dtype, takes the place of it."""
    for line in reversed(program.lines):
        for name in dict.fromkeys(line.uses):
            if not line.effect and forms.get(name) is not None and forms.get(name) == forms.get(line.name):
                others = {line.name: name}
                lines = tuple(one.with_uses(others) for one in program.lines if one is not line)
                outputs = tuple(dict.fromkeys(others.get(one, one) for one in program.outputs))
                if any(one in {each.name for each in lines} for one in outputs):
                    yield replace(program, lines=lines, outputs=outputs).pruned()
                break


def merged(program: Program) -> Iterator[Program]:
    """Yield programs in which an input takes the place of another one of the same form."""
    for place, one in enumerate(program.inputs):
        for other in program.inputs[:place]:
            if replace(one, name=other.name) == other and _alike(program, one.name, other.name):
                yield _renamed(program, {one.name: other.name})
                break


def _alike(program: Program, name: str, other: str) -> bool:
    calls = [{one.name: one.form for one in call} for call in program.calls]
    return all(call[name] == call[other] for call in calls)


def _renamed(program: Program, others: Mapping[str, str]) -> Program:
    lines = tuple(line.with_uses(others) for line in program.lines)
    outputs = tuple(dict.fromkeys(others.get(name, name) for name in program.outputs))
    return replace(program, lines=lines, outputs=outputs).pruned()


def sizes_of(program: Program) -> list[int]:
    """Return the sizes of its inputs, the largest first."""
    return sorted(
        {size for call in program.calls for one in call for size in one.form.size if size > 1}, reverse=True
    )


def resized(program: Program, size: int) -> Iterator[Program]:
    """Yield programs in which a size is smaller wherever it stands, the smallest first; or rounder."""
    for new in _SIZES:
        if new >= size:
            break
        for multiples in (False, True):
            yield _with_sizes(program, size, new, multiples=multiples)


def _with_sizes(program: Program, size: int, new: int, *, multiples: bool) -> Program:
    def changed(number: int) -> int:
        if number == size:
            return new
        return number // size * new if multiples and number and not number % size else number

    change = {str(number): str(changed(number)) for number in numbers_of(program.lines)}
    lines = tuple(replace(line, code=numbers_changed(line.code, change)) for line in program.lines)
    calls = tuple(
        tuple(_resized(one, tuple(map(changed, one.form.size))) for one in call) for call in program.calls
    )
    return replace(program, lines=lines, calls=calls)


def _resized(one: Input, size: tuple[int, ...]) -> Input:
    form = one.form
    if size == form.size:
        return one
    order = sorted(range(len(size)), key=lambda dim: (-form.stride[dim], dim))
    strides = dict(zip(order, contiguous([size[dim] for dim in order]), strict=True))
    stride = tuple(0 if form.stride[dim] == 0 else strides[dim] for dim in range(len(size)))
    values = one.values and f"{one.values}[{', '.join(f':{number}' for number in size)}]"
    return replace(one, form=replace(form, size=size, stride=stride), values=values)


def simpler_inputs(program: Program) -> Iterator[Program]:
    """Yield programs with simpler inputs: contiguous, float32, without gradients; first all at once."""
    for change in (_without_grad, _in_order, _in_float32):
        inputs = {one.name: change(one) for one in program.inputs}
        different = [one.name for one in program.inputs if inputs[one.name] != one]
        calls = tuple(tuple(change(one) for one in call) for call in program.calls)
        if different:
            yield replace(program, calls=calls)
        for name in different if len(different) > 1 else ():
            yield replace(
                program,
                calls=tuple(
                    tuple(change(one) if one.name == name else one for one in call) for call in program.calls
                ),
            )


def _without_grad(one: Input) -> Input:
    return replace(one, requires_grad=False)


def _in_order(one: Input) -> Input:
    return replace(one, form=replace(one.form, stride=contiguous(one.form.size))) if not one.values else one


def _in_float32(one: Input) -> Input:
    is_other = one.form.is_floating and "complex" not in one.form.dtype and not one.values
    return replace(one, form=replace(one.form, dtype="float32")) if is_other else one


def without_frame(program: Program) -> Iterator[Program]:
    """Yield programs without what is around the function: gradients, options, settings, further calls."""
    if program.backward:
        yield replace(program, backward=False)
    if any(one.requires_grad for call in program.calls for one in call) and not program.backward:
        yield replace(program, calls=tuple(tuple(map(_without_grad, call)) for call in program.calls))
    if program.options:
        yield replace(program, options="")
    if program.settings:
        yield replace(program, settings=())
    for place in range(len(program.settings) if len(program.settings) > 1 else 0):
        yield replace(program, settings=program.settings[:place] + program.settings[place + 1 :])
    if len(program.calls) > 1:
        yield replace(program, calls=program.calls[:1])


def without_arguments(program: Program) -> Iterator[Program]:
    """Yield programs in which a call has an argument by keyword less, or None for an input among its last."""
    for place, line in enumerate(program.lines):
        codes = [
            line.code[: match.start()] + line.code[match.end() :] for match in _OPTIONAL.finditer(line.code)
        ]
        codes += [re.sub(rf"(?<=, )\${use}(?=[,)])", "None", line.code) for use in range(1, len(line.uses))]
        for code in codes:
            if code != line.code:
                lines = (*program.lines[:place], replace(line, code=code), *program.lines[place + 1 :])
                yield replace(program, lines=lines).pruned_uses()


def drawn_but(program: Program, names: Collection[str]) -> Iterator[Program]:
    """Yield the program with drawn values of all inputs but some, if any has real ones."""
    calls = tuple(
        tuple(one if one.name in names else replace(one, values="") for one in call) for call in program.calls
    )
    if calls != program.calls:
        yield replace(program, calls=calls)
