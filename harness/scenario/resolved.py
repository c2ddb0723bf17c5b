"""A scenario written out: a file that says all that a run of it depends on."""

from typing import Any

import yaml
from pydantic import BaseModel

from harness.scenario.model import Scenario

_WIDTH = 120


def resolved_yaml(scenario: Scenario, ascii_only: bool = False) -> str:
    """Every setting, with its default where the file has none, and of each step what is not the default; what is empty
    is left out.

    It is a scenario file itself: loading it makes an equal scenario. ``ascii_only`` writes other characters as escapes.
    """
    said = scenario.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"timeline"})
    expect, requires = said.pop("expect"), said.pop("requires")
    said |= {"timeline": [_step(step) for step in scenario.timeline], "requires": requires, "expect": expect}
    written = {key: filled for key, value in said.items() if (filled := _filled(value)) not in ("", {}, [])}
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
