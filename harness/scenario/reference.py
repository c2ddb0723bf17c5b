"""The reference of scenarios as a page, made from their schema: ``python -m harness.scenario.reference``."""

import sys
from collections.abc import Iterator
from typing import Any

from harness.core.quantities import (
    DURATION_PATTERN,
    POSITIVE_DURATION_PATTERN,
    POSITIVE_SHARE_PATTERN,
    RATE_PATTERN,
    SHARE_PATTERN,
)
from harness.scenario.json_schema import json_schema
from harness.scenario.steps import STEPS
from nemesis.catalogue import FAULTS
from nemesis.targets import MEANT
from workloads.catalogue import WORKLOADS

Schema = dict[str, Any]

_HEAD = """\
# Scenarios

Every key that a scenario file may have. Made from the code by `python -m harness.scenario.reference`, and held to it by
a test; `kafka-trial schema` prints the same for editors, `kafka-trial scenarios show NAME` a whole file to start from.

Settings have the names that Kafka gives them. A duration has a unit (`250ms`, `10s`, `2m`), a share is written `2%`, a
rate `10kbit`; units are in lower case. Numbers, `true` and `false` are written without quotes.
`--set PATH=VALUE` changes one key: `--set topic.min.insync.replicas=2`, `--set timeline.0.wait=3s`.

The named scenarios are from Jepsen (Kafka, 2013), from Vanlightly (How to Lose Messages on a Kafka Cluster, 2018), and
our own. Vanlightly's scenarios 8 to 11 are in his part 2, which was not at hand: they follow what others quote of it.
"""

_PARTS = (
    ("cluster", "ClusterSpec"),
    ("topic", "TopicSpec"),
    ("final_read", "FinalRead"),
    ("requires", "Requirements"),
    ("limits", "Limits"),
    ("expect", "Expectation"),
)

#: The words that the page shows for a pattern.
_WORDS = {
    DURATION_PATTERN: "duration",
    POSITIVE_DURATION_PATTERN: "duration",
    SHARE_PATTERN: "share",
    POSITIVE_SHARE_PATTERN: "share",
    RATE_PATTERN: "rate",
}


def reference() -> str:
    """docs/scenarios.md."""
    schema = json_schema()
    return "\n".join(_lines(schema, schema["$defs"])) + "\n"


def _lines(schema: Schema, definitions: Schema) -> Iterator[str]:
    yield _HEAD
    yield "## The file\n"
    yield from _table(schema, definitions)
    for key, name in _PARTS:
        yield f"\n## {key}\n"
        yield from _section(definitions[name], definitions)
    yield "\n## workload\n"
    yield "`kind` says which; without it, a queue.\n"
    for kind, model in WORKLOADS.items():
        yield f"\n### kind: {kind}\n"
        yield from _section(definitions[model.__name__], definitions, without={"kind"})
    yield "\n## timeline\n"
    yield "A list of steps, each a mapping of one key.\n"
    for key, step in STEPS.items():
        definition = definitions[step.__name__]
        yield f"\n### {key}\n"
        yield definition["description"] + "\n"
        inside = definition["properties"][key]
        if "$ref" in inside:
            yield from _table(_meant(inside, definitions), definitions)
        elif "oneOf" in inside:
            yield from _table(_common(definitions), definitions)
        else:
            yield f"`{key}`: {_takes(inside, definitions)}."
    yield "\n## Faults\n"
    yield "`inject: {fault: NAME, …}`, and what `random` draws from.\n"
    for kind in FAULTS:
        definition = definitions[f"fault-{kind}"]
        yield f"\n### {kind}\n"
        yield definition["description"] + "\n"
        yield from _table(definition, definitions, without={"fault", *_common(definitions)["properties"]})
    yield "\n## Targets\n"
    yield "The nodes of a fault or an `until`: one of these, or a list of them, looked up when the step begins.\n"
    yield "| target | means |\n|---|---|"
    for name, means in MEANT.items():
        yield f"| `{name}` | {means} |"


def _common(definitions: Schema) -> Schema:
    """The keys of every injection, in addition to the parameters of its fault."""
    keys = definitions[f"fault-{next(iter(FAULTS))}"]["properties"]
    fault = {"description": "which: see Faults", "enum": [*FAULTS]}
    return {"properties": {"fault": fault, "as": keys["as"], "pin": keys["pin"]}, "required": ["fault"]}


def _section(
    definition: Schema, definitions: Schema, without: frozenset[str] | set[str] = frozenset()
) -> Iterator[str]:
    yield definition["description"] + "\n"
    yield from _table(definition, definitions, without)


def _table(definition: Schema, definitions: Schema, without: frozenset[str] | set[str] = frozenset()) -> Iterator[str]:
    required = definition.get("required", [])
    yield "| key | takes | default | meaning |\n|---|---|---|---|"
    for key, prop in definition["properties"].items():
        if key not in without:
            default = "required" if key in required else _default(prop)
            yield f"| `{key}` | {_takes(prop, definitions)} | {default} | {_meaning(prop, definitions)} |"


def _default(prop: Schema) -> str:
    if "default" not in prop or prop["default"] in ([], {}, ""):
        return ""
    default = prop["default"]
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _meaning(prop: Schema, definitions: Schema) -> str:
    description = prop.get("description") or _meant(prop, definitions).get("description", "")
    return str(description).replace("|", "\\|")


def _meant(prop: Schema, definitions: Schema) -> Schema:
    """The definition that a key refers to; itself if it refers to none."""
    found: Schema = definitions[prop["$ref"].removeprefix("#/$defs/")] if "$ref" in prop else prop
    return found


def _takes(prop: Schema, definitions: Schema) -> str:
    """What a key takes, in a few words."""
    meant = _meant(prop, definitions)
    if meant.get("pattern") in _WORDS:
        return _WORDS[meant["pattern"]]
    if "const" in meant:
        return f"`{meant['const']}`"
    if "enum" in meant:
        words = list(dict.fromkeys(str(word) for word in meant["enum"]))
        return " or ".join(f"`{word}`" for word in words) if len(words) <= _MOST_WORDS else "name"
    alternatives = meant.get("anyOf") or meant.get("oneOf") or []
    several = [one for one in alternatives if one.get("type") != "null"]
    if several:
        words = list(dict.fromkeys(_takes(one, definitions) for one in several))
        return "target, or a list of targets" if words == ["text", "list of text"] else " or ".join(words)
    return _of_type(meant, definitions)


#: A choice: more words would fill a cell of the page.
_MOST_WORDS = 14


def _of_type(meant: Schema, definitions: Schema) -> str:
    match meant.get("type"):
        case "array":
            return f"list of {_takes(meant['items'], definitions)}"
        case "object":
            return "mapping"
        case "integer":
            low, high = meant.get("minimum"), meant.get("maximum")
            bounds = f" from {low}" if low is not None else ""
            return f"number{bounds}{f' to {high}' if high is not None else ''}"
        case "boolean":
            return "`true` or `false`"
        case _:
            return "text"


if __name__ == "__main__":
    sys.stdout.write(reference())
