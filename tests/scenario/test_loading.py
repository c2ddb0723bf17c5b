"""Errors say file:line and what to change; ``--set`` finds keys that have dots in them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli.machines import cluster, settings
from harness.cli.machines import overrides as said_by
from harness.core.errors import ScenarioError
from harness.providers.catalogue import PROVIDERS
from harness.scenario.configuration import configuration
from harness.scenario.loading import load
from harness.scenario.model import Scenario
from harness.scenario.steps import STEPS
from tests.long_case import long_case

File = Callable[[str], Path]


def why(name: str, *overrides: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        load(name, overrides)
    return str(caught.value)


# names and files


def test_a_scenario_is_loaded_by_name() -> None:
    assert load("jepsen-2013/min-isr-2").topic.min_isr == 2


def test_a_scenario_without_a_name_is_called_after_its_file(written_to: File) -> None:
    assert load(str(written_to("topic: {partitions: 2}\n"))).name == "mine"


@pytest.mark.parametrize("stem", ["my own", "größe", ".a"])
def test_a_file_whose_name_cannot_be_a_scenarios_must_give_one(stem: str, tmp_path: Path) -> None:
    path = tmp_path / f"{stem}.yaml"
    path.write_text("claim: x\n")
    says = f"{stem!r}, from its file, is not a valid name: add `name:` with letters, digits, . _ and -"
    assert why(str(path)) == f"{path}: {says}"
    path.write_text("name: mine\n")
    assert load(str(path)).name == "mine"


def test_a_suite_given_as_a_scenario_is_named_as_a_suite(tmp_path: Path) -> None:
    path = tmp_path / "all.yaml"
    path.write_text("runs: [delivery/*]\n")
    assert why(str(path)) == f"{path}: this is a suite, not a scenario: `kafka-trial suite` runs it"


def test_an_unknown_name_gets_near_matches() -> None:
    assert "did you mean jepsen-2013/unclean-election or" in why("jepsen-2013/unclean-elction")
    assert "did you mean jepsen-2013/min-isr-2?" in why("min-isr")
    assert "`kafka-trial scenarios` lists them" in why("zzz")


def test_a_file_that_is_not_there_is_reported_as_a_file() -> None:
    assert why("nowhere/mine.yaml") == "nowhere/mine.yaml: no such file"


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert why(str(path)) == f"{path}: is not text in UTF-8"


# wrong scenarios

WRONG: dict[str, tuple[str, str]] = {
    "an unknown key": ("cluster:\n  brokrs: 3\n", "2: cluster.brokrs: no such key; did you mean 'brokers'?"),
    "an underscore for dots": (
        "topic:\n  partitions: 1\n  min_insync_replica: 2\n",
        "3: topic.min_insync_replica: no such key; did you mean 'min.insync.replicas'?",
    ),
    "a key by the name that only Python uses": ("topic:\n  min_isr: 2\n", "2: topic.min_isr: no such key;"),
    "an unknown key of the workload": (
        "workload: {\n  enable.idempotenc: true}\n",
        "2: workload.enable.idempotenc: no such key; did you mean 'enable.idempotence'?",
    ),
    "an unknown key of a fault": (
        "timeline:\n  - inject: {fault: partition, from: b1, to: b2,\n             both_way: true}\n",
        "3: timeline.0.inject.both_way: no such key; did you mean 'both_ways'?",
    ),
    "an unknown fault": (
        "timeline:\n  - wait: 1s\n  - inject: {fault: partitio, from: b1, to: b2}\n",
        "3: timeline.1.inject: no fault is called 'partitio'; did you mean 'partition'?",
    ),
    "no fault": (
        "timeline:\n  - inject: {target: b1}\n",
        "2: timeline.0.inject: say which one: key 'fault' is missing",
    ),
    "a parameter left out": (
        "timeline:\n  - inject: {fault: partition, from: b1}\n",
        "2: timeline.0.inject: key 'to' is missing",
    ),
    "an unknown step": (
        "timeline:\n  - explode: b1\n",
        f"2: timeline.0: unknown step `explode`; known: {', '.join(STEPS)}",
    ),
    "a step of other tools": (
        "timeline:\n  - sleep: 5s\n",
        "2: timeline.0: unknown step `sleep`; did you mean `wait`?",
    ),
    "a slip in a step": ("timeline:\n  - wiat: 5s\n", "2: timeline.0: unknown step `wiat`; did you mean `wait`?"),
    "a fault as a step": (
        "timeline:\n  - partition: {from: leader, to: followers}\n",
        "2: timeline.0: unknown step `partition`; a fault is injected: `inject: {fault: partition, …}`",
    ),
    "a duration without a unit": (
        "timeline:\n  - inject: {fault: slow, target: leader, delay: 200}\n",
        "2: timeline.0.inject.delay: 200 has no unit: write 200ms or 200s",
    ),
    "a limit without a unit": ("limits: {recovery: 1.5}\n", "1: limits.recovery: 1.5 has no unit: write 1.5ms or 1.5s"),
    "no time without a unit": ("timeline:\n  - wait: 0\n", "2: timeline.0.wait: 0 has no unit: write 0ms or 0s"),
    "a setting of the topic": (
        "topic:\n  retention.ms: 1000\n",
        "2: topic.retention.ms: no such key; a setting of Kafka's belongs under topic.config",
    ),
    "a setting of brokers": (
        "cluster: {log.segment.bytes: 1000}\n",
        "1: cluster.log.segment.bytes: no such key; a setting of Kafka's belongs under cluster.config",
    ),
    "a setting of clients": (
        "workload: {socket.send.buffer.bytes: 1000}\n",
        "1: workload.socket.send.buffer.bytes: no such key; a setting of Kafka's belongs under workload.config",
    ),
    "a slip in a key with dots": (
        "topic: {min.insync.replica: 2}\n",
        "1: topic.min.insync.replica: no such key; did you mean 'min.insync.replicas'?",
    ),
    "Kafka's word for ours": (
        "topic: {replication.factor: 2}\n",
        "1: topic.replication.factor: no such key; did you mean 'replication'?",
    ),
    "a setting of the topic as a key at the top": (
        "name: x\ntopic.retention.ms: 5\n",
        "2: topic.retention.ms: no such key; a setting of Kafka's belongs under topic.config, as retention.ms",
    ),
    "a setting of the topic with its path at the top": (
        "topic.config.retention.ms: 5\n",
        "1: topic.config.retention.ms: no such key; a setting of Kafka's belongs under topic.config, as retention.ms",
    ),
    "a setting of the topic with its path": (
        "topic: {topic.retention.ms: 5}\n",
        "1: topic.topic.retention.ms: no such key; a setting of Kafka's belongs under topic.config, as retention.ms",
    ),
    "a setting of whatever": (
        "retention.ms: 5\n",
        "1: retention.ms: no such key; a setting of Kafka's belongs under cluster.config or topic.config or workload",
    ),
    "a key with its path": (
        "topic.replication: 2\n",
        "1: topic.replication: no such key; write replication below topic",
    ),
    "no space after a colon": (
        "cluster: {version:4.3.1}\n",
        "1: cluster.version:4.3.1: no such key; put a space after version:",
    ),
    "no verdict": ("expect: {verdict: []}\n", "1: expect.verdict: should be 'valid', 'unknown' or 'invalid', not []"),
    "a standing that is none": (
        "expect: {standing: undecided}\n",
        "1: expect.standing: should be 'permitted' or 'violation', not 'undecided'",
    ),
    "a rate without a unit": (
        "timeline:\n  - inject: {fault: throttle, target: leader, rate: 10}\n",
        "2: timeline.0.inject.rate: 10 has no unit: write 10kbit or 10mbit",
    ),
    "a quoted rate without a unit": (
        "timeline:\n  - inject: {fault: throttle, target: leader, rate: '10'}\n",
        "2: timeline.0.inject.rate: '10' has no unit: write 10kbit or 10mbit",
    ),
    "a rate that lets nothing through": (
        "timeline:\n  - inject: {fault: throttle, target: leader, rate: 1bit}\n",
        "2: timeline.0.inject.rate: '1bit' lets nothing through; to cut traffic use `partition` or `isolate`",
    ),
    "a unit in upper case": (
        "timeline:\n  - wait: 5S\n",
        "2: timeline.0.wait: '5S' is not a duration such as 250ms, 1",
    ),
    "no share": (
        "workload: {kind: transactions, aborted: 20}\n",
        "1: workload.aborted: 20 is not a share such as 2%: write 20%",
    ),
    "a share that is one": (
        "workload: {kind: transactions, aborted: 1.0}\n",
        "1: workload.aborted: 1.0 is not a share such as 2%: write 1%",
    ),
    "truth for a number": ("topic: {partitions: true}\n", "1: topic.partitions: should be a whole number, not true"),
    "yes for a number": ("cluster: {brokers: yes}\n", "1: cluster.brokers: should be a whole number, not true"),
    "a number in quotes": (
        "topic: {partitions: '2'}\n",
        "1: topic.partitions: should be a whole number without quotes, not '2'",
    ),
    "half a number": ("topic: {partitions: 1.5}\n", "1: topic.partitions: should be a whole number, not 1.5"),
    "truth in quotes": (
        "topic: {unclean.leader.election.enable: 'true'}\n",
        "1: topic.unclean.leader.election.enable: should be true or false without quotes, not 'true'",
    ),
    "a number for truth": ("final_read: {replicas: 1}\n", "1: final_read.replicas: should be true or false, not 1"),
    "a list as a key": ("name: x\n? [a, b]\n: 3\n", "2: a key is a word, not a list or a mapping: quote it"),
    "a mapping as a key": ("name: {{ name }}\n", "1: a key is a word, not a list or a mapping: quote it"),
    "an empty list": (
        "timeline:\n  - random: {faults: []}\n",
        "2: timeline.0.random.faults: needs at least 1: the list is empty",
    ),
    "nothing for a version": ("cluster: {version: null}\n", "1: cluster.version: null is no Kafka version such as "),
    "nothing for a part": ("cluster:\n", "1: cluster: should be a mapping of keys to values, not null"),
    "nothing for a list": ("timeline:\n", "1: timeline: should be a list, not null"),
    "nothing for a kind": ("workload: {kind: null}\n", "1: workload: no kind is called null; known: queue, groups"),
    "nothing for a target": (
        "timeline:\n  - inject: {fault: kill, target: null}\n",
        "2: timeline.0.inject.target: null names no target: ",
    ),
    "nothing for a duration": ("timeline:\n  - wait:\n", "2: timeline.0.wait: null is not a duration such as 250ms"),
    "no end of a duration": ("limits: {unavailable: .inf}\n", "1: limits.unavailable: .inf is not a duration such as"),
    "a date for a name": ("name: 2020-01-01\n", "1: name: should be text, not 2020-01-01: put it in quotes"),
    "a number for a name": ("name: 5\n", "1: name: should be text, not 5: put it in quotes"),
    "a long number": (
        f"cluster: {{brokers: '{'9' * 5000}'}}\n",
        f"1: cluster.brokers: should be a whole number without quotes, not '{'9' * 79}…",
    ),
    "a long number without quotes": (
        f"cluster: {{brokers: {'9' * 5000}}}\n",
        f"1: '{'9' * 79}… looks like a date or a number, but is not valid: put it in quotes",
    ),
    "a name too long for a folder": (f"name: {'a' * 201}\n", "1: name: is longer than 200 characters: shorten it"),
    "two steps in one": ("timeline:\n  - {wait: 1s, heal: all}\n", "2: timeline.0: a step has exactly one key"),
    "no duration": ("timeline:\n  - wait: 5 parsecs\n", "2: timeline.0.wait: '5 parsecs' is not a duration"),
    "two conditions": ("timeline:\n  - until: {leader: none, acknowledged: 3}\n", "2: timeline.0.until: until awaits"),
    "another word": (
        "cluster:\n  metadata: zookeper\n",
        "2: cluster.metadata: should be 'kraft' or 'zookeeper', not 'zookeper'",
    ),
    "a date that is none": ("notes: x\nclaim: 2026-99-99\n", "2: '2026-99-99' looks like a date"),
    "no mapping of keys": ("topic: 3\n", "1: topic: should be a mapping of keys to values, not 3"),
    "a setting that another one depends on": (
        "workload:\n  acks: 2\n",
        "2: workload.acks: should be '0', '1' or 'all'",
    ),
    "another pattern": ("requires: {leader: moved}\n", "1: requires.leader: should match pattern"),
    "a number that is none": (
        "topic: {partitions: many}\n",
        "1: topic.partitions: should be a whole number, not 'many'",
    ),
    "a contradiction": ("topic:\n\n  replication: 5\n", "3: topic.replication: replication 5 needs as many brokers"),
    "a key given twice": (
        "topic:\n  replication: 3\n  replication: 2\n",
        "3: 'replication' appears twice, on line 2 before: remove one",
    ),
    "a control character": ("name: x\ny: \x01\n", "2: no valid YAML: character #x0001 is not allowed"),
    "a key that a terminal would obey": ('"\\e[2J": 1\n', "1: \\x1b[2J: no such key; "),
    "a key that nobody would see": ("to\ufeffpic: {}\n", "1: to\\ufeffpic: no such key; did you mean 'topic'?"),
    "no YAML": ("topic: {partitions: 1\n", "2: no valid YAML:"),
    "no mapping": ("- wait: 1s\n", "1: a scenario is a mapping of keys"),
    "nothing": ("", "1: a scenario is a mapping of keys"),
    "a name that leaves the store": ("name: ../elsewhere\n", "1: name: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_scenario_is_refused_with_the_line_of_the_error(written_to: File, case: str) -> None:
    text, says = WRONG[case]
    path = written_to(text)
    [line] = why(str(path)).splitlines()
    assert line.startswith(f"{path}:{says}")


@pytest.mark.parametrize("text", ['claim: "\\ud800"\n', 'tags: [a, "\\ud800"]\n', '"\\ud800": 1\n'])
def test_half_a_character_is_refused_with_its_line(text: str, written_to: File) -> None:
    path = written_to(f"notes: x\n{text}")
    assert why(str(path)) == f"{path}:2: \\ud800 cannot be written as UTF-8"


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ('claim="\\ud800"', '--set claim: "\\ud800" cannot be written as UTF-8'),
        ('topic.config={x: "\\ud800"}', '--set topic.config: {x: "\\ud800"} cannot be written as UTF-8'),
        ("topic.config.\udcff=1", "--set topic.config.\\udcff: 1 cannot be written as UTF-8"),
    ],
)
def test_half_a_character_that_is_set_is_refused(assignment: str, says: str) -> None:
    assert why("jepsen-2013/min-isr-2", assignment) == says


def test_aliases_that_multiply_are_refused(written_to: File) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "more than 100000 entries" in why(str(written_to("\n".join(levels) + "\n")))


def test_a_deeply_nested_file_is_refused(written_to: File) -> None:
    assert "nested too deeply" in why(str(written_to("claim: " + "[" * 2000 + "\n")))


def test_a_recursive_alias_is_refused(written_to: File) -> None:
    assert "alias" in why(str(written_to("cluster: &c\n  config: *c\n")))


def test_all_that_is_wrong_is_reported_in_the_order_of_the_lines(written_to: File) -> None:
    path = written_to("cluster: {brokrs: 1}\ntimeline:\n  - wait: x\n  - explode: 1\ntopic: {partitions: x}\n")
    assert [line.removeprefix(f"{path}:")[0] for line in why(str(path)).splitlines()] == ["1", "3", "4", "5"]


# --set


@pytest.mark.parametrize(
    ("assignment", "look", "value"),
    [
        ("topic.min.insync.replicas=1", lambda s: s.topic.min_isr, 1),
        ("topic.unclean.leader.election.enable=false", lambda s: s.topic.unclean, False),
        ("workload.acks=1", lambda s: s.workload.acks, "1"),
        ("workload.max.in.flight.requests.per.connection=2", lambda s: s.workload.max_in_flight, 2),
        ("workload.message.timeout.ms=4000", lambda s: s.workload.delivery_timeout_ms, 4000),
        ("cluster.version=3.9.2", lambda s: s.cluster.version, "3.9.2"),
        ("cluster.config.replica.lag.time.max.ms=3000", lambda s: s.cluster.config, {"replica.lag.time.max.ms": 3000}),
        ("topic.config.max.message.bytes=9", lambda s: s.topic.config, {"max.message.bytes": 9}),
        ("timeline.0.wait=3s", lambda s: s.timeline[0].wait, 3.0),
        ("timeline.2.until.within=1m", lambda s: s.timeline[2].until.within, 60.0),
        ("timeline.1.inject.plane=replication", lambda s: s.timeline[1].inject.plane, "replication"),
        ("final_read.isolation.level=read_committed", lambda s: s.isolation_level, "read_committed"),
        ("limits.unavailable=30s", lambda s: s.limits.unavailable, 30.0),
        ("requires.acknowledged=7", lambda s: s.requires.acknowledged, 7),
        (
            "expect={verdict: [valid, unknown], not_met: [log retained]}",
            lambda s: s.expect.verdicts,
            ["valid", "unknown"],
        ),
    ],
)
def test_set_gives_one_value_otherwise(assignment: str, look: Callable[[Scenario], object], value: object) -> None:
    assert look(load("jepsen-2013/min-isr-2", [assignment])) == value


def test_the_scenario_of_the_readme_is_one(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    [written] = re.findall(r"^```yaml\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    file = tmp_path / "mine.yaml"
    file.write_text(written)
    assert load(str(file)).limits.recovery == 10


def test_the_last_set_wins() -> None:
    scenario = load("jepsen-2013/min-isr-2", ["topic.min.insync.replicas=1", "topic.min.insync.replicas=3"])
    assert scenario.topic.min_isr == 3


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("topic", "--set topic: write path=value"),
        ("=3", "--set =3: write path=value"),
        ("clutser.version=1", "no such key; did you mean 'cluster'?"),
        ("topic.replicaton=3", "--set topic.replicaton: no such key; did you mean 'replication'?"),
        ("topic.replication=[", "'[' is not a YAML value"),
        ("notes=2026-99-99", "'2026-99-99' is not a YAML value: put it in quotes"),
        ("workload.acks=3", "--set workload.acks: should be '0', '1' or 'all', not '3'"),
        ("notes=a: b: c", "'a: b: c' is not a YAML value: put it in quotes"),
        ("timeline.²=1", "'²' is not one"),
        (f"timeline.{'9' * 5000}=1", "timeline has 8 entries"),
        ("top\x1bic", "--set top\\x1bic: write path=value"),
        ("notes=a\x01b", "is not a YAML value: put it in quotes"),
        ("notes=" + "[" * 2000, "is not a YAML value: put it in quotes"),
        ("topic.replication.x=3", "topic.replication is 3, it has no keys to set"),
        ("timeline.99.wait=3", "timeline has 8 entries, counted from 0; '99' is not one"),
        ("workload.kind=stack", "workload: no kind is called 'stack'; "),
        ("topic.replication=9", "--set topic.replication: replication 9 needs as many brokers"),
    ],
)
def test_a_set_that_leads_nowhere_is_refused(assignment: str, says: str) -> None:
    assert says in why("jepsen-2013/min-isr-2", assignment)


# what the rest of the harness takes from a scenario


def test_the_configuration_has_the_settings_that_promises_depend_on() -> None:
    found = configuration(load("lose-messages/leader-killed-acks-1", ["workload.consume=group", "topic.replication=2"]))
    assert (found.acks, found.idempotence, found.unclean_election) == ("1", False, False)
    assert (found.replication, found.min_insync_replicas, found.grouped) == (2, 1, True)
    assert not found.commits_first


@pytest.mark.parametrize(("commit", "first"), [("before-processing", True), ("after-processing", False)])
def test_the_configuration_says_when_a_group_commits(commit: str, first: bool) -> None:
    found = configuration(load("jepsen-2013/min-isr-2", [f"workload={{kind: groups, commit: {commit}}}"]))
    assert (found.grouped, found.commits_first) == (True, first)


@pytest.mark.parametrize(("given", "verified"), [("{}", True), ("true", True), ("false", False), ("'False '", False)])
def test_the_configuration_says_whether_partitions_of_transactions_are_verified(given: str, verified: bool) -> None:
    config = given if given == "{}" else f"{{transaction.partition.verification.enable: {given}}}"
    found = configuration(load("exactly-once/leader-killed", [f"cluster.config={config}"]))
    assert (found.partition_verification, found.verifies_partitions) == (verified, verified)


def test_before_3_6_no_partition_of_a_transaction_is_verified_whatever_is_set() -> None:
    off = "topic.unclean.leader.election.enable=false"
    found = [
        configuration(load("exactly-once/leader-killed", [off, f"cluster.version={v}"])) for v in ("3.5.2", "3.6.0")
    ]
    assert [of.verifies_partitions for of in found] == [False, True]


def test_topic_settings_are_given_to_kafka_in_its_own_words() -> None:
    topic = load("jepsen-2013/min-isr-2", ["topic.config.preallocate=true", "topic.count=2"]).topic
    assert topic.names == ["trial-0", "trial-1"]
    assert topic.settings == {
        "preallocate": "true",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "true",
    }


def test_unclean_election_is_off_unless_it_is_given() -> None:
    topic = load("jepsen-2013/min-isr-2", ["topic.unclean.leader.election.enable=null"]).topic
    assert topic.unclean is None
    assert topic.settings["unclean.leader.election.enable"] == "false"


def test_the_watched_partition_is_that_of_the_first_topic_unless_it_is_named() -> None:
    many = ["topic.count=2", "topic.partitions=3"]
    here = load("jepsen-2013/min-isr-2", [*many, "watch=2"])
    there = load("jepsen-2013/min-isr-2", [*many, "watch=trial-1/2"])
    assert (here.watch_topic, here.watch_partition) == ("trial-0", 2)
    assert (there.watch_topic, there.watch_partition) == ("trial-1", 2)


def test_nodes_are_named_by_their_role() -> None:
    assert load("jepsen-2013/min-isr-2", ["cluster.controllers=3"]).cluster.node_names == [
        *("b1", "b2", "b3"),
        *("c1", "c2", "c3"),
    ]
    assert load("jepsen-2013/unclean-election-zookeeper").cluster.node_names == ["b1", "b2", "b3", "b4", "z1"]


def test_an_inventory_path_is_relative_to_its_file_but_a_set_path_to_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a" / "own.yaml"
    file.parent.mkdir()
    file.write_text("cluster: {machines: inv.yaml}\n")
    monkeypatch.chdir(tmp_path)

    def machines(*overrides: str) -> object:
        return load("a/own.yaml", overrides).cluster.model_dump()["machines"]

    assert machines() == f"{file.parent}/inv.yaml"
    assert machines("cluster.machines=inv.yaml") == f"{tmp_path}/inv.yaml"
    assert machines("cluster={machines: inv.yaml}") == f"{tmp_path}/inv.yaml"
    assert machines("cluster.machines=/elsewhere/inv.yaml") == "/elsewhere/inv.yaml"
    assert machines("cluster.machines=null") is None
    with pytest.raises(ScenarioError, match=r"cluster\.machines"):
        machines("cluster.machines=[inv.yaml]")


@pytest.mark.parametrize(
    "name", ["\U00020bb7.yaml", "a: # []{},.yaml", "'\".yaml", "a\nb", "\u2028\x85\x7f\ufeff", "\udce4", "yes", "1"]
)
def test_an_inventory_may_have_any_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wanted = str(tmp_path / name)
    for value in (json.dumps(name), "{machines: " + json.dumps(name) + "}"):
        # (Of YAML's escapes JSON has none beyond 16 bits.)
        value = value.replace(r"\ud842\udfb7", r"\U00020bb7")  # noqa: PLW2901 - a JSON text made YAML
        at = "cluster" if value.startswith("{") else "cluster.machines"
        assert load("delivery/at-least-once", [f"{at}={value}"]).cluster.model_dump()["machines"] == wanted
    given = said_by(settings({"machines": Path(name), "accept_new": True, "images": None}))
    assert load("delivery/at-least-once", given).cluster.model_dump(include={"machines"}) == {"machines": wanted}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("2020-01-01: y", "Keys should be strings"),
        ("!!binary aGk=: y", "Keys should be strings"),
        ("version: 2020-01-01", "is no Kafka version"),
        ("brokers: .inf", "should be a finite number, not .inf"),
        ("more: &a [*a]", r"cluster\.more: no such key"),
    ],
)
def test_a_cluster_that_json_cannot_express_is_an_error_even_with_an_inventory(value: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        load("delivery/at-least-once", ["cluster={machines: inv.yaml, " + value + "}"])


def test_infinity_stays_a_number_beside_an_inventory() -> None:
    loaded = load("delivery/at-least-once", ["cluster={machines: inv.yaml, config: {a: .inf}}"])
    assert loaded.cluster.config == {"a": float("inf")}


@pytest.mark.parametrize(
    "depth", [depth if depth in {100, 370, 910} else long_case(depth) for depth in range(100, 1000, 90)]
)
def test_deep_nesting_is_a_scenario_error_at_any_depth(depth: int) -> None:
    with pytest.raises(ScenarioError):
        load("delivery/at-least-once", ["cluster={machines: x, b: " + "[" * depth + "]" * depth + "}"])


def test_settings_of_a_provider_that_are_wrong_are_a_line_each() -> None:
    with pytest.raises(ScenarioError) as raised:
        cluster(PROVIDERS, {"images": "none", "machines": 3, "brokers": "ignored"})
    assert str(raised.value).splitlines() == [
        "the given settings: cluster.machines: should be text, not 3: put it in quotes",
        "the given settings: cluster.images: should be 'registry' or 'build', not 'none'",
    ]


def test_a_name_may_be_as_long_as_a_folder(written_to: File) -> None:
    assert load(str(written_to(f"name: {'a' * 200}\n"))).name == "a" * 200


def test_a_file_name_that_is_too_long_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / f"{'a' * 240}.yaml"
    path.write_text("topic: {replication: 3}\n")
    assert "from its file, is longer than 200 characters: add a shorter `name:`" in why(str(path))
