"""Copies that nobody edited: they are checked, but a time of theirs would be that of their original."""

from __future__ import annotations

import ast
import linecache
import re

from inductor_probe.harness.bench import Bench


def unedited(bench: Bench) -> set[str]:
    """Return the variants that say what their originals say, names aside: as this file's own text shows.

    An unedited `call_v2` launches the copies of its number: it is none if one of those was edited.
    """
    path = bench.namespace.get("__file__")
    if path is None:
        return set()
    linecache.checkcache(path)
    source = "".join(linecache.getlines(path))  # the text that runs, also where the file was changed since
    lines, texts = source.split("\n"), dict[str, str]()
    for node in ast.parse(source).body:
        match node:
            case (
                ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)])
            ):
                texts[name] = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    numbered: dict[str, dict[str, str]] = {}  # names and originals of the copies of each number
    for name in texts:
        if copy := re.fullmatch(r"(\w+?)_v(\d+)", name):
            numbered.setdefault(copy[2], {})[name] = copy[1]
    found = set[str]()
    for number, names in numbered.items():
        word = re.compile(rf"\b({'|'.join(names.values())})_v{number}\b")
        same = {name for name, base in names.items() if word.sub(r"\1", texts[name]) == texts.get(base)}
        found |= same - {f"call_v{number}"}
        if same == set(names):
            found.add(f"call_v{number}")
    return found & {variant.name for variant in bench.variants()}
