"""``--set path=value``: override one value of a scenario, before anything is validated."""

import re
from typing import Any

import yaml

from harness.core.errors import ScenarioError
from harness.core.printable import is_text, printable
from harness.core.written import KeyPath, Written
from harness.scenario.schema import keys_at
from harness.scenario.written import may_name_files


def override(written: Written, assignment: str) -> None:
    """Put the value into ``written``. Keys may have dots in them (Kafka's names): the longest known key wins.

    The value is read as YAML. Raises ScenarioError if the assignment is not ``path=value``, or no key has this path.
    """
    path, equals, text = assignment.partition("=")
    if not equals or not path.strip():
        raise ScenarioError(f"--set {printable(assignment)}: write path=value, such as topic.min.insync.replicas=2")
    origin = printable(f"--set {path}")
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise ScenarioError(f"{origin}: {text!r} is not a YAML value: put it in quotes") from exc
    keys = _put(written.data, path.strip(), value, (), written, origin)
    if not is_text(list(keys)) or (not may_name_files(keys) and not is_text(value)):
        raise ScenarioError(f"{origin}: {printable(text)} cannot be written as UTF-8")
    written.origins = {key: where for key, where in written.origins.items() if key[: len(keys)] != keys}
    written.origins[keys] = origin


def _put(node: Any, rest: str, value: Any, keys: KeyPath, written: Written, origin: str) -> KeyPath:
    if isinstance(node, list):
        first, _, after = rest.partition(".")
        if not re.fullmatch("[0-9]{1,9}", first) or int(first) >= len(node):
            where = ".".join(map(str, keys))
            raise ScenarioError(f"{origin}: {where} has {len(node)} entries, counted from 0; {first!r} is not one")
        key: str | int = int(first)
    elif isinstance(node, dict):
        key = _key(rest, {*node, *(keys_at(keys, written.data) or ())})
        after = rest[len(key) + 1 :]
    else:
        raise ScenarioError(f"{origin}: {'.'.join(map(str, keys))} is {node!r}, it has no keys to set")
    if not after:
        node[key] = value
        return (*keys, key)
    if isinstance(node, dict) and node.get(str(key)) is None:
        node[str(key)] = {}
    return _put(node[key], after, value, (*keys, key), written, origin)


def _key(rest: str, known: set[str]) -> str:
    """The longest known key at the beginning of ``rest``; without one, all of ``rest``."""
    leading = [key for key in known if rest == key or rest.startswith(f"{key}.")]
    return max(leading, key=len, default=rest)
