"""Runs that were recorded on real clusters, ``recorded/<scenario>``: their losses are judged as they claim."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import CHECKERS
from checkers.evidence.holes import read_final_logs
from checkers.evidence.losses import losses_of
from checkers.evidence.standing import observed
from checkers.history import History
from checkers.screening import records, stored
from harness.core.anomalies import ACKNOWLEDGED_ELSEWHERE, LOST, VANISHED
from harness.core.verdict import Standing

RECORDED = Path(__file__).parent / "recorded"


def standings(run: Path, spark: SparkSession, results: Path) -> list[tuple[int, Standing]]:
    """How many records of a recorded run are lost in each run of them, and their standing. (What stands elsewhere or
    has vanished is evidence, too.)"""
    history = History.read(run, spark, results=results)
    _, answered = records(history, [one for one in CHECKERS if one.anomaly in {LOST, ACKNOWLEDGED_ELSEWHERE, VANISHED}])
    kept = stored(answered)
    found = losses_of(history, kept, observed(history.stored, history.seen), read_final_logs(history)).ranges(LOST)
    return [(one.count, one.decision.standing) for one in found if one.decision]


@pytest.mark.heavy
def test_all_losses_of_a_leader_that_only_clients_reached_are_permitted(spark: SparkSession, tmp_path: Path) -> None:
    """Healed, b2 went on acknowledging until it had heard of b3, the new leader. By time either may have acknowledged
    the last 8126 of these records; but the log of b3 ends far below them."""
    assert standings(RECORDED / "leader-isolated-acks-1", spark, tmp_path) == [(13_943, Standing.PERMITTED)]
