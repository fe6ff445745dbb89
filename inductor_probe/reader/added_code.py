"""Code that somebody added to `output_code.py`: told from what torch prints, so that neither hides the other.

Torch prints imports of its own and of a few modules of Python, aliases, kernels, functions that begin with
`... = args`, the example inputs, and the part that runs them. A function, a class or an import beyond these
shows that the file was edited, or that another torch wrote it; what uses their names belongs to them. Without
one, a statement of no known form is a problem: it may be a new form of torch's.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from inductor_probe.reader.values import dotted

_IMPORTED = frozenset(
    (
        "torch", "triton", "ctypes", "math", "cmath", "random", "os", "tempfile", "__future__", "sympy",
        "contextlib", "cutlass", "cuda", "jax", "halide", "numpy",
    )
)  # fmt: skip
"""What PythonWrapperCodegen.write_header and the headers of backends import from."""
_FUNCTIONS = ("call", "get_args", "benchmark_compiled_module", "get_raw_stream")
_CLASSES = ("Runner",)


@dataclass(slots=True)
class AddedCode:
    """The statements of a file that are not torch's, and the names that they define."""

    statements: list[ast.stmt] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def take(self, statement: ast.stmt) -> None:
        """Note a statement that is not torch's."""
        self.statements.append(statement)
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self.names.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                self.names.update((alias.asname or alias.name).partition(".")[0] for alias in names)
            case _:
                stored = (part for part in ast.walk(statement) if isinstance(part, ast.Name))
                self.names.update(part.id for part in stored if isinstance(part.ctx, ast.Store))

    def uses(self, statement: ast.stmt) -> bool:
        """Return whether a statement uses a name that is not torch's: then it is not torch's either."""
        if not self.names:
            return False
        return any(isinstance(part, ast.Name) and part.id in self.names for part in ast.walk(statement))


def added_code(tree: ast.Module) -> AddedCode:
    """Return the imports, functions and classes of a module that are not torch's, and what uses them."""
    added = AddedCode()
    for statement in tree.body:
        if _is_added(statement):
            added.take(statement)
    for statement in tree.body:
        if statement not in added.statements and not _is_frame(statement) and added.uses(statement):
            added.take(statement)
    return added


def _is_added(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import(names=names):
            return any(alias.name.partition(".")[0] not in _IMPORTED for alias in names)
        case ast.ImportFrom(module=module):
            return (module or "").partition(".")[0] not in _IMPORTED
        case ast.FunctionDef(name=name, decorator_list=decorators):
            torch_has = name in _FUNCTIONS or decorators or _takes_args(statement) or forwarded(statement)
            return not torch_has
        case ast.ClassDef(name=name):
            return name not in _CLASSES
    return isinstance(statement, ast.AsyncFunctionDef)


def _is_frame(statement: ast.stmt) -> bool:
    """Return whether a statement is one of the parts of every file, which may be edited inside."""
    return isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.If)


def _takes_args(function: ast.FunctionDef) -> bool:
    """Return whether a function is a part of the wrapper: `def partition_0(args):` unpacks its arguments."""
    return any(
        isinstance(part, ast.Assign) and isinstance(part.value, ast.Name) and part.value.id == "args"
        for part in function.body
    )


def forwarded(function: ast.FunctionDef) -> str | None:
    """Return what a function calls that only forwards its arguments; None of any other.

    define_extern_kernel_profile_wrapper, with `trace.provenance_tracking_to_timeline` of torch 2.15, so that
    a profile has a name for each call:

        def extern_kernels_extern_kernels_mm_0(*args, **kwargs):
            return extern_kernels.mm(*args, **kwargs)
    """
    match function.body:
        case [
            ast.Return(
                value=ast.Call(
                    func=ast.Attribute() as target,
                    args=[ast.Starred(value=ast.Name("args"))],
                    keywords=[ast.keyword(arg=None, value=ast.Name("kwargs"))],
                )
            )
        ]:
            return dotted(target)
    return None
