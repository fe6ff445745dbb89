"""Whether a machine is fit for dumps and timings."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.codec import written
from inductor_probe.model.output import Output
from inductor_probe.model.remark import Remark

Level: TypeAlias = Literal["ok", "warning", "error"]
Fact: TypeAlias = "str | int | float | bool | tuple[str, ...] | None"


class Diagnostic(Struct, frozen=True):
    """What was seen of one part of the machine; `report/words/health.py` has a sentence and a remedy for it.

    Facts, by `about`; None where not known or where the code has none. `error` is what torch, the compiler or
    the system said:

    - `python`: version, executable; `torch`: version, build, toolkit, folder, threads, executable, oldest,
      passed (releases that the tests passed with), error; `places`: asked (how many private places of torch),
      missing (names of those that are gone), torch, error; `triton`: version, error; `debugpy`: version
    - `compiler`: name, path, version, seconds, torch, error; `openmp`: flag, threads; `vectors`: isa, bits,
      processor_bits, variable (that may have narrowed them)
    - `caches`: folder, bytes, files, whole (all files were counted), disabled, fx_graph, autograd, autotune,
      remote; or torch, error
    - `recompiles`: recompile_limit, accumulated_recompile_limit, and each with `_default`; torch, error
    - `variables`: name, value, known, setting and file (what of torch reads it), near (a variable of almost
      that name), torch
    - `gpu`: index, name, usable, driver, sm_mhz, max_sm_mhz, power_w, limit_w, temperature_c, busy, idle,
      throttled_by, processes, error
    - `processors`: processors, busy, stolen, quota, load, governors; `timer`: step_s, source
    - `disk`: use (`dumps`, `temporary`, `caches`, `record`), folder, exists, free_bytes, error

    Attributes:
        about: the part: `torch`, `compiler`, `disk`. Several diagnostics may be about one.
        level: `ok`; `warning`: all works, but a dump or a timing may not be what it seems; `error`: something
            is missing without which nothing can be compiled, or nothing be written.
        code: what was seen: `torch-not-installed`. facts: numbers and names, the same ones each time.
        remarks: what would spoil times.
    """

    about: str
    level: Level
    code: str
    facts: tuple[tuple[str, Fact], ...]
    remarks: tuple[Remark, ...] = ()


def diagnostic(
    about: str, level: Level, code: str, remarks: tuple[Remark, ...] = (), /, **facts: Fact
) -> Diagnostic:
    """Return a diagnostic with its facts as keywords."""
    return Diagnostic(about, level, code, tuple(facts.items()), remarks)


class MachineHealth(Struct, frozen=True):
    """What `probe doctor` saw, in the order it is shown."""

    diagnostics: tuple[Diagnostic, ...]

    @property
    @written
    def fit(self) -> bool:
        """Whether nothing that is needed is missing."""
        return all(diagnostic.level != "error" for diagnostic in self.diagnostics)


class BuiltKernel(Struct, frozen=True):
    """A small kernel that was compiled, linked, loaded and run as inductor does it.

    Attributes:
        seconds: that compiling and linking took.
        threads: that ran it, by OpenMP; None where it did not get so far.
        error: what the compiler, the linker or the loader said.
    """

    seconds: float
    threads: int | None = None
    error: str | None = None


class TorchCaches(Struct, frozen=True):
    """Where torch keeps what it compiled, and which of its caches are on; None where it has no such cache.

    Attributes:
        folder: of inductor's caches. disabled: all of them, by `force_disable_caches`.
        fx_graph, autograd, autotune: the local ones. remote: names of those that are on.
    """

    folder: str
    disabled: bool
    fx_graph: bool | None
    autograd: bool | None
    autotune: bool | None
    remote: tuple[str, ...]


class Limit(Struct, frozen=True):
    """A number of recompiles after which a function runs eager; `default` is None where torch has none."""

    name: str
    value: int
    default: int | None


class TorchSetup(Struct, frozen=True):
    """What torch says about itself here. What could not be asked is in `errors`, by the question's name.

    Attributes:
        version, folder: of torch; None if it cannot be imported, and then nothing else is known.
        cuda, hip: what it was built for. threads: that torch starts with.
        triton: its version, None where it is not installed. devices: GPUs that torch can use.
        compiler: `g++`, or what CXX names. isa, vector_bits: the vectors that inductor chose, None for none.
        openmp: the option for it.
        not_available: what this torch lacks of the parts that say how it compiles.
        missing: private places of torch that were asked for and are gone.
        errors: `torch`, `devices`, `triton`, `compile` (how inductor compiles), `built`, `caches`, `limits`,
            `places`.
    """

    version: str | None = None
    folder: str | None = None
    cuda: str | None = None
    hip: str | None = None
    threads: int | None = None
    triton: str | None = None
    devices: tuple[str, ...] = ()
    compiler: str | None = None
    openmp: str | None = None
    isa: str | None = None
    vector_bits: int | None = None
    not_available: str | None = None
    built: BuiltKernel | None = None
    caches: TorchCaches | None = None
    limits: tuple[Limit, ...] = ()
    missing: tuple[str, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()

    def error(self, question: str) -> str | None:
        """Return why a question has no answer."""
        return dict(self.errors).get(question)


class DoctorOutput(Output, frozen=True, kw_only=True):
    """Whether this machine is fit for dumps and timings, and why."""

    verb: Literal["doctor"] = "doctor"
    health: MachineHealth
