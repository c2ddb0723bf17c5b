"""The steps of a timeline, as written: ``wait``, ``until``, ``inject``, ``heal``, ``elect``, ``random``, and those of
our own clients: ``replace``, ``kill``, ``leave`` and ``join``."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, create_model, model_validator

from harness.core.quantities import Duration
from nemesis.catalogue import FAULTS
from nemesis.fault import Fault
from nemesis.targets import Expression, parts


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Named(_Part):
    """What ``inject:`` may say besides the fault's own parameters."""

    fault: str
    name: str | None = Field(None, alias="as", description="the injection's name: heals it, and means the nodes it hit")
    pin: dict[str, Expression] = Field({}, description="roles to remember as they are before the fault")

    def __str__(self) -> str:
        said = self.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"fault", "name", "pin"})
        words = [f"{key} {_words(value)}" for key, value in said.items()]
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
    leader: Expression | None = Field(None, description="changed (since the last inject), none, or who leads")
    acknowledged: int | None = Field(None, ge=1, description="so many writes are acknowledged")
    within: Duration = Field(30.0, gt=0, description="how long it may take")

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if sum(value is not None for value in (self.isr, self.leader, self.acknowledged)) != 1:
            raise ValueError("until awaits exactly one of isr, leader, acknowledged")
        return self

    def targets(self) -> list[Expression]:
        """The expressions that must be resolved to look at it."""
        roles = [] if self.leader in {None, "changed", "none"} else [self.leader]
        return [expression for expression in (self.isr, *roles) if expression is not None]

    def __str__(self) -> str:
        if self.acknowledged is not None:
            return f"{self.acknowledged} acknowledged"
        return f"ISR {_words(self.isr)}" if self.isr is not None else f"leader {_words(self.leader)}"


class Draw(_Part):
    """Faults drawn by the run's seed, one ``every`` so often, ``for`` so long."""

    faults: list[AnyInjection] = Field(min_length=1, description="what is drawn from: none that needs an earlier one")
    every: Duration = Field(10.0, gt=0, description="one is injected and healed in each such time")
    for_: Duration = Field(60.0, gt=0, alias="for", description="how long the step lasts")

    @model_validator(mode="after")
    def _drawable(self) -> Self:
        if self.for_ < self.every:
            raise ValueError(f"random: nothing fits: for ({self.for_:g} s) must be at least every ({self.every:g} s)")
        for fault in self.faults:
            if not fault.drawable:
                raise ValueError(f"random: {fault.fault} presumes an earlier step; it cannot be drawn alone")
            if fault.name or fault.pin:
                raise ValueError("random: drawn faults have neither `as` nor `pin`")
        return self

    def __str__(self) -> str:
        return f"one of {', '.join(str(fault) for fault in self.faults)} every {self.every:g} s for {self.for_:g} s"


class _Step(_Part):
    @property
    def key(self) -> str:
        """The one key that it has."""
        return type(self).__name__.lower()

    @property
    def longest(self) -> float:
        """The seconds that it may take at most; what is broken or healed is so in a moment."""
        return 0.0

    def __str__(self) -> str:
        return f"{self.key} {getattr(self, self.key)}"


class Wait(_Step):
    """Let time pass: `wait: 5s`."""

    wait: Duration = Field(ge=0)

    @property
    def longest(self) -> float:
        return self.wait

    def __str__(self) -> str:
        return f"wait {self.wait:g} s"


class Until(_Step):
    """Wait for a condition. One that does not come ends the timeline, and makes the run ``unknown``."""

    until: Condition

    @property
    def longest(self) -> float:
        return self.until.within

    def __str__(self) -> str:
        return f"until {self.until} within {self.until.within:g} s"


class Inject(_Step):
    """Break something."""

    inject: AnyInjection


class Heal(_Step):
    """Undo one injection by its name, or `all`."""

    heal: str


class Elect(_Step):
    """Ask for an unclean election in the watched partition: a replica outside the ISR may be elected (KIP-460).

    It comes only where the partition has no leader; one that does not come makes the run ``unknown``.
    """

    elect: Literal["unclean"]


class Replacement(_Part):
    """A transactional producer of ours."""

    producer: int = Field(ge=1, description="which one: 1 is the first")

    def __str__(self) -> str:
        return f"producer {self.producer}"


class Replace(_Step):
    """Kill a transactional producer in the middle of what it does; another with its transactional.id takes its place.

    The one that takes its place fences what is left of the dead one (KIP-98, 2.5).
    """

    replace: Replacement


class Member(_Part):
    """A member of our consumer group."""

    member: int = Field(ge=1, description="which one: 1 is the first")

    def __str__(self) -> str:
        return f"member {self.member}"


class Kill(_Step):
    """Kill a member in the middle of what it does: the group waits for it until its session is over."""

    kill: Member


class Leave(_Step):
    """Have a member finish what it does and leave the group, which then need not wait for it."""

    leave: Member


class Join(_Step):
    """Have a member that was killed or has left join again, as the next incarnation of the same worker."""

    join: Member


class Random(_Step):
    """Break things at random."""

    random: Draw

    @property
    def longest(self) -> float:
        return self.random.for_


#: Every kind of step, by its key.
STEPS: dict[str, type[BaseModel]] = {
    "wait": Wait,
    "until": Until,
    "inject": Inject,
    "heal": Heal,
    "elect": Elect,
    "replace": Replace,
    "kill": Kill,
    "leave": Leave,
    "join": Join,
    "random": Random,
}


def _key(step: Any) -> str | None:
    if isinstance(step, _Step):
        return step.key
    return next(iter(step), None) if isinstance(step, dict) and len(step) == 1 else None


Step = Annotated[
    Annotated[Wait, Tag("wait")]
    | Annotated[Until, Tag("until")]
    | Annotated[Inject, Tag("inject")]
    | Annotated[Heal, Tag("heal")]
    | Annotated[Elect, Tag("elect")]
    | Annotated[Replace, Tag("replace")]
    | Annotated[Kill, Tag("kill")]
    | Annotated[Leave, Tag("leave")]
    | Annotated[Join, Tag("join")]
    | Annotated[Random, Tag("random")],
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
