"""Asks torch how it compiles a C++ kernel, and prints the answer as JSON; runs in a process of its own.

Command line: `toolchain_child.py [SIMDLEN]`. What torch lacks is named as `missing`.
"""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any


def main(arguments: list[str]) -> None:
    """Print how inductor compiles C++ here, for vectors of SIMDLEN bits where that is given."""
    import torch

    said: dict[str, Any] = {"torch": torch.__version__}
    try:
        said |= _asked(int(arguments[0]) if arguments else None)
    except (ImportError, AttributeError, TypeError) as error:
        said["missing"] = str(error)
    sys.stdout.write(json.dumps(said) + "\n")


def _asked(simdlen: int | None) -> dict[str, Any]:
    from torch._inductor import codecache, config, cpp_builder, cpu_vec_isa

    if simdlen is not None:
        config.cpp.simdlen = simdlen
    isa = cpu_vec_isa.pick_vec_isa()
    how = codecache.CppPythonBindingsCodeCache.cpp_compile_command_flags
    options = cpp_builder.CppTorchDeviceOptions(vec_isa=isa, device_type="cpu", **how)
    line = cpp_builder.CppBuilder(name="kernel", sources="kernel.cpp", BuildOption=options).get_command_line()
    return {
        "library": shlex.split(line),
        "compiler": options.get_compiler(),
        "definitions": [f"-D{each.strip()}" for each in options.get_definitions()],
        "flags": [f"-{each}" for each in options.get_cflags()],
        "includes": [f"-I{each}" for each in options.get_include_dirs()],
        "machine": shlex.split(" ".join(options.get_passthrough_args())),
        "libraries": options.get_libraries(),
        "folders": options.get_libraries_dirs(),
        "isa": str(isa) if isa != cpu_vec_isa.invalid_vec_isa else None,
        "vector_bits": isa.bit_width() or None,
    }


if __name__ == "__main__":
    main(sys.argv[1:])
