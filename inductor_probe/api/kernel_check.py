"""Triton kernels checked without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.kernel_check import CheckKernelOutput, KernelCheck
from inductor_probe.model.output import Output
from inductor_probe.report.document import Document
from inductor_probe.report.pages.kernel_check import kernel_check_page
from inductor_probe.report.shown import Shown
from inductor_probe.report.words.kernel_check import summary

if TYPE_CHECKING:
    from inductor_probe.api.on_disk import GraphOnDisk
    from inductor_probe.model.bench import BenchFile, BenchSettings

LIMIT_S = 120.0


class CheckedKernels(Shown):
    """What triton's interpreter found of a graph's kernels; shows itself. `record` has all of it."""

    def __init__(self, record: KernelCheck) -> None:
        self.record = record

    @property
    def right(self) -> bool:
        """Whether everything that was to be checked was shown to be right."""
        return self.record.right

    @property
    def output(self) -> Output:
        """What `--json` prints, as a record."""
        return CheckKernelOutput(check=self.record, summary=summary(self.record))

    @property
    def document(self) -> Document:
        """The verdict, a row for each kernel and variant, and what is wrong."""
        return kernel_check_page(self.record)


def check_graph(
    graph: GraphOnDisk,
    file: BenchFile,
    settings: BenchSettings,
    *,
    limit: float,
    trust: bool,
    progress: Callable[[str], None] | None = None,
) -> CheckedKernels:
    """Run a graph's bench file on the CPU, its kernels in triton's interpreter: see `Graph.check_kernel`."""
    from inductor_probe.api.trust import source_to_run
    from inductor_probe.bench.interpreted import check_interpreted

    source = source_to_run(graph, settings, trust=trust, launched=False)
    return CheckedKernels(check_interpreted(file.path, source, settings, limit, progress))


def require_checkable(graph: GraphOnDisk, settings: BenchSettings, *, trust: bool) -> None:
    """Refuse a graph, or a kernel of it, that triton's interpreter cannot check, or that may not run.

    Raises:
        ProbeError: it has no Triton kernels, or may not run: see `require_trust`.
        NotFoundError: it has none of that name; near names are offered.
    """
    from inductor_probe.api.trust import require_trust

    kernel = settings.kernel
    kernels = graph.generated.code.kernels if graph.generated.code else ()
    names = [one.name for one in kernels if one.backend == "triton"]
    others = sorted({one.backend for one in kernels})
    if not names:
        what = f"kernels in {' and '.join(others)}, and none in Triton" if others else "no kernels"
        raise ProbeError(
            f"{graph.name} has {what}",
            "probe bench-kernel checks the others" if others else None,
        )
    if kernel is not None and kernel not in names:
        raise NotFoundError(f"{graph.name} has no Triton kernel {kernel}", near_names(kernel, names))
    require_trust(graph, trust=trust, imports=settings.imports, rewriting=True, launched=False)
