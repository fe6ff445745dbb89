"""What torch notes about itself in `fx_graph_runnable.py`, the program that compiles a graph again."""

from __future__ import annotations

from dataclasses import dataclass

from inductor_probe.model.span import Problem


@dataclass(frozen=True, slots=True)
class Runnable:
    """The torch that made a dump, and how it was set.

    Attributes:
        torch_version, cuda_version, git_version: as printed; `cuda_version` is None for CPU builds.
        settings: torch's configuration where it is not the default, in order: its full name
            (`torch._inductor.config.cpp.simdlen`) and the value's text.
        environment: variables that are set in the program (torch 2.9 and later).
        symbols: symbolic sizes with what they were (`s77 = 3`; torch 2.11 and later).
    """

    torch_version: str | None
    cuda_version: str | None = None
    git_version: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    symbols: tuple[tuple[str, int], ...] = ()
    problems: tuple[Problem, ...] = ()
