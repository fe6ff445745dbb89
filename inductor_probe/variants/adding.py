"""Variants put into the text of a bench file, and nothing else of it changed."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable

from inductor_probe.model.bench import ABLATIONS, NewVariant
from inductor_probe.variants.code import kernel_code
from inductor_probe.variants.definitions import Definition, definitions, is_variant, split_name

_TABLE = "# These leave something out on purpose: they are timed although wrong, and never an improvement."
MADE_BY = ": made by "
"""What stands behind the name in the comment above a variant that a named rewrite made."""


def add_variants(source: str, variants: Iterable[NewVariant]) -> str:
    """Return a bench file with variants added, each below what it is a copy of.

    Raises:
        SyntaxError: `source` is not Python.
    """
    for variant in variants:
        source = put(source, variant.name, f"# {variant.name}: {variant.comment}\n{variant.text}")
        if variant.ablation is not None:
            source = _with_ablation(source, variant.name, variant.ablation)
    return source


def put(source: str, name: str, text: str) -> str:
    """Return a bench file in which `name` is defined by `text`, its comment included.

    A definition of that name is replaced; a new kernel goes below the last copy of the same kernel, what
    belongs to the wrapper below the last of the wrapper, the table of ablations above `BENCH`.
    """
    found = definitions(source)
    lines = source.split("\n")
    text = text.rstrip("\n")
    known = next((each for each in found if each.name == name), None)
    if known is not None:
        return "\n".join([*lines[: known.first - 1], *text.split("\n"), *lines[known.last :]])
    if name == ABLATIONS:
        bench = next((each for each in found if each.name == "BENCH"), None)
        at = bench.first - 1 if bench else len(lines)
        return "\n".join([*lines[:at], text, "", "", *lines[at:]])
    is_kernel = "async_compile." in text
    above = _anchor(found, name, is_kernel)
    at = above.last if above else _kernels_end(source) - 1 if is_kernel else len(lines)
    return "\n".join([*lines[:at], "", "", *text.split("\n"), *([] if above else [""]), *lines[at:]])


def digest(text: str) -> str:
    """Return a short fingerprint of a variant's statements."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:12]


def _anchor(found: tuple[Definition, ...], name: str, is_kernel: bool) -> Definition | None:
    """Return the definition that a new one goes below, None when there is none of its kind."""
    split = split_name(name)
    base = split[0] if split else name
    if is_kernel:
        family = [each for each in found if _base(each) == base]
    else:
        family = [
            each for each in found if _base(each) == "call" or (_of_wrapper(each) and is_variant(each.name))
        ]
    return family[-1] if family else None


def _base(definition: Definition) -> str:
    split = split_name(definition.name)
    return split[0] if split else definition.name


def _of_wrapper(definition: Definition) -> bool:
    return definition.name != ABLATIONS and kernel_code(definition) is None


def _kernels_end(source: str) -> int:
    """Return the line of `async_compile.wait`, which needs every kernel above it."""
    waits = [
        each.lineno for each in ast.parse(source).body if ast.unparse(each).startswith("async_compile.wait(")
    ]
    return waits[-1] if waits else source.count("\n") + 1


def _with_ablation(source: str, name: str, what: str) -> str:
    table = {**ablations(source), name: what}
    rows = "".join(f'    "{each}": "{left_out}",\n' for each, left_out in table.items())
    return put(source, ABLATIONS, f"{_TABLE}\n{ABLATIONS} = {{\n{rows}}}")


def ablations(source: str) -> dict[str, str]:
    """Return the table of ablations of a bench file: what each variant in it leaves out."""
    for each in definitions(source):
        if each.name == ABLATIONS and isinstance(each.node, ast.Assign | ast.AnnAssign) and each.node.value:
            try:
                table = ast.literal_eval(each.node.value)
            except ValueError:
                return {}
            return {str(key): str(value) for key, value in table.items()} if isinstance(table, dict) else {}
    return {}
