"""`make_inputs`: the graph's inputs, rebuilt from what torch and `probe dump` wrote down about them."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence

import libcst as cst
from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.analysis.index import evaluate, parse_expression
from inductor_probe.bench_file.sections import Statement, source_of
from inductor_probe.errors import UnreadableError
from inductor_probe.model.ir import Dim
from inductor_probe.model.layouts import InputBound
from inductor_probe.model.manifest import INPUTS_DIR, InputFact
from inductor_probe.reader.cpp_values import tuple_text

# Where nothing is known of an integer. Indices may be among the wide ones, so they stay small: below the
# smallest dimension there is. Where it is known that they pick nothing, they show more when they are larger.
_FULL_RANGE = {"uint8": (0, 255), "int8": (-128, 127)}
_FREE = {"uint16": (0, 1000), "uint32": (0, 1000), "uint64": (0, 1000)}
_FREE_SIGNED = (-1000, 1000)
_REACH = 997
_LIMITS = {f"uint{bits}": (0, min(2**bits - 1, 2**63 - 2)) for bits in (8, 16, 32, 64)}
_LIMITS |= {
    f"int{bits}": (-(2 ** (bits - 1)), min(2 ** (bits - 1) - 1, 2**63 - 2)) for bits in (8, 16, 32, 64)
}
_NEAR_ZERO = (
    0.1  # a smaller mean, in standard deviations, counts as 0; a smaller deviation would hide wrong indices
)
_SMALLEST_DEVIATION = 0.01  # the tolerance of float32 is 1e-5
_LIKE_ONE = 2.0  # standard normal values are like those of such a deviation
_NOT_ANALYSED = InputBound("", lost=True)  # anything may be an index

_SYMBOL = re.compile(r"[a-z]+\d+")
_NAME = re.compile(r"\b[a-zA-Z_]\w*")
_LOAD_ARGS = re.compile(r"^def load_args\(reader\):\n((?:[ \t].*\n|\"\"\"\n|\n)*)", re.MULTILINE)
_COMMENT = re.compile(r"#\s*(\w+)\s*$")
_MODULO, _FLOOR = ("Mod", "PythonMod"), ("FloorDiv", "CleanDiv")  # functions of torch.utils._sympy


class _Input(Struct, frozen=True):
    """An input: `code` as `output_code.py` makes it, and of a tensor the layout, in texts of Python.

    `recorded` are its sizes in numbers; `value` is that of an integer.
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


class LoadedInput(Struct, frozen=True):
    """An input as `load_args` makes it; sizes are texts of Python, in which size symbols may stand.

    Attributes:
        symbol: of an integer: what it is called in the sizes of others, if torch wrote it.
        size, stride, offset: of a tensor, in elements; `stride` is None where it is contiguous.
        storage: name of the file in `storages/` with the bytes of its memory, if torch saved them.
    """

    symbol: str | None = None
    size: tuple[str, ...] | None = None
    stride: tuple[str, ...] | None = None
    offset: str = "0"
    storage: str | None = None


class Example(Struct, frozen=True):
    """A constant as `get_args` of `output_code.py` makes one: its layout, as numbers and as Python.

    `limits` are keywords that bound its values.
    """

    name: str
    recorded: tuple[int, ...]
    strides: tuple[int, ...]
    layout: tuple[str, str]
    dtype: str
    device: str
    limits: tuple[str, ...]


def example_constants(
    tail: Sequence[Statement], bounds: Sequence[InputBound] | None
) -> tuple[tuple[Example, ...], tuple[str, ...]]:
    """Return the constants among the examples in `tail`, and the names of those that are no tensors.

    torch/_inductor/codegen/wrapper.py (PythonWrapperCodegen.benchmark_compiled_module) writes `global`
    before each, and `pickle.loads` for values other than tensors, which are not read.
    """
    function = next((statement for statement in tail if isinstance(statement, cst.FunctionDef)), None)
    if function is None:
        return (), ()
    tree = ast.parse(source_of([function]))
    names = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    inputs = _examples(tree.body[0].body)  # type: ignore[attr-defined]
    smallest = min((size for item in inputs for size in item.recorded if size > 1), default=2)
    limits = {bound.name: bound for bound in bounds or ()}
    examples, objects = list[Example](), list[str]()
    for item in inputs:
        if item.name not in names:
            continue
        if item.size is None:
            objects.append(item.name)
            continue
        bound = limits.get(item.name) if bounds is not None else _NOT_ANALYSED
        values = [
            text for text in _values(item, None, bound, {}, smallest)[0] if not text.startswith("form=")
        ]
        layout = (tuple_text(item.size), tuple_text(item.stride))
        strides = tuple(map(int, item.stride))
        examples.append(
            Example(item.name, item.recorded, strides, layout, item.dtype, item.device, tuple(values))
        )
    return tuple(examples), tuple(objects)


def make_inputs_source(
    tail: Sequence[Statement],
    runnable: str | None,
    facts: Sequence[InputFact],
    bounds: Sequence[InputBound] | None,
) -> tuple[str, dict[str, int]]:
    """Return the source of the function `make_inputs(inputs, s77=33)`, and the size symbols as recorded.

    `inputs` makes its tensors (`harness/inputs.py`); sizes are bound by its other parameters.

    Sizes and strides are those of `facts` if they have every input, else those of the examples in `tail`;
    in symbols where `load_args` of the text `runnable` has them so. Values of integers come from `facts`,
    then from `bounds` (None if nobody looked for any), and are small where neither has them.
    """
    function = next((statement for statement in tail if isinstance(statement, cst.FunctionDef)), None)
    if function is None:
        raise UnreadableError("output_code.py has no example inputs", "dump the script again")
    tree = ast.parse(source_of([function]))
    order = _order(tree)
    inputs = _examples(tree.body[0].body)  # type: ignore[attr-defined]
    known = {fact.name: fact for fact in facts}
    if all(name in known and _is_complete(known[name]) for name in order):
        inputs = [_as_recorded(item, known[item.name]) if item.name in order else item for item in inputs]
    loaded = parse_load_args(runnable)
    symbols = _symbols(inputs, loaded)
    smallest = min((size for item in inputs for size in item.recorded if size > 1), default=2)
    limits = {bound.name: bound for bound in bounds or ()}
    used = [name for item in inputs if item.size is None for name in _NAME.findall(item.code)[1:]]
    lines, notes = list[str](), list[str]()
    for recorded in inputs:
        name = recorded.name
        if name not in order:
            lines += [recorded.code] if name in used else []  # memory that inputs in symbols share
            continue
        if recorded.size is not None:
            bound = limits.get(name) if bounds is not None else _NOT_ANALYSED
            values, note = _values(recorded, known.get(name), bound, symbols, smallest)
            notes += [note] if note else []
        source = loaded.get(name)
        example = _in_symbols(recorded, source, symbols) if source else recorded
        if example.size is None:
            lines.append(example.code)
            continue
        layout = [repr(name), tuple_text(example.size), tuple_text(example.stride), f"torch.{example.dtype}"]
        layout += [repr(example.device), *values]
        layout += [f"offset={example.offset}"] if example.offset != "0" else []
        if name in known and known[name].saved is not None:
            layout.append(f"file={f'{INPUTS_DIR}/{known[name].saved}'!r}")
        elif source and source.storage:
            layout.append(f"file={f'storages/{source.storage}'!r}")
        lines.append(f"{name} = inputs.tensor({', '.join(layout)})")
    return _function(symbols, order, lines, notes), symbols


def _function(symbols: Mapping[str, int], order: list[str], lines: list[str], notes: list[str]) -> str:
    doc = '"""Return fresh inputs for the graph.'
    doc += "\n".join(["", "", *dict.fromkeys(notes), ""]) if notes else ""
    statements = list[str]()
    if any("rand_strided" in line for line in lines):
        statements.append("from torch._dynamo.testing import rand_strided")
    body = [doc + '"""', *statements, *lines, f"return [{', '.join(order)}]"]
    parameters = ", ".join(["inputs", *(f"{name}={value}" for name, value in symbols.items())])
    return f"def make_inputs({parameters}):\n" + textwrap.indent("\n".join(body), "    ")


def _order(tree: ast.Module) -> list[str]:
    """Read the calling order: `return [arg0_1]` of `get_args`, or `call([arg0_1])` before torch 2.11."""
    calls: list[ast.List] = []
    for node in ast.walk(tree):
        match node:
            case ast.Return(value=ast.List() as inputs):
                return [ast.unparse(element) for element in inputs.elts]
            case ast.Call(func=ast.Name("call"), args=[ast.List() as inputs]):
                calls.append(inputs)
    if not calls:
        raise UnreadableError("output_code.py does not say in which order it takes its inputs")
    return [ast.unparse(element) for element in calls[0].elts]


def _examples(statements: Sequence[ast.stmt]) -> list[_Input]:
    """Read `arg0_1 = 5`, or `arg0_1 = rand_strided((3, 4), (4, 1), device='cpu', dtype=torch.float32)`.

    Inputs that share memory are `torch.as_strided(_shared_storage_24, (3, 4), (1, 3))`, all from its begin,
    whatever their offsets: what is read there is a layout, of the dtype and device of that memory.
    """
    examples: dict[str, _Input] = {}
    for statement in statements:
        if isinstance(statement, ast.Assign):
            name, code = ast.unparse(statement.targets[0]), ast.unparse(statement)
            examples[name] = _example(_Input(name, code), statement.value, examples)
    return [*examples.values()]


def _example(plain: _Input, value: ast.expr, others: Mapping[str, _Input]) -> _Input:
    """Return an input with what its value says; `plain` where that is no number and has no plain layout."""
    match value:
        case ast.Constant(value=int() as number):
            return replace(plain, value=number)
        case ast.Call(func=ast.Name("rand_strided"), args=[size, stride, *_], keywords=keywords):
            named = {keyword.arg: keyword.value for keyword in keywords}
            try:
                device = ast.literal_eval(named["device"])
                dtype = ast.unparse(named["dtype"]).removeprefix("torch.")
            except (ValueError, KeyError):  # not plain: the line is used as it stands
                return plain
            plain = replace(plain, device=device, dtype=dtype)
        case ast.Call(
            func=ast.Attribute(ast.Name("torch"), "as_strided"), args=[ast.Name(id=base), size, stride]
        ):
            if base not in others:
                return plain
            device, dtype = others[base].device, others[base].dtype
        case _:
            return plain
    try:
        sizes, strides = ast.literal_eval(size), ast.literal_eval(stride)
    except ValueError:
        return plain
    return replace(
        plain, size=_texts(sizes), stride=_texts(strides), device=device, dtype=dtype, recorded=sizes
    )


def _is_complete(fact: InputFact) -> bool:
    if fact.kind == "symint":
        return fact.value is not None
    return None not in (fact.size, fact.stride, fact.dtype, fact.device)


def _as_recorded(example: _Input, fact: InputFact) -> _Input:
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


def _symbols(inputs: Sequence[_Input], loaded: Mapping[str, LoadedInput]) -> dict[str, int]:
    """Return the size symbols with their recorded values: integers among the inputs, and plain sizes."""
    symbols: dict[str, int] = {}
    for example in inputs:
        source = loaded.get(example.name, LoadedInput())
        integer = example.value is not None
        texts = (source.symbol,) if integer else source.size or ()
        for text, number in zip(texts, (example.value,) if integer else example.recorded, strict=False):
            if text and number is not None and _SYMBOL.fullmatch(text):
                symbols.setdefault(text, number)
    return symbols


def _in_symbols(example: _Input, loaded: LoadedInput, symbols: Mapping[str, int]) -> _Input:
    """Return the input with its sizes in symbols, if that gives what was recorded."""
    if example.offset == "0" and (offset := python_of(loaded.offset, symbols)):
        example = replace(example, offset=offset[0])
    if not symbols:
        return example
    if example.value is not None:
        size = python_of(loaded.symbol or "", symbols)
        fits = size is not None and size[1] == example.value
        return replace(example, code=f"{example.name} = {size[0]}") if size and fits else example
    if example.size is None or loaded.size is None:
        return example
    texts = (*loaded.size, *(loaded.stride or _contiguous(loaded.size)))
    dims = [dim for text in texts if (dim := python_of(text, symbols))]
    if [str(value) for _, value in dims] != [*example.size, *example.stride]:
        return example
    python, rank = tuple(text for text, _ in dims), len(example.size)
    return replace(example, size=python[:rank], stride=python[rank:])


def _contiguous(size: Sequence[str]) -> list[str]:
    """Return the strides of a contiguous tensor: of `s0, 4, s1 + 1` they are `4*(s1 + 1), (s1 + 1), 1`."""
    strides: list[str] = []
    for index in range(len(size)):
        inner = [text if text.isalnum() else f"({text})" for text in size[index + 1 :] if text != "1"]
        strides.append("*".join(inner) or "1")
    return strides


def _values(
    example: _Input,
    fact: InputFact | None,
    bound: InputBound | None,
    symbols: Mapping[str, int],
    smallest: int,
) -> tuple[list[str], str]:
    """Return the keywords that bound the values of a tensor, and a note where they are but a guess."""
    form = [f"form={bound.form!r}"] if bound and bound.form != "any" else []
    low = _bound(bound.low if bound else None, symbols)
    high = _bound(bound.high if bound else None, symbols)
    note = ""
    if example.dtype == "bool":
        return [f"high={high}", *form] if form and high is not None else [], note
    if fact is not None and fact.minimum is not None and fact.maximum is not None:
        resizable = high is not None and not high.lstrip("-").isdigit()
        if fact.minimum == fact.maximum and example.recorded and max(example.recorded) > 1:
            low, high, note = _unlike(example, int(fact.minimum), bound, low, high)
        else:
            low, high = str(fact.minimum), high if resizable else str(fact.maximum)
    elif low is None and high is None and not form and fact is not None and fact.mean is not None:
        return spread(example.name, fact), note
    elif low is None and high is None and example.dtype.startswith(("uint", "int")):
        guess = (0, smallest - 1)
        if example.dtype in _FULL_RANGE:
            guess = _FULL_RANGE[example.dtype]
        elif not (bound and bound.lost):
            guess = _FREE.get(example.dtype, _FREE_SIGNED)
        else:
            note = f"{example.name}: the dump does not record its range; indices may need a larger one."
        low, high = map(str, guess)
    limits = [] if low is None and high is None else both_ends(low, high, example.dtype)
    return [*limits, *form], note


def _unlike(
    example: _Input, value: int, bound: InputBound | None, low: str | None, high: str | None
) -> tuple[str, str, str]:
    """Return between which values to draw where all were equal, and a note where that has to stay so.

    With equal elements a flip gives what it gets: no wrong place would be seen. What may be an index stays
    inside the bounds that its operator asks for, and is as it was if they are not known. Other numbers are
    drawn from their type if it has 8 bits; wider ones, which may be masks or counts, from the value and a
    neighbour, so that nothing overflows that did not.
    """
    if low is not None and high is not None:
        return low, high, ""
    asked = bound is not None and (bound.lost or bound.form != "any")
    if asked or low is not None or high is not None:
        was = (
            f"{example.name}: all its elements were {value} in the dump, and they may be indices, so they are"
        )
        return str(value), str(value), f"{was} here: a result at a wrong place may not be seen."
    if example.dtype in _FULL_RANGE:
        least, most = _FULL_RANGE[example.dtype]
    else:
        least, most = (0, 1) if value in (0, 1) else (value, value + 1)
    return str(least), str(most), ""


def spread(name: str, fact: InputFact) -> list[str]:
    """Return the keywords that draw floats as they were, none where standard normal ones are like those.

    Weights of a standard deviation of 1 make each product of matrices some ten times as large as what goes
    in: in the backward graph of a deep network all gradients would be infinite, and nothing could be checked.
    No deviation is so small that a wrong index, or a value below the tolerance, would go unseen; and the
    gradients that a backward graph begins with stay standard normal: what comes out is in proportion to them.
    """
    if fact.mean is None or fact.deviation is None or name.startswith("tangents_"):
        return []
    mean = fact.mean if abs(fact.mean) > _NEAR_ZERO * fact.deviation else 0.0
    deviation = max(fact.deviation, abs(mean) * _NEAR_ZERO, _SMALLEST_DEVIATION)
    if not mean and (not fact.deviation or 1 / _LIKE_ONE < deviation < _LIKE_ONE):
        return []
    return [*([f"mean={mean:.3g}"] if mean else []), f"deviation={deviation:.3g}"]


def both_ends(low: str | None, high: str | None, dtype: str) -> list[str]:
    """Return keywords for both ends of a range, within what an integer of that type can have.

    Where but one end is known, values reach over 997: with `low=5` alone they are from 5 to 1002.
    """
    if low is None:
        low = "0" if not _is_number(high) or int(high or 0) >= 0 else str(int(high or 0) - _REACH)
    if high is None:
        high = str(max(int(low), 0) + _REACH) if _is_number(low) else f"max({low}, 0) + {_REACH}"
    if limits := _LIMITS.get(dtype):
        low = str(max(int(low), limits[0])) if _is_number(low) else low
        high = str(min(int(high), limits[1])) if _is_number(high) else high
    if _is_number(low) and _is_number(high):
        high = str(max(int(low), int(high)))
    return [f"low={low}", f"high={high}"]


def _is_number(text: str | None) -> bool:
    return text is not None and text.lstrip("-").isdigit()


def _bound(value: Dim | None, symbols: Mapping[str, int]) -> str | None:
    if value is None or isinstance(value, int):
        return None if value is None else str(value)
    python = python_of(value, symbols)
    return python[0] if python else None


def parse_load_args(runnable: str | None) -> dict[str, LoadedInput]:
    """Return the inputs of `load_args` in the text of `fx_graph_runnable.py` by name; none without it.

    Its lines come from `InputWriter` of torch/_dynamo/debug_utils.py:

        buf0 = reader.storage('0beef', 400)
        reader.tensor(buf0, (s77, 5), is_leaf=True)  # arg1_1
    """
    match = _LOAD_ARGS.search(runnable or "")
    try:
        tree = ast.parse(match[0] if match else "")
    except (SyntaxError, ValueError):  # an old torch wrote what is no Python for some inputs
        return {}
    lines = match[0].split("\n") if match else []
    storages: dict[str, str | None] = {}
    loaded = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=buffer)],
                value=ast.Call(func=ast.Attribute(attr="storage"), args=[ast.Constant(value=digest), *_]),
            ):
                storages[buffer] = digest if isinstance(digest, str) else None
            case ast.Call(func=ast.Attribute(attr="tensor" | "symint" as kind)):
                name = _COMMENT.search(lines[(node.end_lineno or node.lineno) - 1])
                if name:
                    loaded[name[1]] = _tensor(node, storages) if kind == "tensor" else _symint(node)
    return loaded


def _tensor(call: ast.Call, storages: Mapping[str, str | None]) -> LoadedInput:
    named = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    buffer = ast.unparse(call.args[0]) if call.args else ""
    layout = [
        tuple(map(ast.unparse, dims.elts)) if isinstance(dims, ast.Tuple) else None for dims in call.args[1:3]
    ]
    size, stride, *_ = (*layout, None, None)
    return LoadedInput(None, size, stride, named.get("storage_offset", "0"), storages.get(buffer))


def _symint(call: ast.Call) -> LoadedInput:
    for keyword in call.keywords:
        if keyword.arg == "expr" and isinstance(keyword.value, ast.Constant):
            return LoadedInput(str(keyword.value.value))
    return LoadedInput(ast.unparse(call.args[0]) if call.args else None)


def python_of(text: str, symbols: Mapping[str, int]) -> tuple[str, int] | None:
    """Turn a size as sympy prints it into Python, with its value; None if it needs more than `symbols`.

    With `s77` at 6, `FloorDiv(s77, 2)` gives `("s77 // 2", 3)`.
    """
    try:
        tree = parse_expression(text)
        value = evaluate(tree, symbols)
        return None if value is None else (ast.unparse(_Python().visit(tree)), value)
    except (ValueError, RecursionError):
        return None


class _Python(ast.NodeTransformer):
    """Writes sympy's functions as Python's operators."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        exact = isinstance(node.op, ast.Div)  # `evaluate` refuses a division with a rest
        return ast.BinOp(self.visit(node.left), ast.FloorDiv() if exact else node.op, self.visit(node.right))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name, arguments = ast.unparse(node.func), [self.visit(argument) for argument in node.args]
        if name in (*_MODULO, *_FLOOR):
            return ast.BinOp(arguments[0], ast.Mod() if name in _MODULO else ast.FloorDiv(), arguments[1])
        if name.lower() in ("max", "min"):
            return ast.Call(ast.Name(name.lower()), arguments, [])
        raise ValueError(f"{name} is not a function of Python")


def _texts(numbers: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(str, numbers))
