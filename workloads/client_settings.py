"""Client settings: what a scenario may choose, under Kafka's own names, and what librdkafka is then told."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Acks = Literal["0", "1", "all"]
Isolation = Literal["read_uncommitted", "read_committed"]

_MOST_IN_FLIGHT_OF_IDEMPOTENCE = 5


class ClientSettings(BaseModel):
    """The settings of producers and consumers that a scenario may choose.

    Defaults are those of the Java client of Kafka 3 and later, apart from ``delivery.timeout.ms`` (30 s instead of 2
    minutes: a run lasts about as long). Contradictions are refused, never resolved silently.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)

    acks: Acks = Field("all", description="which replicas must have a record before it is acknowledged")
    enable_idempotence: bool = Field(
        default_factory=lambda given: given.get("acks") == "all",
        alias="enable.idempotence",
        description="default: true if acks is all, else false",
    )
    retries: int = Field(2147483647, ge=0, le=2147483647)
    max_in_flight: int = Field(
        _MOST_IN_FLIGHT_OF_IDEMPOTENCE, ge=1, le=1000000, alias="max.in.flight.requests.per.connection"
    )
    delivery_timeout_ms: int = Field(
        30_000, ge=1, alias="delivery.timeout.ms", description="also accepted as message.timeout.ms"
    )
    linger_ms: int = Field(5, ge=0, le=900_000, alias="linger.ms")
    batch_size: int = Field(16_384, ge=1, le=2147483647, alias="batch.size", description="bytes")
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field("none", alias="compression.type")
    isolation_level: Isolation = Field("read_uncommitted", alias="isolation.level")

    @model_validator(mode="before")
    @classmethod
    def _one_name_for_the_delivery_timeout(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "message.timeout.ms" not in given:
            return given
        if "delivery.timeout.ms" in given:
            raise ValueError("delivery.timeout.ms and message.timeout.ms are one setting: give one of them")
        renamed = dict(given)
        renamed["delivery.timeout.ms"] = renamed.pop("message.timeout.ms")
        return renamed

    @field_validator("acks", mode="before")
    @classmethod
    def _acks_as_text(cls, acks: Any) -> Any:
        if isinstance(acks, bool):
            return acks
        return {"-1": "all"}.get(str(acks), str(acks))

    @model_validator(mode="after")
    def _no_contradiction(self) -> Self:
        if self.linger_ms >= self.delivery_timeout_ms:
            raise ValueError(
                f"linger.ms ({self.linger_ms}) must be below delivery.timeout.ms ({self.delivery_timeout_ms})"
            )
        if not self.enable_idempotence:
            return self
        if self.acks != "all":
            raise ValueError(f"enable.idempotence needs acks: all, not {self.acks}")
        if self.max_in_flight > _MOST_IN_FLIGHT_OF_IDEMPOTENCE:
            raise ValueError(
                f"enable.idempotence (the default with acks: all) allows max.in.flight.requests.per.connection of at "
                f"most {_MOST_IN_FLIGHT_OF_IDEMPOTENCE}, not {self.max_in_flight}: "
                "lower it, or set enable.idempotence: false"
            )
        if self.retries < 1:
            raise ValueError(
                "enable.idempotence (the default with acks: all) needs retries of at least 1, not 0: "
                "raise it, or set enable.idempotence: false"
            )
        return self
