"""What the code and the screens say is plain English: none of the words that only this project used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from inductor_probe.cli import VERBS
from tests.cli.test_json import questions
from tests.conftest import REPOSITORY
from tests.dumps import run_in
from tests.fuzzing.tries import ask

PRIVATE = {
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b)[\w.]": (
        "`'x' is no length of time`: say `invalid duration 'x'`"
    ),
    r"\b(?:is|are|be|was|were) so\b(?! (?:that|much|far|big|large|long|short|small)\b)": (
        "`none of the 4 nodes is so`: say `no node matches these filters (4 nodes)`"
    ),
    r"\b(?:tells|told|(?<!cannot )tell)\b(?! (?:\w+ )?apart)": "programs and files say, show, list or record",
    r"\bspeaks?\b": "`one process cannot speak for the next`: say what is needed",
    r"\bpays?\b|\bhumps?\b|\bceilings?\b": "costs, bimodal, roofline",
    r"\b(?:looks|findings?|oddit\w+|oddly|odd)\b": "the word is remark; say what is unusual",
    r"\bweigh(?:s|ed)?\b|\bdeserves?\b": "compare, rank; say what it costs",
    r"\b(?:take|takes|taken) over\b|\btakeover\b|\bhand(?:ed|s)? over\b": "copy, reuse, pass, compile",
    # One reason of torch 2.15 is "consumer is not wholly in the sub-parent epilogue".
    r"\bmeanwhile\b|\btill\b|\bshall\b|\bwholly\b(?! in the sub)|\banew\b|\bafresh\b|\bmend(?:s|ed|ing)?\b": (
        "during the measurement, until, must, fully, again, fix"
    ),
    r"\bstands? (?:in|on|at|for|there|between|behind|against)\b": "is",
    r"\b(?:its|the) like\b(?! (?:of|a)\b)|\bso many (?!as\b)": "similar; number of threads",
    r"\bsaid\b|\bwithout a word\b|\bnobody (?:knows|wrote|says)\b|\bcannot (?:see|know)\b": "not recorded",
    r"\bwants\b": "expects",
    r"^(?:kept|given|taken|relaid|usual|together|asked|wanted): ": "a label is a noun",
}
"""What no string may say -> what to write instead, or why."""
SOURCES = sorted((REPOSITORY / "inductor_probe").rglob("*.py"))
RUNS = [
    run_in(name)
    for name in (
        *(
            "torch-2.13.0-cpu/aa_separable_cl",
            "torch-2.13.0-cpu/dynamic_shapes",
            "torch-2.13.0-cpu/mlp_train",
        ),
        *("torch-2.13.0-cpu-programs/fallbacks", "torch-2.13.0-cpu-programs/conditional"),
        *("torch-2.11.0-cuda/layernorm_grad", "torch-2.1.2-cpu/hflip_cl"),
    )
]


def faults(text: str) -> list[str]:
    """Return what is said in private words, each with its surroundings."""
    return [
        f"{match[0]!r} in {text[max(match.start() - 60, 0) : match.end() + 40]!r}: {instead}"
        for pattern, instead in PRIVATE.items()
        for match in re.finditer(pattern, text)
    ]


def sentences(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of a module's strings: no docstrings, no regular expressions, `{}` for values."""
    tree = ast.parse(source)
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as text):
                left_out.add(text)
            case ast.JoinedStr(values=parts) if node not in left_out:
                left_out.update(part for part in ast.walk(node) if isinstance(part, ast.Constant))
                yield (
                    node.lineno,
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts),
                )
            case ast.Constant(value=str(text)) if node not in left_out and " " in text and "(?" not in text:
                yield node.lineno, text


def test_strings_of_the_code_have_no_private_words() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}: {fault}"
        for path in SOURCES
        for line, text in sentences(path.read_text())
        for fault in faults(text)
    ]
    assert not found, "\n".join(found)


def test_private_words_are_found_in_any_string() -> None:
    source = '''
def check(value, nodes):
    """A docstring may say that a value is no length of time."""
    PATTERN = r"(?:so many)"
    message = f"{value} is no length " "of time"
    raise ProbeError(message, hint="none of the " + f"{len(nodes)} nodes is so")
'''
    hits = [line for line, text in sentences(source) for _ in faults(text)]
    assert hits == [5, 6]
    for plain in (
        "there is no op9 in it",
        "x is no longer read",
        "the loops are so that",
        "invalid duration 'x'",
        "the dump does not record why",
    ):
        assert not faults(plain), plain


@pytest.mark.parametrize("verb", [verb for verbs in VERBS.values() for verb in verbs])
def test_help_of_every_verb(verb: str) -> None:
    answer = ask([verb, "--help"])
    assert answer.status == 0
    assert not faults(answer.out)


@pytest.mark.parametrize(
    "verb", ["check", "diff", "fusion", "kernels", "layouts", "nodes", "runs", "show", "tunings", "why"]
)
def test_answers_about_fixtures(verb: str) -> None:
    for run in RUNS:
        for question in questions(verb, run):
            if "--code" not in question:
                answer = ask(question, columns=200)
                assert not faults(_without_names(answer.out + answer.err)), question


def _without_names(text: str) -> str:
    """Leave out paths and what is in quotes: names and dumped text."""
    return re.sub(r"\S*/\S*|'[^'\n]*'|`[^`\n]*`", "_", text)


RUN, GRAPH = str(RUNS[0]), str(next(RUNS[0].glob("torchinductor/*")))
MISTAKES = [
    ["nope"],
    ["layouts", "--nope"],
    ["layouts", f"{RUN}/nope"],
    ["layouts", "buf99", GRAPH],
    ["nodes", "--op", "nope", GRAPH],
    ["nodes", "--kernel", "nope", GRAPH],
    ["kernels", "/nowhere"],
    ["show", "nope", GRAPH],
    ["show", "buf0", "--annotate", GRAPH],
    ["fusion", "op99", GRAPH],
    ["fusion", "op0", "op0", GRAPH],
    ["diff", "nope", "none"],
    ["tunings", GRAPH],
    ["check", "/nowhere"],
    ["runs", "/nowhere"],
    ["runs", "--older-than", "x"],
    ["runs", "--rm"],
    ["bench-kernel", "--budget", "x", GRAPH],
    ["bench-kernel", "--margin", "x", GRAPH],
    ["rewrite", GRAPH, "nope"],
    ["sweep-configs", "nope", GRAPH],
    ["export-cpp", "nope", GRAPH],
    ["verdict", "nope.json"],
    ["whatif"],
    ["whatif", "check_hflip.py"],
    ["whatif", "check_hflip.py", "--runs", "a", "b"],
    ["whatif", "--runs", "nope", "none"],
    ["verdict", "--margin", "-1%", GRAPH],
    ["debug", "check_hflip.py", "--break", "nowhere:"],
    ["debug", "check_hflip.py", "--break-on", "?"],
    ["dump", "nope.py"],
]


@pytest.mark.parametrize(
    "arguments", MISTAKES, ids=lambda arguments: " ".join(arguments[:2]).replace("/", "_")
)
def test_mistakes(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = ask(arguments, columns=200)
    assert answer.err or answer.out
    assert not faults(answer.out + answer.err)
