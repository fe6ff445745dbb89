"""Bench files through the API: where they may be written."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

import pytest

import inductor_probe as ip
from inductor_probe.errors import ProbeError
from tests.conftest import DUMPS


def test_a_graph_in_an_archive_is_refused_with_the_commands_that_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (run,) = (DUMPS / "torch-2.13.0-cpu" / "hflip_cl").glob("run_*")
    archive = tmp_path / "sent by a friend.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(run, run.name)
    with pytest.raises(ProbeError, match=r"is in .*sent by a friend\.tar\.gz") as caught:
        ip.open_graph(archive).write_bench_file()
    *unpacking, bench = (caught.value.hint or "").split(" && ")
    subprocess.run(" && ".join(unpacking), shell=True, cwd=tmp_path, check=True)  # noqa: S602 - what we say
    verb, graph = bench.rsplit(" ", 1)[0], bench.partition("bench-kernel ")[2].strip("'")
    assert verb.startswith("probe bench-kernel")
    assert (tmp_path / graph / "output_code.py").is_file()
    assert "--trust" not in bench, "whoever unpacks a stranger's code has not read it yet"
