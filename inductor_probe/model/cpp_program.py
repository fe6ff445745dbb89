"""How inductor compiles a C++ kernel on a machine, and a kernel as a program of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from inductor_probe.model.output import Output

_OF_LIBRARIES = ("-shared", "-fPIC")
_PORTABLE = (
    "-O3", "-DNDEBUG", "-g1", "-fno-trapping-math", "-fno-signed-zeros", "-ffp-contract=off", "-march=native",
    "-fno-tree-loop-vectorize", "-std=c++20", "-fopenmp", "-DC10_USING_CUSTOM_GENERATED_MACROS",
)  # fmt: skip
_VECTORS = {
    512: ("-DCPU_CAPABILITY_AVX512", "-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mfma"),
    256: ("-DCPU_CAPABILITY_AVX2", "-mavx2", "-mfma", "-mf16c"),
    128: ("-DCPU_CAPABILITY_NEON", "-DAT_BUILD_ARM_VEC256_WITH_SLEEF"),
}


def portable_flags(vector_bits: int | None) -> tuple[str, ...]:
    """Return the flags of g++ that inductor compiles C++ kernels with, where torch cannot be asked.

    They are those of `torch/_inductor/cpp_builder.py` (`_get_optimization_cflags`, `_get_ffast_math_flags`)
    and of the class for the vectors in `cpu_vec_isa.py`; flags for vectors are left out for None.
    """
    return (*_PORTABLE, *_VECTORS.get(vector_bits or 0, ()))


class CompileCommand(Struct, frozen=True):
    """What the torch of an environment runs to compile a C++ kernel.

    Attributes:
        torch: its version.
        library: the command as inductor has it, for `kernel.cpp` to `kernel.so`.
        compiler: `g++`, or what CXX or the configuration names.
        definitions, flags, includes, machine: its `-D`, options, `-I`, and the options for vectors.
        libraries, folders: what it links, and from where.
        isa: the vector instructions it chose: `avx512 avx512_vnni`; None for none.
        vector_bits: how wide their registers are; None without vectors.
    """

    torch: str
    library: tuple[str, ...]
    compiler: str
    definitions: tuple[str, ...]
    flags: tuple[str, ...]
    includes: tuple[str, ...]
    machine: tuple[str, ...]
    libraries: tuple[str, ...]
    folders: tuple[str, ...]
    isa: str | None
    vector_bits: int | None

    @property
    def openmp(self) -> str | None:
        """The option that turns OpenMP on, None where inductor uses none."""
        return next((flag for flag in self.flags if "openmp" in flag), None)

    def program(self, source: str, output: str, extra: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the command that compiles a file with a `main` the same way.

        Torch's libraries are linked where the kernel calls into them, and only there (`--as-needed`): in
        Python they are loaded already, and a program that does not need them starts in no time.
        """
        flags = [
            flag
            for flag in self.flags
            if flag not in _OF_LIBRARIES and not flag.startswith(("-W", "-pedantic"))  # of torch's headers
        ]
        libraries = [name for name in self.libraries if name != "torch_python"]
        links = [f"-L{folder}" for folder in self.folders]
        links += [f"-Wl,-rpath,{folder}" for folder in self.folders]
        links += [f"-l{name}" for name in dict.fromkeys([*libraries, "c10"])]
        compiled = [*self.definitions, *flags, *self.includes, *self.machine, *extra]
        return (self.compiler, source, *compiled, "-o", output, "-Wl,--as-needed", *links)


class ExportCppOutput(Output, frozen=True, kw_only=True):
    """A C++ kernel as a program.

    Attributes:
        path: the file that it is in. command: what compiles it. text: the program.
    """

    verb: Literal["export-cpp"] = "export-cpp"
    kernel: str
    path: Path
    command: tuple[str, ...]
    text: str
