"""The product: verdict.json, its parts, how verdicts merge, and what a scenario may expect of one."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

SCHEMA = 1


class Judgement(StrEnum):
    """valid: every assumption held and nothing was found. unknown: an assumption did not hold. invalid: an anomaly."""

    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"


_SEVERITY = [Judgement.VALID, Judgement.UNKNOWN, Judgement.INVALID]


def worst(judgements: Iterable[Judgement]) -> Judgement:
    """invalid > unknown > valid; valid of nothing."""
    return max(judgements, key=_SEVERITY.index, default=Judgement.VALID)


class Standing(StrEnum):
    """Whether the configuration permits an anomaly, or Kafka broke a promise."""

    PERMITTED = "permitted"
    VIOLATION = "violation"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class FoundAnomaly(_Part):
    """What was found of one anomaly: all records of a run that are in it. ``examples`` has at most 20 of ``count``.

    ``runs`` are the records grouped by where they stood and under whom, at most 20, the biggest first; the ``text`` of
    each is a sentence (checkers/evidence/causes.py). Empty of an anomaly that does not come in runs.
    """

    count: int
    standing: Standing
    because: str
    source: str
    remedy: str | None = None
    examples: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []


class Precondition(_Part):
    """An assumption that the verdict rests on. One that is not met makes a run without anomalies ``unknown``."""

    name: str
    met: bool
    detail: str


#: What the preconditions are called (checkers/preconditions.py), in the order in which a reader should doubt them.
PRECONDITIONS = (
    "history whole",
    "something attempted",
    "enough acknowledged",
    "faults bit",
    "faults healed",
    "timeline followed",
    "workers finished",
    "cluster observed",
    "leader changed",
    "leader unchanged",
    "final read complete",
    "log retained",
    "limits judged",
    "checkers answered",
)


class Summary(_Part):
    """The 2013 report. Rates are fractions of 1, or null where there is nothing to divide by. ``lost`` and
    ``duplicated`` are null where their checker failed."""

    attempted: int
    acknowledged: int
    survivors: int
    lost: int | None
    unacknowledged_present: int
    duplicated: int | None
    ack_rate: float | None
    loss_rate: float | None
    unacknowledged_present_rate: float | None


class Expectation(_Part):
    """What a scenario expects of its verdict (its ``expect:``)."""

    verdict: Judgement | list[Judgement] = Field(Judgement.VALID, description="the verdict, or those that meet it")
    anomalies: list[str] = Field([], description="anomalies that must be found")
    allowed: list[str] = Field([], description="anomalies that may be found besides")
    standing: Standing | None = Field(None, description="the standing that every anomaly found must have")
    not_met: list[str] = Field([], description="preconditions that may be not met")

    @property
    def verdicts(self) -> list[Judgement]:
        """The verdicts that meet it."""
        return self.verdict if isinstance(self.verdict, list) else [self.verdict]

    def unmet(
        self, verdict: Judgement, anomalies: Mapping[str, FoundAnomaly], preconditions: Iterable[Precondition] = ()
    ) -> str | None:
        """Why the expectation is not met, in one line; None where it is.

        A precondition that is not met is never expected unless it is named: what was found may have another cause.
        """
        if verdict not in self.verdicts:
            return f"expected {' or '.join(self.verdicts)}, judged {verdict}"
        if verdict is Judgement.INVALID:
            missing = [name for name in self.anomalies if name not in anomalies]
            if missing:
                return f"expected {', '.join(missing)}, found none"
        surprising = [name for name in anomalies if name not in {*self.anomalies, *self.allowed}]
        if surprising:
            return f"found {', '.join(surprising)}, not expected"
        other = [name for name, a in anomalies.items() if self.standing is not None and a.standing is not self.standing]
        if other:
            return f"expected standing {self.standing}, not so for {', '.join(other)}"
        doubts = [held.name for held in preconditions if not held.met and held.name not in self.not_met]
        if doubts:
            return f"not met: {', '.join(doubts)}; where that is expected, name it in expect.not_met"
        return None


class Verdict(_Part):
    """verdict.json. Adding keys is free; renaming one needs a new schema number."""

    schema_number: int = Field(SCHEMA, alias="schema")
    run: str
    scenario: str
    verdict: Judgement
    expected: bool
    partial: bool = False
    reasons: list[str]
    summary: Summary
    anomalies: dict[str, FoundAnomaly]
    preconditions: list[Precondition]
    availability: dict[str, Any]
    redelivered: dict[str, int] = Field({}, description="deliveries of what a group had had before, by cause: legal")
    transactions: dict[str, Any] = {}
    faults: list[dict[str, Any]]
    versions: dict[str, str]

    def to_json(self, indent: int | None = None) -> str:
        """The text of verdict.json; without ``indent`` one line."""
        return self.model_dump_json(by_alias=True, indent=indent)
