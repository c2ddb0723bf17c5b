"""Copies of records that were appended after the acknowledgement. Nobody sends an acknowledged record again, so only a
fault that held a copy back explains it; and a copy that was held back reaches no broker but the one to which it was
sent."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from checkers.evidence.elections import Elections, elections
from checkers.evidence.intervals import BEFORE, NEVER
from checkers.evidence.store import StoredRows, each_partition
from checkers.history import PARTITION, History, literal_path, spark_schema
from checkers.leadership import Partition
from checkers.scan.log_order import BUCKET
from checkers.scan.running_max import greatest_before
from harness.core.anomalies import DUPLICATED, Anomaly
from harness.core.faults import Row

#: The columns with the time in which a record was in flight.
IN_FLIGHT = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("sent_ns", pa.int64()), ("acknowledged_ns", pa.int64())]
)
#: The same, and whether a producer may have sent the record to the leader of its late copy by the acknowledgement.
LATE = pa.schema([*IN_FLIGHT, ("addressed", pa.bool_())])
_OFFSETS = ("record_id", "offset", "last_offset", "stands_at", "after_record")
_FOUND = pa.schema([*IN_FLIGHT, *((name, pa.int64()) for name in _OFFSETS), ("which", pa.string())])
_COPIES = pa.schema(
    [*IN_FLIGHT, ("epochs", pa.list_(pa.int32())), ("stands_epoch", pa.int32()), ("which", pa.string())]
)
_HANDED_OVER_AGAIN = "across incarnations"


def late_copies(
    history: History, anomaly: Anomaly, stored: StoredRows, faults: Sequence[Row] | None = None
) -> pa.Table:
    """The records of an anomaly of which the last copy (DUPLICATED), or the record itself, was appended after their
    acknowledgement: it is behind a record that was sent after that, or under a leader epoch that began after that.
    (Copies across incarnations do not count: the new producer handed them over again.) ``faults``: as of
    ``elections_of``.

    Returns: LATE
    """
    reader = history.spark.read.schema(spark_schema(_FOUND))
    found = reader.parquet(*map(literal_path, stored.files)).where("acknowledged_ns is not null")
    sent = history.sends.groupBy("record_id").agg(F.min("invoked_ns").alias("invoked_ns"))
    behind = _again(history, found, sent) if anomaly is DUPLICATED else _after(found, sent)
    known = elections_of(history, faults)
    after = resent_late(stored, known) if anomaly is DUPLICATED else _in_log_late(history, found, known)
    rows = behind.select(*IN_FLIGHT.names).toArrow()
    return pa.concat_tables([rows.append_column("addressed", pa.repeat(True, len(rows))), after])


def elections_of(history: History, faults: Sequence[Row] | None = None) -> dict[Partition, Elections]:
    """The elections of each reported partition, if these ``faults`` acted. By default, faults of which nobody knows
    whether they acted may have kept reports back, but stopped no leader."""
    stored, configuration = history.stored, history.run_file.configuration
    acted = history.faults if faults is None else faults
    return elections(stored.table("observations"), history.seen, stored.brokers, configuration, acted, faults)


def _again(history: History, found: DataFrame, sent: DataFrame) -> DataFrame:
    log = history.log.where("intact and record_id is not null")
    rows = log.select(*PARTITION, "offset", "record_id").join(sent, on="record_id")
    before = {"sent_before_ns": F.col("invoked_ns")}
    preceding = greatest_before(rows, PARTITION, ["offset"], history.pieces(BUCKET), before)
    last = found.where(f"coalesce(which != '{_HANDED_OVER_AGAIN}', true)").selectExpr(
        *PARTITION, "record_id", "coalesce(stands_at, last_offset) as offset", "sent_ns", "acknowledged_ns"
    )
    return preceding.join(last, on=[*PARTITION, "record_id", "offset"]).where("sent_before_ns > acknowledged_ns")


def _after(found: DataFrame, sent: DataFrame) -> DataFrame:
    witnesses = sent.selectExpr("record_id as after_record", "invoked_ns as after_sent_ns")
    return found.join(witnesses, on="after_record").where("after_sent_ns > acknowledged_ns")


def resent_late(stored: StoredRows, known: Mapping[Partition, Elections]) -> pa.Table:
    """The duplicated records of which a copy came late: its leader epoch began after their acknowledgement. That copy
    is the one in the final log, or the latest if all are gone.

    Returns: LATE
    """
    found = [LATE.empty_table()]
    for piece in stored.pieces(_COPIES):
        rows = piece.filter(pc.fill_null(pc.not_equal(piece["which"], _HANDED_OVER_AGAIN), True))
        found.append(_under_later_epochs(rows, _latest_epochs(rows), known))
    return pa.concat_tables(found)


def _latest_epochs(copies: pa.Table) -> npt.NDArray[np.int64]:
    """For each duplicated record, the leader epoch of the copy in the final log; if there is none, the latest epoch of
    its copies; -1 if it is not known."""
    latest = [max(epochs or [-1]) for epochs in copies["epochs"].to_pylist()]
    stands = copies["stands_epoch"].cast(pa.int64())
    epochs: npt.NDArray[np.int64] = pc.coalesce(stands, pa.array(latest, pa.int64())).to_numpy()
    return epochs


def _in_log_late(history: History, found: DataFrame, known: Mapping[Partition, Elections]) -> pa.Table:
    """The records that are in the log under a leader epoch that began after their acknowledgement."""
    latest_ns = max((term.begins_ns for its in known.values() for term in its.terms), default=BEFORE)
    log = history.log.where("leader_epoch >= 0").select(*PARTITION, "offset", "record_id", "leader_epoch")
    rows = found.where(f"acknowledged_ns < {latest_ns}").join(log, on=[*PARTITION, "offset", "record_id"])
    in_log = rows.select(*IN_FLIGHT.names, "leader_epoch").distinct().toArrow()
    return _under_later_epochs(in_log, in_log["leader_epoch"].to_numpy(), known)


def _under_later_epochs(
    rows: pa.Table, epochs: npt.NDArray[np.int64], known: Mapping[Partition, Elections]
) -> pa.Table:
    """The rows whose leader epoch, one of ``epochs``, began after their acknowledgement. Returns: LATE"""
    late, sent_to = np.zeros(len(rows), bool), np.ones(len(rows), bool)
    until = pc.fill_null(rows["acknowledged_ns"], NEVER).to_numpy()
    for of, here in each_partition(rows["topic"], rows["partition"]):
        if of in known:
            late[here] = until[here] < begins_ns(known[of], epochs[here])
            sent_to[here] = addressed(known[of], epochs[here], until[here])
    found = rows.select(IN_FLIGHT.names).append_column("addressed", pa.array(sent_to))
    return found.filter(pa.array(late))


def begins_ns(known: Elections, epochs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The earliest time when records with these leader epochs can have been appended. (An epoch that nobody reported
    began after all earlier ones.)"""
    began = np.full(len(epochs), BEFORE)
    for term in known.terms:
        if term.epoch is not None:
            began = np.where(epochs >= term.epoch, np.maximum(began, term.begins_ns), began)
    return began


def addressed(known: Elections, epochs: npt.NDArray[np.int64], until: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether a producer may have sent a record to the leader of each of these epochs by a time: that broker, or one
    that nobody reported, may have begun to lead by then. (Producers send to leaders only, and a request that was held
    back reaches no other broker than the one to which it was sent.)"""
    first = min((since for _, (since, _) in known.unreported), default=NEVER)
    found: npt.NDArray[np.bool_] = until >= first
    for epoch in np.unique(epochs):
        leaders = {term.leader for term in known.terms if term.epoch == epoch}
        led = [term.begins_ns for term in known.terms if term.leader in leaders]
        found |= (epochs == epoch) & (until >= min(led, default=BEFORE))
    return found
