"""Reading an object of a JSON file: each value is of its type and in bounds, or a sentence names its key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

_Choice = TypeVar("_Choice", bound=str)
LARGEST_INTEGER = (1 << 63) - 1
"""What torch counts in is an int64; Python would take a number of any length from JSON."""


class JsonObject:
    """An object of a JSON file, and the keys that lead to it: `processes[0].comparisons[2]`.

    Every method raises ValueError with the whole path of the key where the value is something else.
    """

    def __init__(self, data: Any, path: str = "") -> None:
        if not isinstance(data, dict):
            raise ValueError(f"{path or 'it'} is {_kind(data)}, not an object")
        self._data: dict[str, Any] = data
        self._path = path

    def path(self, key: str) -> str:
        """Return the keys that lead to `key`."""
        return f"{self._path}.{key}" if self._path else key

    def has(self, key: str) -> bool:
        """Tell whether the key is there and its value is not null."""
        return self._data.get(key) is not None

    def value(self, key: str) -> Any:
        """Return whatever the key holds."""
        if key not in self._data:
            raise ValueError(f"{self.path(key)} is missing")
        return self._data[key]

    def text(self, key: str) -> str:
        """Return a string."""
        return _text(self.value(key), self.path(key))

    def choice(self, key: str, choices: tuple[_Choice, ...]) -> _Choice:
        """Return one of several strings."""
        value = self.value(key)
        if value not in choices:
            raise ValueError(f"{self.path(key)} is not {' or '.join(choices)}")
        return choices[choices.index(value)]

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self.value(key)
        if not isinstance(value, bool):
            raise ValueError(f"{self.path(key)} is {_kind(value)}, not true or false")
        return value

    def integer(self, key: str, least: int = 0) -> int:
        """Return an integer from `least` to the largest int64."""
        return _integer(self.value(key), self.path(key), least)

    def number(self, key: str, least: float, most: float) -> float:
        """Return a finite number within bounds."""
        return _number(self.value(key), self.path(key), least, most)

    def object(self, key: str) -> JsonObject:
        """Return an object."""
        return JsonObject(self.value(key), self.path(key))

    def objects(self, key: str) -> Iterator[JsonObject]:
        """Yield the objects of a list."""
        for at, item in enumerate(self._list(key)):
            yield JsonObject(item, f"{self.path(key)}[{at}]")

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        return tuple(_text(item, f"{self.path(key)}[{at}]") for at, item in enumerate(self._list(key)))

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of integers that are not negative."""
        return tuple(_integer(item, f"{self.path(key)}[{at}]", 0) for at, item in enumerate(self._list(key)))

    def numbers(self, key: str, least: float, most: float) -> tuple[float, ...]:
        """Return a list of finite numbers within bounds."""
        items = enumerate(self._list(key))
        return tuple(_number(item, f"{self.path(key)}[{at}]", least, most) for at, item in items)

    def counts(self, key: str) -> tuple[tuple[str, int], ...]:
        """Return a list of pairs of a name and a count: `[["aten.mm", 1024]]`."""
        pairs = []
        for at, item in enumerate(self._list(key)):
            place = f"{self.path(key)}[{at}]"
            if not isinstance(item, list) or len(item) != 2:
                raise ValueError(f"{place} is not a name and a count")
            pairs.append((_text(item[0], place), _integer(item[1], place, 0)))
        return tuple(pairs)

    def names(self) -> tuple[str, ...]:
        """Return the keys in their order."""
        return tuple(self._data)

    def _list(self, key: str) -> list[Any]:
        value = self.value(key)
        if not isinstance(value, list):
            raise ValueError(f"{self.path(key)} is {_kind(value)}, not a list")
        return value


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{path} is {_kind(value)}, not a string")
    return value


def _integer(value: Any, path: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{path} is {_kind(value)}, not an integer")
    if not least <= value <= LARGEST_INTEGER:
        raise ValueError(f"{path} is not between {least} and {LARGEST_INTEGER}")
    return value


def _number(value: Any, path: str, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{path} is {_kind(value)}, not a number")
    if not least <= value <= most:  # refuses NaN and infinity, and integers that no float holds
        raise ValueError(f"{path} is not between {least:g} and {most:g}")
    return float(value)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
    return "an object"
