"""Settings of torch that a dump is made with: set as soon as the module that holds them is imported.

A script that sets one of them itself, or passes `options` to `torch.compile`, has the last word.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from types import ModuleType
from typing import Any, Union, get_args, get_origin

from inductor_probe.capture.events import EventLog
from inductor_probe.errors import ProbeError

MODULES = {
    "inductor": "torch._inductor.config",
    "dynamo": "torch._dynamo.config",
    "functorch": "torch._functorch.config",
}
"""What the name of a setting begins with -> the module that holds it."""


def is_setting(name: str) -> bool:
    """Tell whether a name is that of a setting of torch: `inductor.cpp.simdlen`."""
    return name.partition(".")[0] in MODULES and "." in name


def hooks(
    settings: Sequence[tuple[str, str]], events: EventLog
) -> Iterator[tuple[str, Callable[[ModuleType], None]]]:
    """Yield for each module that holds one of `settings` what is to be called when it is imported."""
    for prefix, module in MODULES.items():
        of_module = [
            (name.partition(".")[2], value) for name, value in settings if name.partition(".")[0] == prefix
        ]
        if of_module:
            yield module, _setter(prefix, of_module, events)


def _setter(
    prefix: str, settings: Sequence[tuple[str, str]], events: EventLog
) -> Callable[[ModuleType], None]:
    def set_all(module: ModuleType) -> None:
        try:
            for name, text in settings:
                set_one(module, f"{prefix}.{name}", text)
        except ProbeError as error:
            events.refuse(error.message, error.hint)
            sys.exit(error.exit_code)

    return set_all


def set_one(module: Any, setting: str, text: str) -> None:
    """Set `setting` (`inductor.cpp.simdlen`) in the module that holds it to the value that `text` spells.

    Raises:
        ProbeError: there is none of that name, or it takes values of another type.
    """
    name = setting.partition(".")[2]
    known = getattr(module, "_config", {})  # torch/utils/_config_module.py, install_config_module
    if name not in known:
        prefix, last = setting.partition(".")[0], name.rpartition(".")[2]
        # It may be one of a group: cpp.simdlen. No list of hundreds says which else was meant.
        near = [other for other in known if other.rpartition(".")[2] == last]
        near = near or get_close_matches(name, known)
        raise ProbeError(
            f"torch {getattr(sys.modules.get('torch'), '__version__', '')} has no setting {setting}",
            f"did you mean {' or '.join(f'{prefix}.{other}' for other in near)}?"
            if near
            else f"{MODULES[prefix].replace('.', '/')}.py has those that there are",
        )
    value = value_of(text)
    expected = module.get_type(name) if hasattr(module, "get_type") else None
    if not _fits(value, expected, getattr(module, name, None)):
        raise ProbeError(
            f"{setting} cannot be {text}: it is {_type_name(expected, getattr(module, name, None))}",
            f"it is {getattr(module, name, None)!r} if it is not set",
        )
    setattr(module, name, value)


def not_in_force(settings: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those of `settings` that have another value by now, with that: a script set them itself."""
    differing = []
    for setting, text in settings:
        prefix, _, name = setting.partition(".")
        present = getattr(sys.modules.get(MODULES[prefix]), name, None)
        if present != value_of(text):
            differing.append((setting, repr(present)))
    return differing


def value_of(text: str) -> object:
    """Return what a text spells as a literal of Python, and the text itself where it is none."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _fits(value: object, expected: Any, present: object) -> bool:
    """Tell whether a setting takes a value, by its declared type, or by the value that it has."""
    types = _types(expected) or ((type(present),) if present is not None else ())
    if not types:
        return True
    if isinstance(value, bool) or bool in types:
        return type(value) in types
    return isinstance(value, types) or (float in types and isinstance(value, int))


def _types(expected: Any) -> tuple[type, ...]:
    """Return the plain types that an annotation allows; nothing where it is no plain one."""
    union = get_origin(expected) is Union or type(expected).__name__ == "UnionType"
    parts = get_args(expected) if union else (expected,)
    if all(isinstance(part, type) for part in parts):
        return tuple(parts)
    return ()


def _type_name(expected: Any, present: object) -> str:
    names = [kind.__name__ for kind in _types(expected) or (type(present),)]
    return " or ".join("None" if name == "NoneType" else name for name in names)
