"""Which brokers had a lost record, over time: the judge's reasoning (checkers/evidence/holders.py) for one record,
without Spark."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.archive import Archive, Row
from checkers.evidence.decision import Case
from checkers.evidence.evidence import Evidence
from checkers.evidence.final_logs import NO_EPOCH, Holes, inside, logs, sparse
from checkers.evidence.holders import stories
from checkers.evidence.holding import Change, Has, Story, Why
from checkers.evidence.record_ranges import HANDED_ON_NS, shows_when_fetched
from checkers.evidence.standing import observed, with_results
from checkers.leadership import Partition
from harness.core.anomalies import BY_NAME
from harness.history.schema import Phase


@dataclass(frozen=True)
class Held:
    """Which brokers had a record, over time, if the leader of one term appended it, according to ``anomalies``.

    ``supposed``: assumes that every fault acted whose effect is not known. Each of ``changes`` is {at_ns, event,
    brokers, has, leader, leader_epoch, fault}: ``event`` is a Why of checkers/evidence/holding.py; ``has`` is known of
    these brokers from then on (must, may, wiped, need not); ``leader`` led then; ``fault`` wiped their disks.
    """

    leader: str
    leader_epoch: int | None
    anomalies: list[str]
    supposed: bool
    changes: list[Row]


def held(archive: Archive, found: Mapping[str, Row]) -> list[Held]:
    """Which brokers had a record. ``found``: its row in each of its anomalies; only those that are losses count."""
    gone = {name: row for name, row in found.items() if name in BY_NAME and BY_NAME[name].judged_by_record}
    if not gone:
        return []
    by_story: dict[Story, list[str]] = {}
    seen = observed(archive, archive.seen)
    for name, row in gone.items():
        of = (row["topic"], row["partition"])
        epochs, holes = _final_log(archive, of)
        known = with_results(seen, archive, logs(archive, epochs) if archive.file.final_read else {}, archive.found)
        for story in stories(
            known, BY_NAME[name], _case(row, holes, known, shows_when_fetched(archive.file.configuration))
        ):
            by_story.setdefault(story, []).append(name)
    return [
        Held(
            archive.file.broker(story.leader),
            story.epoch,
            names,
            story.supposed,
            [*_rows(archive, story)],
        )
        for story, names in by_story.items()
    ]


def _case(row: Row, holes: Holes, known: Evidence, tells_when_fetched: bool) -> Case:
    of, offset = (row["topic"], row["partition"]), row.get("offset")
    acknowledged, read = row.get("acknowledged_ns"), row.get("read_ns")
    last = row.get("last_read_ns") if tells_when_fetched else None
    return Case(
        of,
        row.get("sent_ns"),
        read if acknowledged is None else acknowledged,
        acknowledged is not None,
        offset,
        offset,
        row.get("read_epoch"),
        read,
        bool(inside(holes, of, np.array([-1 if offset is None else offset]))[0]),
        fetched_ns=None if last is None else last - HANDED_ON_NS,
        received_ns=row.get("first_read_ns") if known.without_epochs(of) else None,
    )


def _final_log(archive: Archive, of: Partition) -> tuple[pa.Table, Holes]:
    """The first and last offset of each leader epoch in the final log of a partition (see ``logs``), and the log's
    holes."""
    here = (pc.field("topic") == of[0]) & (pc.field("partition") == of[1]) & (pc.field("phase") == Phase.FINAL.value)
    read = archive.table("reads", here, ["leader_epoch", "offset"])
    epoch = pc.max_element_wise(read["leader_epoch"].cast(pa.int64()), NO_EPOCH).to_numpy()
    offset = read["offset"].to_numpy()
    order = np.lexsort((offset, epoch))
    epoch, offset = epoch[order], offset[order]
    each, begun = np.unique(epoch, return_index=True)
    ended = np.append(begun, len(epoch))[1:] - 1
    partition = {"topic": pa.repeat(of[0], len(each)), "partition": pa.repeat(of[1], len(each))}
    epochs = pa.table({**partition, "leader_epoch": each, "first": offset[begun], "last": offset[ended]})
    if sparse(archive) or of not in archive.ends or not archive.ends[of]["complete"]:
        return epochs, {}
    apart = np.flatnonzero((np.diff(epoch) == 0) & (np.diff(offset) > 1))
    return epochs, {of: (offset[apart] + 1, offset[apart + 1] - 1)} if len(apart) else {}


def _rows(archive: Archive, story: Story) -> Iterator[Row]:
    for (at_ns, why, has, leader, epoch, fault), together in groupby(story.changes, _alike):
        yield {
            "at_ns": at_ns,
            "event": why.value,
            "brokers": [archive.file.broker(change.broker) for change in together],
            "has": "need not" if has is None else has.value,
            "leader": archive.file.broker(leader),
            "leader_epoch": epoch,
            "fault": fault,
        }


def _alike(change: Change) -> tuple[int, Why, Has | None, int, int | None, str | None]:
    return change.at_ns, change.why, change.has, change.leader, change.epoch, change.fault
