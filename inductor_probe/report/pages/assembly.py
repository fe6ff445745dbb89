"""What a kernel was compiled to: resources, occupancy, and how wide its instructions are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from inductor_probe.model.assembly import (
    AccessKind,
    AsmOutput,
    CompiledConfig,
    CompiledKernel,
    Limit,
    MachineLoop,
    WarpAccess,
)
from inductor_probe.model.code import Pairs
from inductor_probe.report.document import Block, Cell, Code, Column, Document, Heading, Line, Table
from inductor_probe.report.units import bytes_text, counted
from inductor_probe.report.words.assembly import (
    SECTORS,
    compiler_sentence,
    figure_words,
    pattern_text,
    warp_sentence,
    worst_access,
)

_LANGUAGES = {"ttir": "mlir", "ttgir": "mlir", "llir": "llvm", "ptx": "ptx", "sass": ""}
_LIMITS: dict[Limit, str] = {
    "threads": "threads", "registers": "registers", "shared-memory": "shared memory", "blocks": "blocks",
}  # fmt: skip
_PLACE = re.compile(
    r'// kernel\.py:(?P<ptx>\d+):\d+|//## File "kernel\.py", line (?P<sass>\d+)|^kernel\.cpp:(?P<cpp>\d+).*',
    re.MULTILINE,
)
_CONFIGS = (
    Column("config", fold="never"),
    Column("registers", right=True, fold="never"),
    Column("stack", right=True, fold="never"),
    Column("shared", right=True, fold="never"),
    Column("blocks", right=True, fold="never", rank=2),
    Column("occupancy", right=True, fold="never"),
    Column("SASS", right=True, fold="never", rank=3),
    Column("loads", right=True, fold="never", rank=1),
    Column("stores", right=True, fold="never", rank=1),
    Column("limited by", fold="words", rank=4),
)
_OWN = ("inductor", "recorded")
_FROM = Column("from", fold="never", rank=5)
_LOOPS = (
    Column("nest", right=True, fold="never"),
    Column("kind", fold="never"),
    Column("lines", right=True, fold="never"),
    Column("instructions", right=True, fold="never"),
    Column("512 bits", right=True, fold="never"),
    Column("256 bits", right=True, fold="never"),
    Column("128 bits", right=True, fold="never"),
    Column("scalar floats", right=True, fold="never", rank=1),
    Column("calls", right=True, fold="never"),
)
_COMPARED = (Column("", fold="never"), Column("A", fold="words"), Column("B", fold="words"))
_ACCESSES = (
    Column("line", right=True, fold="never"),
    Column("code"),
    Column("instruction", fold="never"),
    Column("bits a thread", right=True, fold="never", rank=2),
    Column("times", right=True, fold="never", rank=3),
    Column("warp"),
    Column("sectors", right=True, fold="never"),
    Column("once", right=True, fold="never", rank=1),
    Column("best", right=True, fold="never"),
)


def asm_page(record: AsmOutput) -> Document:
    """Return the page of a kernel: a row for each config of Triton, or for each loop of C++."""
    kernel, *others = record.kernels
    if others:
        yield from _compared(record)
        return
    versions = ", ".join([kernel.architecture, *(f"{name} {version}" for name, version in kernel.compilers)])
    yield Heading([(kernel.kernel, "bold"), f"  {versions}"])
    here = dict(kernel.compilers)
    differing = [(name, version) for name, version in kernel.dumped_by if here.get(name, version) != version]
    if differing:
        names = " and ".join(f"{name} {version}" for name, version in differing)
        yield Line(f"the dump was made with {names}: what it was compiled to there may differ")
    if kernel.backend == "cpp":
        yield from _loops(kernel)
        return
    made = [config for config in kernel.configs if config.failure is None]
    if made:
        yield Line(_sentence(made[0]))
        same = tuple(pair for pair in made[0].config if all(pair in one.config for one in made))
        same = same if made[1:] else ()
        several = len({config.origin for config in made}) > 1
        columns = (*_CONFIGS, _FROM) if several else _CONFIGS
        rows = [_row(config, same, several=several) for config in made]
        yield Table(columns, rows, 2)
        if same:
            yield Line((f"all configs: {_joined(same)}", "dim"), 2)
        if several:
            yield Line(_origins(made), 2)
    for config in kernel.configs:
        if config.failure is not None:
            yield Line(f"{_joined(config.config)}: not compiled: {config.failure}")
    if made:
        yield from _accesses(kernel, made[0], several=len(made) > 1)
        for stage, text in made[0].stages:
            yield Line()
            yield Heading([(stage, "bold"), f"  of {_joined(made[0].config)}"], 2)
            yield Code(_with_lines(text, kernel), _LANGUAGES[stage])


def _compared(record: AsmOutput) -> Iterator[Block]:
    """Yield what differs between two kernels: figures side by side, then lines of the texts."""
    alike = len({kernel.kernel for kernel in record.kernels}) == 1
    for label, kernel in zip("AB", record.kernels, strict=True):
        file = kernel.path if alike else kernel.path.name
        versions = ", ".join(f"{program} {version}" for program, version in kernel.compilers)
        yield Line([(f"{label}  ", "bold"), f"{kernel.kernel}  {file}:{kernel.first}  {versions}"])
        for config in kernel.configs:
            if config.failure is not None:
                yield Line(f"{_joined(config.config)}: not compiled: {config.failure}", 3)
    differing = [figure for figure in record.figures if figure.a != figure.b]
    same = [figure for figure in record.figures if figure.a == figure.b and figure.a != "0"]
    if differing:
        yield Table(_COMPARED, [[figure_words(one.name), one.a or "-", one.b or "-"] for one in differing], 2)
    else:
        yield Line("no figure differs", 2)
    if same:
        words = ", ".join(f"{figure_words(one.name)} {one.a}" for one in same)
        yield Line((f"the same: {words}", "dim"), 2)
    for text in record.texts:
        yield Line()
        if not text.lines:
            yield Line(f"{text.stage}: the same but for names of registers, addresses and places", 2)
            continue
        yield Heading([(text.stage, "bold"), "  of A (-) and B (+); names of registers count as the same"], 2)
        yield Code("\n".join(text.lines), "diff")


def _loops(kernel: CompiledKernel) -> Iterator[Block]:
    if not kernel.loops:
        yield Line("no loop of its machine code belongs to a loop nest: all are unrolled, or it has none")
    for loop in kernel.loops:
        yield Line(_loop_sentence(kernel, loop))
    rows: list[list[Cell]] = []
    for loop in kernel.loops:
        packed = dict(loop.packed)
        lines = f"{kernel.first + loop.first - 1}-{kernel.first + loop.last - 1}"
        numbers = [
            loop.instructions,
            packed.get(512, 0),
            packed.get(256, 0),
            packed.get(128, 0),
            loop.scalar,
            loop.calls,
        ]
        rows.append([str(loop.nest + 1), loop.kind, lines, *map(str, numbers)])
    if rows:
        yield Table(_LOOPS, rows, 2)
    if kernel.code:
        yield Line()
        yield Heading([("machine code", "bold")], 2)
        yield Code(_with_lines(kernel.code, kernel), "objdump")


def _loop_sentence(kernel: CompiledKernel, loop: MachineLoop) -> str:
    """Say what the hot loop of a nest is made of, and what the compiler's vectoriser says of it."""
    place = f"{kernel.path.name}:{kernel.first + loop.first - 1}"
    vectors = " and ".join(f"{count} on vectors of {bits} bits" for bits, count in loop.packed)
    made = f"{loop.instructions} instructions, {vectors or 'none on vectors'}"
    if loop.calls:
        made += f", {counted(loop.calls, 'call')}"
    text = f"innermost loop of nest {loop.nest + 1} ({loop.kind}, {place}): {made}"
    if loop.remark is None or (loop.packed and loop.remark.code != "vectorised"):
        return text
    off = kernel.compiler is not None and kernel.compiler.turned_off
    if loop.packed and off:
        return text  # the vectors are inductor's
    named = f"{kernel.path.name}:{kernel.first + loop.remark.line - 1}"
    return f"{text}; {compiler_sentence(loop.remark, turned_off=off, place=named)}"


def _sentence(config: CompiledConfig) -> str:
    """Say how narrow and wide a thread reaches memory: what coalesced accesses are made of."""
    parts = []
    for kind in ("load", "store"):
        widths = {access.bits: access for access in config.accesses if access.kind == kind}
        if not widths:
            continue
        narrow, wide = widths[min(widths)], widths[max(widths)]
        text = f"{kind}s of {narrow.bits} bits a thread ({narrow.text})"
        if wide is not narrow:
            text = f"{kind}s of {narrow.bits} ({narrow.text}) to {wide.bits} bits a thread ({wide.text})"
        parts.append(text)
    if config.stack_bytes:
        parts.append(
            f"{config.stack_bytes} bytes of stack a thread: registers are spilled, or arrays lie there"
        )
    reached = "; ".join(parts) or "nothing reaches global memory"
    return f"with {_joined(config.config)}: {reached}"


def _row(config: CompiledConfig, same: Pairs, *, several: bool) -> list[Cell]:
    """Return the row of a config; with `several` origins it says which, and marks those of inductor."""
    blocks, share, limits = "?", "?", "?"
    if config.occupancy:
        blocks, share = str(config.occupancy.blocks), f"{config.occupancy.share:.0%}"
        limits = " and ".join(_LIMITS[limit] for limit in config.occupancy.limits)
    mark = ("* " if config.origin in _OWN else "  ") if several else ""
    row: list[Cell] = [
        mark + _joined(tuple(pair for pair in config.config if pair not in same)),
        "?" if config.registers is None else str(config.registers),
        bytes_text(config.stack_bytes),
        bytes_text(config.shared_bytes),
        blocks,
        share,
        "?" if config.instructions is None else str(config.instructions),
        _widths(config, ("load", "copy")),
        _widths(config, ("store",)),
        limits,
    ]
    return [*row, config.origin] if several else row


def _widths(config: CompiledConfig, kinds: tuple[AccessKind, ...]) -> str:
    """Return how many bits a thread moves at once: `8-128` from the narrowest to the widest."""
    widths = sorted({access.bits for access in config.accesses if access.kind in kinds})
    return "-" if not widths else "-".join(map(str, dict.fromkeys((widths[0], widths[-1]))))


def _origins(made: Sequence[CompiledConfig]) -> str:
    """Say which of the configs are inductor's, and whether it times them."""
    own = [config for config in made if config.origin in _OWN]
    if len(own) == 1:
        return "* inductor's: it tries no other"
    return f"* inductor's: it times these {len(own)} when the kernel is first called"


def _accesses(kernel: CompiledKernel, config: CompiledConfig, *, several: bool) -> Iterator[Block]:
    if not config.accesses:
        return
    lines = kernel.source.split("\n")
    cells: list[list[Cell]] = []
    for access in config.accesses:
        reached = [row for row in config.warp_accesses if (row.line, row.kind) == (access.line, access.kind)]
        known = access.line is not None and access.line <= len(lines)
        place = f"{kernel.first + access.line - 1}" if access.line is not None else "?"
        code = lines[access.line - 1].strip() if known and access.line is not None else ""
        cells.append([place, code, access.text, str(access.bits), str(access.count), *_warp_cells(reached)])
    title = f"global memory, lines of {kernel.path.name}"
    yield Line()
    yield Heading([(title, "bold"), f"  with {_joined(config.config)}" if several else ""], 2)
    yield Table(_ACCESSES, cells, 2)
    if config.warp_accesses:
        yield Line((SECTORS, "dim"), 2)
    if row := worst_access(config.warp_accesses):
        yield Line(warp_sentence(row, f"{kernel.path.name}:{kernel.first + row.line - 1}"), 2)


def _warp_cells(rows: Sequence[WarpAccess]) -> list[Cell]:
    """Return how a warp reaches memory in a line, and its sectors, of the access that touches most."""
    if not rows:
        return ["?", "?", "?", "?"]
    most = max(rows, key=lambda row: row.sectors or 0.0)
    figures = (most.sectors, most.sectors_once, most.best)
    return [pattern_text(most), *("?" if figure is None else f"{figure:.3g}" for figure in figures)]


def _with_lines(text: str, kernel: CompiledKernel) -> str:
    """Put the line of the wrapper where PTX and machine code name a line of the kernel's own file."""
    lines = kernel.source.split("\n")

    def in_wrapper(match: re.Match[str]) -> str:
        line = int(match["ptx"] or match["sass"] or match["cpp"])
        code = lines[line - 1].strip() if line <= len(lines) else ""
        return f"// {kernel.path.name}:{kernel.first + line - 1}  {code}"

    return _PLACE.sub(in_wrapper, text)


def _joined(config: Pairs) -> str:
    return ", ".join(f"{name}={value}" for name, value in config) or "no parameters"
