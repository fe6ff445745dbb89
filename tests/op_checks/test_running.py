"""`probe check-op`: real samples of the database, real compiles; decompositions that are wrong on purpose."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

import inductor_probe as ip
from inductor_probe import cli
from inductor_probe.errors import ProbeError
from inductor_probe.model.op_check import OpCase, OpChecks, OpRow
from inductor_probe.op_checks.decompositions import load, meant_by, overloads_named
from inductor_probe.op_checks.running import cases_of
from inductor_probe.options.kernels import CheckOpOptions
from inductor_probe.options.verb import Progress
from inductor_probe.report.pages.op_check import op_check_page
from inductor_probe.report.terminal import to_text
from tests.schemas import schema_faults
from tests.shared import made_once
from tests.torch_server import TorchServer

pytestmark = pytest.mark.usefixtures("warm")

DECOMPOSITIONS = """
import os

import torch


def flip(self, dims):
    if len(dims) == 3:
        os.kill(os.getpid(), 9)
    out = self
    for dim in dims:
        out = out.index_select(dim, torch.arange(self.size(dim) - 1, -1, -1, device=self.device))
    return out + 1 if len(dims) == 2 else out.transpose(0, 1).contiguous().transpose(0, 1)


def right(self, dims):
    return torch.ops.prims.rev(self, [dim % self.dim() for dim in dims])


def fits_nothing(one, two, three, four):
    return one
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(DECOMPOSITIONS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def checked(
    tmp_path_factory: pytest.TempPathFactory, torch_server: TorchServer
) -> tuple[dict[str, object], Path]:
    """Return what is printed as JSON of a check with a decomposition that is wrong in several ways."""

    def make(folder: Path) -> None:
        (folder / "mine.py").write_text(DECOMPOSITIONS)
        command = [sys.executable, "-m", "inductor_probe", "check-op", "flip", "--decomp", "mine.py:flip"]
        command += ["--dtype", "float32", "--modes", "static", "--samples", "8", "--jobs", "2", "--json"]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert ran.returncode == 1, ran.stderr
        (folder / "printed.json").write_text(ran.stdout)

    with torch_server.used():
        folder = made_once(tmp_path_factory, "check_op", make)
    return json.loads((folder / "printed.json").read_text()), folder


@pytest.mark.compiles
@pytest.mark.takes(10)
def test_each_kind_of_failure_has_its_smallest_sample_and_a_script(
    checked: tuple[dict[str, object], Path], tmp_path: Path
) -> None:
    printed, folder = checked
    assert schema_faults("check-op", printed) == []
    checks = printed["checks"]
    assert isinstance(checks, dict)
    failures = {each["kind"]: each for each in checks["failures"]}
    assert set(failures) == {"killed", "values", "strides"}
    assert {each["way"] for each in failures.values()} == {"decomposition"}
    assert failures["killed"]["script"] is None
    assert failures["values"]["code"] == "elements"
    assert set(failures["values"]["numbers"]) >= {"compiled", "eager", "float64", "wrong", "error"}
    assert (failures["strides"]["code"], failures["killed"]["numbers"]) == ("stride", {"signal": 9})
    cache = tmp_path / "cache"
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    for kind in ("values", "strides"):
        script = folder / failures[kind]["script"]
        assert failures[kind]["alone"] is True
        shown = subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, check=False
        )
        assert (shown.returncode, shown.stdout.splitlines()[-1]) == (1, "eager and compiled differ")
    # A graph of a wrong decomposition in a cache would be what the user's next program runs.
    assert cache.exists()
    assert not [path for path in cache.iterdir() if path.name in {"aotautograd", "fxgraph"}]


@pytest.mark.compiles
@pytest.mark.takes(10)
def test_inductor_itself_is_right_where_the_decomposition_is_wrong(
    checked: tuple[dict[str, object], Path],
) -> None:
    checks = checked[0]["checks"]
    assert isinstance(checks, dict)
    rows = {row["case"]["way"]: row for row in checks["rows"] if row["case"]["form"] == "given"}
    assert rows["compiled"]["failed"] == 0
    assert rows["compiled"]["samples"] == rows["decomposition"]["samples"] == 8
    assert rows["decomposition"]["failed"] >= 6
    assert checks["decomposition"]["operators"] == ["aten.flip.default"]


@pytest.mark.compiles
@pytest.mark.takes(10)
def test_a_decomposition_that_torch_never_calls_is_said(here: Path) -> None:
    """`flip.out` is no overload that functional code calls; a right decomposition is right."""
    plain = {"dtypes": ["float32"], "modes": ["static"], "forms": ["given"], "samples": 1, "jobs": 1}
    checks = ip.check_op("flip", decomp="aten.flip.out=mine.py:right", **plain)  # type: ignore[arg-type]
    (failure,) = checks.failures
    assert failure.kind == "decomposition-not-called"
    plain["modes"] = ["backward-dynamic"]
    right = ip.check_op("flip", decomp="mine.py:right", **plain)  # type: ignore[arg-type]
    assert right.failures == ()
    assert [(row.samples, row.right, row.not_compiled) for row in right.rows] == [(1, 1, 0), (1, 1, 0)]
    assert right.decomposition is not None
    assert right.decomposition.calls == 2  # the gradient of a flip is one
    assert "all the same" in repr(right)


DATABASE = [
    {"name": name, "aten": name, "full": name, "dtypes": ["float32", "int64"], "gradients": ["float32"]}
    for name in ("flip", "fliplr", "grid_sampler_2d")
]


@pytest.mark.parametrize(
    ("options", "sentence", "hint"),
    [
        (CheckOpOptions(("flipp",)), "no operator in PyTorch's database matches flipp", "did you mean flip"),
        (
            CheckOpOptions(("flip",), dtypes=("float3",)),
            "no sample of flip is of float3",
            "there are float32, int64",
        ),
        (
            CheckOpOptions(("flip",), dtypes=("int64",), modes=("backward",)),
            "flip has no sample in int64 with backward",
            "gradients",
        ),
    ],
    ids=["operator", "dtype", "gradients"],
)
def test_what_the_database_lacks_is_a_sentence(options: CheckOpOptions, sentence: str, hint: str) -> None:
    with pytest.raises(ProbeError, match=sentence) as caught:
        cases_of(options, DATABASE)
    assert hint in (caught.value.hint or "")


def test_a_name_is_whole_before_it_is_a_part() -> None:
    def names(*patterns: str) -> list[str]:
        return list(dict.fromkeys(case.operator for case in cases_of(CheckOpOptions(patterns), DATABASE)))

    assert names("flip") == ["flip"]
    assert names("aten.flip") == ["flip"]
    assert names("fli*") == ["flip", "fliplr"]
    assert names("sampler") == ["grid_sampler_2d"]
    assert names("flip", "sampler") == ["flip", "grid_sampler_2d"], "a whole name leaves no other pattern out"
    with pytest.raises(ProbeError, match="matches nothing"):
        names("flip", "nothing")


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("nowhere.py:flip", "there is no file"),
        ("mine.py:flop", "has no function flop"),
        ("no_such_module:flop", "importing no_such_module raises ModuleNotFoundError"),
    ],
)
def test_a_decomposition_that_is_not_there_is_a_sentence(here: Path, place: str, sentence: str) -> None:
    with pytest.raises(ProbeError, match=sentence):
        load(place)


def test_overloads_are_found_by_the_names_of_parameters(here: Path) -> None:
    """The function of a decomposition says by its parameters which overload it is for."""

    def vec(input: Tensor, output_size: object, align_corners: bool, scale_factors: object) -> Tensor:  # noqa: A002
        return input

    image = torch.rand(1, 3, 8, 8)
    (found,) = meant_by(vec, lambda: torch.ops.aten.upsample_bilinear2d.vec(image, [4, 4], False, None))
    assert str(found) == "aten.upsample_bilinear2d.vec"
    with pytest.raises(ProbeError, match=r"It fits none of those that are called: aten.flip"):
        meant_by(lambda one, two, three: one, lambda: image.flip(-1))
    assert [str(one) for one in overloads_named("aten.flip")] == ["aten.flip.default", "aten.flip.out"]
    with pytest.raises(ProbeError, match=r"torch has no operator aten.flap"):
        overloads_named("aten.flap.default")


@pytest.mark.compiles
def test_failures_are_shown_where_their_programs_cannot_be_written(here: Path) -> None:
    """A file is in the place of the folder, as a full disk is in that of a file."""
    (here / "taken").touch()
    warnings: list[str] = []

    class Heard(Progress):
        def warn(self, text: str) -> None:
            warnings.append(text)

    checks = ip.check_op(
        *("flip",),
        decomp="aten.flip.out=mine.py:right",
        dtypes=["float32"],
        modes=["static"],
        forms=["given"],
        samples=1,
        jobs=1,
        out=Path("taken"),
        progress=Heard(),
    )
    (failure,) = checks.failures
    assert (failure.kind, failure.script, failure.alone) == ("decomposition-not-called", None, None)
    (warning,) = warnings
    assert warning == "the program for flip could not be written: taken: File exists"


@pytest.mark.compiles
def test_what_ctrl_c_left_out_is_said_and_is_in_the_status(here: Path) -> None:
    """It ended with status 0, as if all had been right."""
    words = ["check-op", "flip", "--dtype", "float32", "--samples", "1", "--jobs", "1"]
    script = (
        "import os, signal, inductor_probe.cli as cli, inductor_probe as ip\n"
        "whole = ip.check_op\n"
        "def check_op(*names, **how):\n"
        "    how['progress'] = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "    return whole(*names, **how)\n"
        "ip.check_op = check_op\n"
        f"raise SystemExit(cli.run({words}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 130, ran.stderr
    assert "nothing wrong so far: 1 sample" in ran.stdout
    assert "interrupted: 5 cases did not run to the end" in ran.stdout


def test_a_budget_that_ended_is_said() -> None:
    case = OpCase("flip", "float32", "static", "given", "compiled")
    row = OpRow(case, 2, 2, 0, 0, 0, 0, 0, 1.0, not_run=6)
    lines = to_text(op_check_page(OpChecks(torch="2.13.0", device="cpu", rows=(row,), failures=())))
    assert "nothing wrong so far: 2 samples of 1 operator" in lines
    assert "the budget ended before 6 samples" in lines


@pytest.mark.compiles
def test_a_budget_does_not_count_the_start_and_nothing_compared_is_no_success(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    narrow = ("--dtype", "float32", "--modes", "static", "--samples", "1", "--out", str(tmp_path))
    assert cli.run(["check-op", "flip", *narrow, "--budget", "2s"]) == 0  # the imports take longer
    assert "nothing was compared" not in capsys.readouterr().out
    assert cli.run(["check-op", "flip", *narrow, "--budget", "0.001ms"]) == 2
    assert "nothing was compared" in capsys.readouterr().out


def test_modes_that_are_none_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["check-op", "flip", "--modes", "statik"]) == 2
    assert "--modes: statik is none of static, dynamic" in capsys.readouterr().err
