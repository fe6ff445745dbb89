"""What `--json` prints: one object, whose keys are the fields of the verb's record.

Each verb has a subclass of `Output` beside the records that it shows. `probe VERB --json-schema` prints its
schema, and `make docs` makes a page of all records, both from the annotations and docstrings.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any, Literal

from msgspec import Struct

from inductor_probe import model
from inductor_probe.model.codec import json_schema
from inductor_probe.model.record import defaults
from inductor_probe.model.span import Problem


class Cut(Struct, frozen=True):
    """What was left out of lists, or of texts, of one key.

    Attributes:
        key: with those that it is inside of: `rows.decisions`.
        shown, of: records or names of all lists of that key, or characters of texts.
    """

    key: str
    shown: int
    of: int


class Output(Struct, frozen=True, kw_only=True):
    """What the output of every verb has.

    Attributes:
        verb: which verb printed it.
        version: of the form. Keys are only added within a version.
        problems: what could not be read; the rest was read all the same; the exit status is 2 then.
        cut: what was left out, as with `--limit`. rest: the command that gives all; empty if this is all.
    """

    verb: str
    version: Literal[2] = 2
    problems: tuple[Problem, ...] = ()
    cut: tuple[Cut, ...] = ()
    rest: str = ""


class Failure(Struct, frozen=True):
    """Why a verb could not do what was asked for.

    Attributes:
        code: `usage`, `not-found`, `ambiguous`, `unreadable`, `run-failed`, `interrupted`, `failed`, or
            `internal` for a fault of inductor_probe.
        message: what is wrong and where. suggestions: next steps.
    """

    code: str
    message: str
    suggestions: tuple[str, ...] = ()


class FailureOutput(Struct, frozen=True):
    """What `--json` of any verb prints where it fails; the exit status is 2, or 130 after Ctrl-C.

    Attributes:
        verb: the one that was called; empty if it is unknown.
        version: of the form.
    """

    verb: str
    error: Failure
    version: Literal[2] = 2


def outputs() -> dict[str, type[Output]]:
    """Return the record of each verb that has one; all of `model` is imported for that."""
    for module in pkgutil.iter_modules(model.__path__):
        import_module(f"{model.__name__}.{module.name}")
    verbs = {str(defaults(kind)["verb"]): kind for kind in Output.__subclasses__()}
    return dict(sorted(verbs.items()))


def output_schema(verb: str = "") -> dict[str, Any]:
    """Return a JSON Schema of what `--json` of a verb prints, of all verbs without a name; or its failure."""
    kinds = outputs()
    chosen = [kinds["dump" if verb == "debug" else verb]] if verb else [*kinds.values()]
    return {"title": f"probe {verb or 'VERB'} --json", **json_schema(*chosen, FailureOutput)}
