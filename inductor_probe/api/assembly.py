"""Kernels compiled ahead of time: resources, occupancy, widths of instructions, machine code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inductor_probe.api.session import Graph
from inductor_probe.api.trust import texts_to_run
from inductor_probe.api.verbs import open_kernel, open_target
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.assembly import OF_CPP, STAGES, AsmOutput, KernelRemarks
from inductor_probe.model.code import CppFacts, Kernel
from inductor_probe.model.output import Output
from inductor_probe.report.document import Document
from inductor_probe.report.pages.assembly import asm_page
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.api.rows import Causes
    from inductor_probe.api.verbs import Target

_CODE = "output_code.py"
_NEXT_NAME = re.compile(r",\s*(?=[A-Za-z_])")


class Asm(Shown):
    """What a kernel was compiled to; shows itself."""

    def __init__(self, record: AsmOutput) -> None:
        self.record = record

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return self.record

    @property
    def document(self) -> Document:
        """Resources of each config, accesses of the first one, and the texts that were asked for."""
        return asm_page(self.record)


def asm(
    kernel: str | None = None,
    target: Target | Graph = None,
    *,
    arch: str | None = None,
    configs: Sequence[str] = (),
    stages: Sequence[str] = (),
    sweep: bool = False,
    trust: bool = False,
) -> Asm:
    """Compile a kernel of a dump: Triton's for a GPU that need not be there, C++ as inductor does here.

    That imports the text of a Triton kernel, in a process of its own; nothing is launched.

    Args:
        kernel: its name, or the start of it. target: a graph, or the name or path of a run or graph.
        arch: `sm_90`, or a GPU's name (`h200`); what the dump was made for if None.
        configs: each one or several: `XBLOCK=1024,num_warps=4`, `XBLOCK=512,1024`; inductor's own if empty.
        stages: those of which the text is wanted: `STAGES` of Triton, `asm` of C++.
        sweep: inductor's configs, those that the dump recorded as offered, and a grid around them.
        trust: compile text that is not known to be made here.

    Raises:
        NotFoundError: no such kernel, architecture or stage. ProbeError: it is of another backend, has no
            such parameter, or may not be run. RunFailedError: it cannot be compiled here.
    """
    from inductor_probe.reader.output_code import parse_output_code
    from inductor_probe.store.compiler_remarks import keep_remarks

    graph, name = (
        (target, target.kernel(kernel).name) if isinstance(target, Graph) else open_kernel(kernel, target)
    )
    row = graph.kernel(name)
    if row.backend not in ("triton", "cpp"):
        raise ProbeError(f"{name} is a {row.backend} kernel, and asm compiles those of Triton and C++")
    known = STAGES if row.backend == "triton" else (OF_CPP,)
    for stage in stages:
        if stage not in known:
            raise NotFoundError(f"a {row.backend} kernel has no stage {stage!r}: there is {', '.join(known)}")
    if row.backend == "cpp" and (arch or configs or sweep):
        options = "--arch, --config and --sweep are for Triton's"
        raise ProbeError(f"{name} is a C++ kernel, for this processor: {options}")
    texts = texts_to_run(graph, trust=trust, launched=False)
    path = graph.path / _CODE
    read = parse_output_code(texts.get(_CODE) or "", path).kernel(name)
    if read is None or not read.source or read.span is None:
        raise ProbeError(f"the text of {name} is not in {path}", "asm reads kernels of wrappers in Python")
    if row.backend == "cpp":
        compiled = _cpp(read, stages, path)
        if not trust:  # made here: the folder is this user's own, and may keep it
            keep_remarks(graph.path, compiled["compiler"])
    else:
        recorded = _recorded_configs(graph, name) if sweep else ()
        compiled = _triton(read, arch, configs, recorded, stages, sweep=sweep)
    output = AsmOutput(
        graph=graph.name,
        kernel=name,
        backend=row.backend,
        path=path,
        first=read.span.first,
        source=read.source,
        **compiled,
    )
    return Asm(output)


def ask_compiler(
    first: str | None = None,
    second: str | None = None,
    target: Target | Graph = None,
    *,
    kinds: Sequence[str] = (),
    trust: bool = False,
) -> Causes:
    """Return what `why` does, with what the C++ compiler says of the kernels concerned: this compiles them.

    Args:
        first, second, target, kinds: see `why`. trust: compile text that is not known to be made here.

    Raises:
        ProbeError: it may not be compiled; see `asm`. RunFailedError: it cannot be.
    """
    from inductor_probe.api.on_disk import concerned_kernels
    from inductor_probe.api.rows import Causes

    opened = target if isinstance(target, Graph) else open_target(target)
    graphs = [opened] if isinstance(opened, Graph) else opened.graphs
    causes = opened.why(*(name for name in (first, second) if name is not None), kinds=kinds)
    rows = []
    for row in causes:
        graph = next(one for one in graphs if row.graph in (one.name, one.folder.name))
        names = concerned_kernels(row)
        kernels = [
            one for one in graph.kernels() if one.backend == "cpp" and (not row.asked or one.name in names)
        ]
        said = [asm(kernel.name, graph, trust=trust).record.compiler for kernel in kernels]
        rows.append(replace(row, compiler=tuple(one for one in said if one is not None)))
    return Causes(rows, causes.problems)


def _recorded_configs(graph: Graph, kernel: str) -> tuple[str, ...]:
    """Return what inductor offered for a kernel while the dump was made, as far as that is recorded."""
    recorded = graph.compiled.decisions
    offered = [
        decision.operand("configs")
        for decision in (recorded.decisions if recorded else ())
        if decision.kind == "configs" and decision.operand("kernel") == kernel
    ]
    return tuple(str(text) for texts in offered if isinstance(texts, tuple) for text in texts)


def _triton(
    kernel: Kernel,
    arch: str | None,
    configs: Sequence[str],
    recorded: Sequence[str],
    stages: Sequence[str],
    *,
    sweep: bool,
) -> dict[str, Any]:
    from inductor_probe.assembly.triton import architecture_of, compile_triton

    architecture = architecture_of(arch) if arch else 0
    return compile_triton(
        kernel.source,
        kernel.name,
        architecture=architecture,
        configs=[_NEXT_NAME.sub(" ", text) for text in configs],
        recorded=recorded,
        sweep=sweep,
        stages=stages,
    )


def _cpp(kernel: Kernel, stages: Sequence[str], path: Path) -> dict[str, Any]:
    from inductor_probe.assembly.cpp import compile_cpp
    from inductor_probe.bench_file.compile_settings import vector_bits
    from inductor_probe.machine.facts import cxx_version
    from inductor_probe.machine.toolchain import compile_command
    from inductor_probe.store.compiler_remarks import digest_of

    command = compile_command(vector_bits([kernel.details]))
    nests = kernel.details.nests if isinstance(kernel.details, CppFacts) else ()
    compiled = compile_cpp(kernel.source, command, nests)
    version = cxx_version() or command.compiler
    return {
        "compilers": (("torch", command.torch), ("compiler", version)),
        "architecture": command.isa,
        "loops": compiled.loops,
        "command": command.library,
        "code": compiled.code if OF_CPP in stages else "",
        "compiler": KernelRemarks(
            kernel=kernel.name,
            digest=digest_of(kernel.source),
            version=version,
            vectors=command.isa or "",
            turned_off=compiled.turned_off,
            path=path,
            first=kernel.span.first if kernel.span else 1,
            remarks=compiled.remarks,
        ),
    }
