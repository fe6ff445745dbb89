"""Variants in the text of a bench file: added by name, carried over into one made afresh, compared.

Nothing else of the file is changed.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
from collections.abc import Iterable

from inductor_probe.errors import NotFoundError, ProbeError, VariantTextError, near_names
from inductor_probe.model.bench import ABLATIONS, NewVariant, VariantDiff, VariantKind
from inductor_probe.variants.code import (
    Code,
    Definition,
    KernelCode,
    definitions,
    is_variant,
    kernel_code,
    names_of,
    pristine,
    read_code,
    split_name,
    wait_line,
    with_names,
    with_words,
)

MADE_BY = ": made by "
"""What stands behind the name in the comment above a variant that a named rewrite made."""
_TABLE = "# These leave something out on purpose: they are timed although wrong, and never an improvement."
_FIRST = 2
"""The number of the copies that a bench file is made with."""
_FROM_FILE = re.compile(r": from a file, as it was \[(\w+)\]")
_TRITON_NAME = re.compile(r"^def (\w+)\(", re.MULTILINE)
_CONTEXT = 2


def add_variant(source: str, name: str, text: str | None = None, path: str = "output_code_bench.py") -> str:
    """Return a bench file with the variant `name` in it.

    Args:
        source: the bench file. `path` is what an error names.
        name: `cpp_fused_flip_0_v3`, `call_v3`.
        text: C++ or Triton source of the kernel, or the whole statement `NAME = async_compile...`; for a
            `call` the function, or the class `Runner`, with functions that it needs. None: a copy of the
            pristine code, unless the variant is there already.

    Raises NotFoundError: `name` is not that of a variant of `call` or of a kernel of the file.
    VariantTextError: `text` is not of a form named above, or does not have the parameters of the kernel.
    ProbeError: the variant is there and was edited, so that the text would overwrite the edit.
    UnreadableError: the bench file is not Python.
    """
    code = read_code(source, path)
    base, number = _split(name, code)
    if name in code.known:
        if text is None:
            return source
        # A copy that nobody touched, or what an earlier file held, may be replaced.
        users = next((definition for definition in users_variants(source) if definition.name == name), None)
        noted = _FROM_FILE.search(users.comment) if users else None
        if users and not (noted and noted[1] == _digest(users.text)):
            raise ProbeError(
                f"{path}:{users.start}: {name} already exists, and was edited",
                "delete it there, or give the new one another number; nothing was changed",
            )
    if base == "call":
        made = _copy_of_wrapper(code, number) if text is None else _wrapper_from(name, text, number)
    else:
        kernel = code.kernels[base]
        copy = f"{kernel.before}{kernel.source}{kernel.after}"
        made = with_words(copy if text is None else _kernel_from(name, text, kernel), {base: name})
    comment = "a copy of the pristine code, to edit"
    if text is not None:
        comment = f"from a file, as it was [{_digest(made)}]"
    return add_variants(source, (NewVariant(name, made, comment),))


def _split(name: str, code: Code) -> tuple[str, int]:
    """Return the kernel, or `call`, that the variant `name` is one of, and its number.

    Raises NotFoundError: says which part of the name does not fit.
    """
    bases = ["call", *code.kernels]
    split, number = split_name(name), code.next_number
    if split is not None and split[0] in bases and split[1] >= _FIRST:
        return split
    hint = near_names(name, [f"{base}_v{number}" for base in bases])
    if name in bases:
        what = f"{name} is what variants are compared to: those are called {name}_v2, {name}_v3 and so on"
        hint = f"name it {name}_v{number}"
    elif split is None:
        what = f"{name} is not the name of a variant: that is a kernel's or `call`, and _v2, _v3 and so on"
    elif split[0] not in bases:
        what = f"{name}: {code.path} has no kernel {split[0]}"
    else:
        what, hint = f"{name}: the numbers of variants begin with {_FIRST}", f"name it {split[0]}_v{number}"
    raise NotFoundError(what, hint)


def _copy_of_wrapper(code: Code, number: int) -> str:
    """Copy the wrapper so that it launches the kernels' copies of its number, where there are any."""
    names = {definition.name: f"{definition.name}_v{number}" for definition in code.wrapper}
    names |= {name: copy for name in code.kernels if (copy := f"{name}_v{number}") in code.known}
    return with_names("".join(definition.text for definition in code.wrapper), names)


def _wrapper_from(name: str, text: str, number: int) -> str:
    defined = _parsed(name, text)
    strange = next(
        (
            statement
            for statement in ast.parse(text).body
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.Assign)
        ),
        None,
    )
    names = {
        definition.name: definition.name if split_name(definition.name) else f"{definition.name}_v{number}"
        for definition in defined
    }
    entries = {f"call_v{number}", f"Runner_v{number}"} & set(names.values())
    if strange is not None or not entries or any(map(kernel_code, defined)):
        raise VariantTextError(
            name,
            strange.lineno if strange else 1,
            "a statement that is not a function, class or assignment"
            if strange
            else "neither a function `call` nor a class `Runner` is defined",
            "give the wrapper as output_code.py has it: class Runner, runner, call, or def call(args)",
        )
    made = with_names(text.strip() + "\n", names)
    if f"call_v{number}" not in entries:
        runner = f"runner_v{number}"
        made += f"\n{runner} = Runner_v{number}(partitions=[])\ncall_v{number} = {runner}.call\n"
    return made


def _kernel_from(name: str, text: str, kernel: KernelCode) -> str:
    """Return the statement of `kernel` with the source that `text` holds, alone or in a statement."""
    if "async_compile." in text:
        statements = [definition for definition in _parsed(name, text) if kernel_code(definition)]
        other = kernel_code(statements[0]) if len(statements) == 1 else None
        if other is None or other.backend != kernel.backend:
            count = len(statements)
            what = f"{count} kernels are defined" if count != 1 else "a kernel of another backend"
            raise VariantTextError(
                name,
                statements[-1].start if statements else 1,
                f"{what}, and {kernel.name} is one {kernel.backend.name} kernel",
                f"give its source alone, or {kernel.name} = async_compile... as output_code.py has it",
            )
        _check_parameters(name, other.source, kernel)
        return with_words(statements[0].text, {other.name: kernel.name})
    source = "\n" + text.strip("\n") + "\n"
    if kernel.backend.name == "triton":
        function = _TRITON_NAME.search(source, max(source.find("@triton_heuristics."), 0))
        if function is None:
            raise VariantTextError(
                name,
                1,
                "there is no function in it",
                "give the text between the quotes of async_compile.triton, its decorators included",
            )
        source = with_words(source, {function[1]: kernel.name})
    _check_parameters(name, source, kernel)
    quotes = kernel.before[-3:]
    if quotes in source:
        raise VariantTextError(
            name,
            source[: source.index(quotes)].count("\n"),
            f"{quotes} would end the string literal that holds the kernel",
            "write it otherwise: as two literals, or with other quotes",
        )
    if "\\" in source and not re.search(r"\br['\"]+$", kernel.before):
        source = source.replace("\\", "\\\\")
    return f"{kernel.before}{source}{kernel.after}"


def _check_parameters(name: str, source: str, kernel: KernelCode) -> None:
    """The wrapper and the list of types beside the source go by position: as many are needed."""
    args, expected = kernel.backend.read(source).args, kernel.backend.read(kernel.source).args
    if len(args) != len(expected) or not args:
        takes = f"its kernel takes {len(args)} arguments" if args else "no kernel was found in it"
        raise VariantTextError(
            name,
            1,
            f"{takes}, and {kernel.name} takes {len(expected)} arguments",
            f"keep the parameters: it is launched with those of {kernel.name}, "
            f"{', '.join(arg.name for arg in expected)}",
        )


def _parsed(name: str, text: str) -> tuple[Definition, ...]:
    try:
        return definitions(text)
    except (SyntaxError, ValueError) as error:
        line, what = getattr(error, "lineno", None) or 1, f"not Python: {getattr(error, 'msg', error)}"
        raise VariantTextError(name, line, what, "give the statements as output_code.py has them") from error


def add_variants(source: str, variants: Iterable[NewVariant]) -> str:
    """Return a bench file with variants added, each below what it is a copy of.

    Raises SyntaxError: `source` is not Python.
    """
    for variant in variants:
        source = _put(source, variant.name, f"# {variant.name}: {variant.comment}\n{variant.text}")
        if variant.ablation is not None:
            table = {**ablations(source), variant.name: variant.ablation}
            rows = "".join(f'    "{name}": "{left_out}",\n' for name, left_out in table.items())
            source = _put(source, ABLATIONS, f"{_TABLE}\n{ABLATIONS} = {{\n{rows}}}")
    return source


def _put(source: str, name: str, text: str) -> str:
    """Return a bench file in which `name` is defined by `text`, its comment included.

    A definition of that name is replaced; a new kernel goes below the last copy of the same kernel, what
    belongs to the wrapper below the last of the wrapper, the table of ablations above `make_inputs`.
    """
    by_name = {definition.name: definition for definition in definitions(source)}
    lines, new = source.split("\n"), text.rstrip("\n").split("\n")
    if known := by_name.get(name):
        lines[known.first - 1 : known.last] = new
        return "\n".join(lines)
    if name == ABLATIONS:
        row = by_name["make_inputs"].first - 1 if "make_inputs" in by_name else len(lines)
        lines[row:row] = [*new, "", ""]
        return "\n".join(lines)
    is_kernel = "async_compile." in text
    family = [
        definition.last
        for definition in by_name.values()
        if pristine(definition.name) == (pristine(name) if is_kernel else "call")
        or (not is_kernel and split_name(definition.name) and not kernel_code(definition))
    ]
    if family:
        lines[family[-1] : family[-1]] = ["", "", *new]
    else:
        row = (wait_line(source) or len(lines)) - 1 if is_kernel else len(lines)
        lines[row:row] = ["", "", *new, ""]
    return "\n".join(lines)


def _digest(text: str) -> str:
    return hashlib.sha256(text.strip().encode()).hexdigest()[:12]


def ablations(source: str) -> dict[str, str]:
    """Return the table of ablations of a bench file: what each variant in it leaves out."""
    node = next((definition.node for definition in definitions(source) if definition.name == ABLATIONS), None)
    try:
        table = ast.literal_eval(getattr(node, "value", None) or "{}")
    except (SyntaxError, ValueError):
        return {}
    return {str(name): str(what) for name, what in table.items()} if isinstance(table, dict) else {}


def users_variants(source: str) -> tuple[Definition, ...]:
    """Return the variants in a bench file that were edited or added, the table of ablations among them.

    A `_v2` that says what its pristine code says in the same file is a copy that nobody touched.

    Raises SyntaxError, ValueError: `source` is not Python.
    """
    by_name = {definition.name: definition for definition in definitions(source)}
    names = names_of(_FIRST, by_name)

    def is_untouched(variant: Definition) -> bool:
        original = by_name.get(names.get(variant.name, ""))
        if original is None or with_words(variant.text, names) != original.text:
            return False
        made = f"# {variant.name}: a copy of the kernel above, to edit\n"
        comments = ("", made, original.comment)
        return variant.comment in comments or with_words(variant.comment, names) == original.comment

    return tuple(
        definition
        for definition in by_name.values()
        if is_variant(definition.name) and not is_untouched(definition)
    )


def carry_over(fresh: str, users: tuple[Definition, ...]) -> str:
    """Return a fresh bench file with the user's variants in it, byte for byte."""
    for definition in users:
        fresh = _put(fresh, definition.name, definition.comment + definition.text)
    return fresh


def orphaned_variants(source: str) -> tuple[str, ...]:
    """Return the variants of kernels that a bench file no longer has: nothing checks or times them.

    Raises SyntaxError, ValueError: `source` is not Python.
    """
    kernels = [definition.name for definition in definitions(source) if kernel_code(definition)]
    return tuple(name for name in kernels if pristine(name) not in kernels)


def variant_diffs(source: str, path: str = "output_code_bench.py") -> tuple[VariantDiff, ...]:
    """Return how each variant differs from the pristine code: wrappers first, then kernels in order.

    A name that is that of a copy of the same number counts as that of what it copies, so that an untouched
    copy has no difference, and `call_v3` is not different for launching a `_v3`.

    Raises UnreadableError: the file is not Python, or has no `call`.
    """
    code = read_code(source, path)
    by_name = {definition.name: definition for definition in definitions(source)}
    left_out = ablations(source)
    wrapper = "".join(definition.text for definition in code.wrapper)
    wrappers, kernels = [], []
    for number in sorted({split[1] for name in by_name if (split := split_name(name))}):
        if (name := f"call_v{number}") in by_name:
            copy = read_code(source, path, number).wrapper
            text = with_words("".join(definition.text for definition in copy), names_of(number, by_name))
            kind: VariantKind = (
                "rewrite" if any(MADE_BY in definition.comment for definition in copy) else "edit"
            )
            wrappers.append(VariantDiff(name, "call", kind, _diff("call", name, wrapper, text)))
    for name, definition in by_name.items():
        split = split_name(name)
        if not split or not (kernel_code(definition) or split[0] in code.kernels):
            continue
        kind = "ablation" if name in left_out else "rewrite" if MADE_BY in definition.comment else "edit"
        text = with_words(definition.text, names_of(split[1], by_name))
        base = by_name.get(split[0])
        lines = _diff(split[0], name, base.text, text) if base else ()
        kernels.append(VariantDiff(name, split[0] if base else None, kind, lines))
    return (*wrappers, *kernels)


def _diff(base: str, name: str, before: str, after: str) -> tuple[str, ...]:
    return tuple(
        difflib.unified_diff(before.splitlines(), after.splitlines(), base, name, n=_CONTEXT, lineterm="")
    )
