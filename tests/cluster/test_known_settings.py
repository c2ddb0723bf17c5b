"""Settings of a scenario that brokers do not know are refused, but where a plugin's may be meant."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from harness.cluster.known_settings import (
    Setting,
    Settings,
    as_text,
    broker_settings,
    check_settings,
    known,
    loads_plugin,
    of_jars,
)
from harness.cluster.provider import Cluster
from harness.cluster.spec import ClusterSpec
from harness.core.errors import ClusterError, ScenarioError
from harness.core.topology import Node, Topology
from tests.cluster.answering import broker, configs
from tests.cluster.jar_settings import lines, settings

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
STRING, LONG, LIST, PASSWORD, NO_TYPE = 2, 5, 7, 9, 0
#: And one of a later version.
TYPED = {
    "log.retention.ms": Setting("1", kind=LONG),
    "replica.lag.time.max.ms": Setting("1", kind=LONG),
    "ssl.key.password": Setting(None, True, PASSWORD),
    "metric.reporters": Setting("", kind=LIST),
    "log.dirs": Setting("/data", kind=LIST),
    "authorizer.class.name": Setting("", kind=STRING),
    "replica.lag.time.max.mss": Setting(None, True, NO_TYPE),
    "super.users": Setting(None, True, NO_TYPE),
}


def check(
    config: Mapping[str, str], ask: Callable[[Cluster], Settings], version: str = "4.3.1"
) -> tuple[Settings, list[str]]:
    notes: list[str] = []
    metadata = "kraft" if version == "4.3.1" else "zookeeper"
    spec = ClusterSpec.model_validate({"version": version, "metadata": metadata, "config": config})
    return check_settings(cast(Cluster, None), spec, notes.append, ask), notes


def checked(*names: str, listed: Mapping[str, Setting] = UNTYPED, version: str = "4.3.1", **config: str) -> list[str]:
    given = {**dict.fromkeys(names, "1"), **{name.replace("_", "."): value for name, value in config.items()}}
    settings, notes = check(given, lambda cluster: {"b1": listed}, version)
    assert settings == {"b1": listed}
    return notes


def test_a_setting_without_a_type_is_not_a_broker_setting() -> None:
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
        ({"no.setting.class.name": "com.example.Class"}, False),
    ],
)
def test_a_class_that_is_none_of_kafka_s_is_a_plugin(config: dict[str, str], loads: bool) -> None:
    assert loads_plugin(config, TYPED) is loads


def test_settings_of_a_plugin_or_of_one_listener_are_accepted() -> None:
    assert checked("my.own", listed=TYPED, authorizer_class_name="com.example.Authorizer") == [
        "cluster.config: the brokers know no setting 'my.own'; a plugin may"
    ]
    assert checked("listener.name.client.ssl.keystore.location", listed=TYPED) == []


def test_settings_of_kafkas_own_classes_are_accepted_if_these_are_loaded() -> None:
    own = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    assert checked("super.users", listed=TYPED, authorizer_class_name=own) == []
    assert checked("config.providers.file.class", "kafka.csv.metrics.dir", listed=TYPED) == []
    with pytest.raises(ScenarioError):
        checked("my.own", listed=TYPED, authorizer_class_name=own)


def test_nearly_a_setting_is_refused_beside_a_plugin_too() -> None:
    with pytest.raises(ScenarioError, match="did you mean"):
        checked("replica.lag.time.max.mss", listed=TYPED, authorizer_class_name="com.example.Authorizer")


def test_broker_settings_are_stored_without_secrets() -> None:
    settings: Settings = {"b1": {"b": Setting("2"), "a": Setting("x", True)}, "b2": {}}
    assert json.loads(as_text(settings)) == {"b1": {"a": None, "b": "2"}, "b2": {}}


def test_a_broker_that_lists_no_types_knows_only_its_own_settings() -> None:
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


def test_a_broker_that_lists_no_setting_at_all_tells_nothing_of_those_that_are_given() -> None:
    with pytest.raises(ClusterError, match=r"nobody knows whether .* \(they listed none\)$"):
        checked("replica.lag.time.max.mss", listed={})
    assert checked(listed={}) == []


def test_of_several_brokers_one_that_lists_them_is_enough() -> None:
    with pytest.raises(ScenarioError, match=r"Kafka ignores 'replica\.lag\.time\.max\.mss'"):
        check({"replica.lag.time.max.mss": "1"}, lambda cluster: {"b1": {}, "b2": TYPED}, "4.3.1")


def silent(cluster: Cluster) -> Settings:
    raise ClusterError("b1 listed no settings within 30 s")


@pytest.mark.parametrize(("version", "refuses"), [("4.3.1", False), ("2.5.1", True)])
def test_only_the_jars_refuse_a_setting_if_the_broker_does_not_answer(version: str, refuses: bool) -> None:
    assert check({"log.dirs": "1"}, silent, version) == (
        {},
        ["cluster.config: nobody knows whether the brokers know its settings (b1 listed no settings within 30 s)"],
    )
    if refuses:
        with pytest.raises(ScenarioError, match=r"Kafka ignores 'anything', a name it does not know$"):
            check({"anything": "1"}, silent, version)
    else:
        check({"anything": "1"}, silent, version)


#: What a broker of 1.1 to 2.5 lists of its file, and what one of 0.10 does.
ECHOED = {"replica.lag.time.max.mss": Setting(None, sensitive=True), "anything": Setting(None, sensitive=True)}
OLD = [("0.10.2.2", {}), ("0.11.0.3", {}), ("1.1.1", ECHOED), ("2.5.1", ECHOED)]


@pytest.mark.parametrize(("version", "listed"), OLD)
def test_brokers_before_2_6_know_the_settings_that_their_jars_define(version: str, listed: dict[str, Setting]) -> None:
    for name, meant in (("replica.lag.time.max.mss", "; did you mean 'replica.lag.time.max.ms'?"), ("anything", "")):
        with pytest.raises(ScenarioError) as refused:
            checked(name, listed=listed, version=version)
        assert str(refused.value) == f"cluster.config: Kafka ignores {name!r}, a name it does not know{meant}"
    assert checked("replica.lag.time.max.ms", "ssl.key.password", listed=listed, version=version) == []
    assert checked("listener.name.client.ssl.keystore.location", listed=listed, version=version) == []


@pytest.mark.parametrize(("version", "listed"), OLD)
def test_with_a_plugin_old_brokers_refuse_only_near_misses_of_their_settings(
    version: str, listed: dict[str, Setting]
) -> None:
    plugin = {"authorizer_class_name": "com.example.Authorizer"}
    assert checked("anything", listed=listed, version=version, **plugin) == [
        "cluster.config: the brokers know no setting 'anything'; a plugin may"
    ]
    with pytest.raises(ScenarioError, match="did you mean"):
        checked("replica.lag.time.max.mss", listed=listed, version=version, **plugin)


@pytest.mark.parametrize(
    ("name", "version", "there"),
    [
        ("port", "2.5.1", True),
        ("inter.broker.listener.name", "0.10.1.1", False),
        ("inter.broker.listener.name", "0.10.2.0", True),
        ("transaction.max.timeout.ms", "0.10.2.2", False),
        ("transaction.max.timeout.ms", "0.11.0.0", True),
        ("ssl.principal.mapping.rules", "2.3.1", True),
        ("port", "2.6.0", False),
    ],
)
def test_a_version_has_the_settings_of_its_time(name: str, version: str, there: bool) -> None:
    assert (name in of_jars(version)) is there


def test_a_broker_of_another_vendor_knows_the_settings_that_it_lists() -> None:
    assert checked("confluent.own", listed={"confluent.own": Setting("1")}, version="2.5.1") == []


@pytest.mark.parametrize(
    "form",
    [
        "<tr>\n<td>a.b</td><td>says <code>x</code></td><td>list</td></tr>",
        "<tr>\n<td>a.b</td></td><td>says <code>x</code></td></td><td>list</td></td></tr>",
        "<ul>\n<li><b>a.b</b>: says <code>x</code><br/><ul><li><b>Type</b>: list</li></ul>\n</li>",
        '<li>\n<h4><a id="a.b" href="#a.b">a.b</a></h4>\n<p>says</p>\n<tr><th>Type:</th><td>list</td></tr>',
    ],
)
def test_the_settings_that_the_jars_print_are_parsed(form: str) -> None:
    assert settings(form) == {"a.b": "list"}


def test_of_a_setting_it_is_kept_from_when_to_when_it_was_there() -> None:
    known = {"0.10.2.2": {"a": "int", "b": "int"}, "1.0.2": {"a": "int", "b": "long"}, "1.1.1": {"b": "long"}}
    assert lines([*known], known) == ["a int 0.10.2 1.0", "b int 0.10.2 0.10.2", "b long 1.0"]


def run_with(*brokers: Node) -> Settings:
    return broker_settings(cast(Cluster, SimpleNamespace(topology=Topology(brokers, brokers[0]))))


#: As a broker answers (Kafka, DescribeConfigsResponse): the last has no config type, as what a broker does not know.
LISTED = (
    ("replica.lag.time.max.ms", "30000", False, LONG),
    ("ssl.key.password", None, True, PASSWORD),
    ("replica.lag.time.max.mss", None, True, NO_TYPE),
)


@pytest.mark.parametrize(("version", "typed"), [(0, False), (2, False), (3, True)])
def test_a_broker_lists_its_settings_with_their_types_from_2_6_on(version: int, typed: bool) -> None:
    with broker(configs(version, *LISTED)) as b1:
        assert run_with(b1) == {
            "b1": {name: Setting(value, secret, kind if typed else None) for name, value, secret, kind in LISTED}
        }


def test_a_broker_of_before_0_11_cannot_list_them() -> None:
    with broker() as b1:
        assert run_with(b1) == {"b1": {}}


def test_each_broker_is_asked_for_its_own() -> None:
    other = ("replica.lag.time.max.ms", "500", False, LONG)
    with broker(configs(3, LISTED[0])) as b1, broker(configs(3, other)) as b2:
        found = run_with(b1, replace(b2, name="b2", id=2))
    assert {name: one["replica.lag.time.max.ms"].value for name, one in found.items()} == {"b1": "30000", "b2": "500"}


def test_one_that_refuses_to_list_them_is_no_proof_that_it_knows_a_name() -> None:
    not_authorized = 31
    with (
        broker(configs(3, error=not_authorized)) as b1,
        pytest.raises(ClusterError, match="nobody knows whether"),
    ):
        check({"replica.lag.time.max.mss": "1"}, lambda cluster: run_with(b1))
