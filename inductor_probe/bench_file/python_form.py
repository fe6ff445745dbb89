"""A wrapper in C++ as the Python wrapper that does the same: bench files are made from that.

Kernels, buffers, sizes and library calls are those that were read of the C++ (`OutputCode.steps`). A kernel
is the C++ or Triton text itself, so its time is that of the kernel in the package; the time of `call` is that
of Python, not of the wrapper in C++.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from inductor_probe.analysis.index import evaluate, parse_expression
from inductor_probe.backends.cpp import SIGNATURE
from inductor_probe.bench_file.inputs import parse_load_args
from inductor_probe.bench_file.source import pasted
from inductor_probe.errors import UnreadableError
from inductor_probe.harness import SHIMS, STAND_INS
from inductor_probe.model.code import Allocation, Branch, ExternCall, Kernel, Launch, OutputCode, SizeSymbol
from inductor_probe.model.ir import BufferLayout, Dim
from inductor_probe.model.manifest import InputFact
from inductor_probe.reader.cpp_values import tuple_text
from inductor_probe.reader.cpp_wrapper import PROXY_CALL, parse_cpp_file
from inductor_probe.reader.ir import parse_ir
from inductor_probe.reader.output_code import parse_output_code

CPP_CODE, PYTHON_CODE = "output_code.cpp", "output_code.py"
IR_FILE = "ir_post_fusion.txt"
REUSE = "# reuse"
"""How `make_buffer_reuse` of torch/_inductor/codegen/wrapper.py ends a line, in C++ with `//`."""

_IMPORTS = """\
import torch
from torch._inductor.async_compile import AsyncCompile

empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor
async_compile = AsyncCompile()
"""
_TRITON_IMPORTS = """\
import triton
import triton.language as tl
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
"""
_ENUM = re.compile(
    r"\b(?:cached|aoti)_torch_(?P<kind>dtype|device_type|layout|memory_format)_(?P<name>\w+)\b(?:\(\))?"
)
_CAST = re.compile(r"(?:static_cast<[\w: ]+>|c10::(?:SymInt|Scalar))(?=\()")
_DIVISION = "c10::div_floor_integer("
_STD = re.compile(r"\bstd::(max|min|sqrt|pow|floor|ceil|abs)\b(?:<[\w: ]+>)?")
_NUMBER = re.compile(r"\b(\d+(?:\.\d*)?(?:e[+-]?\d+)?)[fFuUlL]+\b")
_RECORDED = re.compile(r"^[ \t]*torch::aot_inductor::RAIIAtenRecordFunctionHandle .*\n", re.MULTILINE)
"""What `cpp.enable_kernel_profile` adds to a kernel (CppKernelProxy.codegen_function in codegen/cpp.py)."""
_FETCH = re.compile(r"^def get_args\(\):\n(?:(?:[ \t].*)?\n)+", re.MULTILINE)
_OPENERS = {"while": "while True:", "if": "if {}:", "elif": "elif {}:", "else": "else:"}


def code_as_python(
    texts: Mapping[str, str | None], graph_dir: Path, facts: Sequence[InputFact] = ()
) -> tuple[str, Path, bool]:
    """Return the generated code of a graph as Python, the file that it is from, and whether that is in C++.

    Args:
        texts: of its files, by name. graph_dir: where they are, for what an error says.
        facts: what its inputs were, if known.

    Raises:
        UnreadableError: the C++ has something that there is no Python for, or something of it was not read.
    """
    path = graph_dir / PYTHON_CODE
    text = texts.get(PYTHON_CODE)
    if text is not None and "cpp_wrapper_src" not in text:
        return text, path, False
    if text is not None:
        code = parse_output_code(text, path)
        fetched = _FETCH.search(text)
        tail = fetched[0] if fetched else None
    elif (cpp := texts.get(CPP_CODE)) is not None:
        path, tail = graph_dir / CPP_CODE, None
        code = parse_cpp_file(cpp, path)
    else:
        return "", path, False
    if code.language != "cpp":
        return text or "", path, False
    if code.problems:
        problem = code.problems[0]
        line = f":{problem.span.first}" if problem.span else ""
        raise UnreadableError(
            f"{path}{line}: not all of this wrapper is understood, so it cannot be put as Python",
            "probe export-cpp KERNEL makes a program that times a C++ kernel alone",
        )
    nodes = parse_ir(texts.get(IR_FILE) or "", graph_dir / IR_FILE).nodes
    layouts = {
        output.name: output.layout
        for node in nodes
        for leaf in node.leaves()
        for output in leaf.outputs
        if output.layout is not None
    }
    writer = _Writer(code, path, layouts, (text or cpp or "").split("\n"))
    return writer.text(tail, texts.get("fx_graph_runnable.py"), facts), path, True


class _Writer:
    """Writes the Python of one wrapper; `lines` are those of the file that it is in."""

    def __init__(
        self, code: OutputCode, path: Path, in_ir: Mapping[str, BufferLayout], lines: Sequence[str]
    ) -> None:
        self.code, self.path, self.in_ir, self.lines = code, path, in_ir, lines
        self.has_gpu = any(kernel.backend == "triton" for kernel in code.kernels)
        self.layouts = {one.name: one.layout for one in code.allocations}
        self.returned = {name for call in code.externs for name in call.outputs}

    def text(self, tail: str | None, runnable: str | None, facts: Sequence[InputFact]) -> str:
        """Return the whole: imports, kernels, wrapper, examples of inputs."""
        calls = self.call()
        imports = _IMPORTS + (_TRITON_IMPORTS if self.has_gpu else "")
        shims = _shims() if any(isinstance(step, ExternCall) for step in self.code.steps) else ""
        kernels = "\n\n".join(map(_kernel, self.code.kernels))
        examples = tail or self.examples(runnable, facts)
        wait = "async_compile.wait(globals())\ndel async_compile"
        return "\n\n".join([imports, *([shims] if shims else []), kernels, wait, calls, examples, ""])

    def call(self) -> str:
        """Return the function `call`."""
        lines = [f"{', '.join(self.code.inputs)}{',' if len(self.code.inputs) == 1 else ''} = args"]
        lines = lines if self.code.inputs else []
        lines.append("args.clear()")
        if self.has_gpu:
            lines += ["torch.cuda.set_device(0)", "stream0 = get_raw_stream(0)"]
        made: set[str] = set()
        depth, opened = 0, False
        for step in self.code.steps:
            if isinstance(step, Branch) and step.kind in ("elif", "else", "end"):
                depth -= 1
                lines += [f"{'    ' * (depth + 1)}pass"] if opened else []
                opened = False
            written = self.step(step, made)
            lines += [textwrap.indent(line, "    " * depth) for line in written]
            if isinstance(step, Branch):
                opened = step.kind in _OPENERS
                depth += opened
            elif written:
                opened = False
        returns = "".join(f"{self.python(value)}, " for value in self.code.returns)
        lines.append(f"return ({returns})")
        return "def call(args):\n" + textwrap.indent("\n".join(lines), "    ")

    def step(self, step: object, made: set[str]) -> list[str]:
        """Return the lines for a step; `made` are the names that library calls bound."""
        match step:
            case Branch(kind="break", condition=condition):
                return [f"if not {condition}:", "    break"]
            case Branch(kind=kind, condition=condition):
                test = self.python(condition) if condition else ""
                return [_OPENERS[kind].format(test)] if kind in _OPENERS else []
            case SizeSymbol(name=name, value=value):
                return [f"{name} = {self.python(value)}"]
            case Launch():
                return [*_comments(step), self.launch(step)]
            case ExternCall():
                made.update(step.outputs)
                return [*_comments(step), self.extern(step)]
            case Allocation():
                written = self.allocation(step, made)
                return [f"{line}{self.reuse(step)}" for line in written]
        raise AssertionError(step)

    def reuse(self, allocation: Allocation) -> str:
        """Return the comment of inductor's that memory is given away: which inputs are is read of it."""
        line = self.lines[allocation.span.first - 1] if allocation.span else ""
        return f"  {REUSE}" if line.rstrip().endswith(f"// {REUSE.removeprefix('# ')}") else ""

    def launch(self, launch: Launch) -> str:
        """Return the launch of a kernel."""
        kernel = self.code.kernel(launch.kernel)
        args = [self.python(arg) for arg in launch.args]
        if kernel is not None and kernel.backend == "triton":
            return f"{launch.kernel}.run({', '.join([*args, 'stream=stream0'])})"
        return f"{launch.kernel}({', '.join(args)})"

    def extern(self, call: ExternCall) -> str:
        """Return a library call, by the name of the C function that stands for it."""
        if call.target == PROXY_CALL:
            if not call.outputs:
                return f"{STAND_INS}({{}})  # an operator that changes what it is passed is left out"
            tensors = ", ".join(f"{name!r}: {self.empty(name)}" for name in call.outputs)
            return f"{', '.join(call.outputs)}, = {STAND_INS}({{{tensors}}}).values()"
        args = ", ".join([repr(call.target), *(self.python(arg) for arg in call.args)])
        created = [name for name in call.outputs if name not in call.args]
        if not created:
            return f"shim({args})"
        return f"{', '.join(created)}{',' if len(created) > 1 else ''} = shim({args})"

    def empty(self, name: str) -> str:
        """Return what makes a buffer, by its layout."""
        layout = self.layouts.get(name)
        if layout is None or layout.dtype is None:  # what an operator returned: C++ only names it
            layout = self.in_ir.get(name, layout)
        if layout is None or layout.size is None or layout.stride is None or layout.dtype is None:
            raise self.cannot(f"nothing says which layout {name} has")
        size, stride = self.dims(layout.size), self.dims(layout.stride)
        device = layout.device or "cpu"
        if device == "cpu" or device.startswith("cuda"):
            return f"empty_strided_{device.partition(':')[0]}({size}, {stride}, torch.{layout.dtype})"
        return f"torch.empty_strided({size}, {stride}, dtype=torch.{layout.dtype}, device={device!r})"

    def allocation(self, allocation: Allocation, made: set[str]) -> list[str]:
        """Return what names memory: a new buffer, a view, another name of one."""
        name, layout, of = allocation.name, allocation.layout, allocation.of
        match allocation.kind:
            case "input" | "constant":
                return []
            case "reuse" if of == f"{name}_aligned":  # inputs are aligned here
                return []
            case "view" if layout is not None and of is not None and not self.is_pool(of):
                size, stride = self.dims(layout.size or ()), self.dims(layout.stride or ())
                return [
                    f"{name} = reinterpret_tensor({of}, {size}, {stride}, {self.python(str(layout.offset))})"
                ]
            case "view":
                self.layouts[name] = layout
                return [f"{name} = {self.empty(name)}"]
            case _ if of is not None:
                return [f"{name} = {self.python(of)}"]
            case _ if name in made or self.is_pool(name) or (layout is None and name in self.returned):
                return []
        self.layouts[name] = layout
        return [f"{name} = {self.empty(name)}"]

    def is_pool(self, name: str) -> bool:
        """Return whether buffers are cut out of this one: each is made by itself here."""
        return re.fullmatch(r"pool\d+", name) is not None

    def dims(self, dims: Sequence[Dim]) -> str:
        """Return sizes as a tuple."""
        return tuple_text([self.python(str(dim)) for dim in dims])

    def python(self, text: str) -> str:
        """Return a value of C++ as Python.

        Raises:
            UnreadableError: it is neither.
        """
        text = _ENUM.sub(_enum, _NUMBER.sub(r"\1", text)).replace("nullptr", "None")
        text = _STD.sub(
            lambda match: match[1] if match[1] in ("max", "min", "abs") else f"math.{match[1]}", text
        )
        text = re.sub(r"\btrue\b", "True", re.sub(r"\bfalse\b", "False", _CAST.sub("", text)))
        text = text.replace("&&", " and ").replace("||", " or ")
        text = text.replace("std::numeric_limits<double>::infinity()", "float('inf')")
        while _DIVISION in text:
            text = _floor_division(text)
        try:
            ast.parse(text, mode="eval")
        except (SyntaxError, ValueError) as error:
            raise self.cannot(f"{text!r} is not understood") from error
        return text

    def cannot(self, why: str) -> UnreadableError:
        """Return the error of a wrapper that there is no Python for."""
        return UnreadableError(
            f"{self.path}: the C++ wrapper cannot be put as Python: {why}",
            "probe export-cpp KERNEL makes a program that times a C++ kernel alone",
        )

    def examples(self, runnable: str | None, facts: Sequence[InputFact]) -> str:
        """Return `get_args`, which AOTInductor writes none of: of the layouts that the code asks for."""
        loaded = parse_load_args(runnable)
        known = {fact.name: fact for fact in facts}
        sizes = self.symbols(known)
        lines = ["from torch._dynamo.testing import rand_strided"]
        constants = [one for one in self.code.allocations if one.kind == "constant"]
        lines += [f"global {', '.join(one.name for one in constants)}"] if constants else []
        for one in constants:
            lines.append(f"{one.name} = {self.example(one.name, one.layout, sizes)}")
        for name in self.code.inputs:
            fact, layout = known.get(name), self.layouts.get(name)
            if fact is not None and fact.kind == "symint":
                lines.append(f"{name} = {fact.value}")
            elif fact is not None and fact.size is not None and fact.stride is not None:
                layout = BufferLayout("Input", fact.device, fact.dtype, fact.size, fact.stride)
                lines.append(f"{name} = {self.example(name, layout, sizes)}")
            elif layout is None and name in loaded and loaded[name].symbol is not None:
                lines.append(f"{name} = {sizes.get(loaded[name].symbol or '', 2)}")
            else:
                lines.append(f"{name} = {self.example(name, layout, sizes)}")
        lines.append(f"return [{', '.join(self.code.inputs)}]")
        return "def get_args():\n" + textwrap.indent("\n".join(lines), "    ")

    def example(self, name: str, layout: BufferLayout | None, sizes: Mapping[str, int]) -> str:
        """Return what makes a tensor of a layout."""
        if layout is None or layout.size is None or layout.stride is None or layout.dtype is None:
            raise self.cannot(f"nothing says which layout {name} has")
        size, stride = (
            tuple_text([dim if isinstance(dim, int) else self.number(dim, sizes) for dim in part])
            for part in (layout.size, layout.stride)
        )
        return (
            f"rand_strided({size}, {stride}, device={layout.device or 'cpu'!r}, dtype=torch.{layout.dtype})"
        )

    def symbols(self, known: Mapping[str, InputFact]) -> dict[str, int]:
        """Return what size symbols were, as far as inputs say it."""
        sizes: dict[str, int] = {}
        for symbol in self.code.symbols:
            match = re.fullmatch(r"(?P<of>\w+)(?:\.size\((?P<place>\d+)\))?", symbol.value)
            fact = known.get(match["of"]) if match else None
            if match is None or fact is None:
                continue
            value = fact.value if match["place"] is None else (fact.size or ())[int(match["place"])]
            if isinstance(value, int):
                sizes[symbol.name] = value
        return sizes

    def number(self, dim: str, sizes: Mapping[str, int]) -> int:
        """Return a symbolic size in numbers.

        Raises:
            UnreadableError: nothing says what a symbol in it was.
        """
        value = evaluate(parse_expression(self.python(dim)), sizes)
        if value is None:
            raise UnreadableError(
                f"{self.path}: the dump does not say what the size {dim} was",
                "dump the script again: probe dump writes down the example inputs of AOTInductor",
            )
        return value


def _shims() -> str:
    """Return the functions that call libraries, with what they import."""
    names: dict[str, set[str]] = {}
    text = pasted(SHIMS, names)
    lines = [
        f"from {module} import {', '.join(sorted(of))}" if of else f"import {module}"
        for module, of in names.items()
    ]
    return "\n".join([*(line for line in lines if line != "import torch"), "", "", text, ""])


def _kernel(kernel: Kernel) -> str:
    """Return the definition of a kernel as `output_code.py` has it."""
    if kernel.backend == "triton":
        # A kernel of the user's is `k1` in its text, and `k1_0` where it is launched.
        name = kernel.name if f"def {kernel.name}(" in kernel.source else kernel.name.rpartition("_")[0]
        arguments = f"{name!r}, {_quoted(kernel.source)}, device_str='cuda'"
        return f"{kernel.name} = async_compile.triton({arguments})"
    types = ", ".join(repr(arg.type) for arg in kernel.args)
    source = SIGNATURE.sub(lambda match: match[0].replace(kernel.name, "kernel", 1), "\n" + kernel.source)
    source = _RECORDED.sub("", source)  # its header stands in the wrapper
    return f"{kernel.name} = async_compile.cpp_pybinding([{types}], r{_quoted(source)})"


def _quoted(source: str) -> str:
    quotes = "'''" if "'''" not in source else '"""'
    return f"{quotes}{source}{quotes}"


def _comments(step: Launch | ExternCall) -> list[str]:
    return [f"# {line}" for line in (step.comment.lines if step.comment else ())]


def _enum(match: re.Match[str]) -> str:
    name = match["name"]
    return repr(name) if match["kind"] == "device_type" else f"torch.{name}"


def _floor_division(text: str) -> str:
    """Put the first `c10::div_floor_integer(a, b)` as `((a) // (b))`."""
    start = text.index(_DIVISION)
    depth, comma = 0, -1
    for place in range(start + len(_DIVISION) - 1, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if text[place] == "," and depth == 1:
            comma = place
        if depth == 0:
            first, second = text[start + len(_DIVISION) : comma], text[comma + 1 : place]
            return f"{text[:start]}(({first}) // ({second.strip()})){text[place + 1 :]}"
    return text.replace(_DIVISION, "(", 1)
