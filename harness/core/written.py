"""A file as written: YAML as plain data, with the line of each key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from harness.core.errors import ScenarioError
from harness.core.printable import is_text, printable, shown

#: Keys and indices from the top of a file down to one value.
KeyPath = tuple[str | int, ...]

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

    def lines(self, messages: Mapping[KeyPath, str]) -> list[str]:
        """``file.yaml:7: topic.replication: …``, a line for each message, in the order of the file."""
        order = list(self.origins)
        keys = sorted(messages, key=lambda key: order.index(key) if key in order else -1)
        return [self._line(where, messages[where]) for where in keys]

    def _line(self, where: KeyPath, message: str) -> str:
        path, origin = ".".join(map(str, where)), self.origin_of(where)
        named = not path or origin == f"--set {path}"
        return printable(f"{origin}: {'' if named else path + ': '}{message}")


def parsed(
    text: str,
    origin: str,
    wanted: str,
    any_bytes: Callable[[KeyPath], bool] = lambda _: False,
    secret: bool = False,
) -> Written:
    """The data of a text. Raises ScenarioError, with the line, if it is not a YAML mapping (the message is then
    ``wanted``), or has a key twice.

    ``any_bytes``: whether a value may have what UTF-8 cannot encode. ``secret``: quote nothing but keys.
    """
    written = Written({}, origin)
    try:
        data = _data(text, _Reader(written, any_bytes, secret))
    except yaml.reader.ReaderError as exc:
        line = text[: exc.position].count("\n") + 1
        raise ScenarioError(f"{origin}:{line}: no valid YAML: character #x{exc.character:04x} is not allowed") from exc
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        problem = exc.problem or exc.context or ""
        # (A problem with quotes quotes the file.)
        said = "what is here cannot be read: quote it" if secret and "'" in problem else problem
        raise ScenarioError(f"{origin}:{line}: no valid YAML: {said}") from exc
    except yaml.YAMLError as exc:
        raise ScenarioError(f"{origin}: no valid YAML: {' '.join(str(exc).split())}") from exc
    except RecursionError as exc:
        raise ScenarioError(f"{origin}: nested too deeply, or an alias refers to what it is part of") from exc
    if not isinstance(data, dict):
        raise ScenarioError(f"{origin}:1: {wanted}")
    written.data = data
    return written


@dataclass(frozen=True)
class _Reader:
    """Turns YAML nodes into plain data, and notes in ``written`` where each key is."""

    written: Written
    any_bytes: Callable[[KeyPath], bool]
    secret: bool

    def plain(self, loader: yaml.SafeLoader, node: yaml.Node, keys: KeyPath) -> Any:
        """The data of a node, which is at ``keys``."""
        if len(self.written.origins) > _MOST_ENTRIES:
            most = f"more than {_MOST_ENTRIES} entries, aliases counted where they are used"
            raise ScenarioError(f"{self.written.origin}: {most}")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, keys)
        if isinstance(node, yaml.SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                self.written.origins[(*keys, index)] = self._at(item)
                items.append(self.plain(loader, item, (*keys, index)))
            return items
        value = self._scalar(loader, node)
        return value if self.any_bytes(keys) else self._text(value, node)

    def _mapping(self, loader: yaml.SafeLoader, node: yaml.MappingNode, keys: KeyPath) -> dict[str, Any]:
        loader.flatten_mapping(node)
        found: dict[str, Any] = {}
        own_lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise ScenarioError(f"{self._at(key_node)}: a key is a word, not a list or a mapping: quote it")
            key = str(self._text(key_node.value, key_node))
            if key in own_lines:
                twice = f"{key!r} appears twice, on line {own_lines[key]} before: remove one"
                raise ScenarioError(f"{self._at(key_node)}: {twice}")
            own_lines[key] = key_node.start_mark.line + 1
            self.written.origins[(*keys, key)] = self._at(key_node)
            found[key] = self.plain(loader, value_node, (*keys, key))
        return found

    def _scalar(self, loader: yaml.SafeLoader, node: yaml.Node) -> Any:
        try:
            return loader.construct_object(node)
        except ValueError as exc:
            what = "what is here" if self.secret else shown(node.value)
            says = f"{what} looks like a date or a number, but is not valid: put it in quotes"
            raise ScenarioError(f"{self._at(node)}: {says}") from exc

    def _text(self, value: Any, node: yaml.Node) -> Any:
        if not is_text(value):
            what = "what is here" if self.secret else printable(value)
            raise ScenarioError(f"{self._at(node)}: {what} cannot be written as UTF-8")
        return value

    def _at(self, node: yaml.Node) -> str:
        return f"{self.written.origin}:{node.start_mark.line + 1}"


def _data(text: str, reader: _Reader) -> Any:
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        return None if root is None else reader.plain(loader, root, ())
    finally:
        loader.dispose()
