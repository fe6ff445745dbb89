"""What the doctor says of torch, the compiler, processors, GPUs and folders."""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import version
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from inductor_probe.health.examine import (
    PASSED,
    caches_diagnostic,
    compiling_diagnostics,
    folder_diagnostics,
    folder_size,
    gpu_diagnostics,
    installed_diagnostics,
    limits_diagnostic,
    places_diagnostic,
    processors_diagnostic,
    timer_diagnostic,
)
from inductor_probe.machine.cpu import CpuState, clock_source, timer_step
from inductor_probe.machine.facts import installed
from inductor_probe.machine.gpu import GpuState, gpu_states, has_gpu
from inductor_probe.machine.toolchain import torch_setup
from inductor_probe.model.health import BuiltKernel, Diagnostic, Limit, MachineHealth, TorchCaches, TorchSetup
from inductor_probe.report.pages.check import health_page
from inductor_probe.report.terminal import to_text
from tests.health.words import remedy, text

THERE = ("torch._inductor.scheduler:Scheduler.can_fuse", "torch.cuda:is_bf16_supported")
GONE = ("torch._inductor.scheduler:Scheduler.can_fuse_no_more", "torch._inductor.no_such_module:function")


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> TorchSetup:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "2",
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "1",
        "TORCH_TRACE": str(tmp_path_factory.mktemp("trace")),
    }
    return torch_setup(environment, [*THERE, *GONE])


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
def test_the_installed_torch_is_one_that_passed_or_a_warning(setup: TorchSetup) -> None:
    (found,) = [each for each in installed_diagnostics(setup, gpu=False) if each.about == "torch"]
    release = str(setup.version).partition("+")[0]
    assert (found.level == "ok") is (release in PASSED)
    if found.level == "ok":
        assert text(found).endswith("; the tests passed with it")


@pytest.mark.compiles
def test_private_places_that_the_installed_torch_lacks_are_named(setup: TorchSetup) -> None:
    assert setup.missing == GONE
    found = places_diagnostic(setup, len(THERE) + len(GONE))
    assert (found.level, text(found)) == (
        "warning",
        f"not available on torch {setup.version}: torch._inductor.scheduler:Scheduler.can_fuse_no_more, "
        "torch._inductor.no_such_module:function",
    )
    assert remedy(found) == "do without what is recorded there, or take another release of torch"


def test_a_torch_that_has_all_private_places_is_ok() -> None:
    found = places_diagnostic(SETUP, 179)
    assert (found.level, text(found)) == ("ok", "torch has all 179 private places that dumps read")
    broken = replace(SETUP, errors=(("places", "OSError: libtorch_cpu.so: cannot open"),))
    found = places_diagnostic(broken, 179)
    assert found.level == "warning"
    assert text(found) == "not available on torch 2.13.0+cpu: OSError: libtorch_cpu.so: cannot open"


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
    assert killed.error("torch") == "cannot query torch: killed by signal 9"


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
        ('kernel.cpp:4:2: error: #error "torch/csrc/inductor/cpp_prefix.h is missing"', "reinstall torch"),
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
    assert text(about("torch", SETUP)) == "2.13.0+cpu, built for CPU, in /t; the tests passed with it"
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


def test_a_torch_that_no_test_ran_with_is_a_warning() -> None:
    found = about("torch", TorchSetup(version="2.14.0+cpu", folder="/t", triton="3.8.0"))
    assert (found.level, text(found)) == (
        "warning",
        "2.14.0+cpu, built for CPU, in /t: the tests passed with 2.11.0, 2.13.0, 2.14.1, 2.15.0, and were "
        "not run with it",
    )
    assert "its notes say what this one does not have" in str(remedy(found))
    assert about("torch", TorchSetup(version="2.15.0+cu132", folder="/t", cuda="13.2")).level == "ok"


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


def test_an_idle_machine_is_ok() -> None:
    found = processors_diagnostic(CpuState(4, governors=("performance",)))
    assert (found.level, text(found)) == (
        "ok",
        "4 processors, 0.0 of them busy, no quota, governor performance",
    )


def test_hazards_are_part_of_the_one_diagnostic_about_processors() -> None:
    """A busy machine was `fine`, with a note on the next line that said the opposite."""
    state = CpuState(2, quota=1.5, period_s=0.1, busy=1.0, stolen=0.2, governors=("powersave",))
    found = processors_diagnostic(state)
    assert found.level == "warning"
    assert text(found).startswith("2 processors, 1.0 of them busy, a quota of 1.5 by the control group")
    for word in (
        "cpu.max",
        "other processes keep 1.0 of 2 processors busy",
        "the hypervisor",
        "the governor",
    ):
        assert word in text(found)
    for advice in ("wait until those are done", "cpupower frequency-set"):
        assert advice in (remedy(found) or "")


def test_the_timer_of_this_machine_is_finer_than_what_it_times(tmp_path: Path) -> None:
    step = dict(timer_diagnostic().facts)["step_s"]
    assert isinstance(step, float)
    assert 0 < step < 1e-3
    assert clock_source(tmp_path / "none") is None


def test_a_coarse_timer_is_a_warning(tmp_path: Path) -> None:
    clock = tmp_path / "current_clocksource"
    clock.write_text("acpi_pm\n")
    ticks = count()
    found = timer_diagnostic(timer_step(lambda: next(ticks) // 10 * 4e-6), clock_source(clock))
    assert (found.level, text(found)) == (
        "warning",
        "time.perf_counter has steps of 4000 ns, from acpi_pm",
    )
    assert timer_step(lambda: 1.0) == 0.0


def test_doctor_has_one_row_for_each_subject() -> None:
    misleading = (("name", "TRITON_DEBUG"), ("value", "1"))
    diagnostics = (
        Diagnostic("variables", "ok", "variable-not-known", (("name", "A"), ("value", "1"))),
        Diagnostic("debugpy", "ok", "debugpy", (("version", "1.8"),)),
        Diagnostic("variables", "warning", "variable-effect", misleading),
        Diagnostic("triton", "ok", "triton-not-asked", ()),
        Diagnostic("triton", "ok", "triton-not-needed", ()),
    )
    assert to_text(health_page(MachineHealth(diagnostics)), 105).splitlines()[:-2] == [
        "warning  variables  TRITON_DEBUG=1: Triton kernels check as they run: other code, longer times; "
        "unset",
        "                    TRITON_DEBUG, unless that is what you want",
        "ok       variables  A=1: no known effect on dumps or timings",
        "ok       debugpy    1.8",
        "ok       triton     not checked, as torch is missing",
        "                    not installed; kernels for the CPU are C++ and need none",
    ]


BUSY = GpuState(
    "nvml",
    name="NVIDIA H200",
    driver="580.1",
    sm_mhz=1200.0,
    max_sm_mhz=1980.0,
    power_w=699.8,
    limit_w=700.0,
    temperature_c=85.0,
    reasons=("power_limit",),
    processes=(7,),
)
COOL = GpuState("nvml", name="NVIDIA H200", driver="580.1", sm_mhz=345.0, max_sm_mhz=1980.0, idle=True)
CUDA = TorchSetup(version="2.13", cuda="13.0", devices=("NVIDIA H200",))


def test_no_gpu_is_a_plain_line(tmp_path: Path) -> None:
    assert gpu_states({}, tmp_path) == ()
    assert not has_gpu((), tmp_path)
    (found,) = gpu_diagnostics(TorchSetup(version="2.13"), ())
    assert (found.level, text(found)) == ("ok", "none: inductor compiles C++ for the CPU")


def test_each_gpu_that_cuda_may_use_is_asked(tmp_path: Path) -> None:
    for number in (0, 1, 2):
        (tmp_path / f"nvidia{number}").touch()
    (tmp_path / "nvidiactl").touch()
    asked: list[str] = []

    def ask(name: str) -> GpuState:
        asked.append(name)
        return COOL

    assert len(gpu_states({}, tmp_path, ask)) == 3
    gpu_states({"CUDA_VISIBLE_DEVICES": "2, GPU-ab"}, tmp_path, ask)
    assert gpu_states({"CUDA_VISIBLE_DEVICES": ""}, tmp_path, ask) == ()
    assert gpu_states({"CUDA_VISIBLE_DEVICES": "-1"}, tmp_path, ask) == ()
    assert asked == ["0", "1", "2", "2", "GPU-ab"]


def test_what_throttles_clocks_and_who_else_computes_is_a_warning() -> None:
    (found,) = gpu_diagnostics(CUDA, (BUSY,))
    assert found.level == "warning"
    assert "NVIDIA H200, driver 580.1, 1200 of 1980 MHz, 700 of 700 W, 85 C" in text(found)
    assert "throttled by the power limit" in text(found)
    assert "1 other process runs" in text(found)
    (cool,) = gpu_diagnostics(CUDA, (COOL,))
    assert (cool.level, "345 of 1980 MHz (idle)" in text(cool)) == ("ok", True)


def test_a_gpu_that_torch_cannot_use_says_why() -> None:
    errors = (("devices", "RuntimeError: the driver is too old"),)
    (found,) = gpu_diagnostics(TorchSetup(version="2.13", cuda="13.0", errors=errors), (COOL,))
    assert found.level == "warning"
    assert "torch cannot use it: RuntimeError: the driver is too old" in text(found)


def test_unknown_clocks_are_a_warning_with_the_way_to_know_them() -> None:
    (found,) = gpu_diagnostics(CUDA, (GpuState(None, "clocks of the GPU are not available (NVML: no)"),))
    assert (found.level, remedy(found)) == ("warning", "pip install nvidia-ml-py")
    (amd,) = gpu_diagnostics(TorchSetup(version="2.13", hip="7.0", devices=("MI300X",)), ())
    assert "MI300X" in text(amd)
    assert "rocm-smi" in str(remedy(amd))


CACHES = TorchCaches(
    tempfile.gettempdir(), disabled=False, fx_graph=True, autograd=True, autotune=True, remote=()
)


def read_only(tmp_path: Path) -> Path:
    """A folder that nobody may write to: root may write to any but those of the kernel."""
    if os.geteuid() == 0:
        return Path("/proc/sys/kernel")
    (tmp_path / "shut").mkdir(mode=0o500)
    return tmp_path / "shut"


def by_use(here: Path, environment: dict[str, str], caches: TorchCaches = CACHES) -> dict[str, Diagnostic]:
    found = folder_diagnostics(TorchSetup(version="2.13", caches=caches), here, environment)
    return {str(dict(each.facts)["use"]): each for each in found}


def test_folders_that_can_be_written_tell_their_free_space(tmp_path: Path) -> None:
    found = by_use(tmp_path, {"XDG_STATE_HOME": str(tmp_path / "not" / "yet")})
    assert list(found) == ["dumps", "temporary", "caches", "record"]
    assert all(int(str(dict(each.facts)["free_bytes"])) > 0 for each in found.values())
    assert "(to be made)" in text(found["record"])
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_a_folder_that_cannot_be_written_is_needed_and_has_a_remedy(tmp_path: Path) -> None:
    shut = read_only(tmp_path)
    found = by_use(shut, {"HOME": str(tmp_path)})
    assert found["dumps"].level == "error"
    assert f"cannot be written in {shut}" in text(found["dumps"])
    assert "--out" in str(remedy(found["dumps"]))
    named = by_use(tmp_path, {"TORCH_COMPILE_DEBUG_DIR": str(shut / "below"), "HOME": str(tmp_path)})
    assert named["dumps"].level == "error"


def test_a_record_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    found = by_use(tmp_path, {"XDG_STATE_HOME": str(read_only(tmp_path))})
    assert (found["record"].level, "--trust" in str(remedy(found["record"]))) == ("warning", True)


def test_a_file_in_a_folders_place_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = by_use(tmp_path, {"TORCH_COMPILE_DEBUG_DIR": str(tmp_path / "file")})
    assert found["dumps"].level == "error"


def test_no_temporary_folder_at_all_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert by_use(tmp_path, {"HOME": str(tmp_path)})["temporary"].level == "error"


def test_a_cache_is_measured_and_left_where_it_takes_long(tmp_path: Path) -> None:
    for name in ("a/b", "c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_bytes(b"x" * 100)
    (tmp_path / "c" / "link").symlink_to(tmp_path / "a")
    size, files, whole = folder_size(tmp_path)
    assert (files, whole) == (3, True)
    assert 200 <= size < 400
    assert folder_size(tmp_path / "none") == (0, 0, True)
    assert folder_size(tmp_path, seconds=-1)[2] is False
