"""A scenario with all its settings: a file with everything that its run depends on."""

from typing import Any

import yaml
from pydantic import BaseModel

from harness.scenario.model import Scenario

#: A choice: as long as a line of this project may be.
_WIDTH = 120


def resolved_yaml(scenario: Scenario, ascii_only: bool = False) -> str:
    """A scenario file with every setting, defaults too; a step has only its keys that differ from their defaults. Empty
    values are left out.

    Loading it gives an equal scenario. ``ascii_only`` writes other characters as escapes.
    """
    settings = scenario.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"timeline"})
    expect, requires = settings.pop("expect"), settings.pop("requires")
    settings |= {"timeline": [_step(step) for step in scenario.timeline], "requires": requires, "expect": expect}
    written = {key: filled for key, value in settings.items() if (filled := _filled(value)) not in ("", {}, [])}
    return yaml.safe_dump(written, sort_keys=False, allow_unicode=not ascii_only, width=_WIDTH)


def _step(step: BaseModel) -> Any:
    return _fault_first(step.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def _fault_first(value: Any) -> Any:
    if isinstance(value, list):
        return [_fault_first(item) for item in value]
    if isinstance(value, dict):
        return {key: _fault_first(value[key]) for key in sorted(value, key=lambda key: key != "fault")}
    return value


def _filled(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: filled for key, part in value.items() if (filled := _filled(part)) not in ({}, [])}
