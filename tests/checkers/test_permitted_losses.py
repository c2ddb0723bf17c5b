"""The rows of the permission table that excuse several anomalies, planted for each of three, without Spark: r is lost,
or was read and has vanished, or another record stands at its offset."""

from collections.abc import Iterator
from typing import Any

import pytest

from checkers.evidence.decision import Decision
from harness.core.anomalies import LOST, REWRITTEN_OFFSET, VANISHED, Anomaly
from harness.core.guarantees import PERMISSIONS, Permission
from harness.core.verdict import Standing
from tests.checkers.test_holders import decided
from tests.planted.permissions import DISK, ROWS, Plant, PlantedRow
from tests.planted.test_permissions import REACHES, each

#: The anomaly of r, and the further lines that it needs.
BECOMES: dict[Anomaly, tuple[str, ...]] = {LOST: (), VANISHED: ("live r @5 t{}",), REWRITTEN_OFFSET: ()}

OF_LOSS = [permission for permission in PERMISSIONS if LOST in permission.anomalies]


def planted() -> Iterator[Any]:
    """Each row that excuses a loss, planted in each way, for each anomaly that it excuses."""
    for permission in OF_LOSS:
        for way, plant in each(ROWS[permission.name]):
            for anomaly in BECOMES:
                if anomaly in permission.anomalies and isinstance(plant, Plant):
                    yield pytest.param(permission, way, plant, anomaly, id=f"{permission.name}: {way}: {anomaly.name}")


def ruled(row: PlantedRow, lines: tuple[str, ...], anomaly: Anomaly, **settings: Any) -> Decision:
    """The decision about r, which is read a second after it was acknowledged."""
    [acknowledged] = (line.split("..")[1] for line in lines if line.startswith("send r "))
    read = (line.format(float(acknowledged) + 1) for line in BECOMES[anomaly])
    known = {name: value for name, value in {**row.settings, **settings}.items() if name != "features"}
    return decided(*lines, *read, anomaly=anomaly, guarded="features" in row.settings, **known)


@pytest.mark.parametrize(("permission", "way", "plant", "anomaly"), [*planted()])
def test_a_row_excuses_each_of_its_anomalies_where_it_reached_the_record_and_nowhere_else(
    permission: Permission, way: str, plant: Plant, anomaly: Anomaly
) -> None:
    found = ruled(ROWS[permission.name], plant.lines, anomaly, **plant.settings)
    assert found.standing is plant.standing, found.ruling
    if way == REACHES:
        assert found.ruling.because == permission.because


def test_every_row_of_loss_is_planted_for_all_of_these_that_it_excuses() -> None:
    assert [one.name for one in OF_LOSS] == [name for name, row in ROWS.items() if row.anomaly == "lost"]
    excuses = {one.name: BECOMES.keys() - {*one.anomalies} for one in OF_LOSS}
    assert {name: lacks for name, lacks in excuses.items() if lacks} == {"acks without replication": {VANISHED}}


#: Of each row: the disks that its plant of another disk has wiped, and those with which r is lost.
DISKS = {
    "one replica": ("b3", "b1"),
    "unclean election, one in-sync replica": ("b3", "b2"),
    "unclean election, whole ISR faulted": ("b3", "b2"),
    "unclean election by hand": ("b3", "b2"),
    "every disk lost": ("b1,b2", "b1,b2,b3"),
    "last replica standing": ("b3", "b1"),
    "last known leader": ("b3", "b1"),
}


@pytest.mark.parametrize("anomaly", BECOMES, ids=lambda anomaly: anomaly.name)
@pytest.mark.parametrize(("name", "disks"), DISKS.items(), ids=DISKS)
def test_another_disk_is_all_that_makes_the_difference(name: str, disks: tuple[str, str], anomaly: Anomaly) -> None:
    row, (other, own) = ROWS[name], disks
    plant = row.misses[DISK]
    assert isinstance(plant, Plant)
    lines = tuple(line.replace(f"fault w {other} ", f"fault w {own} ") for line in plant.lines)
    assert lines != plant.lines
    assert ruled(row, plant.lines, anomaly).standing is Standing.VIOLATION
    assert ruled(row, lines, anomaly).standing is Standing.PERMITTED
