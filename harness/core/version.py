"""Kafka versions, compared as numbers."""

import re

from harness.core.errors import ScenarioError

Version = tuple[int, ...]

#: KIP-103: listeners with names. Before, one listener serves clients and replication.
NAMED_LISTENERS_SINCE: Version = (0, 10, 2)
#: KIP-291: a listener of its own for the controller's requests to brokers.
CONTROL_PLANE_LISTENER_SINCE: Version = (2, 2)


def parse_version(text: str) -> Version:
    """``"3.9.2"`` as ``(3, 9, 2)``. Raises ScenarioError if it is not a version."""
    if not re.fullmatch(r"\d+(\.\d+){1,3}", text):
        raise ScenarioError(f"cluster.version: {text!r} is no Kafka version such as 4.3.1")
    return tuple(int(part) for part in text.split("."))
