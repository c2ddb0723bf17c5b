"""Every checker finds exactly what was planted, in histories that are otherwise legal: recall and precision 1.0."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import CHECKERS, WITHOUT_FINAL_READ
from tests.planted.conftest import SEEDS, Judged
from tests.planted.judging import KINDS, Kind, expected, judge, plant, write

FINAL = [kind for kind in KINDS if "origin" not in kind.of_run]
IMPORTED = [kind for kind in KINDS if "origin" in kind.of_run]
_NAMED = {"ids": lambda one: one.name}


@pytest.mark.parametrize("kind", KINDS, **_NAMED)
def test_exactly_the_planted_anomalies_are_found(kind: Kind, judged: dict[str, Judged]) -> None:
    one = judged[kind.name]
    wanted = expected(one.planted)
    wrong = {
        anomaly: (wanted.get(anomaly, Counter()) - found, found - wanted.get(anomaly, Counter()))
        for anomaly in {*wanted, *one.found}
        if (found := one.found.get(anomaly, Counter())) != wanted.get(anomaly, Counter())
    }
    assert not wrong, f"not found, and found besides: {wrong}"


@pytest.mark.parametrize("kind", KINDS, **_NAMED)
def test_of_more_seeds_it_is_found_too(kind: Kind, spark: SparkSession, tmp_path: Path) -> None:
    planted = plant(kind, range(SEEDS.stop, 200))
    write(tmp_path, kind, planted)
    assert judge(tmp_path, spark) == expected(planted)


@pytest.mark.parametrize("kind", KINDS, **_NAMED)
def test_in_many_tasks_it_is_found_too(kind: Kind, spark: SparkSession, tmp_path: Path) -> None:
    planted = plant(kind, range(20))
    write(tmp_path, kind, planted)
    assert judge(tmp_path, spark, one_task=False) == expected(planted)


def _finds(kinds: list[Kind]) -> set[str]:
    return {
        anomaly
        for kind in kinds
        for plot in kind.plots
        for anomaly in (*plot.finds, *getattr(plot, "finds_beside", ()))
    }


def _twins(kinds: list[Kind]) -> set[str]:
    return {anomaly for kind in kinds for plot in kind.plots for anomaly in plot.twin_of}


def test_every_checker_is_planted_for_and_has_a_twin() -> None:
    asked = {checker.anomaly.name for checker in CHECKERS}
    assert (_finds(FINAL), _twins(FINAL)) == (asked, asked)


#: What is asked in the same way as with a final read.
_EITHER_WAY = {"rewritten_offset", "reordered", "real_time_order", "skipped", "went_back"}


def test_every_checker_that_needs_no_final_read_is_planted_for_and_has_a_twin() -> None:
    asked = {checker.anomaly.name for checker in WITHOUT_FINAL_READ} | _EITHER_WAY
    assert asked <= _finds(IMPORTED)
    assert asked <= _twins(IMPORTED)


@pytest.mark.parametrize("kind", KINDS, **_NAMED)
def test_every_history_has_all_that_is_planted(kind: Kind, judged: dict[str, Judged]) -> None:
    for history in judged[kind.name].planted:
        assert {*history.owned.values()} >= {
            plot.name for plot in kind.plots if plot.finds or plot.twin_of
        } - _BY_CHANCE
        reported = Counter(plot for plot, _, _ in history.expected)
        assert all(reported[plot.name] for plot in kind.plots if plot.finds)


#: What a final read leaves out depends on what stands at the end of its log: that may be nothing.
_BY_CHANCE = {"beyond the final read", "beyond the final read in part"}


@pytest.mark.parametrize("kind", KINDS, **_NAMED)
def test_each_planted_record_belongs_to_one_plot(kind: Kind, judged: dict[str, Judged]) -> None:
    for history in judged[kind.name].planted:
        assert all(history.owned.get(identity) == plot for plot, _, identity in history.expected)


@pytest.mark.parametrize("kind", KINDS, **_NAMED)
def test_the_same_seed_plants_the_same(kind: Kind) -> None:
    assert kind.plant("t", 0, Random(7)) == kind.plant("t", 0, Random(7))


def test_planted_histories_have_suspicious_but_legal_records(judged: dict[str, Judged]) -> None:
    for history in judged[FINAL[0].name].planted:
        tables = history.tables
        untouched = {row["record_id"] for row in tables["sends"]} - history.owned.keys()
        in_log = {row["record_id"] for row in tables["reads"] if row["phase"] == "final"}
        undecided = {row["record_id"] for row in tables["sends"] if row["outcome"] == "info"} & untouched
        assert undecided & in_log
        assert undecided - in_log
        assert any(row["outcome"] == "info" and row["completed_ns"] is None for row in tables["sends"])
        assert len({row["incarnation"] for row in tables["sends"]}) > 1
        assert len({(r["partition"], r["offset"], r["phase"]) for r in tables["reads"]}) < len(tables["reads"])
