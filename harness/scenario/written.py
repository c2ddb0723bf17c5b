"""A scenario as written: YAML as plain data, with the line of each key."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from harness.core.errors import ScenarioError
from harness.core.printable import is_text, printable
from harness.scenario.problems import KeyPath

#: The message for a file that is not a scenario.
SCENARIO = "a scenario is a mapping of keys such as cluster, topic, workload, timeline"
#: A limit, because a few aliases of aliases would fill the memory.
_MOST_ENTRIES = 100_000


@dataclass
class Written:
    """Plain data, and the origin of each of its keys: ``file.yaml:7`` or ``--set topic.replication``."""

    data: dict[str, Any]
    origin: str
    origins: dict[KeyPath, str] = field(default_factory=dict)

    def resolved(self, where: KeyPath) -> KeyPath:
        """``where`` without the parts that a validator added: names of alternatives, which are not in the data."""
        node: Any = self.data
        found: list[str | int] = []
        for part in where:
            inside = (isinstance(node, dict) and part in node) or (
                isinstance(node, list) and isinstance(part, int) and part < len(node)
            )
            if inside:
                node = node[part]
                found.append(part)
        return tuple(found)

    def origin_of(self, where: KeyPath) -> str:
        """The origin of the innermost part of ``where`` that was written."""
        return next(
            (self.origins[where[:end]] for end in range(len(where), 0, -1) if where[:end] in self.origins), self.origin
        )


def parse(text: str, origin: str, wanted: str = SCENARIO) -> Written:
    """The data of a text. Raises ScenarioError, with the line, if it is not a YAML mapping (the message is then
    ``wanted``), or has a key twice."""
    written = Written({}, origin)
    try:
        data = _data(text, written)
    except yaml.reader.ReaderError as exc:
        line = text[: exc.position].count("\n") + 1
        raise ScenarioError(f"{origin}:{line}: no valid YAML: character #x{exc.character:04x} is not allowed") from exc
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise ScenarioError(f"{origin}:{line}: no valid YAML: {exc.problem or exc.context}") from exc
    except yaml.YAMLError as exc:
        raise ScenarioError(f"{origin}: no valid YAML: {' '.join(str(exc).split())}") from exc
    except RecursionError as exc:
        raise ScenarioError(f"{origin}: nested too deeply, or an alias refers to what it is part of") from exc
    if not isinstance(data, dict):
        raise ScenarioError(f"{origin}:1: {wanted}")
    written.data = data
    return written


def _data(text: str, written: Written) -> Any:
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        return None if root is None else _plain(loader, root, (), written)
    finally:
        loader.dispose()


def read(path: Path, wanted: str = SCENARIO) -> Written:
    """The data of a file. Raises ScenarioError if it cannot be read, or is not what is ``wanted``."""
    return parse(read_text(path), str(path), wanted)


def read_text(path: Path) -> str:
    """The text of a file. Raises ScenarioError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as exc:
        raise ScenarioError(f"{path}: cannot be read ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        raise ScenarioError(f"{path}: is not text in UTF-8") from exc


def _plain(loader: yaml.SafeLoader, node: yaml.Node, keys: KeyPath, written: Written) -> Any:
    if len(written.origins) > _MOST_ENTRIES:
        raise ScenarioError(f"{written.origin}: more than {_MOST_ENTRIES} entries, aliases counted where they are used")
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        found: dict[str, Any] = {}
        own_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            key, line = str(_text(key_node.value, key_node, written)), key_node.start_mark.line + 1
            if key in own_lines:
                raise ScenarioError(
                    f"{written.origin}:{line}: {key!r} appears twice, on line {own_lines[key]} before: remove one"
                )
            own_lines[key] = line
            written.origins[(*keys, key)] = f"{written.origin}:{line}"
            found[key] = _plain(loader, value_node, (*keys, key), written)
        return found
    if isinstance(node, yaml.SequenceNode):
        items = []
        for index, item in enumerate(node.value):
            written.origins[(*keys, index)] = f"{written.origin}:{item.start_mark.line + 1}"
            items.append(_plain(loader, item, (*keys, index), written))
        return items
    value = _scalar(loader, node, written)
    return value if may_name_files(keys) else _text(value, node, written)


def _scalar(loader: yaml.SafeLoader, node: yaml.Node, written: Written) -> Any:
    try:
        return loader.construct_object(node)
    except ValueError as exc:
        where = f"{written.origin}:{node.start_mark.line + 1}"
        raise ScenarioError(
            f"{where}: {node.value!r} looks like a date or a number, but is not valid: put it in quotes"
        ) from exc


def may_name_files(keys: KeyPath) -> bool:
    """Whether a value may be a path (of an inventory), which may have any bytes."""
    return keys[:1] == ("cluster",)


def _text(value: Any, node: yaml.Node, written: Written) -> Any:
    if not is_text(value):
        where = f"{written.origin}:{node.start_mark.line + 1}"
        raise ScenarioError(f"{where}: {printable(value)} cannot be written as UTF-8")
    return value
