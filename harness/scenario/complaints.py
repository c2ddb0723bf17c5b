"""The errors of validating a scenario, as lines that say where the mistake is and what to change."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from harness.core import complaints as core
from harness.core.printable import shown
from harness.core.written import KeyPath, Written
from harness.scenario.model import LONGEST_NAME, Scenario
from harness.scenario.problems import Problem
from harness.scenario.schema import keys_at
from harness.scenario.steps import STEPS
from nemesis.catalogue import FAULTS

#: What is wrong with a name that a scenario gets from its file.
_OF_A_FILE = {
    "string_pattern_mismatch": "is not a valid name: add `name:` with letters, digits, . _ and -",
    "string_too_long": f"is longer than {LONGEST_NAME} characters: add a shorter `name:`",
}

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


def complaints(exc: ValidationError, written: Written, model: type[BaseModel] = Scenario) -> list[str]:
    """``file.yaml:7: topic.replication: …``, a line for each key, in the order of the file.

    ``model``: the model with which all of ``written`` was validated.
    """

    def known(where: KeyPath) -> list[str] | None:
        return keys_at(where, written.data, model)

    return core.complaints(exc.errors(include_url=False), written, known, _special)


def problem_lines(problems: Iterable[Problem], written: Written) -> list[str]:
    """The same lines for a scenario that contradicts itself."""
    messages: dict[KeyPath, str] = {}
    for problem in problems:
        messages.setdefault(written.resolved(problem.where), problem.says)
    return written.lines(messages)


def _special(error: Any, where: KeyPath) -> str | None:
    """The message for an error that only a scenario can have; None for any other."""
    if error["type"] == "step":
        return _unknown_step(error["input"])
    says = _OF_A_FILE.get(error["type"]) if error["loc"] == ("name",) and not where else None
    return f"{shown(error['input'])}, from its file, {says}" if says else None


def _unknown_step(value: object) -> str | None:
    """The message for a step with one unknown key; None if it is not such a step."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    name = str(next(iter(value)))
    if name in FAULTS:
        return f"unknown step `{name}`; a fault is injected: `inject: {{fault: {name}, …}}`"
    meant = _MEANT.get(name) or next(iter(get_close_matches(name, STEPS, n=1)), None)
    return f"unknown step `{name}`; " + (f"did you mean `{meant}`?" if meant else f"known: {', '.join(STEPS)}")
