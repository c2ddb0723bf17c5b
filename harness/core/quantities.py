"""Durations, shares and rates as people write them: ``250ms``, ``2%``, ``10kbit``. Parsed once, kept as numbers."""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo, WithJsonSchema

#: How each is written, as a regular expression: for editors.
DURATION_PATTERN: Final = r"^ *\d+(\.\d+)? ?(us|ms|s|m|h) *$"
SHARE_PATTERN: Final = r"^ *\d+(\.\d+)? ?% *$"
RATE_PATTERN: Final = r"^ *\d+(\.\d+)? ?(bit|kbit|mbit|gbit) *$"

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PERCENT = {"%": 0.01}
_BITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


#: A validation context: a person wrote the data, and may mean another unit than the one that we store.
WRITTEN: Final = {"written": True}


def parse_duration(value: object) -> float:
    """``"250ms"``, ``"10s"``, ``"1.5m"`` in seconds; a number is seconds. Raises ValueError."""
    return _parse(value, _SECONDS, "a duration such as 250ms, 10s or 2m")


def written_duration(value: object) -> float:
    """``parse_duration`` of what a person wrote. It must have a unit, because names of Kafka settings often end in
    ``.ms``."""
    number = re.fullmatch(r"\d+(\.\d+)?", value.strip()) if isinstance(value, str) else isinstance(value, int | float)
    if number and not isinstance(value, bool):
        raise ValueError(f"{value!r} has no unit: write {value}ms or {value}s")
    return parse_duration(value)


def _duration(value: object, info: ValidationInfo) -> float:
    return written_duration(value) if info.context == WRITTEN else parse_duration(value)


def parse_share(value: object) -> float:
    """``"2%"``, or the fraction 0.02, as 0.02. Raises ValueError for what is not from 0% to 100%."""
    wanted = "a share such as 2%"
    if isinstance(value, int):
        raise ValueError(f"{value!r} is not {wanted}: write {value}%")
    share = _parse(value, _PERCENT, wanted)
    if share > 1:
        raise ValueError(f"{value!r} is more than 100%")
    return share


def parse_rate(value: object) -> int:
    """``"10kbit"``, ``"1mbit"`` in bits per second; a bare number is bits per second. Raises ValueError below 8bit."""
    rate = round(_parse(value, _BITS, "a rate such as 10kbit or 1mbit"))
    if rate < 8:
        raise ValueError(f"{value!r} lets nothing through; to cut traffic use `partition` or `isolate`")
    return rate


def _parse(value: object, units: Mapping[str, float], wanted: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and math.isfinite(value):
        return float(value)
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-z%]+)", value.strip().lower()) if isinstance(value, str) else None
    if found is None or found[2] not in units:
        raise ValueError(f"{value!r} is not {wanted}")
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


#: Fields of a scenario: written with a unit, kept as seconds, as a fraction of 1, as bits per second.
Duration = Annotated[
    float,
    BeforeValidator(_duration),
    PlainSerializer(duration_text, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN}),
]
Share = Annotated[
    float,
    BeforeValidator(parse_share),
    PlainSerializer(share_text, when_used="json"),
    WithJsonSchema({"type": ["string", "number"], "pattern": SHARE_PATTERN}),
]
Rate = Annotated[
    int,
    BeforeValidator(parse_rate),
    PlainSerializer(rate_text, when_used="json"),
    WithJsonSchema({"type": ["string", "integer"], "pattern": RATE_PATTERN}),
]
