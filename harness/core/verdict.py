"""The product: verdict.json, its parts, how verdicts merge, and what a scenario may expect of one."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from harness.core.anomalies import BY_NAME

SCHEMA = 1

#: The most examples of an anomaly in a verdict, and the most of its runs: its own files have all records.
MOST_EXAMPLES = 20


class Judgement(StrEnum):
    """valid: all preconditions met and nothing found. unknown: one is not met. invalid: an anomaly was found."""

    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"


_SEVERITY = [Judgement.VALID, Judgement.UNKNOWN, Judgement.INVALID]


def worst(judgements: Iterable[Judgement]) -> Judgement:
    """The worst of them: invalid, else unknown, else valid. VALID if there are none."""
    return max(judgements, key=_SEVERITY.index, default=Judgement.VALID)


class Standing(StrEnum):
    """Whether the configuration permits an anomaly, or Kafka broke a promise; undecided: too little is known to say."""

    PERMITTED = "permitted"
    VIOLATION = "violation"
    UNDECIDED = "undecided"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class FoundAnomaly(_Part):
    """All that was found of one anomaly. ``examples`` has at most 20 of ``count``.

    ``runs``: neighbouring records of one partition and leader, at most 20 groups, the biggest first. Each has facts
    (checkers/evidence/causes.py) and ``text``, their sentence (harness/report/sentences.py). Empty for an anomaly whose
    records are not looked at in ranges.
    """

    count: int
    standing: Standing
    because: str
    source: str
    remedy: str | None = None
    examples: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []


class CauseOf(StrEnum):
    """What took the records of a finding: an election; the loss of all disks that had them; nothing, though everything
    was observed; or it is unknown. For an anomaly that is not judged record by record: what happened in the run, or a
    limit of the scenario."""

    ELECTION = "election"
    DISKS_LOST = "disks lost"
    NOTHING = "nothing"
    UNKNOWN = "unknown"
    RUN = "run"
    LIMIT = "limit"


class Finding(_Part):
    """One cause, and the anomalies that follow from it, with the count of each (the first gives the finding its name).

    ``cause``: the facts: ``event`` (a CauseOf) and, for an election or a loss of disks, when it happened, under which
    faults, and who was elected where. ``evidence``: who must have had the records, who need not, of whom nobody knows,
    and what took them; it is that of the first range with this standing (each range has its own). ``runs``: the offsets
    by partition, at most 20; ``more_runs`` counts the others. ``standing``: the worst of its records. ``text``: the
    cause as a sentence (harness/report/sentences.py).
    """

    standing: Standing
    because: str
    source: str
    remedy: str | None = None
    cause: dict[str, Any] = {}
    evidence: dict[str, Any] = {}
    anomalies: dict[str, int]
    runs: list[dict[str, Any]] = []
    more_runs: int = 0
    text: str = ""

    @property
    def first(self) -> str:
        """The anomaly that it is named after."""
        return next(iter(self.anomalies))


#: The names of the preconditions (checkers/preconditions.py), those first that a reader should check first.
PRECONDITIONS = (
    "history whole",
    "something attempted",
    "enough acknowledged",
    "faults recorded",
    "faults took effect",
    "records at risk",
    "faults healed",
    "timeline followed",
    "partitions served",
    "workers finished",
    "consumers read to the end",
    "cluster observed",
    "leader changed",
    "leader unchanged",
    "final read complete",
    "log retained",
    "limits judged",
    "checkers answered",
)


#: Former names of preconditions, in stored verdicts and older scenarios, and their present names.
_FORMER = {"faults bit": "faults took effect"}


def _present_name(name: object) -> object:
    return _FORMER.get(name, name) if isinstance(name, str) else name


PreconditionName = Annotated[str, BeforeValidator(_present_name)]


class Precondition(_Part):
    """An assumption that the verdict rests on. One that is not met makes a run without anomalies ``unknown``."""

    name: PreconditionName
    met: bool
    detail: str


class Summary(_Part):
    """The counts of the report in "Jepsen: Kafka" (2013). Rates are fractions of 1, or null if there is nothing to
    divide by. ``lost`` and ``duplicated`` are null if their checker failed."""

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

    verdict: Judgement | Annotated[list[Judgement], Field(min_length=1)] = Field(
        Judgement.VALID, description="the verdict, or those that meet it"
    )
    anomalies: list[str] = Field([], description="anomalies that must be found")
    allowed: list[str] = Field([], description="anomalies that may be found, too")
    standing: Literal[Standing.PERMITTED, Standing.VIOLATION] | None = Field(
        None, description="the standing that every anomaly found must have; without it, none may be a violation"
    )
    not_met: list[PreconditionName] = Field([], description="preconditions that may be not met")

    @property
    def verdicts(self) -> list[Judgement]:
        """The verdicts that meet it."""
        return self.verdict if isinstance(self.verdict, list) else [self.verdict]

    def unmet(
        self, verdict: Judgement, anomalies: Mapping[str, FoundAnomaly], preconditions: Iterable[Precondition] = ()
    ) -> str | None:
        """Why the expectation is not met, in one line; None where it is.

        A precondition may be not met only if ``not_met`` names it: otherwise what was found may have another cause.
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
        if standing := self._unmet_standing(anomalies):
            return standing
        doubts = [held.name for held in preconditions if not held.met and held.name not in self.not_met]
        if doubts:
            return f"not met: {', '.join(doubts)}; where that is expected, name it in expect.not_met"
        return None

    def _unmet_standing(self, anomalies: Mapping[str, FoundAnomaly]) -> str | None:
        if self.standing is not None:
            other = [name for name, a in anomalies.items() if a.standing is not self.standing]
            return f"expected standing {self.standing}, not so for {', '.join(other)}" if other else None
        broken = [name for name, a in anomalies.items() if breaks_a_promise(name, a)]
        return (
            f"{', '.join(broken)} is a violation; where that is expected, say standing: violation" if broken else None
        )


def breaks_a_promise(name: str, found: FoundAnomaly) -> bool:
    """Whether an anomaly breaks a promise of Kafka's, and not a limit that the scenario sets itself."""
    kind = BY_NAME.get(name)
    return found.standing is Standing.VIOLATION and (kind is None or kind.promise is not None)


class Verdict(_Part):
    """verdict.json. Adding keys is free; renaming one needs a new schema number.

    ``reasons``: the judgement in sentences (harness/report/sentences.py); empty before these are made.
    """

    schema_number: int = Field(SCHEMA, alias="schema")
    run: str
    scenario: str
    verdict: Judgement
    expected: bool
    partial: bool = False
    reasons: list[str]
    summary: Summary
    anomalies: dict[str, FoundAnomaly]
    findings: list[Finding] = Field([], description="the same anomalies by what caused them; none in older verdicts")
    preconditions: list[Precondition]
    availability: dict[str, Any]
    redelivered: dict[str, int] = Field({}, description="deliveries of what a group had had before, by cause: legal")
    at_risk: dict[int, int] = Field(
        {},
        description="writes acknowledged while a fault could take them, by the fewest brokers that had to have them, 0 "
        "where that is not known",
    )
    transactions: dict[str, Any] = {}
    faults: list[dict[str, Any]]
    versions: dict[str, str]
    judge: dict[str, str] = Field({}, description="the versions of what judged; `versions` are those of what recorded")

    def to_json(self, indent: int | None = None) -> str:
        """The text of verdict.json; without ``indent`` one line."""
        return self.model_dump_json(by_alias=True, indent=indent, exclude=None if self.judge else {"judge"})
