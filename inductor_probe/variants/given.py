"""A variant by name: a copy of the pristine code, or what a file holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from inductor_probe.backends import Backend
from inductor_probe.errors import NotFoundError, ProbeError, VariantTextError, near_names
from inductor_probe.model.bench import NewVariant
from inductor_probe.variants.adding import add_variants, digest
from inductor_probe.variants.code import Code, KernelCode, kernel_code, read_code, with_names
from inductor_probe.variants.definitions import (
    Definition,
    definitions,
    same_but_names,
    split_name,
)
from inductor_probe.variants.takeover import users_variants

_FIRST = 2
"""The number of the copy that every bench file has."""
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
        VariantTextError: `text` is not of a form named above, or does not have the parameters of the kernel.
        ProbeError: the variant is there and was edited, so that the text would overwrite the edit.
        UnreadableError: the bench file is not Python.
    """
    code = read_code(source_text, path)
    base, number = _split(name, code, path)
    found = {each.name: each for each in definitions(source_text)}
    if name in found:
        if text is None:
            return source_text
        _refuse_to_overwrite(found[name], source_text, path)
    if base == "call":
        made = _copied_wrapper(code, number, found) if text is None else _given_wrapper(name, text, number)
    else:
        kernel = code.kernels[base]
        made = (
            f"{kernel.before}{kernel.source}{kernel.after}"
            if text is None
            else _given_kernel(name, text, kernel)
        )
        made = same_but_names(made, {base: name})
    comment = (
        "a copy of the pristine code, to edit" if text is None else f"from a file, as it was [{digest(made)}]"
    )
    return add_variants(source_text, (NewVariant(name, made, comment),))


def _split(name: str, code: Code, path: str) -> tuple[str, int]:
    """Return the kernel, or `call`, that the variant `name` is one of, and its number.

    Raises:
        NotFoundError: says which part of the name does not fit.
    """
    bases = ["call", *code.kernels]
    split = split_name(name)
    if split is not None and split[0] in bases and split[1] >= _FIRST:
        return split
    names = [f"{base}_v{code.next_number}" for base in bases]
    hint = near_names(name, names)
    if name in bases:
        what = f"{name} is what variants are compared to: those are called {name}_v2, {name}_v3 and so on"
        hint = f"name it {name}_v{code.next_number}"
    elif split is None:
        what = f"{name} is not the name of a variant: that is a kernel's or `call`, and _v2, _v3 and so on"
    elif split[0] not in bases:
        what = f"{name}: {path} has no kernel {split[0]}"
    else:
        what = f"{name}: the numbers of variants begin with {_FIRST}"
        hint = f"name it {split[0]}_v{code.next_number}"
    raise NotFoundError(what, hint)


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


def _given_wrapper(name: str, text: str, number: int) -> str:
    found = _parsed(name, text)
    tree = ast.parse(text)
    strange = next(
        (each for each in tree.body if not isinstance(each, ast.FunctionDef | ast.ClassDef | ast.Assign)),
        None,
    )
    names = {each.name: each.name if split_name(each.name) else f"{each.name}_v{number}" for each in found}
    entries = {f"call_v{number}", f"Runner_v{number}"} & set(names.values())
    if strange is not None or not entries or any(kernel_code(each) for each in found):
        raise VariantTextError(
            name,
            strange.lineno if strange else 1,
            "a statement that is no function, class or assignment"
            if strange
            else "neither a function `call` nor a class `Runner` is defined",
            "give the wrapper as output_code.py has it: class Runner, runner, call, or def call(args)",
        )
    made = with_names(text.strip() + "\n", names)
    if f"call_v{number}" not in names.values():
        made += (
            f"\nrunner_v{number} = Runner_v{number}(partitions=[])\ncall_v{number} = runner_v{number}.call\n"
        )
    return made


def _given_kernel(name: str, text: str, kernel: KernelCode) -> str:
    """Return the statement of `kernel` with the source that `text` holds, alone or in a statement."""
    if "async_compile." in text:
        found = [each for each in _parsed(name, text) if kernel_code(each)]
        given = kernel_code(found[0]) if len(found) == 1 else None
        if given is None or given.backend != kernel.backend:
            what = f"{len(found)} kernels are defined" if len(found) != 1 else "a kernel of another backend"
            raise VariantTextError(
                name,
                found[-1].start if found else 1,
                f"{what}, and {kernel.name} is one {kernel.backend.name} kernel",
                f"give its source alone, or {kernel.name} = async_compile... as output_code.py has it",
            )
        _check_parameters(name, given.backend, given.source, kernel)
        return same_but_names(found[0].text, {given.name: kernel.name})
    source = "\n" + text.strip("\n") + "\n"
    if kernel.backend.name == "triton":
        own = _TRITON_NAME.search(source, max(source.find("@triton_heuristics."), 0))
        if own is None:
            raise VariantTextError(
                name,
                1,
                "there is no function in it",
                "give the text between the quotes of async_compile.triton, its decorators included",
            )
        source = same_but_names(source, {own[1]: kernel.name})
    _check_parameters(name, kernel.backend, source, kernel)
    quotes = kernel.before[-3:]
    if quotes in source:
        raise VariantTextError(
            name,
            source[: source.index(quotes)].count("\n"),
            f"{quotes} would end the text that the kernel stands in",
            "write it otherwise: as two literals, or with other quotes",
        )
    if "\\" in source and not re.search(r"\br['\"]+$", kernel.before):
        source = source.replace("\\", "\\\\")
    return f"{kernel.before}{source}{kernel.after}"


def _check_parameters(name: str, backend: Backend, source: str, kernel: KernelCode) -> None:
    """The wrapper and the list of types beside the source go by position: as many, of the same kinds."""
    given, pristine = backend.read(source).args, backend.read(kernel.source).args
    if len(given) != len(pristine) or not given:
        has = f"its kernel takes {len(given)} arguments" if given else "no kernel was found in it"
        raise VariantTextError(
            name,
            1,
            f"{has}, and {kernel.name} takes {len(pristine)} arguments",
            f"keep the parameters: it is launched with those of {kernel.name}, "
            f"{', '.join(arg.name for arg in pristine)}",
        )


def _parsed(name: str, text: str) -> tuple[Definition, ...]:
    try:
        return definitions(text)
    except (SyntaxError, ValueError) as error:
        raise VariantTextError(
            name,
            getattr(error, "lineno", None) or 1,
            f"not Python: {getattr(error, 'msg', error)}",
            "give the statements as output_code.py has them",
        ) from error
