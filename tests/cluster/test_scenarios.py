"""Every named scenario, run for real as a user runs it: its expectation, and what its story says besides."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeGuard

import pyarrow.compute as pc
import pytest
from docker import DockerClient
from pyspark.sql import SparkSession

from checkers.judge import judge
from harness.core.verdict import Verdict
from harness.history.paths import VERDICT_FILE, stored
from harness.history.run_file import RunFile
from harness.history.schema import Outcome, Phase
from harness.providers.docker.reaching import CLIENTS
from harness.report.sentences import with_sentences
from harness.run.lifecycle import run
from harness.scenario.loading import load, named
from tests.cluster.ahead import played

pytestmark = pytest.mark.cluster

VerdictJson = dict[str, Any]


def loses(verdict: VerdictJson) -> None:
    assert verdict["verdict"] == "invalid"
    assert verdict["summary"]["lost"] > 0
    assert verdict["anomalies"]["lost"]["standing"] == "permitted"
    assert len(verdict["anomalies"]["lost"]["examples"]) == min(20, verdict["summary"]["lost"])


def keeps(verdict: VerdictJson) -> None:
    assert verdict["verdict"] == "valid"
    assert verdict["summary"]["lost"] == 0
    assert verdict["summary"]["survivors"] == verdict["summary"]["acknowledged"] > 0


def were_late(verdict: VerdictJson) -> None:
    """Every node that was to be slow held packets, and round trips took as long as was asked."""
    slow = [fault for fault in verdict["faults"] if fault["kind"] in {"slow", "reorder"}]
    assert slow
    for fault in slow:
        timed = json.loads(fault["evidence"])["probed"]
        assert set(timed) == set(fault["nodes"])
        for trip in (reported["round_trip_ms"] for reported in timed.values()):
            assert trip["answered"] > 0
            assert trip["p95"] >= trip["p50"] >= trip["asked"]["delay"]


def keeps_though_late(verdict: VerdictJson) -> None:
    keeps(verdict)
    were_late(verdict)


def loses_what_was_late(verdict: VerdictJson) -> None:
    loses(verdict)
    were_late(verdict)


def keeps_while_blocked(verdict: VerdictJson) -> None:
    keeps(verdict)
    assert verdict["availability"]["longest_unavailable"]["lasted_ns"] > 5e9


def acknowledges_nothing(verdict: VerdictJson) -> None:
    assert verdict["verdict"] == "valid"
    assert verdict["summary"]["acknowledged"] == 0
    assert 0 < verdict["summary"]["unacknowledged_present"] < verdict["summary"]["attempted"]


def may_lose(verdict: VerdictJson) -> None:
    assert verdict["verdict"] in {"valid", "invalid"}
    assert set(verdict["anomalies"]) <= set(load("lose-messages/leader-killed-acks-1").expect.allowed)


def never_valid(verdict: VerdictJson) -> None:
    assert verdict["verdict"] in {"invalid", "unknown"}
    if verdict["verdict"] == "unknown":
        assert any("none within" in reason for reason in verdict["reasons"])


def exactly_once(verdict: VerdictJson) -> None:
    assert verdict["verdict"] == "valid"
    assert verdict["anomalies"] == {}
    summary, reported = verdict["summary"], verdict["transactions"]
    assert summary["survivors"] == summary["acknowledged"] + summary["unacknowledged_present"]
    assert (summary["unacknowledged_present"] > 0) == (reported["unknown_resolved"]["whole"] > 0)
    assert reported["committed"] > 20
    assert reported["aborted"] > 0
    resolved = reported["unknown_resolved"]
    assert resolved["whole"] + resolved["absent"] == reported["unknown"]


def exactly_once_after_a_kill(verdict: VerdictJson) -> None:
    exactly_once(verdict)
    reported = verdict["transactions"]
    assert reported["never_ended"] <= 3, "of three producers killed"
    assert reported["never_ended"] + reported["abort_unknown"] + reported["unknown"] > 0, (
        "each was killed between transactions"
    )


def at_least_once(verdict: VerdictJson) -> None:
    keeps(verdict)
    assert verdict["anomalies"] == {}
    assert verdict["redelivered"].get("crash", 0) > 0, "no kill found anything between its processing and its commit"


def at_most_once(verdict: VerdictJson) -> None:
    assert verdict["verdict"] == "invalid"
    assert verdict["summary"]["lost"] == 0
    assert {name: found["standing"] for name, found in verdict["anomalies"].items()} == {"missed": "permitted"}
    assert verdict["redelivered"] == {}


def found(run: Path, phase: Phase) -> Counter[tuple[Any, ...]]:
    """How often each record was read in a phase: topic, partition, offset, record."""
    read = stored(run, "reads").to_table(filter=pc.field("phase") == phase)
    return Counter(
        zip(*(read[name].to_pylist() for name in ("topic", "partition", "offset", "record_id")), strict=True)
    )


def coordinates(run: Path) -> bool:
    """Whether brokers named a coordinator of the workload's group."""
    return stored(run, "observations").count_rows(filter=pc.field("coordinator").is_valid()) > 0


def written_after(run: Path, verdict: VerdictJson) -> set[int]:
    """The records that were acknowledged after the last fault was healed: all, where the brokers had none."""
    healed_ns = max((fault["healed_ns"] for fault in verdict["faults"]), default=0)
    answered = (pc.field("outcome") == Outcome.OK) & (pc.field("completed_ns") > healed_ns)
    return set(stored(run, "sends").to_table(filter=answered)["record_id"].to_pylist())


STORIES: dict[str, Callable[[VerdictJson], None]] = {
    "delivery/at-least-once": at_least_once,
    "delivery/at-most-once": at_most_once,
    "exactly-once/coordinator-killed": exactly_once,
    "exactly-once/leader-killed": exactly_once,
    "exactly-once/producer-killed-and-fenced": exactly_once_after_a_kill,
    "jepsen-2013/clean-election": keeps_while_blocked,
    "jepsen-2013/elected-by-hand": loses,
    "jepsen-2013/min-isr-2": keeps_while_blocked,
    "jepsen-2013/unclean-election": loses,
    "jepsen-2013/unclean-election-zookeeper": loses,
    "lose-messages/flaky-2-percent": keeps,
    "lose-messages/flaky-bursts": keeps,
    "lose-messages/leader-isolated-acks-1": loses,
    "lose-messages/leader-isolated-acks-all": keeps,
    "lose-messages/leader-killed-acks-0": acknowledges_nothing,
    "lose-messages/leader-killed-acks-1": may_lose,
    "lose-messages/leader-killed-acks-all": keeps,
    "lose-messages/leader-wiped": never_valid,
    "lose-messages/leader-wiped-3.9": loses,
    "lose-messages/slow-all-250ms": keeps_though_late,
    "lose-messages/slow-followers-clean": keeps_though_late,
    "lose-messages/slow-followers-clean-acks-1": loses_what_was_late,
    "lose-messages/slow-followers-unclean": loses_what_was_late,
    "lose-messages/slow-followers-unclean-acks-1": loses_what_was_late,
    "lose-messages/throttled-followers": loses,
}


#: What the core runs: each workload, KRaft and ZooKeeper, slow networks, and what comes out valid and invalid
#: (test_core.py). (2013's with KRaft and its remedy are of the lab's core.)
CORE = frozenset(
    {
        "delivery/at-least-once",
        "exactly-once/leader-killed",
        "jepsen-2013/unclean-election-zookeeper",
        "lose-messages/slow-all-250ms",
        "lose-messages/slow-followers-clean",
        "lose-messages/slow-followers-clean-acks-1",
        "lose-messages/slow-followers-unclean",
    }
)


def test_every_scenario_has_its_story_here() -> None:
    assert set(STORIES) == set(named())


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[tuple[Path, Verdict]]]]:
    """The runs of all scenarios whose tests were chosen, each while the one before is judged."""
    chosen = [item.callspec.params["name"] for item in request.session.items if is_of_a_scenario(item)]
    with played(run, [load(name) for name in chosen], tmp_path_factory.mktemp("store"), seed=1) as runs:
        yield runs


def is_of_a_scenario(item: pytest.Item) -> TypeGuard[pytest.Function]:
    return isinstance(item, pytest.Function) and item.function is test_a_scenario_meets_its_claim


# In this process, so that one warm session judges all runs; test_breaking_off.py has the program in its own.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.core if name in CORE else ()) for name in sorted(STORIES)]
)
def test_a_scenario_meets_its_claim(
    name: str,
    runs: Mapping[str, Future[tuple[Path, Verdict]]],
    engine: DockerClient,
    spark: SparkSession,
) -> None:
    scenario = load(name)
    directory, judged = runs[name].result()
    said = judged.to_json()
    verdict = json.loads(said)
    assert verdict["versions"]["clients"] == os.environ.get(CLIENTS, "direct")
    assert verdict["expected"], said
    assert not verdict["partial"]
    STORIES[name](verdict)
    for fault in verdict["faults"]:
        assert fault["effective"], fault
    final, replicas = found(directory, Phase.FINAL), found(directory, Phase.REPLICA)
    if verdict["verdict"] != "unknown":
        assert [held for held in verdict["preconditions"] if not held["met"]] == []
        kept = {record for *_, record in final} & written_after(directory, verdict)
        assert kept or scenario.workload.acks == "0", "what is acknowledged at the end stays, whatever the faults were"
    followers = scenario.topic.replication - 1 if scenario.final_read.replicas else 0
    assert replicas == +Counter(dict.fromkeys(final, followers)), "every follower has what its leader has"
    assert coordinates(directory) == scenario.workload.grouped
    assert (directory / "report.html").stat().st_size > 0
    assert all(log.stat().st_size > 0 for log in (directory / "logs").glob("*.log"))
    again = with_sentences(judge(directory, spark), RunFile.read(directory))
    assert again.to_json() == said, "a stored run is judged to the same verdict"
    assert again.to_json(indent=2) == (directory / VERDICT_FILE).read_text().rstrip("\n")
    left = engine.containers.list(all=True, filters={"label": f"kafka-trial.run={verdict['run']}"})
    assert left == []
