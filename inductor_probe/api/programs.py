"""C++ kernels as programs of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.names import resolve
from inductor_probe.bench_file.compile_settings import vector_bits
from inductor_probe.cpp_program import cpp_program as program_of
from inductor_probe.cpp_program import recorded_sizes
from inductor_probe.machine.toolchain import compile_command
from inductor_probe.reader.text import read_text

if TYPE_CHECKING:
    from inductor_probe.api.graph import Graph


class CppProgram(NamedTuple):
    """A kernel as a program: its text, and the command that compiles it."""

    text: str
    command: tuple[str, ...]


def cpp_program(
    graph: Graph,
    kernel: str,
    file: str | None,
    *,
    sizes: Mapping[str, int] | None,
    cxxflags: Sequence[str],
    annotated: bool,
) -> CppProgram:
    """Return a C++ kernel as a program: see `Graph.cpp_program`."""
    read = graph.generated
    name = resolve(read, kernel, ("kernel",)).name
    row = next(row for row in kernel_rows(read) if row.name == name)
    known = recorded_sizes(read, read_text(graph.path / "output_code.py"))
    source = file or f"{row.name}.cpp"
    command = compile_command(vector_bits([row.details])).program(
        source, source.rpartition(".")[0] or f"{source}.out", cxxflags
    )
    record = graph.run.manifest.graph(graph.name) if graph.run.manifest else None
    text = program_of(
        row,
        sizes={**known, **(sizes or {})},
        inputs=record.inputs if record else (),
        command=command,
        torch_version=read.torch_version,
        annotated=graph.annotate(row.name) if annotated else None,
    )
    return CppProgram(text, tuple(command))
