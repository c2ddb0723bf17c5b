"""Settings of a scenario that brokers do not know are refused, but where a plugin's may be meant."""

import json
from collections.abc import Mapping
from typing import cast

import pytest

from harness.cluster.known_settings import Setting, Settings, as_text, check_settings, known, loads_plugin
from harness.cluster.provider import Cluster
from harness.core.errors import ClusterError, ScenarioError

#: As a broker of 1.1 to 2.5 lists its settings: unknown names of its file are among them.
UNTYPED = {
    name: Setting(None if sensitive else "1", sensitive)
    for name, sensitive in {
        "log.retention.ms": False,
        "replica.lag.time.max.ms": False,
        "ssl.key.password": True,
        "replica.lag.time.max.msec": True,
        "retention.ms": True,
        "super.users": True,
    }.items()
}
LONG, LIST, CLASS, PASSWORD, NO_TYPE = 5, 7, 8, 9, 0
#: And one of a later version.
TYPED = {
    "log.retention.ms": Setting("1", kind=LONG),
    "replica.lag.time.max.ms": Setting("1", kind=LONG),
    "ssl.key.password": Setting(None, True, PASSWORD),
    "metric.reporters": Setting("", kind=LIST),
    "log.dirs": Setting("/data", kind=LIST),
    "authorizer.class.name": Setting("", kind=CLASS),
    "replica.lag.time.max.mss": Setting(None, True, NO_TYPE),
    "super.users": Setting(None, True, NO_TYPE),
}


def checked(*names: str, listed: Mapping[str, Setting] = UNTYPED, **config: str) -> list[str]:
    notes: list[str] = []
    given = {**dict.fromkeys(names, "1"), **{name.replace("_", "."): value for name, value in config.items()}}
    settings = check_settings(cast(Cluster, None), given, notes.append, lambda cluster: {"b1": listed})
    assert settings == {"b1": listed}
    return notes


def test_what_has_no_type_is_none_of_a_broker_s_settings() -> None:
    assert known(TYPED) == TYPED.keys() - {"replica.lag.time.max.mss", "super.users"}


def test_a_name_that_no_broker_knows_is_refused() -> None:
    for name, meant in (("replica.lag.time.max.mss", "; did you mean 'replica.lag.time.max.ms'?"), ("super.users", "")):
        with pytest.raises(ScenarioError) as refused:
            checked("log.retention.ms", name, listed=TYPED)
        assert str(refused.value) == f"cluster.config: Kafka ignores {name!r}, a name it does not know{meant}"


@pytest.mark.parametrize(
    ("config", "loads"),
    [
        ({"metric.reporters": "com.example.Reporter"}, True),
        ({"metric.reporters": "org.apache.kafka.common.metrics.JmxReporter, com.example.Reporter"}, True),
        ({"authorizer.class.name": "com.example.Authorizer"}, True),
        ({"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}, False),
        ({"log.dirs": "/data/kafka"}, False),
        ({"metric.reporters": ""}, False),
        ({"super.users": "com.example.User"}, False),
    ],
)
def test_a_class_that_is_none_of_kafka_s_is_a_plugin(config: dict[str, str], loads: bool) -> None:
    assert loads_plugin(config, TYPED) is loads


def test_what_a_plugin_may_know_and_what_is_of_one_listener_is_taken() -> None:
    assert checked("super.users", listed=TYPED, authorizer_class_name="com.example.Authorizer") == [
        "cluster.config: the brokers know no setting 'super.users'; a plugin may"
    ]
    assert checked("listener.name.client.ssl.keystore.location", listed=TYPED) == []


def test_nearly_a_setting_is_refused_beside_a_plugin_too() -> None:
    with pytest.raises(ScenarioError, match="did you mean"):
        checked("replica.lag.time.max.mss", listed=TYPED, authorizer_class_name="com.example.Authorizer")


def test_what_brokers_run_with_is_told_but_for_what_is_secret() -> None:
    settings: Settings = {"b1": {"b": Setting("2"), "a": Setting("x", True)}, "b2": {}}
    assert json.loads(as_text(settings)) == {"b1": {"a": None, "b": "2"}, "b2": {}}


def test_what_a_broker_lists_without_a_type_is_none_of_its_settings() -> None:
    assert known(UNTYPED) == {"log.retention.ms", "replica.lag.time.max.ms", "ssl.key.password"}


def test_settings_that_it_knows_are_taken() -> None:
    assert checked("replica.lag.time.max.ms", "ssl.key.password", "log.retention.ms") == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("replica.lag.time.max.msec", "replica.lag.time.max.ms"),
        ("replica.lag.time.ms", "replica.lag.time.max.ms"),
        ("retention.ms", "log.retention.ms"),
    ],
)
def test_one_that_is_nearly_a_setting_is_refused(given: str, meant: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        checked("log.retention.ms", given)
    assert str(refused.value) == (
        f"cluster.config: Kafka ignores {given!r}, a name it does not know; did you mean {meant!r}?"
    )


def test_one_that_is_like_none_is_noted() -> None:
    assert checked("super.users") == ["cluster.config: the brokers know no setting 'super.users'; a plugin may"]


@pytest.mark.parametrize("given", [(), ("anything",)])
def test_where_no_broker_lists_them_nothing_is_refused(given: tuple[str, ...]) -> None:
    assert checked(*given, listed={}) == []


def test_a_broker_that_does_not_answer_refuses_nothing() -> None:
    def silent(cluster: Cluster) -> Settings:
        raise ClusterError("b1 listed no settings within 30 s")

    notes: list[str] = []
    assert check_settings(cast(Cluster, None), {"anything": 1}, notes.append, silent) == {}
    assert notes == [
        "cluster.config: whether the brokers know its settings is not known (b1 listed no settings within 30 s)"
    ]
