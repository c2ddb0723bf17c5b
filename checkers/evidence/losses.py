"""The records that are gone from the logs of a run, as ranges, each with the decision about what took it.

Each range is decided (checkers/evidence/holders.py), or takes the decision of a neighbour
(checkers/evidence/neighbours.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import numpy as np
import pyarrow as pa

from checkers.evidence.causes import decided, in_terms, terms_led
from checkers.evidence.evidence import Evidence
from checkers.evidence.final_logs import Holes
from checkers.evidence.holes import FinalLogs, with_final_logs
from checkers.evidence.neighbours import along_the_log, attached
from checkers.evidence.record_ranges import COLUMNS, RecordRange, bucket_width, record_ranges, with_rows
from checkers.evidence.store import AnomalyStore, StoredRows
from checkers.history import History
from harness.core.anomalies import Anomaly, Gone
from harness.core.verdict import Standing

#: The columns that say to which transaction a missing record belongs, and which of its missing records it is.
_OF_TRANSACTION = pa.schema([("worker", pa.int32()), ("transaction", pa.int64()), ("nth", pa.int32())])


def losses_of(history: History, found: AnomalyStore, seen: Evidence, final: FinalLogs | None) -> "Losses":
    """The losses of a run. ``found``: what all checkers found; ``seen``: the evidence without the final logs;
    ``final``: as ``read_final_logs`` returns it."""
    evidence, holes = with_final_logs(history, seen, found, final)
    return Losses(history, found, holes, evidence)


class Losses:
    """The losses of a run in ``history``. ``found``: what all checkers found; ``holes``: those of the final logs.

    Each anomaly is decided once, whichever thread asks first.
    """

    def __init__(self, history: History, found: AnomalyStore, holes: Holes, evidence: Evidence) -> None:
        self.evidence = evidence
        self._history, self._found, self._holes = history, found, holes
        self._led = terms_led(history)
        self._known: dict[Anomaly, list[RecordRange]] = {}
        #: Of an anomaly that counts transactions, the numbers of the rows of each range.
        self._numbers: dict[Anomaly, list[np.ndarray]] = {}
        self._one_at_a_time = Lock()

    def ranges(self, anomaly: Anomaly) -> list[RecordRange]:
        """The ranges of an anomaly's records, decided; undecided ones with the decision of a neighbour, if the same
        election may have taken both. If it counts transactions, each counts once, where its worst record is."""
        evidence, width = self.evidence, self._width(self._found.of(anomaly))
        known, beside = self._decided(anomaly), dict[Gone, list[RecordRange]]()
        if any(part.standing is Standing.UNDECIDED for part in known):
            beside = {way: self._gone(way) for way in Gone if way is not anomaly.gone}
        # The cut that took acknowledged records may also have taken what moved, and what one event did wrong shows in
        # whatever it took.
        others = beside.get(Gone.ACKNOWLEDGED, []) if anomaly.gone is Gone.MOVED else []
        wrong = [part for ranges in beside.values() for part in ranges]
        spare = evidence.spare if anomaly.gone is Gone.ACKNOWLEDGED else {}
        parts = attached(known, width, evidence.logs, others, spare, evidence.written, wrong)
        if anomaly.counts_transactions:
            rows = pa.concat_tables(self._found.of(anomaly).pieces(_OF_TRANSACTION))
            parts = by_transaction(parts, self._numbers[anomaly], rows)
        return in_terms(self._history, parts, width, self._led)

    def _gone(self, way: Gone) -> list[RecordRange]:
        """The ranges of all records that are gone in one way."""
        return [part for anomaly, _ in self._found.gone(way) for part in self._decided(anomaly)]

    def _decided(self, anomaly: Anomaly) -> list[RecordRange]:
        with self._one_at_a_time:
            if anomaly not in self._known:
                rows = self._found.of(anomaly)
                pieces, width = rows.pieces(COLUMNS), self._width(rows)
                known = self._led, width, self._holes, self.evidence
                if anomaly.counts_transactions:
                    numbered = sorted(with_rows(pieces, *known), key=lambda one: along_the_log(one[0]))
                    self._numbers[anomaly] = [numbers for _, numbers in numbered]
                    parts = [part for part, _ in numbered]
                else:
                    parts = record_ranges(pieces, *known)
                self._known[anomaly] = decided(parts, anomaly, self.evidence)
            return self._known[anomaly]

    def _width(self, rows: StoredRows) -> int:
        return bucket_width(rows.extent(), len(self._led))


def by_transaction(parts: Sequence[RecordRange], numbers: Sequence[np.ndarray], rows: pa.Table) -> list[RecordRange]:
    """Record ranges that count transactions: each counts in the worst of the ranges that have a record of it.

    ``numbers``: the numbers of each range's records among ``rows`` (columns: worker, transaction, nth). Ranges that
    count none are left out.
    """
    part = np.zeros(len(rows), np.int64)
    for number, of in enumerate(numbers):
        part[of] = number
    rank = np.array([0 if one.decision is None else one.decision.rank for one in parts])[part]
    worker, transaction, nth = (column.to_numpy() for column in rows.columns)
    order = np.lexsort((nth, rank, transaction, worker))
    other = (np.diff(worker[order]) != 0) | (np.diff(transaction[order]) != 0)
    worst = order[np.concatenate([[True], other])]
    counts = np.bincount(part[worst], minlength=len(parts)).tolist()
    return [
        replace(one, count=count, acknowledged=min(one.acknowledged, count))
        for one, count in zip(parts, counts, strict=True)
        if count
    ]
