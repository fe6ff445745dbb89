"""The bench file of a graph with the code of another graph in it, so that both take turns in one process.

`call` and the kernels are those of the first graph. `call_v3` is the wrapper of the other, and launches its
kernels; one that does the same work as a kernel of the first stands under that kernel's name (`k_v3`), and is
compared with it. There are no copies to edit.

Each side is code objects, kernels and libraries of its own: nothing is compiled by dynamo here, so that no
cache can hand one side the code of the other.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path

import libcst.matchers as m

from inductor_probe.bench_file.compile_settings import compile_settings, in_todays_places
from inductor_probe.bench_file.python_form import REUSE
from inductor_probe.bench_file.sections import WAIT, Statement, cut, defined, kernel_name, source_of
from inductor_probe.model.bench import OTHER_CODE
from inductor_probe.model.code import OutputCode
from inductor_probe.reader.output_code import parse_output_code
from inductor_probe.variants.code import Definition, definitions, renamed, split_name, wait_line

_END = f"_v{OTHER_CODE}"
_RULE = "# " + "-" * 98


def bench_of_two(
    source: str, other: str, partners: Mapping[str, str], *, runnable: str | None, path: Path
) -> str:
    """Return the bench file `source` with the code of another graph as its variants of number `OTHER_CODE`.

    Args:
        source: of the first graph, as it was made: without variants of the user's.
        other: text of the other graph's `output_code.py`, or of a wrapper in C++ its Python form; `path` is
            what an error names.
        partners: for kernels of the other graph those of the first that do the same work.
        runnable: text of the other graph's `fx_graph_runnable.py`, for how its C++ is to be compiled.

    Raises:
        UnreadableError: `other` is not a whole `output_code.py`.
    """
    other = in_todays_places(other)
    sections = cut(other, path)
    source = _without_copies(source)
    mine = {definition.name: definition for definition in definitions(source)}
    wrapper = [name for statement in sections.wrapper for name in defined(statement)]
    kernels = {name: f"{partners.get(name) or _free(name, mine)}{_END}" for name in sections.names}
    names = kernels | {name: f"{name}{_END}" for name in wrapper}
    shared = [
        statement
        for statement in (*sections.imports, *sections.kernels)
        if kernel_name(statement) is None and not m.matches(statement, WAIT)
    ]
    around = [statement for statement in shared if not _is_there(statement, source)]
    names |= {name: f"{name}{_END}" for part in around for name in defined(part) if name in mine}
    parsed = parse_output_code(other, path)
    settings = compile_settings(parsed, runnable)
    code = [
        *([settings] if settings else []),
        source_of([renamed(statement, names) for statement in around]),
        source_of(
            [renamed(statement, names, kernels) for statement in sections.kernels if kernel_name(statement)]
        ),
    ]
    lines = source.split("\n")
    row = _end_of_wrapper(source)
    lines[row:row] = [
        "",
        "",
        *source_of([renamed(part, names, kernels) for part in sections.wrapper]).split("\n"),
    ]
    if donated := _donated(parsed, other.split("\n")):
        row = next(number for number, line in enumerate(lines) if line.startswith("GRAPH = "))
        lines.insert(row + 1, f"DONATED = {donated!r}")
    wait = (wait_line("\n".join(lines)) or 1) - 1
    title = [_RULE, "# The other side: kernels that are compared with those above, or only launched", _RULE]
    lines[wait:wait] = [*title, "", *"\n\n".join(part for part in code if part).split("\n"), "", ""]
    return "\n".join(lines)


def _without_copies(source: str) -> str:
    """Return a bench file without the copies that it was made with."""
    lines: list[str | None] = list(source.split("\n"))
    for definition in definitions(source):
        if split_name(definition.name):
            lines[definition.first - 1 : definition.last] = [None] * (definition.last - definition.first + 1)
    return "\n".join(line for line in lines if line is not None)


def _free(name: str, mine: Mapping[str, Definition]) -> str:
    """Return a name for a kernel that no kernel of the first graph is to be compared with."""
    return f"{name}_other" if name in mine else name


def _is_there(statement: Statement, source: str) -> bool:
    """Tell whether the file says the same already, as it does with what inductor imports for every graph."""
    text = source_of([statement])
    return not text or f"\n{text}\n" in source or isinstance(ast.parse(text).body[0], ast.Delete)


def _end_of_wrapper(source: str) -> int:
    """Return the line of the end of `call`, which inductor defines last; 1-based."""
    after = wait_line(source) or 0
    return next(each.last for each in definitions(source) if each.name == "call" and each.first > after)


def _donated(code: OutputCode, lines: Sequence[str]) -> list[int]:
    """Return the inputs, by position, whose memory the wrapper gives to a buffer: `buf4 = x; del x  # reuse`.

    Inductor does that to no input but a donated one (`can_reuse` of torch/_inductor/codegen/wrapper.py asks
    for an `ir.DonatedBuffer`): a tensor that was saved for this backward graph, and has its memory for itself
    (`collect_bw_donated_buffer_idxs` of torch/_functorch/_aot_autograd/graph_compile.py). Nothing reads it
    after the call, so that writing to it changes no result.
    """
    reused = {
        allocation.of
        for allocation in code.allocations
        if allocation.span and lines[allocation.span.first - 1].rstrip().endswith(REUSE)
    }
    return [position for position, name in enumerate(code.inputs) if name in reused]
