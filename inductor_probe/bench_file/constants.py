"""`make_constants`: loads the constants that `probe dump` saved; `TAKES`: the kernels that read each."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from inductor_probe.bench_file.inputs import Example, example_constants
from inductor_probe.bench_file.sections import Statement
from inductor_probe.model.layouts import InputBound
from inductor_probe.model.manifest import ConstantFact

_TAKES_PACKED = re.compile(r"torch\.ops\.(?:(?:mkldnn|mkl|onednn)\b|aten\.mkldnn_)")
_TAKES_DENSE = re.compile(
    r"torch\.ops\.mkldnn\._(?:linear|convolution)_pointwise_?\b"
)  # as well: it packs then
_DIGITS = 32  # of a digest: enough to tell that a file is another
_OPERATOR = re.compile(r"(?:mkldnn|mkl|onednn|aten)\.\w+(?:\.\w+)?")
_VIEWS = (
    "reinterpret_tensor",
    "alloc_from_pool",
    "aten.view",
)  # another name of the same memory


class Constants(Struct, frozen=True):
    """The constants of a graph.

    Attributes:
        source: of the function `make_constants(constants)`, which sets them; "" where there are none.
        takes: for each that may be missing, the kernels and library calls that take it.
        attributes: what the FX graph calls them, with their names here.
        packed: names of those that are no plain tensors.
    """

    source: str = ""
    takes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    packed: frozenset[str] = frozenset()


def graph_constants(
    tail: Sequence[Statement],
    wrapper: str,
    kernels: Sequence[str],
    facts: Sequence[ConstantFact] | None,
    bounds: Sequence[InputBound] | None,
) -> Constants:
    """Return the constants of a graph, with the source that makes them.

    Args:
        tail: of `output_code.py`, with its examples. wrapper: its text. kernels: those generated.
        facts: what the manifest says of them; None in a dump from before it did.
        bounds: which values its inputs may take; None where nobody looked.
    """
    examples, objects = example_constants(tail, bounds)
    known = {fact.name: fact for fact in facts or () if _is_name(fact)}
    uses = uses_of({*known, *(example.name for example in examples), *objects}, wrapper, kernels)
    lines, last = list[str](), list[str]()
    packed: list[ConstantFact] = []
    opaque: set[str] = set()

    def add_stand_in(name: str, size: tuple[int, ...], dtype: str, device: str, missing: str) -> None:
        """Add what makes the graph run without a packed constant, if that can be."""
        opaque.add(name)
        made: str | None = _dense(name, size, dtype, device, missing)
        if not uses[name] or not all(map(_TAKES_DENSE.match, uses[name])):
            last.append(f"constants.missing[{name!r}] = {missing!r}")
            made = _packed_for_mkl(name, wrapper)
        last.extend([made] if made else [])

    for fact in known.values():
        if fact.kind == "packed" and _is_safe(fact, known):
            packed.append(fact)
        elif fact.kind == "plain":
            lines.append(_saved(fact))
        else:
            add_stand_in(fact.name, fact.size, fact.dtype, fact.device, _missing(fact))
    lines += map(_packs, packed)
    for example in (example for example in examples if example.name not in known):
        if _looks_packed(example) and any(map(_TAKES_PACKED.match, uses[example.name])):
            add_stand_in(example.name, example.recorded, example.dtype, example.device, "not-in-dump")
        else:
            lines.append(_remade(example))
    lines += [*last, *(f"constants.missing[{name!r}] = 'library-object'" for name in objects)]
    if not lines:
        return Constants()
    takes = _takes(uses, packed)
    attributes = {name: fact.name for fact in known.values() for name in fact.attributes}
    if facts is None:  # inductor calls a constant what the FX graph calls it
        attributes = {example.name: example.name for example in examples}
    names = [*known, *(example.name for example in examples if example.name not in known)]
    return Constants(
        _function(names, lines, remade=facts is None),
        {name: takes[name] for name in takes if name in {*known, *opaque, *objects}},
        attributes,
        frozenset({fact.name for fact in packed} | opaque),
    )


def _takes(uses: Mapping[str, tuple[str, ...]], packed: Sequence[ConstantFact]) -> dict[str, tuple[str, ...]]:
    """Return what takes each constant that may be missing; of a packed one, each that it is made from."""
    takes = {name: list(map(_short, calls)) for name, calls in uses.items()}
    for fact in packed:
        for part in set(fact.arguments) & set(takes):
            takes[part] += takes[fact.name]
    names = set(takes) - {fact.name for fact in packed}
    return {name: tuple(dict.fromkeys(calls)) for name, calls in takes.items() if calls and name in names}


def uses_of(names: set[str], wrapper: str, kernels: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return for each constant what the wrapper passes it to, also under another name.

    `buf1 = torch.ops.mkldnn._linear_pointwise.default(x, _frozen_param5)` passes it to
    `torch.ops.mkldnn._linear_pointwise.default`; `buf2 = reinterpret_tensor(_frozen_param3, ...)` makes
    `buf2` another name of it; `kernel.run(_frozen_param3, ...)` passes it to `kernel`.
    """
    uses: dict[str, list[str]] = {name: [] for name in names}
    aliases = {name: {name} for name in names}  # of each name, the constants that it may be

    def constants_in(node: ast.AST) -> set[str]:
        return {
            constant
            for part in ast.walk(node)
            if isinstance(part, ast.Name)
            for constant in aliases.get(part.id, ())
        }

    nodes = (node for node in ast.walk(ast.parse(wrapper)) if isinstance(node, ast.stmt))
    for statement in sorted(nodes, key=lambda node: node.lineno):
        if not isinstance(statement, ast.Assign | ast.Expr):
            continue
        value = statement.value
        callee = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
        if isinstance(value, ast.Call) and not callee.startswith((*_VIEWS, "assert_")):
            kernel = callee.partition(".")[0]
            for name in sorted(constants_in(value)):
                uses[name].append(kernel if kernel in kernels else callee)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                aliases[ast.unparse(target)] = constants_in(value)
    return {name: tuple(dict.fromkeys(calls)) for name, calls in uses.items()}


def _short(callee: str) -> str:
    """Return what an operator is called where it is timed: `mkldnn._linear_pointwise.default`."""
    return callee.removeprefix("torch.ops.")


def _is_name(fact: ConstantFact) -> bool:
    """Tell whether a constant can stand in Python by its name: the manifest may be anybody's."""
    return fact.name.isidentifier() and fact.dtype.isidentifier()


def _is_safe(fact: ConstantFact, known: Mapping[str, ConstantFact]) -> bool:
    """Tell whether a packing is a call of an operator with literals and plain constants."""
    if not _OPERATOR.fullmatch(fact.operator or ""):
        return False
    for text in fact.arguments:
        if text in known and known[text].kind == "plain":
            continue
        try:
            ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return False
    return True


def _packs(fact: ConstantFact) -> str:
    result = f"[{fact.result}]" if fact.result is not None else ""
    return f"{fact.name} = torch.ops.{fact.operator}({', '.join(fact.arguments)}){result}"


def _saved(fact: ConstantFact) -> str:
    """Write the line for a plain constant, with its file if the dump saved one."""
    layout = [repr(fact.name), str(fact.size), str(fact.stride), f"torch.{fact.dtype}", repr(fact.device)]
    if fact.saved is not None:
        layout += [f"sha256={(fact.sha256 or '')[:_DIGITS]!r}"]
        layout += [f"file={fact.saved!r}"] if fact.saved != f"{fact.name}.bin" else []
    else:
        layout += [f"missing={_missing(fact)!r}"]
    return f"{fact.name} = constants.tensor({', '.join(layout)})"


def _missing(fact: ConstantFact) -> str:
    """Return why the dump does not hold a constant: a code of `MISSING_CONSTANT` in harness/remarks.py."""
    return fact.not_kept or "not-in-dump"


def _dense(name: str, size: tuple[int, ...], dtype: str, device: str, missing: str) -> str:
    layout = f"{name!r}, {size}, {_contiguous(size)}, torch.{dtype}, {device!r}"
    return f"{name} = constants.tensor({layout}, missing={missing!r})"


def _packed_for_mkl(name: str, wrapper: str) -> str | None:
    """Pack the plain weight that MKL's linear takes, too, in the place of the packed one.

    The call is `torch.ops.mkl._mkl_linear.default(x, packed, plain, bias, batch)`.
    """
    for node in ast.walk(ast.parse(wrapper)):
        match node:
            case ast.Call(
                args=[_, ast.Name(id=packed), ast.Name(id=plain), _, ast.Constant(value=int() as n)]
            ):
                if packed == name and ast.unparse(node.func).startswith("torch.ops.mkl._mkl_linear"):
                    return f"{name} = torch.ops.mkl._mkl_reorder_linear_weight({plain}, {n})"
    return None


def _remade(example: Example) -> str:
    layout = [repr(example.name), *example.layout, f"torch.{example.dtype}", repr(example.device)]
    return f"{example.name} = constants.random({', '.join([*layout, *example.limits])})"


def _looks_packed(example: Example) -> bool:
    """Tell whether strides are those that an opaque tensor says it has: (1, 0), (1, 0, 0, 0)."""
    return len(example.recorded) > 1 and example.strides == (1, *(0 for _ in example.recorded[1:]))


def _contiguous(size: Sequence[int]) -> tuple[int, ...]:
    strides = [1]
    for length in reversed(size[1:]):
        strides.insert(0, strides[0] * max(length, 1))
    return tuple(strides[: len(size)])


def _function(names: Sequence[str], lines: Sequence[str], *, remade: bool) -> str:
    doc = '"""Set the constants of the graph: the real ones, which probe dump kept beside this file."""'
    if remade:
        doc = '"""Set the constants of the graph: random ones, as this dump holds no real ones."""'
    declared = [f"global {', '.join(names)}"] if names else []
    return "def make_constants(constants):\n" + textwrap.indent("\n".join([doc, *declared, *lines]), "    ")
