"""The records that are gone from the logs of a run, as ranges, each with the decision about what took it.

Each range is decided (checkers/evidence/holders.py), or takes the decision of a neighbour
(checkers/evidence/neighbours.py).
"""

from threading import Lock

from checkers.evidence.causes import decided, in_terms, terms_led
from checkers.evidence.evidence import Evidence
from checkers.evidence.final_logs import Holes
from checkers.evidence.holes import with_final_logs
from checkers.evidence.neighbours import attached
from checkers.evidence.record_ranges import COLUMNS, RecordRange, bucket_width, record_ranges
from checkers.evidence.store import AnomalyStore, StoredRows
from checkers.history import History
from harness.core.anomalies import Anomaly, Gone
from harness.core.verdict import Standing


def losses_of(history: History, found: AnomalyStore, seen: Evidence) -> "Losses":
    """The losses of a run. ``found``: what all checkers found; ``seen``: the evidence without the final logs."""
    evidence, holes = with_final_logs(history, seen, found)
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
        self._one_at_a_time = Lock()

    def ranges(self, anomaly: Anomaly) -> list[RecordRange]:
        """The ranges of an anomaly's records, decided; undecided ones with the decision of a neighbour, if the same
        election may have taken both."""
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
        return in_terms(self._history, parts, width, self._led)

    def _gone(self, way: Gone) -> list[RecordRange]:
        """The ranges of all records that are gone in one way."""
        return [part for anomaly, _ in self._found.gone(way) for part in self._decided(anomaly)]

    def _decided(self, anomaly: Anomaly) -> list[RecordRange]:
        with self._one_at_a_time:
            if anomaly not in self._known:
                rows = self._found.of(anomaly)
                pieces, width = rows.pieces(COLUMNS), self._width(rows)
                parts = record_ranges(pieces, self._led, width, self._holes, self.evidence)
                self._known[anomaly] = decided(parts, anomaly, self.evidence)
            return self._known[anomaly]

    def _width(self, rows: StoredRows) -> int:
        return bucket_width(rows.extent(), len(self._led))
