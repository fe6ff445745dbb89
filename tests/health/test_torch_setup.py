"""What torch says about itself: the installed one, one that is not there, and one that breaks."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest

from inductor_probe.health.examine import caches_diagnostic, compiling_diagnostics, limits_diagnostic
from inductor_probe.machine.toolchain import torch_setup
from inductor_probe.model.health import BuiltKernel, Diagnostic, Limit, TorchCaches, TorchSetup
from tests.health.words import remedy, text


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> TorchSetup:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "2",
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "1",
        "TORCH_TRACE": str(tmp_path_factory.mktemp("trace")),
    }
    return torch_setup(environment)


def stand_in(tmp_path: Path, source: str) -> dict[str, str]:
    """Let `import torch` in the child find a file of ours."""
    (tmp_path / "torch.py").write_text(source)
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


@pytest.mark.compiles
def test_the_installed_torch_answers_every_question(setup: TorchSetup) -> None:
    assert setup.errors == ()
    assert (setup.version or "").partition("+")[0] == version("torch").partition("+")[0]
    assert setup.folder is not None
    assert Path(setup.folder, "_inductor", "config.py").is_file()
    assert setup.caches is not None
    assert setup.caches.fx_graph is True
    assert [limit.value for limit in setup.limits] == [limit.default for limit in setup.limits]


@pytest.mark.compiles
def test_a_kernel_is_compiled_linked_and_run_by_openmp(setup: TorchSetup) -> None:
    assert setup.built is not None
    assert setup.built.error is None
    assert (setup.openmp, setup.built.threads) == ("-fopenmp", 2)
    assert setup.built.seconds > 0
    assert {found.level for found in compiling_diagnostics(setup)} == {"ok"}


@pytest.mark.compiles
def test_caches_that_would_hide_compiles_are_named(setup: TorchSetup) -> None:
    caches, limits = caches_diagnostic(setup), limits_diagnostic(setup)
    assert text(caches).startswith("on for FX graphs, autograd, autotuning, in ")
    assert "remote caches are on (FX graphs): they hide compiles" in text(caches)
    assert (caches.level, dict(caches.facts)["remote"]) == ("warning", ("FX graphs",))
    assert limits.level == "ok"


def test_without_torch_the_reason_is_kept(tmp_path: Path) -> None:
    gone = torch_setup(stand_in(tmp_path, "raise ModuleNotFoundError(\"No module named 'torch'\")\n"))
    assert gone.version is None
    assert gone.error("torch") == "ModuleNotFoundError: No module named 'torch'"


def test_a_torch_that_ends_the_process_is_told_from_a_missing_one(tmp_path: Path) -> None:
    killed = torch_setup(stand_in(tmp_path, "import os\nos.kill(os.getpid(), 9)\n"))
    assert killed.error("torch") == "torch could not be asked: killed by signal 9"


def test_parts_that_a_torch_does_not_have_cost_only_their_answer(tmp_path: Path) -> None:
    source = "class version: cuda = hip = None\n__version__ = '9.0'\ndef get_num_threads(): return 3\n"
    other = torch_setup(stand_in(tmp_path, source))
    assert (other.version, other.threads, other.built) == ("9.0", 3, None)
    assert {"caches", "limits"} <= {name for name, _ in other.errors}
    assert other.not_available
    (found,) = [each for each in compiling_diagnostics(other) if each.about == "compiler"]
    assert (found.level, "not available on torch 9.0" in text(found)) == ("warning", True)


def test_what_the_script_prints_is_not_taken_for_the_answer(tmp_path: Path) -> None:
    noisy = torch_setup(stand_in(tmp_path, "print('{}')\nclass version: cuda = hip = None\n"))
    assert "AttributeError" in str(noisy.error("torch"))


COMMAND = TorchSetup(version="2.13", compiler="g++", openmp="-fopenmp", isa="avx2", vector_bits=256)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("kernel.cpp:1:10: fatal error: Python.h: No such file or directory", "python3-dev"),
        ("/usr/bin/ld: cannot find -lgomp", "libgomp1"),
        ('kernel.cpp:4:2: error: #error "torch/csrc/inductor/cpp_prefix.h is missing"', "torch anew"),
        ("what was compiled cannot be loaded: failed to map segment", "TMPDIR"),
        ("something new", "g++"),
    ],
)
def test_a_build_that_fails_has_the_remedy_for_it(said: str, advice: str) -> None:
    setup = TorchSetup(version="2.13", compiler="g++", built=BuiltKernel(0.1, error=said))
    found = next(compiling_diagnostics(setup, processor_bits=256))
    assert found.level == "error"
    assert said in text(found)
    assert advice in str(remedy(found))


def vectors(environment: dict[str, str], setup: TorchSetup = COMMAND) -> Diagnostic:
    return list(compiling_diagnostics(setup, environment, processor_bits=512))[-1]


def test_narrower_vectors_than_the_processor_has_are_a_warning() -> None:
    found = vectors({"ATEN_CPU_CAPABILITY": "avx2"})
    assert (text(found), found.level) == ("avx2, 256 bits; the processor has 512 bits", "warning")
    assert "unset ATEN_CPU_CAPABILITY" in str(remedy(found))
    none = vectors({}, TorchSetup(version="2.13", compiler="g++"))
    assert text(none).startswith("none: C++ kernels are not vectorised")


def test_changed_limits_and_caches_that_are_off_are_said(tmp_path: Path) -> None:
    caches = TorchCaches(str(tmp_path), disabled=True, fx_graph=True, autograd=True, autotune=True, remote=())
    limits = (Limit("recompile_limit", 64, 8), Limit("accumulated_recompile_limit", 256, 256))
    setup = TorchSetup(version="2.13", caches=caches, limits=limits)
    first, second = caches_diagnostic(setup), limits_diagnostic(setup)
    assert text(first).startswith(f"all off, in {tmp_path} (0 B in 0 files)")
    assert (second.level, "recompile_limit is 8" in text(second)) == ("warning", True)
