"""Each remark of the harness has its code, its sentence, and the values that the sentence names."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from string import Formatter
from typing import get_args

import inductor_probe.harness
from inductor_probe.harness.remarks import SENTENCES, TYPES, code_of, remark, sentence
from inductor_probe.model.codec import from_json
from inductor_probe.model.remark import HarnessCode, Remark

FOLDER = Path(inductor_probe.harness.__file__).parent
OTHERS = {"variant-crashes"}  # made by `bench`


def made() -> list[tuple[str, int, set[str], bool]]:
    """Every call of `remark` or `reason` and every reason of the core: its code, number of subjects, names of
    its values, and whether there may be more.
    """
    calls: list[tuple[str, int, set[str], bool]] = []
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name("remark"), args=[ast.Constant(str(code)), *others]):
                    names = {keyword.arg for keyword in node.keywords if keyword.arg}
                    calls.append((code, len(others), names, len(names) < len(node.keywords)))
                case ast.Call(func=ast.Name("reason"), args=[ast.Constant(str(code))]):
                    calls.append((code, 0, {keyword.arg or "" for keyword in node.keywords}, False))
                case ast.Tuple(elts=[ast.Constant(str(text)), ast.Dict(keys=keys)]) if (
                    " " in text or "{" in text
                ):
                    calls.append(
                        (code_of(text) or text, 0, {ast.literal_eval(key) for key in keys if key}, False)
                    )
                case ast.Tuple(elts=[ast.Constant(str(text)), ast.Name()]) if "{" in text:
                    calls.append((code_of(text) or text, 0, set(), True))
    return calls


def test_every_sentence_names_the_values_that_its_remark_has() -> None:
    calls = made()
    assert {code for code, *_ in calls} | OTHERS == set(TYPES) == set(get_args(HarnessCode))
    for code, subjects, names, more in calls:
        fields = {field for _, field, _, _ in Formatter().parse(SENTENCES[TYPES[code]][code]) if field}
        assert fields - {"subject"} <= names or (more and names < fields), code
        assert subjects == 1 or "subject" not in fields, code


def test_a_remark_is_read_as_a_record() -> None:
    written = remark("clock-changed", mhz=1250.0, median_mhz=3100.0)
    assert sentence(written) == "the clock was 1250 MHz instead of 3100"
    read = from_json(Remark, json.loads(json.dumps(written)))
    assert (read.code, read.numbers, read.knowledge) == (
        "clock-changed",
        (("mhz", 1250.0), ("median_mhz", 3100.0)),
        "measured",
    )
