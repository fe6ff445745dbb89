"""What the machine reaches, measured by the server that also measures a graph."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_probe.bench.client import Event, Server
from inductor_probe.harness.budget import ROOFLINE
from inductor_probe.machine.roofline import ROOFLINE_CHILD, roofline_arguments, roofline_of
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.timing import Roofline


def reached(server: Server, settings: BenchSettings, device: str, dtypes: Sequence[str]) -> Roofline:
    """Measure copies, and matrix products of `dtypes`, within the share of the budget that is for them.

    Raises:
        JobFailedError: the program ended with an error. RunFailedError: it printed something else.
    """
    texts = list[str]()

    def hear(event: Event) -> None:
        if event["event"] == "output":
            texts.append(event["text"])

    arguments = roofline_arguments(
        device, threads=settings.threads, dtypes=dtypes, seconds=settings.budget * ROOFLINE
    )
    server.job({"job": "program", "file": str(ROOFLINE_CHILD), "arguments": arguments}, hear)
    return roofline_of("".join(texts))
