"""What compiled code assumes of its machine: read of real code, held against machines that are described."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from inductor_probe.analysis.portable import judged
from inductor_probe.machine.host import host_with, this_host
from inductor_probe.model.portable import Assumption, Host, Judged, Standing
from inductor_probe.reader.assumptions import collected, of_cpp, of_flags, of_library, of_metadata, of_python
from tests.conftest import DUMPS, Probe

AVX2 = Host(
    name="a machine with AVX2",
    platform="linux",
    architecture="x86_64",
    libc="2.31",
    instructions=("avx", "avx2", "fma", "f16c"),
    vector_bits=256,
    processors=2,
    torch="2.13.0",
)
CPU = next(DUMPS.glob("torch-2.15.0-cpu-programs/training/run_*/torchinductor/*forward*/output_code.py"))
GPU = next(DUMPS.glob("torch-2.11.0-cuda/layernorm_grad/run_*/torchinductor/*backward*/output_code.py"))


def standing(rows: tuple[Judged, ...], about: str) -> list[tuple[str, Standing]]:
    return [(row.assumption.value, row.standing) for row in rows if row.assumption.about == about]


def python(path: Path, host: Host) -> tuple[Judged, ...]:
    return judged(collected(of_python(path.read_text(), path.name)), host)


def test_code_for_vectors_of_another_width_is_broken_on_wider_ones_too() -> None:
    width = {
        bits: standing(python(CPU, change(vector_bits=bits)), "vector width") for bits in (128, 256, 512)
    }
    assert width == {128: [("256", "broken")], 256: [("256", "holds")], 512: [("256", "broken")]}


def change(**facts: Any) -> Host:
    return Host(**{**{name: getattr(AVX2, name) for name in AVX2.__struct_fields__}, **facts})


def test_a_bench_file_sets_its_width_so_that_wider_vectors_are_no_fault() -> None:
    text = f"torch._inductor.config.cpp.simdlen = 256\n{CPU.read_text()}"
    for bits, outcome in ((128, "broken"), (256, "holds"), (512, "holds")):
        rows = judged(collected(of_python(text, "bench.py")), change(vector_bits=bits))
        assert standing(rows, "vector width") == [("256", outcome)]
    (row,) = (one for one in rows if one.assumption.about == "vector width")
    assert row.assumption.place == "bench.py:1"


def test_sizes_and_strides_are_of_the_call_with_the_line_that_checks_them() -> None:
    rows = [row for row in python(CPU, AVX2) if row.assumption.about == "strides"]
    assert {row.standing for row in rows} == {"caller"}
    line = int(rows[0].assumption.place.partition(":")[2])
    assert rows[0].assumption.value.split()[0] in CPU.read_text().split("\n")[line - 1]


@pytest.mark.parametrize(
    ("target", "capability", "multiprocessors"),
    [("h100", "holds", "holds"), ("a100", "broken", "broken"), ("h200", "holds", "holds")],
)
def test_a_triton_kernel_is_for_the_gpu_that_it_names(
    target: str, capability: Standing, multiprocessors: Standing
) -> None:
    rows = python(GPU, host_with(target))
    assert standing(rows, "compute capability") == [("9.0", capability)]
    assert standing(rows, "multiprocessors") == [("132", multiprocessors)]
    assert standing(rows, "triton") == [("installed", "unknown")]  # it is not known what is installed there


def test_without_a_gpu_all_that_is_about_one_is_broken() -> None:
    rows = python(GPU, AVX2)
    assert {row.assumption.about for row in rows if row.standing == "broken"} == {
        "device", "compute capability", "multiprocessors", "triton",
    }  # fmt: skip


def one(assumptions: object, host: Host = AVX2) -> list[tuple[str, str, Standing]]:
    rows = judged(collected(assumptions), host)  # type: ignore[arg-type]
    return [(row.assumption.about, row.assumption.value, row.standing) for row in rows]


def test_flags_of_a_compiler_name_instructions_that_are_missing() -> None:
    flags = (
        '{"definitions": ["CPU_CAPABILITY_AVX512"], "cflags": ["O3", "march=native"], "passthrough_args": '
    )
    rows = judged(collected(of_flags(flags + '["-mavx512f -mavx512dq -mfma"]}', "flags.json")), AVX2)
    assert [(row.assumption.value, row.missing) for row in rows if row.standing == "broken"] == [
        ("avx512dq avx512f fma", ("avx512dq", "avx512f")),
        ("AVX512", ("avx512f", "avx512dq", "avx512vl", "avx512bw")),
    ]
    assert standing(rows, "machine code") == [("-march=native", "unknown")]


def test_metadata_of_a_package_names_machine_and_gpu() -> None:
    facts = {"DEVICE_KEY": "cuda", "MACHINE": "aarch64", "CPU_ISA": "ASIMD", "COMPUTE_CAPABILITY": "90"}
    text = json.dumps({f"AOTI_{name}": fact for name, fact in facts.items()})
    assert one(of_metadata(text, "m.json"), change(gpus=1, capability="9.0")) == [
        ("architecture", "aarch64", "broken"),
        ("instructions", "ASIMD", "broken"),
        ("device", "cuda", "holds"),
        ("compute capability", "90", "holds"),
    ]


def test_threads_of_a_loop_are_more_than_the_processors() -> None:
    assert one(of_cpp("#pragma omp parallel num_threads(4)", "k.cpp")) == [("threads", "4", "broken")]


def test_a_library_names_its_machine_the_newest_glibc_and_cuda() -> None:
    head = b"\x7fELF\x02\x01" + bytes(12) + (183).to_bytes(2, "little")
    data = head + b"\0GLIBC_2.34\0GLIBC_2.4\0libcudart.so.12\0"
    assert one(of_library(data, "m.so"), change(gpus=1, driver="470.42")) == [
        ("architecture", "aarch64", "broken"),
        ("C library", "2.34", "broken"),
        ("driver", "CUDA 12", "broken"),
    ]
    assert one(of_library(b"MZ" + bytes(100), "m.dll")) == []


def test_aten_cpu_capability_limits_vectors_as_it_limits_torch_s(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : fma avx2 avx512f avx512dq avx512vl avx512bw avx512_vnni\n")
    wide = this_host({}, cpuinfo)
    narrow = this_host({"ATEN_CPU_CAPABILITY": "avx2"}, cpuinfo)
    assert "avx512vnni" in {*wide.instructions} & {*narrow.instructions}
    assert (wide.vector_bits, narrow.vector_bits) in ((512, 256), (None, None))  # None: no x86


def test_the_exit_status_says_whether_it_is_portable(probe: Probe, tmp_path: Path) -> None:
    ran = probe("check", "--portable", str(GPU), "--target", "a100")
    assert ran.status == 1
    assert "not portable" in ran.out
    assert "BROKEN" in ran.out
    assert probe("check", "--portable", str(GPU), "--target", "h100").status == 0


def test_what_inductor_did_not_make_is_named(probe: Probe, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    for file, words in ((script, "states nothing of a machine"), (tmp_path, "is a folder")):
        ran = probe("check", "--portable", str(file))
        assert ran.status == 2
        assert words in ran.err
    assert probe("check", "--portable").status == 2
    assert probe("check", "--target", "h100").status == 2


def test_a_package_with_a_pickle_is_read_without_opening_it(probe: Probe, tmp_path: Path) -> None:
    """`of_package` asks for texts and libraries alone: a member that would do harm is never read."""
    path = tmp_path / "m.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data/weights/model.pt", b"cos\nsystem\n(S'touch owned'\ntR.")
        archive.writestr("m/data/aotinductor/model/a.wrapper_metadata.json", '{"AOTI_MACHINE": "riscv64"}')
    ran = probe("check", "--portable", str(path), cwd=tmp_path)
    assert ran.status == 1
    assert "architecture riscv64" in ran.out
    assert not (tmp_path / "owned").exists()


def test_an_assumption_is_shown_once_with_the_number_of_its_places() -> None:
    twice = [Assumption(about="threads", value="2", place=f"k.cpp:{line}") for line in (7, 9)]
    assert collected(twice) == (Assumption(about="threads", value="2", place="k.cpp:7", places=2),)
