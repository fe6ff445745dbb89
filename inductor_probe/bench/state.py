"""What a session knows of a bench file while its processes run, and what it does when one of them is lost."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from inductor_probe.executors.child import Event
from inductor_probe.executors.server import JobFailedError
from inductor_probe.model.codec import to_json
from inductor_probe.model.remark import Number, Remark, RemarkCode, Subject, measured

MOST_LOST = 3
COPY = re.compile(r"_v\d+$")


@dataclass
class State:
    """What is known of a bench file while its processes run.

    Attributes:
        refused: variants that do not compile, with the compiler's words.
        crashed: variants that ended their process while they were compiled, loaded or checked, and how.
        skipped: subjects that ended their process while they were timed, kernels while they were recorded.
        variants: those that are right and edited; None before they were checked.
        checks: of all variants, once they were checked.
        needed: the copies of kernels that later processes load; None before they were checked.
        added: what events add to times on a GPU, as the first process found it.
        kernels: those that are compared, the ten longest and edited ones; None before one process chose.
        most: processes that the budget is enough for, where calls are long.
        total: seconds for the comparisons of all processes.
        profile: of a call, as the first process has it.
        spent: seconds measured so far.
        overheads: whether they are still to be measured.
        lost: processes that ended early, but for those that a variant ended in its check.
        gave_up: so many were lost that no more are started.
    """

    refused: dict[str, Event] = field(default_factory=dict)
    crashed: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    variants: list[str] | None = None
    checks: list[Event] = field(default_factory=list)
    needed: list[str] | None = None
    added: Event = field(default_factory=dict)
    kernels: list[str] | None = None
    most: int | None = None
    total: float = 0.0
    profile: Event | None = None
    spent: float = 0.0
    overheads: bool = True
    processes: list[Event] = field(default_factory=list)
    warnings: list[Event] = field(default_factory=list)
    lost: int = 0
    gave_up: bool = False
    places: set[tuple[str, str]] = field(default_factory=set)

    def take(self, event: Event) -> None:
        """Take over what a process says that holds for those after it."""
        match event["event"]:
            case "checked":
                self.variants, self.needed = event["variants"], event["needed"]
            case "clock":
                self.added = event["added"]
            case "plan":
                self.kernels, self.most = event["kernels"], event["processes"]
                self.total, self.profile = event["total"], event["profile"]
            case "untimed":
                self.skipped += event["names"]
                self.kernels = [name for name in self.kernels or () if name in event["kernels"]]

    def warn(
        self, code: RemarkCode, numbers: Mapping[str, Number] | None = None, kind: Any = "hazard"
    ) -> None:
        """Add a warning to the next process that counts."""
        self.warnings.append(plain(measured(code, kind, Subject("machine", ""), numbers or {})))

    def lose_compiler(self, error: JobFailedError, names: list[str]) -> None:
        """Note that a process ended while it compiled one of `names`; the rest of its share comes later.

        A variant that crashes the compiler is wrong. Where the process was killed from outside, the kernel
        may be good: the process that loads it compiles it.
        """
        for name in names:
            if COPY.search(name) and not error.from_outside:
                self.crashed[name] = f"{error.message} while it was compiled"
        if error.from_outside or not set(names) & set(self.crashed):
            self.warn("process-lost", {"how": error.message, "doing": " ".join(["compiling", *names])})

    def lose(self, path: Path, error: JobFailedError) -> None:
        """Note what a process was doing when it ended, so that the next one leaves it out.

            loading k_v2, checking k_v2      k_v2 is wrong
            recording k, timing a and b      k, or b, is not timed
            profiling                        nothing is recorded in the call that is profiled
            overheads                        they are left out
            loading k, checking call,        tried again once where the process was killed from outside:
            or nothing yet                   nothing can be judged without it

        A process that is killed from outside (by the user, or by the system as memory runs out) says nothing
        of a variant the first time.

        Raises:
            RunFailedError, NotFoundError: no other process would do better.
        """
        name = error.names[-1] if error.names else ""
        again = error.from_outside and (error.phase, name) not in self.places
        self.places.add((error.phase, name))
        if error.phase in ("loading", "checking") and COPY.search(name) and not again:
            how = error.message
            self.crashed[name] = f"{how} while it was loaded" if error.phase == "loading" else how
            return
        if error.phase in ("", "loading", "checking") and not again:
            raise error.error(path) from error
        if error.phase == "overheads":
            self.overheads = False
        elif error.phase in ("profiling", "recording", "timing"):
            self.skipped.append(name if len(error.names) in (1, 2) else error.phase)
        self.lost += 1
        self.gave_up = self.lost > MOST_LOST
        if self.gave_up and not (self.processes or self.variants is not None):
            raise error.error(path) from error
        doing = " ".join(word for word in (error.phase or "starting", name) if word)
        self.warn("process-lost", {"how": error.message, "doing": doing})


def plain(remark: Remark) -> Event:
    """Return a remark as a process writes it."""
    return cast(Event, to_json(remark))
