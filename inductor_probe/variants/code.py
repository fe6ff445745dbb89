"""The generated code in a file: what stands at its top level, and the kernels and the wrapper of it."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import ClassVar, TypeVar

import libcst as cst
from msgspec import Struct
from msgspec.structs import replace

from inductor_probe.backends import Backend, backend_of
from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError, names_meant, near_names
from inductor_probe.model.bench import ABLATIONS, NewVariant, VariantKind

BY_HAND = "nothing was changed: make that variant by hand, the bench file checks it"
_NAME = re.compile(r"(?P<base>\w+?)_v(?P<number>\d+)")
_SHOWN = 100
TEXTS = 4  # that are parsed once: a file on disk, as made, and with one or two variants more
_FOR_CUDA_GRAPHS = "recursively_apply_fns"

Node = TypeVar("Node", bound=cst.CSTNode)


class Definition(Struct, frozen=True):
    """A statement at the top of a file that binds a name.

    Attributes:
        first, start, last: lines, 1-based: of the comment that touches it, of the statement, and its end.
        text: the lines from `start` to `last`, with their line ends. comment: those from `first` on.
        node: as syntax; its positions are those of the file.
    """

    name: str
    first: int
    start: int
    last: int
    comment: str
    text: str
    node: ast.stmt


class KernelCode(Struct, frozen=True):
    """A kernel's definition, cut around the text of its source.

    `before` + `source` + `after` is the statement; the source starts on `line` of the file `path`.
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
        text = _shortened(self.source.split("\n")[line - 1])
        return ProbeError(f"{self.path}:{self.line + line - 1}: in {self.name}, {why}: {text}", BY_HAND)


class Code(Struct, frozen=True):
    """Kernels and wrapper of `output_code.py`, or of a bench file, with one set of copies in force.

    Attributes:
        path: what an error names.
        kernels: the kernel that is in force under each pristine name, in order.
        wrapper: the definitions that make up `call`, in order.
        known: every name that the file defines.
    """

    path: str
    kernels: Mapping[str, KernelCode]
    wrapper: tuple[Definition, ...]
    known: tuple[str, ...]

    @property
    def next_number(self) -> int:
        """The number after those of all variants, 2 when there is none."""
        return max([split[1] + 1 for name in self.known if (split := split_name(name))], default=2)

    def kernel(self, name: str) -> KernelCode:
        """Return the kernel whose pristine name is `name` or, alone of all, starts so.

        Raises NotFoundError: there is none. ProbeError: there are several.
        """
        names = names_meant(name, self.kernels)
        if not names:
            raise NotFoundError(f"{self.path} has no kernel {name}", near_names(name, self.kernels))
        if len(names) > 1:
            raise ProbeError(f"{len(names)} kernels start with {name}", f"one of {', '.join(names)}")
        return self.kernels[names[0]]

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
            sources: new source of kernels, by pristine name or by that of the variant in force.
            comment: what they are, in one sentence.
            wrapper: new text of definitions of the wrapper, by name, in which the launches that are to run
                the new kernels name them already.
            kind, ablation: of the kernels.
        """
        variants, copies = [], {}
        for name, source in sources.items():
            kernel = self.kernels[pristine(name)]
            copies[kernel.name] = copy = f"{pristine(name)}_v{self.next_number}"
            text = with_words(f"{kernel.before}{source}{kernel.after}", {kernel.name: copy})
            variants.append(NewVariant(copy, text, comment, kind, ablation))
        if wrapper is not None or any(split_name(definition.name) for definition in self.wrapper):
            # without a `call` of their own, variants of kernels are run by the pristine one
            number = self.next_number
            names = {definition.name: f"{pristine(definition.name)}_v{number}" for definition in self.wrapper}
            names |= copies if wrapper is None else {}
            text = "".join(
                (wrapper or {}).get(definition.name, definition.text) for definition in self.wrapper
            )
            variants.append(NewVariant(f"call_v{number}", with_names(text, names), comment, "rewrite"))
        return tuple(variants)

    def refusal(self, statement: ast.stmt, why: str) -> ProbeError:
        """Return the refusal to change a statement of the wrapper."""
        return ProbeError(
            f"{self.path}:{statement.lineno}: {why}: {_shortened(ast.unparse(statement))}", BY_HAND
        )


class Rewrite(ABC):
    """A named rewrite: `arguments` is what stands behind the colon of a spec, `help` says what it does."""

    name: ClassVar[str]
    arguments: ClassVar[str]
    help: ClassVar[str]

    @abstractmethod
    def apply(self, code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
        """Return the variants of `code` that it makes, each with the comment.

        Raises NotFoundError: `arguments` name what is not there. ProbeError: the rewrite does not
        apply, in a sentence with the line.
        """

    def invalid(self, arguments: str, hint: str) -> ProbeError:
        """Return the error for arguments that are not of the form of `self.arguments`."""
        return ProbeError(f"invalid arguments {arguments!r} of {self.name}: write {self.arguments}", hint)

    def candidates(self, code: Code) -> Iterator[str]:
        """Yield arguments to try when the rewrites that apply to a file are listed."""
        yield from code.kernels


def read_code(source: str, path: str = "output_code_bench.py", number: int = 0) -> Code:
    """Read the generated code in a file: the pristine code, or with the copies of that number in force.

    Raises UnreadableError: it is not Python, or has no `call`. NotFoundError: no copies of that number.
    """
    try:
        by_name = {definition.name: definition for definition in definitions(source)}
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UnreadableError(f"{path}:{line}: not Python: {getattr(error, 'msg', error)}") from error
    numbers = sorted({split[1] for name in by_name if (split := split_name(name))})
    if number and number not in numbers:
        hint = near_names(f"v{number}", [f"v{other}" for other in numbers])
        raise NotFoundError(f"{path} has no variants _v{number}", hint)
    entry = f"call_v{number}" if f"call_v{number}" in by_name else "call"
    if entry not in by_name:
        raise UnreadableError(
            f"{path} has no call", "dump the script again, or delete the file to have it written again"
        )
    kernels = {name: kernel for name, definition in by_name.items() if (kernel := kernel_code(definition))}
    in_force = {
        name: replace(kernels.get(f"{name}_v{number}", kernel), path=path)
        for name, kernel in kernels.items()
        if not split_name(name)
    }
    # The wrapper: what `call` needs of the definitions below the kernels.
    after = wait_line(source) or 0
    waiting, reached = [entry], {entry}
    while waiting:
        for name in mentioned(by_name[waiting.pop()].node):
            if (
                name in by_name
                and name not in reached
                and by_name[name].first > after
                and pristine(name) != _FOR_CUDA_GRAPHS
            ):
                reached.add(name)
                waiting.append(name)
    wrapper = tuple(
        definition for name, definition in by_name.items() if name in reached and name not in kernels
    )
    return Code(path, in_force, wrapper, tuple(by_name))


def kernel_code(definition: Definition) -> KernelCode | None:
    """Return the kernel that a statement defines, None when it defines none or has no text."""
    match definition.node:
        case ast.Assign(
            value=ast.Call(func=ast.Attribute(value=ast.Name("async_compile"), attr=maker), args=args)
        ):
            backend = backend_of(maker)
        case _:
            return None
    texts = [node for node in args if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if backend is None or not texts:
        return None
    start, end = span(definition.text, max(texts, key=lambda text: len(str(text.value))), definition.start)
    token = definition.text[start:end]
    quotes = "'''" if "'''" in token[:5] else '"""' if '"""' in token[:5] else token[-1]
    first, last = start + token.index(quotes) + len(quotes), end - len(quotes)
    before, after = definition.text[:first], definition.text[last:]
    line = definition.start + before.count("\n")
    return KernelCode(definition.name, backend, before, definition.text[first:last], after, line)


def wait_line(source: str) -> int | None:
    """Return the line of the last `async_compile.wait`, which needs every kernel above it."""
    calls = [node for node in syntax(source).body if isinstance(node, ast.Expr)]
    waits = (node for node in calls if ast.unparse(node).startswith("async_compile.wait("))
    return max((node.lineno for node in waits), default=None)


@lru_cache(maxsize=TEXTS)
def syntax(source: str) -> ast.Module:
    """Return a file as syntax, which nobody may change (SyntaxError, ValueError: it is not Python)."""
    return ast.parse(source)


@lru_cache(maxsize=TEXTS)
def definitions(source: str) -> tuple[Definition, ...]:
    """Return what `source` defines at its top level, in order (SyntaxError, ValueError: it is not Python)."""
    lines = [f"{line}\n" for line in source.split("\n")]  # as Python counts them
    bound = []
    for node in syntax(source).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                start = node.lineno
            case _:
                continue
        first = start
        while first > 1 and lines[first - 2].startswith("#"):
            first -= 1
        last = node.end_lineno or node.lineno
        comment, text = "".join(lines[first - 1 : start - 1]), "".join(lines[start - 1 : last])
        bound.append(Definition(name, first, start, last, comment, text, node))
    return tuple(bound)


def frame(source: str) -> str:
    """Return the lines of a bench file that are not its variants, without blank ones.

    Raises SyntaxError, ValueError: it is not Python.
    """
    lines: list[str | None] = list(source.split("\n"))
    for definition in definitions(source):
        if is_variant(definition.name):
            length = definition.last - definition.first + 1
            lines[definition.first - 1 : definition.last] = [None] * length
    return "\n".join(line for line in lines if line is not None and line.strip())


def split_name(name: str) -> tuple[str, int] | None:
    """`cpp_fused_add_0_v3` is variant 3 of `cpp_fused_add_0`; None for a name that is no variant's."""
    match = _NAME.fullmatch(name)
    return (match["base"], int(match["number"])) if match else None


def pristine(name: str) -> str:
    """Return what `name` is a variant of, itself if it is none."""
    split = split_name(name)
    return split[0] if split else name


def is_variant(name: str) -> bool:
    """Tell whether `name` is that of a variant, or of the table of ablations: the user's to change."""
    return name == ABLATIONS or _NAME.fullmatch(name) is not None


def names_of(number: int, names: Iterable[str]) -> dict[str, str]:
    """Return what the variants of that number are copies of, by their names."""
    return {name: split[0] for name in names if (split := split_name(name)) and split[1] == number}


def with_words(text: str, names: Mapping[str, str]) -> str:
    """Return `text` with every word in `names` replaced."""
    words = sorted(names, key=len, reverse=True)
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b")
    return word.sub(lambda match: names[match[0]], text) if names else text


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Return Python `text` with its variables renamed; what is an attribute or a method keeps its name."""
    module = cst.parse_module(text)
    return module.with_changes(body=[renamed(statement, names) for statement in module.body]).code


def renamed(node: Node, names: Mapping[str, str], words: Iterable[str] = ()) -> Node:
    """Return a copy of `node` with variables in `names` renamed.

    Those in `words` are renamed in strings and comments as well: a Triton kernel is named in its first
    argument, in its `def` line and in its metadata. Attributes, keywords, parameters and methods keep
    their names, whatever they are called.
    """
    return cst.ensure_type(node.visit(_Renamer(names, {word: names[word] for word in words})), type(node))


class _Renamer(cst.CSTTransformer):
    def __init__(self, names: Mapping[str, str], words: Mapping[str, str]) -> None:
        super().__init__()
        self.names, self.words = names, words
        self.classes = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.classes += isinstance(node, cst.ClassDef)
        return True

    def on_leave(  # type: ignore[override] # it removes nothing
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        self.classes -= isinstance(original_node, cst.ClassDef)
        match original_node:
            case cst.Name(value=name) if name in self.names:
                return updated_node.with_changes(value=self.names[name])
            case cst.Attribute(attr=name):
                return updated_node.with_changes(attr=name)
            case cst.Arg(keyword=name):
                return updated_node.with_changes(keyword=name)
            case cst.Param(name=name):
                return updated_node.with_changes(name=name)
            case cst.FunctionDef(name=name) if self.classes:
                return updated_node.with_changes(name=name)
            case cst.SimpleString(value=text) | cst.Comment(value=text):
                return updated_node.with_changes(value=with_words(text, self.words))
        return updated_node


def mentioned(node: ast.AST) -> Iterator[str]:
    """Yield the variable names in a piece of syntax."""
    yield from (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


def span(text: str, node: ast.expr, first: int = 1) -> tuple[int, int]:
    """Return where in `text` a piece of syntax starts and ends; `first` is the line of the text's start."""
    lines = text.split("\n")

    def offset(line: int, column: int) -> int:  # of UTF-8 bytes
        before = sum(len(other) + 1 for other in lines[: line - first])
        return before + len(lines[line - first].encode()[:column].decode())

    return offset(node.lineno, node.col_offset), offset(node.end_lineno or 0, node.end_col_offset or 0)


def edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Return `text` with the pieces from `start` to `end` replaced."""
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) < _SHOWN else f"{text[: _SHOWN - 3]}..."
