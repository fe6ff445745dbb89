"""The rewrite `triton`: one configuration for a Triton kernel, put into its decorator by the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from inductor_probe.errors import NotFoundError, ProbeError, near_names
from inductor_probe.model.bench import NewVariant
from inductor_probe.variants.code import Code, KernelCode, Rewrite, edited, span

_DEFAULTS = {"num_warps": 4, "num_stages": 1}
"""What a configuration says beside block sizes, with inductor's usual values."""
_SETTING = re.compile(r"(\w+)=(\d+)")
_BLOCK = 64
"""Size of each block in a rewrite that is offered: any power of two is possible."""


class TritonConfig(Rewrite):
    """A copy of a Triton kernel with one fixed configuration.

    Its heuristic (`pointwise`, `reduction`, `persistent_reduction`, ...) is replaced by `fixed_config`
    (torch/_inductor/runtime/triton_heuristics.py), which tries nothing else; metadata, and with it the grid,
    stay. A template keeps its decorator: its blocks are constants of its text, so only warps and stages can
    be set. Every block size that the kernel takes must be given; else there are 4 warps and 1 stage.
    """

    name = "triton"
    arguments = "KERNEL XBLOCK=256 num_warps=8 num_stages=2"
    help = "run a Triton kernel with this one configuration"

    def candidates(self, code: Code) -> Iterator[str]:
        """Yield one configuration for each Triton kernel."""
        for name, kernel in code.kernels.items():
            try:
                blocks = [block for block in constexprs(decorated(kernel)[0]) if block.endswith("BLOCK")]
            except ProbeError:
                continue
            yield " ".join([name, *(f"{block}={_BLOCK}" for block in blocks), "num_warps=4"])

    def apply(self, code: Code, arguments: str, comment: str) -> tuple[NewVariant, ...]:
        """Refuse a block size that is missing or no power of two, and a kernel of another kind."""
        name, _, rest = arguments.strip().partition(" ")
        settings = {key: int(value) for key, value in _SETTING.findall(rest)}
        if not settings or _SETTING.sub("", rest).replace(",", " ").strip():
            raise self.invalid(arguments, "name each block size, num_warps and num_stages as NAME=NUMBER")
        kernel = code.kernel(name)
        function, call = decorated(kernel)
        blocks = constexprs(function)
        heuristic = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        _check(kernel, heuristic, blocks, settings)
        config = {**_DEFAULTS, **settings}
        source = kernel.source
        if heuristic == "template":
            edits = [
                (*span(source, keyword.value), str(config[keyword.arg]))
                for keyword in call.keywords
                if keyword.arg in config
            ]
        else:
            rows = [f"    config={ ({block: config.pop(block) for block in blocks} | config)!r},"]
            for keyword in call.keywords:
                if keyword.arg in ("filename", "triton_meta", "inductor_meta"):
                    start, end = span(source, keyword.value)
                    rows.append(f"    {keyword.arg}={source[start:end]},")
            edits = [(*span(source, call), "\n".join(["triton_heuristics.fixed_config(", *rows, ")"]))]
        return code.with_sources({kernel.name: edited(source, edits)}, comment)


def decorated(kernel: KernelCode) -> tuple[ast.FunctionDef, ast.Call]:
    """Return the kernel's function and the call that decorates it, `triton_heuristics.pointwise(...)`.

    Raises ProbeError: it is not a Triton kernel, or is written in another form (torch before 2.2).
    """
    if kernel.backend.name != "triton":
        raise ProbeError(
            f"{kernel.name} is not a Triton kernel", "loops:KERNEL x1,x2 swaps loops of a C++ kernel"
        )
    try:
        tree = ast.parse(kernel.source)
    except (SyntaxError, ValueError) as error:
        raise ProbeError(f"the source of {kernel.name} is not Python: {error}") from error
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        for decorator in function.decorator_list:
            match decorator:
                case ast.Call(func=ast.Attribute(value=ast.Name("triton_heuristics"))):
                    return function, decorator
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
            f"{kernel.name} is a kernel of the user's own, whose grid depends on its configurations",
            "set them at @triton.autotune in the user's code",
        )
    known = (*blocks, *_DEFAULTS)
    for key, value in settings.items():
        if key not in known:
            raise NotFoundError(f"{kernel.name} takes no {key}", near_names(key, known))
        if key != "num_stages" and (value < 1 or value & (value - 1)):
            raise ProbeError(
                f"{key}={value} is not a power of two, which Triton needs", f"{key}={1 << value.bit_length()}"
            )
    if missing := [block for block in blocks if block not in settings]:
        raise ProbeError(
            f"{kernel.name} takes {', '.join(missing)} as well: give a value for each",
            f"give {' '.join(f'{block}=...' for block in missing)}",
        )
