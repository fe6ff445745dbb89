"""200 tries of the fuzzer, the same ones each time; `benchmarks/reading/fuzz.py` makes thousands."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import FIXTURES
from tests.fuzzing.tries import SAMPLES, Fuzzer, ask, sources

RUNS = sources(FIXTURES, Path(__file__).parent)


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Fuzzer:
    return Fuzzer(tmp_path_factory.mktemp("fuzz"), RUNS)


@settings(
    max_examples=200,
    derandomize=True,  # the same tries on every machine, and nothing remembered between two runs
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(number=st.integers(0, 2**32))
def test_whatever_is_in_a_dump_every_verb_ends_with_a_sentence(fuzzer: Fuzzer, number: int) -> None:
    made = fuzzer.attempt(random.Random(number))  # noqa: S311 - damage, not secrets
    assert not made.answer.faults, str(made)


def test_the_fuzzer_sees_runs_of_every_version_and_samples() -> None:
    assert {"torch-2.1.2-cpu", "torch-2.11.0-cuda", "torch-2.13.0-cpu"} <= {run.parts[-3] for run in RUNS}
    assert any(next(run.rglob(SAMPLES), None) for run in RUNS)


def test_the_fuzzer_sees_what_it_is_made_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer with a fault of each kind is told apart from one without."""

    def faulty(arguments: list[str]) -> int:
        import sys  # noqa: PLC0415 - the streams as they are replaced

        print('[{"a": NaN}]')
        print("warning: file.txt:3: 'is_weak'\nerror: internal error: KeyError: 'x' \x1b[2J", file=sys.stderr)
        return 3

    monkeypatch.setattr("tests.fuzzing.tries.probe", faulty)
    said = "\n".join(ask(["nodes", "--json"]).faults)
    for fault in (
        "status 3",
        "internal error",
        "name of an exception",
        "no sentence",
        "terminal",
        "not JSON",
    ):
        assert fault in said


def test_the_fuzzer_sees_output_that_is_not_of_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    def keyless(arguments: list[str]) -> int:
        print('{"verb": "nodes", "version": 2}')
        return 0

    monkeypatch.setattr("tests.fuzzing.tries.probe", keyless)
    assert any("is a required property" in fault for fault in ask(["nodes", "--json"]).faults)
