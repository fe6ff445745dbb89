"""A graph as lines of Python: what is left out, renamed and written of it, without torch."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from msgspec import Struct
from msgspec.structs import replace

_USE = re.compile(r"\$(\d+)")
_NUMBER = re.compile(r"(?<![\w.$])\d+(?![\w.])")
_NUMBERED = re.compile(r"(?:_\d+)+$")
_OF_DYNAMO = re.compile(r"^(?:[Ll]_)+(?:(?:self|fn|args|kwargs)_+)*|(?:modules|parameters|buffers|params)_+")
_LARGEST_INLINE = 64
"""Elements of a tensor whose values are written into the script."""
_WORDS = frozenset(("torch", "math", "function", "compiled", "Path", "VALUES", "sum", "one"))


class Form(Struct, frozen=True):
    """What a tensor is: `dtype` and `device` as torch prints them, without `torch.`."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    device: str = "cpu"

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements follow each other in memory, the last dimension first."""
        return self.stride == contiguous(self.size) or 0 in self.size

    @property
    def is_floating(self) -> bool:
        """Whether it can have a gradient."""
        return "float" in self.dtype or "complex" in self.dtype


class Input(Struct, frozen=True):
    """An input of a program.

    Attributes:
        least, most: bounds of the values, as far as drawn ones have to keep them: of integers, and 0 as the
            least of floats that are not negative.
        values: text of the real values: a key of the saved file, or a list; empty: they are drawn.
    """

    name: str
    form: Form
    requires_grad: bool = False
    least: float | None = None
    most: float | None = None
    values: str = ""


class Line(Struct, frozen=True):
    """A call of torch: `code` with `$0`, `$1` for the names that it uses.

    `effect`: it changes something in place, so that it counts without a user. A `statement` has no value.
    """

    name: str
    code: str
    uses: tuple[str, ...]
    effect: bool = False
    statement: bool = False

    @property
    def text(self) -> str:
        """Its Python."""
        value = _USE.sub(lambda match: self.uses[int(match[1])], self.code)
        return value if self.statement else f"{self.name} = {value}"

    def with_uses(self, others: Mapping[str, str]) -> Line:
        """Return it with other names in the place of those that it uses."""
        return replace(self, uses=tuple(others.get(name, name) for name in self.uses))


class Program(Struct, frozen=True):
    """A function of torch calls, and the calls of it that are compiled.

    Attributes:
        calls: the inputs of each call; those of the first are compiled, further ones may compile again.
        lines: in order. outputs: names of lines and inputs that are returned.
        settings: lines that set torch, or import what a graph needs. options: keywords of `torch.compile`.
        backward: gradients are computed.
    """

    calls: tuple[tuple[Input, ...], ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]
    settings: tuple[str, ...] = ()
    options: str = ""
    backward: bool = False

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Those of the first call."""
        return self.calls[0]

    def pruned(self) -> Program:
        """Return it without lines and inputs that nothing needs."""
        needed, lines = {*self.outputs}, []
        for line in reversed(self.lines):
            if line.effect or line.name in needed:
                needed.update(line.uses)
                lines.append(line)
        calls = tuple(tuple(one for one in call if one.name in needed) for call in self.calls)
        return replace(self, lines=tuple(reversed(lines)), calls=calls)

    def pruned_uses(self) -> Program:
        """Return it without what no code uses any more: an argument that became None."""
        lines = []
        for line in self.lines:
            places = sorted({int(match[1]) for match in _USE.finditer(line.code)})
            code = _USE.sub(lambda match: f"${places.index(int(match[1]))}", line.code)  # noqa: B023
            lines.append(replace(line, code=code, uses=tuple(line.uses[place] for place in places)))
        return replace(self, lines=tuple(lines)).pruned()

    def with_inputs(self, change: Mapping[str, Input]) -> Program:
        """Return it with other inputs in the place of some, by their names, in each call."""
        return replace(
            self, calls=tuple(tuple(change.get(one.name, one) for one in call) for call in self.calls)
        )

    def renamed(self) -> Program:
        """Return it with names that a person would choose: `weight`, `x`; numbers begin anew."""
        names: dict[str, str] = {}
        taken: set[str] = {*_WORDS}
        for name, is_input in [
            *((one.name, True) for one in self.inputs),
            *((one.name, False) for one in self.lines),
        ]:
            plain = _plain(name, is_input=is_input)
            number = 0
            while (new := plain if not number else f"{plain}_{number}") in taken:
                number += 1
            taken.add(new)
            names[name] = new
        return Program(
            tuple(tuple(replace(one, name=names[one.name]) for one in call) for call in self.calls),
            tuple(replace(line.with_uses(names), name=names[line.name]) for line in self.lines),
            tuple(names[name] for name in self.outputs),
            self.settings,
            self.options,
            self.backward,
        )

    def text(self, head: str = "") -> str:
        """Return the script: the function, inputs, the call of what `torch.compile` makes of it."""
        args = ", ".join(one.name for one in self.inputs)
        result = ", ".join(self.outputs)
        body = [line.text for line in self.lines]
        body += [f"return {result}" if len(self.outputs) == 1 else f"return ({result})"]
        settings = [line for line in self.settings if not line.startswith("import ")]
        uses_values = any("VALUES[" in one.values for call in self.calls for one in call)
        parts = [
            *([f'"""{head}"""', ""] if head else []),
            *(["from pathlib import Path", ""] if uses_values else []),
            *(["import math", ""] if any("math." in line for line in body) else []),
            "import torch",
            *(line for line in self.settings if line.startswith("import ")),
            *([""] if settings else []),
            *settings,
            "",
            "",
            f"def function({args}):",
            *(f"    {line}" for line in body),
            "",
            "",
            f"compiled = torch.compile(function{f', {self.options}' if self.options else ''})",
            *(['VALUES = torch.load(Path(__file__).with_suffix(".pt"))'] if uses_values else []),
        ]
        known: dict[str, Input] = {}
        for call in self.calls:
            parts += ["torch.manual_seed(0)"] if any(not one.values for one in call) else []
            parts += [f"{one.name} = {drawn(one)}" for one in call if known.get(one.name) != one]
            known.update((one.name, one) for one in call)
            parts.append(self._call(args))
        return "\n".join(parts) + "\n"

    def _call(self, args: str) -> str:
        if not self.backward:
            return f"compiled({args})"
        if len(self.outputs) == 1:
            return f"compiled({args}).sum().backward()"
        return f"sum(one.sum() for one in compiled({args}) if one.requires_grad).backward()"


def _plain(name: str, *, is_input: bool) -> str:
    plain = _NUMBERED.sub("", name.rstrip("_"))
    while is_input and plain != (shorter := _OF_DYNAMO.sub("", plain)):
        plain = shorter
    if is_input and plain.count("_") > 1:
        plain = plain.rpartition("_")[2]
    if not plain.isidentifier() or keyword.iskeyword(plain) or plain in _WORDS:
        plain = "x"
    return plain


def contiguous(size: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a tensor of this size whose elements follow each other."""
    return tuple(prod(max(step, 1) for step in size[place + 1 :]) for place in range(len(size)))


def drawn(one: Input) -> str:
    """Return the expression that makes an input: drawn, or with its real values; in its strides."""
    form = one.form
    order = sorted(range(len(form.size)), key=lambda dim: (-form.stride[dim], dim))
    in_memory = tuple(form.size[dim] for dim in order)
    is_dense = tuple(form.stride[dim] for dim in order) == contiguous(in_memory) or 0 in form.size
    grad = one.requires_grad and form.is_floating
    if one.values:
        text = one.values
    elif is_dense:
        text = _random(one, form.size if form.is_contiguous else in_memory, grad and form.is_contiguous)
    else:
        span = 1 + sum((size - 1) * step for size, step in zip(form.size, form.stride, strict=True))
        text = _random(one, (span,), False)
    if not form.is_contiguous and not one.values:
        if is_dense and len(order) == 2:
            text += ".t()"
        elif is_dense:
            text += f".permute({', '.join(str(order.index(dim)) for dim in range(len(order)))})"
        else:
            text += f".as_strided({form.size}, {form.stride})"
    if grad and not (is_dense and form.is_contiguous and "requires_grad" in text):
        text += ".requires_grad_()"
    return text


def _random(one: Input, size: Sequence[int], grad: bool) -> str:
    form = one.form
    shape = ", ".join(map(str, size)) or "()"
    more = "" if form.device == "cpu" else f', device="{form.device}"'
    if form.dtype == "bool":
        return f"torch.rand({shape}{more}) > 0.5" if not size else f"(torch.rand({shape}{more}) > 0.5)"
    if not form.is_floating:
        low, high = int(one.least or 0), int(one.most if one.most is not None else 9)
        more += "" if form.dtype == "int64" else f", dtype=torch.{form.dtype}"
        return f"torch.randint({low}, {high + 1}, {tuple(size)}{more})"
    maker = "rand" if one.least is not None and one.least >= 0 else "randn"
    is_narrow = form.dtype.startswith("float8")
    more += "" if form.dtype == "float32" or is_narrow else f", dtype=torch.{form.dtype}"
    more += ", requires_grad=True" if grad and not is_narrow else ""
    return f"torch.{maker}({shape}{more})" + (f".to(torch.{form.dtype})" if is_narrow else "")


def numbers_changed(text: str, change: Mapping[str, str]) -> str:
    """Return an expression with other whole numbers in the place of some."""
    return _NUMBER.sub(lambda match: change.get(match[0], match[0]), text)


def numbers_of(lines: Iterable[Line]) -> set[int]:
    """Return the whole numbers that stand in some lines."""
    return {int(match[0]) for line in lines for match in _NUMBER.finditer(line.code)}
