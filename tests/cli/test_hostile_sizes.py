"""Sizes that torch cannot have, of 400 and 5,000 digits, powers of powers: a value or a sentence, at once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import DUMPS
from tests.dumps import copy_of, graph_in
from tests.fuzzing.tries import ask

SIZES = {
    "int64": str(2**63 - 1),
    "more than int64": str(2**63),
    "400 digits": "1" + "0" * 399,
    "400 digits, negative": "-" + "9" * 400,
    "4,300 digits, the most that Python reads": "8" * 4300,
    "5,000 digits": "9" * 5000,
    "5,000 hexadecimal digits, which Python reads and does not print": "0x" + "f" * 5000,
    "10**10**10": "10**10**10",
    "2**(2**40)": "2**(2**40)",
    "a power of a power of a power": "(" * 12 + "7" + "**8)" * 12,
    "a power of a sum of symbols": "((s0 + s1 + p0 + p1)**8)**8",
    "a product of sums": "*".join(f"(a{at} + b{at})" for at in range(40)),
    "a shift": "s0 << 99999999999",
    "more than a float": "1e999",
    "no number": "nan",
    "zero": "0",
    "negative": "-1",
    "a division by zero": "FloorDiv(s0, 0)",
}
FLIP = DUMPS / "torch-2.13.0-cpu/hflip_cl"
VERBS = ("layouts", "show", "nodes", "kernels", "fusion", "check")
FILES = ("ir_post_fusion.txt", "output_code.py", "fx_graph_transformed.py")


def questions(graph: Path) -> list[list[str]]:
    """Ask each verb in JSON, and pages in text."""
    pages = [["show", name, str(graph)] for name in ("buf0", "op0")]
    return [*([verb, str(graph), "--json"] for verb in VERBS), *pages, ["diff", str(graph), str(graph)]]


def with_size(text: str, size: str) -> str:
    """Put `size` where the first size of each layout, dependency, index, type and allocation stands."""
    for before in (
        r"size=\[", r"stride=\[", r"c0: ", r"p0: ", r"d0: ", r"sizes = \(\[", r"iteration = \(\(?",
        r"empty_strided\w*\(\(", r"assert_size_stride\(\w+, \(", r"[fiu]\d+\[", r"index0 = ",
        r"ops\.constant\(",
    ):  # fmt: skip
        text = re.sub(rf"({before})[\w.]+", lambda match: match[1] + size, text)
    return text


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("size", SIZES)
def test_sizes_that_torch_cannot_have_are_a_value_or_a_sentence(tmp_path: Path, file: str, size: str) -> None:
    graph = copy_of(graph_in(FLIP), tmp_path)
    path = graph / file
    changed = with_size(path.read_text(), SIZES[size])
    assert changed != path.read_text()
    path.write_text(changed)
    for question in questions(graph):
        answer = ask(question, 80)
        assert not answer.faults, f"{question}: {answer.faults}"


def test_a_size_of_400_digits_is_shown_as_it_is_printed(tmp_path: Path) -> None:
    graph = copy_of(graph_in(FLIP), tmp_path)
    path = graph / "ir_post_fusion.txt"
    digits = SIZES["400 digits"]
    path.write_text(re.sub(r"(buf0\.layout = .*?size=\[)\d+", rf"\g<1>{digits}", path.read_text()))
    answer = ask(["layouts", "buf0", str(graph), "--json"])
    (row,) = json.loads(answer.out)["rows"]
    assert row["layout"]["size"][0] == digits
    assert isinstance(row["size_bytes"], str)
    assert digits in row["size_bytes"]


def test_bytes_of_a_layout_with_40_of_the_largest_sizes(tmp_path: Path) -> None:
    """The product of many int64 is more than a float holds: a rank of 40 has 2,500 bits."""
    graph = copy_of(graph_in(FLIP), tmp_path)
    path = graph / "ir_post_fusion.txt"
    many = ", ".join(["9223372036854775807"] * 40)
    text = re.sub(r"(buf0\.layout = .*?size=\[)[^\]]*", rf"\g<1>{many}", path.read_text())
    path.write_text(re.sub(r"(buf0\.layout = .*?stride=\[)[^\]]*", rf"\g<1>{many}", text))
    for question in questions(graph):
        answer = ask(question)
        assert not answer.faults, f"{question}: {answer.faults}"
