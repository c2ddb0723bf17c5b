"""Settings of a cluster that name files: they mean the same in any directory."""

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
    """Name by its whole path each file that a scenario, as it is written in ``folder``, names."""
    cluster = data.get(_CLUSTER)
    if not isinstance(cluster, dict):
        return  # It is refused where it is validated.
    for key in NAMING_FILES:
        if isinstance(cluster.get(key), str):
            cluster[key] = _whole(cluster[key], folder)


def from_anywhere(setting: str, folder: Path) -> str:
    """A ``path=value`` that is said in ``folder``, so that it means the same in another one.

    Raises ScenarioError where it is nested too deeply.
    """
    path, _, text = setting.partition("=")
    keys = tuple(path.strip().split("."))
    if keys[0] != _CLUSTER:
        return setting
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return setting  # It is refused where it is put in.
    said = {_CLUSTER: value} if len(keys) == 1 else {_CLUSTER: {".".join(keys[1:]): value}}
    if not any(isinstance(said[_CLUSTER], dict) and key in said[_CLUSTER] for key in NAMING_FILES):
        return setting
    found_from(said, folder)
    found = said[_CLUSTER] if len(keys) == 1 else said[_CLUSTER][keys[1]]
    try:
        return f"{'.'.join(keys)}={as_yaml(found)}"
    except RecursionError:
        raise ScenarioError(f"{printable(f'--set {path}')}: nested too deeply") from None


def as_yaml(value: object) -> str:
    """A value that was read from YAML, as YAML that gives the same value; JSON has fewer values, and other escapes."""
    text = yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, sort_keys=False, width=float("inf"))
    return text.strip()[1:-1]


def _whole(file: str, folder: Path) -> str:
    return str(folder.absolute() / file)
