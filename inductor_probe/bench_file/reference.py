"""The reference: the graph as aten operations, from the `Repro` module of `fx_graph_runnable.py`."""

from __future__ import annotations

import re
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from inductor_probe.bench_file.sections import parse
from inductor_probe.bench_file.submodules import with_submodules
from inductor_probe.errors import UnreadableError

# fx writes small state as `torch.tensor(...)`, and large state as random numbers in its place.
_LOST_STATE = re.compile(r"torch\.rand(?:n|int)\(|torch\.load\(")
_LOAD_ARGS = re.compile(r"^def load_args\(", re.MULTILINE)
# fx leaves one for each line of state that there is not.
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")


@dataclass(frozen=True, slots=True)
class ReferenceSource:
    """The module `AtenGraph` as source, or None and in `why_not` the reason."""

    source: str | None
    why_not: str = ""


def reference_source(runnable: str | None, readable: str | None = None) -> ReferenceSource:
    """Take the module out of the text of `fx_graph_runnable.py`; modules inside it out of `readable`."""
    if runnable is None:
        return ReferenceSource(None, "there is no fx_graph_runnable.py next to output_code.py")
    try:
        # What follows the module is no Python where the graph has no inputs: `load_args` has no body then.
        text, inside = with_submodules(_LOAD_ARGS.split(runnable)[0], readable)
        module = parse(text, "fx_graph_runnable.py")
    except UnreadableError as error:
        return ReferenceSource(None, error.message)
    found = [each for each in module.body if m.matches(each, m.ClassDef(name=m.Name("Repro")))]
    if not found:
        return ReferenceSource(None, "fx_graph_runnable.py has no module Repro")
    repro = cst.ensure_type(found[0], cst.ClassDef)
    methods = {
        each.name.value: module.code_for_node(each)
        for each in repro.body.body
        if isinstance(each, cst.FunctionDef)
    }
    if _LOST_STATE.search(methods.get("__init__", "")):
        return ReferenceSource(None, "the graph has constants whose values the dump does not hold")
    graph = repro.with_changes(name=cst.Name("AtenGraph"), leading_lines=[])
    own = _BLANK_LINES.sub("\n\n", module.code_for_node(graph).strip())
    return ReferenceSource(f"{inside}\n\n\n{own}" if inside else own)
