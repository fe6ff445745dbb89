"""One option, one record: the command line, the function of Python and the schema of a verb have the same."""

from __future__ import annotations

import inspect
from typing import Any

import click
import jsonschema
import pytest
from msgspec import NODEFAULT, Struct, to_builtins

import inductor_probe as ip
from inductor_probe import cli
from inductor_probe.cli.options import parameters_of, typed_values
from inductor_probe.options import verb as options_verb
from inductor_probe.options.fields import input_schema, options_of, words_of
from tests.schemas import check_schema

VERBS = [verb for verbs in cli.VERBS.values() for verb in verbs]
OF_THE_ANSWER = {"output_format", "json", "json_schema", "fields", "limit", "compact", "github", "help_all"}
"""How an answer is printed: every verb has these, and they are no part of what is asked for."""
_IN_ANY_ORDER = "names, and where to look for them, are `words` in any order: `parameters.resolve`"
_A_FILE = "`Report.html` and `Report.model_explorer` are the texts"
_AN_ISSUE = "`issue_of` is its text"
ON_THE_COMMAND_LINE = {
    "report": {"output": _A_FILE, "model_explorer": _A_FILE, "force": "Python writes no file"},
    "bench-kernel": {"details": "`Bench.with_details` shows them"},
    "verdict": {"details": "`Bench.with_details` shows them"},
    "check-kernel": {"words": _IN_ANY_ORDER},
    "sweep-configs": {"words": _IN_ANY_ORDER},
    "asm": {"words": _IN_ANY_ORDER},
    "rewrite": {"words": _IN_ANY_ORDER},
    "export-cpp": {"words": _IN_ANY_ORDER, "force": "Python writes no file"},
    "layouts": {"words": _IN_ANY_ORDER},
    "fusion": {"words": _IN_ANY_ORDER, "everything": "`FusionRows.page` has long lists"},
    "why": {
        "words": _IN_ANY_ORDER,
        "everything": "`Causes.page` has long lists",
        "compiler": "`ask_compiler` does it",
        "trust": "of `compiler`",
        "issue": _AN_ISSUE,
    },
    "accuracy": {"issue": _AN_ISSUE},
    "check": dict.fromkeys(("portable", "target"), "`portability` does it"),
    "show": {
        "words": _IN_ANY_ORDER,
        **dict.fromkeys(("annotate", "no_line", "output", "force"), "`Graph.annotate` is the text"),
    },
    "compile-time": {
        **dict.fromkeys(("everything", "guards"), "`CompileTimeRows.page` has them"),
        **dict.fromkeys(("chrome", "force"), "`CompileTimeRows.chrome` is its text"),
    },
    "memory": {"everything": "`Memory.everything` is it"},
    "diff": {"code": "`Diff.code` has it", "everything": "`Diff.page` has long lists"},
    "tunings": {"csv": "`Tunings.csv` is its text"},
    "runs": dict.fromkeys(("rm", "dry_run", "yes"), "`remove_run` removes one"),
    "dump": {"module": "`form` says it in Python"},
    "whatif": {
        "issue": _AN_ISSUE,
        "fail_if_faster": "`WhatIf.faster_by` and `Trials.faster_by` say it",
        "details": "`with_details` shows them",
    },
    "profile": {
        "words": "two programs are compared: `Profiles.compare`",
        "details": "`with_details` shows them",
        "chrome": "`Profiles.chrome` is its text",
        "flame": "`Profiles.flame` is its text",
        "force": "Python writes no file",
    },
    "results": {
        "name": "`open_results` shows one result",
        "history": "`result_history` has it",
        "prune": "`api.perf.remove_results` does it",
        "dry_run": "`api.perf.remove_results` does it",
    },
}
"""What only the command line has, and why."""
IN_PYTHON = {
    "dump": {
        "form": "`-m` and `--` say it",
        "stdout_to_stderr": "`--json` needs it",
        "output": "a shell has > for that",
    },
    "debug": {"stdout_to_stderr": "`--json` needs it"},
    "check-kernel": dict.fromkeys(("kernel", "target"), _IN_ANY_ORDER),
    "sweep-configs": dict.fromkeys(("kernel", "target", "text"), _IN_ANY_ORDER),
    "export-cpp": dict.fromkeys(("kernel", "target"), _IN_ANY_ORDER),
    "asm": dict.fromkeys(("kernel", "other", "target"), _IN_ANY_ORDER),
    "rewrite": dict.fromkeys(("specs", "target"), _IN_ANY_ORDER),
    "layouts": dict.fromkeys(("name", "target"), _IN_ANY_ORDER),
    "fusion": dict.fromkeys(("first", "second", "target"), _IN_ANY_ORDER),
    "why": dict.fromkeys(("first", "second", "target"), _IN_ANY_ORDER),
    "show": dict.fromkeys(("name", "target"), _IN_ANY_ORDER),
    "runs": {"exact": "`--rm` asks for it"},
    "profile": {"program": "see `words`", "args": "a second word is a second program"},
    "results": {"indexed": "`--prune` decides it"},
}
"""What is not typed, and why."""


PYTHON_NAMES = {"report": "report_of"}
"""Of verbs that a room is called like."""


def function_of(verb: str) -> Any:
    return getattr(ip, PYTHON_NAMES.get(verb, verb.replace("-", "_")))


def record_of(verb: str) -> type[Struct]:
    return options_verb.record_of(function_of(verb))


def command_of(verb: str) -> click.Command:
    command = cli.app.get_command(click.Context(cli.app), verb)
    assert command is not None
    return command


@pytest.mark.parametrize("verb", VERBS)
def test_all_faces_of_a_verb_have_the_same_options(verb: str) -> None:
    record = record_of(verb)
    names = set(record.__struct_fields__)
    typed = {parameter.name for parameter in command_of(verb).params} - OF_THE_ANSWER
    assert typed - set(ON_THE_COMMAND_LINE.get(verb, ())) == names - set(IN_PYTHON.get(verb, ()))
    python = inspect.signature(function_of(verb)).parameters
    assert set(python) == names
    schema = input_schema(record)
    assert set(schema["$defs"][record.__name__]["properties"]) == names


@pytest.mark.parametrize("verb", VERBS)
def test_all_faces_of_an_option_have_its_text_and_its_default(verb: str) -> None:
    record = record_of(verb)
    properties = input_schema(record)["$defs"][record.__name__]["properties"]
    helps = {
        parameter.name: parameter.help or ""
        for parameter in command_of(verb).params
        if isinstance(parameter, click.Option)
    }
    for option in options_of(record):
        assert option.text, f"the docstring of {record.__name__} says nothing of {option.name}"
        assert properties[option.name]["description"].startswith(option.text)
        if option.name in helps:
            assert " ".join(helps[option.name].split()).startswith(option.help)
        if option.default is not NODEFAULT and "default" in properties[option.name]:
            assert properties[option.name]["default"] == to_builtins(option.default, enc_hook=str)


def test_no_text_is_typed_twice() -> None:
    """A text that is told of two verbs stands in a type, or in a record that theirs are derived from."""
    where: dict[str, Any] = {}
    for verb in VERBS:
        for parent in record_of(verb).__mro__:
            for line in (parent.__doc__ or "").splitlines():
                name, colon, text = line.strip().partition(": ")
                if colon and name in getattr(parent, "__struct_fields__", ()):
                    assert where.setdefault((name, text), parent) is parent, f"{name}: {text}"


@pytest.mark.parametrize("verb", VERBS)
def test_a_schema_is_one(verb: str) -> None:
    schema = input_schema(record_of(verb))
    check_schema(schema)
    required = [option for option in options_of(record_of(verb)) if option.default is NODEFAULT]
    asked = {option.name: ["latest"] if option.is_list else "latest" for option in required}
    jsonschema.validate(asked, schema)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("perf", ("a.py", "--case", "x*", "--case", "y", "--set", "dtype=float32", "--threads", "1,2")),
        (
            "perf",
            ("a.py", "--budget", "0.5s", "--margin", "2%", "--warm", "--check", "--interleave", "/a", "/b"),
        ),
        ("compare", ("latest~1", "latest", "--fail-on-regression", "5%")),
    ],
)
def test_words_make_options_that_make_the_same_words(verb: str, words: tuple[str, ...]) -> None:
    record = record_of(verb)
    command = click.Command(verb, params=[*parameters_of(record)])
    context = command.make_context(verb, list(words))
    made = record(**typed_values(context, record, dict(context.params)))
    assert sorted(words_of(made)) == sorted(words)
    assert made != record(*words[: len([one for one in options_of(record) if one.default is NODEFAULT])])
