"""The three scans of a history. Each is one pass that counts candidates; they run at the same time."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from enum import StrEnum

from pyspark.sql import DataFrame

from checkers.history import History
from checkers.scan.log_order import log_order
from checkers.scan.record_bits import UNSETTLED, Candidates, candidates
from checkers.summary import BESIDE, COUNTS, COUNTS_OF_READERS
from harness.core.errors import HistoryError


class Scan(StrEnum):
    """The scans: records, 64 to a row (checkers/scan/record_bits.py); the order of the log
    (checkers/scan/log_order.py); polls (checkers/scan/polls.py)."""

    RECORD_BITS = "record bits"
    LOG_ORDER = "log order"
    POLLS = "polls"


#: For each scan: SQL on its rows to sum up, by the name of the caller.
Sums = Mapping[Scan, Mapping[str, str]]


@dataclass(frozen=True)
class BitCounts:
    """The counts of the scan of record bits: the requested ``sums``, the run's summary, and the number of ``unsettled``
    records, whose acknowledgement does not say where they are."""

    sums: dict[str, int]
    summary: dict[str, int]
    unsettled: int


def count_record_bits(history: History, folded: DataFrame, sums: Mapping[str, str]) -> BitCounts:
    """Compute the requested sums over all record bits, in one job.

    Raises HistoryError if Spark did not read each row of sends and reads once.
    """
    summary = {**(COUNTS if history.run_file.final_read else COUNTS_OF_READERS), **BESIDE}
    counts = count(folded, {**sums, **summary, "unsettled": f"bit_count({UNSETTLED})", "rows": "rows"})
    stored = history.stored.records
    if counts["rows"] != stored:
        raise HistoryError(
            f"{history.directory}: Spark read {counts['rows']} sends and reads, and their files have {stored}: "
            "every machine of a Spark cluster must see the same files"
        )
    return BitCounts(
        {name: counts[name] for name in sums}, {name: counts[name] for name in summary}, counts["unsettled"]
    )


@dataclass
class Scans:
    """The scans of ``history``, started at once in ``pool``. Each is a future: a caller that asks for a scan waits for
    it.

    ``folded``: the record bits; ``polls``: the scan of the polls; ``sums``: what to count.
    """

    pool: Executor
    history: History
    folded: DataFrame
    polls: Callable[[], DataFrame]
    sums: Sums
    _record_bits: Future[BitCounts] = field(init=False)
    _counts: dict[Scan, Future[dict[str, int]]] = field(init=False)

    def __post_init__(self) -> None:
        in_records = self.sums.get(Scan.RECORD_BITS, {})
        self._record_bits = self.pool.submit(count_record_bits, self.history, self.folded, in_records)
        # Polls come first: they depend on no other scan.
        others: dict[Scan, Callable[[], DataFrame]] = {Scan.POLLS: self.polls} if self.history.read_live else {}
        others[Scan.LOG_ORDER] = lambda: log_order(self.unsettled)
        self._counts = {
            scan: self.pool.submit(_count_rows, rows_of, self.sums[scan])
            for scan, rows_of in others.items()
            if self.sums.get(scan)
        }

    @property
    def summary(self) -> dict[str, int]:
        """The counts of the summary; waits for the record bits."""
        return self._record_bits.result().summary

    def count(self, scan: Scan, name: str) -> int:
        """The sum requested under ``name``, or 0 if there is none; waits for that scan."""
        if scan is Scan.RECORD_BITS:
            return self._record_bits.result().sums.get(name, 0)
        return self._counts[scan].result().get(name, 0) if scan in self._counts else 0

    def candidates(self, bits: str, number: int) -> Candidates:
        """The records whose bit is set in ``bits``, SQL on record bits; at most ``number``."""
        return candidates(self.history, self.folded, bits, number)

    @property
    def unsettled(self) -> Candidates:
        """The records that must be looked up in the log; waits for the record bits unless these are all records."""
        if self.history.compares_all:
            return self.every_record
        return self.candidates(UNSETTLED, self._record_bits.result().unsettled)

    @property
    def every_record(self) -> Candidates:
        """All records."""
        return Candidates(self.history, None)


def _count_rows(rows_of: Callable[[], DataFrame], sums: Mapping[str, str]) -> dict[str, int]:
    return count(rows_of(), sums)


def count(rows: DataFrame, sums: Mapping[str, str]) -> dict[str, int]:
    """The sum of each SQL expression over all rows, by its name, in one job; 0 if there are no rows."""
    numbered = rows.selectExpr(*(f"cast({sql} as bigint) as sum_{n}" for n, sql in enumerate(sums.values())))
    [row] = numbered.groupBy().sum().collect()
    return dict(zip(sums, (value or 0 for value in row), strict=True))
