"""`make_inputs`: the graph's inputs, rebuilt from what torch and `probe dump` wrote down about them."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst
import libcst.matchers as m

from inductor_probe.bench_file.load_args import LoadedInput, parse_load_args, python_of
from inductor_probe.bench_file.sections import Statement
from inductor_probe.errors import UnreadableError
from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import InputBound
from inductor_probe.model.manifest import INPUTS_DIR, InputFact

# Where nothing is known of an integer. Indices may be among the wide ones, so they stay small: below the
# smallest dimension there is. Where it is known that they pick nothing, they show more when they are larger.
_WHOLE_RANGE = {"uint8": (0, 255), "int8": (-128, 127)}
_FREE = {"uint16": (0, 1000), "uint32": (0, 1000), "uint64": (0, 1000)}
_FREE_SIGNED = (-1000, 1000)
_CALL = m.Call(func=m.Name("call"), args=[m.Arg(value=m.SaveMatchedNode(m.List(), "inputs"))])
_SYMBOL = re.compile(r"[a-z]+\d+")


@dataclass(frozen=True, slots=True)
class _Input:
    """An input: `code` as `output_code.py` makes it, and of a tensor the layout, in texts of Python.

    `recorded` are its sizes in numbers.
    """

    name: str
    code: str
    size: tuple[str, ...] | None = None
    stride: tuple[str, ...] = ()
    offset: str = "0"
    device: str = "cpu"
    dtype: str = ""
    value: int | None = None
    recorded: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class InputsSource:
    """The function `make_inputs` as source, and what sizes may be given to it, with their recorded values."""

    source: str
    symbols: Mapping[str, int]


def make_inputs_source(
    tail: Sequence[Statement],
    runnable: str | None,
    facts: Sequence[InputFact],
    bounds: Sequence[InputBound] | None,
) -> InputsSource:
    """Write the function `make_inputs(seed, kind, sizes)`.

    Sizes and strides are those of `facts` if they tell every input, else those of the examples in `tail`;
    in symbols where `load_args` of the text `runnable` has them so. Values of integers come from `facts`,
    then from `bounds` (None if nobody looked for any), and are small where neither tells.
    """
    function = next((each for each in tail if isinstance(each, cst.FunctionDef)), None)
    if function is None:
        raise UnreadableError("output_code.py has no example inputs", "dump the script again")
    lines = [line for line in function.body.body if isinstance(line, cst.SimpleStatementLine)]
    examples = [_example(line) for line in lines if m.matches(line.body[0], m.Assign())]
    order = _order(function)
    shared = [each.name for each in examples if each.name not in order and each.size is not None]
    known = {fact.name: fact for fact in facts}
    if all(name in known and _whole(known[name]) for name in order):
        examples = [_as_it_was(each, known[each.name]) if each.name in order else each for each in examples]
    loaded = parse_load_args(runnable)
    symbols = _symbols(examples, loaded)
    smallest = min((n for each in examples for n in each.recorded if n > 1), default=2)
    limits = {bound.name: bound for bound in bounds or ()}
    lost = InputBound("", lost=True)  # nobody looked: anything may be an index
    body, notes = [], []
    for each in examples:
        if each.name in (*order, *shared):
            named = _in_symbols(each, loaded.get(each.name), symbols)
            bound = limits.get(each.name) if bounds is not None else lost
            values, note = _values(each, known.get(each.name), bound, symbols, smallest)
            file = _file(known.get(each.name), loaded.get(each.name))
            body.append(_line(named, values, file))
            notes += note
    return InputsSource(_function(symbols, order, shared, body, notes), symbols)


def _function(
    symbols: Mapping[str, int], order: list[str], shared: list[str], body: list[str], notes: list[str]
) -> str:
    doc = ["Return fresh inputs for the graph, the same for the same seed."]
    if notes:
        doc += ["", *dict.fromkeys(notes), ""]
    statements = [f"global {', '.join(shared)}"] if shared else []
    recorded = "".join(f", {name}={value}" for name, value in symbols.items())
    targets = ", ".join(symbols) + ("," if len(symbols) == 1 else "")
    statements.append(f"{targets} = bind(sizes{recorded})" if symbols else "bind(sizes)")
    if any("inputs.tensor(" in line for line in body):
        statements.append("inputs = Inputs(seed, kind, sizes)")
    if any("rand_strided" in line for line in body):
        statements.append("from torch._dynamo.testing import rand_strided")
    statements += [*body, f"return [{', '.join(order)}]"]
    text = "\n".join([f'"""{doc[0]}', *doc[1:]]) + '"""'
    return 'def make_inputs(seed, kind="random", sizes=None):\n' + textwrap.indent(
        "\n".join([text, *statements]), "    "
    )


def _order(function: cst.FunctionDef) -> list[str]:
    """Read the calling order: `return [arg0_1]` of `get_args`, or `call([arg0_1])` before torch 2.11."""
    returned = m.extractall(function, m.Return(value=m.SaveMatchedNode(m.List(), "inputs")))
    found = returned or m.extractall(function, _CALL)
    if not found:
        raise UnreadableError("output_code.py does not say in which order it takes its inputs")
    inputs = cst.ensure_type(found[0]["inputs"], cst.List)
    return [_code(element.value) for element in inputs.elements]


def _example(line: cst.SimpleStatementLine) -> _Input:
    assign = cst.ensure_type(line.body[0], cst.Assign)
    name, code = _code(assign.targets[0].target), _code(assign)
    match ast.parse(_code(assign.value), mode="eval").body:
        case ast.Constant(value=int() as value):
            return _Input(name, code, value=value)
        case ast.Call(func=ast.Name("rand_strided"), args=[size, stride, *_], keywords=keywords):
            named = {keyword.arg: keyword.value for keyword in keywords}
            try:
                numbers, strides = ast.literal_eval(size), ast.literal_eval(stride)
                device = ast.literal_eval(named["device"])
                dtype = ast.unparse(named["dtype"]).removeprefix("torch.")
            except (ValueError, KeyError):  # not plain numbers: the line is used as it stands
                return _Input(name, code)
            return _Input(name, code, _texts(numbers), _texts(strides), "0", device, dtype, None, numbers)
    return _Input(name, code)


def _as_it_was(example: _Input, fact: InputFact) -> _Input:
    """Return the input as the manifest has it."""
    if fact.kind == "symint":
        return replace(example, code=f"{example.name} = {fact.value}", value=fact.value)
    if fact.size is None or fact.stride is None:
        return example
    return replace(
        example,
        size=_texts(fact.size),
        stride=_texts(fact.stride),
        offset=str(fact.offset or 0),
        dtype=fact.dtype or example.dtype,
        device=fact.device or example.device,
        recorded=fact.size,
    )


def _symbols(examples: Sequence[_Input], loaded: Mapping[str, LoadedInput]) -> dict[str, int]:
    """Return the size symbols with their recorded values: whole numbers among the inputs, and plain sizes."""
    symbols: dict[str, int] = {}
    for each in examples:
        source = loaded.get(each.name)
        if source is None:
            continue
        texts = (source.symbol,) if each.value is not None else source.size or ()
        numbers = (each.value,) if each.value is not None else each.recorded
        for text, number in zip(texts, numbers, strict=False):
            if text and number is not None and _SYMBOL.fullmatch(text):
                symbols.setdefault(text, number)
    return symbols


def _in_symbols(each: _Input, loaded: LoadedInput | None, symbols: Mapping[str, int]) -> _Input:
    """Return the input with its sizes in symbols, if that gives what was recorded."""
    if loaded is None:
        return each
    if each.offset == "0" and (offset := python_of(loaded.offset, symbols)):
        each = replace(each, offset=offset[0])
    if not symbols:
        return each
    if each.value is not None:
        found = python_of(loaded.symbol or "", symbols)
        fits = found is not None and found[1] == each.value
        return replace(each, code=f"{each.name} = {found[0]}") if found and fits else each
    if each.size is None or loaded.size is None:
        return each
    texts = (*loaded.size, *(loaded.stride or _contiguous(loaded.size)))
    dims = [found for text in texts if (found := python_of(text, symbols))]
    if [str(value) for _, value in dims] != [*each.size, *each.stride]:
        return each
    size, stride = dims[: len(each.size)], dims[len(each.size) :]
    return replace(each, size=tuple(text for text, _ in size), stride=tuple(text for text, _ in stride))


def _contiguous(size: Sequence[str]) -> list[str]:
    strides: list[str] = []
    for at in range(len(size)):
        rest = [text if text.isalnum() else f"({text})" for text in size[at + 1 :] if text != "1"]
        strides.append("*".join(rest) or "1")
    return strides


def _values(
    each: _Input,
    fact: InputFact | None,
    bound: InputBound | None,
    symbols: Mapping[str, int],
    smallest: int,
) -> tuple[list[str], list[str]]:
    """Return the keywords that bound the values of an input, and a note where they are but a guess."""
    form = [f"form={bound.form!r}"] if bound and bound.form != "any" else []
    if each.size is None or (each.dtype == "bool" and not form):
        return [], []
    whole = each.dtype.startswith(("uint", "int"))
    low = _bound(bound.low if bound else None, symbols)
    high = _bound(bound.high if bound else None, symbols)
    if each.dtype == "bool":
        return [f"high={high}", *form] if high is not None else [], []
    if fact is not None and fact.minimum is not None and fact.maximum is not None:
        resizable = high is not None and not high.lstrip("-").isdigit()
        return [f"low={fact.minimum}", f"high={high if resizable else fact.maximum}", *form], []
    if low is None and high is None and whole:
        guess = (0, smallest - 1)
        if each.dtype in _WHOLE_RANGE:
            guess = _WHOLE_RANGE[each.dtype]
        elif not (bound and bound.lost):
            guess = _FREE.get(each.dtype, _FREE_SIGNED)
        else:
            note = f"{each.name}: the dump does not record its range; indices may need a larger one."
            return [f"low={guess[0]}", f"high={guess[1]}", *form], [note]
        low, high = map(str, guess)
    return [*(f"{end}={text}" for end, text in (("low", low), ("high", high)) if text is not None), *form], []


def _bound(value: Dim | None, symbols: Mapping[str, int]) -> str | None:
    if value is None or isinstance(value, int):
        return None if value is None else str(value)
    found = python_of(value, symbols)
    return found[0] if found else None


def _file(fact: InputFact | None, loaded: LoadedInput | None) -> str | None:
    """Say where the bytes of an input are, relative to the graph's folder."""
    if fact is not None and fact.saved is not None:
        return f"{INPUTS_DIR}/{fact.saved}"
    return f"storages/{loaded.storage}" if loaded is not None and loaded.storage else None


def _line(each: _Input, values: list[str], file: str | None) -> str:
    if each.size is None:
        return each.code
    parts = [
        repr(each.name),
        _tuple(each.size),
        _tuple(each.stride),
        f"torch.{each.dtype}",
        repr(each.device),
    ]
    parts += values
    parts += [f"offset={each.offset}"] if each.offset != "0" else []
    parts += [f"file={file!r}"] if file else []
    return f"{each.name} = inputs.tensor({', '.join(parts)})"


def _whole(fact: InputFact) -> bool:
    if fact.kind == "symint":
        return fact.value is not None
    return None not in (fact.size, fact.stride, fact.dtype, fact.device)


def _texts(numbers: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(str, numbers))


def _tuple(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def _code(node: cst.CSTNode) -> str:
    return cst.Module(body=[]).code_for_node(node)
