"""Client settings: those that a scenario may choose, under Kafka's names, and the resulting settings of librdkafka."""

from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from harness.core.quantities import Flag, Whole
from workloads.clients.librdkafka import Value, settings_for

Acks = Literal["0", "1", "all"]
Isolation = Literal["read_uncommitted", "read_committed"]

#: A broker remembers so many batches of a producer (ProducerStateEntry, NUM_BATCHES_TO_RETAIN); clients refuse more.
_MOST_IN_FLIGHT_OF_IDEMPOTENCE = 5


class ClientSettings(BaseModel):
    """The settings of producers and consumers that a scenario may choose.

    Defaults are those of the Java client of Kafka 3 and later, apart from ``delivery.timeout.ms`` (30 s instead of 2
    minutes: a run lasts about as long). Contradictions are refused, never resolved silently.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)

    acks: Acks = Field("all", description="which replicas must have a record before it is acknowledged")
    enable_idempotence: Flag = Field(
        default_factory=lambda values: values.get("acks") == "all",
        alias="enable.idempotence",
        description="default: true if acks is all, else false",
    )
    retries: Whole = Field(2147483647, ge=0, le=2147483647, description="how often a record is sent again")
    max_in_flight: Whole = Field(
        _MOST_IN_FLIGHT_OF_IDEMPOTENCE,
        ge=1,
        le=1000000,
        alias="max.in.flight.requests.per.connection",
        description="requests without an answer yet",
    )
    delivery_timeout_ms: Whole = Field(
        30_000,
        ge=1,
        alias="delivery.timeout.ms",
        description="how long a record may take to be delivered; message.timeout.ms is another name for it",
    )
    linger_ms: Whole = Field(
        5, ge=0, le=900_000, alias="linger.ms", description="how long a batch waits for more records"
    )
    batch_size: Whole = Field(16_384, ge=1, le=2147483647, alias="batch.size", description="bytes")
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        "none", alias="compression.type", description="of batches"
    )
    isolation_level: Isolation = Field(
        "read_uncommitted", alias="isolation.level", description="of live consumers, and of the final read"
    )
    config: dict[str, Value] = Field(
        {}, description="any other librdkafka setting, under its name there; producers and consumers get what is theirs"
    )

    @model_validator(mode="before")
    @classmethod
    def _one_name_for_the_delivery_timeout(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "message.timeout.ms" not in values:
            return values
        if "delivery.timeout.ms" in values:
            raise ValueError("delivery.timeout.ms and message.timeout.ms are one setting: set one of them")
        renamed = dict(values)
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


#: Settings of librdkafka: property name to value.
Config = dict[str, Value]

#: A message that is re-sent first waits for at least 80 % of this (RD_KAFKA_RETRY_JITTER_PERCENT, rdkafka_int.h).
RETRY_BACKOFF_MS: Final = 100

#: The most records and bytes that may wait in a producer. The worker waits when either limit is reached. The number is
#: librdkafka's default of queue.buffering.max.messages; the bytes are a choice, for the memory of one machine that runs
#: brokers, too.
MOST_WAITING: Final = 100_000
MOST_WAITING_BYTES: Final = 256 * 1024 * 1024

#: The most records that are handed over together. A choice: they get one time of hand-over, and no delivery report is
#: taken meanwhile; fewer records cost more calls.
MOST_AT_ONCE: Final = 500

#: librdkafka's default of message.max.bytes.
_LIBRDKAFKA_MESSAGE_MAX_BYTES: Final = 1_000_000

#: Every setting that decides how a client behaves is set below, even to its default: librdkafka's defaults are not
#: neutral, and change between versions. (Settings that librdkafka calls deprecated or experimental keep their defaults,
#: because it warns about any value: api.version.request, enable.gapless.guarantee and others.) Timeouts fit clusters
#: under faults: a client must not wait long for a dead broker (librdkafka's defaults: 60 s for an answer, 30 s for a
#: connection), nor ask for a new leader only every 5 minutes.
_COMMON: Final[Config] = {
    "allow.auto.create.topics": False,
    "api.version.request.timeout.ms": 5_000,
    "broker.address.family": "any",
    "broker.address.ttl": 1_000,
    "client.dns.lookup": "use_all_dns_ips",
    "client.rack": "",
    "connections.max.idle.ms": 0,
    "enable.metrics.push": False,
    # Connect to every broker, so that a new leader can be reached at once.
    "enable.sparse.connections": False,
    "log.connection.close": False,
    "max.in.flight.requests.per.connection": 1_000_000,
    "message.copy.max.bytes": 65_535,
    "message.max.bytes": _LIBRDKAFKA_MESSAGE_MAX_BYTES,
    "metadata.max.age.ms": 900_000,
    # If no known broker answers any more, a client starts again from bootstrap.servers.
    "metadata.recovery.rebootstrap.trigger.ms": 300_000,
    "metadata.recovery.strategy": "rebootstrap",
    "receive.message.max.bytes": 100_000_000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": RETRY_BACKOFF_MS,
    "retry.backoff.max.ms": 1_000,
    "security.protocol": "plaintext",
    "socket.connection.setup.timeout.ms": 3_000,
    "socket.keepalive.enable": True,
    "socket.max.fails": 1,
    "socket.nagle.disable": True,
    "socket.receive.buffer.bytes": 0,
    "socket.send.buffer.bytes": 0,
    "socket.timeout.ms": 10_000,
    "statistics.interval.ms": 0,
    "topic.metadata.propagation.max.ms": 30_000,
    "topic.metadata.refresh.fast.interval.ms": 100,
    "topic.metadata.refresh.interval.ms": 1_000,
    "topic.metadata.refresh.sparse": True,
}

#: A choice: more than a leader needs that answers when its ISR shrank (replica.lag.time.max.ms, mostly 2 s).
_REQUEST_TIMEOUT_MS: Final = 8_000
#: A choice: more than a record adds to its value in a batch (key, headers, and the batch's own 61 bytes).
_RECORD_OVERHEAD: Final = 4_096


def producer_config(settings: ClientSettings, bootstrap: str, client_id: str, record_size: int) -> Config:
    """The settings of a producer. ``record_size``: bytes of a value. If a value is too large, the broker refuses it,
    not the client."""
    return _COMMON | {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "acks": settings.acks,
        "enable.idempotence": settings.enable_idempotence,
        "retries": settings.retries,
        "max.in.flight.requests.per.connection": settings.max_in_flight,
        "delivery.timeout.ms": settings.delivery_timeout_ms,
        # Longer than the leader needs to answer (for example, that the ISR shrank): the client must not give up the
        # connection before.
        "request.timeout.ms": min(_REQUEST_TIMEOUT_MS, settings.delivery_timeout_ms),
        "linger.ms": settings.linger_ms,
        "batch.size": settings.batch_size,
        "batch.num.messages": 1_000_000,
        "compression.type": settings.compression_type,
        "compression.level": -1,
        "message.max.bytes": max(_LIBRDKAFKA_MESSAGE_MAX_BYTES, record_size + _RECORD_OVERHEAD),
        "queue.buffering.max.messages": MOST_WAITING,
        "queue.buffering.max.kbytes": 2 * MOST_WAITING_BYTES // 1024,
        "queue.buffering.backpressure.threshold": 1,
        "delivery.report.only.error": False,
        **settings_for("P", settings.config),
    }


def consumer_config(
    settings: ClientSettings, bootstrap: str, client_id: str, group: str, session_ms: int = 10_000
) -> Config:
    """The settings of a live consumer. If the log no longer has an offset, the worker records an error.

    ``session_ms``: how long a member of a group may be silent before its partitions go to others.
    """
    return _reader_config(bootstrap, client_id, group, settings.isolation_level) | {
        "coordinator.query.interval.ms": 600_000,
        "group.protocol": "classic",
        "heartbeat.interval.ms": session_ms // 5,
        "max.poll.interval.ms": 300_000,
        "partition.assignment.strategy": "range,roundrobin",
        "session.timeout.ms": session_ms,
        **settings_for("C", settings.config),
    }


def transactor_config(
    settings: ClientSettings, bootstrap: str, client_id: str, record_size: int, transactional_id: str, timeout_ms: int
) -> Config:
    """The settings of a transactional producer. ``timeout_ms``: after this time the coordinator aborts a
    transaction."""
    return producer_config(settings, bootstrap, client_id, record_size) | {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": timeout_ms,
    }


def admin_config(bootstrap: str) -> Config:
    """The settings of a client that neither produces nor consumes."""
    return _COMMON | {"bootstrap.servers": bootstrap, "client.id": "kafka-trial-admin"}


def final_reader_config(bootstrap: str, isolation_level: Isolation, partitions: int = 1) -> Config:
    """The settings of the final read. ``partitions``: their number. It joins no group, but librdkafka needs a group
    name."""
    name = "kafka-trial-final"
    return _reader_config(bootstrap, name, name, isolation_level) | _statistics(partitions)


def replica_reader_config(bootstrap: str, isolation_level: Isolation, broker: int, partitions: int = 1) -> Config:
    """The settings of a reader of one broker's logs: every broker is a rack, named by the broker's id (KIP-392)."""
    name = f"kafka-trial-replica-{broker}"
    return _reader_config(bootstrap, name, name, isolation_level) | {
        "client.rack": str(broker),
        **_statistics(partitions),
    }


def _statistics(partitions: int) -> Config:
    """Statistics say which broker a reader fetches from. They cost a kilobyte per partition each time, hence the
    interval."""
    return {"statistics.interval.ms": max(100, partitions)}


def _reader_config(bootstrap: str, client_id: str, group: str, isolation_level: Isolation) -> Config:
    return _COMMON | {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "group.id": group,
        "isolation.level": isolation_level,
        "auto.offset.reset": "error",
        "check.crcs": True,
        "enable.auto.commit": False,
        "enable.auto.offset.store": True,
        "enable.partition.eof": True,
        "fetch.error.backoff.ms": 100,
        "fetch.max.bytes": 52_428_800,
        "fetch.min.bytes": 1,
        # With librdkafka's default, 1 s each time that its queue is full, a long read would mostly wait.
        "fetch.queue.backoff.ms": 50,
        "fetch.wait.max.ms": 100,
        "max.partition.fetch.bytes": 1_048_576,
        "queued.min.messages": 100_000,
        "queued.max.messages.kbytes": 65_536,
    }
