"""`--format` of every verb: JSON is of the schema of its record, markdown is the same view."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from inductor_probe.cli import VERBS
from inductor_probe.model.codec import json_schema
from inductor_probe.model.output import output_schema, outputs
from tests.conftest import DUMPS, REPOSITORY, Ran
from tests.fuzzing.tries import ask
from tests.schemas import check_schema, schema_faults

pytestmark = pytest.mark.usefixtures("warm")

SAMPLES = REPOSITORY / "tests" / "fuzzing" / "fixtures"
RUNS = sorted(path for path in DUMPS.glob("*/*/run_*") if path.is_dir())
NAMES = re.compile(r"\b(?:(?:cpp|triton)_\w+|buf\d+|op\d+(?:_op\d+)*|arg\d+_1|primals_\d+)\b")


def questions(verb: str, run: Path) -> Iterator[list[str]]:
    """Yield what can be asked of a run, one of a kind."""
    (graph, *_) = sorted(run.glob("torchinductor/*/"))
    (code, *_) = graph.glob("output_code.*")  # C++ of AOTInductor
    text = code.read_text()
    names = {name[:3]: name for name in NAMES.findall(text)}.values()
    match verb:
        case "show":
            yield from ([verb, *name, *options, str(graph)] for name, options in (
                ([], []), *(([name], ["--raw", "--code"]) for name in names), (["op0"], []),
            ))  # fmt: skip
        case "fusion":
            yield from ([verb, *nodes, str(graph)] for nodes in ([], ["op0"], ["op0", "op1"]))
        case "diff":
            yield [verb, str(run), str(run)]
            yield [verb, str(graph), str(RUNS[0])]
        case "tunings":
            yield [verb, str(graph)]
        case _:
            yield [verb, str(run)]


@pytest.mark.parametrize(
    "verb", ["check", "diff", "fusion", "kernels", "layouts", "nodes", "runs", "show", "tunings", "why"]
)
def test_output_of_every_fixture_is_of_its_schema(verb: str) -> None:
    for run in RUNS:
        for question in questions(verb, run):
            answer = ask([*question, "--json"])
            assert not answer.faults, f"{question}: {answer.faults}"
            assert answer.out or "error: " in answer.err


@pytest.mark.parametrize(
    "verb", ["check", "diff", "fusion", "kernels", "layouts", "nodes", "runs", "show", "tunings", "why"]
)
def test_every_verb_prints_markdown_that_has_the_names_of_its_screen(verb: str) -> None:
    for run in RUNS[::4]:
        for question in questions(verb, run):
            if verb == "fusion":
                question.append("--all")  # a pipe has all steps, what is put into an issue the first ones
            answer = ask([*question, "--format", "markdown"])
            assert not answer.faults, f"{question}: {answer.faults}"
            assert answer.out or "error: " in answer.err or "nothing" in answer.err
            screen = ask(question)
            assert set(NAMES.findall(screen.out)) <= set(NAMES.findall(answer.out)), question


def test_two_formats_at_once_are_refused() -> None:
    answer = ask(["layouts", str(RUNS[0]), "--json", "--format", "markdown"])
    assert json.loads(answer.out)["error"]["code"] == "usage"
    assert "error: --json is --format json: leave out one of them" in answer.err


def test_verdict_of_samples_is_of_its_schema() -> None:
    (file,) = SAMPLES.rglob("output_code_bench.json")
    answer = ask(["verdict", str(file), "--json"])
    assert answer.out
    assert not answer.faults


@pytest.mark.compiles
@pytest.mark.usefixtures("warm_here")
def test_a_bench_file_is_of_its_schema(probe: Callable[..., Ran], tmp_path: Path) -> None:
    ran = probe("dump", "check_hflip.py", "--case", "channels_last", "--json")
    assert schema_faults("dump", json.loads(ran.out)) == []
    ran = probe("bench-kernel", "--no-run", "--json")
    assert schema_faults("bench-kernel", json.loads(ran.out)) == []
    assert list(tmp_path.rglob("output_code_bench.py"))


def test_every_verb_but_debug_has_an_output() -> None:
    """`debug` prints what `dump` does."""
    verbs = {verb for group in VERBS.values() for verb in group}
    assert set(outputs()) == verbs - {"debug"}


@pytest.mark.parametrize("verb", [verb for group in VERBS.values() for verb in group])
def test_every_verb_prints_the_schema_of_what_it_and_a_failure_print(verb: str) -> None:
    schema = json.loads(ask([verb, "--json-schema"]).out)
    check_schema(schema)
    names = [member["$ref"].rpartition("/")[2] for member in schema["anyOf"]]
    assert names == [outputs()["dump" if verb == "debug" else verb].__name__, "FailureOutput"]
    assert set(names) <= set(schema["$defs"])
    failure = json.loads(ask(["nodes", "nowhere", "--json"]).out)
    assert [*Draft202012Validator(schema).iter_errors(failure)] == []
    assert [*Draft202012Validator(schema).iter_errors({"verb": verb, "version": 2})]


def test_one_schema_of_all_verbs_has_each_record_once() -> None:
    schema = output_schema()
    assert len(schema["anyOf"]) == len(outputs()) + 1
    for kind in outputs().values():
        assert set(json_schema(kind)["$defs"]) <= set(schema["$defs"])
