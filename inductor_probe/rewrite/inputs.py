"""`make_inputs`: the graph's inputs, rebuilt from the lines in which torch writes down examples of them."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from inductor_probe.errors import UnreadableError
from inductor_probe.model.manifest import InputFact
from inductor_probe.rewrite.sections import Statement

# Ranges of integers that are safe whatever they are: indices may be among the wide ones.
_WHOLE_RANGE = {"uint8": (0, 255), "int8": (-128, 127), "bool": (0, 1)}
_CALL = m.Call(func=m.Name("call"), args=[m.Arg(value=m.SaveMatchedNode(m.List(), "inputs"))])


@dataclass(frozen=True, slots=True)
class _Example:
    """A line `name = rand_strided(size, stride, device=..., dtype=...)`, or any other `name = value`."""

    name: str
    code: str
    size: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    device: str = "cpu"
    dtype: str = ""


def make_inputs_source(tail: Sequence[Statement], facts: Sequence[InputFact]) -> str:
    """Write the function `make_inputs(seed)`.

    Sizes and strides are those of `facts` if they tell every input, else those of the examples in `tail`;
    ranges of integers come from `facts`, and are narrow where there are none.
    """
    function = next((each for each in tail if isinstance(each, cst.FunctionDef)), None)
    if function is None:
        raise UnreadableError("output_code.py has no example inputs", "dump the script again")
    lines = [line for line in function.body.body if isinstance(line, cst.SimpleStatementLine)]
    examples = [_example(line) for line in lines if m.matches(line.body[0], m.Assign())]
    order = _order(function)
    shared = [example.name for example in examples if example.name not in order and example.size is not None]
    known = {fact.name: fact for fact in facts}
    complete = all(name in known and _whole(known[name]) for name in order)
    smallest = min((n for e in examples for n in e.size or () if n > 1), default=2)
    notes: list[str] = []
    body = []
    for example in examples:
        if example.name in (*order, *shared):
            fact = known.get(example.name)
            body.append(_line(example, fact, complete and example.name in order, smallest, notes))
    doc = ["Return fresh inputs for the graph, the same for the same seed."]
    if notes:
        doc += ["", *dict.fromkeys(notes), ""]
    statements = [f"global {', '.join(shared)}"] if shared else []
    if any("generator" in line for line in body):
        statements.append("generator = torch.Generator().manual_seed(seed)")
    if any("rand_strided" in line for line in body):
        statements.append("from torch._dynamo.testing import rand_strided")
    statements += [*body, f"return [{', '.join(order)}]"]
    text = "\n".join([f'"""{doc[0]}', *doc[1:]]) + '"""'
    return "def make_inputs(seed):\n" + textwrap.indent("\n".join([text, *statements]), "    ")


def _order(function: cst.FunctionDef) -> list[str]:
    """Read the calling order: `return [arg0_1]` of `get_args`, or `call([arg0_1])` before torch 2.11."""
    returned = m.extractall(function, m.Return(value=m.SaveMatchedNode(m.List(), "inputs")))
    found = returned or m.extractall(function, _CALL)
    if not found:
        raise UnreadableError("output_code.py does not say in which order it takes its inputs")
    inputs = cst.ensure_type(found[0]["inputs"], cst.List)
    return [_code(element.value) for element in inputs.elements]


def _example(line: cst.SimpleStatementLine) -> _Example:
    assign = cst.ensure_type(line.body[0], cst.Assign)
    name, code = _code(assign.targets[0].target), _code(assign)
    tree = ast.parse(_code(assign.value), mode="eval").body
    match tree:
        case ast.Call(func=ast.Name("rand_strided"), args=[size, stride, *_], keywords=keywords):
            named = {keyword.arg: keyword.value for keyword in keywords}
            try:
                device = ast.literal_eval(named["device"])
                dtype = ast.unparse(named["dtype"]).removeprefix("torch.")
                return _Example(name, code, ast.literal_eval(size), ast.literal_eval(stride), device, dtype)
            except (ValueError, KeyError):  # not plain numbers: the line is used as it stands
                return _Example(name, code)
    return _Example(name, code)


def _line(example: _Example, fact: InputFact | None, trust: bool, smallest: int, notes: list[str]) -> str:
    if trust and fact is not None and fact.kind == "symint":
        return f"{example.name} = {fact.value}"
    size, stride, dtype, device = example.size, example.stride, example.dtype, example.device
    offset = 0
    if trust and fact is not None and fact.size is not None and fact.stride is not None:
        size, stride, offset = fact.size, fact.stride, fact.offset or 0
        dtype, device = fact.dtype or dtype, fact.device or device
    if size is None or stride is None:
        return example.code
    text = f"{example.name} = make_tensor({size}, {stride}, torch.{dtype}, {device!r}, generator"
    if dtype.startswith(("uint", "int", "bool")):
        if fact is not None and fact.minimum is not None and fact.maximum is not None:
            low, high = fact.minimum, fact.maximum
        else:
            low, high = _WHOLE_RANGE.get(dtype, (0, smallest - 1))
            if dtype not in _WHOLE_RANGE:
                notes.append(
                    f"{example.name}: the dump does not tell its range; indices may need a larger one."
                )
        text += f", low={low}, high={high}"
    return text + (f", offset={offset})" if offset else ")")


def _whole(fact: InputFact) -> bool:
    if fact.kind == "symint":
        return fact.value is not None
    return None not in (fact.size, fact.stride, fact.dtype, fact.device)


def _code(node: cst.CSTNode) -> str:
    return cst.Module(body=[]).code_for_node(node)
