"""``--set path=value``: override one value of a scenario, before anything is validated."""

import re
from typing import Any

import yaml

from harness.core.errors import ScenarioError
from harness.core.printable import is_text, printable
from harness.scenario.problems import KeyPath
from harness.scenario.schema import keys_at
from harness.scenario.written import Written, may_name_files


def override(written: Written, assignment: str) -> None:
    """Put the value into ``written``. Keys may have dots in them (Kafka's names): the longest known key wins.

    The value is read as YAML. Raises ScenarioError where the assignment is none, or its path leads nowhere.
    """
    path, equals, text = assignment.partition("=")
    if not equals or not path.strip():
        raise ScenarioError(f"--set {printable(assignment)}: write path=value, such as topic.min.insync.replicas=2")
    stand = printable(f"--set {path}")
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        raise ScenarioError(f"{stand}: {text!r} is no YAML value: put it in quotes") from exc
    keys = _put(written.data, path.strip(), value, (), written, stand)
    if not is_text(list(keys)) or (not may_name_files(keys) and not is_text(value)):
        raise ScenarioError(f"{stand}: {printable(text)} cannot be written as UTF-8")
    written.stands = {known: said for known, said in written.stands.items() if known[: len(keys)] != keys}
    written.stands[keys] = stand


def _put(node: Any, rest: str, value: Any, keys: KeyPath, written: Written, stand: str) -> KeyPath:
    if isinstance(node, list):
        first, _, after = rest.partition(".")
        if not re.fullmatch("[0-9]{1,9}", first) or int(first) >= len(node):
            where = ".".join(map(str, keys))
            raise ScenarioError(f"{stand}: {where} has {len(node)} entries, counted from 0; {first!r} is none of them")
        key: str | int = int(first)
    elif isinstance(node, dict):
        key = _key(rest, {*node, *(keys_at(keys, written.data) or ())})
        after = rest[len(key) + 1 :]
    else:
        raise ScenarioError(f"{stand}: {'.'.join(map(str, keys))} is {node!r}, there is nothing below it to set")
    if not after:
        node[key] = value
        return (*keys, key)
    if isinstance(node, dict) and node.get(str(key)) is None:
        node[str(key)] = {}
    return _put(node[key], after, value, (*keys, key), written, stand)


def _key(rest: str, known: set[str]) -> str:
    """The longest known key that ``rest`` begins with; all of ``rest`` where there is none."""
    leading = [key for key in known if rest == key or rest.startswith(f"{key}.")]
    return max(leading, key=len, default=rest)
