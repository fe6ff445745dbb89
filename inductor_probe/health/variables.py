"""Variables of torch and triton that are set in the environment, and what each does."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from inductor_probe.machine.facts import VARIABLE_PREFIXES, is_secret
from inductor_probe.model.health import Diagnostic, Level, TorchSetup, diagnostic

_CONFIGS = ("_inductor", "_dynamo", "_functorch", "compiler")
_OURS = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TORCH_COMPILE_", "TORCH_DYNAMO_")
"""Nothing but the Python of those rooms of torch reads variables with these prefixes."""
_NAME = re.compile(rf"\b(?:{'|'.join(_OURS)})[A-Z0-9_]+\b")


_HARMLESS = {
    ("0", ""): """
        TORCH_COMPILE_DEBUG TORCHINDUCTOR_FORCE_DISABLE_CACHES TORCH_COMPILE_FORCE_DISABLE_CACHES
        TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE
        TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE
        TORCH_COMPILE_DISABLE TORCHDYNAMO_DISABLE TORCHINDUCTOR_FREEZING TORCHINDUCTOR_CPP_WRAPPER
        TORCHINDUCTOR_FX_WRAPPER TORCHINDUCTOR_DEBUG_FUSION TORCHINDUCTOR_BENCHMARK_KERNEL
        TRITON_KERNEL_OVERRIDE TRITON_KERNEL_DUMP TRITON_INTERPRET TRITON_ALWAYS_COMPILE TRITON_DEBUG
        TORCHINDUCTOR_MAX_AUTOTUNE TORCHINDUCTOR_MAX_AUTOTUNE_GEMM TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE
        TORCHINDUCTOR_COORDINATE_DESCENT_TUNING TORCHINDUCTOR_BENCHMARK_FUSION TORCHINDUCTOR_MULTI_KERNEL
        TORCHINDUCTOR_CPP_DYNAMIC_THREADS TORCHINDUCTOR_CPP_ENABLE_UNSAFE_MATH_OPT_FLAG
        TORCHINDUCTOR_USE_FAST_MATH TORCHINDUCTOR_CUDAGRAPHS TORCHINDUCTOR_NAN_ASSERTS
        TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE TORCHINDUCTOR_DEBUG_COMPILE CUDA_LAUNCH_BLOCKING""",
    ("",): """
        TORCH_COMPILE_OVERRIDE_BACKENDS TORCH_COMPILE_OVERRIDE_INDUCTOR_CONFIGS
        TORCH_COMPILE_OVERRIDE_DYNAMO_CONFIGS TORCHDYNAMO_SUPPRESS_ERRORS TORCHDYNAMO_REPRO_AFTER
        TORCHINDUCTOR_VEC_ISA_OK ATEN_CPU_CAPABILITY OMP_NUM_THREADS MKL_NUM_THREADS TORCHINDUCTOR_PROFILE
        PYTORCH_NO_CUDA_MEMORY_CACHING LD_PRELOAD TORCH_LOGS TORCH_TRACE""",
    ("1",): "TORCHINDUCTOR_UNIQUE_KERNEL_NAMES TORCHINDUCTOR_SIZE_ASSERTS",
    ("", "g++"): "CXX",
    (): """
        TORCH_COMPILE_DEBUG_DIR TORCHINDUCTOR_CACHE_DIR TRITON_CACHE_DIR TORCHINDUCTOR_FX_GRAPH_CACHE
        TORCHINDUCTOR_AUTOGRAD_CACHE TORCHINDUCTOR_COMPILE_THREADS TORCHINDUCTOR_WORKER_START
        CUDA_VISIBLE_DEVICES TORCHINDUCTOR_LAYOUT_OPTIMIZATION""",
}
EFFECTS = {name: values for values, names in _HARMLESS.items() for name in names.split()}
"""The variables whose effect is known, each with the values that change nothing; `report/words/health.py`
says what they do."""
_EXPECTED = (
    "TORCH_COMPILE_DEBUG", "TORCH_COMPILE_DEBUG_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE", "TORCHINDUCTOR_COMPILE_THREADS",
    "TORCHINDUCTOR_WORKER_START", "TORCH_LOGS", "TORCH_TRACE", "CUDA_VISIBLE_DEVICES", "CXX",
)  # fmt: skip
"""What these do to a dump or a timing is not taken for something else; it is with all others."""


class Reader(NamedTuple):
    """What of torch reads a variable: a file (`torch/_inductor/x.py`), and the setting that it sets."""

    file: str
    setting: str | None = None


def variable_diagnostics(
    setup: TorchSetup, environment: Mapping[str, str] = os.environ
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each variable that is set, known or of torch's or triton's prefixes."""
    names = sorted(name for name in environment if name in EFFECTS or name.startswith(VARIABLE_PREFIXES))
    if not names:
        yield diagnostic(
            "variables", "ok", "variables-none",
            name=None, value=None, known=None, setting=None, file=None, near=None, torch=setup.version,
        )  # fmt: skip
        return
    spec = None if setup.folder else importlib.util.find_spec("torch")
    folder = setup.folder or (spec and spec.submodule_search_locations and spec.submodule_search_locations[0])
    unknown = any(name not in EFFECTS and name.startswith(_OURS) for name in names)
    readers = variables_in(Path(folder)) if unknown and folder else {}
    for name in names:
        reader = readers.get(name)
        near = None
        verdict: tuple[Level, str] = ("ok", "variable-not-known")
        if environment[name] in EFFECTS.get(name, ()):
            verdict = ("ok", "variable-harmless")
        elif name in EFFECTS:
            verdict = ("ok" if name in _EXPECTED else "warning", "variable-effect")
        elif reader is not None:
            verdict = ("warning", "variable-read")
        elif name.startswith(_OURS) and readers:
            near = next(iter(get_close_matches(name, [*readers, *EFFECTS], n=1, cutoff=0.8)), None)
            verdict = ("warning", "variable-not-read")
        yield diagnostic(
            "variables",
            *verdict,
            name=name,
            value=None if is_secret(name, environment[name]) else environment[name],
            known=name in EFFECTS or reader is not None,
            setting=reader.setting if reader else None,
            file=reader.file if reader else None,
            near=near,
            torch=setup.version,
        )


def variables_in(torch: Path) -> dict[str, Reader]:
    """Return what reads each variable of the compiler: torch's sources are read, and nothing is imported."""
    readers: dict[str, Reader] = {}
    for room in _CONFIGS:
        for path in sorted((torch / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8", errors="replace")
            for name in set(_NAME.findall(text)):
                readers.setdefault(name, Reader(f"torch/{path.relative_to(torch)}"))
    for room in _CONFIGS:
        config = torch / room / "config.py"
        if config.is_file():
            settings = _settings(f"torch.{room}.config", config.read_text(encoding="utf-8", errors="replace"))
            file = f"torch/{room}/config.py"
            readers |= {name: Reader(file, setting) for name, setting in settings.items()}
    return readers


def _settings(module: str, text: str) -> dict[str, str]:
    """Return `torch._inductor.config.triton.cudagraphs` for each variable in an assignment."""
    settings: dict[str, str] = {}

    def read_body(body: list[ast.stmt], prefix: str) -> None:
        for statement in body:
            if isinstance(statement, ast.ClassDef):
                read_body(statement.body, f"{prefix}.{statement.name}")
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
                for part in ast.walk(statement.value):
                    if isinstance(part, ast.Constant) and _NAME.fullmatch(str(part.value)):
                        settings.setdefault(str(part.value), f"{prefix}.{ast.unparse(target)}")

    try:
        read_body(ast.parse(text).body, module)
    except SyntaxError:  # of a later Python than this one
        return {}
    return settings
