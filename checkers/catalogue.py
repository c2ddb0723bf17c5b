"""Every anomaly that is looked for: one line each, named as in verdict.json."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from checkers import delivery, transactions
from checkers.tables import History

Find = Callable[[History, DataFrame], DataFrame]


@dataclass(frozen=True)
class Checker:
    """One question. ``suspects`` are the bits of a block (checkers/presence.py) that may be in the anomaly, and
    ``besides`` a number of rows without a record id that are; where both are nothing, ``find`` is not asked. A question
    that is none of single records has ``when`` instead: it is asked of the histories for which that holds."""

    anomaly: str
    said: str
    suspects: str
    find: Find
    besides: str = "0L"
    when: Callable[[History], bool] | None = None


_COPIED = "if(copies > bit_count(found), found, 0L)"
_UNSENT = "whole & ~(acknowledged | failed | undecided)"


def _of_transactions(anomaly: str, said: str, find: Find) -> Checker:
    return Checker(anomaly, said, "0L", find, when=transactions.recorded)


CHECKERS: tuple[Checker, ...] = (
    Checker(
        "lost", "acknowledged writes are not in the final log", "if(complete, acknowledged & ~found, 0L)", delivery.lost
    ),
    Checker(
        "vanished", "records were read and then vanished", "if(complete, delivered & ~found, 0L)", delivery.vanished
    ),
    Checker(
        "failed_but_present", "failed writes are present", "failed & (found | delivered)", delivery.failed_but_present
    ),
    Checker("duplicated", "records are in the final log more than once", _COPIED, delivery.duplicated),
    Checker("phantom", "records were read that nobody sent", _UNSENT, delivery.phantom, besides="alien"),
    Checker("misplaced", "records are in another partition than they were sent to", _UNSENT, delivery.misplaced),
    Checker(
        "corrupted",
        "records fail their checksum, or are none of ours",
        "damaged",
        delivery.corrupted,
        besides="corrupt",
    ),
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
