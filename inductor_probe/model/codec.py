"""One codec between records and JSON, both ways, made from the annotations of the records.

A record is a `msgspec.Struct`. Its JSON is an object whose keys are the names of its fields, so that whoever
knows the record knows the JSON. The annotation of a field says how its value is written and read:

    annotation                        JSON
    int, str, bool, None              the same
    float                             a number; "inf", "-inf" or "nan" where it is not finite
    Path                              its text
    Literal["a", "b"]                 the value
    Annotated[X, Between(a, b)]       as X; a value out of bounds is not read
    tuple[X, ...]                     a list
    tuple[X, Y]                       a list of that length
    tuple[tuple[str, X], ...]         an object: the names with their values, in order; "x#2" for a second "x"
    Mapping[str, X]                   an object
    a record                          an object
    a union with several records      an object with the key "record": the name of the class

For example, with `class Loop: variable: str; size: int | str` and `class Nest: loops: tuple[Loop, ...]`,
`to_json(Nest((Loop("x0", 8),)))` is `{"loops": [{"variable": "x0", "size": 8}]}`, and `from_json(Nest, ...)`
makes an equal record of that. `json_schema(Nest)` describes it as a JSON Schema (draft 2020-12).

A record can say two more things about its JSON. A property below `@written` is computed, and written like a
field; it is not read. A field that is `Annotated[X, UNWRITTEN]` has no key and is not read, so it has a
default; one that is `Annotated[X, AS_TEXT]` is written as its `str`, and a record with one is not read.

Reading is strict about what is there and lenient about what is not known: a value of another type is a
`ShapeError` that names its key, a key that no field has is ignored (a later version wrote it), and a key
that is missing takes the field's default if it has one. An integer has 64 bits and a number is finite, so
that what was read can be computed with.
"""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct, structs

Json: typing.TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Record = TypeVar("Record")
_Reader: typing.TypeAlias = "Callable[[Any, str], Any]"
_Method = TypeVar("_Method", bound=Callable[..., Any])

RECORD_KEY = "record"
"""Names the class of an object where a field may hold one of several."""
UNWRITTEN = "unwritten"
"""Annotates a field that has no key: text of many lines that few ask for."""
AS_TEXT = "text"
"""Annotates a field that is written as its `str`: a tree that people know as an expression."""
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
_TYPE_WORDS = {dict: "an object", list: "a list", int: "an integer", float: "a number", str: "a string",
               bool: "true or false", Path: "a path"}  # fmt: skip
_LARGEST_INTEGER = (1 << 63) - 1


class ShapeError(ValueError):
    """A JSON value is not what the field of a record says; the message names the key."""


class Between(Struct, frozen=True):
    """Bounds of a number that is read, both allowed: `Annotated[float, Between(0, 1)]`."""

    low: float
    high: float


def written(method: _Method) -> _Method:
    """Mark what computes a property, below `@property`: the codec writes its value like that of a field."""
    method.__written__ = True  # type: ignore[attr-defined] # a function takes any attribute
    return method


def to_json(value: Any) -> Json:
    """Return a record, or a tuple, list or mapping of records, as what `json.dumps` takes.

    Raises:
        TypeError: a value that has no JSON form.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Path():
            return str(value)
        case Mapping():
            return {str(key): to_json(item) for key, item in value.items()}
        case tuple() | list() | frozenset():
            return [to_json(item) for item in value]
    kind: Any = type(value)
    if _form(kind).name == "record":
        return _record_writer(kind)(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def from_json(kind: type[Record], data: Any, where: str = "") -> Record:
    """Return the record of the class `kind` that `data` stands for.

    Args:
        kind: a record.
        data: as `json.loads` returned it. where: the key that `data` was at, for messages.

    Raises:
        ShapeError: a key is missing that has no default, or a value is not of its type.
    """
    record: Record = _read(kind, data, where)
    return record


def json_schema(*kinds: Any) -> dict[str, Any]:
    """Return a JSON Schema of what `to_json` writes for any of `kinds`; records are in its `$defs`."""
    definitions: dict[str, Any] = {}
    schemas = [_schema(kind, definitions) for kind in kinds]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "$defs": definitions}


class _Form(NamedTuple):
    """Which row of the table above an annotation is, and the annotations, values or bounds in it."""

    name: Literal["scalar", "choice", "bounded", "list", "tuple", "pairs", "mapping", "record", "union"]
    parts: tuple[Any, ...]


@cache
def _form(kind: Any) -> _Form:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _Form("union", arguments)
    if origin is typing.Annotated:
        return _Form("bounded", arguments)
    if origin is Literal:
        return _Form("choice", arguments)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        pair = typing.get_args(arguments[0])
        is_pair = typing.get_origin(arguments[0]) is tuple and len(pair) == 2 and pair[0] is str
        return (
            _Form("pairs", pair[1:]) if is_pair and pair[1] is not Ellipsis else _Form("list", arguments[:1])
        )
    if origin is tuple:
        return _Form("tuple", arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _Form("mapping", arguments[1:])
    is_record = isinstance(kind, type) and issubclass(kind, Struct)
    return _Form("record" if is_record else "scalar", (kind,))


def _records(parts: tuple[Any, ...]) -> dict[str, type]:
    """Return the records of a union by name."""
    return {part.__name__: part for part in parts if _form(part).name == "record"}


_Role: typing.TypeAlias = Literal["field", "text", "property", "unwritten"]


class _Key(NamedTuple):
    """A key of a record: of a field, of a field written as text, or of a property below `@written`.

    `attribute` is what Python calls it: a key `try` is the field `try_` of a struct with `rename`.
    """

    name: str
    attribute: str
    kind: Any
    role: _Role
    is_needed: bool = False
    description: str | None = None


@cache
def _keys(kind: type) -> tuple[_Key, ...]:
    """Return the keys of a record: its fields, then its properties below `@written`."""
    hints = typing.get_type_hints(kind, include_extras=True)
    keys = {}
    for field in structs.fields(kind):
        name, hint = field.name, hints[field.name]
        role: _Role = "field"
        if typing.get_origin(hint) is typing.Annotated and hint.__metadata__[0] in (UNWRITTEN, AS_TEXT):
            hint, role = hint.__origin__, hint.__metadata__[0]
        if role != UNWRITTEN:
            keys[name] = _Key(field.encode_name, name, hint, role, field.required)
    for parent in reversed(kind.__mro__):
        for name, value in vars(parent).items():
            if isinstance(value, property) and hasattr(value.fget, "__written__"):
                hint = typing.get_type_hints(value.fget)["return"]
                keys[name] = _Key(name, name, hint, "property", description=inspect.getdoc(value))
    return tuple(keys.values())


# Writing. A function is made once for each annotation that is met: deciding by the annotation for each value
# anew took three times as long on the layouts of a training graph.


@cache
def _writer(kind: Any) -> Callable[[Any], Json]:
    form, parts = _form(kind)
    match form:
        case "record":
            return _record_writer(kind)
        case "union":
            return _union_writer(parts)
        case "bounded":
            return _writer(parts[0])
        case "pairs":
            return _pairs_writer(_writer(parts[0]))
        case "list":
            write = _writer(parts[0])
            return lambda values: [write(value) for value in values]
        case "tuple":
            writers = [_writer(part) for part in parts]
            return lambda values: [write(value) for write, value in zip(writers, values, strict=True)]
        case "mapping":
            write = _writer(parts[0])
            return lambda values: {str(key): write(value) for key, value in values.items()}
    return to_json


@cache
def _record_writer(kind: type) -> Callable[[Any], dict[str, Json]]:
    writers: list[tuple[str, str, Callable[[Any], Json]]] = []

    def write(record: Any) -> dict[str, Json]:
        if not writers:  # not before: a record may hold records of its own class
            writers.extend(
                (key.name, key.attribute, _text if key.role == "text" else _writer(key.kind))
                for key in _keys(kind)
            )
        return {name: writer(getattr(record, attribute)) for name, attribute, writer in writers}

    return write


def _union_writer(parts: tuple[Any, ...]) -> Callable[[Any], Json]:
    records = _records(parts)
    others = [part for part in parts if _form(part).name in ("list", "tuple", "pairs", "mapping")]

    def write(value: Any) -> Json:
        for part in records.values():
            if isinstance(value, part):
                tag: dict[str, Json] = {RECORD_KEY: type(value).__name__} if len(records) > 1 else {}
                return tag | _record_writer(part)(value)
        if others and isinstance(value, (tuple, Mapping)):
            return _writer(others[0])(value)
        return to_json(value)

    return write


def _pairs_writer(write_value: Callable[[Any], Json]) -> Callable[[Any], Json]:
    def write(pairs: Any) -> Json:
        values: dict[str, Json] = {}
        for name, value in pairs:
            key, number = name, 1
            while key in values:  # a damaged dump: nothing of it is left out
                number += 1
                key = f"{name}#{number}"
            values[key] = write_value(value)
        return values

    return write


def _text(value: Any) -> Json:
    return None if value is None else str(value)


# Reading.


def _read(kind: Any, data: Any, where: str) -> Any:
    """Return `data` as a value of the annotation `kind`."""
    form, parts = _form(kind)
    match form:
        case "record":
            return _read_record(kind, data, where)
        case "union":
            return _read_union(parts, data, where)
        case "choice":
            return _choice_reader(parts)(data, where)
        case "bounded":
            value, bounds = _read(parts[0], data, where), parts[1]
            if not bounds.low <= value <= bounds.high:
                raise ShapeError(f"{where or 'the value'} is not between {bounds.low:g} and {bounds.high:g}")
            return value
        case "pairs":
            return tuple((key, _read(parts[0], item, f"{where}.{key}")) for key, item in _object(data, where))
        case "mapping":
            return {key: _read(parts[0], item, f"{where}.{key}") for key, item in _object(data, where)}
        case "list" | "tuple":
            if not isinstance(data, list):
                raise _wrong(where, data, "a list")
            kinds = parts * len(data) if form == "list" else parts
            if len(data) != len(kinds):
                raise ShapeError(f"{where or 'the value'} has {len(data)} items, not {len(kinds)}")
            pairs = enumerate(zip(kinds, data, strict=True))
            return tuple(_read(part, item, f"{where}[{number}]") for number, (part, item) in pairs)
    return _read_scalar(kind, data, where)


def _choice_reader(parts: tuple[Any, ...]) -> _Reader:
    choices = {(type(value), value) for value in parts}

    def read(data: Any, where: str) -> Any:
        if not isinstance(data, (str, int, float)) or (type(data), data) not in choices:
            raise _wrong(where, data, f"one of {', '.join(map(repr, parts))}")
        return data

    return read


@cache
def _readers(kind: type) -> tuple[tuple[_Key, _Reader], ...]:
    """Return what reads each key of a record: that of a choice of 200 codes is made once, not hashed anew."""
    return tuple(
        (
            key,
            _choice_reader(form.parts)
            if (form := _form(key.kind)).name == "choice"
            else partial(_read, key.kind),
        )
        for key in _keys(kind)
    )


def _read_record(kind: type, data: Any, where: str) -> Any:
    values = dict(_object(data, where))
    read = {}
    for key, read_value in _readers(kind):
        place = f"{where}.{key.name}".lstrip(".")
        if key.role == "text":
            raise TypeError(f"{kind.__name__}.{key.name} is written as text, and not read")
        if key.role == "field" and key.name in values:
            read[key.attribute] = read_value(values[key.name], place)
        elif key.is_needed:
            raise ShapeError(f"{place} is missing")
    return kind(**read)


def _read_union(parts: tuple[Any, ...], data: Any, where: str) -> Any:
    """Read the one member that `data` can be: by its JSON type, and records by their class name."""
    if data is None and types.NoneType in parts:
        return None
    records = _records(parts)
    if isinstance(data, Mapping) and records:
        name = data.get(RECORD_KEY) if len(records) > 1 else next(iter(records))
        if name not in records:
            raise _wrong(f"{where}.{RECORD_KEY}".lstrip("."), name, f"one of {', '.join(records)}")
        return _read(records[name], data, where)
    if type(data) in _read_first(parts) and data not in _NOT_FINITE:
        return _read_scalar(type(data), data, where)
    lists = [part for part in parts if _form(part).name in ("list", "tuple")]
    problem: ShapeError | None = None
    for part in lists if lists and isinstance(data, list) else parts:
        if part is not types.NoneType and part not in records.values():
            try:
                return _read(part, data, where)
            except ShapeError as error:
                problem = problem or error
    raise problem or _wrong(where, data, "an object")


@cache
def _read_first(parts: tuple[Any, ...]) -> frozenset[type]:
    """Return the types whose values are read as such, since no other member before takes them."""
    takers = {bool: (), int: (float,), str: (Path,)}
    return frozenset(
        kind
        for kind, others in takers.items()
        if kind in parts
        and all(part in (bool, int, str, float) for part in parts[: parts.index(kind)])
        and not any(other in parts[: parts.index(kind)] for other in others)
    )


def _read_scalar(kind: Any, data: Any, where: str) -> Any:
    if kind is Any:
        return data
    if kind is Path and isinstance(data, str) and "\0" not in data:
        return Path(data)
    if kind is int and type(data) is int and abs(data) > _LARGEST_INTEGER:
        raise ShapeError(f"{where or 'the value'} is not between -(2**63 - 1) and 2**63 - 1")
    if kind is float and type(data) is int and abs(data) <= _LARGEST_INTEGER:
        return float(data)
    if kind is float and isinstance(data, float) and not math.isfinite(data):
        raise _wrong(where, data, "a finite number")
    if kind is float and isinstance(data, str) and data in _NOT_FINITE:
        return _NOT_FINITE[data]
    if type(data) is not kind:  # `isinstance` would take True for an int
        raise _wrong(where, data, _type_words(kind))
    return data


def _object(data: Any, where: str) -> typing.ItemsView[str, Any]:
    if not isinstance(data, Mapping):
        raise _wrong(where, data, "an object")
    return data.items()


def _wrong(where: str, data: Any, expected: str) -> ShapeError:
    text = repr(data) if isinstance(data, (str, int, float, types.NoneType)) else _type_words(type(data))
    text = text if len(text) <= 80 else f"{text[:77]}..."
    return ShapeError(f"{where or 'the value'} is {text}, not {expected}")


def _type_words(kind: Any) -> str:
    return _TYPE_WORDS.get(kind) or str(getattr(kind, "__name__", kind))


# The schema.


def _schema(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    form, parts = _form(kind)
    match form:
        case "record":
            return _record_schema(kind, definitions)
        case "union":
            return _union_schema(parts, definitions)
        case "choice":
            return {"enum": list(parts)}
        case "bounded":
            bounds = {"minimum": parts[1].low, "maximum": parts[1].high}
            return {**_schema(parts[0], definitions), **bounds}
        case "pairs" | "mapping":
            return {"type": "object", "additionalProperties": _schema(parts[0], definitions)}
        case "list":
            return {"type": "array", "items": _schema(parts[0], definitions)}
        case "tuple":
            items = [_schema(part, definitions) for part in parts]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if kind not in _SCALARS:
        raise TypeError(f"{kind} has no JSON form")
    return dict(_SCALARS[kind])


def _record_schema(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    described = f"{kind.__module__}.{name}"
    if name not in definitions:
        definitions[name] = {"$comment": described}  # before its fields: one may hold its own class
        properties = {key.name: _key_schema(key, definitions) for key in _keys(kind)}
        definitions[name] |= {
            "description": inspect.getdoc(kind) or "",
            "type": "object",
            "properties": properties,
            "required": list(properties),
        }
    if definitions[name]["$comment"] != described:
        raise TypeError(f"two records are called {name}: {definitions[name]['$comment']} and {described}")
    return {"$ref": f"#/$defs/{name}"}


def _key_schema(key: _Key, definitions: dict[str, Any]) -> dict[str, Any]:
    if key.role == "text":
        return {"type": ["string", "null"] if types.NoneType in _form(key.kind).parts else "string"}
    schema = _schema(key.kind, definitions)
    return {**schema, "description": key.description} if key.description else schema


def _union_schema(parts: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    records = _records(parts)
    if len(records) > 1 and any(key.name == RECORD_KEY for part in records.values() for key in _keys(part)):
        raise TypeError(
            f"{RECORD_KEY} names the class of a record, so none of {[*records]} can have that field"
        )
    schemas = []
    for part in parts:
        schema = _schema(part, definitions)
        if len(records) > 1 and part in records.values():
            tag = {"properties": {RECORD_KEY: {"const": part.__name__}}, "required": [RECORD_KEY]}
            schema = {"allOf": [schema, tag]}
        schemas.append(schema)
    return {"anyOf": schemas}
