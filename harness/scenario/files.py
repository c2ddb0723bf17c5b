"""Settings of a cluster that name files. Their paths are made absolute, so that any directory works."""

from pathlib import Path
from typing import Any

import yaml

from harness.cluster.spec import NamesFile
from harness.core.errors import ScenarioError
from harness.core.printable import printable
from harness.providers.catalogue import PROVIDERS

_CLUSTER = "cluster"

#: The keys of ``cluster`` that name files, of every provider.
NAMING_FILES = tuple(
    key
    for row in PROVIDERS.values()
    for key, field in row.spec.model_fields.items()
    if any(isinstance(mark, NamesFile) for mark in field.metadata)
)


def found_from(data: dict[str, Any], folder: Path) -> None:
    """Make the path of each file absolute that a scenario in ``folder`` names."""
    cluster = data.get(_CLUSTER)
    if not isinstance(cluster, dict):
        return  # Validation refuses it.
    for key in NAMING_FILES:
        if isinstance(cluster.get(key), str):
            cluster[key] = _whole(cluster[key], folder)


def from_anywhere(setting: str, folder: Path) -> str:
    """A ``path=value`` from ``folder``, with absolute paths, so that it means the same in any folder.

    Raises ScenarioError if it is nested too deeply.
    """
    path, _, text = setting.partition("=")
    keys = tuple(path.strip().split("."))
    if keys[0] != _CLUSTER:
        return setting
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return setting  # ``override`` refuses it.
    data = {_CLUSTER: value} if len(keys) == 1 else {_CLUSTER: {".".join(keys[1:]): value}}
    if not any(isinstance(data[_CLUSTER], dict) and key in data[_CLUSTER] for key in NAMING_FILES):
        return setting
    found_from(data, folder)
    absolute = data[_CLUSTER] if len(keys) == 1 else data[_CLUSTER][keys[1]]
    try:
        return f"{'.'.join(keys)}={as_yaml(absolute)}"
    except RecursionError:
        raise ScenarioError(f"{printable(f'--set {path}')}: nested too deeply") from None


def as_yaml(value: object) -> str:
    """A value that was read from YAML, as YAML text of the same value. (JSON has fewer values and other escapes.)"""
    text = yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, sort_keys=False, width=float("inf"))
    return text.strip()[1:-1]


def _whole(file: str, folder: Path) -> str:
    return str(folder.absolute() / file)
