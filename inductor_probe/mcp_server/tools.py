"""The table of tools: which verb each calls, what it may be asked, and what it does to the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import NODEFAULT, Struct

from inductor_probe.errors import ProbeError, near_names
from inductor_probe.model.flip import FLIP_KINDS
from inductor_probe.options.fields import input_schema, options_of
from inductor_probe.options.kernels import BenchKernelOptions
from inductor_probe.options.programs import (
    AccuracyOptions,
    DumpOptions,
    ExpectOptions,
    OverviewOptions,
    WhatifOptions,
)
from inductor_probe.options.reading import (
    DiffOptions,
    ExplainOptions,
    FusionOptions,
    KernelsOptions,
    LayoutsOptions,
    RunsOptions,
    ShowOptions,
    WhyOptions,
)
from inductor_probe.report.json_form import JsonForm

MOST_ROWS = 20


class Tool(Struct, frozen=True):
    """A tool: a verb of the package, as programs call it.

    Attributes:
        name: of the tool. record: what it is asked for. about: what a client reads of it.
        runs: what of it runs code: nothing; a script, where the program is one; or all of it.
        verb: its name in `inductor_probe`, where that differs.
        takes_s: about how long it takes beside its `budget`, in seconds.
        reading: options that it has where nothing may run, whatever it is asked for.
        without: what it is not asked for.
        page: whether its answer is about a run, whose page clients may show.
    """

    name: str
    record: type[Struct]
    about: str
    runs: Literal["nothing", "scripts", "all"] = "nothing"
    verb: str = ""
    takes_s: float = 1.0
    reading: Mapping[str, Any] = {}
    without: Sequence[str] = ()
    page: bool = False

    def may_run(self, *, allow_run: bool) -> bool:
        """Whether a call of it may run code: what only runs scripts reads without."""
        return self.runs == "all" or (self.runs == "scripts" and allow_run)

    @property
    def names(self) -> tuple[str, ...]:
        """What it may be asked for."""
        return tuple(
            name for name in self.record.__struct_fields__ if name not in (*_NOT_ASKED, *self.without)
        )

    def options(self, arguments: Mapping[str, Any], *, allow_run: bool) -> Struct:
        """Return the record of what is asked for.

        Raises:
            ProbeError: no such option, a value of another type, or one that has to be given is missing.
        """
        if unknown := next((name for name in arguments if name not in self.names), None):
            raise ProbeError(
                f"{self.name} has no argument {unknown}", near_names(unknown, self.names), code="usage"
            )
        fixed = _FIXED if allow_run else {**_FIXED, **self.reading}
        known = self.record.__struct_fields__
        values = {**arguments, **{name: value for name, value in fixed.items() if name in known}}
        try:
            made: Struct = msgspec.convert(values, self.record, dec_hook=lambda kind, value: kind(value))
        except msgspec.ValidationError as error:
            raise ProbeError(
                f"{self.name}: {error}", "the tool's input schema says what it takes", code="usage"
            ) from error
        return made

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its arguments: those of the verb, and how much of the answer it gives."""
        made = input_schema(self.record)
        definitions = made["$defs"]
        own = definitions.pop(self.record.__name__)
        shown = {name: own["properties"][name] for name in self.names} | _LIMITS
        shown |= _OF_A_JOB if self.runs != "nothing" else {}
        needed = [option.name for option in options_of(self.record) if option.default is NODEFAULT]
        schema = {"type": "object", "properties": shown, "additionalProperties": False}
        if needed:  # but for a job that is there
            schema["anyOf"] = [{"required": needed}, {"required": ["job"]}]
        slim: dict[str, Any] = _slim({**schema, **({"$defs": definitions} if definitions else {})})
        return slim


_FIXED = {"stdout_to_stderr": True}
_NOT_ASKED = {"trust", "form", "output", "stdout_to_stderr", "exact", "again"}
"""What no client decides: whether a stranger's code runs, and where a process prints."""
_LIMITS: dict[str, Any] = {
    "fields": {"type": "array", "items": {"type": "string"}, "description": "Keys of data: rows.outcome."},
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "description": "Rows at most."},
    "offset": {"type": "integer", "minimum": 0, "description": "Skip the first N rows."},
}  # fmt: skip
_OF_A_JOB: dict[str, Any] = {
    "job": {"type": "string", "description": "Go on waiting for this job alone."},
    "cancel": {"type": "boolean", "description": "End that job."},
    "wait_s": {"type": "number", "minimum": 0, "description": "Then answer with a job id. [50]"},
}  # fmt: skip
OF_AN_ANSWER = (*_LIMITS, *_OF_A_JOB)
"""Arguments about how much of an answer is wanted, and when: no part of what is asked for."""
OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
}
"""Of every tool. An answer has `data` with `cut` and `rest`, or `job` and how long it takes.

The schema of data is what `probe VERB --json-schema` prints: here it would be most of what a client reads.
"""


def asked_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that say what is asked for, not how much of it."""
    return {name: value for name, value in arguments.items() if name not in OF_AN_ANSWER}


def form_of(arguments: Mapping[str, Any]) -> JsonForm:
    """Return how much of an answer is wanted.

    Raises:
        ProbeError: a value that is none of its type.
    """
    given = {name: arguments[name] for name in _LIMITS if name in arguments}
    try:
        form = msgspec.convert({"limit": MOST_ROWS, **given}, JsonForm)
    except msgspec.ValidationError as error:
        raise ProbeError(
            str(error), "fields is a list of keys, limit and offset are numbers", code="usage"
        ) from error
    return msgspec.structs.replace(
        form, limit=min(max(form.limit or 1, 1), MOST_ROWS), offset=max(form.offset, 0)
    )


def _slim(schema: Any) -> Any:
    """Return a schema without what a client can do without: defaults that are nothing, titles, null."""
    if isinstance(schema, list):
        return [_slim(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = [part for part in schema.get("anyOf", ()) if part != {"type": "null"}]
    if len(kinds) == 1:
        schema = {**kinds[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
    empty = {"default": (None, (), [], {}, "", False), "title": (schema.get("title"),), "required": ([],)}
    return {
        key: _slim(value)
        for key, value in schema.items()
        if key in ("properties", "$defs") or not (key in empty and value in empty[key])
    }


TOOLS: tuple[Tool, ...] = (
    Tool("runs", RunsOptions, "The runs below the root, the latest first: their labels name them elsewhere."),
    Tool(
        "dump", DumpOptions, "Run a script that calls torch.compile, and dump what inductor compiles; give "
        "it a label.", "all", takes_s=25, without=[kind.replace("-", "_") for kind in FLIP_KINDS],
    ),
    Tool(
        "overview", OverviewOptions, "Begin here when a program is slow: its call against eager, where the "
        "time goes, what was missed there, what to try.", "scripts", takes_s=45,
        reading={"measure": False, "operators": False}, page=True,
    ),
    Tool("why", WhyOptions, "Each decision of the compiler: cause, numbers compared, what would change it."),
    Tool("explain", ExplainOptions, "What the code of a cause means: [short-inner-range]."),
    Tool("show", ShowOptions, "One graph, node, buffer, kernel or source line; code: the text of a kernel."),
    Tool("layouts", LayoutsOptions, "Strides of buffers, and which nodes write and read them how."),
    Tool("fusion", FusionOptions, "What was fused when, and what was refused why."),
    Tool("kernels", KernelsOptions, "The generated kernels: nodes, bytes, launches, remarks."),
    Tool("diff", DiffOptions, "What changed between two runs or graphs."),
    Tool(
        "whatif", WhatifOptions, "Prove a change: compile otherwise (settings, decisions turned by name, "
        "try_all), check both, time them in turns, and give a verdict.", "all", takes_s=45,
    ),
    Tool(
        "bench", BenchKernelOptions, "Check and time edited kernels: variants NAME_v2=FILE has FILE's text.",
        "all", "bench_kernel", takes_s=45,
    ),
    Tool(
        "accuracy", AccuracyOptions, "Is a program right compiled? If not: which operator, line and layer.",
        "all", takes_s=30,
    ),
    Tool(
        "expect", ExpectOptions, "Is a graph as it should be: kernels, fusions, layouts, no copy; with the "
        "decision where not.", "scripts", takes_s=2,
    ),
)  # fmt: skip
BY_NAME = {tool.name: tool for tool in TOOLS}
