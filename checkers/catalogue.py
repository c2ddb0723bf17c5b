"""Every anomaly that is looked for: one line each, named as in verdict.json."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from checkers import delivery, without_final_read
from checkers.tables import History
from harness.core.run_file import RunFile
from harness.core.verdict import Judgement

Find = Callable[[History, DataFrame], DataFrame]


@dataclass(frozen=True)
class Checker:
    """One question. ``suspects`` are the bits of a block (checkers/presence.py) that may be in the anomaly, and
    ``besides`` a number of rows without a record id that are; where both are nothing, ``find`` is not asked.
    ``judged``: what a run with this anomaly is at least."""

    anomaly: str
    said: str
    suspects: str
    find: Find
    besides: str = "0L"
    judged: Judgement = Judgement.INVALID


_COPIED = "if(copies > bit_count(found), found, 0L)"
_UNSENT = "whole & ~(acknowledged | failed | undecided)"

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
)

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
    """The questions that can be asked of a run."""
    if run.final_read:
        return CHECKERS
    instead = {checker.anomaly for checker in WITHOUT_FINAL_READ}
    return (*WITHOUT_FINAL_READ, *(checker for checker in CHECKERS if checker.anomaly not in instead))
