"""The table of torch's places, and what wraps them. `tests/debugging` finds each in the installed torch."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

from inductor_probe.accuracy_checks import stages
from inductor_probe.capture import child, compilers, hooks, processes, recorders, targets
from inductor_probe.capture.torch_places import (
    ACCURACY,
    DECISION,
    OWN,
    PLACES,
    RECORD,
    REDUCE,
    TARGET,
    TOPICS,
    wrap,
    wraps_undone,
)


def test_a_place_stands_once_and_says_what_it_decides() -> None:
    assert len({str(place) for place in PLACES}) == len(PLACES)
    assert all(
        place.decides
        and set(place.topics) <= {RECORD, DECISION, TARGET, OWN, ACCURACY, REDUCE, *TOPICS}
        and place.topics
        for place in PLACES
    )


def test_every_place_that_is_recorded_is_named_in_the_hooks() -> None:
    modules = (hooks, processes, compilers, child)
    text = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in modules)
    for place in PLACES:
        if RECORD in place.topics:
            assert f'"{place.module}"' in text, place


def test_every_place_of_accuracy_is_named_where_graphs_are_seen() -> None:
    text = Path(str(stages.__file__)).read_text(encoding="utf-8")
    for place in PLACES:
        if ACCURACY in place.topics:
            assert f'"{place.module}"' in text, place
            assert f'"{place.name}"' in text or place.name.startswith("_recursive_"), place


def test_every_place_of_a_decision_is_named_in_a_recorder() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in Path(recorders.__file__).parent.glob("*.py"))
    for place in PLACES:
        if DECISION in place.topics:
            assert f'{place.name.rpartition(".")[2]}"' in texts, place


def test_every_place_that_is_replaced_for_a_simulated_gpu_is_named_there() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in Path(targets.__file__).parent.glob("*.py"))
    for place in PLACES:
        if TARGET in place.topics:
            assert place.name.rpartition(".")[2] in texts, place


def module() -> types.ModuleType:
    class DebugContext:
        def __enter__(self) -> str:
            return "entered"

    made = types.ModuleType("torch._inductor.debug")
    made.DebugContext = DebugContext  # type: ignore[attr-defined]
    return made


def test_a_wrapped_place_calls_what_was_there_and_looks_like_it() -> None:
    debug = module()
    wrap(debug, "DebugContext.__enter__", lambda original: lambda self: f"{original(self)}, seen")
    assert debug.DebugContext().__enter__() == "entered, seen"
    assert debug.DebugContext.__enter__.__name__ == "__enter__"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("DebugFormatter.ir_post_fusion", AttributeError),  # in the table, and not in this torch
        ("DebugContext.unheard_of", AttributeError),  # not in the table
    ],
)
def test_a_place_that_is_gone_is_an_error_for_the_note(name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        wrap(module(), name, lambda original: original)


def test_a_place_that_is_no_function_any_more_is_refused() -> None:
    debug = module()
    debug.DebugContext.__enter__ = None
    with pytest.raises(TypeError, match="not a function"):
        wrap(debug, "DebugContext.__enter__", lambda original: original)


def test_compiles_before_a_reset_of_dynamo_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that took a minute to compile, and reset dynamo, was said to have compiled for 0.1 s."""
    import torch._dynamo.utils  # noqa: PLC0415 - takes seconds, and the other tests do without

    monkeypatch.setattr(processes, "_cleared_ns", [])
    with wraps_undone() as replace_imported:
        processes.see_resets(torch._dynamo.utils)
        replace_imported()
        before = processes.dynamo_counts().get("seconds", 0)
        torch._dynamo.utils.cumulative_time_spent_ns["entire_frame_compile"] += 5e9
        torch._dynamo.reset()
        torch._dynamo.utils.cumulative_time_spent_ns["entire_backward_compile"] += 2e9
        assert processes.dynamo_counts()["seconds"] == pytest.approx(before + 7)
    torch._dynamo.utils.cumulative_time_spent_ns.clear()
