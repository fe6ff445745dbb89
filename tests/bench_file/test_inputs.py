from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from inductor_probe.bench_file.inputs import both_ends, make_inputs_source, parse_load_args, python_of, spread
from inductor_probe.bench_file.sections import cut
from inductor_probe.harness.inputs import Inputs
from inductor_probe.model.layouts import InputBound
from inductor_probe.model.manifest import InputFact
from tests.dumps import graph_in

PROGRAMS = "torch-2.13.0-cpu-programs"


def written(name: str, facts: tuple[InputFact, ...] = (), bounds: tuple[InputBound, ...] | None = ()) -> str:
    graph = graph_in(name)
    tail = cut((graph / "output_code.py").read_text()).tail
    return make_inputs_source(tail, (graph / "fx_graph_runnable.py").read_text(), facts, bounds)[0]


def symbols_of(source: str) -> dict[str, int]:
    """Return the size symbols that `make_inputs` binds, with their recorded values."""
    match = re.search(r"def make_inputs\(inputs(.*)\):", source)
    assert match
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", match[1])}


def made(source: str) -> Any:
    names: dict[str, Any] = {"torch": torch}
    exec(source, names)  # noqa: S102 - what the package has just written
    return lambda seed, **sizes: names["make_inputs"](Inputs(seed), **sizes)


@pytest.mark.parametrize("name", [f"{PROGRAMS}/symbolic", "torch-2.13.0-cpu/dynamic_shapes"])
def test_sizes_follow_their_symbols(name: str) -> None:
    source = written(name)
    make = made(source)
    recorded, symbol = make(0), next(iter(symbols_of(source)))
    other = make(0, **{symbol: 40})
    numbers = [value for value in other if isinstance(value, int)]
    assert 40 in numbers
    for value, again in zip(recorded, other, strict=True):
        if isinstance(value, torch.Tensor):
            dims = [40 if n == symbols_of(source)[symbol] else n for n in value.shape]
            assert list(again.shape) == dims
            assert again.is_contiguous() == value.is_contiguous()


def test_an_old_dump_names_its_sizes_as_well() -> None:
    source = written("torch-2.1.2-cpu/dynamic_shapes")
    assert symbols_of(source)
    assert made(source)(0, **dict.fromkeys(symbols_of(source), 17))


def test_integers_stay_inside_their_bounds() -> None:
    bound = InputBound("arg2_1", 3, 9, "aten.index_put")
    assert "low=3, high=9)" in written(f"{PROGRAMS}/scatters", bounds=(bound,))
    at = made(written(f"{PROGRAMS}/scatters", bounds=(bound,)))(0)[2]
    assert 3 <= at.min() <= at.max() <= 9


def test_a_mask_has_no_more_that_is_true_than_what_it_takes_from() -> None:
    text = (graph_in(f"{PROGRAMS}/scatters") / "output_code.py").read_text()
    tail = cut(re.sub(r"(arg2_1 = rand_strided\(.*dtype=)torch\.int64", r"\1torch.bool", text)).tail
    source, _ = make_inputs_source(tail, None, (), (InputBound("arg2_1", 0, 2, form="true"),))
    assert "torch.bool, 'cpu', high=2, form='true')" in source
    free, _ = make_inputs_source(tail, None, (), ())
    assert "torch.bool, 'cpu')" in free


def test_integers_that_pick_nothing_are_larger_and_of_both_signs() -> None:
    assert "low=-1000, high=1000)" in written(f"{PROGRAMS}/scatters")


@pytest.mark.parametrize("bounds", [None, (InputBound("arg2_1", lost=True),)])
def test_integers_of_which_nothing_is_known_are_small_and_that_is_said(bounds: Any) -> None:
    source = written(f"{PROGRAMS}/scatters", bounds=bounds)
    assert "low=0, high=3)" in source
    assert "arg2_1: the dump does not record its range" in source


@pytest.mark.parametrize(
    ("dtype", "value", "bounds", "limits"),
    [
        ("uint8", 0, (), "low=0, high=255"),  # an image: torch.zeros(1, 3, 64, 64, dtype=torch.uint8)
        ("int64", 1, (), "low=0, high=1"),  # a mask
        ("int64", 7, (), "low=7, high=8"),
        ("int64", 0, (InputBound("arg2_1", 0, 9, "aten.embedding"),), "low=0, high=9"),
        ("int64", 3, (InputBound("arg2_1", lost=True),), "low=3, high=3"),
        ("int64", 3, (InputBound("arg2_1", 1),), "low=3, high=3"),
    ],
)
def test_a_flip_of_equal_elements_is_not_taken_for_any_other_program(
    dtype: str, value: int, bounds: tuple[InputBound, ...], limits: str
) -> None:
    graph = graph_in(f"{PROGRAMS}/scatters")
    tail = cut(
        (graph / "output_code.py").read_text().replace("dtype=torch.int64", f"dtype=torch.{dtype}")
    ).tail
    facts = (
        InputFact("arg0_1", "tensor", None, (10, 8), (8, 1), 0, "float32", "cpu"),
        InputFact("arg1_1", "tensor", None, (4, 8), (8, 1), 0, "float32", "cpu"),
        InputFact("arg2_1", "tensor", None, (4,), (1,), 0, dtype, "cpu", value, value),
    )
    source, notes = make_inputs_source(tail, None, facts, bounds)
    assert f"{limits})" in source
    said = f"arg2_1: all its elements were {value} in the dump"
    assert (said in source + str(notes)) == (limits == "low=3, high=3")


def test_what_was_recorded_wins_over_what_is_concluded() -> None:
    facts = (
        InputFact("arg0_1", "tensor", None, (10, 8), (8, 1), 0, "float32", "cpu"),
        InputFact("arg1_1", "tensor", None, (4, 8), (8, 1), 0, "float32", "cpu"),
        InputFact("arg2_1", "tensor", None, (4,), (1,), 2, "int64", "cpu", 4, 5, "arg2_1.bin"),
    )
    source = written(f"{PROGRAMS}/scatters", facts, (InputBound("arg2_1", 3, 9),))
    assert "low=4, high=5, offset=2, file='probe_inputs/arg2_1.bin')" in source


@pytest.mark.parametrize(
    ("mean", "deviation", "keywords"),
    [
        (None, None, ""),
        (0.01, 0.9, ""),  # like a standard normal one
        (0.0, 0.0, ""),  # zeros, such as a bias that is not yet trained: anything is better for a check
        (0.0004, 0.036, ", deviation=0.036"),  # a weight
        (1.0, 0.0, ", mean=1, deviation=0.1"),  # the weight of a norm: equal values would hide a wrong index
        (0.0, 1e-7, ", deviation=0.01"),  # below the tolerance, whatever comes out would be right
        (116.0, 58.5, ", mean=116, deviation=58.5"),
    ],
)
def test_floats_are_drawn_as_they_were(mean: float | None, deviation: float | None, keywords: str) -> None:
    facts = tuple(
        InputFact(name, "tensor", None, size, stride, 0, dtype, "cpu", mean=mean, deviation=deviation)
        for name, size, stride, dtype in (
            ("arg0_1", (10, 8), (8, 1), "float32"),
            ("arg1_1", (4, 8), (8, 1), "float32"),
            ("arg2_1", (4,), (1,), "int64"),
        )
    )
    source = written(f"{PROGRAMS}/scatters", facts, ())
    assert f"(10, 8), (8, 1), torch.float32, 'cpu'{keywords})" in source


def test_gradients_that_a_backward_graph_begins_with_stay_standard_normal() -> None:
    """All others are in proportion to them: those of a mean over a batch would end below the tolerance."""
    fact = InputFact("tangents_1", "tensor", None, (4,), (1,), 0, "float32", "cpu", mean=0.0, deviation=1e-6)
    assert spread("tangents_1", fact) == []
    assert spread("primals_1", fact) == ["deviation=0.01"]


def test_a_bound_in_symbols_follows_another_size_where_a_recorded_number_would_not() -> None:
    name = f"{PROGRAMS}/symbolic"
    text = (graph_in(name) / "output_code.py").read_text()
    example = "arg4_1 = rand_strided((7, 12), (12, 1), device='cpu', dtype=torch.{})"
    tail = cut(text.replace(example.format("float32"), example.format("int64"))).tail
    runnable = (graph_in(name) / "fx_graph_runnable.py").read_text()
    fact = InputFact("arg4_1", "tensor", None, (7, 12), (12, 1), 0, "int64", "cpu", 0, 4)
    source, _ = make_inputs_source(tail, runnable, (fact,), (InputBound("arg4_1", 0, "s77 - 1"),))
    assert "low=0, high=s77 - 1)" in source
    assert made(source)(0, s77=1)[4].max() == 0


@pytest.mark.parametrize(
    ("text", "python", "value"),
    [
        ("s77", "s77", 6),
        ("s77*s27", "s77 * s27", 24),
        ("(s77//2) + 1", "s77 // 2 + 1", 4),
        ("Max(1, s77)", "max(1, s77)", 6),
        ("FloorDiv(s77, s27)", "s77 // s27", 1),
        ("CleanDiv(s77, 2) + s77/3", "s77 // 2 + s77 // 3", 5),
        ("-s77**2", "-s77 ** 2", -36),
    ],
)
def test_sizes_are_written_as_python(text: str, python: str, value: int) -> None:
    assert python_of(text, {"s77": 6, "s27": 4}) == (python, value)


@pytest.mark.parametrize(
    "text",
    ["u0", "s77.real", "__import__('os')", "s77[0]", "'a'", "s77 //", "s77//0", "2.5", "s77/4", "floor(s77)"],
)
def test_what_is_no_size_is_not_taken_into_a_program(text: str) -> None:
    assert python_of(text, {"s77": 6}) is None


def shared(numel: str, size: str, stride: str) -> str:
    """Return `arg2_1` as torch 2.13 makes it where other inputs share its memory."""
    return f"""_shared_storage_2 = rand_strided(({numel},), (1,), device='cpu', dtype=torch.float32)
    arg2_1 = torch.as_strided(_shared_storage_2, {size}, {stride})"""


@pytest.mark.parametrize(
    ("memory", "how"),
    [
        (shared("2640", "(33, 40)", "(1, 66)"), "inputs.tensor('arg2_1', (33, 40), (1, 66), torch.float32"),
        (shared("66*arg1_1", "(arg0_1, arg1_1)", "(1, 66)"), "torch.as_strided(_shared_storage_2, (arg0_1,"),
    ],
    ids=["numbers", "symbols"],
)
def test_an_input_that_shares_its_memory_is_made(memory: str, how: str) -> None:
    graph = graph_in("torch-2.13.0-cpu/dynamic_shapes")
    alone = "arg2_1 = rand_strided((33, 40), (40, 1), device='cpu', dtype=torch.float32)"
    text = (graph / "output_code.py").read_text()
    assert alone in text
    source, _ = make_inputs_source(cut(text.replace(alone, memory)).tail, None, (), ())
    assert f"arg2_1 = {how}" in source
    values = made(source)(0)
    assert (tuple(values[2].shape), values[2].stride(), values[2].dtype) == ((33, 40), (1, 66), torch.float32)


def test_storages_that_torch_saved_are_named() -> None:
    text = (
        "def load_args(reader):\n"
        "    reader.symint(4, expr='s27')  # arg0_1\n"
        "    buf0 = reader.storage('fb5d', 80, dtype_hint=torch.int64)\n"
        "    reader.tensor(buf0, (5, s27), (1, 5), dtype=torch.int64, storage_offset=3)  # arg1_1\n"
        "load_args._version = 0\n"
    )
    loaded = parse_load_args(text)
    assert loaded["arg0_1"].symbol == "s27"
    tensor = loaded["arg1_1"]
    assert (tensor.size, tensor.stride, tensor.offset, tensor.storage) == (
        ("5", "s27"),
        ("1", "5"),
        "3",
        "fb5d",
    )
    assert parse_load_args("def load_args(reader):\nload_args._version = 0\n") == {}
    assert parse_load_args(None) == {}


def test_an_input_keeps_the_offset_at_which_its_saved_bytes_begin() -> None:
    name = f"{PROGRAMS}/scatters"
    runnable = (graph_in(name) / "fx_graph_runnable.py").read_text()
    at = "reader.tensor(buf2, (4,), dtype=torch.int64, is_leaf=True)"
    assert at in runnable
    saved = runnable.replace("reader.storage(None, 32", "reader.storage('beef', 32").replace(
        at, at.replace("(4,)", "(4,), storage_offset=2")
    )
    tail = cut((graph_in(name) / "output_code.py").read_text()).tail
    source, _ = make_inputs_source(tail, saved, (), ())
    assert "offset=2, file='storages/beef')" in source


@pytest.mark.parametrize(
    ("low", "high", "dtype", "both"),
    [
        ("1", None, "int64", ["low=1", "high=998"]),  # a divisor is never zero
        (None, "-5", "int64", ["low=-1002", "high=-5"]),
        (None, "s77 - 1", "int32", ["low=0", "high=s77 - 1"]),
        ("-1000", "1000", "int8", ["low=-128", "high=127"]),
        ("5", "3", "int64", ["low=5", "high=5"]),
    ],
)
def test_both_ends_of_a_range_are_written_and_fit_the_dtype(
    low: str | None, high: str | None, dtype: str, both: list[str]
) -> None:
    assert both_ends(low, high, dtype) == both
