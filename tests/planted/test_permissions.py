"""Each row of the permission table excuses only records that it reached: not earlier, later, elsewhere, in a hole."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import CHECKERS, WITHOUT_FINAL_READ
from checkers.judge import judge
from harness.core.anomalies import BY_NAME
from harness.core.guarantees import PERMISSIONS, Ruling
from harness.core.verdict import FoundAnomaly, Standing
from tests.checkers.notation import by_hand, write
from tests.planted.families import FAMILIES, NO_FAMILY, settings_of, standing_of
from tests.planted.permissions import ROWS, WAYS, Never, Plant, PlantedRow
from tests.planted.together import rulings, write_together

REACHES, UNDECIDED = "reaches it", "undecided"


def each(row: PlantedRow) -> Iterator[tuple[str, Plant | Never]]:
    """The ways in which a row is planted."""
    yield REACHES, row.reaches if isinstance(row.reaches, Never) else Plant(row.reaches, Standing.PERMITTED)
    yield from row.misses.items()
    yield UNDECIDED, row.undecided


def plants(more: bool) -> list[Any]:
    """Each row planted in each way: what reaches it and what is undecided (the core), or ``more``: what misses it."""
    return [
        pytest.param(name, way, plant, id=f"{name}: {way}")
        for name, row in ROWS.items()
        for way, plant in each(row)
        if isinstance(plant, Plant) and (way in WAYS) == more
    ]


def judged(row: PlantedRow, plant: Plant, run: Path, spark: SparkSession, one_task: bool | None = None) -> FoundAnomaly:
    """The findings of the anomaly of a row. ``one_task``: as of History.read."""
    history = by_hand(*plant.lines)
    for send in history.rows["sends"]:
        gave_up = send["outcome"] == "info" and send["completed_ns"] is not None
        send["error"] = "_MSG_TIMED_OUT" if gave_up else None
    for moved in (*history.rows["reads"], *history.rows["positions"]):
        moved["poll"] = moved["at_ns" if "at_ns" in moved else "read_ns"] if "origin" in row.settings else None
    write(run, [history], **{**row.settings, **plant.settings})
    name = plant.anomaly or row.anomaly
    among = WITHOUT_FINAL_READ if "origin" in row.settings else CHECKERS
    checkers = [checker for checker in (*among, *CHECKERS) if checker.anomaly.name == name][:1]
    return judge(run, spark, checkers=checkers, one_task=one_task).anomalies[name]


@pytest.mark.parametrize(("name", "way", "plant"), plants(more=False))
def test_a_row_excuses_what_it_reached_and_nothing_else(
    name: str, way: str, plant: Plant, spark: SparkSession, tmp_path: Path
) -> None:
    row, [permission] = ROWS[name], [one for one in PERMISSIONS if one.name == name]
    found = judged(row, plant, tmp_path, spark)
    assert found.standing is plant.standing, found.because
    if way == REACHES:
        assert (found.because, found.source) == (permission.because, permission.source)


@pytest.mark.parametrize(("name", "way", "plant"), plants(more=True))
def test_a_row_excuses_nothing_that_it_missed_in_more_ways(
    name: str, way: str, plant: Plant, spark: SparkSession, tmp_path: Path
) -> None:
    found = judged(ROWS[name], plant, tmp_path, spark)
    assert found.standing is plant.standing, found.because


#: The rows of which all plants are judged as one run. (A transaction may depend on every broker of its run.)
_TOGETHER = [
    name
    for name, row in ROWS.items()
    if BY_NAME[row.anomaly].judged_by_record and not BY_NAME[row.anomaly].by_coordinator
]


_OF_FAMILIES = [
    (row.name, anomaly.name)
    for row in PERMISSIONS
    if row.name in _TOGETHER
    for anomaly in row.anomalies
    if anomaly.name in FAMILIES
]


def _planted_as(name: str, anomaly: str) -> dict[str, Plant]:
    """The plants of a row, by the way, as plants of another anomaly, where it can be one."""
    each_way = {way: plant for way, plant in each(ROWS[name]) if isinstance(plant, Plant)}
    shown = {way: FAMILIES[anomaly](plant.lines) for way, plant in each_way.items()}
    return {
        way: Plant(lines, standing_of(anomaly, lines, each_way[way].standing)) for way, lines in shown.items() if lines
    }


def _judged_otherwise(
    name: str, anomaly: str, planted: dict[str, Plant], run: Path, spark: SparkSession, one_task: bool
) -> dict[str, str]:
    """The ways in which plants of a row have another standing than they should have."""
    settings = {**ROWS[name].settings, **settings_of(anomaly)}
    topics = write_together(run, [plant.lines for plant in planted.values()], **settings)
    found = rulings(run, spark, anomaly, one_task)
    got = {way: found[topic].standing if topic in found else None for way, topic in zip(planted, topics, strict=True)}
    return {
        way: f"{got[way]}, not {plant.standing}" for way, plant in planted.items() if got[way] is not plant.standing
    }


@pytest.mark.parametrize("name", _TOGETHER)
def test_in_many_tasks_all_plants_of_a_row_are_judged_the_same(name: str, spark: SparkSession, tmp_path: Path) -> None:
    anomaly = ROWS[name].anomaly
    assert _judged_otherwise(name, anomaly, _planted_as(name, anomaly), tmp_path, spark, one_task=False) == {}


@pytest.mark.parametrize("one_task", [True, False], ids=["in one task", "in many tasks"])
@pytest.mark.parametrize(("name", "anomaly"), [one for one in _OF_FAMILIES if one[1] != "lost"])
def test_whatever_shows_that_a_record_is_gone_is_judged_as_its_loss(
    name: str, anomaly: str, one_task: bool, spark: SparkSession, tmp_path: Path
) -> None:
    assert _judged_otherwise(name, anomaly, _planted_as(name, anomaly), tmp_path, spark, one_task) == {}


#: The epoch of a record that was read.
_READ_EPOCH = re.compile(r"^((?:final|live) .*?) e\d+")


#: (Since there are transactions, there are epochs.)
@pytest.mark.parametrize(("name", "anomaly"), [one for one in _OF_FAMILIES if not BY_NAME[one[1]].by_coordinator])
def test_records_without_epochs_are_permitted_in_no_way_that_missed_them(
    name: str, anomaly: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Brokers report the epochs of leaders, but records have none: log.message.format.version is below 0.11."""
    planted = {way: plant.lines for way, plant in _planted_as(name, anomaly).items() if way in ROWS[name].misses}
    lines = [tuple(_READ_EPOCH.sub(r"\1", line) for line in each_line) for each_line in planted.values()]
    topics = write_together(tmp_path, lines, **ROWS[name].settings)
    found = rulings(tmp_path, spark, anomaly, one_task=True)
    assert _permitted(planted, topics, found) == []


@pytest.mark.parametrize("name", [name for name, anomaly in _OF_FAMILIES if anomaly == "real_time_order"])
def test_a_record_without_an_offset_is_not_permitted_where_the_event_missed_it(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Its first offset is unknown. (So it is also unknown whether another record had been written there before.)"""
    missed = {way for way in ROWS[name].misses if way != "written again before"}
    planted = {way: plant.lines for way, plant in _planted_as(name, "real_time_order").items() if way in missed}
    unplaced = [tuple(line.replace("send r ok @5", "send r ok") for line in lines) for lines in planted.values()]
    topics = write_together(tmp_path, unplaced, **ROWS[name].settings)
    found = rulings(tmp_path, spark, "real_time_order", one_task=True)
    assert found.keys() >= {*topics}
    assert _permitted(planted, topics, found) == []


def _permitted(planted: Iterable[str], topics: Iterable[str], found: Mapping[str, Ruling]) -> list[str]:
    """The plants that are permitted."""
    got = {way: found[topic].standing for way, topic in zip(planted, topics, strict=True) if topic in found}
    return [way for way, standing in got.items() if standing is Standing.PERMITTED]


_APART = [one for more in (False, True) for one in plants(more) if one.values[0] not in _TOGETHER]


@pytest.mark.parametrize(("name", "way", "plant"), _APART)
def test_in_many_tasks_a_plant_is_judged_the_same(
    name: str, way: str, plant: Plant, spark: SparkSession, tmp_path: Path
) -> None:
    found = judged(ROWS[name], plant, tmp_path, spark, one_task=False)
    assert found.standing is plant.standing, found.because


def test_every_row_is_planted_in_every_way_or_it_is_said_why_not() -> None:
    assert list(ROWS) == [row.name for row in PERMISSIONS]
    for row in PERMISSIONS:
        planted = ROWS[row.name]
        assert planted.anomaly in {anomaly.name for anomaly in row.anomalies}
        assert {*planted.misses} >= {*WAYS}, row.name
        assert all(one.why for _, one in each(planted) if isinstance(one, Never)), row.name
        assert all(
            one.standing is not Standing.PERMITTED for one in planted.misses.values() if isinstance(one, Plant)
        ), row.name


def test_each_anomaly_that_a_row_of_a_lost_record_excuses_is_planted_too_or_it_is_said_why_not() -> None:
    excused = {anomaly.name for row in PERMISSIONS if row.name in _TOGETHER for anomaly in row.anomalies}
    assert excused == FAMILIES.keys() | NO_FAMILY.keys()
    assert not FAMILIES.keys() & NO_FAMILY.keys()
    assert all(one.why for one in NO_FAMILY.values())
