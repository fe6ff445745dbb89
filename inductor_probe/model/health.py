"""Whether a machine is fit for dumps and timings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from inductor_probe.model.codec import written
from inductor_probe.model.output import Output

Level = Literal["fine", "note", "needs"]
Fact: TypeAlias = "str | int | float | bool | tuple[str, ...] | None"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        about: what: `torch`, `compiler`, `disk`. Several findings may be about one thing.
        level: `fine`; `note`: all works, but a dump or a timing may not be what it seems; `needs`: something
            is missing without which nothing can be compiled, or nothing be kept.
        text: what was found, without a final period.
        remedy: what to do about it; None exactly where all is fine.
        facts: numbers and names behind the text, the same ones each time.

    Raises:
        ValueError: a finding that is not fine has no remedy, or a fine one has.
    """

    about: str
    level: Level
    text: str
    remedy: str | None = None
    facts: tuple[tuple[str, Fact], ...] = ()

    def __post_init__(self) -> None:
        if (self.level == "fine") != (self.remedy is None):
            raise ValueError(f"{self.about}: {self.level} with the remedy {self.remedy}")


@dataclass(frozen=True, slots=True)
class MachineHealth:
    """What `probe doctor` found, in the order it is shown."""

    findings: tuple[Finding, ...]

    @property
    @written
    def fit(self) -> bool:
        """Whether nothing that is needed is missing."""
        return all(finding.level != "needs" for finding in self.findings)


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """A small kernel that was compiled, linked, loaded and run as inductor does it.

    Attributes:
        seconds: that compiling and linking took.
        threads: that ran it, by OpenMP; None where it did not get so far.
        error: what the compiler, the linker or the loader said.
    """

    seconds: float
    threads: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class TorchCaches:
    """Where torch keeps what it compiled, and which of its caches are on; None where it has no such cache.

    Attributes:
        folder: of inductor's caches.
        disabled: all of them, by `force_disable_caches`.
        fx_graph, autograd, autotune: the local ones. remote: names of those that are on.
    """

    folder: str
    disabled: bool
    fx_graph: bool | None
    autograd: bool | None
    autotune: bool | None
    remote: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limit:
    """A number of recompiles after which a function runs eager; `default` is None where torch tells none."""

    name: str
    value: int
    default: int | None


@dataclass(frozen=True, slots=True)
class TorchSetup:
    """What torch says about itself here. What could not be asked is in `errors`, by the question's name.

    Attributes:
        version, folder: of torch; None if it cannot be imported, and then nothing else is known.
        cuda, hip: what it was built for.
        threads: that torch starts with.
        triton: its version, None where it is not installed. devices: GPUs that torch can use.
        compiler: `g++`, or what CXX names. isa, vector_bits: the vectors that inductor chose, None for none.
        openmp: the option for it.
        errors: `torch`, `devices`, `triton`, `compile` (how inductor compiles), `built`, `caches`, `limits`.
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
    built: BuiltKernel | None = None
    caches: TorchCaches | None = None
    limits: tuple[Limit, ...] = ()
    errors: tuple[tuple[str, str], ...] = ()

    def error(self, question: str) -> str | None:
        """Return why a question has no answer."""
        return dict(self.errors).get(question)


@dataclass(frozen=True, kw_only=True)
class DoctorOutput(Output):
    """Whether this machine is fit for dumps and timings, and why."""

    verb: Literal["doctor"] = "doctor"
    health: MachineHealth
