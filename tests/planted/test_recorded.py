"""Anomalies planted in a real recorded run: they are found, and beside them only the anomalies of the run itself."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import CHECKERS
from harness.core.anomalies import READ_CYCLE
from harness.history.paths import table_directory, write_table
from harness.history.run_file import RunFile
from harness.history.schema import TABLES, record_id
from tests.planted.generator import Identity, Row
from tests.planted.judging import Findings, judge

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
_TIMES = 3
_SEED = 2013
#: So far from each other that no two plants are neighbours.
_APART = 5
_CONSUMER = "consumer 3"
#: All that is planted here: of what the harness records, no transaction polls (tests/planted/transactional.py).
ANOMALIES = [checker.anomaly.name for checker in CHECKERS if checker.anomaly is not READ_CYCLE]


@dataclass
class Recorded:
    """The tables of a recorded run, and what was done to them: which rows each checker has to find besides."""

    tables: dict[str, list[Row]]
    planted: Findings = field(default_factory=dict)

    @classmethod
    def read(cls, run: Path) -> "Recorded":
        """All tables that have files, but for what followers gave: plants bring their own (``follow``)."""
        tables = {
            table: [
                row
                for file in sorted(table_directory(run, table).glob("*.parquet"))
                for row in pq.read_table(file).to_pylist()
            ]
            for table in TABLES
        }
        followers = {row["reader"] for row in tables["reads"] if row["phase"] == "replica"}
        for table in ("reads", "positions"):
            tables[table] = [row for row in tables[table] if row["reader"] not in followers]
        return cls(tables)

    def write(self, run: Path) -> None:
        """In place of the files that were there."""
        for table, schema in TABLES.items():
            for file in table_directory(run, table).glob("*.parquet"):
                file.unlink()
            write_table(run, table, pa.Table.from_pylist(self.tables[table], schema))

    def finds(self, anomalies: str, *identities: Identity) -> None:
        """Each of these anomalies is to be found in each of these."""
        for anomaly in anomalies.split():
            self.planted.setdefault(anomaly, Counter()).update(("trial", identity) for identity in identities)

    def drop(self, record: int, *phases: str) -> None:
        """Nobody was given it, in these phases."""
        self.tables["reads"] = [
            row for row in self.tables["reads"] if row["record_id"] != record or row["phase"] not in phases
        ]

    def of(self, send: Row, phase: str) -> Iterator[Row]:
        """Its deliveries."""
        return (r for r in self.tables["reads"] if r["record_id"] == send["record_id"] and r["phase"] == phase)

    def give(self, send: Row, like: str, **otherwise: object) -> None:
        """It is delivered once more, as it was in the phase ``like``, but for some columns."""
        self.tables["reads"].append({**next(self.of(send, like)), **otherwise})

    def follow(self, reader: int) -> None:
        """A follower gave, but for what it is said to have given, what the final log has as far as it was read."""
        own = {row["offset"] for row in self.tables["reads"] if row["reader"] == reader}
        found = {row["offset"]: row for row in self.tables["reads"] if row["phase"] == "final" and not row["partition"]}
        for offset in found.keys() - own:
            if offset < max(own):
                row = {**found[offset], "leader_epoch": max(found[offset]["leader_epoch"], 1)}
                self.tables["reads"].append({**row, "phase": "replica", "reader": reader})


def _untouched(run: Recorded) -> list[Row]:
    """The sends that stand where they were acknowledged, and of whose offset no other record is known, in the order of
    the log, but for its ends."""
    seen: dict[int, set[int]] = {}
    for row in (*run.tables["reads"], *run.tables["sends"]):
        seen.setdefault(row["offset"], set()).add(row["record_id"])
    final = {row["record_id"]: row["offset"] for row in run.tables["reads"] if row["phase"] == "final"}
    stand = [
        send
        for send in run.tables["sends"]
        if final.get(send["record_id"]) == send["offset"] and len(seen[send["offset"]]) == 1
    ]
    return sorted(stand, key=lambda send: send["offset"])[_APART:-_APART]


def _picked(places: Iterable[int], taken: set[int], random: Random) -> list[int]:
    """Some of ``places``, apart from all that are taken, and from each other."""
    free = sorted(places)
    random.shuffle(free)
    picked: list[int] = []
    for place in free:
        if len(picked) < _TIMES and not any(place + n in taken for n in range(-_APART, _APART + 1)):
            picked.append(place)
            taken.add(place)
    assert len(picked) == _TIMES
    return sorted(picked)


@dataclass
class Scene:
    """Where plants go: the sends that nothing is wrong with, in the order of the log; when each was first
    delivered, and an offset beyond all that are known."""

    run: Recorded
    log: list[Row]
    poll: dict[int, int]
    beyond: int

    @classmethod
    def of(cls, run: Recorded) -> "Scene":
        """The scene before anything is planted."""
        poll: dict[int, int] = {}
        for row in run.tables["reads"]:
            if row["phase"] == "live":
                poll.setdefault(row["record_id"], row["read_ns"])
        beyond = 1 + max(row["offset"] for table in ("sends", "reads") for row in run.tables[table])
        return cls(run, _untouched(run), poll, beyond)

    def anywhere(self) -> Iterable[int]:
        """Every place."""
        return range(len(self.log) - 1)

    def between_polls(self) -> Iterable[int]:
        """The last places that were read in one poll."""
        return (n for n, (a, b) in enumerate(pairwise(self._read_at())) if a < b - 2)

    def in_flight_with_the_next(self) -> Iterable[int]:
        """Places of records of one producer, the next of which was sent before they were acknowledged."""
        return (
            n
            for n, (a, b) in enumerate(pairwise(self.log))
            if a["worker"] == b["worker"] and a["completed_ns"] >= b["invoked_ns"] and a["offset"] + 1 == b["offset"]
        )

    def after_later_sends(self) -> Iterable[int]:
        """Places of records that stand, rightly, after records that were sent later."""
        before = enumerate(zip(self.log, self._latest_before(), strict=False))
        return (n for n, (send, latest) in before if latest - 1 > send["invoked_ns"])

    def behind_others(self) -> Iterable[int]:
        """Every place but the first."""
        return range(1, len(self.log) - 1)

    def last_epoch(self) -> int:
        """The latest leader epoch of the final log."""
        return max(row["leader_epoch"] for row in self.run.tables["reads"] if row["phase"] == "final")

    def latest_before(self, send: Row) -> int:
        """When the last was sent of those that stand before it."""
        return [*self._latest_before()][self.log.index(send)]

    def _latest_before(self) -> Iterator[int]:
        return accumulate((send["invoked_ns"] for send in self.log), max, initial=0)

    def _read_at(self) -> Iterator[int]:
        return (self.poll[send["record_id"]] for send in self.log)


def _acknowledged_too_soon(scene: Scene, _: int, one: Row, __: Row) -> None:
    one["completed_ns"] = scene.latest_before(one) - 1
    scene.run.finds("real_time_order", one["record_id"])


def _given_again(scene: Scene, _: int, one: Row, __: Row) -> None:
    scene.run.give(one, "live", read_ns=scene.poll[one["record_id"]] + 1)
    scene.run.finds("went_back", one["record_id"])


def _given_to_another(scene: Scene, n: int, one: Row, _: Row) -> None:
    scene.run.give(one, "live", read_ns=scene.poll[one["record_id"]] + 1, reader=10 + n)
    scene.run.finds("two_owners", one["record_id"])


def _swapped(scene: Scene, _: int, one: Row, other: Row) -> None:
    names = {one["record_id"]: other["record_id"], other["record_id"]: one["record_id"]}
    for row in scene.run.tables["reads"]:
        row["record_id"] = names.get(row["record_id"], row["record_id"])
    one["offset"], other["offset"] = other["offset"], one["offset"]
    scene.run.finds("reordered", one["record_id"])


def _lost(scene: Scene, _: int, one: Row, __: Row) -> None:
    scene.run.drop(one["record_id"], "live", "final")
    scene.run.finds("lost", one["record_id"])


def _lost_after_it_was_read(scene: Scene, _: int, one: Row, __: Row) -> None:
    scene.run.drop(one["record_id"], "final")
    scene.run.finds("lost vanished", one["record_id"])


def _vanished(scene: Scene, _: int, one: Row, __: Row) -> None:
    scene.run.drop(one["record_id"], "final")
    one.update(outcome="info", offset=None, error="_MSG_TIMED_OUT")
    scene.run.finds("vanished", one["record_id"])


def _failed(scene: Scene, _: int, one: Row, __: Row) -> None:
    one.update(outcome="fail", offset=None, error="_QUEUE_FULL")
    scene.run.finds("failed_but_present", one["record_id"])


def _duplicated(scene: Scene, n: int, one: Row, _: Row) -> None:
    scene.run.give(one, "final", leader_epoch=scene.last_epoch(), offset=scene.beyond + n)
    scene.run.finds("duplicated", one["record_id"])


def _replaced_by_a_stranger(scene: Scene, n: int, one: Row, _: Row) -> None:
    for row in [*scene.run.of(one, "live"), *scene.run.of(one, "final")]:
        row["record_id"] = record_id(1000, n)
    scene.run.finds("phantom", record_id(1000, n))
    scene.run.finds("lost rewritten_offset", one["record_id"])


def _misplaced(scene: Scene, n: int, one: Row, _: Row) -> None:
    scene.run.drop(one["record_id"], "live")
    next(scene.run.of(one, "final")).update(partition=1, offset=n)
    if n == 0:
        end = {"partition": 1, "log_end": _TIMES, "read_to": _TIMES}
        scene.run.tables["log_ends"].append({**scene.run.tables["log_ends"][0], **end})
    scene.run.finds("misplaced lost", one["record_id"])


def _under_another_key(scene: Scene, n: int, one: Row, _: Row) -> None:
    for row in scene.run.of(one, ("final", "live")[n % 2]):
        row["key"] = "another"
    scene.run.finds("misplaced", one["record_id"])


def _corrupted(scene: Scene, _: int, one: Row, __: Row) -> None:
    next(scene.run.of(one, "live"))["intact"] = False
    scene.run.finds("corrupted", one["record_id"])


def _another_on_a_replica(scene: Scene, _: int, one: Row, other: Row) -> None:
    scene.run.give(one, "final", phase="replica", reader=1001, record_id=other["record_id"])
    scene.run.finds("rewritten_offset diverged", other["record_id"])


def _of_an_epoch_that_had_ended(scene: Scene, _: int, one: Row, __: Row) -> None:
    next(scene.run.of(one, "final"))["leader_epoch"] -= 1
    scene.run.finds("epoch_fell", one["record_id"])


def _acknowledged_elsewhere(scene: Scene, n: int, one: Row, _: Row) -> None:
    one["offset"] = scene.beyond + 100 + n
    scene.run.finds("acknowledged_elsewhere", one["record_id"])


def _skipped(scene: Scene, _: int, one: Row, __: Row) -> None:
    scene.run.tables["reads"].remove(next(scene.run.of(one, "live")))
    scene.run.finds("skipped" if any(scene.run.of(one, "live")) else "skipped missed", one["record_id"])


def _missed(scene: Scene, n: int, one: Row, __: Row) -> None:
    for _ in scene.run.of(one, "live"):
        scene.run.finds("skipped", one["record_id"])
    scene.run.drop(one["record_id"], "live")
    if n == 0:  # the reader commits once, past them all
        commit = {"event": "commit", "offset": scene.beyond, "error": None}
        scene.run.tables["positions"].append({**scene.run.tables["positions"][0], **commit})
    scene.run.finds("missed", one["record_id"])


def _whole(scene: Scene, _: int, one: Row, other: Row) -> Row:
    """Two records of one producer that stand beside each other were a transaction, and were all it wrote."""
    number = len(scene.run.tables["transactions"])
    one["transaction"] = other["transaction"] = number
    read = [scene.poll[send["record_id"]] for send in (one, other)]
    row = {
        **{name: one[name] for name in ("worker", "incarnation", "transaction")},
        **{"intent": "commit", "outcome": "ok"},
        **{"began_ns": one["invoked_ns"], "ending_ns": min(read), "ended_ns": max(read) + 2},
    }
    scene.run.tables["transactions"].append(row)
    return row


def _aborted(scene: Scene, n: int, one: Row, other: Row) -> None:
    _whole(scene, n, one, other)["intent"] = "abort"
    scene.run.finds("aborted_read", one["record_id"], other["record_id"])


def _read_early(scene: Scene, n: int, one: Row, other: Row) -> None:
    row = _whole(scene, n, one, other)
    row["ending_ns"] = row["ended_ns"] - 1
    scene.run.finds("early_read", one["record_id"], other["record_id"])


def _parted(scene: Scene, n: int, one: Row, other: Row) -> None:
    _whole(scene, n, one, other)
    scene.run.drop(other["record_id"], "live", "final")
    scene.run.finds("fractured lost", other["record_id"])


def _absent(scene: Scene, n: int, one: Row, other: Row) -> None:
    _whole(scene, n, one, other)
    for send in (one, other):
        scene.run.drop(send["record_id"], "live", "final")
    scene.run.finds("committed_lost lost", one["record_id"], other["record_id"])


def _hanging(scene: Scene, n: int, _: Row, __: Row) -> None:
    if n == 0:  # in a partition of its own: a final read shows nothing of the records behind it
        here = {**scene.run.tables["positions"][0], "partition": 1}
        for event, offset in (("last-stable", scene.beyond), ("high-watermark", scene.beyond + 1)):
            scene.run.tables["positions"].append({**here, "event": event, "offset": offset})
        scene.run.finds("hanging_transaction", (1, scene.beyond))


#: What is planted, and where it may be. Those that few places suit come first.
_PLANTS = (
    (_acknowledged_too_soon, Scene.after_later_sends),
    (_given_again, Scene.between_polls),
    (_given_to_another, Scene.between_polls),
    (_of_an_epoch_that_had_ended, Scene.behind_others),
    *((act, Scene.in_flight_with_the_next) for act in (_swapped, _whole, _aborted, _read_early, _parted, _absent)),
    *(
        (act, Scene.anywhere)
        for act in (
            *(_lost, _lost_after_it_was_read, _vanished, _failed, _duplicated, _replaced_by_a_stranger, _misplaced),
            _under_another_key,
            *(_corrupted, _another_on_a_replica, _acknowledged_elsewhere, _skipped, _missed, _hanging),
        )
    ),
)


def plant(run: Recorded) -> None:
    """Every anomaly, a few times each, where nothing is wrong."""
    random, taken, scene = Random(_SEED), set[int](), Scene.of(run)
    for row in (*run.tables["reads"], *run.tables["observations"]):  # there may be an epoch before the first
        row["leader_epoch"] += 1
    for act, where in _PLANTS:
        for n, place in enumerate(_picked(where(scene), taken, random)):
            act(scene, n, scene.log[place], scene.log[place + 1])
    run.follow(1001)


def as_group(settings: RunFile) -> RunFile:
    """The run's settings as those of a group that reads committed records only: every checker asks then."""
    clients = {**settings.clients, _CONSUMER: settings.clients[_CONSUMER] | {"isolation.level": "read_committed"}}
    configuration = settings.configuration.model_copy(update={"grouped": True, "isolation_level": "read_committed"})
    return settings.model_copy(update={"clients": clients, "configuration": configuration})


@dataclass(frozen=True)
class Both:
    """What is found in the run as it was recorded, in the run with plants, and what the plants are."""

    before: Findings
    after: Findings
    planted: Findings


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Both:
    (file,) = EXAMPLES.rglob("run.json")
    recorded, found = Recorded.read(file.parent), []
    run = tmp_path_factory.mktemp("recorded")
    settings = RunFile.read(file.parent)
    recorded.write(run)
    settings.write(run)
    found.append(judge(run, spark))
    plant(recorded)
    recorded.write(run)
    as_group(settings).write(run)
    found.append(judge(run, spark))
    return Both(*found, recorded.planted)


def test_every_checker_is_planted_for(both: Both) -> None:
    assert both.planted.keys() == {*ANOMALIES}


def test_the_run_itself_shows_what_it_showed_when_it_was_recorded(both: Both) -> None:
    assert {name: found.total() for name, found in both.before.items()} == {
        "lost": 2231,
        "vanished": 2231,
        "rewritten_offset": 2231,
    }


@pytest.mark.parametrize("anomaly", ANOMALIES)
def test_the_planted_rows_are_found_and_no_others(anomaly: str, both: Both) -> None:
    before = both.before.get(anomaly, Counter())
    assert both.after[anomaly] == before + both.planted[anomaly]
