"""The steps of a timeline in a file: ``wait``, ``until``, ``inject``, ``heal``, ``elect``, ``random``, and those that
workloads add."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, create_model, model_validator

from harness.core.quantities import Duration, Positive, PositiveDuration
from harness.core.step import TimelineStep
from nemesis.catalogue import FAULTS
from nemesis.fault import Fault
from nemesis.targets import Expression, parts
from workloads.catalogue import WORKLOADS
from workloads.workload import WorkloadStep


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Named(_Part):
    """The keys of ``inject:`` in addition to the fault's own parameters."""

    fault: str
    name: str | None = Field(
        None, alias="as", description="the injection's name, for `heal`, and as a target: the nodes that it hit"
    )
    pin: dict[str, Expression] = Field({}, description="roles to remember as they are before the fault")

    def __str__(self) -> str:
        parameters = self.model_dump(
            mode="json", by_alias=True, exclude_defaults=True, exclude={"fault", "name", "pin"}
        )
        words = [f"{key} {_words(value)}" for key, value in parameters.items()]
        return " ".join([self.fault, *words, *([f"as {self.name}"] if self.name else [])])


class Injection(Named, Fault):
    """One fault of the catalogue with its parameters and, perhaps, a name and pins."""


def _injectable(kind: str, fault: type[Fault]) -> type[BaseModel]:
    only: Any = Literal[kind]
    return create_model(
        fault.__name__, __base__=(Named, fault), __module__=__name__, __doc__=fault.__doc__, fault=(only, ...)
    )


if TYPE_CHECKING:
    AnyInjection = Injection
else:
    AnyInjection = Annotated[
        Union[tuple(_injectable(kind, fault) for kind, fault in FAULTS.items())],  # noqa: UP007 - made of data
        Field(discriminator="fault"),
    ]


class Condition(_Part):
    """What an ``until`` awaits: exactly one of ``isr``, ``leader``, ``acknowledged``."""

    isr: Expression | None = Field(None, description="the watched partition's ISR is exactly these nodes")
    leader: Expression | None = Field(None, description="changed (since the last inject), none, or the leader's name")
    acknowledged: Positive | None = Field(None, description="so many writes, since the last inject or the start")
    within: PositiveDuration = Field(30.0, description="how long it may take")

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(value is not None for value in (self.isr, self.leader, self.acknowledged)) != 1:
            raise ValueError("until awaits exactly one of isr, leader, acknowledged")
        return self

    def targets(self) -> list[Expression]:
        """The expressions that have to be resolved before the condition can be checked."""
        roles = [] if self.leader in {None, "changed", "none"} else [self.leader]
        return [expression for expression in (self.isr, *roles) if expression is not None]

    def __str__(self) -> str:
        if self.acknowledged is not None:
            return f"{self.acknowledged} acknowledged"
        return f"ISR {_words(self.isr)}" if self.isr is not None else f"leader {_words(self.leader)}"


class Draw(_Part):
    """Random faults, chosen by the run's seed: one in each period of ``every``, for the time of ``for``."""

    faults: list[AnyInjection] = Field(
        min_length=1, description="the faults to choose from: none that needs an earlier one"
    )
    every: PositiveDuration = Field(10.0, description="the period in which one fault is injected and healed")
    for_: PositiveDuration = Field(60.0, alias="for", description="how long the step lasts")

    @model_validator(mode="after")
    def _drawable(self) -> Self:
        if self.for_ < self.every:
            raise ValueError(f"random: nothing fits: for ({self.for_:g} s) must be at least every ({self.every:g} s)")
        for fault in self.faults:
            if not fault.drawable:
                raise ValueError(f"random: {fault.fault} needs an earlier fault: inject it in a step of its own")
            if fault.name or fault.pin:
                raise ValueError("random: its faults may have neither `as` nor `pin`")
        return self

    def __str__(self) -> str:
        return f"one of {', '.join(str(fault) for fault in self.faults)} every {self.every:g} s for {self.for_:g} s"


class Wait(TimelineStep):
    """Let time pass: `wait: 5s`."""

    wait: Duration = Field(ge=0)

    @property
    def longest(self) -> float:
        return self.wait

    def __str__(self) -> str:
        return f"wait {self.wait:g} s"


class Until(TimelineStep):
    """Wait for a condition. If it times out, the timeline ends, and the run is ``unknown``."""

    until: Condition

    @property
    def longest(self) -> float:
        return self.until.within

    def __str__(self) -> str:
        return f"until {self.until} within {self.until.within:g} s"


class Inject(TimelineStep):
    """Break something."""

    inject: AnyInjection

    @property
    def longest(self) -> float:
        return self.inject.takes


class Heal(TimelineStep):
    """Undo one injection by its name, or `all`."""

    heal: str


class Elect(TimelineStep):
    """Ask for an unclean election in the watched partition: a replica outside the ISR may be elected (KIP-460).

    Kafka elects only if the partition has no leader. Without an election the run is ``unknown``.
    """

    elect: Literal["unclean"]


class Random(TimelineStep):
    """Break things at random."""

    random: Draw

    @property
    def longest(self) -> float:
        # (The last fault may begin at the very end of the step.)
        return self.random.for_ + max(fault.takes for fault in self.random.faults)


_OURS: tuple[type[TimelineStep], ...] = (Wait, Until, Inject, Heal, Elect)
_OF_WORKLOADS = [step for workload in WORKLOADS.values() for step in workload.steps]
_EVERY: list[type[TimelineStep]] = [*_OURS, *_OF_WORKLOADS, Random]

#: Every kind of step, by its key.
STEPS = {step.__name__.lower(): step for step in _EVERY}


def injections(step: TimelineStep) -> Sequence[Injection]:
    """The faults that a step injects, or may choose at random."""
    if isinstance(step, Inject):
        return [step.inject]
    return step.random.faults if isinstance(step, Random) else []


def _key(step: Any) -> str | None:
    if isinstance(step, TimelineStep):
        return step.key
    return next(iter(step), None) if isinstance(step, dict) and len(step) == 1 else None


if TYPE_CHECKING:
    Step = Wait | Until | Inject | Heal | Elect | WorkloadStep | Random
else:
    Step = Annotated[
        Union[tuple(Annotated[step, Tag(key)] for key, step in STEPS.items())],  # noqa: UP007 - made of data
        Discriminator(
            _key,
            custom_error_type="step",
            custom_error_message=f"a step has exactly one key, one of {', '.join(STEPS)}",
        ),
    ]


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | list | tuple):
        return ", ".join(parts(value if isinstance(value, str) else tuple(value)))
    return str(value)
