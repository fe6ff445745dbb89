"""The statements of wrappers in C++, a line each as a rule: their forms, and those that say nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_CHECK = "AOTI_TORCH_ERROR_CODE_CHECK"
_ARRAY_TYPE = re.compile(r"std::(?:array<[\w: *]+,\s*\d+>|vector<[\w:]+>)")
_CAST_ARRAY = re.compile(
    r"static_cast<const [\w:]+ ?\*>\((?P<array>std::array ?\{[^{}]*\}\.(?:c?begin|data)\(\))\)"
)
"""Of all arrays that are passed since torch 2.14, of some before."""
_WITH_RESET = re.compile(r"(?P<first>.+;) (?P<reset>\w+\.reset\(\);)")

# Statements. Names of buffers, handles and subgraphs are words.
_PATTERNS: tuple[tuple[str, str], ...] = (
    # codegen_inputs
    ("input", r"auto (?P<name>\w+) = std::move\(inputs\[(?P<place>\d+)\]\);"),
    ("input", rf"{_CHECK}\(aoti_torch_item_\w+\(inputs\[(?P<place>\d+)\], &(?P<name>\w+)\)\);"),
    ("symbol", r"(?:const )?(?:int64_t|double|bool|auto) (?P<name>[suz]\d+) = (?P<value>.+);"),
    ("frozen", r"\[\[maybe_unused\]\] auto (?P<name>\w+) = std::move\(inputs\[\d+\]\);"),
    ("constant", r"\[\[maybe_unused\]\] auto& (?P<name>\w+) = constants_->at\((?P<place>\d+)\);"),
    # codegen_int_array_var
    ("array", r"(?:static )?(?:constexpr |const )+int64_t (?P<name>\w+)\[\] = \{(?P<items>.*)\};"),
    ("array", r"(?:static )?(?:constexpr |const )+int64_t ?\* ?(?P<name>\w+) ?= ?(?P<items>nullptr);"),
    # generate_fallback_kernel_with_runtime_lookup: custom operators, by the dispatcher
    ("passed", r"std::array \w+\{(?P<items>.*)\};"),
    ("alias", r"aoti_torch_new_tensor_handle\((?P<value>.+), &(?P<name>\w+)\);"),
    ("alias", r"std::optional (?P<name>\w+)\{(?P<value>.+)\};"),
    ("list", r"(?:c10::impl::GenericList|std::array|RAIIPyObject|PyObject ?\*) (?P<name>\w+)"
             r"(?: = PyList_New\(\d+\)|\(c10::.*\)|\(PyTuple_New\(\d+\)\))?;"),
    ("item_of", r"(?P<list>\w+)\.emplace_back\((?P<value>.+)\);"),
    ("item_of", r"Py(?:Tuple|List)_SetItem\((?P<list>\w+), \d+, (?P<value>.+)\);"),
    ("schema", r"static auto \w+ = c10::Dispatcher::singleton\(\)\.findSchemaOrThrow\("
               r"\"(?P<name>[^\"]+)\", \"(?P<overload>[^\"]*)\"\).*;"),
    ("boxed_call", r"\w+\.callBoxed\(&(?P<list>\w+)\);"),
    # ... by Python: generate_fallback_kernel_with_runtime_lookup_python
    ("python_call", r"RAIIPyObject \w+\(PyObject_CallObject\(custom_op_wrapper, (?P<list>\w+)\)\);"),
    ("result", r"(?P<name>\w+) = torch::aot_inductor::new_tensor_handle\(.+\);"),
    ("result", r"(?P<name>\w+) = reinterpret_cast<AtenTensorHandle>\(PyCapsule_GetPointer\(.+\)\);"),
    ("result", r"(?P<name>\w+) = torch::stable::detail::to<\w+>\(\w+\[\d+\]\);"),
    # make_allocation, codegen_reinterpret_view, make_buffer_reuse, and what holds a handle
    # generate_return: a number that the graph returns
    ("alias", r"RAIIAtenTensorHandle (?P<name>\w+) = scalar_to_tensor_handle\((?P<value>.+)\);"),
    ("handle", r"(?:RAIIAtenTensorHandle|ConstantHandle) (?P<name>\w+)\((?P<value>.+)\);"),
    ("move", r"(?:auto|decltype\(auto\)|RAIIAtenTensorHandle) (?P<name>\w+) = (?P<value>.+);"),
    ("move", r"(?P<name>\w+) = "
             r"(?P<value>(?:std::move|wrap_with_raii_handle_if_needed|RAIIAtenTensorHandle)\(.+\));"),
    ("output", r"output_handles\[(?P<place>\d+)\] = (?P<value>.+?)(?:\.release\(\))?;"),
    ("returned", rf"(?:{_CHECK}\()?aoti_torch_(?:clone|new_tensor_handle|clone_preserve_strides)"
                 r"\((?P<value>.+), &output_handles\[(?P<place>\d+)\]\)\)?;"),
    ("sized", r"(?:if \(\w+\(\)\) \{ )?assert_size_stride\((?P<arguments>.+)\);(?: \})?"),
    # codegen_dynamic_scalar, and the size of a launch (generate_kernel_call)
    ("item", rf"{_CHECK}\(aoti_torch_item_\w+\((?P<value>\w+), &(?P<name>\w+)\)\);"),
    # _generate_symbolic_call_arg_helper: of a kernel that was launched before, it is declared there
    ("number", r"(?P<name>\w+numel\w*) = (?P<value>[^{}]+);"),
    ("number", r"(?:const )?(?:char ?\*|int64_t|int32_t|uint32_t|double|float|bool|auto) (?P<name>\w+) = "
               r"(?P<value>[^{}]+);"),
    ("check", rf"{_CHECK}\((?P<call>\w+)\((?P<arguments>.*)\)\);"),
    ("call", r"(?P<call>[A-Za-z_][\w:]*)(?:<.*>)?\((?P<arguments>.*)\);"),
)  # fmt: skip
FORMS = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)
# What neither computes nor names memory.
SILENT = re.compile(
    r"[{}]|\} ?else ?(?:if \(.*\) ?)?\{|(?:if|while|for) ?\(.*\) ?(?:\{|break;)?|break;|return;|#\w+.*"
    r"|namespace.*"
    r"|(?:AtenTensorHandle|RAIIAtenTensorHandle|PyObject ?\*|int64_t|int32_t|double|float|bool|cudaStream_t"
    r"|hipStream_t"
    r"|sycl::queue ?\*|uint8_t|int16_t|int8_t|c10::\w+|std::\w+(?:<.*>)?|DeviceStreamType) \w+(?:\[\])?;"
    r"|(?:[\w\[\]]{1,200}\.(?:reset|clear|release)\(\); ?){1,100}|KernelContextGuard .*;|\w+\.reserve\(\d+\);"
    r"|(?:py::|pybind11::)?\w*gil\w*(?:::\w+)? \w+(?:\(\))?;|py::gil_scoped_\w+ \w+;"
    r"|auto inputs = .*;|auto \w+_(?:size|stride) = \w+\.(?:sizes|strides)\(\);|auto umap = .*;"
    r"|\[\[maybe_unused\]\] auto& kernels = .*;|__check_inputs_outputs\(.*\);"
    r"|AOTI\w*Guard \w+\(.*\);|\w*RecordFunction\w* \w+\(.*\);"
    # _profiling_ivalue_lines: what a profile shows as the arguments of a call, since torch 2.15
    r"|C10IValueHandle \w+ = nullptr;|RAIIC10IValueHandle \w+\(\w+\);|std::array \w+_inputs_\(\{.*\}\);"
    r"|aoti_torch_\w*(?:print|save)\w*\(.*\);|AOTI_TORCH_\w*(?:WARN|print)\w*\(.*\);"
    r"|if \(.*\) \{ .* \}|RAIIPyObject .*;|Py\w+\(.*\);|custom_op_wrapper = Py.*;"
    r"|ensure_triton_kernel_compiles_started\(\);"
    r"|std::(?:array|vector)<.*> \w+.*;"
    r"|(?:int64_t|AtenTensorHandle) \w+\[\] = .*;"
    r"|throw .*;|std::stringstream .*;|static (?:const )?\w+ .*;"
)  # fmt: skip
PLUMBING = re.compile(
    r"aoti_torch_(?:get_(?:current_\w+|device\w*|dtype|numel|size\w*|stride\w*|storage\w*|data_ptr)|create_\w+guard|delete_\w+"
    r"|assign_tensors|check_inf_and_nan|clone_preserve_strides|grad_mode\w*|set_\w*stream\w*)|assert_\w+|AOTI_RUNTIME_CHECK|cudaStream\w+|TORCH_\w*CHECK"
    r"|aoti_torch_\w+_to_ivalue|steal_\w+|run_intermediate_hooks|std::\w+|aoti_check_\w+|aoti_record_\w+"
)


def statements(lines: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield the statements between two lines, with their first and last line; comments are left out."""
    number = start
    while number < end:
        first, text = number, lines[number].split("  // ")[0].strip()
        number += 1
        if not text or text.startswith("//"):
            continue
        while number < end and not _is_whole(text):
            text = f"{text} {lines[number].split('  // ')[0].strip()}"
            number += 1
        text = _ARRAY_TYPE.sub("std::array", text)  # a comma that separates no arguments
        text = _CAST_ARRAY.sub(r"\g<array>", text)
        text = text.replace("( ", "(").replace(" )", ")")
        two = _WITH_RESET.fullmatch(text)
        for statement in (two["first"], two["reset"]) if two else (text,):
            yield first, number - 1, statement


def _is_whole(text: str) -> bool:
    """Return whether a statement has its end; a stack trace may stand in it, as a raw string."""
    if text.count('R"(') > text.count(')"'):
        return False
    return text.endswith((";", "{", "}", ">")) or text.startswith("#")
