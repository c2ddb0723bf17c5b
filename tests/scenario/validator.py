"""The part of JSON Schema that our schema uses; any other keyword is an error.

The package jsonschema is not a dependency (requirements.lock). Another project's validator tries the schema, too
(tests/cluster/test_ci.py), with few mistakes: the tests beside this one try thousands.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

Schema = dict[str, Any]

#: Keywords that refuse nothing.
_REFUSE_NOTHING = {"$schema", "$defs", "title", "description", "default"}
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def refusals(value: Any, schema: Schema, whole: Schema, place: str = "") -> Iterator[str]:
    """Why ``value`` does not meet ``schema``, a part of ``whole``."""
    for keyword, says in schema.items():
        if keyword not in _REFUSE_NOTHING:
            yield from _KEYWORDS[keyword](value, says, schema, whole, place)


def _fits(value: Any, schema: Schema, whole: Schema) -> bool:
    return next(refusals(value, schema, whole), None) is None


def _said(holds: Callable[[Any, Any], bool], kinds: type | tuple[type, ...] = object) -> Callable[..., Iterator[str]]:
    def check(value: Any, says: Any, _schema: Schema, _whole: Schema, place: str) -> Iterator[str]:
        if isinstance(value, kinds) and not holds(value, says):
            yield f"{place}: {value!r} is not as {says!r} says"

    return check


def _type(value: Any, says: Any, _schema: Schema, _whole: Schema, place: str) -> Iterator[str]:
    if not any(_TYPES[one](value) for one in ([says] if isinstance(says, str) else says)):
        yield f"{place}: {value!r} is no {says}"


def _reference(value: Any, says: str, _schema: Schema, whole: Schema, place: str) -> Iterator[str]:
    yield from refusals(value, whole["$defs"][says.removeprefix("#/$defs/")], whole, place)


def _properties(value: Any, says: Schema, _schema: Schema, whole: Schema, place: str) -> Iterator[str]:
    for key in says.keys() & value.keys() if isinstance(value, dict) else ():
        yield from refusals(value[key], says[key], whole, f"{place}.{key}")


def _additional(value: Any, says: Any, schema: Schema, whole: Schema, place: str) -> Iterator[str]:
    for key in value.keys() - schema.get("properties", {}).keys() if isinstance(value, dict) else ():
        if says is False:
            yield f"{place}: no key {key!r}"
        elif says is not True:
            yield from refusals(value[key], says, whole, f"{place}.{key}")


def _names(value: Any, says: Schema, _schema: Schema, whole: Schema, place: str) -> Iterator[str]:
    for key in value if isinstance(value, dict) else ():
        yield from refusals(key, says, whole, f"{place}.{key}")


def _items(value: Any, says: Schema, _schema: Schema, whole: Schema, place: str) -> Iterator[str]:
    for index, item in enumerate(value) if isinstance(value, list) else ():
        yield from refusals(item, says, whole, f"{place}.{index}")


def _some(most: int) -> Callable[..., Iterator[str]]:
    def check(value: Any, says: list[Schema], _schema: Schema, whole: Schema, place: str) -> Iterator[str]:
        if not 1 <= sum(_fits(value, one, whole) for one in says) <= most:
            yield f"{place}: {value!r} is none of its kinds, or several"

    return check


def _not(value: Any, says: Schema, _schema: Schema, whole: Schema, place: str) -> Iterator[str]:
    if _fits(value, says, whole):
        yield f"{place}: {value!r} is refused"


_KEYWORDS: dict[str, Callable[..., Iterator[str]]] = {
    "$ref": _reference,
    "type": _type,
    "const": _said(lambda value, says: value == says),
    "enum": _said(lambda value, says: any(value == one and type(value) is type(one) for one in says)),
    "pattern": _said(lambda value, says: re.search(says, value) is not None, str),
    "minimum": _said(lambda value, says: value >= says, (int, float)),
    "maximum": _said(lambda value, says: value <= says, (int, float)),
    "exclusiveMinimum": _said(lambda value, says: value > says, (int, float)),
    "exclusiveMaximum": _said(lambda value, says: value < says, (int, float)),
    "maxLength": _said(lambda value, says: len(value) <= says, str),
    "minItems": _said(lambda value, says: len(value) >= says, list),
    "required": _said(lambda value, says: set(says) <= set(value), dict),
    "properties": _properties,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "items": _items,
    "anyOf": _some(100),
    "oneOf": _some(1),
    "not": _not,
}
