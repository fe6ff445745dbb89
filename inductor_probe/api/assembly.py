"""A Triton kernel compiled ahead of time: what it takes of a GPU, and how wide it reaches memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from inductor_probe.api.session import Graph
from inductor_probe.api.trust import texts_to_run
from inductor_probe.api.verbs import open_kernel
from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.assembly import STAGES, AsmOutput
from inductor_probe.model.output import Output
from inductor_probe.report.document import Document
from inductor_probe.report.pages.assembly import asm_page
from inductor_probe.report.shown import Shown

if TYPE_CHECKING:
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
    trust: bool = False,
) -> Asm:
    """Compile a Triton kernel of a dump for a GPU that need not be there, with Triton's own compiler.

    That imports the kernel's text, in a process of its own, and launches nothing.

    Args:
        kernel: its name, or the start of it. target: a graph, or the name or path of a run or graph.
        arch: `sm_90`, or a GPU's name (`h200`); what the dump was made for if None.
        configs: each one or several: `XBLOCK=1024,num_warps=4`, `XBLOCK=512,1024`; inductor's own if empty.
        stages: those of which the text is wanted (`STAGES`).
        trust: compile text that is not known to be made here.

    Raises:
        NotFoundError: no such kernel, architecture or stage. ProbeError: it is no Triton kernel, has no such
            parameter, or may not be run. RunFailedError: this torch and Triton cannot compile it.
    """
    from inductor_probe.assembly.triton import architecture_of, compile_triton
    from inductor_probe.reader.output_code import parse_output_code

    for stage in stages:
        if stage not in STAGES:
            raise NotFoundError(
                f"no stage {stage!r}: there is {', '.join(STAGES)}", near_names(stage, STAGES)
            )
    architecture = architecture_of(arch) if arch else 0
    graph, name = (
        (target, target.kernel(kernel).name) if isinstance(target, Graph) else open_kernel(kernel, target)
    )
    row = graph.kernel(name)
    if row.backend != "triton":
        raise ProbeError(
            f"{name} is a {row.backend} kernel, and asm compiles those of Triton",
            f"probe export-cpp {name} makes a program for perf and Compiler Explorer"
            if row.backend == "cpp"
            else None,
        )
    texts = texts_to_run(graph, trust=trust, launched=False)
    path = graph.path / _CODE
    read = parse_output_code(texts.get(_CODE) or "", path).kernel(name)
    if read is None or not read.source or read.span is None:
        raise ProbeError(f"the text of {name} is not in {path}", "asm reads kernels of wrappers in Python")
    answers = [
        compile_triton(
            read.source, name, architecture=architecture, configs=_NEXT_NAME.sub(" ", text), stages=stages
        )
        for text in configs or ("",)
    ]
    return Asm(
        AsmOutput(
            graph=graph.name,
            kernel=name,
            path=Path(path),
            first=read.span.first,
            source=read.source,
            **{**answers[0], "configs": tuple(row for answer in answers for row in answer["configs"])},
        )
    )
