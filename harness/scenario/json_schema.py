"""The JSON Schema of scenarios, made from the models and catalogues. Editors use it to complete and check a file."""

from collections.abc import Callable
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from harness.core.anomalies import BY_NAME
from harness.core.quantities import (
    DURATION_PATTERN,
    POSITIVE_DURATION_PATTERN,
    POSITIVE_SHARE_PATTERN,
    RATE_PATTERN,
    SHARE_PATTERN,
    duration_text,
    rate_text,
    share_text,
)
from harness.core.verdict import PRECONDITIONS
from harness.scenario.client_config import own_keys
from harness.scenario.kafka_settings import OF_THE_TOPIC, RESERVED
from harness.scenario.model import Scenario
from workloads.catalogue import DEFAULT, WORKLOADS
from workloads.clients.librdkafka import RELIED_ON, SETTINGS, main_name

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

#: Settings with two names: ours, and another one that is accepted.
_ALSO = {"delivery.timeout.ms": "message.timeout.ms"}

#: Keywords of pydantic that JSON Schema does not have, such as bounds of quantities that are written as text.
_OF_PYDANTIC = {"discriminator", "lt", "le", "gt", "ge"}

_TEXT: dict[str, Callable[[Any], str]] = {
    DURATION_PATTERN: duration_text,
    POSITIVE_DURATION_PATTERN: duration_text,
    SHARE_PATTERN: share_text,
    POSITIVE_SHARE_PATTERN: share_text,
    RATE_PATTERN: rate_text,
}


class _Plain(GenerateJsonSchema):
    """Makes no title for a key: the key's name suffices."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - none has one
        return False


def json_schema() -> Schema:
    """A schema of scenario files: every key and word that a file may have. A misspelt one is refused.

    The schema knows no contradictions (a scenario that meets it may still be refused), and accepts no number that is
    written as text.
    """
    made = Scenario.model_json_schema(by_alias=True, schema_generator=_Plain)
    definitions = {old: _tidy(part) for old, part in made.pop("$defs").items()}
    names = {old: _name(old, part) for old, part in definitions.items()}
    whole = {"$schema": DIALECT, **_tidy(made), "title": "A scenario of kafka-trial"}
    whole["$defs"] = {names[old]: definitions[old] for old in sorted(definitions, key=lambda old: names[old])}
    whole["required"] = []
    whole["properties"]["workload"] = _workload(whole["properties"]["workload"], whole["$defs"])
    whole["properties"]["watch"]["type"] = ["string", "integer"]
    anomalies = sorted(BY_NAME)
    for key in ("anomalies", "allowed"):
        whole["$defs"]["Expectation"]["properties"][key]["items"] = {"enum": anomalies}
    whole["$defs"]["Expectation"]["properties"]["not_met"]["items"] = {"enum": list(PRECONDITIONS)}
    _settings(whole["$defs"])
    _referred(whole, names)
    return whole


def _name(old: str, part: Schema) -> str:
    """The name of a definition: its model's; for a fault ``fault-NAME``, because a step may have the same name."""
    kind = part.get("properties", {}).get("fault", {}).get("const")
    return f"fault-{kind}" if kind else str(part.get("title", old))


def _tidy(part: Any) -> Any:
    """The schema as a person writes files: defaults of quantities with units, no default of a whole part, docstrings as
    plain text."""
    if isinstance(part, list):
        return [_tidy(item) for item in part]
    if not isinstance(part, dict):
        return part
    tidied = {key: _tidy(value) for key, value in part.items() if key not in _OF_PYDANTIC}
    if isinstance(tidied.get("description"), str):
        tidied["description"] = " ".join(tidied["description"].replace("``", "`").split())
    default = tidied.get("default")
    if default is None or (isinstance(default, dict) and default):
        tidied.pop("default", None)
    elif tidied.get("pattern") in _TEXT and not isinstance(default, str):
        tidied["default"] = _TEXT[tidied["pattern"]](default)
    return tidied


def _workload(part: Schema, definitions: Schema) -> Schema:
    """Choose the workload by ``kind``; without it, it is a queue."""
    for kind, model in WORKLOADS.items():
        definition = definitions[model.__name__]
        keys = definition["properties"]
        keys |= {other: {**keys[key], "description": f"another name for {key}"} for key, other in _ALSO.items()}
        keys["acks"]["enum"] = ["0", "1", "all", "-1", 0, 1, -1]
        keys["acks"].pop("type")
        own = own_keys(model)
        passed = sorted(key for key in SETTINGS if not {key, main_name(key)} & RELIED_ON and main_name(key) not in own)
        keys["config"]["propertyNames"] = {"enum": passed}
        if kind != DEFAULT:
            definition["required"] = [*definition.get("required", []), "kind"]
    return {"description": part["description"], "anyOf": part["oneOf"]}


def _settings(definitions: Schema) -> None:
    for model, refused in (("ClusterSpec", [*RESERVED, *OF_THE_TOPIC]), ("TopicSpec", [*OF_THE_TOPIC])):
        config = definitions[model]["properties"]["config"]
        config["propertyNames"] = {"pattern": "^[A-Za-z0-9._-]+$", "not": {"enum": sorted(refused)}}


def _referred(part: Any, names: dict[str, str]) -> None:
    """Change every reference to the new name of its definition."""
    for child in part if isinstance(part, list) else part.values() if isinstance(part, dict) else ():
        _referred(child, names)
    if isinstance(part, dict) and isinstance(part.get("$ref"), str):
        part["$ref"] = f"#/$defs/{names[part['$ref'].removeprefix('#/$defs/')]}"
