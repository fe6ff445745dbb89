"""A variant by name: a copy of the pristine code, or what a file holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from inductor_probe.backends import Backend
from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.variants import NewVariant
from inductor_probe.variants.adding import add_variants, digest
from inductor_probe.variants.code import Code, KernelCode, kernel_code, read_code, with_names
from inductor_probe.variants.definitions import (
    Definition,
    definitions,
    same_but_names,
    split_name,
)
from inductor_probe.variants.takeover import users_variants

_FROM_FILE = re.compile(r": from a file, as it was \[(\w+)\]")
_TRITON_NAME = re.compile(r"^def (\w+)\(", re.MULTILINE)


def add_variant(
    source_text: str, name: str, text: str | None = None, path: str = "output_code_bench.py"
) -> str:
    """Return a bench file with the variant `name` in it.

    Args:
        source_text: the bench file. `path` is what an error names.
        name: `cpp_fused_flip_0_v3`, `call_v3`.
        text: C++ or Triton source of the kernel, or the whole statement `NAME = async_compile...`; for a
            `call` the function, or the class `Runner`, with functions that it needs. None: a copy of the
            pristine code, unless the variant is there already.

    Raises:
        NotFoundError: `name` is not that of a variant of `call` or of a kernel of the file.
        ProbeError: `text` is not of a form named above, or does not have the parameters of the kernel; or the
            variant is there and was edited, so that the text would overwrite the edit.
        UnreadableError: the bench file is not Python.
    """
    code = read_code(source_text, path)
    split = split_name(name)
    if split is None or (split[0] != "call" and split[0] not in code.kernels) or split[1] < 2:
        bases = ["call", *code.kernels]
        wanted = [f"{base}_v{code.next_number}" for base in bases]
        raise NotFoundError(
            f"{name} is not the name of a variant: it is NAME_v2 or a higher number, NAME a kernel or call",
            near_names(name, wanted),
        )
    base, number = split
    found = {each.name: each for each in definitions(source_text)}
    if name in found:
        if text is None:
            return source_text
        _refuse_to_overwrite(found[name], source_text, path)
    if base == "call":
        made = _copied_wrapper(code, number, found) if text is None else _given_wrapper(text, number)
    else:
        kernel = code.kernels[base]
        made = (
            f"{kernel.before}{kernel.source}{kernel.after}" if text is None else _given_kernel(text, kernel)
        )
        made = same_but_names(made, {base: name})
    note = (
        "a copy of the pristine code, to edit" if text is None else f"from a file, as it was [{digest(made)}]"
    )
    return add_variants(source_text, (NewVariant(name, made, note),))


def _refuse_to_overwrite(known: Definition, source: str, path: str) -> None:
    """A copy that nobody touched, or what an earlier file held, may be replaced."""
    noted = _FROM_FILE.search(known.comment)
    untouched = all(each.name != known.name for each in users_variants(source))
    if not untouched and not (noted and noted[1] == digest(known.text)):
        raise ProbeError(
            f"{path}:{known.start}: {known.name} is there already, and was edited",
            "delete it there, or give the new one another number; nothing was changed",
        )


def _copied_wrapper(code: Code, number: int, found: Iterable[str]) -> str:
    """Copy the wrapper so that it launches the kernels' copies of its number, where there are any."""
    names = {each.name: f"{each.name}_v{number}" for each in code.wrapper}
    kernels = {name: copy for name in code.kernels if (copy := f"{name}_v{number}") in set(found)}
    return with_names("".join(each.text for each in code.wrapper), {**names, **kernels})


def _given_wrapper(text: str, number: int) -> str:
    found = _parsed(text)
    tree = ast.parse(text)
    strange = next(
        (each for each in tree.body if not isinstance(each, ast.FunctionDef | ast.ClassDef | ast.Assign)),
        None,
    )
    names = {each.name: each.name if split_name(each.name) else f"{each.name}_v{number}" for each in found}
    entries = {f"call_v{number}", f"Runner_v{number}"} & set(names.values())
    if strange is not None or not entries or any(kernel_code(each) for each in found):
        line = f"line {strange.lineno} is something else" if strange else "it has neither"
        raise ProbeError(
            f"the file given for call_v{number} is not a function call or a class Runner: {line}",
            "give the wrapper as output_code.py has it: class Runner, runner, call, or def call(args)",
        )
    made = with_names(text.strip() + "\n", names)
    if f"call_v{number}" not in names.values():
        made += (
            f"\nrunner_v{number} = Runner_v{number}(partitions=[])\ncall_v{number} = runner_v{number}.call\n"
        )
    return made


def _given_kernel(text: str, kernel: KernelCode) -> str:
    """Return the statement of `kernel` with the source that `text` holds, alone or in a statement."""
    if "async_compile." in text:
        found = [each for each in _parsed(text) if kernel_code(each)]
        given = kernel_code(found[0]) if len(found) == 1 else None
        if given is None or given.backend != kernel.backend:
            raise ProbeError(
                f"the file given does not define one {kernel.backend.name} kernel",
                f"give its source alone, or {kernel.name} = async_compile... as output_code.py has it",
            )
        _check_parameters(given.backend, given.source, kernel)
        return same_but_names(found[0].text, {given.name: kernel.name})
    source = "\n" + text.strip("\n") + "\n"
    if kernel.backend.name == "triton":
        own = _TRITON_NAME.search(source, max(source.find("@triton_heuristics."), 0))
        if own is None:
            raise ProbeError(
                "the file given has no function",
                "give the text between the quotes of async_compile.triton, its decorators included",
            )
        source = same_but_names(source, {own[1]: kernel.name})
    _check_parameters(kernel.backend, source, kernel)
    quotes = kernel.before[-3:]
    if quotes in source:
        raise ProbeError(f"the file given holds {quotes}, which would end the text that it stands in")
    if "\\" in source and not re.search(r"\br['\"]+$", kernel.before):
        source = source.replace("\\", "\\\\")
    return f"{kernel.before}{source}{kernel.after}"


def _check_parameters(backend: Backend, source: str, kernel: KernelCode) -> None:
    """The wrapper and the list of types beside the source go by position: as many, of the same kinds."""
    given, pristine = backend.read(source).args, backend.read(kernel.source).args
    if len(given) != len(pristine) or not given:
        raise ProbeError(
            f"the kernel given takes {len(given)} arguments where {kernel.name} takes {len(pristine)}",
            "a variant is launched like the kernel that it is a copy of: keep its parameters",
        )


def _parsed(text: str) -> tuple[Definition, ...]:
    try:
        return definitions(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise ProbeError(
            f"line {line} of the file given is not Python: {getattr(error, 'msg', error)}"
        ) from error
