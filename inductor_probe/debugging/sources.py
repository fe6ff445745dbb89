"""A module's source and the functions in it. Found and parsed, never imported: torch takes seconds."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from inductor_probe.errors import NotFoundError, UnreadableError, near_names
from inductor_probe.machine.facts import installed

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Function(Struct, frozen=True):
    """A function of a source.

    Attributes:
        name: qualified, without `<locals>` (`LoopLevel.lines`, `outer.inner`).
        node: its definition.
        names: arguments, and names that its body binds.
    """

    name: str
    node: _Function
    names: frozenset[str]

    @property
    def arguments(self) -> frozenset[str]:
        """Names of its arguments."""
        args = self.node.args
        nodes = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        return frozenset(node.arg for node in nodes if node is not None)

    @property
    def first_line(self) -> int:
        """Where it starts, with its decorators."""
        return min(node.lineno for node in (self.node, *self.node.decorator_list))

    @property
    def entry(self) -> ast.stmt | None:
        """The first statement that runs, None where there is only a docstring."""
        has_docstring = ast.get_docstring(self.node, clean=False) is not None
        return next(iter(self.node.body[has_docstring:]), None)

    @property
    def last_return(self) -> ast.stmt | None:
        """The `return` that the body ends with, if it does."""
        last = self.node.body[-1]
        return last if isinstance(last, ast.Return) else None


class Source(Struct, frozen=True):
    """A module's source.

    Attributes:
        module: its name.
        functions: in the order of their lines; a name can be defined twice.
        names: what the module's own level binds, and builtins; None where a star import hides what.
    """

    module: str
    path: Path
    functions: tuple[Function, ...]
    names: frozenset[str] | None

    def named(self, name: str) -> list[Function]:
        """Return the functions of that qualified name; `@overload` declares, and is left out."""
        return [
            function
            for function in self.functions
            if function.name == name
            and not any(ast.unparse(item).endswith("overload") for item in function.node.decorator_list)
        ]

    def around(self, line: int) -> Function | None:
        """Return the innermost function that `line` belongs to."""
        enclosing = [f for f in self.functions if f.first_line <= line <= (f.node.end_lineno or 0)]
        return enclosing[-1] if enclosing else None


def find_module(name: str, script_folder: Path | None = None) -> Source:
    """Return the source of module `name`, as an import in a script in `script_folder` would find it.

    Raises:
        NotFoundError: there is none; modules with a similar name are offered.
        UnreadableError: its source cannot be read.
    """
    top, *rest = name.split(".")
    # Of a package or module without a parent: finding it imports nothing.
    spec = PathFinder.find_spec(top, [str(script_folder)]) if script_folder is not None else None
    with suppress(ValueError):  # __main__, or what a test has put into sys.modules
        spec = spec or find_spec(top)
    if spec is None or not spec.origin:
        raise NotFoundError(f"there is no module {top}", "is it installed in this environment?")
    path = Path(spec.origin)
    for depth, part in enumerate(rest):
        folder = path.parent
        candidates = [folder / part / "__init__.py", folder / f"{part}.py"]
        files = [candidate for candidate in candidates if candidate.is_file()]
        if path.name != "__init__.py" or not files:
            known = {file.stem for file in folder.glob("*.py")}
            known |= {file.parent.name for file in folder.glob("*/__init__.py")}
            parent = ".".join([top, *rest[:depth]])
            raise NotFoundError(f"{parent} has no module {part}", near_names(part, sorted(known)))
        path = files[0]
    return _parsed(name, path)


def find_file(name: str, cwd: Path, script_folder: Path | None = None) -> Source:
    """Return the source of the file that `name` means: `torch/_inductor/ir.py` of that package, or a path.

    Raises:
        NotFoundError: there is no such file, or Python would not import it under any name.
        UnreadableError: it cannot be read.
    """
    failure = NotFoundError(f"there is no file {name}")
    if not Path(name).is_absolute():
        try:
            return find_module(_module_name(Path(name).parts), script_folder)
        except NotFoundError as error:
            failure = error
    path = (cwd / name).resolve()
    if not path.is_file():
        raise failure
    top = path
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    module = _module_name(path.relative_to(top.parent).parts)
    source = find_module(module, script_folder)
    if source.path.resolve() != path:
        raise NotFoundError(
            f"{path} is not what Python imports as {module}", f"that is {source.path}: name a line of it"
        )
    return source


def torch_version() -> str:
    """Return the version of the installed torch, from its metadata."""
    return installed("torch") or "(not installed)"


def _module_name(parts: Sequence[str]) -> str:
    *folders, file = parts
    stem = file.removesuffix(".py")
    return ".".join(folders if stem == "__init__" and folders else [*folders, stem])


@cache
def _parsed(module: str, path: Path) -> Source:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror or error}") from error
    except (SyntaxError, ValueError) as error:
        raise UnreadableError(f"{path} is not Python: {error}") from error
    functions = sorted(_functions(tree, ""), key=lambda function: function.first_line)
    has_star_import = any(isinstance(node, ast.alias) and node.name == "*" for node in ast.walk(tree))
    names = None if has_star_import else frozenset(_bound(tree)) | frozenset(dir(builtins))
    return Source(module, path, tuple(functions), names)


def _functions(parent: ast.AST, prefix: str) -> Iterator[Function]:
    for node in ast.iter_child_nodes(parent):
        inner = prefix  # of a function under an `if` or in a `try`
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inner = f"{prefix}{node.name}."
        if isinstance(node, _Function):
            yield Function(prefix + node.name, node, frozenset(_bound(node)))
        yield from _functions(node, inner)


def _bound(scope: ast.AST) -> Iterator[str]:
    """Yield the names that a module or function binds itself, not in functions and classes inside it."""
    for node in ast.iter_child_nodes(scope):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
                continue
            case ast.Lambda():
                continue
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.alias(name=name, asname=alias):
                yield alias or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
        yield from _bound(node)
