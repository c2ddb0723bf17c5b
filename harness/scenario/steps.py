"""The steps of a timeline: each is written as a mapping of one key, its kind, to its body."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError
from typing_extensions import override

from harness.core.quantities import Duration
from nemesis.catalogue import FAULTS
from nemesis.fault import Fault
from nemesis.targets import Expression, parts


def refusal(says: str, *where: str | int, value: object = None) -> ValidationError:
    """A validation error at a place below the one that is being validated; pydantic puts that place in front."""
    kind = PydanticCustomError("refused", "{says}", {"says": says})
    return ValidationError.from_exception_data("scenario", [InitErrorDetails(type=kind, loc=where, input=value)])


def unknown(what: str, given: object, known: Mapping[str, object]) -> str:
    """``no fault is called 'kil'; did you mean 'kill'?``, or what is known where nothing is near."""
    near = get_close_matches(str(given), known, n=1)
    return f"no {what} is called {given!r}; " + (f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}")


def _fault(given: object) -> object:
    if not isinstance(given, Mapping):
        return given
    if "fault" not in given:
        raise refusal(f"say which fault, such as `fault: partition`; known: {', '.join(FAULTS)}")
    kind = given["fault"]
    if kind not in FAULTS:
        raise refusal(unknown("fault", kind, FAULTS), "fault", value=kind)
    return FAULTS[kind].model_validate({key: value for key, value in given.items() if key != "fault"})


#: A fault written as a mapping: ``fault`` is its kind in the catalogue, the other keys are its parameters.
AnyFault = Annotated[SerializeAsAny[Fault], BeforeValidator(_fault)]


class Step(BaseModel, ABC):
    """One step of a timeline. ``str()`` of it is what progress displays and run.json call it."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    kind: ClassVar[str]
    #: The field that the body is, where it is no mapping of fields.
    body: ClassVar[str | None] = None

    @property
    @abstractmethod
    def lasts(self) -> float:
        """Seconds that it takes at most; 0 for what is done at once."""

    @model_serializer(mode="plain")
    def _as_written(self) -> dict[str, Any]:
        return {self.kind: self._body()}

    def _body(self) -> Any:
        fields = type(self).model_fields
        values = {(field.alias or name): getattr(self, name) for name, field in fields.items()}
        return {key: _plain(value) for key, value in values.items() if value not in (None, {}, ())}


class Wait(Step):
    """Let time pass."""

    kind: ClassVar[str] = "wait"
    body: ClassVar[str | None] = "seconds"

    seconds: Duration

    @property
    def lasts(self) -> float:
        return self.seconds

    @override
    def _body(self) -> str:
        return _seconds(self.seconds)

    def __str__(self) -> str:
        return f"wait {_seconds(self.seconds)}"


class Until(Step):
    """Wait for one condition. Where it does not come ``within`` so many seconds, the run is ``unknown``."""

    kind: ClassVar[str] = "until"

    isr: Expression | None = Field(None, description="the ISR of the watched partition is exactly these nodes")
    leader: str | None = Field(
        None, description="changed: since the step began another one leads; none: nobody; or a target that leads"
    )
    acknowledged: int | None = Field(None, ge=1, description="so many writes of the run were acknowledged")
    within: Duration = Field(30.0, gt=0)

    @model_validator(mode="after")
    def _one_condition(self) -> Self:
        if sum(condition is not None for condition in (self.isr, self.leader, self.acknowledged)) != 1:
            raise ValueError("until awaits exactly one of isr, leader, acknowledged")
        return self

    def targets(self) -> Mapping[str, Expression]:
        """The expressions to resolve, by key."""
        leader = self.leader if self.leader not in {"changed", "none"} else None
        return {key: named for key, named in (("isr", self.isr), ("leader", leader)) if named is not None}

    @property
    def lasts(self) -> float:
        return self.within

    @override
    def _body(self) -> Any:
        return {**super()._body(), "within": _seconds(self.within)}

    def __str__(self) -> str:
        if self.isr is not None:
            awaited = f"ISR is {_named(self.isr)}"
        elif self.leader is not None:
            awaited = f"leader is {self.leader}"
        else:
            awaited = f"{self.acknowledged} acknowledged"
        return f"until {awaited}, within {_seconds(self.within)}"


class Inject(Step):
    """Inject a fault. ``name`` (``as:``) is what it is healed by, and what the nodes it hits are called afterwards."""

    kind: ClassVar[str] = "inject"

    fault: SerializeAsAny[Fault]
    name: str | None = Field(None, alias="as")
    pin: dict[str, Expression] = Field({}, description="roles remembered as they are before the fault")

    @model_validator(mode="before")
    @classmethod
    def _parameters_beside_the_name(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or isinstance(given.get("fault"), Fault):
            return given
        own = {key: given[key] for key in ("as", "pin") if key in given}
        return {**own, "fault": _fault({key: value for key, value in given.items() if key not in own})}

    @property
    def lasts(self) -> float:
        return 0.0

    @override
    def _body(self) -> Any:
        besides = {"as": self.name, "pin": _plain(self.pin)}
        return {**_written(self.fault), **{key: value for key, value in besides.items() if value}}

    def __str__(self) -> str:
        named = f" as {self.name}" if self.name else ""
        return f"inject {_told(self.fault)}{named}"


class Heal(Step):
    """Undo one injection by its name, or ``all``."""

    kind: ClassVar[str] = "heal"
    body: ClassVar[str | None] = "name"

    name: str

    @property
    def lasts(self) -> float:
        return 0.0

    @override
    def _body(self) -> str:
        return self.name

    def __str__(self) -> str:
        return f"heal {self.name}"


class RandomFaults(Step):
    """Inject a fault drawn from ``faults`` every so often; each lasts until the next one comes (seeded)."""

    kind: ClassVar[str] = "random"

    faults: tuple[AnyFault, ...] = Field(min_length=1)
    every: Duration = Field(10.0, gt=0)
    duration: Duration = Field(60.0, gt=0, alias="for")

    @model_validator(mode="after")
    def _drawable(self) -> Self:
        for index, fault in enumerate(self.faults):
            if not fault.drawable:
                raise refusal(
                    f"{fault.kind()} cannot be drawn at random: it presumes what went before; inject it by a step",
                    "faults",
                    index,
                )
        return self

    @property
    def lasts(self) -> float:
        return self.duration

    @override
    def _body(self) -> Any:
        return {
            "faults": [_written(fault) for fault in self.faults],
            "every": _seconds(self.every),
            "for": _seconds(self.duration),
        }

    def __str__(self) -> str:
        kinds = ", ".join(dict.fromkeys(fault.kind() for fault in self.faults))
        return f"random {kinds} every {_seconds(self.every)} for {_seconds(self.duration)}"


STEPS: dict[str, type[Step]] = {step.kind: step for step in (Wait, Until, Inject, Heal, RandomFaults)}


def step(given: object) -> object:
    """A step as it is written. Raises ValidationError with the place of the fault below the step."""
    if isinstance(given, Step):
        return given
    if not isinstance(given, Mapping) or len(given) != 1:
        raise refusal(f"a step is a mapping of one key to what it does: {', '.join(STEPS)}")
    [(kind, body)] = given.items()
    if kind not in STEPS:
        raise refusal(unknown("step", kind, STEPS), kind)
    wanted = STEPS[kind]
    try:
        return wanted.model_validate(body if wanted.body is None else {wanted.body: body})
    except ValidationError as exc:
        raise _below(kind, exc, wanted.body) from None


AnyStep = Annotated[SerializeAsAny[Step], BeforeValidator(step)]


def _below(kind: str, exc: ValidationError, body: str | None) -> ValidationError:
    details = [
        InitErrorDetails(
            type=PydanticCustomError(error["type"], "{says}", {"says": error["msg"]}),
            loc=(kind, *(part for part in error["loc"] if part != body)),
            input=error["input"],
        )
        for error in exc.errors()
    ]
    return ValidationError.from_exception_data("scenario", details)


def _written(fault: Fault) -> dict[str, Any]:
    return {"fault": fault.kind(), **fault.model_dump(mode="json", by_alias=True, exclude_defaults=True)}


def _told(fault: Fault) -> str:
    parameters = fault.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return " ".join([fault.kind(), *(f"{key} {_named(value)}" for key, value in parameters.items())])


def _named(value: object) -> str:
    return ", ".join(parts(tuple(value))) if isinstance(value, list | tuple) else str(value)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _seconds(value: float) -> str:
    return f"{value:g}s"
