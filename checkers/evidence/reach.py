"""Causes of anomalies whose records are not lost: a fault, if a partition had two owners in a group; a record that the
producer gave up, if an idempotent producer's records were written twice; a reason to send again, if records are
duplicated or late.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from checkers.evidence.behind import LAG_NS
from checkers.evidence.elections import Elections
from checkers.evidence.intervals import BEFORE, NEVER, Intervals, Window, merged
from checkers.evidence.late import IN_FLIGHT, elections_of, late_copies
from checkers.evidence.store import StoredRows, each_partition
from checkers.history import History
from checkers.leadership import Partition, Span
from harness.core.anomalies import DUPLICATED, Anomaly
from harness.core.clock import MS_NS
from harness.core.faults import (
    Does,
    Row,
    acted_on,
    does,
    kept_from_clients,
    may_keep_answers,
    slows_replication,
    split_by_end,
    stops,
)
from harness.history.run_file import Origin, RunFile
from harness.history.schema import FRESH_NS

#: The default of session.timeout.ms, and of group.consumer.session.timeout.ms.
_SESSION_MS = 45_000

#: When two members owned a partition: since the first delivery of one, until the last delivery of the other.
_OWNED = pa.schema([("since_ns", pa.int64()), ("other_until_ns", pa.int64())])

#: The columns of ``observations`` that name a group's coordinator.
_NAMED = ["observer", "at_ns", "coordinator"]

#: How long a healed fault may have after-effects: brokers start, leaders change, clients connect again.
FELT_NS = 10_000_000_000

#: A record, with the time in which it was in flight; the same with its producer; and with its copies.
_RECORD_IN_FLIGHT = pa.schema([*IN_FLIGHT, ("record_id", pa.int64())])
SENT_BY = pa.schema([*_RECORD_IN_FLIGHT, ("worker", pa.int32())])
_COPIES_IN_FLIGHT = pa.schema([*_RECORD_IN_FLIGHT, ("copies", pa.int64()), ("which", pa.string())])

#: Faults that may hold back a request until another one with the same record was answered.
_HOLDS_BACK = (Does.CUTS, Does.DELAYS, Does.HALTS_PROCESS)

#: Finds the copies that were appended after their acknowledgement.
LateCopies = Callable[[History, Anomaly, StoredRows, Sequence[Row]], pa.Table]

#: The error of a record that librdkafka gave up.
_GIVEN_UP = "_MSG_TIMED_OUT"


def cut_off(history: History, faults: Sequence[Row], two_owners: StoredRows, perhaps: bool = False) -> bool:
    """Whether faults cut members of a group off from its coordinator each time that two of them owned one partition.

    A cut has to keep them from it for a session, while it goes on as their coordinator: one that does not run ends no
    session, and another one begins all sessions anew. No member is given anything before the cut is healed, for it hits
    all clients. Then, or soon after that, the answer to its next heartbeat tells a member that it is none any more.

    ``perhaps``: whether any faults may have done so, from their beginning until a session after their end: of any node,
    of any length, and also such that only stop a broker, delay its answers or hide it from controllers or followers.
    (It answers some requests only when the ISR has what it wrote to its own log: broker configuration,
    offset.commit.timeout.ms; KIP-848.)
    """
    pieces = [*two_owners.pieces(_OWNED)]
    if not pieces:
        return False
    session_ns = _session_ns(history.run_file)
    if perhaps:
        # (A broker that starts again begins all sessions anew.)
        windows = [(begun, over + session_ns) for begun, over in map(_felt, filter(_may_have_acted, faults))]
    else:
        windows = [(row["healing_ns"], row["healed_ns"]) for row in _ending_sessions(history, faults, session_ns)]
    felt = Intervals((since, until + FELT_NS) for since, until in windows)
    owned = (zip(*(piece[name].to_pylist() for name in _OWNED.names), strict=True) for piece in pieces)
    return all(felt.cover(since, until) for times in owned for since, until in times)


def _may_have_acted(row: Row) -> bool:
    """Whether a fault acted; one that stops processes did if its own way to do so was not the one that stopped them."""
    return bool(acted_on(row)) or stops(row)


def _ending_sessions(history: History, faults: Sequence[Row], session_ns: int) -> Iterator[Row]:
    """The cuts that are known to have kept all members of a group from its coordinator for a session: most brokers
    named this one before the cut and when it was healed, and no other one in between. No other fault may have acted in
    that time, or so shortly before that it was still felt."""
    names = history.stored.brokers
    reports = history.stored.table("observations", pc.field("coordinator").is_valid(), _NAMED)
    named = _Coordinators(reports, len(names))
    for row in faults:
        injecting_ns, injected_ns, healing_ns = row["injecting_ns"], row["injected_ns"], row["healing_ns"]
        if None in (injected_ns, healing_ns, row["healed_ns"]) or healing_ns - injected_ns < session_ns:
            continue
        kept = {number for number, name in names.items() if name in kept_from_clients(row)}
        others = Intervals(_felt(other) for other in faults if other is not row)
        if named.throughout(injecting_ns, healing_ns) in kept and not others.meet(injecting_ns, row["healed_ns"]):
            yield row


class _Coordinators:
    """The broker that most of all ``brokers`` named as the group's coordinator, over time. ``reports``: observer,
    at_ns, coordinator. A report counts for 3 s. (One that is cut off may name itself for ever.)"""

    def __init__(self, reports: pa.Table, brokers: int) -> None:
        distinct = reports.group_by(_NAMED).aggregate([]).sort_by([("at_ns", "ascending"), ("observer", "ascending")])
        last: dict[str, tuple[int, int]] = {}
        self._at: list[int] = []
        self._names: list[int | None] = []
        for observer, at_ns, coordinator in zip(*(distinct[name].to_pylist() for name in _NAMED), strict=True):
            last[observer] = (at_ns, coordinator)
            votes = Counter(name for since, name in last.values() if at_ns - since <= FRESH_NS)
            [(name, count)] = votes.most_common(1)
            self._at.append(at_ns)
            self._names.append(name if 2 * count > brokers else None)

    def at(self, at_ns: int) -> int | None:
        """The coordinator at this time; None if nobody knows."""
        n = bisect_right(self._at, at_ns) - 1
        return self._names[n] if n >= 0 and at_ns - self._at[n] <= FRESH_NS else None

    def throughout(self, from_ns: int, to_ns: int) -> int | None:
        """The coordinator at both times, if no other was named in between; else None."""
        between = self._names[bisect_right(self._at, from_ns) : bisect_right(self._at, to_ns)]
        first, last = self.at(from_ns), self.at(to_ns)
        return first if first == last and {*between} <= {first, None} else None


def _session_ns(run: RunFile) -> int:
    """The longest session of a member. (With group.protocol=consumer the broker decides it: KIP-848.)"""
    of_brokers = (run.scenario.get("cluster") or {}).get("config") or {}
    sessions = (
        of_brokers.get("group.consumer.session.timeout.ms")
        if member.get("group.protocol") == "consumer"
        else member.get("session.timeout.ms")
        for member in run.workers("positions").values()
    )
    return max((int(ms or _SESSION_MS) for ms in sessions), default=_SESSION_MS) * MS_NS


def given_up_beside(history: History, duplicated: StoredRows) -> bool:
    """Whether each duplicated record was in flight when its producer gave up another record.

    An idempotent producer of librdkafka then begins a new epoch, and sends the rest of the batch again under that
    epoch: a broker that had already written the batch does not recognize it (librdkafka#4953; #2188). It does not send
    again what it gave up itself.
    """
    rows, beside = _beside(history, duplicated)
    return bool(len(rows)) and bool(beside.all())


def written_beside(history: History, duplicated: StoredRows) -> pa.Array:
    """The ids of the duplicated records that ``given_up_beside`` holds for."""
    rows, beside = _beside(history, duplicated)
    return rows["record_id"].filter(beside).combine_chunks()


def _beside(history: History, duplicated: StoredRows) -> tuple[pa.Table, npt.NDArray[np.bool_]]:
    """The duplicated records, each with whether its producer gave up another record while it was in flight."""
    others, rows = given_up(history), until_reported(history, duplicated, SENT_BY)
    known = pc.and_(pc.is_valid(rows["worker"]), pc.is_valid(rows["sent_ns"])).to_numpy()
    beside = np.zeros(len(rows), bool)
    if len(others):
        beside[known] = beside_given_up(others, rows.filter(known))
    return rows, beside


def given_up(history: History) -> pa.Table:
    """The records that producers gave up, in the order of time. Returns: worker, completed_ns, record_id"""
    found = history.stored.table("sends", pc.field("error") == _GIVEN_UP, ["worker", "completed_ns", "record_id"])
    return found.filter(pc.is_valid(found["completed_ns"])).sort_by("completed_ns")


def beside_given_up(given_up: pa.Table, rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether each of these records (SENT_BY) was in flight when its producer gave up another record. An idempotent
    producer then may write it once more (see ``given_up_beside``)."""
    found, workers = np.zeros(len(rows), bool), rows["worker"].to_numpy()
    for worker in given_up["worker"].unique().to_pylist():
        own, here = given_up.filter(pc.equal(given_up["worker"], worker)), np.flatnonzero(workers == worker)
        found[here] = _amid(own, rows.take(here))
    return found


def _amid(given_up: pa.Table, rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether another record was ``given_up`` while each of these was in flight."""
    times, records = (given_up[name].to_numpy() for name in ("completed_ns", "record_id"))
    ids, sent = (rows[name].to_numpy() for name in ("record_id", "sent_ns"))
    until = pc.fill_null(rows["acknowledged_ns"], NEVER).to_numpy()
    first, last = (np.searchsorted(times, at, side="right") for at in (sent, until))
    found: npt.NDArray[np.bool_] = first < last
    for n in np.flatnonzero(np.isin(ids, records)):
        found[n] = (records[first[n] : last[n]] != ids[n]).any()
    return found


@dataclass(frozen=True)
class Disturbances:
    """The times in which something may have kept a partition's acknowledgements from producers: ``faults`` or
    ``elections``; and the times in which faults may have ``held`` back requests. A request without an answer for
    ``timeout_ns`` is sent again anyway. ``unread_ns``: how long after its producer's report a record may wait for its
    leader to read it. ``small``: the times in which the leader refused records, because too few brokers were in sync.
    """

    faults: Sequence[Window]
    held: Sequence[Window]
    elections: Sequence[Window]
    timeout_ns: int
    unread_ns: int = 0
    small: Sequence[Window] = ()

    def resent(self, sent: npt.NDArray[np.int64], until: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which records may have been sent again: there was a disturbance before they were acknowledged."""
        met = during([*self.faults, *self.elections], sent, until + self.unread_ns)
        return met | (until - sent >= self.timeout_ns)

    def resent_or_refused(self, sent: npt.NDArray[np.int64], until: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which records may have been sent again, written once or not before."""
        return self.resent(sent, until) | during(self.small, sent, until)

    def held_back(self, sent: npt.NDArray[np.int64], until: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which records may have been appended once more after their acknowledgement."""
        return during(self.held, sent, until)

    def refused(self, sent: npt.NDArray[np.int64], until: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which records may have been sent to a leader that no longer led."""
        return during(self.elections, sent, until)


@dataclass(frozen=True)
class Resent:
    """For an anomaly: whether each record may have been sent ``again`` before its acknowledgement; whether each was in
    flight during an election (``elected``); whether a fault may have ``held`` back each late copy; and whether a record
    has more copies than retries allow (``too_many_copies``)."""

    again: bool
    elected: bool
    held: bool = False
    too_many_copies: bool = False


def resent(
    history: History,
    anomaly: Anomaly,
    found: StoredRows,
    faults: Sequence[Row],
    copies: LateCopies = late_copies,
    wanted: pc.Expression | None = None,
) -> Resent:
    """Whether records were ``found`` twice, or late, because they were sent again.

    A copy that was appended after the acknowledgement was not sent again because that was missing, unless a fault held
    requests back, so that the first request arrived after the second; but no request waits for a broker that had not
    led yet. With acks=0 a request is over when it was written to the connection: what is sent again is what no broker
    had received (librdkafka, rd_kafka_send). An imported history does not contain its faults. ``copies``: finds the
    copies that were appended late. ``wanted``: which of the rows to ask about.
    """
    if anomaly is DUPLICATED and history.run_file.configuration.acks == "0":
        return Resent(again=False, elected=False)
    if history.run_file.origin is not Origin.KAFKA_TRIAL:
        late = copies(history, anomaly, found, faults)
        return Resent(again=not len(late), elected=True, held=bool(len(late)))
    each = disturbances(history, faults)
    rows = until_reported(history, found, _COPIES_IN_FLIGHT, wanted)
    sent_again = Disturbances.resent if anomaly is DUPLICATED else Disturbances.resent_or_refused
    again, elected = (_of_all([rows], each, which) for which in (sent_again, Disturbances.refused))
    late = copies(history, anomaly, found, faults) if again else ()
    if not len(late):
        too_many_copies = again and _too_many_copies(rows, each, history.run_file.configuration.retries)
        return Resent(again and not too_many_copies, elected, too_many_copies=too_many_copies)
    return Resent(again=False, elected=elected, held=_held_back(late, each))


def _too_many_copies(rows: pa.Table, each: Mapping[Partition, Disturbances], retries: int) -> bool:
    """Whether a record has more copies than one for each time that it may be sent, though no election let it be sent
    once more."""
    more = rows.filter(pc.and_(pc.greater(rows["copies"], retries + 1), pc.equal(rows["which"], "same incarnation")))
    return bool(len(more)) and not _of_all([more], each, Disturbances.refused)


def until_reported(
    history: History, found: StoredRows, columns: pa.Schema, wanted: pc.Expression | None = None
) -> pa.Table:
    """The ``wanted`` rows of records. If one was not acknowledged, its ``acknowledged_ns`` is the time when it was
    reported as given up: its producer sends it no more after that. Null if there is a send of it without a report."""
    rows = pa.concat_tables([columns.empty_table(), *found.pieces(columns, wanted)])
    ids = rows["record_id"].filter(pc.is_null(rows["acknowledged_ns"])).combine_chunks()
    if not len(ids):
        return rows
    sends = history.stored.table("sends", pc.field("record_id").isin(ids), ["record_id", "completed_ns"])
    sends = sends.set_column(1, "reported_ns", pc.fill_null(sends["completed_ns"], NEVER))
    rows = rows.join(sends.group_by("record_id").aggregate([("reported_ns", "max")]), "record_id")
    until = pc.coalesce(rows["acknowledged_ns"], rows["reported_ns_max"])
    return rows.select(columns.names).set_column(columns.get_field_index("acknowledged_ns"), "acknowledged_ns", until)


def held_back(history: History, faults: Sequence[Row], late: pa.Table) -> bool:
    """Whether a fault may have held back each of these late copies until another was acknowledged."""
    return _held_back(late, disturbances(history, faults))


def _held_back(late: pa.Table, each: Mapping[Partition, Disturbances]) -> bool:
    return all(late["addressed"].to_pylist()) and _of_all([late], each, Disturbances.held_back)


def disturbances(history: History, faults: Sequence[Row]) -> "_Each":
    """The disturbances of each partition's acknowledgements."""
    known = elections_of(history, faults)
    timeout_ns = history.run_file.request_timeout_ns
    brokers = frozenset(history.stored.brokers.values())
    acks_all, min_isr = history.run_file.configuration.acks_all, history.run_file.configuration.min_insync_replicas
    # (Only a leader that needs a second broker of its ISR may answer with an error after it has written.)
    of_all = acks_all and min_isr > 1
    # (With acks=0 the report comes when the request was written to the connection.)
    unread_ns = FELT_NS if history.run_file.configuration.acks == "0" else 0

    def of(partition: Partition) -> Disturbances:
        its, terms = known.get(partition), known[partition].terms if partition in known else ()
        replicas = brokers if its is None else {its.names.get(broker) for broker in its.replicas}
        changes = [(term.begins_ns, max(term.seen_ns + LAG_NS, before.ends_ns)) for before, term in pairwise(terms)]
        led = [(BEFORE, NEVER, replicas)]
        if its is not None and terms:
            begun, over = (BEFORE, *(at for at, _ in changes)), (*(at for _, at in changes), NEVER)
            leaders = ({its.names.get(term.leader)} for term in terms)
            led = [*zip(begun, over, leaders, strict=True)]
        near, holding = [], []
        for row in split_by_end(faults):
            injecting_ns, felt_ns = _felt(row)
            held = any(does(row, what) for what in _HOLDS_BACK)
            # (What hit a broker counts from when that broker led on: clients had nothing to do with it before. It
            # counts until they know the next leader: one without an answer may ask for it only when it has timed out.)
            late_ns = max(FELT_NS, timeout_ns) if held else FELT_NS
            reached = [
                (leaders, (max(begun, injecting_ns), min(over + late_ns, felt_ns)))
                for begun, over, leaders in led
                if begun <= felt_ns and injecting_ns <= over
            ]
            keeps = partial(may_keep_answers, row, replicas=replicas, brokers=brokers)
            near += [at for to, at in reached if keeps(to, acks_all=of_all)]
            # (A request is held back on its way to the leader.)
            holding += [at for to, at in reached if held and keeps(to, acks_all=False)]
            # (A leader that waits for its followers reads nothing else from that connection. When the first request has
            # timed out, the client closes the connection, and sends again whatever was behind it.)
            full_ns = injecting_ns + timeout_ns
            slow = [(to, (max(since, full_ns), until)) for to, (since, until) in reached if full_ns <= until]
            waits = acks_all and slows_replication(row, replicas)
            behind = [at for to, at in slow if waits and not keeps(to, acks_all=False)]
            near += [] if of_all else behind
            holding += behind if held else []
        small, shrunk = _too_few_in_sync(its, min_isr) if of_all and its is not None else ([], [])
        return Disturbances([*near, *shrunk], holding, changes, timeout_ns, unread_ns, small)

    return _Each(of)


def _too_few_in_sync(its: Elections, min_isr: int) -> tuple[list[Window], list[Window]]:
    """The times in which the ISR may have been too small, so that the leader refused records; and those in which it may
    have become too small, so that the leader refused records that it had written."""
    small, shrunk = list[Window](), list[Window]()
    before: Span | None = None
    for report in sorted(its.current, key=lambda report: report.from_ns):
        if len(report.isr) < min_isr:
            small.append((report.from_ns - its.lag_ns, report.to_ns + its.lag_ns))
            if before is not None and len(before.isr) >= min_isr:
                shrunk.append((before.to_ns - its.lag_ns, report.from_ns + its.lag_ns))
        before = report
    return merged(small), merged(shrunk)


class _Each(dict[Partition, Disturbances]):
    """The disturbances of each partition, computed at the first access."""

    def __init__(self, of: Callable[[Partition], Disturbances]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, partition: Partition) -> Disturbances:
        self[partition] = found = self._of(partition)
        return found


def _of_all(
    stored: Iterable[pa.Table],
    each: Mapping[Partition, Disturbances],
    which: Callable[[Disturbances, npt.NDArray[np.int64], npt.NDArray[np.int64]], npt.NDArray[np.bool_]],
) -> bool:
    """Whether ``which`` holds for all rows. False if a row was never sent."""
    for piece in stored:
        if piece["sent_ns"].null_count:
            return False
        sent = piece["sent_ns"].to_numpy()
        until = pc.fill_null(piece["acknowledged_ns"], NEVER).to_numpy()
        for of, here in each_partition(piece["topic"], piece["partition"]):
            if not which(each[of], sent[here], until[here]).all():
                return False
    return True


def during(
    windows: Iterable[Window], sent: npt.NDArray[np.int64], until: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Whether each of these records was in flight in any of the ``windows``."""
    found = np.zeros(len(sent), bool)
    for begun, over in windows:
        found |= (begun <= until) & (sent <= over)
    return found


def _felt(row: Row) -> Window:
    return row["injecting_ns"], NEVER if row["healed_ns"] is None else row["healed_ns"] + FELT_NS
