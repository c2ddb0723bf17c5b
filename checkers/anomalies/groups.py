"""Consumer groups: what a group committed, and what was delivered to its members.

In a run of the workload ``groups`` a live delivery is journalled only after it was processed.
"""

from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own idiom

from checkers.history import PARTITION, History
from checkers.scan.polls import ASSIGNMENT, READER, RESETS
from checkers.scan.record_bits import OFFSET_BIT, OFFSET_BLOCK
from harness.history.schema import ENDS_INTERVAL, POSITIONS, UNKNOWN_OFFSET, Phase, PositionEvent

_COMMITTED = "event = 'commit' and error is null"
_BEGINS = f"event in {RESETS}"
_BLOCK = [*PARTITION, "block"]
_MEMBER = ["reader", "incarnation"]


def has_group(history: History) -> bool:
    """Whether the run has a consumer group."""
    return history.run_file.configuration.grouped


def has_skipping_starts(history: History) -> bool:
    """Whether a member began behind everything that the group can have committed."""
    return bool(skipping_starts(history))


def skipping_starts(history: History) -> list[dict[str, Any]]:
    """The offsets that members skipped when they began: a member was assigned a partition at an offset behind all
    offsets for which a commit had been requested until then. If a member did not learn its offset when it was assigned
    the partition, it began where it got its first record, or came to the end of the partition. Only a history with such
    requests shows that: members that process records ask to commit them.

    If the history does not record requests of commits, the last commit of a killed member may be missing. So nobody
    knows what the group had committed if it commits before it processes, and then nothing is returned. Nor if a part of
    the history is missing. Returns: topic, partition, reader, at_ns, passed_from, passed_to
    """
    if not has_group(history) or history.stored.missing:
        return []
    wanted = pc.field("event").isin(_ASKS_OR_BEGINS) & pc.field("offset").is_valid()
    positions = history.stored.table("positions", wanted, _OF_STARTS)
    # (Runs that name the tables of each client record requests of commits, even if there were none.)
    asked = pc.any(pc.equal(positions["event"], PositionEvent.COMMITTING)).as_py()
    recorded = bool(history.run_file.writes) or asked
    if not recorded and history.run_file.configuration.commits_first:
        return []
    learned = [_learned_starts(history, positions.schema)] if asked else []
    return skipping_starts_in(pa.concat_tables([positions, *learned]), recorded)


def _learned_starts(history: History, schema: pa.Schema) -> pa.Table:
    """Assignments at an unknown offset, at the time and the offset of the first arrival in each."""
    unknown = (pc.field("event") == PositionEvent.ASSIGN) & pc.field("offset").is_null()
    assigned = history.stored.table("positions", unknown, [*READER, "at_ns"])
    if not len(assigned):
        return schema.empty_table()
    members = pc.field("reader").isin(assigned["reader"])
    came_to_end = (pc.field("event") == PositionEvent.END_OF_PARTITION) & pc.field("offset").is_valid()
    others = members & (pc.field("event").isin(ENDS_INTERVAL) | came_to_end)
    events = history.stored.table("positions", others, [*READER, "at_ns", "event", "offset"])
    live = members & (pc.field("phase") == Phase.LIVE) & (pc.field("offset") > UNKNOWN_OFFSET)
    reads = history.stored.table("reads", live, [*READER, "read_ns", "offset"])
    polled = reads.group_by([*READER, "read_ns"]).aggregate([("offset", "min")])
    polled = polled.rename_columns({"read_ns": "at_ns", "offset_min": "offset"})
    starts = learned_starts_in([*events.to_pylist(), *polled.to_pylist()])
    return pa.Table.from_pylist([{**start, "event": PositionEvent.ASSIGN} for start in starts], schema)


def learned_starts_in(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first arrival in each assignment at an unknown offset. ``rows``: events, and polls, which have none.

    If the first arrival has the time of an event that ends an interval, nobody knows in which it came.
    """
    waiting: set[tuple[Any, ...]] = set()
    found = []
    for (*of, at_ns), same_time in groupby(sorted(rows, key=_when), key=_when):
        at_once, reader = list(same_time), tuple(of)
        ends = [row for row in at_once if row.get("event") in ENDS_INTERVAL]
        arrived = [row["offset"] for row in at_once if row.get("event") not in ENDS_INTERVAL]
        if arrived and not ends and reader in waiting:
            found.append({**dict(zip(READER, of, strict=True)), "at_ns": at_ns, "offset": min(arrived)})
        if arrived or ends:
            waiting.discard(reader)
        if ends and not arrived and all(_is_unknown_start(row) for row in ends):
            waiting.add(reader)
    return found


def _is_unknown_start(row: dict[str, Any]) -> bool:
    return row["event"] == PositionEvent.ASSIGN and row["offset"] is None


def _when(row: dict[str, Any]) -> tuple[Any, ...]:
    return (*(row[name] for name in READER), row["at_ns"])


def skipping_starts_in(positions: pa.Table, requests_are_recorded: bool) -> list[dict[str, Any]]:
    """``skipping_starts`` on the rows of the table.

    Every requested commit counts, even if its answer is an error: it may have been committed. Each request is in the
    journal before it is sent (workloads/clients/consuming.py). So, if requests are recorded, a partition for which none
    was made before is to be read from the log start: 0, because the final log has nothing below its start. No request
    counts that was made before another member began at a lower offset, and was answered for a request of its own: what
    came from an earlier generation was overwritten, or refused.
    """
    # At the same time, a request of a commit counts before an assignment.
    rows = sorted(positions.to_pylist(), key=lambda row: (row["at_ns"], row["event"] == PositionEvent.ASSIGN))
    groups: dict[tuple[str, int], _CommittedOffset] = {}
    found = []
    for row in rows:
        offset, member = row["offset"], (row["reader"], row["incarnation"])
        group = groups.setdefault(
            (row["topic"], row["partition"]), _CommittedOffset(0 if requests_are_recorded else None)
        )
        match row["event"]:
            case PositionEvent.COMMITTING:
                group.asked(member, offset)
            case PositionEvent.COMMIT:
                group.answered(member, offset, row["error"] is None)
            case _:
                if group.furthest is not None and offset > group.furthest:
                    began = {name: row[name] for name in ("topic", "partition", "reader", "at_ns")}
                    found.append({**began, "passed_from": group.furthest, "passed_to": offset})
                group.begun(member, offset)
    return found


_Member = tuple[int, int]


@dataclass
class _Tenure:
    """The last assignment of a member: where it began, the furthest request of anyone since, and its own requests that
    are not answered."""

    began: int
    furthest: int = -1
    open: set[int] = field(default_factory=set)


@dataclass
class _CommittedOffset:
    """The furthest committed offset that a group can have in a partition, None if unknown.

    ``requested``: by whom, and at which offset. ``left_open``: those of them that were not answered before the member's
    next assignment. An answer that may be meant for one of these says nothing of that assignment.
    """

    furthest: int | None
    tenures: dict[_Member, _Tenure] = field(default_factory=dict)
    requested: set[tuple[_Member, int]] = field(default_factory=set)
    left_open: set[tuple[_Member, int]] = field(default_factory=set)

    def begun(self, member: _Member, offset: int) -> None:
        """A member was assigned the partition."""
        if before := self.tenures.get(member):
            self.left_open |= {(member, asked) for asked in before.open}
        self.tenures[member] = _Tenure(offset)

    def asked(self, member: _Member, offset: int) -> None:
        """A commit may have happened."""
        self._reaches(offset)
        self.requested.add((member, offset))
        if tenure := self.tenures.get(member):
            tenure.open.add(offset)

    def answered(self, member: _Member, offset: int, committed: bool) -> None:
        """A commit was acknowledged, or refused. What was refused counts since its request, if that was recorded."""
        if committed or (member, offset) not in self.requested:
            self._reaches(offset)
        tenure = self.tenures.get(member)
        if tenure is None or offset not in tenure.open:
            return
        tenure.open.discard(offset)
        sure = committed and (member, offset) not in self.left_open
        if sure and self.furthest is not None and tenure.began < self.furthest:
            self.furthest = min(self.furthest, tenure.furthest)

    def _reaches(self, offset: int) -> None:
        self.furthest = offset if self.furthest is None else max(offset, self.furthest)
        for tenure in self.tenures.values():
            tenure.furthest = max(offset, tenure.furthest)


_ASKS_OR_BEGINS = [PositionEvent.ASSIGN, PositionEvent.COMMITTING, PositionEvent.COMMIT]
_OF_STARTS = [*PARTITION, "at_ns", "event", "offset", "reader", "incarnation", "error"]
_STARTS = pa.schema([POSITIONS.field(name) for name in _OF_STARTS])


def missed(history: History, polls: DataFrame) -> DataFrame:
    """Records of the final log that the group committed past although they were never delivered to a member.

    A record counts as delivered if anything was read at its offset, intact or not: another record there is a rewritten
    offset. Records before the offset where the group began do not count. Guarantee: a consumer that commits after it
    processed has processed all that it committed; one that commits first, all but what it held when it was killed
    (Kafka design, Message Delivery Semantics: at-least-once, at-most-once).
    Returns: topic, partition, offset, record_id, committed (the furthest offset that the group committed), died
    (whether a member that commits first was killed between its commit and the record), unanswered (whether a member
    requested a commit past the record and had no answer while it owned the partition). Both are false if a member ever
    went past the record, or if a later member that got the record again committed past it
    """
    judged = history.reads.where("phase in ('final', 'live')").join(
        F.broadcast(committed(history)), on=PARTITION, how="inner"
    )
    behind = judged.where("offset >= begun and offset < committed").selectExpr(
        "*", f"{OFFSET_BLOCK} as block", f"{OFFSET_BIT} as bit"
    )
    undelivered = (
        behind.groupBy(*_BLOCK)
        .agg(
            F.expr("bit_or(if(phase = 'final', bit, 0L))").alias("stand"),
            F.expr("bit_or(if(phase = 'live', bit, 0L))").alias("delivered"),
        )
        .selectExpr(*_BLOCK, "stand & ~delivered as bits")
        .where("bits != 0")
    )
    # Spark runs the broadcast first: if nothing is undelivered, it does not read the log again.
    found = (
        behind.where("phase = 'final'")
        .join(F.broadcast(undelivered), on=_BLOCK, how="inner")
        .where("bits & bit != 0")
        .groupBy(*PARTITION, "offset", "record_id")
        .agg(F.max("committed").alias("committed"))
    )
    if not history.run_file.configuration.commits_first:
        return found.selectExpr("*", "false as died", "false as unanswered")
    return (
        found.join(F.broadcast(_excused(history, polls)), on=PARTITION, how="left")
        .groupBy(*PARTITION, "offset", "record_id", "committed")
        .agg(*(F.expr(f"max(since_ns) filter (where why = '{why}' and {_IN_RANGE})").alias(why) for why in _RANGES))
        .selectExpr(
            *PARTITION,
            "offset",
            "record_id",
            "committed",
            *(f"coalesce({why} >= coalesce(left_anew, {why}) and past is null, false) as {why}" for why in _EXCUSES),
        )
    )


_IN_RANGE = "offset >= range_from and offset < range_to"
_EXCUSES = ("died", "unanswered")
_RANGES = (*_EXCUSES, "past", "left_anew")


def _excused(history: History, polls: DataFrame) -> DataFrame:
    """Ranges of offsets, each with the reason why it matters, and since when. Returns: topic, partition, why (one of
    _RANGES), range_from, range_to, since_ns"""
    ranges = [
        unanswered(history).selectExpr(*PARTITION, "'unanswered' as why", "asked_from", "asked_to", "since_ns"),
        answered(history).selectExpr(*PARTITION, "'left_anew'", "answered_from", "answered_to", "since_ns"),
        went_past(polls).selectExpr(*PARTITION, "'past'", "past_from", "past_to", "0L"),
    ]
    if history.run_file.killed or history.run_file.died:
        ranges.append(unprocessed(history, polls).selectExpr(*PARTITION, "'died'", "left_from", "left_to", "since_ns"))
    return reduce(DataFrame.union, ranges).toDF(*PARTITION, "why", "range_from", "range_to", "since_ns")


def committed(history: History) -> DataFrame:
    """The range of the group in each partition: the start of its first assignment, and its greatest commit.

    An assignment without an offset begins at the log start. Returns: topic, partition, begun, committed
    """
    starts = "event in ('assign', 'seek')"
    return (
        history.table("positions")
        .groupBy(*PARTITION)
        .agg(
            F.expr(f"coalesce(min_by(coalesce(offset, 0), at_ns) filter (where {starts}), 0)").alias("begun"),
            F.expr(f"max(offset) filter (where {_COMMITTED})").alias("committed"),
        )
        .where("committed is not null")
    )


def unprocessed(history: History, polls: DataFrame) -> DataFrame:
    """What members that were killed, or died, are known to have committed but not processed.

    For each partition that a member owned to the end: from behind its last delivery (or the start of its assignment, or
    else the group's position) to its last commit in the history. A member polls, and asks to commit, only after it has
    processed all that it was answered for. So the range begins behind each request before that, if it was answered in
    all partitions (``Consuming.step``, workloads/clients/consuming.py). If the history does not record requests, the
    last commit of a killed member may be in no journal: then to the offset where the next owner began. Returns: topic,
    partition, left_from, left_to, since_ns (of the last assignment)
    """
    positions = history.table("positions")
    ended = [*history.run_file.killed, *history.run_file.died]
    killed = ", ".join(f"struct({one.worker}, {one.incarnation})" for one in ended)
    held = (
        positions.where(_BEGINS)
        .groupBy(*READER)
        .agg(
            F.expr("max(struct(at_ns, event, offset)) filter (where event != 'seek')").alias("last"),
            F.max("at_ns").alias("begun_ns"),
        )
        .where(f"last.event = 'assign' and struct(reader, incarnation) in ({killed})")
        .selectExpr(*READER, "last.at_ns as since_ns", "last.offset as assigned_at", "begun_ns")
    )
    reached = (
        polls.where("arrived is not null")
        .join(F.broadcast(held.select(*READER, "since_ns")), on=READER, how="inner")
        .where("at_ns >= since_ns")
        .groupBy(*READER)
        .agg(F.max("next").alias("reached"))
    )
    worked = (
        polls.select(*_MEMBER, "at_ns")
        .union(positions.where(f"event = 'committing' or {_BEGINS}").select(*_MEMBER, "at_ns"))
        .groupBy(*_MEMBER)
        .agg(F.max("at_ns").alias("worked_ns"))
    )
    processed = (
        _requests(history)
        .join(F.broadcast(held.select(*READER, "since_ns")), on=READER, how="inner")
        .join(F.broadcast(worked), on=_MEMBER, how="inner")
        .where("asked_ns >= since_ns and answered_ns < worked_ns")
        .groupBy(*READER)
        .agg(F.max("offset").alias("processed"))
    )
    mine = "struct(reader, incarnation) = holder"
    commits = (
        positions.where(f"{_COMMITTED} or event in ('assign', 'committing')")
        .join(
            F.broadcast(held.selectExpr(*PARTITION, "struct(reader, incarnation) as holder", "since_ns")),
            on=PARTITION,
            how="inner",
        )
        .groupBy(*PARTITION, "holder")
        .agg(
            F.expr("max(offset) filter (where event = 'commit' and at_ns < since_ns)").alias("before"),
            F.expr(f"max(offset) filter (where event = 'commit' and at_ns >= since_ns and {mine})").alias("committed"),
            F.expr(f"min_by(offset, at_ns) filter (where event = 'assign' and at_ns >= since_ns and not {mine})").alias(
                "taken_over_at"
            ),
            F.expr("bool_or(event = 'committing')").alias("asks"),
        )
        .selectExpr(*PARTITION, "holder.reader", "holder.incarnation", "before", "committed", "taken_over_at", "asks")
    )
    return (
        held.join(commits, on=READER, how="inner")
        .join(reached, on=READER, how="left")
        .join(processed, on=READER, how="left")
        .selectExpr(
            *PARTITION,
            "greatest(coalesce(reached, assigned_at, before, 0L), processed) as left_from",
            "if(asks, committed, greatest(committed, taken_over_at)) as left_to",
            "begun_ns as since_ns",
        )
    )


def unanswered(history: History) -> DataFrame:
    """Commits that members requested, but that were not acknowledged while they owned the partition. A broker that
    answered with an error, or not in time, may still have stored the commit. A member holds its records back until the
    request is acknowledged for each of its partitions (``Consuming.step``, workloads/clients/consuming.py).

    A range begins at the last request that was, or at the start of the member's assignment, or else at the group's
    position. Returns: topic, partition, asked_from, asked_to, since_ns
    """
    sure = _requests(history).groupBy(*ASSIGNMENT).agg(F.max("offset").alias("acknowledged"))
    unsure = "coalesce(acknowledged, began_at, stood, 0L) as asked_from"
    asked = _assignments(history).where("asked_to is not null").join(F.broadcast(sure), on=ASSIGNMENT, how="left")
    return asked.selectExpr(*PARTITION, unsure, "asked_to", "since_ns").where("asked_to > asked_from")


def answered(history: History) -> DataFrame:
    """Ranges in which an earlier commit of another member did not last, for a member that began before them committed
    with an acknowledgement: from the start of its assignment to the furthest commit in it, or in a later one. Whoever
    owned the partition before it is of an earlier generation: what it had asked to commit was overwritten, or refused.
    (A member that did not learn where it began, began where it got its first record; without any, where the group
    stood.)

    Returns: topic, partition, answered_from, answered_to, since_ns
    """
    sure = _assignments(history).where("answered is not null")
    all_of = sure.groupBy(*PARTITION).agg(F.collect_list(F.struct("since_ns", "answered")).alias("all"))
    since = "array_max(transform(filter(all, one -> one.since_ns >= since_ns), one -> one.answered)) as answered_to"
    learned = history.local(_learned_starts(history, _STARTS)).selectExpr(*READER, "at_ns as came_ns", "offset as came")
    began = "coalesce(began_at, min_by(came, came_ns) filter (where came_ns >= since_ns), stood, 0L) as answered_from"
    started = (
        sure.where("has_start")
        .join(F.broadcast(learned), on=READER, how="left")
        .groupBy(*ASSIGNMENT, "since_ns", "began_at", "stood")
        .agg(F.expr(began))
    )
    known = started.join(F.broadcast(all_of), on=PARTITION, how="inner")
    return known.selectExpr(*PARTITION, "answered_from", since, "since_ns")


def _assignments(history: History) -> DataFrame:
    """The commits of a member in each assignment interval. Returns: ASSIGNMENT, since_ns, has_start (whether an assign
    or a seek began it), began_at, stood (the group's commit before), asked_to, answered"""
    positions = _numbered(history)
    commits = F.collect_list(F.struct("at_ns", "offset")).alias("commits")
    stood = positions.where(_COMMITTED).groupBy(*PARTITION).agg(commits)
    before = "array_max(transform(filter(commits, one -> one.at_ns <= since_ns), one -> one.offset))"
    return (
        positions.groupBy(*ASSIGNMENT)
        .agg(
            F.expr("max(offset) filter (where event = 'committing')").alias("asked_to"),
            F.expr(f"max(if({_COMMITTED}, offset, null))").alias("answered"),
            F.expr(f"max(offset) filter (where {_BEGINS})").alias("began_at"),
            F.expr("coalesce(bool_or(event in ('assign', 'seek')), false)").alias("has_start"),
            F.min("at_ns").alias("since_ns"),
        )
        .join(F.broadcast(stood), on=PARTITION, how="left")
        .selectExpr(*ASSIGNMENT, "since_ns", "has_start", "began_at", f"{before} as stood", "asked_to", "answered")
    )


def _requests(history: History) -> DataFrame:
    """Commits that a member requested at one time for some partitions, and that were acknowledged for each of them in
    its assignment interval. Returns: ASSIGNMENT, offset, asked_ns, answered_ns (of the last answer in any partition)"""
    answer = "one -> one >= asked_ns and not exists(asked, other -> other > asked_ns and other <= one)"
    each = (
        _numbered(history)
        .groupBy(*ASSIGNMENT, "offset")
        .agg(
            F.expr("collect_list(at_ns) filter (where event = 'committing')").alias("asked"),
            F.expr(f"collect_list(at_ns) filter (where {_COMMITTED})").alias("answers"),
        )
        .selectExpr("*", "explode(asked) as asked_ns")
        .selectExpr(*ASSIGNMENT, "offset", "asked_ns", f"array_min(filter(answers, {answer})) as one_ns")
    )
    of_all = (
        each.groupBy(*_MEMBER, "asked_ns")
        .agg(F.max("one_ns").alias("answered_ns"), F.expr("bool_and(one_ns is not null)").alias("whole"))
        .where("whole")
        .drop("whole")
    )
    return each.drop("one_ns").join(of_all, on=[*_MEMBER, "asked_ns"], how="inner")


def _numbered(history: History) -> DataFrame:
    """Requests of commits, commits, and what begins assignment intervals. Returns: the columns of positions, and
    assignment"""
    positions = history.table("positions").where(f"event = 'committing' or {_COMMITTED} or {_BEGINS}")
    begun = positions.where(_BEGINS).groupBy(*READER).agg(F.collect_list("at_ns").alias("begun"))
    return positions.join(F.broadcast(begun), on=READER, how="left").withColumn(
        "assignment", F.expr("coalesce(size(filter(begun, one -> one <= at_ns)), 0)")
    )


def went_past(polls: DataFrame) -> DataFrame:
    """The range of offsets that each assignment of a member covers, from its first to its last position. Returns:
    topic, partition, past_from, past_to"""
    return (
        polls.groupBy(*ASSIGNMENT)
        .agg(
            F.expr("min(coalesce(first, next))").alias("past_from"),
            F.expr("max(next) filter (where arrived is not null)").alias("past_to"),
        )
        .select(*PARTITION, "past_from", "past_to")
    )
