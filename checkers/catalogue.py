"""Every anomaly that is looked for: one line each, named as in verdict.json."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pyspark.sql import DataFrame

from checkers.anomalies import groups, imported, offsets, order, readers, records, transactions
from checkers.history import History
from checkers.scan.record_bits import UNSETTLED
from harness.core.anomalies import (
    ABORTED_READ,
    ACKNOWLEDGED_ELSEWHERE,
    COMMITTED_LOST,
    CORRUPTED,
    DIVERGED,
    DUPLICATED,
    EARLY_READ,
    FAILED_BUT_PRESENT,
    FRACTURED,
    HANGING_TRANSACTION,
    LOST,
    MISPLACED,
    MISSED,
    PHANTOM,
    REAL_TIME_ORDER,
    REORDERED,
    REWRITTEN_OFFSET,
    SKIPPED,
    TWO_OWNERS,
    UNSEEN,
    VANISHED,
    WENT_BACK,
    Anomaly,
)
from harness.core.verdict import Judgement
from harness.history.run_file import RunFile

#: What answers a question; None: there is nothing, and nothing more to ask.
Find = Callable[[History, DataFrame], DataFrame | None]


class Pass(StrEnum):
    """The scans of a history. A checker whose scans find no candidates is skipped.

    Records, 64 to a row (checkers/scan/record_bits.py); the order of the log (checkers/anomalies/order.py); polls
    (checkers/scan/polls.py).
    """

    BLOCKS = "blocks"
    LOG = "log"
    POLLS = "polls"


@dataclass(frozen=True)
class Checker:
    """One question. ``suspects`` are the bits of a block that may be in the anomaly, and ``doubts``, by pass, a number
    that is 0 where nothing else may be: SQL on a row of that pass. Where all are 0, ``find`` is not asked.
    ``given``: what ``find`` gets besides the history: the suspects in blocks (or every record, where the pass over the
    log has doubts that blocks have not), the records of all unsettled blocks, or polls.
    ``rule``: which rows of its answer are the anomaly.
    ``timed``: whether its answer has the times of the sends; to add them costs a pass, which is spared where nothing
    was found.
    ``judged``: what a run with this anomaly is at least.
    ``when``: instead of suspects and doubts, which histories it is asked of.
    ``sentence``: what it counts, where that is not what the anomaly says itself."""

    anomaly: Anomaly
    suspects: str
    find: Find
    doubts: Mapping[Pass, str] = field(default_factory=dict)
    given: Pass = Pass.BLOCKS
    judged: Judgement = Judgement.INVALID
    rule: str = "true"
    timed: bool = True
    when: Callable[[History], bool] | None = None
    sentence: str | None = None

    @property
    def said(self) -> str:
        """What is counted, in words."""
        return self.anomaly.sentence if self.sentence is None else self.sentence


_COPIED = "if(copies > bit_count(found), found, 0L)"
#: Of acknowledged records, damaged bytes may prove that they stand where they were acknowledged (delivery.proven).
_PERHAPS_THERE = "acknowledged & damaged"
_UNSENT = "whole & ~(acknowledged | failed | undecided)"
_MOVED = "acknowledged_at != found_at"
_STRAYED = (
    f"if(acknowledged != 0 and {_MOVED} or glances > 0 and (seen_at != found_at or damaged != 0)"
    " or glances != bit_count(delivered), acknowledged | whole, 0L)"
)
#: Whose key only a look at each can tell: no digest says that they were read as they were sent.
_REKEYED = f"if(keyed, {UNSETTLED} | {_STRAYED}, 0L)"


def _of_transactions(anomaly: Anomaly, find: Find) -> Checker:
    return Checker(anomaly, "0L", find, when=transactions.recorded)


#: What became of each record.
DELIVERY: tuple[Checker, ...] = (
    Checker(LOST, "if(complete, acknowledged & ~found, 0L)", records.lost),
    Checker(
        VANISHED,
        f"if(complete, (delivered | {_PERHAPS_THERE}) & ~found, 0L)",
        records.vanished,
    ),
    Checker(FAILED_BUT_PRESENT, "failed & (found | delivered)", records.failed_but_present),
    Checker(
        DUPLICATED,
        f"{_COPIED} | {_PERHAPS_THERE} & found",
        records.duplicated,
    ),
    Checker(PHANTOM, _UNSENT, records.phantom, {Pass.BLOCKS: "alien"}),
    Checker(
        MISPLACED,
        f"{_UNSENT} | {_REKEYED}",
        records.misplaced,
    ),
    Checker(
        CORRUPTED,
        "damaged",
        records.corrupted,
        {Pass.BLOCKS: "corrupt"},
    ),
)

#: How it stands in the log, in which order, and how readers came by it.
LOG_ORDER_READER: tuple[Checker, ...] = (
    Checker(
        REWRITTEN_OFFSET,
        f"{_STRAYED} | {_COPIED} | {_UNSENT}",
        offsets.rewritten_offset,
        {Pass.BLOCKS: "alien", Pass.LOG: "shared"},
        timed=False,
        rule="size(records) > 1",
    ),
    Checker(
        DIVERGED,
        "0L",
        offsets.diverged,
        when=lambda history: history.followed,
        timed=False,
        rule="not array_contains(stand, record)",
    ),
    Checker(
        ACKNOWLEDGED_ELSEWHERE,
        "0L",
        offsets.acknowledged_elsewhere,
        {Pass.BLOCKS: f"bit_count({_PERHAPS_THERE})", Pass.LOG: "moved"},
        Pass.LOG,
        rule="read_offset != offset",
    ),
    Checker(
        REORDERED,
        "0L",
        order.reordered,
        {Pass.LOG: "reordered + shared"},
        Pass.LOG,
        rule="after_sequence > sequence",
    ),
    Checker(
        REAL_TIME_ORDER,
        "0L",
        order.real_time_order,
        {Pass.LOG: "overtaken + shared"},
        Pass.LOG,
        rule="after_sent_ns > acknowledged_ns",
    ),
    Checker(
        SKIPPED,
        "0L",
        readers.skipped,
        {Pass.POLLS: f"cast({readers.PASSED_OVER} or {readers.WITH_HOLES} as int)"},
        Pass.POLLS,
        timed=False,
        rule="offset >= passed_from and offset < passed_to",
    ),
    Checker(
        WENT_BACK,
        "0L",
        readers.went_back,
        {Pass.POLLS: f"cast({readers.BEHIND} as int)"},
        Pass.POLLS,
        timed=False,
        rule="offset < gone_to",
    ),
    Checker(
        TWO_OWNERS,
        "0L",
        readers.two_owners,
        given=Pass.POLLS,
        when=lambda history: history.run_file.configuration.grouped,
        timed=False,
        rule="since_ns < other_until_ns",
    ),
)

#: Whether transactions are whole.
TRANSACTIONS: tuple[Checker, ...] = (
    _of_transactions(ABORTED_READ, transactions.aborted_read),
    _of_transactions(EARLY_READ, transactions.early_read),
    _of_transactions(FRACTURED, transactions.fractured),
    _of_transactions(COMMITTED_LOST, transactions.committed_lost),
    _of_transactions(HANGING_TRANSACTION, transactions.hanging_transaction),
)

#: Whether a group processed all that it committed.
GROUPS: tuple[Checker, ...] = (
    Checker(
        MISSED,
        "0L",
        groups.missed,
        given=Pass.POLLS,
        timed=False,
        when=groups.recorded,
    ),
)

CHECKERS: tuple[Checker, ...] = (*DELIVERY, *LOG_ORDER_READER, *TRANSACTIONS, *GROUPS)

#: What is asked of a run without a final read: these in place of the ones above of the same name.
WITHOUT_FINAL_READ: tuple[Checker, ...] = (
    Checker(
        LOST,
        "acknowledged & ~delivered",
        imported.lost,
        sentence="acknowledged writes were passed over by those who read",
    ),
    Checker(
        UNSEEN,
        "acknowledged & ~delivered",
        imported.unseen,
        judged=Judgement.UNKNOWN,
    ),
    Checker(DUPLICATED, "delivered", imported.duplicated, sentence="records are at more than one offset"),
)


def asked_of(run: RunFile) -> tuple[Checker, ...]:
    """The questions that can be asked of a run: without a final read, of what its readers were given."""
    if run.final_read:
        return CHECKERS
    instead = {checker.anomaly for checker in WITHOUT_FINAL_READ}
    others = (checker for checker in (*DELIVERY, *LOG_ORDER_READER) if checker.anomaly not in instead)
    return (*WITHOUT_FINAL_READ, *others)
