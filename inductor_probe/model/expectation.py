"""What somebody expects of a graph, so that it stays so: how many kernels, vectorised, fused, no copies.

An `Expectation` is what an option of `probe expect` says, and is read by one function. `analysis/expect.py`
holds it against the records of a graph; what comes of it is an `Checked` with the decisions that torch took
otherwise. There is no sentence here (`report/words/expect.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct

from inductor_probe.errors import ProbeError, near_names
from inductor_probe.model.cause import Cause
from inductor_probe.model.output import Output
from inductor_probe.model.remark import Number, Remark, RemarkCode
from inductor_probe.model.span import Problem

ExpectationKind: TypeAlias = Literal[
    "kernels", "vectorised", "fused", "layout", "no-copy", "no-extern", "no-fallback", "reduction-hint",
    "index-dtype", "bytes-at-most", "cause", "no-failed-compile", "no-graph-break", "no-recompile",
    "no-remark", "cudagraphed",
]  # fmt: skip
EXPECTATION_KINDS: tuple[ExpectationKind, ...] = get_args(ExpectationKind)
OF_RUNS: tuple[ExpectationKind, ...] = ("no-failed-compile", "no-graph-break", "no-recompile")
"""What dynamo did for the whole run; the others are about a graph."""

Standing: TypeAlias = Literal["holds", "fails", "unknown"]
"""`unknown`: the dump does not show it, or there is nothing of which it could be said."""


class _Form(NamedTuple):
    """How many subjects a kind takes at least and at most, whether it has a value, and an example."""

    least: int
    most: int
    values: tuple[str, ...] | None
    example: str


_ANY: tuple[str, ...] = ()
_NUMBERS: tuple[ExpectationKind, ...] = ("kernels", "bytes-at-most")
_FORMS: Mapping[ExpectationKind, _Form] = {
    "kernels": _Form(0, 0, _ANY, "1"),
    "vectorised": _Form(0, 1, None, "op0"),
    "fused": _Form(2, 8, None, "op0+op1"),
    "layout": _Form(1, 1, ("contiguous", "channels_last", "transposed", "padded"), "buf3=channels_last"),
    "no-copy": _Form(0, 0, None, ""),
    "no-extern": _Form(0, 0, None, ""),
    "no-fallback": _Form(0, 0, None, ""),
    "reduction-hint": _Form(0, 1, ("INNER", "OUTER", "OUTER_TINY", "DEFAULT"), "INNER"),
    "index-dtype": _Form(0, 1, ("int32", "int64"), "int32"),
    "bytes-at-most": _Form(0, 0, _ANY, "1.5MB"),
    "cause": _Form(0, 2, _ANY, "op0=short-inner-range"),
    "no-failed-compile": _Form(0, 0, None, ""),
    "no-graph-break": _Form(0, 0, None, ""),
    "no-recompile": _Form(0, 0, None, ""),
    "cudagraphed": _Form(0, 1, None, "op0"),
    "no-remark": _Form(0, 0, get_args(RemarkCode), "noncontiguous-access"),
}
_BYTES = re.compile(r"(\d+\.?\d*|\.\d+) ?(|B|kB|KB|MB|GB|KiB|MiB|GiB)")
_UNITS = {
    "": 1, "B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
}  # fmt: skip


class Expectation(Struct, frozen=True):
    """What is expected.

    Attributes:
        kind: of what. subjects: about whom: nodes, kernels, a buffer; empty for all of a graph or run.
        value: what it is to be, for a kind that has one: a number of kernels or bytes, a memory format, a
            hint, a type, the code of a cause or remark.
    """

    kind: ExpectationKind
    subjects: tuple[str, ...] = ()
    value: str | None = None

    @property
    def option(self) -> str:
        """As on the command line: `--fused op0+op1`."""
        text = "=".join(filter(None, ("+".join(self.subjects), self.value)))
        return f"--{self.kind} {text}" if text else f"--{self.kind}"

    @property
    def limit(self) -> int:
        """Its value as a number, of kernels or bytes."""
        return int(self.value or 0)


def expectation_of(kind: ExpectationKind, text: str) -> Expectation:
    """Return what an option says: `fused` with `op0+op1`, `layout` with `buf3=channels_last`.

    Raises:
        ProbeError: a subject or value is missing, or means nothing.
    """
    form, rest = _FORMS[kind], text.strip()
    value: str | None = None
    if form.values is not None:
        rest, _, value = rest.rpartition("=")
        if form.values and value not in form.values:
            raise ProbeError(f"invalid --{kind} {text}", near_names(value, form.values))
        value = _number(kind, value) if kind in _NUMBERS else value
    subjects = tuple(name for name in re.split(r"[+,]", rest) if name)
    if not form.least <= len(subjects) <= form.most:
        example = f"--{kind} {form.example}".rstrip()
        raise ProbeError(f"invalid {f'--{kind} {text}'.rstrip()}", f"write {example}")
    return Expectation(kind, subjects, value)


def _number(kind: ExpectationKind, text: str) -> str:
    match = _BYTES.fullmatch(text)
    if match is None or (kind == "kernels" and not text.isdecimal()):
        raise ProbeError(f"invalid --{kind} {text}", f"write --{kind} {_FORMS[kind].example}")
    return str(round(float(match[1]) * _UNITS[match[2]]))


def expectations_of(words: Mapping[str, object]) -> tuple[Expectation, ...]:
    """Return what keywords expect: `kernels=1, vectorised=True, fused=["op0+op1", "op2+op3"]`.

    Raises:
        ProbeError: a keyword or its value means nothing; near names are offered.
    """
    expected = []
    for word, given in words.items():
        kind = next((one for one in EXPECTATION_KINDS if one == word.replace("_", "-")), None)
        if kind is None:
            known = [one.replace("-", "_") for one in EXPECTATION_KINDS]
            raise ProbeError(f"nothing is expected by {word}=", near_names(word, known))
        values = given if isinstance(given, (list, tuple)) else [given]
        for value in values:
            if value is False or value is None or not isinstance(value, (str, int)):
                raise ProbeError(
                    f"{word}={value!r} is not text",
                    'write it as on the command line: fused="op0+op1", vectorised=True',
                )
            expected.append(expectation_of(kind, "" if value is True else str(value)))
    return tuple(expected)


class Checked(Struct, frozen=True):
    """What came of an expectation in a graph, or of one about a run.

    Attributes:
        graph: the name of the graph; None where it is about the run.
        standing: whether it holds.
        code: what was seen: `report/words/expect.py` has its sentence. numbers: its named values.
        causes: decisions of torch that are not as expected, with what they rest on and what would turn them.
        remarks: what the dump or its manifest shows of it.
    """

    expectation: Expectation
    graph: str | None
    standing: Standing
    code: str
    numbers: tuple[tuple[str, Number], ...] = ()
    causes: tuple[Cause, ...] = ()
    remarks: tuple[Remark, ...] = ()


class ExpectOutput(Output, frozen=True, kw_only=True):
    """What came of all expectations, in a run or a graph.

    Attributes:
        path: the folder of the run. graphs: names of those that were looked at. ok: whether all hold.
        outcomes: of each expectation in each graph that has its subjects.
    """

    verb: Literal["expect"] = "expect"
    path: Path
    ok: bool
    graphs: tuple[str, ...] = ()
    outcomes: tuple[Checked, ...] = ()
    problems: tuple[Problem, ...] = ()


def standing_of(outcomes: Iterable[Checked]) -> Standing:
    """Return how all of them stand: one that fails counts for most."""
    standings = {outcome.standing for outcome in outcomes}
    return "fails" if "fails" in standings else "unknown" if "unknown" in standings else "holds"
