"""The table of promises and excuses, every row both ways: no setting hides a violation."""

import json
from dataclasses import replace
from typing import Any

import pytest

from harness.core.anomalies import BY_NAME, DUPLICATED, SKIPPED, UNAVAILABILITY, VANISHED, Anomaly
from harness.core.guarantees import (
    PERMISSIONS,
    Circumstances,
    Configuration,
    Permission,
    asked_by_hand,
    could_permit,
    standing,
)
from harness.core.verdict import Standing

SAFE = Configuration(version="4.3.1", replication=3, min_insync_replicas=2, isolation_level="read_committed")
QUIET = Circumstances()
#: A broker that had it all was elected from the ISR: nothing was permitted to go.
WORST = Circumstances(elected=True, isr_faulted=True, cut_off=True, resent=True)
UNCLEAN = Circumstances(elected=True, uncleanly=True, isr_faulted=True)
PROMISED = {anomaly for anomaly in BY_NAME.values() if anomaly.promise is not None}

#: Of each row, and of each way in which it may hold: the settings and circumstances, and then what makes it hold no
#: more, one at a time.
ROWS: list[tuple[str, dict, Circumstances, list[dict]]] = [
    (
        "one replica",
        {"replication": 1},
        Circumstances(disks_lost=True),
        [{"disks_lost": False}],
    ),
    (
        "acks without replication",
        {"acks": "1"},
        Circumstances(elected=True, committed=False),
        [{"acks": "all"}, {"acks": "-1"}, {"elected": False}, {"committed": True}],
    ),
    (
        "acks without replication",
        {"acks": "0"},
        Circumstances(disks_lost=True, committed=False),
        [{"disks_lost": False}],
    ),
    (
        "unclean election, one in-sync replica",
        {"unclean_election": True, "min_insync_replicas": 1},
        UNCLEAN,
        [
            {"unclean_election": False},
            {"elected": False},
            {"uncleanly": False},
            {"isr_faulted": False},
            {"version": "3.8.1"},
        ],
    ),
    (
        "unclean election, one in-sync replica",
        {"unclean_election": True, "min_insync_replicas": 1, "version": "3.7.1", "metadata": "zookeeper"},
        UNCLEAN,
        [{"metadata": "kraft"}],
    ),
    (
        "unclean election, one in-sync replica",
        {"unclean_election": True, "min_insync_replicas": 1, "version": "3.9.0"},
        UNCLEAN,
        [{"version": "3.8.1"}],
    ),
    (
        "unclean election, whole ISR faulted",
        {"unclean_election": True},
        UNCLEAN,
        [
            {"unclean_election": False},
            {"elected": False},
            {"uncleanly": False},
            {"isr_faulted": False},
            {"version": "3.8.1"},
        ],
    ),
    (
        "unclean election by hand",
        {"version": "3.8.1"},
        Circumstances(elected=True, by_hand=True, isr_faulted=True),
        [{"elected": False}, {"by_hand": False}, {"isr_faulted": False}],
    ),
    (
        "every disk lost",
        {},
        Circumstances(disks_lost=True, last_replica_guarded=True),
        [{"disks_lost": False}],
    ),
    (
        "last replica standing",
        {},
        Circumstances(elected=True, emptied=True, isr_faulted=True),
        [
            {"elected": False},
            {"emptied": False},
            {"uncleanly": True},
            {"isr_faulted": False},
            {"last_replica_guarded": True},
        ],
    ),
    (
        "last known leader",
        {},
        Circumstances(elected=True, emptied=True, uncleanly=True, last_known=True, last_replica_guarded=True),
        [{"elected": False}, {"emptied": False}, {"uncleanly": False}, {"last_known": False}],
    ),
    (
        "retries without idempotence",
        {"idempotence": False, "retries": 1},
        Circumstances(resent=True),
        [{"idempotence": True}, {"retries": 0}, {"resent": False}],
    ),
    (
        "sent again to another leader",
        {"idempotence": False, "retries": 0},
        Circumstances(elected=True, resent=True),
        [{"idempotence": True}, {"elected": False}, {"resent": False}],
    ),
    (
        "another given up beside it",
        {},
        Circumstances(given_up_beside=True),
        [{"idempotence": False}, {"given_up_beside": False}],
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
        Circumstances(resent=True),
        [{"idempotence": True}, {"retries": 0}, {"max_in_flight": 1}, {"resent": False}],
    ),
    (
        "sent again to another leader, several in flight",
        {"idempotence": False, "retries": 0, "max_in_flight": 2},
        Circumstances(elected=True, resent=True),
        [{"idempotence": True}, {"elected": False}, {"max_in_flight": 1}, {"resent": False}],
    ),
    (
        "given up, and written late",
        {"idempotence": False, "retries": 0, "max_in_flight": 1},
        Circumstances(came_late=True),
        [{"idempotence": True}, {"came_late": False}],
    ),
    (
        "moved by a group",
        {},
        Circumstances(moved_unseen=True),
        [{"moved_unseen": False}],
    ),
    (
        "read before they are committed",
        {"isolation_level": "read_uncommitted"},
        QUIET,
        [{"isolation_level": "read_committed"}],
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
        Circumstances(cut_off=True),
        [{"grouped": False}, {"cut_off": False}],
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


@pytest.mark.parametrize("anomaly", ["phantom", "corrupted", "failed_but_present", "misplaced", "diverged"])
def test_no_setting_permits_an_anomaly_that_kafka_never_causes(anomaly: str) -> None:
    careless = SAFE.model_copy(
        update={"acks": "0", "min_insync_replicas": 1, "unclean_election": True, "idempotence": False, "replication": 1}
    )
    seen = replace(UNCLEAN, by_hand=True, disks_lost=True, committed=False, resent=True, cut_off=True)
    assert standing(BY_NAME[anomaly], careless, seen).standing is Standing.VIOLATION


def test_acks_1_does_not_excuse_the_duplicates_of_an_idempotent_producer() -> None:
    assert standing(DUPLICATED, SAFE.model_copy(update={"acks": "1"}), WORST).standing is Standing.VIOLATION


def test_acks_1_does_not_excuse_the_loss_of_a_record_that_a_consumer_got() -> None:
    assert standing(VANISHED, SAFE.model_copy(update={"acks": "1"}), WORST).standing is Standing.VIOLATION


@pytest.mark.parametrize("anomaly", [a for a in BY_NAME.values() if a.promise is not None], ids=lambda a: a.name)
def test_a_safe_configuration_makes_everything_a_violation_with_a_promise_and_a_source(anomaly: Anomaly) -> None:
    ruling = standing(anomaly, SAFE, WORST)
    assert ruling.standing is Standing.VIOLATION
    assert anomaly.promise.says in ruling.because
    assert ruling.source == anomaly.promise.source
    assert ruling.remedy is None


def test_every_row_is_tested_and_excuses_only_promised_anomalies() -> None:
    assert [row.name for row in PERMISSIONS] == list(dict.fromkeys(name for name, *_ in ROWS))
    assert {anomaly for row in PERMISSIONS for anomaly in row.anomalies} <= PROMISED


def test_an_anomaly_is_undecided_if_the_group_may_have_moved_the_partition() -> None:
    ruling = standing(SKIPPED, SAFE, Circumstances(), Circumstances(moved_unseen=True))
    assert ruling.standing is Standing.UNDECIDED
    assert ruling.because.startswith("nobody knows whether the group moved the partition in between; if it did, this")


def test_a_limit_has_no_standing_here() -> None:
    with pytest.raises(ValueError, match="the scenario's limit"):
        standing(UNAVAILABILITY, SAFE, WORST)


@pytest.mark.parametrize(
    ("possible", "standing_of"),
    [
        ([UNCLEAN], Standing.PERMITTED),
        ([UNCLEAN, UNCLEAN], Standing.PERMITTED),
        ([QUIET, UNCLEAN], Standing.UNDECIDED),
        ([QUIET, QUIET], Standing.VIOLATION),
    ],
)
def test_an_anomaly_permitted_only_in_some_possible_cases_is_undecided(
    possible: list[Circumstances], standing_of: Standing
) -> None:
    ruling = standing(VANISHED, SAFE.model_copy(update={"unclean_election": True}), *possible)
    assert ruling.standing is standing_of


def asked(partition: int, **facts: str) -> dict[str, object]:
    return {"evidence": json.dumps({"topic": "t", "partition": partition, **facts})}


def test_an_unclean_election_was_asked_for_by_hand_where_its_evidence_says_so_and_nowhere_else() -> None:
    rows = [
        asked(0, election="unclean"),
        asked(2, election="preferred"),
        {"evidence": json.dumps({"sides": {}})},
        {"evidence": json.dumps({"election": "unclean"})},
        {"evidence": json.dumps(["election"])},
    ]
    assert [asked_by_hand(row, ("t", 0)) for row in rows] == [True, False, False, False, False]
    assert not asked_by_hand(rows[0], ("t", 1))


@pytest.mark.parametrize(
    ("version", "metadata", "at_once"),
    [("4.3.1", "kraft", True), ("2.7.0", "zookeeper", True), ("2.6.3", "zookeeper", False), ("?", "zookeeper", True)],
)
def test_the_version_decides_whether_an_isr_is_reported_at_once(version: str, metadata: str, at_once: bool) -> None:
    assert Configuration(version=version, metadata=metadata).tells_isr_at_once is at_once


@pytest.mark.parametrize(
    ("version", "minimum", "commits"),
    [("4.3.1", 1, True), ("4.3.1", 2, False), ("3.7.0", 2, False), ("3.6.2", 2, True), ("?", 2, False)],
)
def test_from_when_on_a_leader_alone_commits_nothing_below_the_minimum(
    version: str, minimum: int, commits: bool
) -> None:
    assert Configuration(version=version, min_insync_replicas=minimum).commits_alone is commits


@pytest.mark.parametrize(
    ("settings", "wiped", "by_hand", "permitted"),
    [
        ({}, False, False, []),
        ({}, False, True, ["lost", "vanished"]),
        ({}, True, False, ["lost", "vanished"]),
        ({"acks": "1"}, False, False, ["lost"]),
        ({"unclean_election": True}, False, False, ["lost", "vanished"]),
        ({"unclean_election": True, "version": "3.5.0"}, False, False, []),
    ],
)
def test_settings_decide_which_losses_can_be_permitted(
    settings: dict[str, Any], wiped: bool, by_hand: bool, permitted: list[str]
) -> None:
    configuration = SAFE.model_copy(update=settings)
    losses = [BY_NAME["lost"], VANISHED]
    assert [loss.name for loss in losses if could_permit(loss, configuration, wiped, by_hand)] == permitted
