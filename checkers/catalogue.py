"""Every anomaly that is looked for: one line each, named as in verdict.json."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pyspark.sql import DataFrame

from checkers import delivery, groups, log, order, reader, transactions, without_final_read
from checkers.presence import UNSETTLED
from checkers.tables import History
from harness.core.run_file import RunFile
from harness.core.verdict import Judgement

#: What answers a question; None: there is nothing, and nothing more to ask.
Find = Callable[[History, DataFrame], DataFrame | None]


class Pass(StrEnum):
    """The passes over a history, each of which tells whether some checkers need be asked at all: over records, 64 to a
    row (checkers/presence.py), over the order of the log (checkers/order.py), over polls (checkers/polls.py)."""

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
    ``when``: instead of suspects and doubts, which histories it is asked of."""

    anomaly: str
    said: str
    suspects: str
    find: Find
    doubts: Mapping[Pass, str] = field(default_factory=dict)
    given: Pass = Pass.BLOCKS
    judged: Judgement = Judgement.INVALID
    rule: str = "true"
    timed: bool = True
    when: Callable[[History], bool] | None = None


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


def _of_transactions(anomaly: str, said: str, find: Find) -> Checker:
    return Checker(anomaly, said, "0L", find, when=transactions.recorded)


#: What became of each record.
DELIVERY: tuple[Checker, ...] = (
    Checker(
        "lost", "acknowledged writes are not in the final log", "if(complete, acknowledged & ~found, 0L)", delivery.lost
    ),
    Checker(
        "vanished",
        "records were read and then vanished",
        f"if(complete, (delivered | {_PERHAPS_THERE}) & ~found, 0L)",
        delivery.vanished,
    ),
    Checker(
        "failed_but_present", "failed writes are present", "failed & (found | delivered)", delivery.failed_but_present
    ),
    Checker(
        "duplicated",
        "records are in the final log more than once",
        f"{_COPIED} | {_PERHAPS_THERE} & found",
        delivery.duplicated,
    ),
    Checker("phantom", "records were read that nobody sent", _UNSENT, delivery.phantom, {Pass.BLOCKS: "alien"}),
    Checker(
        "misplaced",
        "records are in another partition than they were sent to, or under another key",
        f"{_UNSENT} | {_REKEYED}",
        delivery.misplaced,
    ),
    Checker(
        "corrupted",
        "records fail their checksum, or are none of ours",
        "damaged",
        delivery.corrupted,
        {Pass.BLOCKS: "corrupt"},
    ),
)

#: How it stands in the log, in which order, and how readers came by it.
LOG_ORDER_READER: tuple[Checker, ...] = (
    Checker(
        "rewritten_offset",
        "offsets had more than one record",
        f"{_STRAYED} | {_COPIED} | {_UNSENT}",
        log.rewritten_offset,
        {Pass.BLOCKS: "alien", Pass.LOG: "shared"},
        timed=False,
        rule="size(records) > 1",
    ),
    Checker(
        "diverged",
        "records of followers are not what the final log has at their offsets",
        "0L",
        log.diverged,
        when=lambda history: history.followed,
        timed=False,
        rule="not array_contains(stand, record)",
    ),
    Checker(
        "acknowledged_elsewhere",
        "records are not at the offset they were acknowledged at, but at another",
        "0L",
        log.acknowledged_elsewhere,
        {Pass.BLOCKS: f"bit_count({_PERHAPS_THERE})", Pass.LOG: "moved"},
        Pass.LOG,
        rule="read_offset != offset",
    ),
    Checker(
        "reordered",
        "records stand in the log after what their producer sent later",
        "0L",
        order.reordered,
        {Pass.LOG: "reordered + shared"},
        Pass.LOG,
        rule="after_sequence > sequence",
    ),
    Checker(
        "real_time_order",
        "records stand in the log after what was sent when they were acknowledged",
        "0L",
        order.real_time_order,
        {Pass.LOG: "overtaken + shared"},
        Pass.LOG,
        rule="after_sent_ns > acknowledged_ns",
    ),
    Checker(
        "skipped",
        "times a record of the log was passed over by a reader",
        "0L",
        reader.skipped,
        {Pass.POLLS: f"cast({reader.PASSED_OVER} or {reader.WITH_HOLES} as int)"},
        Pass.POLLS,
        timed=False,
        rule="offset >= passed_from and offset < passed_to",
    ),
    Checker(
        "went_back",
        "deliveries were behind their reader's place",
        "0L",
        reader.went_back,
        {Pass.POLLS: f"cast({reader.BEHIND} as int)"},
        Pass.POLLS,
        timed=False,
        rule="offset < gone_to",
    ),
    Checker(
        "two_owners",
        "times two members of a group had one partition at once",
        "0L",
        reader.two_owners,
        given=Pass.POLLS,
        when=lambda history: history.run_file.configuration.grouped,
        timed=False,
        rule="since_ns < other_until_ns",
    ),
)

#: Whether transactions are whole.
TRANSACTIONS: tuple[Checker, ...] = (
    _of_transactions(
        "aborted_read", "records of aborted transactions were read with read_committed", transactions.aborted_read
    ),
    _of_transactions("early_read", "records were read before their commit was asked for", transactions.early_read),
    _of_transactions("fractured", "transactions are in the final log in part", transactions.fractured),
    _of_transactions("committed_lost", "committed transactions are not in the final log", transactions.committed_lost),
    _of_transactions(
        "hanging_transaction", "partitions have a transaction that nobody ends", transactions.hanging_transaction
    ),
)

#: Whether a group processed all that it committed.
GROUPS: tuple[Checker, ...] = (
    Checker(
        "missed",
        "records were committed past by the group, and processed by no member",
        "0L",
        groups.missed,
        timed=False,
        when=groups.recorded,
    ),
)

CHECKERS: tuple[Checker, ...] = (*DELIVERY, *LOG_ORDER_READER, *TRANSACTIONS, *GROUPS)

#: What is asked of a run without a final read: these in place of the ones above of the same name.
WITHOUT_FINAL_READ: tuple[Checker, ...] = (
    Checker(
        "lost",
        "acknowledged writes were passed over by those who read",
        "acknowledged & ~delivered",
        without_final_read.lost,
    ),
    Checker(
        "unseen",
        "acknowledged writes were read by no one",
        "acknowledged & ~delivered",
        without_final_read.unseen,
        judged=Judgement.UNKNOWN,
    ),
    Checker("duplicated", "records are at more than one offset", "delivered", without_final_read.duplicated),
)


def asked_of(run: RunFile) -> tuple[Checker, ...]:
    """The questions that can be asked of a run: without a final read, of what its readers were given."""
    if run.final_read:
        return CHECKERS
    instead = {checker.anomaly for checker in WITHOUT_FINAL_READ}
    others = (checker for checker in (*DELIVERY, *LOG_ORDER_READER) if checker.anomaly not in instead)
    return (*WITHOUT_FINAL_READ, *others)
