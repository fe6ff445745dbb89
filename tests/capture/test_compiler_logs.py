"""Handlers on artifact loggers, with a configure function that does what torch's does."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from inductor_probe.capture.compiler_logs import TUNERS, ArtifactHandler, attach, keep
from inductor_probe.capture.events import EventLog, EventReader


class Seen(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


class Torch:
    """A parent logger with the user's handler, and an artifact that is off by default below it."""

    def __init__(self, folder: Path) -> None:
        self.parent = logging.getLogger("probe_test")
        self.log = logging.getLogger("probe_test.scheduler.__fusion")
        self.log.artifact_name = "fusion"  # type: ignore[attr-defined]
        self.screen = Seen()
        self.parent.addHandler(self.screen)
        self.parent.setLevel(logging.WARNING)
        self.parent.propagate = False
        self.folder = folder
        self.events = EventLog(folder)
        self.enabled = False
        self.off_by_default = True

    def configure(self, log: logging.Logger) -> None:
        if self.off_by_default:
            log.propagate = False
        if self.enabled:
            log.setLevel(logging.DEBUG)
            log.propagate = True

    def attach(self) -> None:
        attach(self.log, self.configure, self.folder, logging.Formatter("%(message)s"), self.events)

    def reset(self) -> None:
        self.log.setLevel(logging.NOTSET)
        self.log.propagate = True

    @property
    def kept(self) -> list[str]:
        file = self.folder / "fusion.log"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def torch(tmp_path: Path) -> Iterator[Torch]:
    torch = Torch(tmp_path)
    yield torch
    for log in (torch.log, torch.parent):
        for handler in list(log.handlers):
            log.removeHandler(handler)
            handler.close()
            if isinstance(handler, ArtifactHandler):
                handler.file.close()
    torch.reset()


def test_quiet_artifact_is_kept_and_not_seen(torch: Torch) -> None:
    torch.attach()
    torch.log.debug("fusing %s", "op0")
    torch.log.error("even this")
    assert torch.kept == ["fusing op0", "even this"]
    assert torch.screen.messages == []


def test_artifact_of_torch_logs_is_kept_and_seen_once(torch: Torch) -> None:
    torch.enabled = True
    torch.attach()
    torch.log.debug("fusing")
    assert (torch.kept, torch.screen.messages) == (["fusing"], ["fusing"])


def test_artifact_on_by_default_is_seen_from_its_parent_s_level(torch: Torch) -> None:
    torch.off_by_default = False
    torch.attach()
    torch.log.info("quiet")
    torch.log.warning("loud")
    torch.parent.setLevel(logging.DEBUG)  # TORCH_LOGS=+inductor
    torch.log.debug("asked for")
    assert torch.kept == ["quiet", "loud", "asked for"]
    assert torch.screen.messages == ["loud", "asked for"]


def test_second_configuration_without_reset_keeps_what_torch_had_set(torch: Torch) -> None:
    torch.attach()
    torch.attach()  # another getArtifactLogger of the same name
    torch.log.debug("fusing")
    assert (torch.kept, torch.screen.messages) == (["fusing"], [])


def test_set_logs_that_takes_an_artifact_back_is_heeded(torch: Torch) -> None:
    torch.enabled = True
    torch.attach()
    torch.reset()
    torch.enabled = False
    torch.attach()
    torch.log.debug("fusing")
    assert (torch.kept, torch.screen.messages) == (["fusing"], [])


def test_line_that_cannot_be_written_is_noted_not_printed(
    torch: Torch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.attach()
    torch.log.debug("%d", "not a number")
    assert capsys.readouterr().err == ""
    assert [
        (event["code"], event["values"]) for event in EventReader(torch.folder).new_events(ended=True)
    ] == [("log-line-lost", {"artifact": "fusion", "line": "'%d'"})]


def test_what_a_tuner_logs_is_kept_and_not_seen(torch: Torch) -> None:
    log = logging.getLogger("probe_test.triton_heuristics")
    path = torch.folder / "triton_heuristics.log"
    keep(log, path, logging.Formatter("%(message)s"), torch.events)
    try:
        log.debug("XBLOCK: 256, num_warps: 4: 0.0173")
        log.warning("loud")
    finally:
        for handler in list(log.handlers):
            log.removeHandler(handler)
            handler.close()
            handler.file.close()  # type: ignore[attr-defined]
        log.propagate = True
    assert path.read_text().splitlines() == ["XBLOCK: 256, num_warps: 4: 0.0173", "loud"]
    assert torch.screen.messages == ["loud"]


@pytest.mark.parametrize("tuner", TUNERS)
def test_the_installed_torch_has_loggers_of_its_tuners(tuner: str) -> None:
    pytest.importorskip("triton", reason="inductor imports triton where it tunes kernels")
    module = importlib.import_module(f"torch._inductor.runtime.{tuner}")
    assert isinstance(module.log, logging.Logger)
