"""How much of an answer is printed as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_probe.errors import NotFoundError
from inductor_probe.report.json_form import MOST_BYTES, JsonForm
from tests.conftest import DUMPS, Probe
from tests.schemas import schema_faults

TRAINING = str(DUMPS / "torch-2.13.0-cpu-programs/training")
ANSWER: dict[str, Any] = {
    "verb": "why",
    "version": 2,
    "problems": [],
    "rows": [
        {"name": f"op{at}", "size": [1, 2, 3], "cause": "c" * 900, "decisions": [{"at": 1}] * at}
        for at in range(9)
    ],
    "note": None,
}


def test_the_first_records_of_each_list_stay_and_what_is_cut_is_said() -> None:
    data = json.loads(JsonForm(limit=2).text(ANSWER, rest="probe why --json --limit 0"))
    assert [row["name"] for row in data["rows"]] == ["op0", "op1"]
    assert (data["rows"][1]["size"], data["rows"][1]["cause"]) == ([1, 2, 3], "c" * 900)
    assert data["cut"] == [{"key": "rows", "shown": 2, "of": 9}]
    assert data["rest"] == "probe why --json --limit 0"
    assert json.loads(JsonForm(limit=0).text(ANSWER, subject=True)) == ANSWER


def test_fields_are_kept_beside_what_every_answer_has() -> None:
    form = JsonForm(fields=("rows.name", "rows.decisions.at"), limit=3, compact=True)
    assert json.loads(form.text(ANSWER)) == {
        "verb": "why",
        "version": 2,
        "rows": [
            {"name": "op0"},
            {"name": "op1", "decisions": [{"at": 1}]},
            {"name": "op2", "decisions": [{"at": 1}] * 2},
        ],
        "cut": [{"key": "rows", "shown": 3, "of": 9}],
    }
    for field, hint in (
        ("row", "did you mean rows?"),
        ("rows.nme", "did you mean rows.name or rows.size or rows.cause?"),
    ):
        with pytest.raises(NotFoundError, match=f"the answer has no field {field}") as error:
            JsonForm(fields=(field,)).text(ANSWER)
        assert error.value.hint == hint
    assert JsonForm(fields=("rows.name",)).text({**ANSWER, "rows": []}), "nothing could have the field"


ANYTHING = st.recursive(
    st.none() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.sampled_from("abcd"), inner),
    max_leaves=200,
)


@given(st.dictionaries(st.sampled_from(["rows", "name", "outcome"]), ANYTHING))
def test_a_shorter_answer_has_nothing_that_the_whole_has_not(data: dict[str, Any]) -> None:
    fitting, first = (json.loads(form.text(data, subject=True)) for form in (JsonForm(), JsonForm(limit=1)))
    assert len(json.dumps(data)) > MOST_BYTES or fitting == data

    def is_part(part: Any, whole: Any) -> bool:
        if isinstance(part, dict):
            return all(is_part(value, whole[key]) for key, value in part.items())
        if isinstance(part, list):
            return len(part) <= len(whole) and all(map(is_part, part, whole))
        return bool(part == whole or whole.startswith(part.removesuffix("...")))

    for short in (fitting, first):
        assert short.get("outcome") == data.get("outcome")
        assert is_part({key: value for key, value in short.items() if key not in ("cut", "rest")}, data)


def test_decisions_stay_whole_while_anything_else_can_go() -> None:
    """Of nine decisions about a node the last ones were left out, and source lines of the others were not."""
    decisions = [
        {
            "decision": {"outcome": f"o{at}", "operands": {"sizes": [7] * 9}, "stack": [{"line": 1}] * 40},
            "subjects": [{"type": "node", "name": "op1"}],
            "changes": [{"code": "set", "setting": "x"}],
            "sources": [{"code": "x" * 100}] * 9,
        }
        for at in range(20)
    ]
    data = {"verb": "why", "version": 2, "problems": [], "rows": [{"causes": decisions}]}
    short = json.loads(JsonForm().text(data, subject=True))
    causes = short["rows"][0]["causes"]
    assert [one["decision"]["outcome"] for one in causes] == [f"o{at}" for at in range(20)]
    for key in ("subjects", "changes"):
        assert [one[key] for one in causes] == [one[key] for one in decisions]
    assert all(one["decision"]["operands"] == {"sizes": [7] * 9} for one in causes)
    assert {"key": "rows.causes.sources", "shown": 20, "of": 180} in short["cut"]
    data["rows"] = [{"causes": decisions * 9}]
    short = json.loads(JsonForm().text(data, subject=True))
    (of_all,) = (one for one in short["cut"] if one["key"] == "rows.causes")
    assert of_all["of"] == 180
    assert 20 < of_all["shown"] == len(short["rows"][0]["causes"])


def test_an_answer_about_one_name_fits_and_names_the_call_that_gives_the_rest(probe: Probe) -> None:
    """`probe why op12 --json` took 60 kB of a program's context."""
    for verb, name in (
        ("why", "op12"),
        ("show", "op3"),
        ("layouts", "buf3"),
        ("fusion", "op3"),
    ):
        ran = probe(verb, name, TRAINING, "--json")
        data = json.loads(ran.out)
        assert len(ran.out) <= MOST_BYTES + 1, verb
        if data["cut"]:
            assert data["rest"] == f"probe {verb} {name} {TRAINING} --json --limit 0"
            whole = json.loads(probe(*data["rest"].split()[1:]).out)
            assert (whole["cut"], whole["rest"]) == ([], "")
        assert schema_faults(verb, data) == []
    of_all = json.loads(probe("why", TRAINING, "--json").out)
    assert of_all["cut"] == [], "nobody asked about one name"


@pytest.mark.parametrize(
    ("arguments", "verb", "code", "suggestion"),
    [
        (("why", "buf99", TRAINING, "--json"), "why", "not-found", "did you mean buf9 or buf8 or buf7?"),
        (("layouts", "--format", "json", "--nosuch"), "layouts", "usage", "see probe layouts --help"),
        (("whyy", "--json"), "", "usage", "did you mean why?"),
        (("check", "/nowhere", "--format=json"), "check", "not-found", None),
    ],
)
def test_an_error_is_json_where_the_answer_would_have_been(
    probe: Probe, arguments: tuple[str, ...], verb: str, code: str, suggestion: str | None
) -> None:
    """A program got an empty stdout, and had to read prose from stderr."""
    ran = probe(*arguments)
    data = json.loads(ran.out)
    assert (ran.status, data["verb"], data["version"], data["error"]["code"]) == (2, verb, 2, code)
    assert ran.err.startswith(f"error: {data['error']['message']}")
    assert suggestion is None or data["error"]["suggestions"] == [suggestion]


def test_options_of_json_without_it_are_refused(probe: Probe) -> None:
    for option in (("--limit", "3"), ("--fields", "rows"), ("--compact",)):
        ran = probe("why", TRAINING, *option)
        assert (ran.status, ran.out) == (2, "")
        assert ran.err == "error: --fields, --limit and --compact are about JSON\nhint: add --json\n"
