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
from inductor_probe.model.health import Diagnostic, Fact, TorchSetup

_CONFIGS = ("_inductor", "_dynamo", "_functorch", "compiler")
_OURS = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TORCH_COMPILE_", "TORCH_DYNAMO_")
"""Nothing but the Python of those rooms of torch reads variables with these prefixes."""
_NAME = re.compile(rf"\b(?:{'|'.join(_OURS)})[A-Z0-9_]+\b")


class Effect(NamedTuple):
    """What is known of a variable; `report/words/variables.py` says what it does.

    Attributes:
        harmless: values with which torch does what it does without the variable.
        misleads: whether what it does to a dump or a timing can be taken for something else.
    """

    harmless: tuple[str, ...]
    misleads: bool


_EFFECTS: tuple[tuple[tuple[str, ...], bool, str], ...] = (
    (
        ("0", ""),
        False,
        """
            TORCH_COMPILE_DEBUG
        """,
    ),
    (
        (),
        False,
        """
            TORCH_COMPILE_DEBUG_DIR TORCHINDUCTOR_CACHE_DIR TRITON_CACHE_DIR
            TORCHINDUCTOR_FX_GRAPH_CACHE TORCHINDUCTOR_AUTOGRAD_CACHE TORCHINDUCTOR_COMPILE_THREADS
            TORCHINDUCTOR_WORKER_START CUDA_VISIBLE_DEVICES
        """,
    ),
    (
        ("0", ""),
        True,
        """
            TORCHINDUCTOR_FORCE_DISABLE_CACHES TORCH_COMPILE_FORCE_DISABLE_CACHES
            TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE
            TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE
            TORCH_COMPILE_DISABLE TORCHDYNAMO_DISABLE TORCHINDUCTOR_FREEZING
            TORCHINDUCTOR_CPP_WRAPPER TORCHINDUCTOR_FX_WRAPPER TORCHINDUCTOR_DEBUG_FUSION
            TORCHINDUCTOR_BENCHMARK_KERNEL TRITON_KERNEL_OVERRIDE TRITON_KERNEL_DUMP
            TRITON_INTERPRET TRITON_ALWAYS_COMPILE TRITON_DEBUG TORCHINDUCTOR_MAX_AUTOTUNE
            TORCHINDUCTOR_MAX_AUTOTUNE_GEMM TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE
            TORCHINDUCTOR_COORDINATE_DESCENT_TUNING TORCHINDUCTOR_BENCHMARK_FUSION
            TORCHINDUCTOR_MULTI_KERNEL TORCHINDUCTOR_CPP_DYNAMIC_THREADS
            TORCHINDUCTOR_CPP_ENABLE_UNSAFE_MATH_OPT_FLAG TORCHINDUCTOR_USE_FAST_MATH
            TORCHINDUCTOR_CUDAGRAPHS TORCHINDUCTOR_NAN_ASSERTS
            TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE TORCHINDUCTOR_DEBUG_COMPILE CUDA_LAUNCH_BLOCKING
        """,
    ),
    (
        ("",),
        True,
        """
            TORCH_COMPILE_OVERRIDE_BACKENDS TORCH_COMPILE_OVERRIDE_INDUCTOR_CONFIGS
            TORCH_COMPILE_OVERRIDE_DYNAMO_CONFIGS TORCHDYNAMO_SUPPRESS_ERRORS
            TORCHDYNAMO_REPRO_AFTER TORCHINDUCTOR_VEC_ISA_OK ATEN_CPU_CAPABILITY OMP_NUM_THREADS
            MKL_NUM_THREADS TORCHINDUCTOR_PROFILE PYTORCH_NO_CUDA_MEMORY_CACHING LD_PRELOAD
        """,
    ),
    (
        ("1",),
        True,
        """
            TORCHINDUCTOR_UNIQUE_KERNEL_NAMES TORCHINDUCTOR_SIZE_ASSERTS
        """,
    ),
    (
        (),
        True,
        """
            TORCHINDUCTOR_LAYOUT_OPTIMIZATION
        """,
    ),
    (
        ("",),
        False,
        """
            TORCH_LOGS TORCH_TRACE
        """,
    ),
    (
        ("", "g++"),
        False,
        """
            CXX
        """,
    ),
)
EFFECTS = {
    name: Effect(harmless, misleads) for harmless, misleads, names in _EFFECTS for name in names.split()
}


def variable_diagnostics(
    setup: TorchSetup, environment: Mapping[str, str] = os.environ
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each variable that is set, known or of torch's or triton's prefixes."""
    names = sorted(name for name in environment if name in EFFECTS or name.startswith(VARIABLE_PREFIXES))
    if not names:
        yield Diagnostic("variables", "ok", "variables-none", _facts(setup))
        return
    folder = Path(setup.folder) if setup.folder else _folder_of("torch")
    unknown = [name for name in names if name not in EFFECTS and name.startswith(_OURS)]
    readers = variables_in(folder) if unknown and folder else {}
    for name in names:
        yield _diagnostic(name, environment[name], readers, setup)


def _diagnostic(name: str, value: str, readers: Mapping[str, Reader], setup: TorchSetup) -> Diagnostic:
    shown = None if is_secret(name, value) else value
    reader = readers.get(name)
    if effect := EFFECTS.get(name):
        facts = _facts(setup, name, shown, reader, known=True)
        if value in effect.harmless:
            return Diagnostic("variables", "ok", "variable-harmless", facts)
        return Diagnostic("variables", "warning" if effect.misleads else "ok", "variable-effect", facts)
    if reader is not None:
        facts = _facts(setup, name, shown, reader, known=True)
        return Diagnostic("variables", "warning", "variable-read", facts)
    if name.startswith(_OURS) and readers:
        near = next(iter(get_close_matches(name, [*readers, *EFFECTS], n=1, cutoff=0.8)), None)
        facts = _facts(setup, name, shown, near=near)
        return Diagnostic("variables", "warning", "variable-not-read", facts)
    return Diagnostic("variables", "ok", "variable-not-known", _facts(setup, name, shown))


def _facts(
    setup: TorchSetup,
    name: str | None = None,
    value: str | None = None,
    reader: Reader | None = None,
    *,
    known: bool | None = None,
    near: str | None = None,
) -> tuple[tuple[str, Fact], ...]:
    return (
        ("name", name),
        ("value", value),
        ("known", known if name is None else bool(known)),
        ("setting", reader.setting if reader else None),
        ("file", reader.file if reader else None),
        ("near", near),
        ("torch", setup.version),
    )


class Reader(NamedTuple):
    """What of torch reads a variable: a file (`torch/_inductor/x.py`), and the setting that it sets."""

    file: str
    setting: str | None = None


def variables_in(torch: Path) -> dict[str, Reader]:
    """Return what reads each variable of the compiler.

    Nothing is imported: the sources below the folder of torch are read.
    """
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


def _folder_of(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None
