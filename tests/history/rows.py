"""Rows as workers write them."""

from typing import Any

from harness.history.schema import record_id


def send(sequence: int, **fields: Any) -> dict[str, Any]:
    """A write of worker 1 that nobody answered, but for ``fields``."""
    return {
        "worker": 1,
        "incarnation": 0,
        "sequence": sequence,
        "topic": "trial",
        "partition": 0,
        "record_id": record_id(1, sequence),
        "invoked_ns": sequence,
        "outcome": "info",
        **fields,
    }


def read(offset: int, **fields: Any) -> dict[str, Any]:
    """A record of worker 1 that reader 3 was given, but for ``fields``."""
    return {
        "reader": 3,
        "incarnation": 0,
        "phase": "live",
        "topic": "trial",
        "partition": 0,
        "offset": offset,
        "record_id": record_id(1, offset),
        "intact": True,
        "read_ns": offset,
        **fields,
    }
