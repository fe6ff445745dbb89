"""Kernels compiled ahead of time: resources, occupancy, widths of instructions, machine code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from inductor_probe.api.session import Graph
from inductor_probe.api.trust import require_trust, texts_to_run
from inductor_probe.api.verbs import open_kernel, open_target
from inductor_probe.assembly.compared import compared_text, figures
from inductor_probe.errors import NotFoundError, ProbeError
from inductor_probe.model.assembly import OF_CPP, STAGES, AsmOutput, CompiledKernel, KernelRemarks
from inductor_probe.model.code import CppFacts, Kernel, Pairs
from inductor_probe.model.output import Output
from inductor_probe.options.kernels import AsmOptions
from inductor_probe.options.verb import Progress, takes
from inductor_probe.report.document import Document
from inductor_probe.report.pages.assembly import asm_page
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
    from inductor_probe.api.rows import Causes
    from inductor_probe.api.verbs import Target

Choose: TypeAlias = Callable[["str | None", "Target"], "tuple[Graph, str]"]
_CODE = "output_code.py"
_VARIANT = re.compile(r"(?P<kernel>.+)(?P<number>_v\d+)")
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


@takes(AsmOptions)
def asm(options: AsmOptions, progress: Progress) -> Asm:
    """Compile a kernel of a dump: Triton's for a GPU that need not be there, C++ as inductor does here.

    That imports the text of a Triton kernel, in a process of its own; nothing is launched.

    Raises:
        NotFoundError: no such kernel, architecture or stage. ProbeError: it is of another backend, has no
            such parameter, or may not be run; the two are of different backends. RunFailedError: it cannot be
            compiled here.
    """
    other = options.other if isinstance(options.other, str) else None
    first, *others = find_kernels(options.kernel, other, options.target, against=options.against)
    compiled = _compile(*first, options, progress)
    if options.other is not None and other is None:
        others = [options.other]
    if not others:
        return Asm(AsmOutput(kernels=(compiled,)))
    second = _compile(*others[0], options, progress)
    if second.backend != compiled.backend:
        raise ProbeError(
            f"{compiled.kernel} is a {compiled.backend} kernel and {second.kernel} a {second.backend} one:"
            " their figures are not of one kind",
            "asm compares kernels of one backend; asm of each shows what it has",
        )
    return Asm(
        AsmOutput(
            kernels=(compiled, second),
            figures=figures(compiled, second),
            texts=tuple(compared_text(compiled, second, stage) for stage in options.stages),
        )
    )


def find_kernel(
    name: str | None = None, target: Target = None, *, choose: Choose = open_kernel
) -> tuple[Graph, str]:
    """Return the graph that has a kernel, or the variant of one in its bench file, and its name.

    `choose` returns graph and name of a kernel; one that several graphs have may be that of the first.

    Raises:
        NotFoundError: no kernel has the name. AmbiguousError: several graphs have it.
    """
    try:
        return choose(name, target)
    except NotFoundError:
        variant = _VARIANT.fullmatch(name or "")
        if variant is None:
            raise
    graph, base = choose(variant["kernel"], target)
    return graph, f"{base}{variant['number']}"


def find_kernels(
    first: str | None = None,
    second: str | None = None,
    target: Target = None,
    *,
    against: Target = None,
    choose: Choose = open_kernel,
) -> tuple[tuple[Graph, str], ...]:
    """Return one kernel, or two to compare: `second` of the same target, or of `against`.

    With `against` alone the second has the name of the first. For `choose` see `find_kernel`.
    """
    graph, name = find_kernel(first, target, choose=choose)
    if second is None and against is None:
        return ((graph, name),)
    other = target if against is None else against
    return (graph, name), find_kernel(second or name, other, choose=choose)


def _compile(graph: Graph, kernel: str | None, options: AsmOptions, progress: Progress) -> CompiledKernel:
    from inductor_probe.store.compiler_remarks import keep_remarks

    variant = _VARIANT.fullmatch(kernel or "")
    row = graph.kernel(variant["kernel"] if variant else kernel)
    name = f"{row.name}{variant['number']}" if variant else row.name
    if row.backend not in ("triton", "cpp"):
        raise ProbeError(f"{name} is a kernel of {row.backend}, and asm compiles those of Triton and C++")
    known = STAGES if row.backend == "triton" else (OF_CPP,)
    for stage in options.stages:
        if stage not in known:
            raise NotFoundError(f"a {row.backend} kernel has no stage {stage!r}: there is {', '.join(known)}")
    if row.backend == "cpp" and (options.arch or options.configs or options.sweep):
        of_triton = "--arch, --config and --sweep are for Triton's"
        raise ProbeError(f"{name} is a C++ kernel, for this processor: {of_triton}")
    read, path = _text_of(graph, name, variant=variant is not None, trust=options.trust)
    if row.backend == "cpp":
        compiled = _cpp(read, options.stages, path)
        if not options.trust and variant is None:  # made here: the folder is this user's own, and may keep it
            keep_remarks(graph.path, compiled["compiler"])
    else:
        recorded = _recorded_configs(graph, row.name) if options.sweep else ()
        compiled = _triton(read, recorded, options, progress)
    return CompiledKernel(
        graph=graph.name,
        kernel=name,
        backend=row.backend,
        dumped_by=_dumped_by(graph),
        path=path,
        first=read.span.first if read.span else 1,
        source=read.source,
        **compiled,
    )


def _dumped_by(graph: Graph) -> Pairs:
    versions = dict(graph.run.manifest.versions) if graph.run.manifest else {}
    return tuple((name, versions[name]) for name in ("torch", "triton") if name in versions)


def _text_of(graph: Graph, name: str, *, variant: bool, trust: bool) -> tuple[Kernel, Path]:
    """Return a kernel as it stands in the wrapper, or in the bench file, which may be compiled."""
    from inductor_probe.discovery.dump_files import BENCH_NAME
    from inductor_probe.reader.output_code import parse_output_code

    path = graph.path / (BENCH_NAME if variant else _CODE)
    if variant:
        text = require_trust(graph, trust=trust, launched=False)
    else:
        text = texts_to_run(graph, trust=trust, launched=False).get(_CODE)
    read = parse_output_code(text or "", path).kernel(name)
    if read is None and variant:
        raise NotFoundError(
            f"{path} has no variant {name}" if text else f"{graph.name} has no bench file with {name}",
            f"probe bench-kernel {graph.short_name} --no-run writes copies to edit",
        )
    if read is None or not read.source or read.span is None:
        raise ProbeError(f"the text of {name} is not in {path}", "asm reads kernels of wrappers in Python")
    return read, path


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
        said = [asm(kernel.name, graph, trust=trust).record.kernels[0].compiler for kernel in kernels]
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
    kernel: Kernel, recorded: Sequence[str], options: AsmOptions, progress: Progress
) -> dict[str, Any]:
    from inductor_probe.assembly.triton import architecture_of, compile_triton

    return compile_triton(
        kernel.source,
        kernel.name,
        architecture=architecture_of(options.arch) if options.arch else 0,
        configs=[_NEXT_NAME.sub(" ", text) for text in options.configs],
        recorded=recorded,
        sweep=options.sweep,
        stages=options.stages,
        progress=progress,
    )


def _cpp(kernel: Kernel, stages: Sequence[str], path: Path) -> dict[str, Any]:
    from inductor_probe.assembly.cpp import compile_cpp
    from inductor_probe.bench_file.compile_settings import vector_bits
    from inductor_probe.files import digest_of
    from inductor_probe.machine.facts import cxx_version
    from inductor_probe.machine.toolchain import compile_command

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
