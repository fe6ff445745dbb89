from __future__ import annotations

from inductor_probe.health.examine import installed_diagnostics
from inductor_probe.machine.facts import installed
from inductor_probe.model.health import Diagnostic, TorchSetup
from tests.health.words import remedy, text

SETUP = TorchSetup(version="2.13.0+cpu", folder="/t", threads=2, triton="3.7.1")


def about(name: str, setup: TorchSetup, has_gpu: bool = False, version: str | None = "1.0") -> Diagnostic:
    found = {each.about: each for each in installed_diagnostics(setup, has_gpu, lambda _: version)}
    return found[name]


def test_versions_come_from_metadata() -> None:
    assert installed("torch").startswith("2.")
    assert installed("no-such-distribution") is None


def test_what_is_there_is_ok() -> None:
    for name in ("python", "torch", "triton", "debugpy"):
        assert about(name, SETUP).level == "ok"
    assert text(about("torch", SETUP)) == "2.13.0+cpu, built for CPU, in /t"
    cuda = TorchSetup(version="2.13.0", folder="/t", cuda="13.0", triton="3.7.1")
    assert "built for CUDA 13.0" in text(about("torch", cuda, has_gpu=True))
    assert about("torch", cuda, has_gpu=True).level == "ok"


def test_no_torch_is_an_error() -> None:
    missing = TorchSetup(errors=(("torch", "ModuleNotFoundError: No module named 'torch'"),))
    found = about("torch", missing, version=None)
    assert (found.level, text(found).split(" in ")[0]) == ("error", "not installed")
    assert "pip install torch" in str(remedy(found))
    broken = TorchSetup(errors=(("torch", "OSError: libtorch_cpu.so: cannot open"),))
    found = about("torch", broken)
    assert found.level == "error"
    assert "cannot be imported: OSError: libtorch_cpu.so" in text(found)


def test_an_old_torch_and_a_build_that_does_not_fit_are_warnings() -> None:
    old = TorchSetup(version="2.4.1+cpu", folder="/t", triton="3.0.0")
    assert "2.11 or later" in str(remedy(about("torch", old)))
    assert about("torch", TorchSetup(version="2.11.0", folder="/t", triton="3.6")).level == "ok"
    assert "there is a GPU" in text(about("torch", SETUP, has_gpu=True))


def test_triton_is_needed_for_a_gpu_only() -> None:
    without = TorchSetup(
        version="2.13", errors=(("triton", "ModuleNotFoundError: No module named 'triton'"),)
    )
    assert about("triton", without).level == "ok"
    assert "cannot compile for the GPU" in text(about("triton", without, has_gpu=True))
    broken = TorchSetup(version="2.13", errors=(("triton", "ImportError: libtriton.so: bad"),))
    assert (about("triton", broken).level, "bad" in text(about("triton", broken))) == ("warning", True)


def test_debugpy_is_named_where_it_is_missing() -> None:
    found = about("debugpy", SETUP, version=None)
    assert (found.level, remedy(found)) == ("warning", "pip install debugpy")
