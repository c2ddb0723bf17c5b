"""A judgement as text of which every line says what it is: equal texts mean an equal verdict.json and equal rows."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

#: Of an anomaly with more rows, so many are shown; a digest stands for all of them.
SHOWN = 40


def of_verdict(text: str) -> Iterator[str]:
    """The lines for a verdict.json, given as one line: every value under its path, in the order of the file.

    Raises ValueError where the bytes of ``text`` do not follow from these lines.
    """
    tree = json.loads(text)
    if _json(tree) != text:
        raise ValueError(f"verdict.json is not written as compact JSON: {text[:80]}")
    return _of_value("", tree)


def of_rows(anomaly: Path, shown: int | None = SHOWN) -> Iterator[str]:
    """The lines for the stored records of one anomaly: how many, the columns, and the sorted rows; all of them where
    ``shown`` is None."""
    table = pq.read_table(anomaly)
    rows = sorted((list(row.values()) for row in table.to_pylist()), key=_order)
    texts = [_json(row) for row in rows]
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
    yield f"rows {anomaly.name}: {len(rows)} {digest}"
    shown = len(rows) if shown is None else shown
    if shown:
        yield f"rows {anomaly.name}: " + " ".join(f"{field.name}:{field.type}" for field in table.schema)
    yield from (f"rows {anomaly.name} {text}" for text in texts[:shown])


def _of_value(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _of_value(f"{path}.{key}" if path else key, inner)
    elif isinstance(value, list) and len(value) > 1 and _alike(value):
        yield f"{path}: {' '.join(value[0])}"
        yield from (f"{path} {_json([*inner.values()])}" for inner in value)
    elif isinstance(value, list) and any(isinstance(inner, dict | str) for inner in value):
        yield from (f"{path} {_json(inner)}" for inner in value)
    else:
        yield f"{path} = {_json(value)}"


def _alike(values: list[Any]) -> bool:
    return all(isinstance(one, dict) and one and [*one] == [*values[0]] for one in values)


def _order(value: Any) -> Any:
    if isinstance(value, list):
        return (1, [_order(inner) for inner in value])
    return (0, 0) if value is None else (1, value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
