"""What compiled code assumes of the machine that runs it, and whether a machine has that."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from inductor_probe.model.codec import written

Subject: TypeAlias = Literal[
    "platform", "architecture", "instructions", "vector width", "threads", "C library", "device",
    "compute capability", "multiprocessors", "driver", "triton", "torch", "machine code", "strides",
    "alignment",
]  # fmt: skip
Standing: TypeAlias = Literal["holds", "broken", "unknown", "caller"]
"""- `holds`, `broken`: the machine has it, or has not.
- `unknown`: the artifact or the machine does not say enough.
- `caller`: it is about the tensors of a call, whatever the machine.
"""


Kind: TypeAlias = Literal["package", "bench file", "wrapper"]
"""A package of AOTInductor, a bench file, or Python that inductor wrote."""


class Assumption(Struct, frozen=True, kw_only=True):
    """Something that an artifact takes for granted.

    Attributes:
        about: what it is about. value: what is assumed, as the artifact writes it: `AVX512`, `16`.
        exact: another value is wrong even if it is more: code for vectors of 8 floats that inductor compiles
            for 16 reads lanes that nothing wrote.
        place: the first line (`bench.py:12`) or entry of the archive (`m.pt2:data/...json`) that shows it.
        places: how many there are.
    """

    about: Subject
    value: str
    place: str
    exact: bool = False
    places: int = 1


class Host(Struct, frozen=True, kw_only=True):
    """A machine, as far as compiled code depends on it; None and empty for what is not known.

    Attributes:
        name: `this machine`, or that of a GPU it is to have.
        platform, architecture: `linux`, `x86_64`. libc: version of glibc.
        instructions: features of the processor as Linux names them, without `_` and `-`: `avx512f`.
        vector_bits: the width for which inductor compiles here. processors: that this process may use.
        torch, triton: versions that are installed.
        gpus: how many. driver: its version. capability: `9.0`. multiprocessors: of the first one.
        elsewhere: it is not this machine, and what is installed there is not known.
    """

    name: str
    platform: str
    architecture: str
    libc: str | None = None
    instructions: tuple[str, ...] = ()
    vector_bits: int | None = None
    processors: int = 1
    torch: str | None = None
    triton: str | None = None
    gpus: int = 0
    driver: str | None = None
    capability: str | None = None
    multiprocessors: int | None = None
    elsewhere: bool = False


class Judged(Struct, frozen=True, kw_only=True):
    """An assumption beside what the machine has; `missing` are instructions that it lacks."""

    assumption: Assumption
    standing: Standing
    here: str = ""
    missing: tuple[str, ...] = ()


class Portability(Struct, frozen=True, kw_only=True):
    """Whether a machine has what an artifact assumes.

    Attributes:
        artifact: the file. host: the name of the machine.
        assumptions: what is assumed; broken ones first.
    """

    artifact: Path
    kind: Kind
    host: str
    assumptions: tuple[Judged, ...]

    @property
    @written
    def portable(self) -> bool:
        """Whether none of its assumptions is broken, as far as is known."""
        return all(one.standing != "broken" for one in self.assumptions)
