"""The text of the program: the kernel as dumped, what it needs around it, and `main`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from inductor_probe.bench_file.compile_settings import vector_bits
from inductor_probe.cpp_program.memory import Memory, Scalar, arguments
from inductor_probe.errors import ProbeError
from inductor_probe.model.code import CppFacts
from inductor_probe.model.cpp_program import portable_flags
from inductor_probe.model.kernels import KernelLaunch, KernelRow
from inductor_probe.model.manifest import InputFact

_INCLUDE = re.compile(
    r'^[ \t]*#include (?:"(?P<path>[^"\n]*\.h)"|<torch/csrc/inductor/cpp_prefix\.h>  // was (?P<was>.*))$',
    re.MULTILINE,
)
_PREFIX = """\
#if __has_include(<torch/csrc/inductor/cpp_prefix.h>)  // was {was}
#include <torch/csrc/inductor/cpp_prefix.h>
using half = at::Half;  // names that the header had when this kernel was written
using bfloat16 = at::BFloat16;
namespace at::native {{ using c10::div_floor_integer; }}
#else  // torch before 2.8
#include <../_inductor/codegen/cpp_prefix.h>
#endif"""
_ENTRY = re.compile(r'extern\s+"C"\s+(?:__declspec\(dllexport\)\s+)?void\s+(?P<name>\w+)\s*\(')
_LINE = re.compile(r'^#line (?P<line>\d+) (?P<file>"[^"\n]*\.cpp")$', re.MULTILINE)
_UNPLAIN = re.compile(r"[^ -\[\]-~]")


def cpp_program(
    row: KernelRow,
    *,
    sizes: Mapping[str, int] | None = None,
    inputs: Sequence[InputFact] = (),
    command: Sequence[str] = (),
    torch_version: str | None = None,
    annotated: str | None = None,
) -> str:
    """Return a C++ kernel as a program with a `main`, which times it and prints checksums of its outputs.

    Args:
        sizes: values of the names of sizes, see `recorded_sizes`.
        inputs: what the graph's inputs were, for the ranges of integers.
        command: compiles `NAME.cpp` to `NAME`, as inductor would here; a portable one if empty.
        torch_version: of the torch that made the dump, named where the headers are.
        annotated: the kernel's text with comments, if wanted: `#line` in it are counted anew.

    Raises ProbeError: it is not a C++ kernel, is never launched, or a size is not known.
    """
    if row.backend != "cpp":
        raise ProbeError(
            f"{row.name} is a {row.backend} kernel, not a C++ one", "probe kernels --only cpp lists those"
        )
    if not row.launches:
        raise ProbeError(f"{row.name} is never launched, so the sizes of its buffers are not known")
    entry = _ENTRY.search(row.source)
    if entry is None:
        raise ProbeError(
            f"the text of {row.name} defines no function", "the dump may be cut off: probe check"
        )
    launch = row.launches[0]
    passed = arguments(row, launch, sizes or {}, {fact.name: fact for fact in inputs})
    head = "".join(f"// {line}\n" if line else "//\n" for line in _head(row, command, torch_version)) + "\n"
    return "\n".join(
        [
            head + _kernel(annotated or row.source, head).strip("\n") + "\n",
            Path(__file__).with_name("support.h").read_text(encoding="utf-8"),
            "\n".join(_main(row, launch, passed, entry["name"])) + "\n",
        ]
    )


def _kernel(text: str, head: str) -> str:
    """Return the kernel's text for any machine, its `#line` for a file that starts with `head`.

    Torch before 2.8 included its header from a temporary folder, and gave shorter names to a few types.
    """
    portable, replaced = _INCLUDE.subn(
        lambda match: _PREFIX.format(was=_plain(match["path"] or match["was"])), text, count=1
    )
    above = head.count("\n") + replaced * _PREFIX.count("\n")
    return _LINE.sub(lambda match: f"#line {int(match['line']) + above} {match['file']}", portable)


def _head(row: KernelRow, command: Sequence[str], torch_version: str | None) -> Iterator[str]:
    name = row.name
    yield f"{name} of {_plain(row.graph)} as a program of its own: inputs are made up, sizes are the dump's."
    yield ""
    if command:
        yield "Compile, with what inductor uses on the machine where this was written:"
        yield f"  {_plain(shlex.join(command))}"
    else:
        yield "Compile:"
        yield "  TORCH=$(python -c 'import torch; print(torch.__path__[0])')"
        yield f"  {_portable(row)}"
    yield f"Run: ./{name} [CALLS [SEED]]     perf stat ./{name} 1000     gdb --args ./{name} 1"
    yield f"Instead of -o {name}: -S -o {name}.s is its assembly; -E -P prints text without includes (5 MB),"
    yield "for a Compiler Explorer that has no headers of torch."
    if torch_version:
        yield f"Made by torch {_plain(torch_version)}: headers change, so another torch's may not fit."
    yield ""
    yield "The checksums are of one call on fresh inputs: they depend on the seed, and not on CALLS."


def _portable(row: KernelRow) -> str:
    bits = vector_bits([row.details]) or (512 if "at::vec::" in row.source else 0)
    flags = [f"{row.name}.cpp", *portable_flags(bits), "-I$TORCH/include", f"-o {row.name}"]
    libraries = "-Wl,--as-needed -L$TORCH/lib -Wl,-rpath,$TORCH/lib -ltorch -ltorch_cpu -lc10"
    return " ".join(["g++", *flags, libraries])


def _main(
    row: KernelRow, launch: KernelLaunch, passed: Sequence[Memory | Scalar], entry: str
) -> Iterator[str]:
    threads = 1
    if isinstance(row.details, CppFacts) and row.details.parallel:
        threads = row.details.threads or 0
    yield f"// The launch in line {launch.span.first} of {launch.span.path.name}."
    yield "int main(int argc, char** argv) {"
    yield "  using probe::Use;"
    yield f'  probe::Program program("{row.name}", {threads}, argc, argv);'
    owners = {argument.of for argument in passed if isinstance(argument, Memory)}
    for argument in passed:
        if isinstance(argument, Memory):
            yield from _memory(argument, argument.name in owners)
        else:
            kind, note = argument.type.removeprefix("const "), f"  // {_plain(argument.text)}"
            note = note if argument.text != argument.value else ""
            yield f"  const {kind} {argument.name} = {argument.value};{note}"
    yield f"  return program.run([&] {{ {entry}({', '.join(argument.name for argument in passed)}); }});"
    yield "}"


def _memory(memory: Memory, shared: bool) -> Iterator[str]:
    size, stride = (
        f"({', '.join(map(str, dims or ()))})" for dims in (memory.layout.size, memory.layout.stride)
    )
    yield f"  // {_plain(memory.text)}: {size}, strides {stride}"
    kind, name = memory.type, memory.name
    values = f", {memory.low}, {memory.high}" if memory.integers and memory.use != "out" else ""
    made = f'program.memory<{kind}>("{name}", "{kind}", {memory.elements}, Use::{memory.use}{values});'
    if memory.of is not None:
        yield f"  {kind}* {name} = reinterpret_cast<{kind}*>({memory.of}_memory) + {memory.offset};"
    elif not shared and not memory.offset:
        yield f"  {kind}* {name} = {made}"
    else:
        yield f"  {kind}* {name}_memory = {made}"
        yield f"  {kind}* {name} = {name}_memory + {memory.offset};"


def _plain(text: str) -> str:
    """Return text of a dump for a comment: nothing that ends the line, goes on in the next or acts there."""
    return _UNPLAIN.sub("?", text)
