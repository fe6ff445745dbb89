"""The rewrite `index`: a kernel that computes its indices with 32 or with 64 bits, by text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from inductor_probe.backends.brackets import inside
from inductor_probe.errors import ProbeError
from inductor_probe.model.bench import NewVariant
from inductor_probe.model.code import CppFacts
from inductor_probe.reader.wrapper import asserted_layouts
from inductor_probe.variants.accesses import body_start
from inductor_probe.variants.code import Code, KernelCode, Rewrite, mentioned
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
_COMPUTED = re.compile(r"^\s*auto tmp\w+ = ")


class IndexType(Rewrite):
    """A copy of a kernel that indexes with the other width; 32 bits are proved to hold every index.

    Triton: program ids, ranges and the types of the sizes in the signature. C++: loop variables and the
    index of every access; what is computed from loop variables stays 64 bits wide.
    """

    name = "index"
    arguments = "KERNEL int32|int64"
    help = "index with 32 or 64 bits"

    def candidates(self, code: Code) -> Iterator[str]:
        """Yield both widths for each kernel."""
        for name in code.kernels:
            yield from (f"{name} int32", f"{name} int64")

    def apply(self, code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
        """Refuse a kernel that has that width, or buffers that may be too large for it."""
        name, _, width = (part.strip() for part in arguments.strip().partition(" "))
        if width not in _TYPES:
            raise self.invalid(arguments, "index:KERNEL int64")
        kernel = code.kernel(name)
        if width == "int32":
            _check_extents(code, kernel)
        source = _triton(kernel, width) if kernel.backend.name == "triton" else _cpp(kernel, width)
        if source == kernel.source:
            raise ProbeError(
                f"{kernel.name} indexes with {width} already", f"name {_TYPES[width == 'int32']}"
            )
        return code.with_sources({kernel.name: source}, comment)


def _triton(kernel: KernelCode, width: str) -> str:
    decorated(kernel)
    if re.search(r"INDEX_DTYPE|program_id\((?!\d\))", kernel.source):
        raise _template(kernel)
    start = body_start(kernel.source, "triton")
    convert, size = (".to(tl.int64)", "i64") if width == "int64" else ("", "i32")
    header = _NUMEL.sub(rf"\1'{size}'", kernel.source[:start])
    return header + _ARANGE.sub(rf"\1{convert}", _PROGRAM.sub(rf"\1{convert}", kernel.source[start:]))


def _template(kernel: KernelCode) -> ProbeError:
    return ProbeError(f"{kernel.name} is a template, which has index types of its own", "name another kernel")


def _cpp(kernel: KernelCode, width: str) -> str:
    details = kernel.backend.read(kernel.source).details
    if not isinstance(details, CppFacts) or details.templates:
        raise _template(kernel)
    if width == "int64":
        narrow = re.search(r"\bfor\s*\(int32_t ", kernel.source)
        return kernel.source.replace("int32_t", "int64_t") if narrow else kernel.source
    loops = {loop.variable for nest in details.nests for loop in nest.loops}
    variables = sorted((name for name in loops if re.match(r"x\d", name)), key=len, reverse=True)
    word = re.compile(rf"(?<![\w.])(?:{'|'.join(variables) or '(?!)'})(?!\w)")
    start = body_start(kernel.source, "cpp")
    lines = kernel.source[start:].split("\n")
    return kernel.source[:start] + "\n".join(_narrowed(line, word) for line in lines)


def _narrowed(line: str, variable: re.Pattern[str]) -> str:
    """Narrow a loop's header and the index of an access; what is computed from loop variables stays wide.

    for (int64_t x0=0L; ...         ->  for (int32_t x0=0; ...
    in_ptr0[static_cast<int64_t>(x0 + 3L*x1)]  ->  in_ptr0[static_cast<int32_t>(x0 + 3*x1)]
    auto tmp0 = x0;                 ->  auto tmp0 = static_cast<int64_t>(x0);
    """
    header = _HEADER.search(line)
    if header and variable.search(header[0]):
        narrow = _SUFFIX.sub(r"\1", header[0]).replace("int64_t", "int32_t").replace("(long ", "(int32_t ")
        return line.replace(header[0], narrow)
    wide = r"static_cast<int64_t>(\g<0>)" if _COMPUTED.match(line) else r"\g<0>"
    pieces, position = [], 0
    for match in _POINTER.finditer(line):
        index = inside(line, match.end() - 1)
        if index is not None:
            narrow = _SUFFIX.sub(r"\1", index).replace("int64_t", "int32_t")
            pieces += [variable.sub(wide, line[position : match.start(1)]), f"static_cast<int32_t>({narrow})"]
            position = match.end() + len(index) + 1
    return "".join([*pieces, variable.sub(wide, line[position:])])


def _check_extents(code: Code, kernel: KernelCode) -> None:
    """Every buffer that the kernel is handed must be known to have fewer than 2**31 elements."""
    symbol = _SYMBOL.search(kernel.source)
    if symbol:
        line = kernel.source.count("\n", 0, symbol.start()) + 1
        raise kernel.refusal(line, "its sizes are symbolic, so 32 bits may be too few")
    nodes = [node for definition in code.wrapper for node in ast.walk(definition.node)]
    extents: dict[str, int | None] = {}
    for node in nodes:
        match node:
            case ast.Call() if layouts := asserted_layouts(node):
                extents.update((one.name, _extent(one.size, one.stride)) for one in layouts)
            case ast.Assign(
                [ast.Name(buffer)], ast.Call(ast.Name("reinterpret_tensor"), [ast.Name(other), *_])
            ):
                extents[buffer] = extents.get(other)
            case ast.Assign([ast.Name(buffer)], ast.Name(other)):
                extents[buffer] = extents.get(other)
            case ast.Assign([ast.Name(buffer)], ast.Call(ast.Name(function), [size, stride, *_])):
                if function.startswith("empty_strided"):
                    extents[buffer] = _extent(size, stride)
    for call in nodes:
        if not isinstance(call, ast.Call) or ast.unparse(call.func).removesuffix(".run") != kernel.name:
            continue
        for buffer in (name for argument in call.args for name in mentioned(argument)):
            extent = extents.get(buffer)
            if buffer not in ("reinterpret_tensor", "c_void_p") and (extent is None or extent >= _LIMIT):
                known = "is not known" if extent is None else f"is {extent} elements"
                raise ProbeError(
                    f"{code.path}:{call.lineno}: 32 bits may be too few: the extent of {buffer} {known}",
                    "nothing was changed",
                )


def _extent(size: ast.expr, stride: ast.expr) -> int | None:
    try:
        sizes, strides = ast.literal_eval(size), ast.literal_eval(stride)
    except ValueError:
        return None
    return sum((n - 1) * step for n, step in zip(sizes, strides, strict=True)) + 1 if all(sizes) else 0
