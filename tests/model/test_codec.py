"""Records to JSON and back: by examples of each annotation, and for every record class of `model`."""

from __future__ import annotations

import functools
import importlib
import json
import math
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

import inductor_probe.model
from inductor_probe.model.bench import BenchSettings
from inductor_probe.model.code import CppFacts
from inductor_probe.model.codec import (
    AS_TEXT,
    UNWRITTEN,
    Between,
    ShapeError,
    from_json,
    json_schema,
    to_json,
    written,
)
from inductor_probe.model.ir import BufferLayout
from inductor_probe.model.manifest import Manifest
from inductor_probe.model.span import Problem, Span
from tests.schemas import check_schema


class Leaf(Struct, frozen=True):
    name: str
    size: int | str = 0


class Other(Struct, frozen=True):
    name: str


class Tree(Struct, frozen=True):
    child: Tree | None = None
    either: Leaf | Other | None = None
    pairs: tuple[tuple[str, float], ...] = ()
    fixed: tuple[int, str] = (0, "")
    groups: tuple[tuple[str, ...], ...] = ()
    table: Mapping[str, Leaf] = MappingProxyType({})
    path: Path = Path("a")
    kind: Literal["a", "b"] = "a"


WRITTEN = (BenchSettings, BufferLayout, CppFacts, Manifest, Problem, Tree)
"""Records that go round: small ones, one of a file that is read back, and one with trees and unions."""

EXAMPLE = Tree(
    child=Tree(kind="b"),
    either=Other("x"),
    pairs=(("y", math.inf), ("x", 1.5)),
    fixed=(1, "z"),
    groups=(("op0", "op1"), ("op2", "op3")),
    table={"k": Leaf("l", "s77*2")},
)


def test_keys_are_field_names_and_unions_of_records_name_the_class() -> None:
    assert to_json(EXAMPLE) == {
        "child": {**to_json(Tree()), "kind": "b"},  # type: ignore[dict-item]
        "either": {"record": "Other", "name": "x"},
        "pairs": {"y": "inf", "x": 1.5},
        "fixed": [1, "z"],
        "groups": [["op0", "op1"], ["op2", "op3"]],
        "table": {"k": {"name": "l", "size": "s77*2"}},
        "path": "a",
        "kind": "a",
    }


def test_what_was_written_is_read_back_equal() -> None:
    assert from_json(Tree, json.loads(json.dumps(to_json(EXAMPLE), allow_nan=False))) == EXAMPLE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "the value is a list, not an object"),
        ({"kind": "c"}, "kind is 'c', not one of 'a', 'b'"),
        ({"either": {"name": "x"}}, "either.record is None, not one of Leaf, Other"),
        ({"either": {"record": "Leaf"}}, "either.name is missing"),
        ({"either": {"record": "Leaf", "name": True}}, "either.name is True, not a string"),
        ({"either": {"record": "Leaf", "name": "n", "size": 1.5}}, "either.size is 1.5, not an integer"),
        ({"pairs": {"x": "1"}}, "pairs.x is '1', not a number"),
        ({"pairs": [["x", 1]]}, "pairs is a list, not an object"),
        ({"fixed": [1]}, "fixed has 1 items, not 2"),
        ({"groups": [["a", 1]]}, "groups[0][1] is 1, not a string"),
        ({"table": {"k": {"name": 1}}}, "table.k.name is 1, not a string"),
        ({"path": "a\0b"}, "path is 'a\\x00b', not a path"),
        ({"child": {"child": {"kind": 3}}}, "child.child.kind is 3, not one of 'a', 'b'"),
        ({"fixed": ["x" * 200, ""]}, f"fixed[0] is '{'x' * 76}..., not an integer"),
    ],
)
def test_a_wrong_value_is_told_by_its_key(data: Any, message: str) -> None:
    with pytest.raises(ShapeError) as error:
        from_json(Tree, data)
    assert str(error.value) == message


def test_keys_of_later_versions_are_ignored_and_defaults_fill_in() -> None:
    assert from_json(Leaf, {"name": "x", "colour": "green"}) == Leaf("x")


def test_the_same_name_twice_in_pairs_is_numbered_and_not_lost() -> None:
    """A damaged dump may have it; it was refused, which is no answer."""
    assert to_json(Tree(pairs=(("x", 1.0), ("x", 2.0))))["pairs"] == {"x": 1.0, "x#2": 2.0}  # type: ignore[index,call-overload]


class Row(Struct, frozen=True):
    share: Annotated[float, Between(0, 1)] | None


def test_a_number_out_of_bounds_is_refused() -> None:
    assert from_json(Row, to_json(Row(0.5))) == Row(0.5)
    assert from_json(Row, to_json(Row(None))) == Row(None)
    for share in (1.5, -1, "nan"):
        with pytest.raises(ShapeError, match="share is not between 0 and 1"):
            from_json(Row, {"share": share})
    bounds = json_schema(Row)["$defs"]["Row"]["properties"]["share"]["anyOf"][0]
    assert (bounds["minimum"], bounds["maximum"]) == (0, 1)


class Timed(Struct, frozen=True):
    """Seconds, twice as many, and what nobody reads."""

    seconds: float
    long: Annotated[str, UNWRITTEN] = ""

    @property
    @written
    def double(self) -> float:
        """Twice as many."""
        return self.seconds * 2


class Said(Struct, frozen=True):
    value: Annotated[Leaf, AS_TEXT]


def test_computed_values_are_written_and_text_of_many_lines_is_not() -> None:
    data = to_json(Timed(1.5, "long"))
    assert data == {"seconds": 1.5, "double": 3.0}
    assert from_json(Timed, data) == Timed(1.5)
    schema = json_schema(Timed)["$defs"]["Timed"]["properties"]
    assert set(schema) == {"seconds", "double"}
    assert schema["double"]["description"] == "Twice as many."


def test_a_field_as_text_is_written_and_its_record_not_read() -> None:
    assert to_json(Said(Leaf("x"))) == {"value": str(Leaf("x"))}
    with pytest.raises(TypeError, match=r"Said\.value is written as text"):
        from_json(Said, {"value": "x"})


@pytest.mark.parametrize(("key", "number"), [("size", 2**63), ("size", -(2**64)), ("size", 10**400)])
def test_an_integer_beyond_64_bits_is_refused(key: str, number: int) -> None:
    with pytest.raises(ShapeError, match="size"):
        from_json(Leaf, {"name": "x", key: number})


@pytest.mark.parametrize("number", [math.nan, math.inf, 10**400])
def test_a_number_that_is_not_finite_is_refused(number: float) -> None:
    """`json.loads` takes NaN and Infinity, which are no JSON."""
    with pytest.raises(ShapeError, match=r"pairs\.x"):
        from_json(Tree, {"pairs": {"x": number}})


def records() -> Iterator[type]:
    """Every record class of `model`, but for loop bodies as read, whose arguments nest without bound."""
    for found in pkgutil.iter_modules(inductor_probe.model.__path__):
        module = importlib.import_module(f"inductor_probe.model.{found.name}")
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Struct) and kind.__module__ == module.__name__:
                yield kind


NOT_WRITTEN = {"CompiledGraph", "Op", "Block", "LoopBody", "SchedulerNode"}


@pytest.mark.parametrize("kind", [kind for kind in records() if kind.__name__ not in NOT_WRITTEN])
def test_every_record_has_a_valid_schema(kind: type) -> None:
    check_schema(json_schema(kind))


# A record of records is large: hypothesis draws some that it cannot hold, and has no say in that.
@pytest.mark.parametrize("kind", WRITTEN)
@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_any_record_goes_round_and_fits_its_schema(kind: type[Any], data: st.DataObject) -> None:
    record = data.draw(_values(kind))
    written = to_json(record)
    text = json.dumps(written, allow_nan=False)
    assert from_json(kind, json.loads(text)) == record
    _validator(kind).validate(written)


@functools.cache
def _validator(kind: type[Any]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema(kind))


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_json_is_read_or_refused_by_key(data: st.DataObject) -> None:
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    anything = st.recursive(
        scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
    )
    good = json.loads(json.dumps(to_json(EXAMPLE)))
    key = data.draw(st.sampled_from(list(good)))
    good[key] = data.draw(anything)
    refusal = _refusal(good)
    assert refusal is None or refusal.startswith(key)


def _refusal(data: Any) -> str | None:
    try:
        from_json(Tree, data)
    except ShapeError as error:
        return str(error)
    return None


@functools.cache
def _values(kind: type) -> st.SearchStrategy[Any]:
    """Any record of a class, small: hypothesis makes it from the same annotations."""
    _register_small_values()
    return st.from_type(kind).filter(_has_unique_names)


@functools.cache
def _register_small_values() -> None:
    """Say once how small values are: each time, hypothesis forgets the strategies that it has made."""
    st.register_type_strategy(Path, st.sampled_from([Path("a"), Path("/b/c.py")]))
    st.register_type_strategy(float, st.floats(allow_nan=False, width=32))
    st.register_type_strategy(int, st.integers(-(2**63) + 1, 2**63 - 1))
    st.register_type_strategy(str, st.text(max_size=3))
    st.register_type_strategy(tuple, _short)
    st.register_type_strategy(Span, st.builds(Span, st.just(Path("f")), st.integers(1, 9), st.just(9)))


def _short(kind: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    """Tuples of two items at most where any number may be: of a record of records most were too large."""
    items = get_args(kind)
    if items[1:] == (...,):
        return st.lists(st.from_type(items[0]), max_size=2).map(tuple)
    return st.tuples(*map(st.from_type, items))


def _has_unique_names(value: Any) -> bool:
    """Pairs of names and values are written as an object: a name stands once in those that we make."""
    return "#2" not in json.dumps(to_json(value))
