from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from pydantic import ValidationError

from tests.workloads.mocking import Setting, every_setting
from workloads.catalogue import WORKLOADS
from workloads.clients.settings import consumer_config, final_reader_config, producer_config, transactor_config
from workloads.queue import Queue


def test_a_queue_says_how_kafka_is_used_unless_set_otherwise() -> None:
    assert Queue().model_dump(by_alias=True) == {
        "kind": "queue",
        "producers": 2,
        "consumers": 1,
        "consume": "assign",
        "rate": None,
        "record.size": 64,
        "keys": None,
        "acks": "all",
        "enable.idempotence": True,
        "retries": 2147483647,
        "max.in.flight.requests.per.connection": 5,
        "delivery.timeout.ms": 30000,
        "linger.ms": 5,
        "batch.size": 16384,
        "compression.type": "none",
        "isolation.level": "read_uncommitted",
        "config": {},
    }


def test_the_kind_of_every_workload_is_its_name_in_the_catalogue() -> None:
    for name, model in WORKLOADS.items():
        assert model().model_dump()["kind"] == name


@pytest.mark.parametrize(("acks", "idempotence"), [(0, False), (1, False), ("all", True), (-1, True), ("-1", True)])
def test_idempotence_follows_acks_where_it_is_not_given(acks: object, idempotence: bool) -> None:
    queue = Queue.model_validate({"acks": acks})
    assert queue.acks == str(acks).replace("-1", "all")
    assert queue.enable_idempotence is idempotence


def test_message_timeout_is_another_name_of_delivery_timeout() -> None:
    assert Queue.model_validate({"message.timeout.ms": 5000}).delivery_timeout_ms == 5000


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"acks": 1, "enable.idempotence": True}, "enable.idempotence needs acks: all, not 1"),
        ({"max.in.flight.requests.per.connection": 6}, "at most 5, not 6"),
        ({"retries": 0}, "retries of at least 1, not 0"),
        ({"linger.ms": 30000}, "linger.ms .30000. must be below delivery.timeout.ms"),
        ({"message.timeout.ms": 1000, "delivery.timeout.ms": 1000}, "one setting"),
        ({"acks": 2}, "'0', '1' or 'all'"),
        ({"acks": True}, "'0', '1' or 'all'"),
        ({"record.size": 15}, "greater than or equal to 16"),
        ({"producers": 0}, "greater than or equal to 1"),
        ({"consumer": 1}, "Extra inputs"),
    ],
)
def test_contradictory_or_unknown_settings_are_refused(given: dict[str, Any], reported: str) -> None:
    with pytest.raises(ValidationError, match=reported):
        Queue.model_validate(given)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"acks": 0},
        {"acks": 1, "retries": 0, "max.in.flight.requests.per.connection": 1},
        {"enable.idempotence": False, "max.in.flight.requests.per.connection": 1000},
        {"record.size": 50_000_000, "batch.size": 1},
        {"delivery.timeout.ms": 6, "compression.type": "zstd", "isolation.level": "read_committed"},
    ],
)
def test_librdkafka_takes_every_setting_and_warns_of_none(given: dict[str, Any], capfd: pytest.CaptureFixture) -> None:
    queue = Queue.model_validate(given)
    config = producer_config(queue, "127.0.0.1:9", "test", queue.record_size)
    assert config["acks"] == queue.acks
    Producer(config)
    Consumer(consumer_config(queue, "127.0.0.1:9", "test", "group")).close()
    Consumer(final_reader_config("127.0.0.1:9", queue.isolation_level)).close()
    warned = [line for line in capfd.readouterr().err.splitlines() if "CONFWARN" in line]
    # On a busy machine librdkafka has been seen to miss the servers that it was given, and then to connect to them.
    assert [line for line in warned if "No `bootstrap.servers` configured" not in line] == []


#: Settings that say nothing of how a client behaves here, and why.
WITHOUT_EFFECT = {
    "builtin.features": "what the library can do, said by itself",
    "auto.commit.interval.ms": "nothing is committed by itself",
    "consume.callback.max.messages": "nothing is consumed by callback",
    "debug": "logging",
    "enable.random.seed": "jitter alone is drawn by it",
    "enabled_events": "the binding's",
    "group.instance.id": "no member is a static one",
    "group.protocol.type": "there is but one",
    "group.remote.assignor": "of the protocol consumer alone",
    "interceptors": "there is none",
    "internal.termination.signal": "none",
    "log.queue": "logging",
    "log.thread.name": "logging",
    "log_level": "logging",
    "max.poll.records": "of share consumers",
    "partitioner": "the worker chooses the partition",
    "plugin.library.paths": "there is none",
    "share.acknowledgement.mode": "of share consumers",
    "sticky.partitioning.linger.ms": "the worker chooses the partition",
    "topic.blacklist": "there is none",
}
SPOKEN_IN_PLAINTEXT = ("ssl.", "sasl.", "https.", "enable.sasl", "enable.ssl")


def decides(setting: Setting) -> bool:
    """Whether a client's behaviour depends on it, and librdkafka does not warn of it whatever its value."""
    warned = any(word in setting.says for word in ("**DEPRECATED**", "**EXPERIMENTAL**", "LEGACY PROPERTY"))
    elsewhere = "see dedicated API" in setting.says or setting.name.startswith(("test.mock.", *SPOKEN_IN_PLAINTEXT))
    return not warned and not elsewhere and setting.name not in {*WITHOUT_EFFECT, "opaque", "ssl_engine_callback_data"}


def test_every_setting_of_librdkafka_is_stated(tmp_path: Path) -> None:
    settings = every_setting(tmp_path)
    assert {*WITHOUT_EFFECT} <= {setting.name for setting in settings}
    # A setting that topics have too is listed twice; ours are those of the client.
    real = {setting.name: setting.same_as for setting in reversed(settings)}
    transactor = transactor_config(Queue(), "127.0.0.1:9", "test", 64, "id", 30_000)
    consumer = consumer_config(Queue(), "127.0.0.1:9", "test", "group")
    for scope, config in (("P", transactor), ("C", consumer)):
        stated = {real.get(name, name) for name in config}
        wanted = {setting.same_as for setting in settings if setting.scope in {scope, "*"} and decides(setting)}
        assert wanted - stated == set()
