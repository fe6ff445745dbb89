"""What is the user's in a bench file, and taking it over into one made afresh."""

from __future__ import annotations

from inductor_probe.model.bench import ABLATIONS
from inductor_probe.variants.adding import put
from inductor_probe.variants.code import kernel_code
from inductor_probe.variants.definitions import (
    Definition,
    definitions,
    is_variant,
    names_of,
    same_but_names,
    split_name,
)

_MADE = 2
"""The number of the copies that a bench file is made with."""


def users_variants(source: str) -> tuple[Definition, ...]:
    """Return the variants in a bench file that were edited or added, the table of ablations among them.

    A `_v2` that says what its pristine code says in the same file is a copy that nobody touched.

    Raises:
        SyntaxError, ValueError: `source` is not Python.
    """
    found = definitions(source)
    by_name = {each.name: each for each in found}
    names = names_of(_MADE, found)
    return tuple(
        each
        for each in found
        if is_variant(each.name) and not _is_copy(each, by_name.get(names.get(each.name, "")), names)
    )


def _is_copy(variant: Definition, original: Definition | None, names: dict[str, str]) -> bool:
    if original is None or same_but_names(variant.text, names) != original.text:
        return False
    made = f"# {variant.name}: a copy of the kernel above, to edit\n"
    return (
        variant.comment in ("", made, original.comment)
        or same_but_names(variant.comment, names) == original.comment
    )


def taken_over(fresh: str, users: tuple[Definition, ...]) -> str:
    """Return a fresh bench file with the user's variants in it, byte for byte."""
    for each in users:
        fresh = put(fresh, each.name, each.comment + each.text)
    return fresh


def gone_variants(source: str) -> tuple[str, ...]:
    """Return the variants of kernels that a bench file no longer has: nothing checks or times them.

    Raises:
        SyntaxError, ValueError: `source` is not Python.
    """
    found = definitions(source)
    kernels = {each.name for each in found if kernel_code(each)}
    return tuple(
        each.name
        for each in found
        if each.name != ABLATIONS
        and (split := split_name(each.name))
        and each.name in kernels
        and split[0] not in kernels
    )
