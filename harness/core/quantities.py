"""Numbers, durations, shares and rates as people write them: ``250ms``, ``2%``, ``10kbit``. Parsed once, kept as
numbers."""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, WithJsonSchema

from harness.core.printable import shown

#: How each is written, as a regular expression: for editors.
DURATION_PATTERN: Final = r"^ *[0-9]+(\.[0-9]+)? ?(us|ms|s|m|h) *$"
SHARE_PATTERN: Final = r"^ *[0-9]+(\.[0-9]+)? ?% *$"
#: The same for those that may not be 0: one of the digits is another.
POSITIVE_DURATION_PATTERN: Final = DURATION_PATTERN.replace("^ *", "^ *(?=[0-9.]*[1-9])")
POSITIVE_SHARE_PATTERN: Final = SHARE_PATTERN.replace("^ *", "^ *(?=[0-9.]*[1-9])")
RATE_PATTERN: Final = r"^ *[0-9]+(\.[0-9]+)? ?(bit|kbit|mbit|gbit) *$"

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PERCENT = {"%": 0.01}
_BITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_DURATION = "a duration such as 250ms, 10s or 2m"
_SHARE = "a share such as 2%"
#: What to write for a rate, for the ``Misfit`` of a field that takes only some.
A_RATE: Final = "a rate such as 10kbit or 1mbit"

#: A validation context: a person wrote the data, and may mean another unit than the one that we store.
WRITTEN: Final = {"written": True}


class Misfit(ValueError):  # noqa: N818 - reads as the sentence it is
    """A value is not a quantity. ``wanted``: what to write instead."""

    def __init__(self, says: str, wanted: str) -> None:
        super().__init__(says)
        self.wanted = wanted


def parse_duration(value: object) -> float:
    """``"250ms"``, ``"10s"``, ``"1.5m"`` in seconds; a number is seconds. Raises ValueError."""
    return _parse(value, _SECONDS, _DURATION)


def written_duration(value: object) -> float:
    """``parse_duration`` of what a person wrote. It must have a unit, because names of Kafka settings often end in
    ``.ms``."""
    _refuse_without_unit(value, "ms", "s", _DURATION)
    return parse_duration(value)


def _duration(value: object, info: ValidationInfo) -> float:
    return written_duration(value) if info.context == WRITTEN else parse_duration(value)


def parse_share(value: object) -> float:
    """``"2%"``, or the fraction 0.02, as 0.02. Raises ValueError for what is not from 0% to 100%."""
    share = _parse(value, _PERCENT, _SHARE)
    if share > 1:
        raise Misfit(f"{shown(value)} is more than 100%", _SHARE)
    return share


def written_share(value: object) -> float:
    """``parse_share`` of what a person wrote: a number from 1 on may mean percent."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value < math.inf:
        raise Misfit(f"{shown(value)} is not {_SHARE}: write {value:g}%", _SHARE)
    return parse_share(value)


def _share(value: object, info: ValidationInfo) -> float:
    return written_share(value) if info.context == WRITTEN else parse_share(value)


def parse_rate(value: object) -> int:
    """``"10kbit"``, ``"1mbit"`` in bits per second; a number is bits per second. Raises ValueError."""
    return round(_parse(value, _BITS, A_RATE))


def written_rate(value: object) -> int:
    """``parse_rate`` of what a person wrote. It must have a unit, because other tools mean kilobits or bytes."""
    _refuse_without_unit(value, "kbit", "mbit", A_RATE)
    return parse_rate(value)


def _rate(value: object, info: ValidationInfo) -> int:
    return written_rate(value) if info.context == WRITTEN else parse_rate(value)


def _refuse_without_unit(value: object, one: str, other: str, wanted: str) -> None:
    finite = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    if finite or (isinstance(value, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", value.strip())):
        number = shown(value).strip("' ")
        raise Misfit(f"{shown(value)} has no unit: write {number}{one} or {number}{other}", wanted)


def _parse(value: object, units: Mapping[str, float], wanted: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and math.isfinite(value):
        return float(value)
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([a-zA-Z%]+)", value.strip(" ")) if isinstance(value, str) else None
    if found is None or found[2] not in units:
        lower = ": units are in lower case" if found is not None and found[2].lower() in units else ""
        raise Misfit(f"{shown(value)} is not {wanted}{lower}", wanted)
    return float(found[1]) * units[found[2]]


def _digits(number: float) -> str:
    """A number without an exponent."""
    return f"{Decimal(f'{number:.10g}'):f}"


def duration_text(seconds: float) -> str:
    """``"5s"``, ``"250ms"``: what ``parse_duration`` reads back."""
    return f"{_digits(seconds * 1000)}ms" if 0 < seconds < 1 else f"{_digits(seconds)}s"


def share_text(share: float) -> str:
    """``"2%"``: what ``parse_share`` reads back."""
    return f"{_digits(share * 100)}%"


def rate_text(rate: int) -> str:
    """``"10kbit"``: what ``parse_rate`` reads back."""
    unit = next(unit for unit in reversed(_BITS) if rate % _BITS[unit] == 0)
    return f"{rate // int(_BITS[unit])}{unit}"


def _number(value: object) -> object:
    """Refuse text and truth, which pydantic would take for a number: ``'2'``, ``yes``."""
    if isinstance(value, bool | str):
        quoted = isinstance(value, str) and re.fullmatch(r"[ 0-9.+-]+", value)
        wanted = "a whole number without quotes" if quoted else "a whole number"
        raise Misfit(f"should be {wanted}, not {shown(value)}", wanted)
    return value


def _truth(value: object) -> object:
    """Refuse text and numbers, which pydantic would take for true or false."""
    if not isinstance(value, bool):
        wanted = "true or false without quotes" if isinstance(value, str) else "true or false"
        raise Misfit(f"should be {wanted}, not {shown(value)}", wanted)
    return value


#: Fields of a file: a number, one from 1 on, and true or false, none of them in quotes.
Whole = Annotated[int, BeforeValidator(_number)]
Positive = Annotated[int, Field(ge=1), BeforeValidator(_number)]
Flag = Annotated[bool, BeforeValidator(_truth)]

#: Fields of a scenario: written with a unit, kept as seconds, as a fraction of 1, as bits per second.
Duration = Annotated[
    float,
    BeforeValidator(_duration),
    PlainSerializer(duration_text, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN}),
]
PositiveDuration = Annotated[
    float,
    BeforeValidator(_duration),
    Field(gt=0),
    PlainSerializer(duration_text, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": POSITIVE_DURATION_PATTERN}),
]
Share = Annotated[
    float,
    BeforeValidator(_share),
    PlainSerializer(share_text, when_used="json"),
    WithJsonSchema({"type": ["string", "number"], "pattern": SHARE_PATTERN, "minimum": 0, "exclusiveMaximum": 1}),
]
PositiveShare = Annotated[
    float,
    BeforeValidator(_share),
    Field(gt=0),
    PlainSerializer(share_text, when_used="json"),
    WithJsonSchema(
        {
            "type": ["string", "number"],
            "pattern": POSITIVE_SHARE_PATTERN,
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
        }
    ),
]
Rate = Annotated[
    int,
    BeforeValidator(_rate),
    PlainSerializer(rate_text, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": RATE_PATTERN}),
]
