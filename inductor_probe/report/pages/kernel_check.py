"""What check-kernel shows: the verdict, kernels and variants in a table, what is wrong or not known."""

from __future__ import annotations

from collections.abc import Iterator

from inductor_probe.model.kernel_check import InterpretedKernel, KernelCheck, is_interpreted
from inductor_probe.model.timing import OF_KERNELS, Variant, wrong_groups
from inductor_probe.report.document import Block, Cell, Column, Line, Name, RemarkLine, Table
from inductor_probe.report.units import duration
from inductor_probe.report.words.kernel_check import kernel_sentence, summary
from inductor_probe.report.words.remarks import sentence

_STYLES = {"right": "green", "wrong": "bold red"}
_WORDS = {"wrong": "WRONG", "not-judged": "not judged", "not-launched": "not launched",
          "not-decided": "not decided"}  # fmt: skip


def kernel_check_page(check: KernelCheck, *, timed: bool = True) -> Iterator[Block]:
    """Yield the verdict and the table; without `timed`, that times are missing for want of a GPU."""
    for group in wrong_groups(one for one in (check.call, *check.variants) if not one.unedited):
        style = "bold red" if is_interpreted(group[0]) else "bold yellow"
        yield Line((f"{kernel_sentence(group)}.", style))
    if check.call.correct and not check.compared:
        yield Line((f"{check.graph}: {summary(check)}.", "bold yellow"))
    if check.right:
        yield Line((f"{check.graph}: {summary(check)}.", "bold green"))
    error = check.call.max_error
    sets = f" on {check.rounds} sets of {check.values} inputs" if check.rounds > 1 else ""
    found = f"; largest error {error:.3g}" if error is not None and check.call.correct else ""
    against = ", against the graph in float64" if check.compared and is_interpreted(check.call) else ""
    versions = f"triton {check.triton} on the CPU, torch {check.torch}"
    yield Line(f"run by the interpreter of {versions}{sets}{against}{found}")
    if not timed:
        yield Line(("not timed: this machine has no GPU", "yellow"))
    yield Line()
    columns = [Column("kernel", fold="middle", least=24), Column("verdict", fold="never")]
    columns += [Column("programs", right=True, rank=2), Column("blocks", rank=3)]
    columns += [Column("interpreted in", right=True, rank=3)]
    yield Table(columns, list(_rows(check)))
    for operator in check.relaid:
        yield RemarkLine(
            "analysis", f"{operator} has other strides on the CPU: its result was laid out again"
        )
    for operator in check.by_formula:
        yield RemarkLine("analysis", f"{operator} has no kernel for the CPU: computed by its formula")
    for operator in check.drawn:
        text = "no kernel for the CPU: its results were drawn numbers, the same in the call and in the graph"
        yield RemarkLine("analysis", f"{operator} has {text}")
    remarks = [remark for one in (check.call, *check.variants) for remark in one.remarks]
    for text in dict.fromkeys(
        sentence(remark)
        for remark in (*check.warnings, *remarks)
        if check.right and remark.code not in OF_KERNELS
    ):
        yield RemarkLine("analysis", text)


def _rows(check: KernelCheck) -> Iterator[list[Cell]]:
    for kernel in check.kernels:
        yield _row(kernel)
        for variant in check.variants:
            if variant.name.startswith(f"{kernel.name}_v") and not variant.unedited:
                yield [Name(f"  {variant.name}"), _word(variant), "", "", ""]
    for variant in check.variants:
        if variant.name.startswith("call_v") and not variant.unedited:
            yield [Name(variant.name), _word(variant), "", "", ""]


def _row(kernel: InterpretedKernel) -> list[Cell]:
    word = (_WORDS.get(kernel.verdict, kernel.verdict), _STYLES.get(kernel.verdict, "yellow"))
    blocks = ", ".join(f"{name}={value}" for name, value in kernel.blocks)
    return [Name(kernel.name), word, str(kernel.programs), blocks, duration(kernel.seconds)]


def _word(variant: Variant) -> Cell:
    if variant.correct:
        return ("right", "green")
    return ("WRONG", "bold red") if is_interpreted(variant) else ("not judged", "yellow")
