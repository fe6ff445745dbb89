"""The rewrite `triton`: a Triton kernel that runs with one configuration, not those of its heuristic."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.bench import NewVariant
from inductor_probe.variants.code import Code, KernelCode, offset

_SETTINGS = {"num_warps": 4, "num_stages": 1}
"""What a configuration says beside block sizes, with inductor's usual values."""
_FIXED_BY_KEYWORD = ("template",)
_GIVEN = re.compile(r"(\w+)=(\d+)")


def triton_config(code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
    """Return a copy of a Triton kernel with one fixed configuration.

    Its heuristic (`pointwise`, `reduction`, `persistent_reduction`, ...) is replaced by `fixed_config`, which
    tries nothing else; metadata, and with it the grid, stay. A template keeps its decorator: its blocks are
    constants of its text, so only warps and stages can be set.

    Args:
        code: what it is a variant of.
        arguments: `triton_poi_fused_add_0 XBLOCK=256 num_warps=8 num_stages=2`. Every block size that the
            kernel takes must be given; 4 warps and 1 stage are taken where none are.
        comment: of the variant.

    Raises:
        NotFoundError: no such kernel, or block size of it.
        ProbeError: a block size is missing or no power of two; the kernel is of another kind.
    """
    name, _, rest = arguments.strip().partition(" ")
    settings = {key: int(value) for key, value in _GIVEN.findall(rest)}
    if not settings or _GIVEN.sub("", rest).replace(",", " ").strip():
        raise ProbeError(
            f"triton wants KERNEL XBLOCK=256 num_warps=8 num_stages=2, not {arguments!r}",
            "name each block size, num_warps and num_stages as NAME=NUMBER",
        )
    name = code.kernel(name)
    kernel = code.kernels[name]
    function, call = decorated(kernel)
    blocks = constexprs(function)
    heuristic = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    _check(kernel, heuristic, blocks, settings)
    config = {**_SETTINGS, **settings}
    if heuristic in _FIXED_BY_KEYWORD:
        return code.with_sources({name: _with_keywords(kernel.source, call, config)}, comment)
    blocks_first = {block: config.pop(block) for block in blocks} | config
    kept = [
        keyword for keyword in call.keywords if keyword.arg in ("filename", "triton_meta", "inductor_meta")
    ]
    lines = kernel.source.split("\n")
    rows = [f"    config={blocks_first!r},"]
    for keyword in kept:
        start = offset(lines, keyword.value.lineno - 1, keyword.value.col_offset)
        end = offset(lines, (keyword.value.end_lineno or 0) - 1, keyword.value.end_col_offset or 0)
        rows.append(f"    {keyword.arg}={kernel.source[start:end]},")
    start = offset(lines, call.lineno - 1, call.col_offset)
    end = offset(lines, (call.end_lineno or 0) - 1, call.end_col_offset or 0)
    decorator = "\n".join(["triton_heuristics.fixed_config(", *rows, ")"])
    return code.with_sources({name: kernel.source[:start] + decorator + kernel.source[end:]}, comment)


def decorated(kernel: KernelCode) -> tuple[ast.FunctionDef, ast.Call]:
    """Return the kernel's function and the call that decorates it, `triton_heuristics.pointwise(...)`.

    Raises:
        ProbeError: it is no Triton kernel, or is written in another form (torch before 2.2).
    """
    if kernel.backend.name != "triton":
        raise ProbeError(
            f"{kernel.name} is no Triton kernel", "loops:KERNEL x1,x2 swaps loops of a C++ kernel"
        )
    try:
        tree = ast.parse(kernel.source)
    except (SyntaxError, ValueError) as error:
        raise ProbeError(f"the source of {kernel.name} is not Python: {error}") from error
    for function in (each for each in tree.body if isinstance(each, ast.FunctionDef)):
        for each in function.decorator_list:
            if isinstance(each, ast.Call) and ast.unparse(each.func).startswith("triton_heuristics."):
                return function, each
    raise ProbeError(
        f"{kernel.name} has no triton_heuristics decorator",
        "torch before 2.2 wrote others: dump the script again",
    )


def constexprs(function: ast.FunctionDef) -> tuple[str, ...]:
    """Return the parameters of a Triton function that are compiled in, in order."""
    return tuple(
        arg.arg
        for arg in function.args.args
        if arg.annotation and ast.unparse(arg.annotation) == "tl.constexpr"
    )


def _check(kernel: KernelCode, heuristic: str, blocks: tuple[str, ...], settings: Mapping[str, int]) -> None:
    if heuristic == "user_autotune":
        raise ProbeError(
            f"{kernel.name} is a kernel of the user's own, whose grid goes with its configurations",
            "set them where @triton.autotune stands in the user's code",
        )
    known = (*blocks, *_SETTINGS)
    for key, value in settings.items():
        if key not in known:
            raise NotFoundError(f"{kernel.name} takes no {key}", near_names(key, known))
        if key != "num_stages" and (value < 1 or value & (value - 1)):
            raise ProbeError(
                f"{key}={value} is no power of two, which Triton needs", f"{key}={1 << value.bit_length()}"
            )
    if missing := [block for block in blocks if block not in settings]:
        raise ProbeError(
            f"{kernel.name} takes {', '.join(missing)} as well, for which nothing is given",
            f"give {' '.join(f'{block}=...' for block in missing)}",
        )


def _with_keywords(source: str, call: ast.Call, config: Mapping[str, int]) -> str:
    lines = source.split("\n")
    for keyword in sorted(
        call.keywords, key=lambda each: (each.value.lineno, each.value.col_offset), reverse=True
    ):
        if keyword.arg is not None and keyword.arg in config:
            start = offset(lines, keyword.value.lineno - 1, keyword.value.col_offset)
            end = offset(lines, (keyword.value.end_lineno or 0) - 1, keyword.value.end_col_offset or 0)
            source = source[:start] + str(config[keyword.arg]) + source[end:]
    return source
