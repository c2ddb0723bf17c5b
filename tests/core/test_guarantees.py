"""The table of promises and excuses, every row both ways: no setting hides a violation."""

import json
from dataclasses import replace
from random import Random

import pytest

from harness.core.anomalies import BY_NAME, DUPLICATED, UNAVAILABILITY, VANISHED, Anomaly
from harness.core.guarantees import (
    PERMISSIONS,
    Circumstances,
    Configuration,
    Permission,
    elected_by_hand,
    most_at_once,
    standing,
)
from harness.core.verdict import Standing

SAFE = Configuration(version="4.3.1", replication=3, min_insync_replicas=2)
QUIET = Circumstances()
WORST = Circumstances(elected=True, faulted_at_once=3, wiped_at_once=0)
PROMISED = {anomaly for anomaly in BY_NAME.values() if anomaly.promise is not None}

#: Of each row, and of each way in which it may hold: the settings and circumstances, and then what makes it hold no
#: more, one at a time.
ROWS: list[tuple[str, dict, Circumstances, list[dict]]] = [
    (
        "one replica",
        {"replication": 1},
        Circumstances(faulted_at_once=1, wiped_at_once=1),
        [{"replication": 2}, {"wiped_at_once": 0}],
    ),
    (
        "acks without replication",
        {"acks": "1"},
        Circumstances(elected=True),
        [{"acks": "all"}, {"acks": "-1"}, {"elected": False}],
    ),
    (
        "acks without replication",
        {"acks": "0"},
        Circumstances(wiped_at_once=1),
        [{"acks": "all"}, {"acks": "-1"}, {"wiped_at_once": 0}],
    ),
    (
        "unclean election, one in-sync replica",
        {"unclean_election": True, "min_insync_replicas": 1},
        Circumstances(elected=True),
        [
            {"unclean_election": False},
            {"min_insync_replicas": 2},
            {"elected": False},
            {"version": "3.8.1"},
        ],
    ),
    (
        "unclean election, one in-sync replica",
        {"unclean_election": True, "min_insync_replicas": 1, "version": "3.7.1", "metadata": "zookeeper"},
        Circumstances(elected=True),
        [{"metadata": "kraft"}],
    ),
    (
        "unclean election, one in-sync replica",
        {"unclean_election": True, "min_insync_replicas": 1, "version": "3.9.0"},
        Circumstances(elected=True),
        [{"version": "3.8.1"}],
    ),
    (
        "unclean election, whole minimum ISR faulted",
        {"unclean_election": True},
        Circumstances(elected=True, faulted_at_once=2),
        [{"unclean_election": False}, {"faulted_at_once": 1}, {"elected": False}, {"version": "3.8.1"}],
    ),
    (
        "unclean election by hand",
        {"version": "3.8.1"},
        Circumstances(elected=True, elected_by_hand=True),
        [{"elected": False}, {"elected_by_hand": False}],
    ),
    (
        "whole minimum ISR wiped",
        {},
        Circumstances(faulted_at_once=2, wiped_at_once=2, last_replica_guarded=True),
        [{"wiped_at_once": 1}, {"min_insync_replicas": 3}],
    ),
    (
        "whole minimum ISR wiped",
        {"replication": 2, "min_insync_replicas": 3},
        Circumstances(wiped_at_once=2),
        [{"wiped_at_once": 1}, {"replication": 3}],
    ),
    (
        "last replica standing",
        {},
        Circumstances(elected=True, faulted_at_once=2, wiped_at_once=1),
        [{"wiped_at_once": 0}, {"faulted_at_once": 1}, {"last_replica_guarded": True}],
    ),
    (
        "retries without idempotence",
        {"idempotence": False, "retries": 1},
        QUIET,
        [{"idempotence": True}, {"retries": 0}],
    ),
    (
        "sent again to another leader",
        {"idempotence": False, "retries": 0},
        Circumstances(elected=True),
        [{"idempotence": True}, {"elected": False}],
    ),
    (
        "no final read",
        {},
        Circumstances(final_read=False),
        [{"final_read": True}],
    ),
    (
        "retries of several in flight",
        {"idempotence": False, "retries": 1, "max_in_flight": 2},
        QUIET,
        [{"idempotence": True}, {"retries": 0}, {"max_in_flight": 1}],
    ),
    (
        "sent again to another leader, several in flight",
        {"idempotence": False, "retries": 0, "max_in_flight": 2},
        Circumstances(elected=True),
        [{"idempotence": True}, {"elected": False}, {"max_in_flight": 1}],
    ),
    (
        "partitions of transactions not verified",
        {"partition_verification": False},
        QUIET,
        [{"partition_verification": True}],
    ),
    (
        "partitions of transactions not verified",
        {"version": "3.5.2"},
        QUIET,
        [{"version": "3.6.0"}, {"version": "unknown"}],
    ),
    (
        "commit before processing",
        {"commits_first": True},
        QUIET,
        [{"commits_first": False}, {"missed_by_the_living": 1}],
    ),
    (
        "a member cut off from its coordinator",
        {"grouped": True},
        Circumstances(faulted_at_once=1),
        [{"grouped": False}, {"faulted_at_once": 0}],
    ),
]


def given(settings: dict, seen: Circumstances) -> tuple[Configuration, Circumstances]:
    """SAFE and ``seen``, with each of ``settings`` where it belongs."""
    of_run = {key: value for key, value in settings.items() if key in Circumstances.__dataclass_fields__}
    rest = {key: value for key, value in settings.items() if key not in of_run}
    return SAFE.model_copy(update=rest), replace(seen, **of_run)


def named(name: str) -> Permission:
    return next(row for row in PERMISSIONS if row.name == name)


@pytest.mark.parametrize(("name", "settings", "seen"), [row[:3] for row in ROWS], ids=str)
def test_a_row_permits_its_anomalies_and_says_why(name: str, settings: dict, seen: Circumstances) -> None:
    row = named(name)
    for anomaly in row.anomalies:
        ruling = standing(anomaly, *given(settings, seen))
        assert (ruling.standing, ruling.because, ruling.source) == (Standing.PERMITTED, row.because, row.source)
        assert ruling.remedy == row.remedy


@pytest.mark.parametrize(("name", "settings", "seen"), [row[:3] for row in ROWS], ids=str)
def test_a_row_permits_no_other_anomaly(name: str, settings: dict, seen: Circumstances) -> None:
    row = named(name)
    others = [other for other in PERMISSIONS if other is not row and other.holds(*given(settings, seen))]
    excused = {anomaly for one in (row, *others) for anomaly in one.anomalies}
    for anomaly in PROMISED - excused:
        assert standing(anomaly, *given(settings, seen)).standing is Standing.VIOLATION


@pytest.mark.parametrize(
    ("name", "settings", "seen", "remedy"), [(*row, remedy) for *row, remedies in ROWS for remedy in remedies], ids=str
)
def test_without_one_of_its_conditions_a_row_permits_nothing(
    name: str, settings: dict, seen: Circumstances, remedy: dict
) -> None:
    for anomaly in named(name).anomalies:
        assert standing(anomaly, *given(settings | remedy, seen)).standing is Standing.VIOLATION


@pytest.mark.parametrize(("name", "settings", "seen"), [row[:3] for row in ROWS], ids=str)
def test_a_row_that_holds_with_so_many_brokers_holds_with_more(name: str, settings: dict, seen: Circumstances) -> None:
    counts = {of: getattr(seen, of) for of in ("faulted_at_once", "wiped_at_once")}
    more = replace(seen, **{of: count + 1 for of, count in counts.items() if count})
    assert named(name).holds(*given(settings, more))


@pytest.mark.parametrize("anomaly", ["phantom", "corrupted", "failed_but_present", "misplaced", "diverged"])
def test_no_setting_at_all_permits_what_kafka_never_does(anomaly: str) -> None:
    careless = SAFE.model_copy(
        update={"acks": "0", "min_insync_replicas": 1, "unclean_election": True, "idempotence": False, "replication": 1}
    )
    seen = Circumstances(elected=True, faulted_at_once=3, wiped_at_once=3)
    assert standing(BY_NAME[anomaly], careless, seen).standing is Standing.VIOLATION


def test_acks_1_does_not_excuse_the_duplicates_of_an_idempotent_producer() -> None:
    assert standing(DUPLICATED, SAFE.model_copy(update={"acks": "1"}), WORST).standing is Standing.VIOLATION


def test_acks_1_does_not_excuse_what_a_consumer_was_given() -> None:
    assert standing(VANISHED, SAFE.model_copy(update={"acks": "1"}), WORST).standing is Standing.VIOLATION


@pytest.mark.parametrize("anomaly", [a for a in BY_NAME.values() if a.promise is not None], ids=lambda a: a.name)
def test_a_safe_configuration_makes_everything_a_violation_with_a_promise_and_a_source(anomaly: Anomaly) -> None:
    ruling = standing(anomaly, SAFE, WORST)
    assert ruling.standing is Standing.VIOLATION
    assert anomaly.promise.says in ruling.because
    assert ruling.source == anomaly.promise.source
    assert ruling.remedy is None


def test_every_row_is_tested_and_excuses_only_what_is_promised() -> None:
    assert [row.name for row in PERMISSIONS] == list(dict.fromkeys(name for name, *_ in ROWS))
    assert {anomaly for row in PERMISSIONS for anomaly in row.anomalies} <= PROMISED


def test_a_limit_has_no_standing_here() -> None:
    with pytest.raises(ValueError, match="the scenario's limit"):
        standing(UNAVAILABILITY, SAFE, WORST)


def fault(nodes: str, injecting: int, healed: int | None, effective: bool = True) -> dict:
    """``nodes`` of one party, or of both sides of a cut: ``b1 | b2 b3``."""
    sides = [side.split() for side in nodes.split("|")]
    evidence = {"sides": dict(zip(("from", "to"), sides, strict=True))} if len(sides) > 1 else {}
    told = {"injecting_ns": injecting, "healed_ns": healed, "effective": effective, "evidence": json.dumps(evidence)}
    return {"nodes": [node for side in sides for node in side], **told}


@pytest.mark.parametrize(
    ("faults", "most"),
    [
        ([], 0),
        ([fault("b1", 0, 5)], 1),
        ([fault("b1 b2", 0, 5)], 2),
        ([fault("b1", 0, 5), fault("b2", 4, 9)], 2),
        ([fault("b1", 0, 5), fault("b2", 5, 9)], 1),
        ([fault("b1", 0, None), fault("b2", 5, 9)], 2),
        ([fault("b1", 0, 5), fault("b1", 1, 4)], 1),
        ([fault("b1", 0, 5), fault("c1 clients", 1, 4)], 1),
        ([fault("b1", 0, 5), fault("b2", 1, 4, effective=False)], 1),
        ([fault("b1 | b2 b3", 0, 5)], 1),
        ([fault("b1 b2 | b3", 0, 5), fault("b1", 1, 4)], 2),
        ([fault("b1 | b2 b3", 0, 5), fault("b1", 1, 4)], 1),
        ([fault("b1 b2 | c1", 0, 5)], 2),
        ([fault("clients | b1 b2", 0, 5)], 2),
        ([fault("b1 b2 b3", 0, 5, effective=False) | {"nodes_without_effect": ["b3"]}], 2),
        ([fault("b1 b2 b3", 0, 5) | {"cut_from": ["b1"], "cut_to": ["b2", "b3"]}], 1),
    ],
)
def test_the_most_brokers_that_were_faulted_at_once(faults: list[dict], most: int) -> None:
    assert most_at_once(faults, frozenset({"b1", "b2", "b3"})) == most


def test_of_ten_thousand_faults_it_is_the_most_at_any_injection() -> None:
    random, brokers = Random(3), frozenset({"b1", "b2", "b3", "b4"})
    faults = []
    for n in range(10_000):
        nodes = random.sample(["b1", "b2", "b3", "b4", "c1"], random.randint(1, 2))
        healed = n + random.choice([0, 1, 2])
        row = {"injecting_ns": n, "healed_ns": healed, "effective": random.random() < 0.5, "evidence": "{}"}
        faults.append({**row, "nodes": nodes})
    active = [[one for one in faults[max(n - 2, 0) : n + 1] if one["effective"]] for n in range(10_000)]
    under = [{b for one in some if one["healed_ns"] > n for b in one["nodes"]} for n, some in enumerate(active)]
    assert most_at_once(faults, brokers) == max(len(nodes & brokers) for nodes in under)


def asked(partition: int, effective: bool, **facts: str) -> dict[str, object]:
    return {"effective": effective, "evidence": json.dumps({"topic": "t", "partition": partition, **facts})}


def test_an_unclean_election_by_hand_counts_where_it_came_and_nowhere_else() -> None:
    rows = [
        asked(0, True, election="unclean"),
        asked(1, False, election="unclean"),
        asked(2, True, election="preferred"),
        {"effective": True, "evidence": json.dumps({"sides": {}})},
    ]
    assert elected_by_hand(rows) == {("t", 0)}
