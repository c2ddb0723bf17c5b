"""Kafka versions, compared as numbers."""

import re

from harness.core.errors import ScenarioError

Version = tuple[int, ...]


def parse_version(text: str) -> Version:
    """``"3.9.2"`` as ``(3, 9, 2)``. Raises ScenarioError where it is no version."""
    if not re.fullmatch(r"\d+(\.\d+){1,3}", text):
        raise ScenarioError(f"cluster.version: {text!r} is no Kafka version such as 4.3.1")
    return tuple(int(part) for part in text.split("."))
