"""One codec between records and JSON, both ways, made from the annotations of the records.

A record is a dataclass. Its JSON is an object whose keys are the names of its fields, so that whoever knows
the record knows the JSON. The annotation of a field says how its value is written and read:

    annotation                        JSON
    int, str, bool, None              the same
    float                             a number; "inf", "-inf" or "nan" where it is not finite
    Path                              its text
    Literal["a", "b"], an Enum        the value
    tuple[X, ...]                     a list
    tuple[X, Y]                       a list of that length
    tuple[tuple[str, X], ...]         an object: the names with their values, in order; "x#2" for a second "x"
    Mapping[str, X]                   an object
    a record                          an object
    a union with several records      an object with the key "record": the name of the class

For example, with `class Loop: variable: str; size: int | str` and `class Nest: loops: tuple[Loop, ...]`,
`to_json(Nest((Loop("x0", 8),)))` is `{"loops": [{"variable": "x0", "size": 8}]}`, and `from_json(Nest, ...)`
makes an equal record of that. `json_schema(Nest)` describes it as a JSON Schema (draft 2020-12).

Two things can be said of a record beside its annotations. A property below `@written` is computed, and
written like a field; it is not read. A field whose metadata is `UNWRITTEN` has no key and is not read, so it
has a default; one with `AS_TEXT` is written as its `str`, and a record with one is not read.

Reading is strict about what is there and lenient about what is not known: a value of another type is a
`ShapeError` that names its key, a key that no field has is ignored (a later version wrote it), and a key
that is missing takes the field's default if it has one. An integer has 64 bits and a number is finite, so
that what was read can be computed with.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

Json: typing.TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Record = TypeVar("Record")

RECORD_KEY = "record"
"""Names the class of an object where a field may hold one of several."""
UNWRITTEN: Mapping[str, str] = types.MappingProxyType({"json": "unwritten"})
"""Metadata of a field that has no key: text of many lines that few ask for."""
AS_TEXT: Mapping[str, str] = types.MappingProxyType({"json": "text"})
"""Metadata of a field that is written as its `str`: a tree that people know as an expression."""
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_SCALARS: Mapping[Any, Mapping[str, Any]] = {
    int: {"type": "integer"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    types.NoneType: {"type": "null"},
    float: {"anyOf": [{"type": "number"}, {"enum": list(_NOT_FINITE)}]},
    Path: {"type": "string"},
    Any: {},
}
"""The schemas of what has no parts."""


_LARGEST_INTEGER = (1 << 63) - 1
_Method = TypeVar("_Method", bound=Callable[..., Any])


class ShapeError(ValueError):
    """A JSON value is not what the field of a record says; the message names the key."""


def written(method: _Method) -> _Method:
    """Mark what computes a property, below `@property`: the codec writes its value like that of a field."""
    method.__written__ = True  # type: ignore[attr-defined] # a function takes any attribute
    return method


def to_json(value: Any) -> Json:
    """Return a record, or a tuple, list or mapping of records, as what `json.dumps` takes.

    Raises:
        TypeError: a value that has no JSON form.
    """
    return _plain(value)


def from_json(kind: type[Record], data: Any, where: str = "") -> Record:
    """Return the record of the class `kind` that `data` stands for.

    Args:
        kind: a dataclass.
        data: as `json.loads` returned it. where: the key that `data` was at, for messages.

    Raises:
        ShapeError: a key is missing that has no default, or a value is not of its type.
    """
    record: Record = _read(kind, data, where)
    return record


def json_schema(kind: Any) -> dict[str, Any]:
    """Return a JSON Schema of what `to_json` writes for the annotation `kind`; records are in its `$defs`."""
    definitions: dict[str, Any] = {}
    schema = _schema(kind, definitions)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "$defs": definitions}


@dataclasses.dataclass(frozen=True, slots=True)
class _Key:
    """A key of a record: of a field, or of a property below `@written`, which is not read."""

    name: str
    kind: Any
    is_text: bool = False
    is_read: bool = True
    is_needed: bool = False
    description: str | None = None


@cache
def _keys(kind: type) -> tuple[_Key, ...]:
    """Return the keys of a record: its fields, then its properties below `@written`."""
    hints = typing.get_type_hints(kind)
    keys = {}
    for field in dataclasses.fields(kind):
        form = field.metadata.get("json")
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if form != "unwritten":
            is_text = form == "text"
            keys[field.name] = _Key(field.name, hints[field.name], is_text, not is_text, needed)
    for parent in reversed(kind.__mro__):
        for name, value in vars(parent).items():
            if isinstance(value, property) and hasattr(value.fget, "__written__"):
                hint = typing.get_type_hints(value.fget)["return"]
                keys[name] = _Key(name, hint, is_read=False, description=inspect.getdoc(value))
    return tuple(keys.values())


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _parts(kind: Any) -> tuple[Any, ...] | None:
    """Return the members of a union; None for what is none."""
    return typing.get_args(kind) if typing.get_origin(kind) in (types.UnionType, typing.Union) else None


def _is_pairs(kind: Any) -> bool:
    """Whether `kind` is `tuple[tuple[str, X], ...]`."""
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is not tuple or len(arguments) != 2 or arguments[1] is not Ellipsis:
        return False
    inner = typing.get_args(arguments[0])
    is_pair = len(inner) == 2 and inner[0] is str and inner[1] is not Ellipsis
    return typing.get_origin(arguments[0]) is tuple and is_pair


# Writing. A function is made once for each annotation that is met: deciding by the annotation for each value
# anew took three times as long on the layouts of a training graph.


@cache
def _writer(kind: Any) -> Callable[[Any], Json]:
    if parts := _parts(kind):
        return _union_writer(parts)
    if _is_record(kind):
        return _record_writer(kind)
    if _is_pairs(kind):
        return _pairs_writer(typing.get_args(typing.get_args(kind)[0])[1])
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _list_writer(arguments[0])
    if origin is tuple:
        return lambda values: [_writer(part)(value) for part, value in zip(arguments, values, strict=True)]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return lambda values: {str(key): _writer(arguments[1])(value) for key, value in values.items()}
    return _plain


@cache
def _record_writer(kind: type) -> Callable[[Any], dict[str, Json]]:
    writers: list[tuple[str, Callable[[Any], Json]]] = []

    def write(record: Any) -> dict[str, Json]:
        if not writers:  # not before: a record may hold records of its own class
            writers.extend((key.name, _text if key.is_text else _writer(key.kind)) for key in _keys(kind))
        return {name: writer(getattr(record, name)) for name, writer in writers}

    return write


def _union_writer(parts: tuple[Any, ...]) -> Callable[[Any], Json]:
    records = [part for part in parts if _is_record(part)]
    others = [part for part in parts if typing.get_origin(part) is tuple or _is_mapping(part)]

    def write(value: Any) -> Json:
        for part in records:
            if isinstance(value, part):
                tag: dict[str, Json] = {RECORD_KEY: type(value).__name__} if len(records) > 1 else {}
                return tag | _record_writer(part)(value)
        if isinstance(value, (tuple, Mapping)) and others:
            return _writer(others[0])(value)
        return _plain(value)

    return write


def _pairs_writer(kind: Any) -> Callable[[Any], Json]:
    def write(pairs: Any) -> Json:
        values: dict[str, Json] = {}
        for name, value in pairs:
            key, number = name, 1
            while key in values:  # a damaged dump: nothing of it is left out
                number += 1
                key = f"{name}#{number}"
            values[key] = _writer(kind)(value)
        return values

    return write


def _text(value: Any) -> Json:
    return None if value is None else str(value)


def _list_writer(kind: Any) -> Callable[[Any], Json]:
    return lambda values: [_writer(kind)(value) for value in values]


def _plain(value: Any) -> Json:
    """Write what says by itself what it is."""
    match value:
        case None | bool() | int() | str() if not isinstance(value, enum.Enum):
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case enum.Enum():
            return _plain(value.value)
        case Path():
            return str(value)
        case Mapping():
            return {str(key): to_json(item) for key, item in value.items()}
        case tuple() | list() | frozenset():
            return [to_json(item) for item in value]
    kind: Any = type(value)
    if _is_record(kind):
        return _record_writer(kind)(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _is_mapping(kind: Any) -> bool:
    origin = typing.get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


# Reading.


def _read(kind: Any, data: Any, where: str) -> Any:
    """Return `data` as a value of the annotation `kind`."""
    if parts := _parts(kind):
        return _read_union(parts, data, where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        if not any(type(data) is type(value) and data == value for value in arguments):
            raise _wrong(where, data, f"one of {', '.join(map(repr, arguments))}")
        return data
    if _is_pairs(kind):
        value = typing.get_args(arguments[0])[1]
        return tuple((name, _read(value, item, f"{where}.{name}")) for name, item in _object(data, where))
    if origin is tuple:
        return _read_tuple(arguments, data, where)
    if _is_mapping(kind):
        return {name: _read(arguments[1], item, f"{where}.{name}") for name, item in _object(data, where)}
    if _is_record(kind):
        return _read_record(kind, data, where)
    return _read_scalar(kind, data, where)


def _read_record(kind: type, data: Any, where: str) -> Any:
    values = dict(_object(data, where))
    read = {}
    for key in _keys(kind):
        place = f"{where}.{key.name}".lstrip(".")
        if key.is_read and key.name in values:
            read[key.name] = _read(key.kind, values[key.name], place)
        elif key.is_text:
            raise TypeError(f"{kind.__name__}.{key.name} is written as text, and not read")
        elif key.is_needed:
            raise ShapeError(f"{place} is missing")
    try:
        return kind(**read)
    except ValueError as error:  # what its `__post_init__` holds against the values
        raise ShapeError(f"{where or 'the value'}: {error}") from error


def _read_union(parts: tuple[Any, ...], data: Any, where: str) -> Any:
    """Read the one member that `data` can be: by its JSON type, and records by their class name."""
    if data is None and types.NoneType in parts:
        return None
    records = {part.__name__: part for part in parts if _is_record(part)}
    if isinstance(data, Mapping) and records:
        if len(records) == 1:
            return _read(next(iter(records.values())), data, where)
        name = data.get(RECORD_KEY)
        if name not in records:
            raise _wrong(f"{where}.{RECORD_KEY}".lstrip("."), name, f"one of {', '.join(records)}")
        return _read(records[name], data, where)
    problem: ShapeError | None = None
    for part in parts:
        if part is types.NoneType or _is_record(part):
            continue
        try:
            return _read(part, data, where)
        except ShapeError as error:
            problem = problem or error
    raise problem or _wrong(where, data, "an object")


def _read_tuple(arguments: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise _wrong(where, data, "a list")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_read(arguments[0], item, f"{where}[{at}]") for at, item in enumerate(data))
    if len(data) != len(arguments):
        raise ShapeError(f"{where or 'the value'} has {len(data)} items, not {len(arguments)}")
    pairs = zip(arguments, data, strict=True)
    return tuple(_read(part, item, f"{where}[{at}]") for at, (part, item) in enumerate(pairs))


def _read_scalar(kind: Any, data: Any, where: str) -> Any:
    if kind is Any:
        return data
    if kind is Path and isinstance(data, str) and "\0" not in data:
        return Path(data)
    if kind is float and type(data) is int and abs(data) <= _LARGEST_INTEGER:
        return float(data)
    if kind is int and type(data) is int and abs(data) > _LARGEST_INTEGER:
        raise ShapeError(f"{where or 'the value'} is not between -(2**63 - 1) and 2**63 - 1")
    if kind is float and isinstance(data, float) and not math.isfinite(data):
        raise _wrong(where, data, "a finite number")
    if kind is float and isinstance(data, str) and data in _NOT_FINITE:
        return _NOT_FINITE[data]
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        if data in (values := [member.value for member in kind]):
            return kind(data)
        raise _wrong(where, data, f"one of {', '.join(map(repr, values))}")
    if type(data) is not kind:  # `isinstance` would take True for an int
        raise _wrong(where, data, {Path: "a path"}.get(kind) or _words(kind))
    return data


def _object(data: Any, where: str) -> typing.ItemsView[str, Any]:
    if not isinstance(data, Mapping):
        raise _wrong(where, data, "an object")
    return data.items()


def _wrong(where: str, data: Any, wanted: str) -> ShapeError:
    text = repr(data) if isinstance(data, (str, int, float, types.NoneType)) else _words(type(data))
    text = text if len(text) <= 80 else f"{text[:77]}..."
    return ShapeError(f"{where or 'the value'} is {text}, not {wanted}")


def _words(kind: Any) -> str:
    words = {
        dict: "an object",
        list: "a list",
        int: "an integer",
        float: "a number",
        str: "a string",
        bool: "true or false",
    }
    return words.get(kind) or str(getattr(kind, "__name__", kind))


# The schema.


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if kind in _SCALARS:
        return dict(_SCALARS[kind])
    if parts := _parts(kind):
        return _union_schema(parts, definitions)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    if _is_pairs(kind):
        value = typing.get_args(arguments[0])[1]
        return {"type": "object", "additionalProperties": _schema(value, definitions)}
    if _is_mapping(kind):
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is tuple:
        items = [_schema(part, definitions) for part in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if _is_record(kind):
        return _record_schema(kind, definitions)
    raise TypeError(f"{kind} has no JSON form")


def _record_schema(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    described = f"{kind.__module__}.{name}"
    if name not in definitions:
        definitions[name] = {"$comment": described}  # before its fields: one may hold its own class
        properties = {key.name: _key_schema(key, definitions) for key in _keys(kind)}
        definitions[name] = {
            "$comment": described,
            "description": inspect.getdoc(kind) or "",
            "type": "object",
            "properties": properties,
            "required": list(properties),
        }
    if definitions[name]["$comment"] != described:
        raise TypeError(f"two records are called {name}: {definitions[name]['$comment']} and {described}")
    return {"$ref": f"#/$defs/{name}"}


def _key_schema(key: _Key, definitions: dict[str, Any]) -> dict[str, Any]:
    if key.is_text:
        return {"type": ["string", "null"] if types.NoneType in (_parts(key.kind) or ()) else "string"}
    schema = _schema(key.kind, definitions)
    return {**schema, "description": key.description} if key.description else schema


def _union_schema(parts: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    records = [part for part in parts if _is_record(part)]
    if len(records) > 1 and any(key.name == RECORD_KEY for part in records for key in _keys(part)):
        raise TypeError(
            f"{RECORD_KEY} names the class of a record, so none of {records} can have such a field"
        )
    schemas = []
    for part in parts:
        schema = _schema(part, definitions)
        if len(records) > 1 and part in records:
            tag = {"properties": {RECORD_KEY: {"const": part.__name__}}, "required": [RECORD_KEY]}
            schema = {"allOf": [schema, tag]}
        schemas.append(schema)
    return {"anyOf": schemas}
