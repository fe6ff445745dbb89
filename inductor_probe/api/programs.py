"""C++ kernels as programs of their own."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.analysis.annotation.annotate import annotate
from inductor_probe.analysis.kernels import kernel_rows
from inductor_probe.analysis.names import resolve
from inductor_probe.bench_file.compile_settings import vector_bits
from inductor_probe.cpp_program.memory import recorded_sizes
from inductor_probe.cpp_program.program import cpp_program as program_of
from inductor_probe.errors import NotFoundError, near_names
from inductor_probe.files import read_text
from inductor_probe.machine.toolchain import compile_command
from inductor_probe.model.cpp_program import ExportCppOutput
from inductor_probe.model.kernels import KernelRow
from inductor_probe.report.document import Code, Document
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk


class CppProgram(Shown):
    """A kernel as a program of its own.

    Attributes:
        kernel: its name. file: name of the file it is for.
        text: the program. command: what compiles it.
    """

    def __init__(self, kernel: str, file: str, text: str, command: Sequence[str]) -> None:
        self.kernel = kernel
        self.file = file
        self.text = text
        self.command = tuple(command)

    @property
    def output(self) -> ExportCppOutput:
        """What `--json` prints, as a record."""
        return ExportCppOutput(kernel=self.kernel, path=Path(self.file), command=self.command, text=self.text)

    @property
    def document(self) -> Document:
        """The program, and the command that compiles it."""
        return (Code(f"{self.text}\n// {shlex.join(self.command)}", "cpp"),)


def cpp_program(
    graph: GraphOnDisk,
    kernel: str,
    file: str | None,
    *,
    sizes: Mapping[str, int] | None,
    cxxflags: Sequence[str],
    annotated: bool,
) -> CppProgram:
    """Return a C++ kernel as a program: see `Graph.cpp_program`."""
    read = graph.generated
    row = kernel_of(graph, kernel)
    known = recorded_sizes(read, read_text(graph.path / "output_code.py"))
    source = file or f"{row.name}.cpp"
    command = compile_command(vector_bits([row.details])).program(
        source, source.rpartition(".")[0] or f"{source}.out", cxxflags
    )
    text = program_of(
        row,
        sizes={**known, **(sizes or {})},
        inputs=graph.inputs,
        command=command,
        torch_version=read.torch_version,
        annotated=annotate(read, row.name) if annotated else None,
    )
    return CppProgram(row.name, source, text, command)


def kernel_of(graph: GraphOnDisk, name: str | None) -> KernelRow:
    """Return the kernel called `name`, or the only one whose name starts so; the only C++ kernel if None.

    Raises:
        NotFoundError: there is none; near names are offered. ProbeError: several start so.
    """
    rows = kernel_rows(graph.generated)
    if name is None:
        rows = tuple(row for row in rows if row.backend == "cpp")
        if len(rows) != 1:
            what = f"{len(rows)} C++ kernels: name one" if rows else "no C++ kernel"
            raise NotFoundError(f"{graph.name} has {what}", near_names("", [row.name for row in rows]))
        return rows[0]
    subject = resolve(graph.generated, name, ("kernel",))
    return next(row for row in rows if row.name == subject.name)
