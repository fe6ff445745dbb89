"""The generated code in a file, as the pristine `call` runs it or as one of its variants does."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

import libcst as cst

from inductor_probe.backends import Backend, backend_of
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError, near_names
from inductor_probe.model.bench import NewVariant, VariantKind
from inductor_probe.variants.definitions import (
    Definition,
    definitions,
    mentioned,
    same_but_names,
    split_name,
)
from inductor_probe.variants.rename import renamed

BY_HAND = "nothing was changed: make that variant by hand, the bench file checks it"
_SHOWN = 100
_FOR_CUDA_GRAPHS = "recursively_apply_fns"


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A kernel's definition, cut around the text of its source.

    `before` + `source` + `after` is the statement. `line` is the line of the file `path` that the source
    starts on.
    """

    name: str
    backend: Backend
    before: str
    source: str
    after: str
    line: int
    path: str = ""

    def refusal(self, line: int, why: str) -> ProbeError:
        """Return the refusal to rewrite line `line` of the source, counted from 1."""
        text = " ".join(self.source.split("\n")[line - 1].split())
        text = text if len(text) < _SHOWN else f"{text[: _SHOWN - 3]}..."
        return ProbeError(f"{self.path}:{self.line + line - 1}: in {self.name}, {why}: {text}", BY_HAND)


@dataclass(frozen=True, slots=True)
class Code:
    """Kernels and wrapper of `output_code.py`, or of a bench file, with one set of copies in force.

    Attributes:
        path: what an error names.
        number: of the copies: 0 for the pristine code, 3 for `call_v3` and each `NAME_v3` there is.
        kernels: the kernel that is in force under each pristine name, in order.
        wrapper: the definitions that make up `call`, in order.
        known: every name that the file defines.
    """

    path: str
    number: int
    kernels: Mapping[str, KernelCode]
    wrapper: tuple[Definition, ...]
    known: tuple[str, ...]

    @property
    def next_number(self) -> int:
        """The number after those of all variants, 2 when there is none."""
        return max([split[1] + 1 for name in self.known if (split := split_name(name))], default=2)

    @property
    def has_own_wrapper(self) -> bool:
        """Whether the copies have a `call_v3` of their own; without one `call` runs them."""
        return any(split_name(each.name) for each in self.wrapper)

    def kernel(self, name: str) -> str:
        """Return the pristine name of the kernel that `name` starts.

        Raises:
            NotFoundError: there is none. ProbeError: there are several.
        """
        found = [name] if name in self.kernels else [each for each in self.kernels if each.startswith(name)]
        if not found:
            raise NotFoundError(f"{self.path} has no kernel {name}", near_names(name, self.kernels))
        if len(found) > 1:
            raise ProbeError(f"{len(found)} kernels start with {name}", f"one of {', '.join(found)}")
        return found[0]

    def with_sources(
        self,
        sources: Mapping[str, str],
        comment: str,
        *,
        wrapper: Mapping[str, str] | None = None,
        kind: VariantKind = "rewrite",
        ablation: str | None = None,
    ) -> tuple[NewVariant, ...]:
        """Return variants of the next number: of these kernels, and of the wrapper where it needs one.

        Args:
            sources: new source of kernels, by pristine name.
            comment: what they are, in one sentence.
            wrapper: new text of definitions of the wrapper, by name, in which the launches that are to run
                the new kernels name them already.
            kind, ablation: of the kernels.
        """
        number = self.next_number
        copies = {self.kernels[name].name: f"{name}_v{number}" for name in sources}
        found = [
            NewVariant(
                f"{name}_v{number}",
                same_but_names(f"{kernel.before}{source}{kernel.after}", {kernel.name: copies[kernel.name]}),
                comment,
                kind,
                ablation,
            )
            for name, source in sources.items()
            for kernel in (self.kernels[name],)
        ]
        if wrapper is None and not self.has_own_wrapper:
            return tuple(found)
        names = {each.name: f"{pristine(each.name)}_v{number}" for each in self.wrapper}
        if wrapper is None:
            names |= copies
        texts = [(wrapper or {}).get(each.name, each.text) for each in self.wrapper]
        entry = NewVariant(f"call_v{number}", with_names("".join(texts), names), comment, "rewrite")
        return (*found, entry)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Return Python `text` with its variables renamed; what is an attribute or a method keeps its name."""
    module = cst.parse_module(text)
    return module.with_changes(body=[renamed(each, names) for each in module.body]).code


def pristine(name: str) -> str:
    """Return what `name` is a variant of, itself if it is none."""
    split = split_name(name)
    return split[0] if split else name


def read_code(source: str, path: str = "output_code_bench.py", number: int = 0) -> Code:
    """Read the generated code in a file: the pristine code, or with the copies of that number in force.

    Raises:
        UnreadableError: it is not Python, or has no `call`. NotFoundError: no copies of that number.
    """
    try:
        found = {each.name: each for each in definitions(source)}
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UnreadableError(f"{path}:{line}: not Python: {getattr(error, 'msg', error)}") from error
    kernels = {name: kernel for name, each in found.items() if (kernel := kernel_code(each))}
    if number and not any(split and split[1] == number for split in map(split_name, found)):
        have = sorted({split[1] for split in map(split_name, found) if split})
        raise NotFoundError(
            f"{path} has no variants _v{number}", near_names(f"v{number}", [f"v{n}" for n in have])
        )
    entry = f"call_v{number}" if f"call_v{number}" in found else "call"
    if entry not in found:
        raise UnreadableError(
            f"{path} has no call", "dump the script again, or delete the file to have it made afresh"
        )
    after = max((each.lineno for each in ast.parse(source).body if _is_wait(each)), default=0)
    wrapper = _reached(entry, {name: each for name, each in found.items() if each.first > after})
    in_force = {
        name: replace(kernels.get(f"{name}_v{number}", kernel), path=path)
        for name, kernel in kernels.items()
        if not split_name(name)
    }
    return Code(path, number, in_force, wrapper, tuple(found))


def kernel_code(definition: Definition) -> KernelCode | None:
    """Return the kernel that a statement defines, None when it defines none or has no text."""
    match definition.node:
        case ast.Assign(
            value=ast.Call(func=ast.Attribute(value=ast.Name("async_compile"), attr=maker), args=args)
        ):
            backend = backend_of(maker)
        case _:
            return None
    texts = [each for each in args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if backend is None or not texts:
        return None
    text = max(texts, key=lambda each: len(str(each.value)))
    lines = definition.text.split("\n")
    start = offset(lines, text.lineno - definition.start, text.col_offset)
    end = offset(lines, (text.end_lineno or text.lineno) - definition.start, text.end_col_offset or 0)
    token = definition.text[start:end]
    quotes = "'''" if "'''" in token[:5] else '"""' if '"""' in token[:5] else token[-1]
    inner = start + token.index(quotes) + len(quotes)
    return KernelCode(
        definition.name,
        backend,
        definition.text[:inner],
        definition.text[inner : end - len(quotes)],
        definition.text[end - len(quotes) :],
        definition.start + definition.text.count("\n", 0, inner),
    )


def offset(lines: list[str], row: int, column: int) -> int:
    """Return where in the joined lines a row (from 0) and a column in UTF-8 bytes are."""
    before = sum(len(line) + 1 for line in lines[:row])
    return before + len(lines[row].encode()[:column].decode())


def _is_wait(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith("async_compile.wait(")


def _reached(entry: str, found: Mapping[str, Definition]) -> tuple[Definition, ...]:
    """Return what `entry` needs of the definitions after the kernels, in order."""
    waiting, reached = [entry], {entry}
    while waiting:
        for name in mentioned(found[waiting.pop()].node):
            if name in found and name not in reached and pristine(name) != _FOR_CUDA_GRAPHS:
                reached.add(name)
                waiting.append(name)
    return tuple(each for name, each in found.items() if name in reached and kernel_code(each) is None)
