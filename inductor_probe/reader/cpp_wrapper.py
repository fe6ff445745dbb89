"""Wrappers in C++ to the same records as those in Python: `cpp_wrapper` and AOTInductor.

torch/_inductor/codegen/cpp_wrapper_cpu.py and cpp_wrapper_gpu.py print them, a statement a line; forms name
the method that does. What a statement says is put as the Python wrapper would say it: of
`reinterpret_tensor_wrapper(buf0, 2, int_array_0, int_array_1, 0L)` comes
`reinterpret_tensor(buf0, (4, 3), (3, 1), 0)`.

    auto arg0_1 = std::move(inputs[0]);
    static constexpr int64_t int_array_0[] = {64L, 256L};
    AtenTensorHandle buf0_handle;
    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1,
        cached_torch_dtype_float32, cached_torch_device_type_cpu, 0, &buf0_handle));
    RAIIAtenTensorHandle buf0(buf0_handle);
    cpp_fused_add_0((const float*)(arg0_1.data_ptr()), (float*)(buf0.data_ptr()));
    output_handles[0] = buf0.release();
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from inductor_probe.backends.brackets import split_arguments
from inductor_probe.model.code import (
    FOLDING,
    Allocation,
    Branch,
    ExternCall,
    Freed,
    Kernel,
    KernelComment,
    Launch,
    OutputCode,
    SizeSymbol,
    WrapperFunction,
    WrapperStep,
    qualified,
)
from inductor_probe.model.ir import BufferLayout, Dim, as_dim
from inductor_probe.model.span import MOST_PROBLEMS, Problem, Span
from inductor_probe.reader.cpp_kernels import cpp_kernels, launchers, quoted_triton_kernels
from inductor_probe.reader.cpp_statements import FORMS, PLUMBING, SILENT, statements
from inductor_probe.reader.cpp_values import (
    braced_dims,
    declared_constants,
    enumerated,
    expected_inputs,
    is_balanced,
    tuple_text,
    view_parts,
    without_suffixes,
)
from inductor_probe.reader.kernel_comments import kernel_comment
from inductor_probe.reader.values import constant_layout, shorten

_FOLDING = re.compile(r"void AOTInductorModel::_const_run_impl\(")
"""Folds constants when a package is loaded: `aot_inductor.use_runtime_constant_folding`."""
_ENTRY = re.compile(r"void (?P<name>inductor_entry_impl|AOTInductorModel::run_impl)\(")
_DATA = re.compile(r"\((?:const )?[\w:]+ ?\*\)\((?P<value>.+)\.data_ptr\(\)\)")
_CAPSULE = re.compile(r"PyCapsule_New\((?P<value>.+), NULL, NULL\)")
_VIEW = re.compile(r"(?:\w*reinterpret_tensor\w*)\((?P<arguments>.*)\)")
_WRAPPED = re.compile(
    r"(?:wrap_with_raii_handle_if_needed|RAIIAtenTensorHandle|std::move|temporary_reference|\w*borrow\w*"
    r"|torch::stable::detail::from|c10::IValue|c10::Sym\w+|std::string|static_cast<[\w: ]+>"
    r"|Py(?:Long|Float|Bool|Unicode)_From\w+|torch_python_\w+|reinterpret_cast<void ?\*>"
    r"|c10::ivalue::Tuple::create|\*?torch::aot_inductor::tensor_handle_to_tensor_pointer"
    r"|copy_arrayref_tensor_to_tensor|ConstantHandle|convert_arrayref_tensor_to_tensor)\((?P<value>.+)\)"
)
_ARRAY = re.compile(r"std::array ?\{(?P<items>.*)\}\.(?:c?begin|data)\(\)")
PROXY_CALL = "aoti_torch_proxy_executor_call_function"
"""Runs an operator for which the C interface has no function: custom ones, most of all."""
_UNINITIALIZED = "aoti_torch_new_uninitialized_tensor"
_FROM_POOL = "aoti_torch__alloc_from_pool"
_ASSIGN = "aoti_torch_assign_tensors_out"
_EMPTY = re.compile(r"aoti_torch_empty_strided(?:_pinned)?")
_DISPATCHER = "aoti_torch_call_dispatcher"
# codegen_conditional; since torch 2.15 codegen_switch: `if (buf1_scalar == 0) {`
_IF = re.compile(
    r"(?P<otherwise>\} else )?if \((?:(?P<negated>!)(?=.*break;))?"
    r"(?P<condition>(?P<selector>\w+|static_cast<int64_t>\(.+\))(?: == \d+)?)\) ?(?:\{|break;)"
)
_MODEL = re.compile(r"AOTInductorModelBase\(\d+,\s*(?P<outputs>\d+),")
_RESET = re.compile(r"(\w+)\.reset\(\);")
_SUBGRAPH = re.compile(r"\s*// subgraph: (?P<name>\w+)")
_OF_INPUT = re.compile(r"(\w+)_(size|stride)\[(\d+)\]")


def parse_cpp_wrapper(
    text: str,
    path: Path,
    *,
    first: int = 1,
    quoted: Mapping[str, Kernel] | None = None,
    examples: Mapping[str, BufferLayout] | None = None,
    outputs: int | None = None,
) -> OutputCode:
    """Read the C++ of a graph.

    Args:
        text: of the wrapper and of the kernels that it is compiled with. path: what spans name.
        first: the line of `path` that `text` begins in.
        quoted: Triton kernels whose text stands elsewhere in the file.
        examples: what is known of inputs. outputs: how many values are returned, where the text does not say.
    """
    lines = text.split("\n")
    kernels = {
        **(quoted or {}),
        **cpp_kernels(lines, path, first),
        **quoted_triton_kernels(lines, path, first),
    }
    reader = _CppReader(path, lines, first, kernels, launchers(lines), declared_constants(lines), outputs)
    reader.examples.update(expected_inputs(lines))
    reader.examples.update(examples or {})
    return reader.read()


def parse_cpp_file(text: str, path: Path) -> OutputCode:
    """Read `output_code.cpp`, which AOTInductor writes, or a `.wrapper.cpp` with its kernels behind it."""
    return parse_cpp_wrapper(text, path)


@dataclass(slots=True)
class _CppReader:
    """Collects what the statements of a C++ wrapper say, in order."""

    path: Path
    lines: Sequence[str]
    first: int
    kernels: dict[str, Kernel]
    launchers: Mapping[str, tuple[str, int]]
    constants: Mapping[int, Mapping[str, str]]
    outputs: int | None = None
    examples: dict[str, BufferLayout] = field(default_factory=dict)
    inputs: dict[int, str] = field(default_factory=dict)
    returns: dict[int, str] = field(default_factory=dict)
    launches: list[Launch] = field(default_factory=list)
    externs: list[ExternCall] = field(default_factory=list)
    allocations: dict[str, Allocation] = field(default_factory=dict)
    symbols: list[SizeSymbol] = field(default_factory=list)
    functions: list[WrapperFunction] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)
    pooled: dict[str, tuple[str, BufferLayout]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    dispatched: tuple[str, ...] = ()
    schema: str = ""
    named: int = 0
    uninitialized: set[str] = field(default_factory=set)
    handles: dict[str, BufferLayout | None] = field(default_factory=dict)
    commented: list[str] = field(default_factory=list)
    used: int = 0
    sources: dict[str, str] = field(default_factory=dict)
    steps: list[WrapperStep] = field(default_factory=list)
    freed: list[Freed] = field(default_factory=list)
    blocks: list[bool] = field(default_factory=list)

    def read(self) -> OutputCode:
        """Read the body of the function that runs the graph."""
        starts = (number for number, line in enumerate(self.lines) if _ENTRY.match(line))
        start = next(starts, None)
        # kernel_comment reads Python: it is shown the comments as Python has them.
        self.commented = [re.sub(r"^(\s*)// ?", r"\1# ", line) for line in self.lines]
        entry = span = None
        if start is None:
            where = Span(self.path, self.first, self.first)
            self.problems.append(Problem("no inductor_entry_impl and no run_impl in the C++ wrapper", where))
        else:
            match = _ENTRY.match(self.lines[start])
            entry = match["name"] if match else None
            body = next(
                (n for n in range(start, len(self.lines)) if self.lines[n].startswith(") {")), len(self.lines)
            )
            end = next((n for n in range(body, len(self.lines)) if self.lines[n].startswith("}")), None)
            if end is None:
                end = len(self.lines)
                last = Span(self.path, self.first + end - 1, self.first + end - 1)
                self.problems.append(Problem("cut off: the wrapper has no end", last))
            self.used = body
            span = Span(self.path, self.first + start, self.first + end)
            self._subgraphs(body, end)
            self._fold()
            for number, last_number, statement in statements(self.lines, body + 1, end):
                self._statement(statement, number, last_number)
        if len(self.problems) > MOST_PROBLEMS:
            more, rest = len(self.problems) - MOST_PROBLEMS, self.problems[MOST_PROBLEMS].span
            self.problems[MOST_PROBLEMS:] = [Problem(f"{more:,} more statements are not understood", rest)]
        inputs = tuple(self.inputs[place] for place in sorted(self.inputs))
        for name in inputs:
            self._complete(name)
        return OutputCode(
            entry=entry,
            inputs=inputs,
            kernels=tuple(self.kernels.values()),
            launches=tuple(self.launches),
            externs=tuple(self.externs),
            allocations=tuple(self.allocations.values()),
            returns=tuple(self.returns.get(place, "None") for place in range(self._outputs())),
            symbols=tuple(self.symbols),
            functions=tuple(self.functions),
            problems=tuple(self.problems),
            span=span,
            language="cpp",
            steps=tuple(self.steps),
            freed=tuple(self.freed),
        )

    def _outputs(self) -> int:
        """Return how many values are returned; those that are None have no statement."""
        text = "\n".join(self.lines)
        match = _MODEL.search(text)
        counted = int(match["outputs"]) if match else self.outputs or 0
        return max([counted, *(place + 1 for place in self.returns)])

    def _fold(self) -> None:
        """Read what folds constants as a function of its own: its buffers are not the graph's."""
        start = next((number for number, line in enumerate(self.lines) if _FOLDING.match(line)), None)
        if start is None:
            return
        near = range(start, len(self.lines))
        body = next((number for number in near if self.lines[number].startswith(") {")), None)
        end = next((number for number in near if self.lines[number].startswith(("}", ") {}"))), None)
        if body is None or end is None or end <= body:
            return
        folding = _CppReader(
            self.path, self.lines, self.first, self.kernels, self.launchers, self.constants, self.outputs
        )
        folding.commented, folding.used = self.commented, body
        for number, last, statement in statements(self.lines, body + 1, end):
            folding._statement(qualified(statement, FOLDING), number, last)
        self.launches += folding.launches
        self.externs += folding.externs
        self.problems += folding.problems
        span = Span(self.path, self.first + start, self.first + end)
        own = {name: buffer for name, buffer in folding.allocations.items() if name.startswith(f"{FOLDING}_")}
        self.allocations.update(own)
        returns = tuple(folding.returns[place] for place in sorted(folding.returns))
        self.functions.append(WrapperFunction(FOLDING, (), returns, span))

    def _complete(self, name: str) -> None:
        known, example = self.allocations.get(name), self.examples.get(name)
        if example is None:
            return
        if known is None or known.layout is None:
            layout = example if example.size is not None else None
            self.allocations[name] = Allocation(name, "input", layout, None, known.span if known else None)
            return
        layout = replace(known.layout, dtype=example.dtype, device=example.device)
        self.allocations[name] = replace(known, layout=layout)

    def _subgraphs(self, start: int, end: int) -> None:
        """Note where subgraphs stand: their code is in place, behind a comment (codegen_subgraph_prefix)."""
        for number in range(start, end):
            if not (match := _SUBGRAPH.fullmatch(self.lines[number])):
                continue
            indent = len(self.lines[number]) - len(self.lines[number].lstrip())
            last = number
            for after in range(number + 1, end):
                line = self.lines[after]
                if line.strip() and (len(line) - len(line.lstrip()) < indent or _SUBGRAPH.fullmatch(line)):
                    break
                last = after
            name = match["name"]
            text = "\n".join(self.lines[number : last + 1])
            moved = re.findall(rf"\w+ = std::move\(({name}_\w+)\);", text)
            taken = re.findall(rf"RAIIAtenTensorHandle ({name}_arg\w+)\(", text)
            span = Span(self.path, self.first + number, self.first + last)
            self.functions.append(WrapperFunction(name, tuple(taken), tuple(moved), span))

    def _statement(self, statement: str, number: int, last: int) -> None:
        span = Span(self.path, self.first + number, self.first + last)
        for kind, pattern in FORMS:
            match = pattern.fullmatch(statement)
            if match and getattr(self, f"_{kind}")(match, span, number) is not False:
                return
        self.freed += [Freed(name, span) for name in _RESET.findall(statement)]
        self._branch(statement)
        if not SILENT.fullmatch(statement):
            self.problems.append(Problem(f"unknown statement of the wrapper: {shorten(statement)}", span))

    def _branch(self, statement: str) -> None:
        """Follow blocks: those of loops and branches of the program are steps, other braces are none."""
        match = _IF.fullmatch(statement)
        selector = match["selector"] if match else ""
        scalar = "(" in selector or any(selector == symbol.name for symbol in self.symbols)
        if match and scalar and not match["otherwise"]:
            self.steps.append(Branch("break" if match["negated"] else "if", match["condition"]))
        if statement == "while (1) {":
            self.steps.append(Branch("while"))
        if statement.startswith("}") and self.blocks and self.blocks.pop():
            otherwise = Branch("elif", match["condition"]) if match else Branch("else")
            self.steps.append(otherwise if statement.endswith("{") else Branch("end"))
            self.blocks += [True] if statement.endswith("{") else []
        elif statement.endswith("{"):
            self.blocks.append(scalar or statement == "while (1) {")

    # One method for each kind of statement; it returns False when it is not of that kind after all.

    def _input(self, match: re.Match[str], span: Span, number: int) -> None:
        self.inputs[int(match["place"])] = match["name"]

    def _symbol(self, match: re.Match[str], span: Span, number: int) -> None:
        value = _OF_INPUT.sub(r"\1.\2(\3)", without_suffixes(match["value"]))
        self._name_size(SizeSymbol(match["name"], value, span))

    def _constant(self, match: re.Match[str], span: Span, number: int) -> None:
        facts = self.constants.get(int(match["place"]), {})
        size, stride = (braced_dims(facts.get(key, "{}")) for key in ("shape", "stride"))
        extras = ((key, facts[key].strip('"')) for key in ("original_fqn", "data_size") if key in facts)
        device, dtype = (
            enumerated("device_type", facts.get("device_type", "")),
            enumerated("dtype", facts.get("dtype", "")),
        )
        layout = constant_layout(device, dtype, size, stride, tuple(extras))
        name = match["name"]
        self.allocations[name] = Allocation(name, "constant", layout if facts else None, None, span)

    def _frozen(self, match: re.Match[str], span: Span, number: int) -> None:
        """Note a constant of a frozen graph, which the Python around passes behind the inputs."""
        name = match["name"]
        example = self.examples.get(name)
        layout = None
        if example is not None and example.size is not None:
            layout = constant_layout(example.device, example.dtype, example.size, example.stride)
        self.allocations[name] = Allocation(name, "constant", layout, None, span)

    def _array(self, match: re.Match[str], span: Span, number: int) -> None:
        items = "" if match["items"] == "nullptr" else match["items"]
        self.arrays[match["name"]] = tuple(
            without_suffixes(item) for item in split_arguments(items) if item.strip()
        )

    def _passed(self, match: re.Match[str], span: Span, number: int) -> None:
        self.dispatched = tuple(map(self._value, split_arguments(match["items"])))

    def _list(self, match: re.Match[str], span: Span, number: int) -> None:
        self.lists[match["name"]] = []

    def _item_of(self, match: re.Match[str], span: Span, number: int) -> None:
        self.lists.setdefault(match["list"], []).append(self._value(match["value"]))

    def _schema(self, match: re.Match[str], span: Span, number: int) -> None:
        self.schema = f"{match['name']}.{match['overload']}" if match["overload"] else match["name"]
        self.named = number

    def _boxed_call(self, match: re.Match[str], span: Span, number: int) -> None:
        args = tuple(self.lists.pop(match["list"], ()))
        span = replace(
            span, first=self.first + (self.named or number)
        )  # the operator is named above its call
        self._call_extern(ExternCall(self.schema, args, (), span, comment=self._comment(number)))

    def _python_call(self, match: re.Match[str], span: Span, number: int) -> None:
        operator, *args = self.lists.pop(match["list"], None) or ["?"]
        self._call_extern(
            ExternCall(operator.strip('"'), tuple(args), (), span, comment=self._comment(number))
        )

    def _alias(self, match: re.Match[str], span: Span, number: int) -> None:
        self.views[match["name"]] = self._value(match["value"])

    def _result(self, match: re.Match[str], span: Span, number: int) -> None:
        if self.externs:  # what the operator returns stands where its arguments stood
            last = self.externs[-1]
            self.externs[-1] = replace(last, outputs=(*last.outputs, match["name"]))
            self.steps[self.steps.index(last)] = self.externs[-1]
        self._allocate(Allocation(match["name"], "new", None, None, span))

    def _handle(self, match: re.Match[str], span: Span, number: int) -> bool:
        name, value = match["name"], match["value"]
        if value in self.handles:
            layout = self.handles[value]
            argument = any(name in function.inputs for function in self.functions)
            kind: Literal["argument", "new"] = "argument" if argument else "new"
            self._allocate(Allocation(name, kind, layout, self.sources.get(value), span))
            return True
        return self._named(name, value, span)

    def _move(self, match: re.Match[str], span: Span, number: int) -> bool:
        return self._named(match["name"], match["value"], span)

    def _named(self, name: str, value: str, span: Span) -> bool:
        text = self._value(value)
        if text in self.pooled:
            pool, layout = self.pooled[text]
            base = self.allocations.get(pool)
            device = base.layout.device if base and base.layout else None
            self._allocate(Allocation(name, "view", replace(layout, device=device), pool, span))
            return True
        if text.startswith("reinterpret_tensor("):
            of, size, stride, offset = view_parts(text)
            base = self.allocations.get(of)
            known = base.layout if base else self.examples.get(of)
            layout = BufferLayout(
                "Allocation",
                known.device if known else None,
                known.dtype if known else None,
                size,
                stride,
                offset,
            )
            if name.startswith(("var_", "tmp_")):
                self.views[name] = text
            else:
                self._allocate(Allocation(name, "view", layout, of, span))
            return True
        if text.isidentifier() and (value != text or "std::move" in value or text in self.allocations):
            known_buffer = self.allocations.get(text)
            if name.startswith("var_"):
                self.views[name] = text
            else:
                layout_of = known_buffer.layout if known_buffer else None
                self._allocate(Allocation(name, "reuse", layout_of, text, span))
            return True
        return False

    def _name_size(self, symbol: SizeSymbol) -> None:
        self.symbols.append(symbol)
        self.steps.append(symbol)

    def _call_extern(self, call: ExternCall) -> None:
        self.externs.append(call)
        self.steps.append(call)

    def _allocate(self, allocation: Allocation) -> None:
        self.steps.append(allocation)
        known = self.allocations.get(allocation.name)
        if known is None or known.layout is None or allocation.layout is not None:
            self.allocations[allocation.name] = allocation

    def _output(self, match: re.Match[str], span: Span, number: int) -> None:
        self.returns[int(match["place"])] = self._value(match["value"])

    _returned = _output

    def _sized(self, match: re.Match[str], span: Span, number: int) -> None:
        name, size, stride, *more = split_arguments(match["arguments"])
        dtype = (
            enumerated("dtype", more[1]) if len(more) > 1 else None
        )  # of what an operator returned, since torch 2.14
        layout = BufferLayout("Input", None, dtype, braced_dims(size), braced_dims(stride))
        known = self.allocations.get(name)
        if name in self.inputs.values():
            self.allocations[name] = Allocation(name, "input", layout, None, span)
        elif known is None or known.layout is None:
            kind, of = (known.kind, known.of) if known else ("new", None)
            self.allocations[name] = Allocation(name, kind, replace(layout, kind="Allocation"), of, span)

    def _item(self, match: re.Match[str], span: Span, number: int) -> None:
        self._name_size(SizeSymbol(match["name"], f"{match['value']}.item()", span))

    def _number(self, match: re.Match[str], span: Span, number: int) -> bool:
        if "(" in match["value"] and not re.match(r"[\w ()+\-*/,:<>?!=&|.]*$", match["value"]):
            return False
        self.numbers[match["name"]] = without_suffixes(match["value"])
        return True

    def _check(self, match: re.Match[str], span: Span, number: int) -> bool:
        call, arguments = match["call"], split_arguments(match["arguments"])
        if _EMPTY.fullmatch(call) and len(arguments) >= 7:
            size, stride = (self._dims(text) for text in arguments[1:3])
            device, index = enumerated("device_type", arguments[4]), arguments[5].strip()
            if device not in (None, "cpu"):
                device = f"{device}:{index}" if index.isdigit() else f"{device}:0"
            layout = BufferLayout("Allocation", device, enumerated("dtype", arguments[3]), size, stride)
            self.handles[arguments[-1].strip().lstrip("&")] = layout
            return True
        if call == "aoti_torch_new_tensor_handle":  # codegen_reinterpret_view: the same memory once more
            self.views[arguments[-1].strip().lstrip("&")] = self._value(arguments[0])
            return True
        if call == _UNINITIALIZED:
            name = arguments[0].strip().lstrip("&")
            self.handles[name] = None
            self.uninitialized.add(name.removesuffix("_handle"))
            return True
        if call == _FROM_POOL and len(arguments) >= 7:
            size, stride = (self._dims(text) or () for text in arguments[4:6])
            layout = BufferLayout("Allocation", None, enumerated("dtype", arguments[2]), size, stride)
            self.pooled[arguments[-1].strip().lstrip("&")] = (arguments[0].strip(), layout)
            return True
        if call == _ASSIGN:
            handle = arguments[-1].strip().lstrip("&")
            self.handles[handle] = None
            self.sources[handle] = self._value(arguments[0])
            return True
        if "reinterpret_tensor" in call and arguments[-1].strip().startswith("&"):
            handle = arguments.pop().strip().lstrip("&")
            self.views[handle] = self._value(f"reinterpret_tensor({', '.join(arguments)})")
            return True
        if PLUMBING.fullmatch(call):
            return True
        return self._extern(call, arguments, span, number)

    def _extern(self, call: str, arguments: Sequence[str], span: Span, number: int) -> bool:
        outputs: list[str] = []
        args: list[str] = []
        skip = False
        for place, argument in enumerate(arguments):
            text = argument.strip()
            if skip:  # the length of the array before it
                skip = False
                continue
            if match := re.fullmatch(r"&(\w+)_handle", text):
                outputs.append(match[1])
                self.handles[f"{match[1]}_handle"] = None
            elif match := _ARRAY.fullmatch(text):
                outputs += re.findall(r"&(\w+)_handle", match["items"])
                args.append(f"[{', '.join(map(self._value, split_arguments(match['items'])))}]")
                skip = place + 1 < len(arguments) and arguments[place + 1].strip().rstrip("L").isdigit()
            elif text in self.arrays:
                args.append(f"[{', '.join(self.arrays[text])}]")
                skip = place + 1 < len(arguments) and arguments[place + 1].strip().rstrip("L").isdigit()
            else:
                args.append(self._value(text))
        if call == _DISPATCHER and len(args) >= 2:
            operator, overload = (text.strip('"') for text in args[:2])
            call, args = f"{operator}.{overload}" if overload else operator, [*self.dispatched]
            self.dispatched = ()
        if call == PROXY_CALL:  # of the tensors that it is passed, those made for it hold what it returns
            words = re.findall(r"\w+", " ".join(args))
            outputs = [name for name in words if name in self.uninitialized]
            self.uninitialized -= {*outputs}
        if not outputs and call.endswith("_out") and args:
            outputs = [args[0]]
        self._call_extern(ExternCall(call, tuple(args), tuple(outputs), span, comment=self._comment(number)))
        return True

    def _call(self, match: re.Match[str], span: Span, number: int) -> bool:
        call, arguments = match["call"], split_arguments(match["arguments"])
        if call in self.launchers:
            kernel, count = self.launchers[call]
            arguments = arguments[:count]
        elif call in self.kernels:
            kernel = call
        elif call.startswith("aoti_torch_") and not PLUMBING.fullmatch(call):
            return self._extern(call, arguments, span, number)
        else:
            return PLUMBING.fullmatch(call) is not None
        args = tuple(map(self._value, arguments))
        launch = Launch(kernel, args, span, comment=self._comment(number))
        self.launches.append(launch)
        self.steps.append(launch)
        return True

    def _comment(self, number: int) -> KernelComment | None:
        """Return the comment above a step: handles and arrays may be declared between the two."""
        last = number
        while last > self.used and not self.lines[last - 1].lstrip().startswith("//"):
            last -= 1
        above = last > self.used
        self.used = number + 1
        return kernel_comment(self.commented, last + 1, self.path) if above else None

    def _dims(self, text: str) -> tuple[Dim, ...] | None:
        items = self.arrays.get(text.strip())
        if items is None and (match := _ARRAY.fullmatch(text.strip())):
            items = tuple(without_suffixes(item) for item in split_arguments(match["items"]) if item.strip())
        if items is None:
            return () if text.strip() in ("nullptr", "{}") else None
        return tuple(map(as_dim, items))

    def _value(self, text: str) -> str:
        """Return an argument as the Python wrapper would pass it."""
        text = text.strip().removeprefix("&") if not text.strip().startswith("&&") else text.strip()
        while True:
            text = text.removesuffix(".get()").removesuffix(".release()").strip()
            if (match := _DATA.fullmatch(text) or _CAPSULE.fullmatch(text)) or (
                (match := _WRAPPED.fullmatch(text)) and is_balanced(match["value"])
            ):
                text = match["value"]
            else:
                break
        if (match := _VIEW.fullmatch(text)) and len(parts := split_arguments(match["arguments"])) >= 4:
            of, size, stride = self._value(parts[0]), *map(self._dims, parts[2:4])
            offset = without_suffixes(parts[4]) if len(parts) > 4 else "0"
            if size is not None and stride is not None:
                return f"reinterpret_tensor({of}, {tuple_text(size)}, {tuple_text(stride)}, {offset})"
        if text in self.views:
            return self.views[text]
        if text in self.lists:
            return f"[{', '.join(self.lists[text])}]"
        if text in ("nullptr", "Py_None", "std::nullopt", "c10::IValue()"):
            return "None"
        return self.numbers.get(text, without_suffixes(text))
