"""Whatever is written, a scenario loads or is refused in lines: `scripts/fuzz` tries many more of the same."""

from random import Random

import pytest

from harness.core.errors import ScenarioError
from harness.scenario.loading import named, validated
from harness.scenario.model import Scenario
from harness.scenario.written import parse

from .mutations import mutated

TEXTS = [path.read_text() for path in named().values()]
EACH = 20


def loaded(text: str) -> Scenario | None:
    """The scenario; None where it is refused, in printable lines that begin with where it stands."""
    try:
        return validated(parse(text, "mutated.yaml"))
    except ScenarioError as exc:
        lines = str(exc).split("\n")
    assert [line for line in lines if not line.startswith("mutated.yaml:") or not line.isprintable()] == []
    return None


@pytest.mark.parametrize("index", range(len(TEXTS)))
def test_a_damaged_scenario_loads_or_is_refused_in_lines(index: int) -> None:
    outcomes = [loaded(mutated(TEXTS[index], TEXTS, Random(f"{index}/{n}"))) for n in range(EACH)]
    assert None in outcomes, "the damage is too small to be refused"


def test_undamaged_texts_load() -> None:
    assert None not in map(loaded, TEXTS)
