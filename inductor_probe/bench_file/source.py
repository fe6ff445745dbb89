"""The text of a bench file: `output_code.py`, copies to edit, inputs, a reference, the harness's core."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import libcst as cst
from msgspec import Struct

import inductor_probe.harness
from inductor_probe.bench_file.compile_settings import compile_settings, in_todays_places
from inductor_probe.bench_file.constants import Constants, graph_constants
from inductor_probe.bench_file.inputs import make_inputs_source
from inductor_probe.bench_file.reference import ReferenceSource, reference_source
from inductor_probe.bench_file.sections import Sections, Statement, cut, defined, kernel_name, source_of
from inductor_probe.harness import CASTS, COLLECTIVES, CORE, HEAD, ONE_RANK, ONLY_ON_GPU, ORDERS, STAND_INS
from inductor_probe.harness.options import LAST_LINE
from inductor_probe.machine.gpu import names_gpu
from inductor_probe.model.layouts import InputBound
from inductor_probe.model.manifest import ConstantFact, InputFact
from inductor_probe.reader.fx import torch_version
from inductor_probe.reader.output_code import parse_output_code
from inductor_probe.variants.code import renamed

_GONE = "\0"
_BLANK_LINES = re.compile(r"\n\n\n+")
_FOR_OUR_TOOLS = re.compile(r"  # (?:noqa|type: ignore)\b[^\n]*")
_CODE_FILES = {False: "output_code.py", True: "a wrapper in C++, whose `call` is put as Python here,"}
_DOC = '''"""Bench file of {graph}: check and time its kernels, and edited copies of them.

Made from {code}{by}; needs torch{triton} only.

    python output_code_bench.py             check every copy, time the right ones (--help: options)
    probe bench-kernel {graph}

Each kernel stands here as dumped, with a copy NAME_v2 below it; call_v2 is the wrapper that uses the
copies. Edit a _v2 and run this file: a copy that computes anything else is shown where it is wrong, and
not timed. More copies (NAME_v3) are found by their names. Leave the rest: it is what they are compared to.
"""'''
_STOOD_IN = (
    "the wrapper in C++ runs an operator by number, and the dump does not hold its arguments: "
    "what it returns is random here"
)
_NARROWS = re.compile(r"\.(?:convert_element_type|_to_copy)\.default\(.*\btorch\.(?:b?float16)\b")
_RULE = "# " + "-" * 98
_WIDTH = 96
_ONE_RANK_TITLE = "In the place of a process group, which is not here"
_CORE_TITLE = "The core of inductor_probe's harness: nothing below depends on the graph"


def bench_source(
    output_code: str,
    runnable: str | None,
    graph: str,
    facts: Sequence[InputFact] = (),
    path: Path | str = "output_code.py",
    *,
    bounds: Sequence[InputBound] | None = None,
    readable: str | None = None,
    constants: Sequence[ConstantFact] | None = None,
    of_cpp: bool = False,
) -> str:
    """Return the bench file of a graph.

    Args:
        output_code: text of `output_code.py`; `path` is what an error names.
        runnable: text of `fx_graph_runnable.py`, or None when there is none.
        graph: name of the graph's folder.
        facts: what its inputs were, if known.
        bounds: which values its inputs may take; None where nobody looked for it.
        readable: text of `fx_graph_readable.py`, for graphs with modules inside; None when there is none.
        constants: what the dump keeps of them; None in a dump from before it did.
        of_cpp: `output_code` is made of a wrapper in C++: see `code_as_python`.

    Raises:
        UnreadableError: `output_code` is not a whole `output_code.py`.
    """
    output_code = in_todays_places(output_code)
    sections = cut(output_code, path)
    made = graph_constants(sections.tail, source_of(sections.wrapper), sections.names, constants, bounds)
    reference = reference_source(runnable, readable, made)
    if of_cpp and f"{STAND_INS}(" in source_of(sections.wrapper):
        reference = ReferenceSource(None, _STOOD_IN)
    version = torch_version(runnable or "")
    dumped = source_of(sections.imports)
    settings = compile_settings(parse_output_code(output_code, Path(path)), runnable)
    triton = " and triton" if "async_compile.triton(" in output_code else ""
    title = graph
    if set(graph) & set('"\\') or not graph.isprintable():  # else it would end or change the text around it
        title = repr(graph)[1:-1].replace('"', '\\"')
    inputs, sizes = make_inputs_source(sections.tail, runnable, facts, bounds)
    collectives = COLLECTIVES in source_of(
        sections.wrapper
    )  # stand-ins of shims above it name them in any case
    one_rank = [_titled(_ONE_RANK_TITLE, pasted(ONE_RANK, {}))] if collectives else []
    made_core = core(gpu=names_gpu(output_code))
    torch_imports = [line for line in made_core.torch_imports if line not in dumped.splitlines()]
    parts = [
        _DOC.format(
            graph=title, code=_CODE_FILES[of_cpp], by=f" of torch {version}" if version else "", triton=triton
        ),
        "\n".join(["from __future__ import annotations\n", *made_core.imports, "\n"])
        + _head(graph, sections.names, sizes, reference)
        + ("\nWRAPPER_IN_CPP = True" if of_cpp else ""),
        "\n".join([made_core.options, "", _START + (_CONSTANTS if made.source else ""), *torch_imports]),
        _titled("As output_code.py has it: imports and names", dumped),
        *one_rank,
        *([_titled("How the C++ below has to be compiled", settings)] if settings else []),
        _titled("Kernels, each with a copy to edit", _kernels(sections)),
        _titled("The wrapper, with a copy to edit", _wrapper(sections)),
        *([_titled("Constants", _constants(made))] if made.source else []),
        _titled("Inputs", f"{made_core.orders}\n\n\n{inputs}" if "form=" in inputs else inputs),
        _titled("The reference: the graph as aten operations", _reference(reference)),
        _titled(_CORE_TITLE, made_core.code),
        'if __name__ == "__main__":\n    sys.exit(main(Bench(globals(), OPTIONS.size), OPTIONS))',
    ]
    return "\n\n\n".join(parts) + f"\n{LAST_LINE}\n"


_START = """if __name__ == "__main__":
    OPTIONS = read_options(GRAPH, KERNELS, SIZES, Path(__file__).read_text(encoding="utf-8"))
"""
_CONSTANTS = """    sys.exit(f"this graph has constants, which are loaded by: probe bench-kernel {GRAPH}")
"""


def _head(graph: str, kernels: Sequence[str], sizes: Mapping[str, int], reference: ReferenceSource) -> str:
    names = ", ".join(map(repr, kernels))
    if len(names) > _WIDTH:
        names = "".join(f"\n    {name!r}," for name in kernels) + "\n"
    return "\n".join(
        [
            f"GRAPH = {graph!r}",
            f"KERNELS = [{names}]",
            f"SIZES = {dict(sizes)!r}",
            f"NO_REFERENCE = {reference.why_not!r}",
        ]
    )


def _kernels(sections: Sections) -> str:
    names = {name: f"{name}_v2" for name in sections.names}
    body: list[Statement] = []
    for statement in sections.kernels:
        body.append(statement)
        if name := kernel_name(statement):
            copy = renamed(statement, names, names)
            blank = cst.EmptyLine(indent=False)
            title = cst.EmptyLine(comment=cst.Comment(f"# {name}_v2: a copy of the kernel above, to edit"))
            body.append(copy.with_changes(leading_lines=[blank, blank, title]))
    return source_of(body)


def _wrapper(sections: Sections) -> str:
    wrapper_names = [name for statement in sections.wrapper for name in defined(statement)]
    names = {name: f"{name}_v2" for name in (*sections.names, *wrapper_names)}
    copies = [
        renamed(statement, names, sections.names)
        for statement in sections.wrapper
        if "recursively_apply_fns" not in defined(statement)  # for CUDA graphs: nothing here calls it
    ]
    return f"{source_of(sections.wrapper)}\n\n\n{source_of(copies)}"


def _reference(reference: ReferenceSource) -> str:
    if reference.source is None:
        return f"# None: {reference.why_not}.\n# Copies are compared to the pristine call alone."
    casts = [pasted(CASTS, {})] if _NARROWS.search(reference.source) else []
    imports = "import torch._inductor.inductor_prims\nfrom torch import device, tensor"
    return "\n\n\n".join([imports, *casts, reference.source])


def _constants(made: Constants) -> str:
    lines = "".join(f"\n    {name!r}: {kernels!r}," for name, kernels in made.takes.items())
    return f"{made.source}\n\n\nTAKES = {{  # which kernels and library calls take a constant{lines}\n}}"


def _titled(title: str, code: str) -> str:
    return f"{_RULE}\n# {title}\n{_RULE}\n\n\n{code}"


class Core(Struct, frozen=True):
    """What is pasted into a bench file: imports, code above the kernels, and code below all else.

    `orders` goes above `make_inputs`, where that puts values into an order.
    """

    imports: tuple[str, ...]
    torch_imports: tuple[str, ...]
    options: str
    code: str
    orders: str


@cache
def core(gpu: bool) -> Core:
    """Return what is pasted, for a graph that runs on a GPU or one that does not.

    Two modules that say `from typing import Any` and `from typing import TypeAlias` make one line of both.
    """
    names: dict[str, set[str]] = {"sys": set(), "pathlib": {"Path"}}
    left_out = () if gpu else ONLY_ON_GPU
    options = [pasted(stem, names) for stem in HEAD]
    code = [pasted(stem, names) for stem in CORE if stem not in left_out]
    lines = [
        f"from {module} import {', '.join(sorted(imported, key=str.swapcase))}"
        if imported
        else f"import {module}"
        for module, imported in names.items()
    ]
    lines.sort(key=lambda line: (line.startswith("from"), line))
    of_torch = [line for line in lines if line.split(maxsplit=2)[1].startswith("torch")]
    others = [line for line in lines if line not in of_torch]
    return Core(
        tuple(others), tuple(of_torch), "\n\n".join(options), "\n\n".join(code), pasted(ORDERS, names)
    )


def pasted(stem: str, names: dict[str, set[str]]) -> str:
    """Return a module of the harness as bench files have it; what it imports goes to `names`."""
    path = Path(inductor_probe.harness.__file__).with_name(f"{stem}.py")
    text, end = path.read_text(encoding="utf-8"), 0
    tree = ast.parse(text)
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        end = node.end_lineno or end
        module = (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        if module.partition(".")[0] not in ("inductor_probe", "__future__"):
            imported = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else ()
            names.setdefault(module, set()).update(imported)
    title = "\n".join(f"# {line}".rstrip() for line in (ast.get_docstring(tree) or "").splitlines())
    code = _BLANK_LINES.sub(
        "\n\n", "\n".join(line for line in _with_short_docs(text, tree)[end:] if line != _GONE).strip()
    )
    return f"{title}\n\n{_FOR_OUR_TOOLS.sub('', code)}"


def _with_short_docs(text: str, tree: ast.Module) -> list[str]:
    """Return the lines of a module; all but the first of a docstring, and all of a method's, are _GONE."""
    lines = text.split("\n")
    for node in ast.walk(tree):
        parts = getattr(node, "body", []) if isinstance(node, ast.ClassDef | ast.Module) else []
        for part in parts:
            if not isinstance(part, ast.FunctionDef | ast.ClassDef) or ast.get_docstring(part) is None:
                continue
            first, last = part.body[0].lineno, part.body[0].end_lineno or 0
            if isinstance(node, ast.ClassDef) and len(part.body) > 1:
                lines[first - 1 : last] = [_GONE] * (last - first + 1)
                if not lines[last].strip():
                    lines[last] = _GONE
            elif last > first:
                lines[first - 1] += '"""'
                lines[first:last] = [_GONE] * (last - first)
    return lines


def other_harness(text: str) -> bool:
    """Tell whether the core in a bench file is not that of this version: of another one, or edited."""
    return not any(one.code in text and one.options in text for one in (core(gpu=False), core(gpu=True)))


def is_complete(text: str) -> bool:
    """Tell whether a bench file has its last line.

    What a user appends behind it does not count: a file that was cut short anywhere has no last line.
    """
    return LAST_LINE in text.splitlines()
