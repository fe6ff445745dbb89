from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.machine.cpu import vector_bits
from inductor_probe.machine.facts import machine, variables


@pytest.mark.parametrize(
    ("flags", "bits"),
    [
        ("fpu avx2 fma avx512f avx512dq avx512vl avx512bw", 512),
        ("fpu avx2 fma avx512f", 256),  # the Xeon Phi: not all that torch needs
        ("fpu avx2 fma", 256),
        ("fpu sse2", 128),
    ],
)
def test_vector_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str, bits: int) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\nvmx flags\t: avx512f\n\nprocessor\t: 1\n")
    assert vector_bits(cpuinfo) == bits


def test_an_unknown_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert vector_bits() is None
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert vector_bits(tmp_path / "cpuinfo") is None


def test_the_facts_of_this_machine() -> None:
    facts = dict(machine({"threads": 3}))
    assert facts["threads"] == "3"
    assert int(facts["cores"]) >= 1
    assert facts.get("vector_bits") in (None, "128", "256", "512")
    assert all(isinstance(fact, str) and fact for fact in facts.values())


def test_only_variables_of_compilers_and_libraries_are_kept_and_no_secret() -> None:
    environment = {
        "TORCHINDUCTOR_FREEZING": "1",
        "OMP_NUM_THREADS": "4",
        "CXX": "clang++",
        "HOME": "/home/u",
        "AWS_SECRET_ACCESS_KEY": "x",
        "TORCHINDUCTOR_REDIS_URL": "redis://h",
        "TORCH_PROXY": "https://u:pw@h",
    }
    assert variables(environment) == (
        ("CXX", "clang++"),
        ("OMP_NUM_THREADS", "4"),
        ("TORCHINDUCTOR_FREEZING", "1"),
        ("TORCHINDUCTOR_REDIS_URL", "(not recorded)"),
        ("TORCH_PROXY", "(not recorded)"),
    )
