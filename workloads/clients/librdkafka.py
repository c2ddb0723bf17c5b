"""librdkafka's settings: their names, which clients take them, and which of them a scenario may set."""

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

Value = str | int | float | bool


class Known(NamedTuple):
    """One setting. ``of``: who takes it (``P`` producers, ``C`` consumers, ``*`` both); ``same_as``: the name of which
    it is an alias."""

    of: str
    default: str
    same_as: str | None


#: Settings that a scenario may not set: the recorders and the checkers rely on their values, or they do not belong to
#: one client. (``retry.backoff.ms`` decides which outcomes are certain: workloads.clients.outcomes.)
RELIED_ON: Final = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.enable",
        "auto.offset.reset",
        "bootstrap.servers",
        "check.crcs",
        "client.id",
        "delivery.report.only.error",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.gapless.guarantee",
        "enable.partition.eof",
        "enabled_events",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.protocol.type",
        "internal.termination.signal",
        "log.queue",
        "message.max.bytes",
        "metadata.broker.list",
        "partition.assignment.strategy",
        "plugin.library.paths",
        "queuing.strategy",
        "retry.backoff.ms",
        "security.protocol",
        "transactional.id",
    }
)


def main_name(key: str) -> str:
    """The main name of a setting, which may have an alias."""
    known = SETTINGS.get(key)
    return key if known is None or known.same_as is None else known.same_as


def settings_for(of: str, config: Mapping[str, Value]) -> dict[str, Value]:
    """The settings in ``config`` that a producer (``P``) or a consumer (``C``) takes: librdkafka warns about others."""
    return {key: value for key, value in config.items() if SETTINGS[key].of in {of, "*"}}


def is_default(key: str, value: Value) -> bool:
    """Whether this value is librdkafka's default for the setting."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text == SETTINGS[main_name(key)].default


def refused(
    config: Mapping[str, Value], producers: Mapping[str, Value], consumers: Mapping[str, Value]
) -> Iterator[str]:
    """librdkafka's own messages about what it refuses in ``config``, together with the harness's own settings."""
    from confluent_kafka import Consumer, KafkaException, Producer

    quiet = logging.Logger("librdkafka")
    quiet.disabled = True
    for client, of, own in ((Producer, "P", producers), (Consumer, "C", consumers)):
        offline = {key: value for key, value in own.items() if key != "bootstrap.servers"}
        try:
            made = client({**offline, **settings_for(of, config), "log_level": 0, "logger": quiet})
        except KafkaException as exc:
            yield str(exc.args[0].str()).strip()
        else:
            if isinstance(made, Consumer):
                made.close()


#: The list of ``rd_kafka_conf_properties_show`` of librdkafka 2.16, without settings that only code can set. Each line:
#: who takes the setting, its name, and its default, or ``=`` and its main name.
_LISTED: Final = """
P acks = request.required.acks
* allow.auto.create.topics false
* api.version.fallback.ms 0
* api.version.request true
* api.version.request.timeout.ms 10000
C auto.commit.enable true
C auto.commit.interval.ms 60000
C auto.offset.reset largest
P batch.num.messages 10000
P batch.size 1000000
* bootstrap.servers = metadata.broker.list
* broker.address.family any
* broker.address.ttl 1000
* broker.version.fallback 0.10.0
C check.crcs false
* client.dns.lookup use_all_dns_ips
* client.id rdkafka
* client.rack
P compression.codec inherit
P compression.level -1
P compression.type = compression.codec
* connections.max.idle.ms 0
C consume.callback.max.messages 0
C coordinator.query.interval.ms 600000
* debug
P delivery.report.only.error false
P delivery.timeout.ms = message.timeout.ms
C enable.auto.commit true
C enable.auto.offset.store true
P enable.gapless.guarantee false
P enable.idempotence false
* enable.metrics.push true
C enable.partition.eof false
* enable.random.seed true
* enable.sasl.oauthbearer.unsecure.jwt false
* enable.ssl.certificate.verification true
* enabled_events 0
C fetch.error.backoff.ms 500
C fetch.max.bytes 52428800
C fetch.message.max.bytes 1048576
C fetch.min.bytes 1
C fetch.queue.backoff.ms 1000
C fetch.wait.max.ms 500
C group.id
C group.instance.id
C group.protocol classic
C group.protocol.type consumer
C group.remote.assignor
C heartbeat.interval.ms 3000
* https.ca.location
* https.ca.pem
* internal.termination.signal 0
C isolation.level read_committed
P linger.ms = queue.buffering.max.ms
* log.connection.close true
* log.queue false
* log.thread.name true
* log_level 6
* max.in.flight = max.in.flight.requests.per.connection
* max.in.flight.requests.per.connection 1000000
C max.partition.fetch.bytes = fetch.message.max.bytes
C max.poll.interval.ms 300000
C max.poll.records 500
* message.copy.max.bytes 65535
* message.max.bytes 1000000
P message.send.max.retries 2147483647
P message.timeout.ms 300000
* metadata.broker.list
* metadata.max.age.ms 900000
* metadata.recovery.rebootstrap.trigger.ms 300000
* metadata.recovery.strategy rebootstrap
C offset.store.method broker
C offset.store.path .
C offset.store.sync.interval.ms -1
C partition.assignment.strategy range,roundrobin
P partitioner consistent_random
* plugin.library.paths
P produce.offset.report false
P queue.buffering.backpressure.threshold 1
P queue.buffering.max.kbytes 1048576
P queue.buffering.max.messages 100000
P queue.buffering.max.ms 5
C queued.max.messages.kbytes 65536
C queued.min.messages 100000
P queuing.strategy fifo
* receive.message.max.bytes 100000000
* reconnect.backoff.jitter.ms 0
* reconnect.backoff.max.ms 10000
* reconnect.backoff.ms 100
P request.required.acks -1
P request.timeout.ms 30000
P retries = message.send.max.retries
* retry.backoff.max.ms 1000
* retry.backoff.ms 100
* sasl.kerberos.keytab
* sasl.kerberos.kinit.cmd kinit -R -t "%{sasl.kerberos.keytab}" -k %{sasl.kerberos.principal}
* sasl.kerberos.min.time.before.relogin 60000
* sasl.kerberos.principal kafkaclient
* sasl.kerberos.service.name kafka
* sasl.mechanism = sasl.mechanisms
* sasl.mechanisms GSSAPI
* sasl.oauthbearer.assertion.algorithm RS256
* sasl.oauthbearer.assertion.claim.aud
* sasl.oauthbearer.assertion.claim.exp.seconds 300
* sasl.oauthbearer.assertion.claim.iss
* sasl.oauthbearer.assertion.claim.jti.include false
* sasl.oauthbearer.assertion.claim.nbf.seconds 60
* sasl.oauthbearer.assertion.claim.sub
* sasl.oauthbearer.assertion.file
* sasl.oauthbearer.assertion.jwt.template.file
* sasl.oauthbearer.assertion.private.key.file
* sasl.oauthbearer.assertion.private.key.passphrase
* sasl.oauthbearer.assertion.private.key.pem
* sasl.oauthbearer.client.credentials.client.id = sasl.oauthbearer.client.id
* sasl.oauthbearer.client.credentials.client.secret = sasl.oauthbearer.client.secret
* sasl.oauthbearer.client.id
* sasl.oauthbearer.client.secret
* sasl.oauthbearer.config
* sasl.oauthbearer.extensions
* sasl.oauthbearer.grant.type client_credentials
* sasl.oauthbearer.metadata.authentication.type none
* sasl.oauthbearer.method default
* sasl.oauthbearer.scope
* sasl.oauthbearer.sub.claim.name sub
* sasl.oauthbearer.token.endpoint.url
* sasl.password
* sasl.username
* security.protocol plaintext
C session.timeout.ms 45000
C share.acknowledgement.mode implicit
* socket.blocking.max.ms 1000
* socket.connection.setup.timeout.ms 30000
* socket.keepalive.enable false
* socket.max.fails 1
* socket.nagle.disable true
* socket.receive.buffer.bytes 0
* socket.send.buffer.bytes 0
* socket.timeout.ms 60000
* ssl.ca.certificate.stores Root
* ssl.ca.location
* ssl.ca.pem
* ssl.certificate.location
* ssl.certificate.pem
* ssl.cipher.suites
* ssl.crl.location
* ssl.curves.list
* ssl.endpoint.identification.algorithm https
* ssl.engine.id dynamic
* ssl.engine.location
* ssl.key.location
* ssl.key.password
* ssl.key.pem
* ssl.keystore.location
* ssl.keystore.password
* ssl.providers
* ssl.sigalgs.list
* statistics.interval.ms 0
P sticky.partitioning.linger.ms 10
* topic.blacklist
* topic.metadata.propagation.max.ms 30000
* topic.metadata.refresh.fast.cnt 10
* topic.metadata.refresh.fast.interval.ms 100
* topic.metadata.refresh.interval.ms 300000
* topic.metadata.refresh.sparse true
P transaction.timeout.ms 60000
P transactional.id
"""

SETTINGS: Final[Mapping[str, Known]] = {
    found[2]: Known(found[1], found[4] or "", found[3])
    for found in re.finditer(r"^([CP*]) (\S+)(?: = (\S+)| (.+))?$", _LISTED, re.MULTILINE)
}
