"""The errors of validation, as lines that say where the mistake is and what to change."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from harness.core.printable import printable
from harness.scenario.model import Scenario
from harness.scenario.problems import KeyPath, Problem, near
from harness.scenario.schema import keys_at
from harness.scenario.steps import STEPS
from harness.scenario.written import Written
from nemesis.catalogue import FAULTS

#: Errors that only follow from other errors.
_CONSEQUENCES = {"default_factory_not_called"}

#: Other tools' names for our steps.
_MEANT = {
    "await": "until",
    "break": "inject",
    "delay": "wait",
    "recover": "heal",
    "sleep": "wait",
    "undo": "heal",
    "wait_until": "until",
}

#: Names of Kafka settings resemble each other: `retention.ms` is not a misspelt `replication`.
_NEAR_A_DOTTED_KEY = 0.75


def complaints(exc: ValidationError, written: Written, model: type[BaseModel] = Scenario) -> list[str]:
    """``file.yaml:7: topic.replication: …``, a line for each key, in the order of the file.

    ``model``: the model with which all of ``written`` was validated.
    """
    messages: dict[KeyPath, str] = {}
    for error in exc.errors(include_url=False):
        if error["type"] in _CONSEQUENCES:
            continue
        where = written.resolved(error["loc"])
        messages.setdefault(where, _message(error, where, written, model))
    return _lines(messages, written)


def problem_lines(problems: Iterable[Problem], written: Written) -> list[str]:
    """The same lines for a scenario that contradicts itself."""
    messages: dict[KeyPath, str] = {}
    for problem in problems:
        messages.setdefault(written.resolved(problem.where), problem.says)
    return _lines(messages, written)


def _lines(messages: Mapping[KeyPath, str], written: Written) -> list[str]:
    order = list(written.origins)
    keys = sorted(messages, key=lambda key: order.index(key) if key in order else -1)
    return [_line(where, messages[where], written) for where in keys]


def _line(where: KeyPath, message: str, written: Written) -> str:
    path, origin = ".".join(map(str, where)), written.origin_of(where)
    named = not path or origin == f"--set {path}"
    return printable(f"{origin}: {'' if named else path + ': '}{message}")


def _message(error: Any, where: KeyPath, written: Written, model: type[BaseModel]) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    match kind:
        case "extra_forbidden":
            says = _unknown_key(str(where[-1]), keys_at(where[:-1], written.data, model) or [], where[:-1])
        case "step":
            says = _unknown_step(value) or str(error["msg"])
        case "string_pattern_mismatch" if error["loc"] == ("name",) and not where:
            says = f"{value!r}, from its file, is not a valid name: add `name:` with letters, digits, . _ and -"
        case "missing":
            says = f"key {error['loc'][-1]!r} is missing"
        case "union_tag_invalid":
            known = [tag.strip("'") for tag in str(context["expected_tags"]).split(", ")]
            says = f"no {_discriminator(context)} is called {context['tag']!r}; {near(context['tag'], known)}"
        case "union_tag_not_found":
            says = f"say which one: key {_discriminator(context)!r} is missing"
        case "model_type" | "model_attributes_type" | "dict_type":
            says = f"should be a mapping of keys to values, not {value!r}"
        case "value_error":
            says = str(context["error"])
        case _:
            subject, should, wanted = str(error["msg"]).partition(" should ")
            says = f"should {wanted}, not {value!r}" if subject in {"Input", "String"} and should else error["msg"]
    return says


def _unknown_step(value: object) -> str | None:
    """The message for a step with one unknown key; None if it is not such a step."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    name = str(next(iter(value)))
    if name in FAULTS:
        return f"unknown step `{name}`; a fault is injected: `inject: {{fault: {name}, …}}`"
    meant = _MEANT.get(name) or next(iter(get_close_matches(name, STEPS, n=1)), None)
    return f"unknown step `{name}`; " + (f"did you mean `{meant}`?" if meant else f"known: {', '.join(STEPS)}")


def _unknown_key(key: str, known: list[str], inside: KeyPath) -> str:
    if "config" in known and "." in key and not get_close_matches(key.lower(), known, cutoff=_NEAR_A_DOTTED_KEY):
        return f"no such key; a setting of Kafka's belongs under {'.'.join(map(str, inside))}.config"
    for attempt in (key.lower(), key.lower().partition(".")[0]):
        hint = near(attempt, known)
        if hint.startswith("did"):
            break
    return f"no such key; {hint}"


def _discriminator(context: Any) -> str:
    return str(context["discriminator"]).strip("'")
