"""Transactions that hang: whether the first write of one had reached its leader before the transaction ended. Then a
marker is missing. If not, the write came late, and began a transaction that no coordinator knows of (KAFKA-14402).

Either needs a proof: the write was there before its producer asked for the end, or it stands above the marker.
"""

from bisect import bisect_left
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from checkers.leadership import COMES_BACK_NS, FRESH_NS, LeaderTerm, leader_terms, spans
from harness.core.clock import MS_NS
from harness.core.faults import Row, may_have_acted
from harness.core.topology import Partition
from harness.history.last_stable import StableEnds
from harness.history.schema import Phase, PositionEvent
from harness.history.stored_run import StoredRun

#: librdkafka's default of transaction.timeout.ms.
TIMEOUT_MS = 60_000
#: Later than any time of a history.
_NEVER = 1 << 62
#: Where no transaction is in the order: before all.
_BEFORE = (-1, 0)
_TRANSACTION = ["worker", "incarnation", "transaction"]
#: The same as values.
_Transaction = tuple[int, int, int]


def in_time(stored: StoredRun, of: Partition, ends: StableEnds) -> bool | None:
    """Whether the write at the last stable offset was there before its producer asked for the end of its transaction:
    it was acknowledged or read there, or the log went on above it. An acknowledgement without an offset counts if the
    write was read there. A write counts as in time, too, if a later end of its producer would have ended what it began.

    It was not if the marker that ended its transaction as it was asked for stands below it: an earlier record of that
    transaction stands below, and what it began there has ended, or the log would not be stable so far.

    If nobody knows which write stands there, it may be one without an answer. If none can be, a marker is missing.

    None if nothing shows either. So it is if the transaction may have ended before its end was asked for: its timeout
    was over; or a fault may have held back the request for an earlier end of the same producer, which then ended this
    transaction (KAFKA-17754). None, too, if it depends on which of several writes stands there, or whether its
    acknowledgement is of a copy below; or if the history lacks something. None, too, if the log begins there: then the
    transaction may have begun below, in what is deleted.
    """
    log, begins = _Log(stored, of, ends.last_stable), stored.ends.get(of)
    if begins is not None and 0 < ends.last_stable <= begins["log_start"]:
        return None
    written = log.written
    if not written:
        return None if log.has_a_stranger else log.of_any(log.may_stand_there())
    copied = log.found_below(send for send in written if send["offset"] is None)
    each = {
        log.before_its_end(send, answered, copy=copy)
        for send in written
        for answered, copy in _acknowledged_there(send, ends, copied)
    }
    if False in each and not log.still_has(written):
        return None
    return each.pop() if len(each) == 1 else None


def _acknowledged_there(send: Row, ends: StableEnds, copied: Container[int]) -> Sequence[tuple[bool, bool]]:
    """Whether the acknowledgement of a write at the last stable offset is of that write, and whether the write is a
    copy; both answers if it may be one. ``copied``: the writes that stand below, too."""
    if send["outcome"] != "ok":
        return ((False, False),)
    if send["offset"] is not None:
        there = send["offset"] == ends.last_stable
        return ((there, not there),)
    return ((True, False), (False, True)) if send["record_id"] in copied else ((True, False),)


@dataclass(frozen=True)
class _Log:
    """The log of a partition, which is stable to ``last_stable`` only."""

    stored: StoredRun
    of: Partition
    last_stable: int
    _producers: dict[int, "_Producer"] = field(default_factory=dict)

    @cached_property
    def rows(self) -> pc.Expression:
        """The rows of this partition."""
        return (pc.field("topic") == self.of[0]) & (pc.field("partition") == self.of[1])

    @cached_property
    def read_ns(self) -> dict[int, int]:
        """When each record that was read at the last stable offset was read there first."""
        there = self.rows & (pc.field("offset") == self.last_stable)
        found: dict[int, int] = {}
        for row in self.stored.rows("reads", there & pc.field("intact") & pc.is_valid(pc.field("record_id"))):
            found[row["record_id"]] = min(row["read_ns"], found.get(row["record_id"], row["read_ns"]))
        return found

    @cached_property
    def written(self) -> Sequence[Row]:
        """The writes of transactions that were acknowledged or read at the last stable offset."""
        read = self.rows & pc.field("record_id").isin(pa.array(self.read_ns, pa.int64()))
        acknowledged = self.rows & (pc.field("offset") == self.last_stable) & (pc.field("outcome") == "ok")
        return self.stored.rows("sends", (acknowledged | read) & pc.is_valid(pc.field("transaction")))

    def still_has(self, written: Iterable[Row]) -> bool:
        """Whether no election can have replaced one of these writes, which stood at the last stable offset."""
        there = self.lasting & (pc.field("offset") == self.last_stable)
        return self.led_by_one or {send["record_id"] for send in written} <= self._read(written, there)

    @property
    def has_a_stranger(self) -> bool:
        """Whether a record was read at the last stable offset that nobody is known to have sent."""
        sent = self.stored.table("sends", pc.field("record_id").isin(pa.array(self.read_ns, pa.int64())), ["record_id"])
        return not self.read_ns.keys() <= {*sent["record_id"].to_pylist()}

    @cached_property
    def stable_ns(self) -> int:
        """When its last stable offset was asked for last."""
        asked = self.rows & (pc.field("event") == PositionEvent.LAST_STABLE)
        times: list[int] = self.stored.table("positions", asked, ["at_ns"])["at_ns"].to_pylist()
        return max(times)

    @cached_property
    def _terms(self) -> list[LeaderTerm]:
        """Its leader terms; none if nobody reported the last of them until the end, or with its epoch."""
        seen = spans(self.stored.table("observations", self.rows))
        terms = leader_terms(seen, self.of)
        if not terms or terms[-1].leader_epoch is None:
            return []
        last = terms[-1].leader, terms[-1].leader_epoch
        until_ns = max(span.to_ns for span in seen if (span.leader, span.leader_epoch) == last)
        reported = pc.field("leader_epoch").isin(pa.array([term.leader_epoch for term in terms], pa.int32()))
        of_others = self.rows & pc.is_valid(pc.field("leader_epoch")) & ~reported
        unreported = self.stored.table("reads", of_others, ["leader_epoch"]).num_rows > 0
        return [] if unreported or until_ns + FRESH_NS < self.stable_ns else terms

    @property
    def led_by_one(self) -> bool:
        """Whether there was no election that may have replaced what stood in the log."""
        return len(self._terms) == 1

    @property
    def lasting(self) -> pc.Expression:
        """The reads that show what its last leader has."""
        live, final = self.rows & (pc.field("phase") != Phase.REPLICA), pc.field("phase") == Phase.FINAL
        if not self._terms or self.led_by_one:
            return live & (pc.scalar(self.led_by_one) | final)
        return live & ((pc.field("leader_epoch") == self._terms[-1].leader_epoch) | final)

    @cached_property
    def passed_ns(self) -> int | None:
        """When something was first known to stand at the last stable offset or above: what stands there now was there
        by then. None if nothing was, or if an election may have replaced it since."""
        passed = pc.field("offset") >= self.last_stable
        times = [self._first("reads", "read_ns", self.lasting & passed)]
        if self.led_by_one:
            acknowledged = self.rows & passed & (pc.field("outcome") == "ok")
            times.append(self._first("sends", "completed_ns", acknowledged))
        return min((ns for ns in times if ns is not None), default=None)

    def _first(self, table: str, column: str, wanted: pc.Expression) -> int | None:
        first: int | None = pc.min(self.stored.table(table, wanted, [column])[column]).as_py()
        return first

    def may_stand_there(self) -> list[Row]:
        """The writes that may be the one at the last stable offset: those without an answer, or acknowledged without
        their offset, that were not found elsewhere (a write of a transaction stands in a log once), and were sent
        before the log had passed that offset."""
        silent = (pc.field("outcome") == "info") | ((pc.field("outcome") == "ok") & pc.is_null(pc.field("offset")))
        sends = self.stored.rows("sends", self.rows & silent & pc.is_valid(pc.field("transaction")))
        elsewhere = self.found_below(sends) | self._read(sends, self.lasting & (pc.field("offset") != self.last_stable))
        by_ns = self.stable_ns if self.passed_ns is None else self.passed_ns
        return [send for send in sends if send["record_id"] not in elsewhere and send["invoked_ns"] <= by_ns]

    def found_below(self, sends: Iterable[Row]) -> set[int]:
        """Which of these writes the final read found below the last stable offset."""
        final = self.rows & (pc.field("phase") == Phase.FINAL)
        return self._read(sends, final & (pc.field("offset") < self.last_stable))

    def _read(self, sends: Iterable[Row], where: pc.Expression) -> set[int]:
        ids = {send["record_id"] for send in sends}
        own = where & pc.field("intact") & pc.field("record_id").isin(pa.array(ids, pa.int64()))
        return {*self._ids(own).to_pylist()} if ids else set()

    def _ids(self, reads: pc.Expression) -> pa.ChunkedArray:
        return self.stored.table("reads", reads, ["record_id"])["record_id"]

    def of_any(self, sends: Iterable[Row]) -> bool | None:
        """The answer if one of these writes stands there, or none of them; None if it depends on which."""
        first: dict[tuple[int, int, int, bool], Row] = {}
        for send in sends:
            its = *_of(send), send["outcome"] == "ok"
            # (Of those with an answer, the last: if that was in time, all were.)
            if its not in first or (send["sequence"] < first[its]["sequence"]) != its[3]:
                first[its] = send
        each = {self.before_its_end(send, answered=its[3]) for its, send in first.items()}
        if self.stored.file.partial or len(each) > 1:
            return None
        return each.pop() if each else True

    def before_its_end(self, send: Row, answered: bool, copy: bool = False) -> bool | None:
        """The answer if this write stands at the last stable offset. ``answered``: its acknowledgement counts.
        ``copy``: it was acknowledged elsewhere, so nobody knows which producer wrote it here. (No leader appends a
        record of an idempotent producer again.)"""
        producer = self._producer(send["worker"])
        its = producer.transactions.get(_of(send))
        if its is None or (its["ending_ns"] is None and self.stored.file.partial):
            return None
        if not copy and producer.ended_above > _order(its):
            return True
        acknowledged = [send["completed_ns"]] if answered else []
        known = self.read_ns.get(send["record_id"]), self.passed_ns
        there_ns = min((*acknowledged, *(ns for ns in known if ns is not None)), default=_NEVER)
        asked_ns = _NEVER if its["ending_ns"] is None else its["ending_ns"]
        replaced = its["ending_ns"] is None and not acknowledged and producer.replaced(its)
        if there_ns < asked_ns and not replaced:
            return None if producer.may_have_ended(its, there_ns) else True
        return False if not copy and producer.ended_below(its, send["sequence"]) else None

    def _producer(self, worker: int) -> "_Producer":
        if worker not in self._producers:
            rows = self.stored.rows("transactions", pc.field("worker") == worker)
            config = self.stored.file.workers("sends").get(worker, {})
            timeout_ms = int(config.get("transaction.timeout.ms", TIMEOUT_MS))
            above = self._first_acknowledged(worker, "completed_ns", pc.field("offset") > self.last_stable)
            below = self._first_acknowledged(worker, "sequence", pc.field("offset") < self.last_stable)
            acted = may_have_acted(self.stored.faults)
            self._producers[worker] = _Producer({_of(row): row for row in rows}, timeout_ms, acted, above, below)
        return self._producers[worker]

    def _first_acknowledged(self, worker: int, column: str, where: pc.Expression) -> dict[_Transaction, int]:
        """The least value of a column, by transaction of a worker, of its acknowledged records that stand there."""
        there = self.rows & where
        own = (pc.field("worker") == worker) & (pc.field("outcome") == "ok") & pc.is_valid(pc.field("transaction"))
        sends = self.stored.table("sends", there & own, ["record_id", *_TRANSACTION, column])
        if not self.led_by_one:
            ids = sends["record_id"].combine_chunks()
            lasting = self.lasting & there & pc.field("intact") & pc.field("record_id").isin(ids)
            sends = sends.filter(pc.is_in(sends["record_id"], self._ids(lasting)))
        first = sends.group_by(_TRANSACTION).aggregate([(column, "min")])
        return {_of(row): row[f"{column}_min"] for row in first.to_pylist()}


@dataclass(frozen=True)
class _Producer:
    """The transactions of a producer in all its incarnations, which have one producer id. ``faults``: those that may
    have acted. ``above``: when each transaction first had an answer for a record above the last stable offset;
    ``below``: the sequence of its first record with an answer below that offset."""

    transactions: Mapping[_Transaction, Row]
    timeout_ms: int
    faults: Sequence[Row]
    above: Mapping[_Transaction, int]
    below: Mapping[_Transaction, int]

    @cached_property
    def ended_above(self) -> tuple[int, int]:
        """The order of the last transaction that was ended above the last stable offset. Such an end ends whatever this
        producer id began below it (ProducerAppendInfo)."""
        ended = (self.transactions[of] for of in self.above if of in self.transactions)
        after = (row for row in ended if _ended(row) and self.above[_of(row)] < row["ending_ns"])
        return max((_order(row) for row in after if not self.may_have_ended(row, row["ending_ns"])), default=_BEFORE)

    def ended_below(self, its: Row, sequence: int) -> bool:
        """Whether the marker that ended this transaction as it was asked for stands below the last stable offset, and
        the transaction's record of this sequence can have come behind it. (Not behind one that was sent later: leaders
        keep a producer's order. Nor behind a later transaction, which may have a later epoch.)"""
        if not (_ended(its) and self.below.get(_of(its), sequence) < sequence and self._last_below <= _order(its)):
            return False
        return not self.may_have_ended(its, its["ending_ns"])

    @cached_property
    def _last_below(self) -> tuple[int, int]:
        return max((_order(self.transactions[of]) for of in self.below if of in self.transactions), default=_BEFORE)

    def may_have_ended(self, its: Row, by_ns: int) -> bool:
        """Whether this transaction may have ended by then without its own request: its timeout was over, or a request
        for the end of an earlier one ended it. (Another incarnation of the producer has another epoch: its requests
        for ends cannot end this transaction.)"""
        if by_ns - its["began_ns"] >= self.timeout_ms * MS_NS:
            return True
        began, late = self._late_ends.get(its["incarnation"], ([], []))
        earlier = bisect_left(began, its["began_ns"])
        return earlier > 0 and late[earlier - 1] <= by_ns

    @cached_property
    def _late_ends(self) -> dict[int, tuple[list[int], list[int]]]:
        """By incarnation: when its transactions began, in order; and from when on a fault may have made its producer
        send the request for the end of one of those again, so that one of both came late."""
        found: dict[int, tuple[list[int], list[int]]] = {}
        for row in sorted(self.transactions.values(), key=_order):
            if row["ending_ns"] is not None:
                began, late = found.setdefault(row["incarnation"], ([], []))
                began.append(row["began_ns"])
                late.append(min([self._late_ns(row), *late[-1:]]))
        return found

    def _late_ns(self, its: Row) -> int:
        felt = (
            row
            for row in self.faults
            if row["healed_ns"] is None or row["healed_ns"] + COMES_BACK_NS >= its["ending_ns"]
        )
        first = min((row["injecting_ns"] for row in felt), default=_NEVER)
        if its["ended_ns"] is None:
            return first
        return -_NEVER if first <= its["ended_ns"] else _NEVER

    def replaced(self, its: Row) -> bool:
        """Whether a later incarnation began a transaction: it ended the open one before (KIP-98, InitProducerId)."""
        return bool(self._last_incarnation > its["incarnation"])

    @cached_property
    def _last_incarnation(self) -> int:
        return max(incarnation for _, incarnation, _ in self.transactions)


def _of(row: Row) -> _Transaction:
    return row["worker"], row["incarnation"], row["transaction"]


def _order(row: Row) -> tuple[int, int]:
    """Where it is in the order of its producer's transactions."""
    return row["incarnation"], row["began_ns"]


def _ended(row: Row) -> bool:
    """Whether its end was asked for, and answered."""
    return row["outcome"] == "ok" and row["ending_ns"] is not None
