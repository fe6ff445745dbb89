"""Functions that report which way they go: as they were but for that, and by which tests they returned."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inductor_probe.capture.branches import (
    CallPath,
    CannotWatchError,
    SeenTest,
    WatchedCopy,
    calls,
    matches,
    running,
    watch,
)

LIMIT = 3


def first_match(numbers: list[int], limit: int = LIMIT, *, strict: bool = False) -> str:
    """Say what is so of the first number that matters."""
    seen = 0
    for number in numbers:
        if number == 0:
            continue
        if limit < number <= 10 * limit and not (strict and number % 2):
            return "large"
        if number < 0 or any(number == other for other in (1, 2)):
            return "small" if number < 0 else "few"
        seen += 1
    return "none" if not numbers else "other"


def chosen(size: int, wide: bool) -> int:
    factor = 16
    is_short = size < factor and size > 0
    if is_short:
        factor = 4
    elif wide:
        factor = 32
    return factor


def returned(a: int, b: int) -> Any:
    return a > 1 and (b or a)


class Counter:
    """An object that says how often it was compared."""

    def __init__(self, value: int, seen: list[str]) -> None:
        self.value, self.seen = value, seen

    def __lt__(self, other: Counter) -> bool:
        self.seen.append(f"{self.value} < {other.value}")
        return self.value < other.value


def ordered(make: Callable[[int], Counter], a: int, b: int, c: int) -> bool:
    is_so = make(a) < make(b) < make(c)
    return is_so  # noqa: RET504 - the condition is assigned to a name


class Base:
    def is_wanted(self, size: int) -> bool:
        return size > 1


class Derived(Base):
    __limit = 5

    def is_wanted(self, size: int) -> bool:
        if size > self.__limit:
            return False
        return super().is_wanted(size)

    @classmethod
    def of_class(cls, size: int) -> str:
        if size == Derived.__limit:
            return cls.__name__
        return ""

    @staticmethod
    def plain(size: int) -> str:
        return "one" if size == 1 else "many"


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        call.count += 1  # type: ignore[attr-defined]
        return function(*args)

    call.count = 0  # type: ignore[attr-defined]
    return call


def made_with(limit: int) -> Callable[[int], str]:
    @counted
    def within(size: int) -> str:
        text = """
of several lines
"""
        if size > limit:
            return text
        return "short"

    return within


def depth(number: int) -> int:
    if number <= 0:
        return 0
    return 1 + depth(number - 1)


def evens(numbers: list[int]) -> Iterator[int]:
    for number in numbers:
        if number < 0:
            return
        yield number


def outer(size: int) -> str:
    def is_worth(size: int, limit: int) -> bool:
        if size > limit:
            return 2 * size > 10
        return True

    if is_worth(size, 3):
        return "vector"
    return "scalar"


def followed(function: Any, *args: Any, nested: tuple[str, ...] = (), **kwargs: Any) -> tuple[Any, CallPath]:
    """Return the result of a call that reports, and its path."""
    watched = watch(function, *nested)
    try:
        with calls() as made:
            result = function(*args, **kwargs)
    finally:
        watched.undo()
    return result, made[-1]


def decided(path: CallPath) -> list[tuple[str, bool, tuple[Any, ...]]]:
    return [(one.text, one.truth, one.values) for one in path.deciding()]


def test_the_tests_of_the_branch_that_returned_are_those_that_decided() -> None:
    result, path = followed(first_match, [0, 7])
    assert result == "large"
    assert decided(path) == [
        ("limit < number", True, (3, 7)),
        ("number <= 10 * limit", True, (7, 30)),
        ("strict", False, (False,)),
    ]  # fmt: skip
    lines, begin = inspect.getsourcelines(first_match)
    texts = {lines[one.line - begin].strip() for one in path.deciding()}
    assert texts == {"if limit < number <= 10 * limit and not (strict and number % 2):"}


def test_of_or_the_leg_that_held_decided_and_of_any_the_element() -> None:
    result, path = followed(first_match, [2])
    assert (result, decided(path)) == ("few", [("number < 0", False, (2, 0))])
    assert [branch[0].text for branch in path.branches()] == [
        "number < 0", "number < 0 or any((number == other for other in (1, 2)))",
    ]  # fmt: skip
    assert path.tested("number == ?") == SeenTest("number == other", path.all()[1].line, True, (2, 2))


def test_behind_all_tests_it_is_what_the_last_value_was_assigned_by() -> None:
    assert decided(followed(chosen, 8, True)[1]) == [
        ("size < factor", True, (8, 16)),
        ("size > 0", True, (8, 0)),
    ]
    assert decided(followed(chosen, 20, True)[1]) == [("wide", True, (True,))]
    assert decided(followed(chosen, 20, False)[1]) == [("wide", False, (False,))]


@pytest.mark.parametrize(("a", "b"), [(0, 0), (0, 3), (2, 0), (2, 3)])
def test_a_condition_that_is_returned_has_the_value_that_it_had(a: int, b: int) -> None:
    before = returned(a, b)
    result, path = followed(returned, a, b)
    assert result == before
    assert type(result) is type(before)
    assert decided(path)[0] == ("a > 1", a > 1, (a, 1))


@pytest.mark.parametrize("numbers", [(1, 2, 3), (2, 1, 3), (1, 3, 2)])
def test_nothing_is_evaluated_twice_or_otherwise_than_before(numbers: tuple[int, int, int]) -> None:
    seen: list[str] = []

    def make(value: int) -> Counter:
        seen.append(f"make {value}")
        return Counter(value, seen)

    expected = ordered(make, *numbers)
    before = [*seen]
    seen.clear()
    result, path = followed(ordered, make, *numbers)
    assert (result, seen) == (expected, before)
    assert path.deciding()[-1].truth is expected


def test_methods_closures_and_decorators_stay_what_they_are() -> None:
    one = Derived()
    assert followed(Derived.is_wanted, one, 3)[0] is True
    result, path = followed(Derived.is_wanted, one, 9)
    assert (result, decided(path)) == (False, [("size > self.__limit", True, (9, 5))])
    assert followed(Derived.of_class, 5)[0] == "Derived"
    assert decided(followed(Derived.plain, 1)[1]) == [("size == 1", True, (1, 1))]
    function = made_with(4)
    result, path = followed(function, 5)
    assert (result, decided(path)) == ("\nof several lines\n", [("size > limit", True, (5, 4))])
    assert function(1) == "short"
    assert function.count == 2  # type: ignore[attr-defined]


def test_calls_within_a_call_have_their_own_paths() -> None:
    result, path = followed(depth, 2)
    assert result == 2
    assert [decided(one) for one in (path, path.inner[0], path.inner[0].inner[0])] == [
        [], [], [("number <= 0", True, (0, 0))],
    ]  # fmt: skip
    result, path = followed(outer, 4, nested=("is_worth",))
    assert (result, decided(path)) == ("scalar", [])
    [inner] = path.inner
    assert inner.sites.function == "outer.is_worth"
    assert decided(inner) == [("2 * size > 10", False, (8, 10))]
    assert inner.branches()[0][0].text == "size > limit"


def is_known(sizes: list[int], limit: int) -> Any:
    return LIMITED.get(limit) if limit in LIMITED else within(sizes[0], limit)


LIMITED: dict[int, str] = {4: "four"}


def within(size: int, limit: int) -> bool:
    return size <= limit


def test_the_arguments_of_a_call_that_is_tested_or_returned_are_reported() -> None:
    result, path = followed(is_known, [7], 5)
    assert (result, decided(path)) == (False, [("within(sizes[0], limit)", False, (7, 5))])
    result, path = followed(is_known, [7], 4)
    # What is returned is no truth: it is the branch.
    assert (result, decided(path)) == ("four", [("limit in LIMITED", True, (4, "{4}"))])


def known(answer: Any) -> Any:
    return answer


def offered(sizes: list[int]) -> list[str]:
    names = ["first"]
    if known(len(sizes)):
        names.append("second")
    return names


class Setting:
    limit = 4


def test_a_list_that_is_returned_and_added_to_is_as_if_it_were_assigned() -> None:
    for sizes in ([], [5]):
        result, path = followed(offered, sizes)
        assert result == ["first", "second"][: len(sizes) + 1]
        assert decided(path) == [("known(len(sizes))", bool(sizes), (str(sizes),))]


def test_arguments_within_the_argument_of_a_call_are_reported() -> None:
    """Of `statically_known_true(Le(size, 512))` the truth of a comparison was shown, and no number."""

    def compared(size: int) -> str:
        return "few" if known(size <= 3) else "many"

    assert decided(followed(compared, 7)[1]) == [("known(size <= 3)", False, (7, 3))]


def test_a_name_that_is_tested_has_the_attribute_that_it_was_assigned() -> None:
    path = followed(capped, 9, Setting)[1]
    assert decided(path) == [("size > limit", True, (9, 4))]
    assert (path.source("limit"), path.source("size")) == ("setting.limit", "size")


def capped(size: int, setting: Any) -> str:
    limit = setting.limit
    if size > limit:
        return "above"
    return "below"


def test_a_call_that_has_not_returned_says_where_it_stands() -> None:
    seen: list[tuple[list[Any], list[list[str]]]] = []

    def look(line: int) -> str:
        path = running("stands")
        assert path is not None
        at = path.at(line)
        seen.append((decided(at), [[one.text for one in tests] for tests in at.reasons()]))
        return "looked"

    begin = inspect.getsourcelines(stands)[1]
    assert followed(stands, 3, look, begin)[0] == "looked"
    assert running("stands") is None
    assert seen == [([("size > 2", True, (3, 2))], [["size > 2"], ["size > 1"]])]


def stands(size: int, look: Callable[[int], str], begin: int) -> str:
    if size > 1:
        if size > 2:
            made = look(begin + 3)
            return made  # noqa: RET504 - a statement that is no return
        return "two"
    return "one"


def test_a_generator_and_what_raises_leave_no_call_open() -> None:
    watched = watch(evens)
    with calls() as made:
        one, other = evens([1, 2, -1]), evens([5])
        assert [next(one), next(other), *one, *other] == [1, 5, 2]
    watched.undo()
    assert sorted(str(decided(path)) for path in made) == ["[('number < 0', True, (-1, 0))]", "[]"]
    watched = watch(first_match)
    with calls() as made, pytest.raises(TypeError):
        first_match(["text"])  # type: ignore[list-item]
    watched.undo()
    assert [(path.exit, path.deciding()) for path in made] == [(None, [])]


def test_values_are_those_of_the_comparison() -> None:
    def grown(items: list[int]) -> int:
        if items == [1]:
            items += [2, 3, 4, 5, 6]
            return len(items)
        return 0

    assert decided(followed(grown, [1])[1]) == [("items == [1]", True, ("[1]", "[1]"))]


def test_undone_it_has_the_code_that_it_had() -> None:
    code = chosen.__code__
    watched = watch(chosen)
    assert chosen.__code__ is not code
    assert (chosen.__code__.co_firstlineno, chosen.__code__.co_filename) == (
        code.co_firstlineno,
        code.co_filename,
    )
    watched.undo()
    assert chosen.__code__ is code


def test_what_has_no_source_is_refused() -> None:
    with pytest.raises(CannotWatchError, match="not a Python function"):
        watch(len)
    scope: dict[str, Any] = {}
    exec("def made(x):\n    return x > 1\n", scope)  # noqa: S102 - a function without a file
    with pytest.raises(CannotWatchError, match="source of made cannot be read"):
        watch(scope["made"])
    with pytest.raises(CannotWatchError, match="is no `def`"):
        watch(lambda x: x > 1)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(-5, 40), max_size=5), st.integers(1, 5), st.booleans())
def test_it_computes_what_it_computed(numbers: list[int], limit: int, strict: bool) -> None:
    expected = first_match(numbers, limit, strict=strict)
    result, path = followed(first_match, numbers, limit, strict=strict)
    assert result == expected
    assert path.exit is not None


@pytest.mark.parametrize(
    ("text", "pattern", "is_so"),
    [
        ("op_num < 10", "op_num < ?", True),
        ("op_num < 10", "op_num <= ?", False),
        ("group[tiling_indices[0]] < tiling_factor / 4", "group[tiling_indices[0]] < ?", True),
        ("a < 10 and b", "a < ? and b", True),
        ("a < 10", "a < 10", True),
        ("a < 10 ", "a < 10", False),
    ],
)
def test_a_text_matches_with_any_literals(text: str, pattern: str, is_so: bool) -> None:
    assert matches(text, pattern) is is_so


def above(number: int) -> bool:
    """Say whether a number is above some limits."""
    least = 5 * 2**3
    if number < least:
        return False
    return number > 2 * least


def over(number: int) -> bool:
    """Say whether a number is no index."""
    return number > sys.maxsize


def test_a_watched_copy_reports_and_the_function_is_as_it_was() -> None:
    code = first_match.__code__
    copy = WatchedCopy(first_match)
    with calls() as made:
        assert copy.ask([-5]) == first_match([-5]) == "small"
    assert first_match.__code__ is code
    [path] = made
    assert path.sites is copy.sites
    assert path.deciding()[0].text == "number < 0"


def test_the_limit_in_a_test_is_a_number_or_the_value_that_stands_there() -> None:
    copy = WatchedCopy(above)
    assert copy.limit("number < ?") == 40
    assert copy.limit("number > ?") == 80
    assert WatchedCopy(over).limit("number > ?") == sys.maxsize
    assert copy.limit("number == ?") is None
    with calls() as made:
        assert not copy.ask(3)
    assert made[0].literal("2 * least") == 80
    assert made[0].literal("number") is None
