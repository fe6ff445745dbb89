"""The figures of GPUs: each with its source, and a sentence for a file that lacks some."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.errors import NotFoundError, ProbeError, UnreadableError
from inductor_probe.machine.targets import find_gpu_target, read_target, target_names, target_of_device
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.gpu_target import FIGURES, OPTIONAL_FIGURES, GpuTarget

SHEETS = {"h200": 4800, "h100": 3350, "a100": 2039, "l4": 300, "rtx4090": 1008, "t4": 320}
"""Bandwidths of NVIDIA's data sheets, in GB/s."""

FILE = """name = "mine"
device = "NVIDIA A10"
capability = "8.6"

[[figures]]
source = "CUDA C++ Programming Guide, Compute Capabilities, 8.6"
threads_per_multiprocessor = 1536
blocks_per_multiprocessor = 16
registers_per_multiprocessor = 65_536
shared_bytes_per_multiprocessor = 102_400
shared_bytes_per_block = 101_376

[[figures]]
source = "NVIDIA A10, data sheet"
multiprocessors = 72
clock_mhz = 1695
memory_bytes = 24_000_000_000
memory_clock_mhz = 6251
bus_bits = 384
l2_bytes = 6_291_456
memory_gb_per_s = 600
tflops = { tf32 = 62.5, float16 = 125, bfloat16 = 125 }

[[figures]]
source = "the same sheet, without tensor cores"
[figures.tflops]
float32_simt = 31.2
"""


def test_a_target_is_found_by_name_and_a_slip_gets_near_names() -> None:
    assert find_gpu_target("H200").architecture == 90
    with pytest.raises(NotFoundError, match="no target 'h20'") as error:
        find_gpu_target("h20")
    assert error.value.hint is not None
    assert error.value.hint.startswith("did you mean h200 or h100?")


@pytest.mark.parametrize("name", target_names())
def test_every_figure_of_a_target_has_its_source(name: str) -> None:
    target = find_gpu_target(name)
    figures = [figure for source, figures in target.sources for figure in figures if source]
    rates = [kind for kind, _ in target.tflops]
    assert len(figures) == len({*figures})
    assert {*figures} | {*OPTIONAL_FIGURES} == {*FIGURES, *rates} | {*OPTIONAL_FIGURES}
    assert target_of_device(target.device) == target
    assert from_json(GpuTarget, to_json(target)) == target


@pytest.mark.parametrize("name", target_names())
def test_the_figures_of_a_target_agree_with_each_other(name: str) -> None:
    target = find_gpu_target(name)
    clocked = 2e6 * target.memory_clock_mhz * target.bus_bits / 8
    assert target.memory_gb_per_s == SHEETS[name]
    assert clocked == pytest.approx(target.memory_gb_per_s * 1e9, rel=0.03)
    cores = {(7, 5): 64, (8, 0): 64, (8, 9): 128, (9, 0): 128}[target.compute_capability]
    simt = 2 * cores * target.multiprocessors * target.clock_mhz * 1e6
    assert target.product_rate("float32_simt") == pytest.approx(simt, rel=0.01)
    # Operations a clock and multiprocessor: 1024 (Turing, Ada), 2048 (Ampere), 4096 (Hopper).
    tensor = {(7, 5): 1024, (8, 0): 2048, (8, 9): 1024, (9, 0): 4096}[target.compute_capability]
    of_geforce = 2 if name == "rtx4090" else 1  # whose sums in float32 have half the rate
    expected = tensor / of_geforce * target.multiprocessors * target.clock_mhz * 1e6
    assert target.product_rate("float16") == pytest.approx(expected, rel=0.01)
    assert target.shared_bytes_per_block <= target.shared_bytes_per_multiprocessor


def test_a_type_without_tensor_cores_has_no_rate() -> None:
    assert find_gpu_target("t4").product_rate("bfloat16") is None
    assert find_gpu_target("a100").product_rate("float8") is None
    assert find_gpu_target("h100").product_rate("float8") is not None


def test_a_file_adds_a_target(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    target = find_gpu_target(str(path))
    assert (target.name, target.architecture, target.multiprocessors) == ("mine", 86, 72)
    assert dict(target.tflops)["float32_simt"] == 31.2
    assert target.sources[2] == ("the same sheet, without tensor cores", ("float32_simt",))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("bus_bits = 384", "bus_bit = 384", (19, "there is no figure bus_bit", "bus_bits")),
        ("clock_mhz = 1695", "clock_mhz = 1.7", (16, "clock_mhz = 1.7 is not a whole number above 0", None)),
        ("bus_bits = 384", "bus_bits = true", (19, "bus_bits = True is not a whole number", None)),
        ("memory_gb_per_s = 600", "memory_gb_per_s = nan", (21, "= nan is not a number above 0", None)),
        ("bfloat16 =", "bf16 =", (22, "there is no figure bf16", "bfloat16")),
        ('source = "NVIDIA A10, data sheet"', "", (15, "is in a group without a source", None)),
        ("l2_bytes = 6_291_456", "clock_mhz2 = = 3", (20, "Invalid value", "TOML")),
        ("l2_bytes = 6_291_456", "", (None, "l2_bytes is missing", "all figures")),
        ('capability = "8.6"', 'capability = "sm_86"', (3, "cannot be a compute capability", "9.0")),
        ("bus_bits = 384", "threads_per_multiprocessor = 3", (19, "is given twice", None)),
        ('name = "mine"', "", (None, "name is missing", None)),
    ],
)  # fmt: skip
def test_a_file_that_describes_no_gpu_is_refused_with_its_line(
    old: str, new: str, expected: tuple[int | None, str, str | None], tmp_path: Path
) -> None:
    line, message, hint = expected
    path = tmp_path / "mine.toml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(ProbeError) as error:
        read_target(path)
    assert message in error.value.message
    assert error.value.message.startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert hint is None or hint in (error.value.hint or "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{'a.' * 50_000}a = 1\n", "bytes, more than the limit of 65,536"),
        (f"name = 'x'\n{'a.' * 30_000}a = 1\n", "mine.toml:2: more than 100 dots"),
        (f"a = {'[' * 30_000}", "nested too deeply"),
        (f"a = {'9' * 5_000}", "4300 digits"),
    ],
)
def test_a_hostile_file_is_refused_before_its_memory_is_taken(tmp_path: Path, text: str, says: str) -> None:
    """100 kB with one dotted key took 9.8 GB; lists in lists, and a long number, were internal errors."""
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UnreadableError, match=says):
        find_gpu_target(str(path))


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        find_gpu_target(str(tmp_path / "none.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableError):
        find_gpu_target(str(tmp_path / "bytes.toml"))
