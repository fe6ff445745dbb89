from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inductor_probe.errors import ProbeError, RunFailedError
from inductor_probe.machine.toolchain import compile_command, flags_environment

KERNEL = """
import sys, torch
from torch._inductor.async_compile import AsyncCompile
compiler = AsyncCompile()
kernel = compiler.cpp_pybinding(["int64_t*"], '''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C" void kernel(int64_t* out_ptr0) { out_ptr0[0] = CHOSEN; }
''')
scope = {"kernel": kernel}
compiler.wait(scope)
out = torch.zeros(1, dtype=torch.int64)
scope["kernel"](out)
print(out.item())
"""


def stand_in(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `import torch` in child processes find a file of ours."""
    (tmp_path / "torch.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.mark.compiles
@pytest.mark.usefixtures("warm_here")
def test_the_command_is_inductors_own(tmp_path: Path) -> None:
    command = compile_command()
    assert command.library[:2] == (command.compiler, "kernel.cpp")
    assert "-shared" in command.library
    assert command.openmp == "-fopenmp"
    assert {"-O3", "-fPIC"} <= set(command.flags)
    assert (command.vector_bits is None) == (command.isa is None)
    for part in (*command.flags, *command.includes, *command.machine):
        assert part in command.library
    line = command.program("a.cpp", "a", ["-O1"])
    assert "-shared" not in line
    assert line.index("-O1") > line.index("-O3")
    (tmp_path / "a.cpp").write_text("#include <torch/csrc/inductor/cpp_prefix.h>\nint main() { return 7; }\n")
    subprocess.run(line, cwd=tmp_path, check=True, capture_output=True)
    needed = subprocess.run(["readelf", "-d", "a"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "libtorch" not in needed.stdout  # it does not call into it
    assert subprocess.run([tmp_path / "a"], check=False).returncode == 7


@pytest.mark.compiles
@pytest.mark.usefixtures("warm_here")
def test_a_kernels_own_vectors_are_chosen() -> None:
    if compile_command().vector_bits != 512:
        pytest.skip("this machine has no wider vectors than AVX2")
    command = compile_command(256)
    assert (command.isa, command.vector_bits) == ("avx2", 256)
    assert "-DCPU_CAPABILITY_AVX2" in command.definitions
    with_environment = compile_command(environment={"ATEN_CPU_CAPABILITY": "avx2"})
    assert with_environment.vector_bits == 256


@pytest.mark.compiles
def test_added_flags_reach_the_kernels_that_inductor_compiles(tmp_path: Path) -> None:
    said = []
    for value in ("5", "6"):  # the caches are the same: a kernel must not be taken for the other
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
            "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",  # a header for each flag would be one kernel's
            **flags_environment([f"-DCHOSEN={value}"], tmp_path),
        }
        command = [sys.executable, "-c", KERNEL]
        ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        said.append(ran.stdout.strip())
    assert said == ["5", "6"]
    assert list((tmp_path / "inductor").rglob("*.so"))


def test_the_compiler_is_called_with_the_flags_last(tmp_path: Path) -> None:
    made = flags_environment(["-O2", "-DTEXT=a b"], tmp_path, {"CXX": "echo"})
    script = Path(made["CXX"])
    assert script.name.startswith("echo-")  # inductor tells compilers by their names
    ran = subprocess.run([script, "x.cpp", "-O3"], check=True, capture_output=True, text=True)
    assert ran.stdout == "x.cpp -O3 -O2 -DTEXT=a b\n"
    assert flags_environment(["-O1"], tmp_path, {"CXX": "echo"}) != made
    assert flags_environment([], tmp_path) == {}


def test_what_is_no_flag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match=r"evil\.so is not a compiler flag"):
        flags_environment(["-O2", "evil.so"], tmp_path)


def test_a_torch_without_the_parts_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, "__version__ = '9.0'\n", monkeypatch)
    with pytest.raises(ProbeError, match=r"the compile command is not available on torch 9\.0: "):
        compile_command()


def test_no_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, "raise ModuleNotFoundError(\"No module named 'torch'\")\n", monkeypatch)
    with pytest.raises(RunFailedError, match="No module named 'torch'") as caught:
        compile_command()
    assert "Python that has torch" in str(caught.value.hint)


def test_files_in_the_working_folder_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The working folder may be a stranger's dump with a `json.py` in it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "json.py").write_text("raise SystemExit('taken in')\n")
    (tmp_path / "elsewhere" / "torch.py").write_text("raise SystemExit('taken in')\n")
    stand_in(tmp_path, "__version__ = '9.0'\n", monkeypatch)
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(ProbeError, match=r"torch 9\.0"):
        compile_command()
