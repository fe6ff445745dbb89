"""Guards that failed and graph breaks, in dynamo's words: which value of the user's, and what avoids it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from inductor_probe.analysis.interruptions import checked, interruptions, recompile_of, settings_of
from inductor_probe.model.interruption import InterruptionCause
from inductor_probe.model.manifest import GraphBreak, GraphRecord, LimitHit, Manifest
from inductor_probe.report.words.interruptions import best_remedy, interruption_sentence, with_sentences
from tests.builders import manifest

_HINT = "(HINT: torch.compile considers integer attributes of the nn.Module to be static.)"
GUARDS: list[tuple[str, InterruptionCause, str, str]] = [
    ("0/0: tensor 'x' size mismatch at index 0. expected 4, actual 6", "size", "x", ""),
    ("0/0: tensor 'x' stride mismatch at index 1. expected 1, actual 2", "stride", "x", ""),
    ("0/0: tensor 'xs[0]' dtype mismatch. expected Float, actual Double", "dtype", "xs[0]", ""),
    ("0/0: tensor 'x' rank mismatch. expected 2, actual 3", "rank", "x", ""),
    ("0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0", "requires-grad", "x", ""),
    (
        "1/0: self.temperature == 0.5  # return x / self.temperature  # tmp/net.py:17 in forward",
        "number", "self.temperature", "net.py:17",
    ),
    ("1/0: scale == 2  # return x * scale  # tmp/net.py:9 in f", "integer", "scale", "net.py:9"),
    (
        f"0/2: self.steps == 2  # for _ in range(self.steps):  # net.py:11 in forward {_HINT}",
        "integer-attribute", "self.steps", "net.py:11",
    ),
    ("0/1: flags['hard'] == True  # if flags['hard']:  # n.py:13 in f", "flag", "flags['hard']", "n.py:13"),
    ("0/1: mode == 'sum'", "flag", "mode", ""),
    ("3/0: len(xs) == 2  # return sum(xs)  # net.py:33 in g", "length", "xs", "net.py:33"),
    ("3/1: ___check_obj_id(h.__code__, 140330), type=<class 'code'>  # h(x)  # n.py:3 in g",
     "object", "h", "n.py:3"),
    ("3/1: ___check_type_id(x, 94121), type=<class 'int'>", "type", "x", ""),
    ("0/3: GLOBAL_STATE changed: grad_mode", "grad-mode", "", ""),
    ("something that dynamo says from the next release on", "other", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "cause", "value", "where"), GUARDS)
def test_a_guard_says_which_value_of_the_user_changed(
    text: str, cause: InterruptionCause, value: str, where: str
) -> None:
    one = recompile_of(text)
    assert (one.cause, one.value, one.where) == (cause, value, where)
    assert "(HINT" not in one.reason
    assert interruption_sentence(one).startswith("compiled again: ")
    assert all(remedy.text for remedy in with_sentences(one).remedies)


def run(*guards: str, breaks: tuple[GraphBreak, ...] = (), limits: tuple[LimitHit, ...] = ()) -> Manifest:
    graphs = [
        GraphRecord(f"model__{number}", f"0/{number}", "recompile", (text,))
        for number, text in enumerate(guards)
    ]
    return replace(manifest(), graphs=tuple(graphs), graph_breaks=breaks, limit_hits=limits)


def test_the_same_value_is_one_however_often_it_changed() -> None:
    found = interruptions(
        run(
            "0/0: tensor 'x' size mismatch at index 0. expected 4, actual 6",
            "0/1: tensor 'x' size mismatch at index 0. expected 6, actual 7",
            "0/1: n == 3",
            breaks=(GraphBreak("Data-dependent branching: more\nlines", "/home/u/net.py:15"),) * 3,
            limits=(LimitHit("f", "/home/u/net.py:4", "recompile_limit reached"),),
        )
    )
    assert [(one.kind, one.cause, one.times) for one in found] == [
        ("graph-break", "branch", 3),
        ("recompile", "size", 2),
        ("recompile", "integer", 1),
        ("recompile-limit", "limit", 1),
    ]
    assert (
        interruption_sentence(found[0])
        == "graph break 3 times: a branch on the values of a tensor (net.py:15)"
    )
    assert found[1].graphs == ("model__0", "model__1")
    assert settings_of(found) == (("dynamo.assume_static_by_default", "False"),)


def test_a_remedy_that_was_tried_says_whether_it_helped() -> None:
    before = interruptions(run("0/0: tensor 'x' size mismatch at index 0.", "0/0: n == 3"))
    after = interruptions(run("0/0: n == 3"))
    size, integer = checked(before, after)
    assert [(remedy.code, remedy.checked) for remedy in size.remedies] == [
        ("mark-dynamic", None),
        ("dynamic", True),
    ]
    assert [remedy.checked for remedy in integer.remedies] == [False, None]
    best = best_remedy(with_sentences(size))
    assert best is not None
    assert best.text == "torch.compile(..., dynamic=True) [checked: it is gone]"
