"""What brokers run with, and whether they know the settings of a scenario: Kafka silently ignores one that it does not
know."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from harness.cluster.provider import Cluster
from harness.cluster.spec import ClusterSpec
from harness.cluster.wire import Wire
from harness.core.errors import ClusterError, ScenarioError
from harness.core.version import parse_version

#: A choice: brokers that have just started answer their first requests late.
_ANSWER_S = 15.0
#: How similar an unknown name is to the one that was meant: a letter or a word too many or too few.
_ALIKE = 0.85
#: The types of settings that may name classes (DescribeConfigsResponse: LIST, CLASS), the type of an unknown one, and
#: how the names of such lists end.
_LIST, _CLASS, _NO_TYPE = 7, 8, 0
_LISTS_OF_CLASSES = ("reporters", "interceptors", "classes", "providers")
_KAFKA_S_OWN = ("org.apache.kafka.", "kafka.")
#: The name of a setting of type string ends so if it names a class (authorizer.class.name).
_NAMES_A_CLASS = (".class", ".class.name")

#: Settings that Kafka's code reads but does not define: of one listener (KIP-103), of providers of values (KIP-421), of
#: its metrics (kafka.metrics.KafkaMetricsConfig); and, with an authorizer, those of Kafka's own authorizers.
_READ_BESIDES = ("listener.name.", "config.providers.", "kafka.metrics.", "kafka.csv.metrics.")
_AUTHORIZER = "authorizer.class.name"
_READ_BY_AUTHORIZERS = ("super.users", "allow.everyone.if.no.acl.found", "authorizer.zookeeper.")

#: The settings of brokers before 2.6: name, type, the first minor version that defines it, and the last one, if a later
#: one does not (tests/cluster/jar_settings.py makes the file from Kafka's jars, from 0.10.1 on).
_OF_JARS = Path(__file__).with_name("settings_of_jars.txt")
#: From this version on a broker reports the types of its settings (KIP-569).
_TYPED_SINCE = (2, 6)


@dataclass(frozen=True)
class Setting:
    """A broker's setting. ``kind``: its type; None where the broker does not report types (before 2.6, KIP-569)."""

    value: str | None
    sensitive: bool = False
    kind: int | None = None


#: Each broker's settings, by the broker's name and then the setting's; empty if its version cannot list them.
Settings = Mapping[str, Mapping[str, Setting]]


def check_settings(
    cluster: Cluster,
    spec: ClusterSpec,
    note: Callable[[str], None],
    ask: Callable[[Cluster], Settings] | None = None,
) -> Settings:
    """Ask the brokers for their settings (``ask``), and check that they know the names in ``spec.config``. Returns the
    settings; nothing if the brokers did not answer, which is noted, or cannot list them (before 0.11, KIP-133).

    Raises ScenarioError for a name that they do not know; before 2.6 that is one that their version's jars do not
    define. A name that may be a plugin's, because the scenario loads one, is only noted. So is a name that resembles no
    setting, if the brokers are not Kafka's own and do not report types. Raises ClusterError where names are given, and
    brokers that can list their settings list none.
    """
    jars = of_jars(spec.version)
    try:
        settings = (ask or broker_settings)(cluster)
    except ClusterError as exc:
        note(f"cluster.config: nobody knows whether the brokers know its settings ({exc})")
        settings = {}
    first = next(filter(None, settings.values()), {})
    if not first and not jars:
        if settings and spec.config:
            raise ClusterError("cluster.config: nobody knows whether the brokers know its settings (they listed none)")
        return settings
    of_kafka = jars.keys() | known(first, bool(jars))
    typed, lines = bool(jars) or any(setting.kind is not None for setting in first.values()), []
    for name in (name for name in spec.config if name not in of_kafka and not _read_besides(name, spec.config)):
        near = get_close_matches(name, of_kafka, n=1, cutoff=_ALIKE)
        if near or (typed and not loads_plugin(spec.config, {**first, **jars})):
            meant = f"; did you mean {near[0]!r}?" if near else ""
            lines.append(f"cluster.config: Kafka ignores {name!r}, a name it does not know{meant}")
        else:
            note(f"cluster.config: the brokers know no setting {name!r}; a plugin may")
    if lines:
        raise ScenarioError("\n".join(lines))
    return settings


def of_jars(version: str) -> dict[str, Setting]:
    """The settings that the jars of a version before 2.6 define (kafka.server.KafkaConfig); none of a later one."""
    number = parse_version(version)
    if number >= _TYPED_SINCE:
        return {}
    found = {}
    for line in _OF_JARS.read_text(encoding="utf-8").splitlines():
        name, kind, *minors = line.split()
        first, *last = (parse_version(minor) for minor in minors)
        if first <= number and all(number[: len(minor)] <= minor for minor in last):
            found[name] = Setting(None, kind={"list": _LIST, "class": _CLASS}.get(kind))
    return found


def known(settings: Mapping[str, Setting], open_alone: bool = False) -> frozenset[str]:
    """The names among a broker's settings that Kafka knows. ``open_alone``: without those that are secret and have no
    type.

    A broker lists unknown names of its file, too: they have no type, and are kept secret as a password is
    (kafka.server.KafkaConfig, maybeSensitive).
    """
    return frozenset(
        name
        for name, setting in settings.items()
        if (
            setting.kind != _NO_TYPE
            if setting.kind is not None
            else not setting.sensitive or (not open_alone and _secret(name))
        )
    )


def loads_plugin(config: Mapping[str, object], settings: Mapping[str, Setting]) -> bool:
    """Whether a scenario's settings name a class that is not Kafka's: it may have settings of its own."""
    named = [
        str(value)
        for name, value in config.items()
        for kind in [settings[name].kind if name in settings else None]
        if kind == _CLASS
        or (kind == _LIST and name.endswith(_LISTS_OF_CLASSES))
        or (name in settings and name.endswith(_NAMES_A_CLASS))
    ]
    classes = (one.strip() for names in named for one in names.split(","))
    return any(one and not one.startswith(_KAFKA_S_OWN) for one in classes)


def as_text(settings: Settings) -> str:
    """The text of settings.json: secret values are null, as a broker reports them."""
    values = {
        broker: {name: None if one.sensitive else one.value for name, one in sorted(own.items())}
        for broker, own in settings.items()
    }
    return json.dumps(values, indent=1) + "\n"


def _read_besides(name: str, config: Mapping[str, object]) -> bool:
    return name.startswith(_READ_BESIDES) or (bool(config.get(_AUTHORIZER)) and name.startswith(_READ_BY_AUTHORIZERS))


def _secret(name: str) -> bool:
    return any(word in name for word in ("password", "secret", "jaas", ".key", "certificate", "ssl.", "sasl."))


def broker_settings(cluster: Cluster) -> Settings:
    """Each broker's settings. Raises ClusterError if one does not answer."""
    found = {}
    for broker in cluster.topology.brokers:
        with Wire(broker.endpoint, timeout=_ANSWER_S) as wire:
            found[broker.name] = {
                name: Setting(value, sensitive, kind) for name, value, sensitive, kind in wire.settings(broker.id)
            }
    return found
