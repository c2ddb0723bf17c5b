"""What validation refused, in lines that say where it stands and what to change."""

from typing import Any

from pydantic import ValidationError

from harness.scenario.problems import Place, near
from harness.scenario.schema import keys_at
from harness.scenario.written import Written


def complaints(exc: ValidationError, written: Written) -> list[str]:
    """``file.yaml:7: topic.replication: …``, a line for each place, in the order in which they stand."""
    said: dict[Place, str] = {}
    for error in exc.errors(include_url=False):
        where = written.resolved(error["loc"])
        said.setdefault(where, _line(error, where, written))
    order = list(written.stands)
    return [said[where] for where in sorted(said, key=lambda place: order.index(place) if place in order else -1)]


def _line(error: Any, where: Place, written: Written) -> str:
    path = ".".join(map(str, where))
    return f"{written.stand(where)}: {path + ': ' if path else ''}{_says(error, where, written)}"


def _says(error: Any, where: Place, written: Written) -> str:
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(str(where[-1]), keys_at(where[:-1], written.data) or [])
    if kind == "missing":
        return f"key {error['loc'][-1]!r} is missing"
    if kind == "union_tag_invalid":
        known = [tag.strip("'") for tag in str(context["expected_tags"]).split(", ")]
        return f"no {_discriminator(context)} is called {context['tag']!r}; {near(context['tag'], known)}"
    if kind == "union_tag_not_found":
        return f"say which one: key {_discriminator(context)!r} is missing"
    if kind == "value_error":
        return str(context["error"])
    message = str(error["msg"])
    return f"{message.replace('Input should', 'should', 1)}, not {given!r}" if "Input should" in message else message


def _unknown_key(key: str, known: list[str]) -> str:
    for attempt in (key.lower(), key.lower().partition(".")[0]):
        hint = near(attempt, known)
        if hint.startswith("did"):
            break
    return f"no such key; {hint}"


def _discriminator(context: Any) -> str:
    return str(context["discriminator"]).strip("'")
