"""Every checker: one entry each, with the anomaly's name in verdict.json."""

from checkers.anomalies import cycles, epochs, groups, imported, offsets, order, readers, records, transactions
from checkers.checker import Checker, OrderChecker, PollChecker, RecordChecker, TableChecker
from checkers.evidence.circumstances import of_duplicated, of_missed, of_reordered, of_two_owners, of_unseen
from checkers.evidence.copies import sent_again_for_loss
from checkers.evidence.markers import marker_may_be_gone
from checkers.history import History
from checkers.scan.record_bits import (
    ABSENT,
    COPIED,
    DAMAGED_AND_FOUND,
    FAILED_BUT_READ,
    MAY_BE_DAMAGED_IN_PLACE,
    MAY_HAVE_VANISHED,
    READ_ELSEWHERE,
    REKEYED,
    STRAYED,
    UNREAD,
    UNSENT,
)
from harness.core.anomalies import (
    ABORTED_READ,
    ACKNOWLEDGED_ELSEWHERE,
    COMMITTED_LOST,
    CORRUPTED,
    DIVERGED,
    DUPLICATED,
    EARLY_READ,
    EPOCH_FELL,
    FAILED_BUT_PRESENT,
    FRACTURED,
    HANGING_TRANSACTION,
    LOST,
    MISPLACED,
    MISSED,
    PHANTOM,
    READ_CYCLE,
    REAL_TIME_ORDER,
    REORDERED,
    REWRITTEN_OFFSET,
    SKIPPED,
    TWO_OWNERS,
    UNSEEN,
    VANISHED,
    WENT_BACK,
)
from harness.core.verdict import Judgement
from harness.history.run_file import RunFile


def _followed(history: History) -> bool:
    return history.followed


#: Checkers of single records.
DELIVERY: tuple[Checker, ...] = (
    RecordChecker(LOST, candidates=ABSENT, find=records.lost),
    RecordChecker(VANISHED, candidates=MAY_HAVE_VANISHED, find=records.vanished),
    RecordChecker(FAILED_BUT_PRESENT, candidates=FAILED_BUT_READ, find=records.failed_but_present),
    RecordChecker(
        DUPLICATED,
        candidates=f"{COPIED} | {DAMAGED_AND_FOUND} | {READ_ELSEWHERE}",
        find=records.duplicated,
        happened=of_duplicated,
        by_loss=sent_again_for_loss,
    ),
    RecordChecker(PHANTOM, candidates=UNSENT, foreign="foreign", find=records.phantom),
    RecordChecker(MISPLACED, candidates=f"{UNSENT} | {REKEYED}", find=records.misplaced),
    RecordChecker(CORRUPTED, candidates="damaged", foreign="corrupt", find=records.corrupted),
)

#: Checkers of offsets, of the order of the log, and of readers.
LOG_ORDER_READER: tuple[Checker, ...] = (
    RecordChecker(
        REWRITTEN_OFFSET,
        candidates=f"{STRAYED} | {COPIED} | {UNSENT}",
        foreign="foreign",
        in_order="shared",
        find=offsets.rewritten_offset,
        rule=offsets.SEVERAL_RECORDS,
        timed=False,
    ),
    TableChecker(DIVERGED, applies=_followed, find=offsets.diverged, rule=offsets.NOT_THE_LEADER_S, timed=False),
    TableChecker(
        EPOCH_FELL,
        applies=epochs.may_have_epochs,
        find=epochs.epoch_fell,
        rule=epochs.BEHIND_A_LATER_EPOCH,
        timed=False,
    ),
    OrderChecker(
        ACKNOWLEDGED_ELSEWHERE,
        broken="moved",
        also=MAY_BE_DAMAGED_IN_PLACE,
        find=offsets.acknowledged_elsewhere,
        rule=offsets.AT_ANOTHER_OFFSET,
    ),
    OrderChecker(
        REORDERED,
        broken="reordered + shared",
        find=order.reordered,
        rule=order.AFTER_ITS_SUCCESSOR,
        happened=of_reordered,
    ),
    OrderChecker(
        REAL_TIME_ORDER, broken="overtaken + shared", find=order.real_time_order, rule=order.AFTER_A_LATER_SEND
    ),
    PollChecker(
        SKIPPED,
        suspicious=readers.MAY_HAVE_SKIPPED,
        applies=groups.has_skipping_starts,
        find=readers.skipped,
        rule=readers.IS_SKIPPED,
        timed=False,
    ),
    PollChecker(
        WENT_BACK, suspicious=readers.MAY_HAVE_GONE_BACK, find=readers.went_back, rule=readers.BEHIND, timed=False
    ),
    PollChecker(
        TWO_OWNERS,
        applies=groups.has_group,
        find=readers.two_owners,
        rule=readers.BEFORE_THE_OTHER_ENDED,
        timed=False,
        happened=of_two_owners,
    ),
)

#: Checkers of transactions: what was delivered, and whether a transaction is complete.
TRANSACTIONS: tuple[Checker, ...] = (
    TableChecker(
        ABORTED_READ,
        applies=transactions.has_transactions,
        find=transactions.aborted_read,
        by_loss=marker_may_be_gone,
    ),
    TableChecker(EARLY_READ, applies=transactions.has_transactions, find=transactions.early_read),
    TableChecker(READ_CYCLE, applies=cycles.reads_transactionally, find=cycles.read_cycle),
    TableChecker(FRACTURED, applies=transactions.has_transactions, find=transactions.fractured),
    TableChecker(COMMITTED_LOST, applies=transactions.has_transactions, find=transactions.committed_lost),
    TableChecker(HANGING_TRANSACTION, applies=transactions.has_transactions, find=transactions.hanging_transaction),
)

#: Checkers of consumer groups: whether a group processed everything that it committed.
GROUPS: tuple[Checker, ...] = (
    PollChecker(MISSED, applies=groups.has_group, find=groups.missed, timed=False, happened=of_missed),
)

CHECKERS: tuple[Checker, ...] = (*DELIVERY, *LOG_ORDER_READER, *TRANSACTIONS, *GROUPS)

#: Checkers of runs without a final read. They replace those above with the same anomaly.
WITHOUT_FINAL_READ: tuple[Checker, ...] = (
    RecordChecker(LOST, candidates=UNREAD, find=imported.lost),
    RecordChecker(
        UNSEEN,
        candidates=UNREAD,
        find=imported.unseen,
        judged=Judgement.UNKNOWN,
        happened=of_unseen,
    ),
    RecordChecker(
        DUPLICATED,
        candidates="delivered",
        find=imported.duplicated,
        happened=of_duplicated,
        by_loss=sent_again_for_loss,
    ),
)


def checkers_of(run: RunFile) -> tuple[Checker, ...]:
    """The checkers that apply to a run. Without a final read they judge by what readers got."""
    if run.final_read:
        return CHECKERS
    instead = {checker.anomaly for checker in WITHOUT_FINAL_READ}
    others = (checker for checker in (*DELIVERY, *LOG_ORDER_READER, *TRANSACTIONS) if checker.anomaly not in instead)
    return (*WITHOUT_FINAL_READ, *others)
