"""What `--json` prints: one object, whose keys are the fields of the verb's record.

Each verb has a subclass of `Output` beside the records that it shows. `docs/json.md` lists them all with what
they hold; `docs/make_json_page.py` makes that page and the schemas from the annotations and docstrings.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from inductor_probe import model
from inductor_probe.model.span import Problem


@dataclass(frozen=True, kw_only=True)
class Output:
    """What the output of every verb has.

    Attributes:
        verb: which verb printed it.
        version: of the form. Keys are only added within a version.
        problems: what could not be read; the rest was read all the same; the exit status is 2 then.
    """

    verb: str
    version: Literal[2] = 2
    problems: tuple[Problem, ...] = ()


def outputs() -> dict[str, type[Output]]:
    """Return the record of each verb that has one; all of `model` is imported for that."""
    for module in pkgutil.iter_modules(model.__path__):
        import_module(f"{model.__name__}.{module.name}")
    verbs = {str(kind.__dataclass_fields__["verb"].default): kind for kind in Output.__subclasses__()}
    return dict(sorted(verbs.items()))
