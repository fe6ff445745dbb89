"""The rewrite `index`: a kernel that computes its indices with 32 or with 64 bits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from inductor_probe.backends.brackets import inside
from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import NewVariant
from inductor_probe.model.code import CppFacts
from inductor_probe.variants.code import Code, KernelCode
from inductor_probe.variants.definitions import mentioned
from inductor_probe.variants.places import body_start
from inductor_probe.variants.triton_config import decorated

_TYPES = ("int32", "int64")
_LIMIT = 2**31
_PROGRAM = re.compile(r"(tl\.program_id\(\d\))(\.to\(tl\.int64\))?")
_ARANGE = re.compile(r"(tl\.arange\(0, \w+\)(?:\[[^\]]*\])?)(\.to\(tl\.int64\))?")
_NUMEL = re.compile(r"('(?:[xyz]|r\d?_?)numel': )'(i32|i64)'")
_SYMBOL = re.compile(r"\bks\d+\b")
_HEADER = re.compile(r"\bfor\s*\([^{}]*\)")
_SUFFIX = re.compile(r"\b(\d+)L\b")
_POINTER = re.compile(r"\b\w*_ptr\d+(?:\[| \+ )(static_cast<int64_t>)\(")


def index_type(code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
    """Return a copy of a kernel that indexes with the other width.

    Triton: program ids, ranges and the types of the sizes in the signature. C++: loop variables and the
    index of every access; what is computed from loop variables stays 64 bits wide.

    Args:
        code: what it is a variant of.
        arguments: `triton_poi_fused_add_0 int64`.
        comment: of the variant.

    Raises:
        NotFoundError: no such kernel.
        ProbeError: it has that width already; or 32 bits are not proved to hold every index.
    """
    name, _, wanted = arguments.strip().partition(" ")
    wanted = wanted.strip()
    if wanted not in _TYPES:
        raise ProbeError(f"index wants KERNEL int32 or KERNEL int64, not {arguments!r}", "index:KERNEL int64")
    name = code.kernel(name)
    kernel = code.kernels[name]
    if wanted == "int32":
        _check_room(code, kernel)
    source = _triton(kernel, wanted) if kernel.backend.name == "triton" else _cpp(kernel, wanted)
    if source == kernel.source:
        raise ProbeError(f"{kernel.name} indexes with {wanted} already", f"name {_TYPES[wanted == 'int32']}")
    return code.with_sources({name: source}, comment)


def _triton(kernel: KernelCode, wanted: str) -> str:
    decorated(kernel)
    if re.search(r"INDEX_DTYPE|program_id\((?!\d\))", kernel.source):
        raise ProbeError(
            f"{kernel.name} is a template, which has index types of its own", "name another kernel"
        )
    start = body_start(kernel.source, "triton")
    header, body = kernel.source[:start], kernel.source[start:]
    convert = ".to(tl.int64)" if wanted == "int64" else ""
    header = _NUMEL.sub(rf"\1'{'i64' if convert else 'i32'}'", header)
    return header + _ARANGE.sub(rf"\1{convert}", _PROGRAM.sub(rf"\1{convert}", body))


def _cpp(kernel: KernelCode, wanted: str) -> str:
    details = kernel.backend.read(kernel.source).details
    if not isinstance(details, CppFacts) or details.templates:
        raise ProbeError(
            f"{kernel.name} is a template, which has index types of its own", "name another kernel"
        )
    if wanted == "int64":
        if not re.search(r"\bfor\s*\(int32_t ", kernel.source):
            raise ProbeError(f"{kernel.name} indexes with int64 already", "name int32")
        return kernel.source.replace("int32_t", "int64_t")
    variables = {
        loop.variable for nest in details.nests for loop in nest.loops if re.match(r"x\d", loop.variable)
    }
    word = re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(variables, key=len, reverse=True)) or '(?!)'})(?!\w)")
    start = body_start(kernel.source, "cpp")
    lines = kernel.source[start:].split("\n")
    return kernel.source[:start] + "\n".join(_narrowed(line, word) for line in lines)


def _narrowed(line: str, variable: re.Pattern[str]) -> str:
    """Narrow a loop's header and the index of an access; what is computed from loop variables stays wide."""
    header = _HEADER.search(line)
    if header and variable.search(header[0]):
        narrow = _SUFFIX.sub(r"\1", header[0]).replace("int64_t", "int32_t").replace("(long ", "(int32_t ")
        return line.replace(header[0], narrow)
    widened = _widened if _COMPUTED.match(line) else _as_it_is
    pieces, at = [], 0
    for found in _POINTER.finditer(line):
        index = inside(line, found.end() - 1)
        if index is None:
            continue
        pieces += [widened(line[at : found.start(1)], variable), "static_cast<int32_t>("]
        pieces += [_SUFFIX.sub(r"\1", index).replace("int64_t", "int32_t"), ")"]
        at = found.end() + len(index) + 1
    return "".join([*pieces, widened(line[at:], variable)])


_COMPUTED = re.compile(r"^\s*auto tmp\w+ = ")


def _as_it_is(text: str, variable: re.Pattern[str]) -> str:
    return text


def _widened(text: str, variable: re.Pattern[str]) -> str:
    return variable.sub(lambda found: f"static_cast<int64_t>({found[0]})", text)


def _check_room(code: Code, kernel: KernelCode) -> None:
    """Every buffer that the kernel is handed must be known to have fewer than 2**31 elements."""
    symbol = _SYMBOL.search(kernel.source)
    if symbol:
        line = kernel.source.count("\n", 0, symbol.start()) + 1
        raise kernel.refusal(line, "its sizes are symbolic, so 32 bits may be too few")
    nodes = [node for definition in code.wrapper for node in ast.walk(definition.node)]
    extents: dict[str, int | None] = {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name("assert_size_stride"), args=[ast.Name(buffer), size, stride, *_]):
                extents[buffer] = _extent(size, stride)
            case ast.Assign(targets=[ast.Name(buffer)], value=ast.Call(args=[size, stride, *_]) as call) if (
                ast.unparse(call.func).startswith("empty_strided")
            ):
                extents[buffer] = _extent(size, stride)
            case ast.Assign(targets=[ast.Name(buffer)], value=ast.Name(other)):
                extents[buffer] = extents.get(other)
            case ast.Assign(
                targets=[ast.Name(buffer)], value=ast.Call(args=[ast.Name(other), *_]) as call
            ) if ast.unparse(call.func) == "reinterpret_tensor":
                extents[buffer] = extents.get(other)
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    for call in calls:
        if ast.unparse(call.func).removesuffix(".run") == kernel.name:
            for buffer in _buffers(call):
                _check_extent(buffer, extents.get(buffer), f"{code.path}:{call.lineno}")


def _check_extent(buffer: str, extent: int | None, place: str) -> None:
    if extent is None or extent >= _LIMIT:
        how = "is not known" if extent is None else f"is {extent} elements"
        raise ProbeError(
            f"{place}: 32 bits may be too few: the extent of {buffer} {how}", "nothing was changed"
        )


def _buffers(call: ast.Call) -> Iterable[str]:
    for argument in call.args:
        yield from (each for each in mentioned(argument) if each not in ("reinterpret_tensor", "c_void_p"))


def _extent(size: ast.expr, stride: ast.expr) -> int | None:
    try:
        sizes, strides = ast.literal_eval(size), ast.literal_eval(stride)
    except ValueError:
        return None
    return sum((n - 1) * step for n, step in zip(sizes, strides, strict=True)) + 1 if all(sizes) else 0
