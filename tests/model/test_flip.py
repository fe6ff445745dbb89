"""Decisions turned by name: their one text form, and what is said of bad ones."""

from __future__ import annotations

import pytest

from inductor_probe.errors import ProbeError
from inductor_probe.model.codec import from_json, to_json
from inductor_probe.model.flip import FLIP_KINDS, Flip, at_once, flip_of, instead, parse_flip

TEXTS = {
    "scalar op0": Flip("scalar", ("op0",)),
    "no-fuse op3,op4": Flip("no-fuse", ("op3", "op4")),
    "fuse op3_op5,op4": Flip("fuse", ("op3_op5", "op4")),
    "layout buf3=channels_last": Flip("layout", ("buf3",), "channels_last"),
    "reduction-hint INNER": Flip("reduction-hint", (), "INNER"),
    "reduction-hint buf2=INNER": Flip("reduction-hint", ("buf2",), "INNER"),
    "split 4": Flip("split", (), "4"),
    "persistent": Flip("persistent"),
    "threads op0=1": Flip("threads", ("op0",), "1"),
    "realize model__0_forward_1.0:add_3": Flip("realize", ("add_3",), graph="model__0_forward_1.0"),
    "index-dtype model__0_forward_1.0:int64": Flip("index-dtype", (), "int64", "model__0_forward_1.0"),
    "persistent model__0_forward_1.0:": Flip("persistent", graph="model__0_forward_1.0"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_and_written_the_same(text: str) -> None:
    flip = parse_flip(text)
    assert flip == TEXTS[text]
    assert str(flip) == text
    assert parse_flip(flip.option) == flip
    assert from_json(Flip, to_json(flip)) == flip


BAD = {
    "scaler op0": "no decision is turned by 'scaler'; did you mean scalar?",
    "scalar": "invalid --scalar: it takes one name; for example --scalar op0",
    "scalar op0,op1": "it takes one name",
    "scalar op0=3": "--scalar takes no value: op0=3",
    "fuse op3": "it takes two names, with a comma between; for example --fuse op3,op4",
    "fuse op3,op3": "names op3 twice",
    "fuse op3,": "it takes two names",
    "layout buf3": "it takes one name; for example --layout buf3=channels_last",
    "layout buf3=channel_last": "no value 'channel_last'; did you mean channels_last?",
    "reduction-hint inner": "no value 'inner'; there is INNER, OUTER, OUTER_TINY, DEFAULT",
    "split 0": "expected a number over 0, not '0'; for example --split buf2=4",
    "threads many": "expected a number over 0, not 'many'",
    "index-dtype int16": "no value 'int16'",
    "persistent scenarios/check.py": "it takes no name or one name; for example --persistent op2",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_wrong_is_said_with_what_to_write(text: str) -> None:
    with pytest.raises(ProbeError) as raised:
        parse_flip(text)
    assert BAD[text] in f"{raised.value.message}; {raised.value.hint}"


@pytest.mark.parametrize(
    "texts",
    [
        ("scalar op0", "vectorise op0"),
        ("fuse op3,op4", "no-fuse op4,op3"),
        ("threads op0=1", "threads op0=2"),
        ("layout buf3=channels_last", "layout buf3=contiguous"),
        ("persistent", "looped"),
    ],
)
def test_one_decision_is_not_turned_to_two_sides(texts: tuple[str, str]) -> None:
    one, other = map(parse_flip, texts)
    with pytest.raises(ProbeError, match="cannot hold at once") as raised:
        at_once([one, other])
    assert raised.value.message.startswith(f"{one.option} and {other.option}")
    assert instead([one], [other]) == (other,)


def test_flips_of_several_questions_hold_at_once() -> None:
    flips = tuple(map(parse_flip, ("split buf2=4", "reduction-hint buf2=INNER", "scalar op0", "scalar op1")))
    assert at_once((*flips, flips[0])) == flips
    assert instead(flips[:2], flips[1:]) == flips


def test_a_fused_node_is_all_of_its_nodes() -> None:
    assert flip_of("no-fuse", "op3_op5,buf_1").nodes == ({"op3", "op5"}, {"buf_1"})


def test_every_kind_says_which_decision_it_turns() -> None:
    assert {Flip(kind).decides for kind in FLIP_KINDS} == {
        "vectorisation", "fusion", "layout", "realization", "reduction", "index-width", "threads",
    }  # fmt: skip
