"""Each anomaly in the smallest history that has it, beside its twin: the nearest history that has not."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.anomalies.offsets import NOT_THE_LEADER_S, diverged
from checkers.catalogue import CHECKERS, DELIVERY, LOG_ORDER_READER
from checkers.history import History
from checkers.judge import judge
from checkers.screening import records
from harness.core.anomalies import VANISHED
from harness.history.paths import ANOMALIES
from harness.history.run_file import Origin
from tests.checkers.notation import SECOND, WORKERS_OF_A_HISTORY, HandHistory, by_hand, without_keys, write
from tests.golden.sample import Judged

Sets = dict[str, set[str]]


@dataclass(frozen=True)
class Case:
    """A hand history, and the records that each anomaly is to be found in: these and no others."""

    says: str
    lines: tuple[str, ...]
    found: dict[str, set[str]]


def case(says: str, *lines: str, **found: str) -> Case:
    return Case(says, lines, {anomaly: set(names.split()) for anomaly, names in found.items()})


CASES = [
    case(
        "an acknowledged record missing from the final log is lost",
        *("send a ok @0", "send b ok @1", "final a @0", "end 0..2"),
        lost="b",
    ),
    case(
        "an acknowledged record whose offset nobody reported is lost all the same",
        *("send a ok", "end 0..0"),
        lost="a",
    ),
    case(
        "an unacknowledged record missing from the final log is not lost",
        *("send a ok @0", "send b info", "send c fail", "final a @0", "end 0..1"),
    ),
    case(
        "a record still in flight is not lost",
        *("send a info t0..", "end 0..0"),
    ),
    case(
        "nothing is lost where the final read is not complete",
        *("send a ok @0", "send b ok @1", "final a @0", "end 0..2 read 1"),
    ),
    case(
        "one partition's incomplete read hides nothing of another",
        *("send a ok @0 p0", "send b ok @0 p1", "end 0..1 p0 read 0", "end 0..1 p1"),
        lost="b",
    ),
    case(
        "what retention deleted is not lost, what stood above it is",
        *("send a ok @0", "send b ok @1", "send c ok @2", "final c @2", "end 1..3"),
        lost="b",
    ),
    case(
        "a copy that is left of what retention deleted stands nowhere in an order, nor elsewhere",
        *("send a ok @0 t0..1", "send b ok @5 t2..3", "final b @5", "final a @9", "end 5..10"),
    ),
    case(
        "a record that only one replica still has is lost",
        *("send a ok @0", "replica a @0", "end 0..0"),
        lost="a",
    ),
    case(
        "a damaged record is there: corrupted, not lost",
        *("send a ok @0", "final a @0 damaged", "end 0..1"),
        corrupted="a",
    ),
    case(
        "but not by damaged bytes at another offset than its own",
        *("send a ok @0", "final a @1 damaged", "end 0..2"),
        lost="a",
        corrupted="a",
    ),
    case(
        "nor by those in another partition",
        *("send a ok @0 p0", "final a @0 p1 damaged", "end 0..1 p0", "end 0..1 p1"),
        lost="a",
        corrupted="a",
    ),
    case(
        "nor where nobody reported its offset",
        *("send a ok", "final a @0 damaged", "end 0..1"),
        lost="a",
        corrupted="a",
    ),
    case(
        "nor by what only a consumer was given of it",
        *("send a ok @0", "live a @0 damaged", "end 0..1"),
        lost="a",
        vanished="a",
        corrupted="a",
    ),
    case(
        "damaged bytes that show the id of a failure prove nothing of it",
        *("send a fail", "live a @0 damaged", "final a @0 damaged", "end 0..1"),
        corrupted="a",
    ),
    case(
        "damaged bytes that show the id of what stands elsewhere are no copy",
        *("send a ok @0", "final a @0", "final a @1 damaged", "end 0..2"),
        corrupted="a",
    ),
    case(
        "nor is what stands where it was acknowledged elsewhere for them",
        *("send a ok @1", "final a @0 damaged", "final a @1", "end 0..2"),
        corrupted="a",
    ),
    case(
        "two of them, none at its own offset, are no copies, nor is it there",
        *("send a ok @0", "final a @1 damaged", "final a @2 damaged", "end 0..3"),
        lost="a",
        corrupted="a",
    ),
    case(
        "where it was acknowledged they are one of two copies",
        *("send a ok @0", "final a @0 damaged", "final a @1", "end 0..2"),
        duplicated="a",
        corrupted="a",
    ),
    case(
        "what a consumer was given damaged, and nobody acknowledged, has not vanished",
        *("send a info", "live a @0 damaged", "end 0..1"),
        corrupted="a",
    ),
    case(
        "what a consumer was given whole has, though damaged bytes show its id",
        *("send a info", "live a @0", "final a @0 damaged", "end 0..1"),
        vanished="a",
        corrupted="a",
    ),
    case(
        "but for those where it was acknowledged",
        *("send a ok @0", "live a @0", "final a @0 damaged", "end 0..1"),
        corrupted="a",
    ),
    case(
        "not for those of another's offset",
        *("send a ok @0", "live a @0", "final a @1 damaged", "end 0..2"),
        lost="a",
        vanished="a",
        corrupted="a",
    ),
    *(
        case(
            f"offsets may be {apart:,} apart",
            *("send a ok @0", "send b ok @5000", f"send c ok @{apart}", "place r1 assign @0 t1", "live a @0 r1 t5"),
            *(f"live c @{apart} r1 t6", "final a @0", "final b @5000", f"final c @{apart}", f"end 0..{apart + 1}"),
            skipped="b",
        )
        for apart in (10**9, 10**12, 10**15)
    ),
    case(
        "offsets may be as far apart as 64 bits let them",
        *("send a ok @0", "send b ok @5000", "send c ok @9223372036854775807", "place r1 assign @0 t1"),
        *("live a @0 r1 t5", "live c @9223372036854775807 r1 t6", "final a @0", "final b @5000"),
        *("final c @9223372036854775807", "end 0..9223372036854775807"),
        skipped="b",
    ),
    case(
        "records of different workers with the same sequence are told apart",
        *("send a ok @0 w0", "send b ok @1 w1", "final a @0", "end 0..2"),
        lost="b",
    ),
    case(
        "a proven failure that is present is an anomaly",
        *("send a fail", "final a @0", "end 0..1"),
        failed_but_present="a",
    ),
    case(
        "a proven failure that a consumer saw is one too, though it is gone",
        *("send a fail", "live a @0", "end 0..0"),
        failed_but_present="a",
        vanished="a",
    ),
    case(
        "an undecided write that is present is none",
        *("send a info", "final a @0", "end 0..1"),
    ),
    case(
        "a record at two offsets is duplicated",
        *("send a ok @0", "final a @0", "final a @1", "end 0..2"),
        duplicated="a",
    ),
    case(
        "one that was never acknowledged, too",
        *("send a info", "send b ok @2", "final a @0", "final a @1", "final b @2", "end 0..3"),
        duplicated="a",
    ),
    case(
        "a redelivery of one offset is no duplicate",
        *("send a ok @0", "live a @0", "live a @0 r1", "final a @0", "final a @0", "end 0..1"),
    ),
    case(
        "a neighbour of a duplicate is none",
        *("send a ok @0", "send b ok @2", "final a @0", "final a @1", "final b @2", "final b @2", "end 0..3"),
        duplicated="a",
    ),
    case(
        "a record that nobody sent is a phantom",
        *("send a ok @0", "final a @0", "final x @1", "end 0..2"),
        phantom="x",
    ),
    case(
        "a payload without an id is a phantom",
        *("final ? @0", "end 0..1"),
        phantom="?",
    ),
    case(
        "a whole history knows what its workers never sent",
        *("send a ok @0", "final a @0", "final w0#9 @1", "end 0..2"),
        phantom="w0#9",
    ),
    case(
        "a phantom that fails its checksum is corrupted",
        *("final x @0 damaged", "final ? @1 damaged", "end 0..2"),
        corrupted="x ?",
    ),
    case(
        "a record in another partition than it was sent to is misplaced",
        *("send a info p0", "final a @0 p1", "end 0..0 p0", "end 0..1 p1"),
        misplaced="a",
    ),
    case(
        "a record in another topic is misplaced; an acknowledged one is lost where it belongs",
        *("send a ok @0", "final a @0 elsewhere", "end 0..1", "end 0..1 elsewhere"),
        misplaced="a",
        lost="a",
    ),
    case(
        "records of one worker in the partitions they were sent to are not misplaced",
        *("send a ok @0 p0", "send b ok @0 p1", "final a @0 p0", "final b @0 p1", "end 0..1 p0", "end 0..1 p1"),
    ),
    case(
        "a record under another key than it was sent with is misplaced",
        *("send a ok @0 k1", "send b ok @1 k1", "final a @0 k2", "final b @1", "end 0..2"),
        misplaced="a",
    ),
    case(
        "so is one without the key that it was sent with, and one with a key that was sent without",
        *("send a ok @0 k1", "send b ok @1", "final a @0 keyless", "final b @1 k1", "end 0..2"),
        misplaced="a b",
    ),
    case(
        "two that have each other's key",
        *("send a ok @0 k1", "send b ok @1 k2", "final a @0 k2", "final b @1 k1", "end 0..2"),
        misplaced="a b",
    ),
    case(
        "one that nobody acknowledged, and one that was acknowledged without an offset",
        *("send a info k1", "send b ok k1", "final a @0 k2", "final b @1 k2", "end 0..2"),
        misplaced="a b",
    ),
    case(
        "one that only one consumer was given so",
        *("send a ok @0 k1", "live a @0 k2", "live a @0 r1", "final a @0", "end 0..1"),
        misplaced="a",
    ),
    case(
        "one that two were, and that is gone, or is there under its own key",
        *("send a info k1", "live a @0 k2", "live a @0 k2 r1", "end 0..1"),
        *("send b ok @0 k1 w1 p1", "live b @0 k2 p1", "live b @0 k2 r1 p1", "final b @0 p1", "end 0..1 p1"),
        misplaced="a b",
        vanished="a",
    ),
    case(
        "one that the final read gave twice, or gave both under its key and under another",
        *("send a ok @0 k1", "final a @0 k2", "final a @0 k2", "end 0..1"),
        *("send b ok @0 k1 w1 p1", "final b @0 p1", "final b @0 k2 p1", "end 0..1 p1"),
        misplaced="a b",
    ),
    case(
        "one that only a replica has so",
        *("send a ok @0 k1", "replica a @0 k2", "final a @0", "end 0..1"),
        misplaced="a",
    ),
    case(
        "a copy under another key, where the first is under its own",
        *("send a ok @0 k1", "final a @0", "final a @1 k2", "end 0..2"),
        misplaced="a",
        duplicated="a",
    ),
    case(
        "a failed one under another key, too",
        *("send a fail k1", "final a @0 k2", "end 0..1"),
        misplaced="a",
        failed_but_present="a",
    ),
    case(
        "one under its own key in another partition is misplaced as ever",
        *("send a info k1 p0", "final a @0 p1", "end 0..0 p0", "end 0..1 p1"),
        misplaced="a",
    ),
    case(
        "records under the keys they were sent with are not, however often they are read, nor those without a key",
        *("send a ok @0 k1", "send b ok @1", "send c info k2", "live a @0", "live a @0 r1", "live b @1 r1"),
        *("replica a @0", "final a @0", "final a @0", "final b @1", "final c @2", "end 0..3"),
    ),
    case(
        "a payload that fails its checksum shows no key, and one that nobody sent has none",
        *("send a ok @0 k1", "final a @0 k2 damaged", "final x @1 k2", "end 0..2"),
        corrupted="a",
        phantom="x",
    ),
    case(
        "a record that a consumer read and the final read did not has vanished",
        *("send a info", "live a @0", "end 0..0"),
        vanished="a",
    ),
    case(
        "a record that is still there has not vanished",
        *("send a ok @0", "live a @0", "final a @0", "end 0..1"),
    ),
    case(
        "nothing vanishes where the final read is not complete",
        *("send a info", "live a @0", "end 0..1 read 0"),
    ),
    case(
        "what retention deleted has not vanished",
        *("send a ok @0", "live a @0", "end 1..1"),
    ),
    case(
        "a record that only one replica has did not vanish: nobody was given it",
        *("send a info", "replica a @0", "end 0..0"),
    ),
]

PLACES = [
    case(
        "a record that a consumer was given at an offset, and that stands at another, has vanished from there",
        *("send a ok @1", "live a @0", "live a @1", "final a @1", "end 0..2"),
        vanished="a",
        duplicated="a",
    ),
    case(
        "one that it was given damaged where it was acknowledged, and that stands at another offset alone, too",
        *("send a ok @0", "live a @0 damaged", "final a @1", "end 0..2"),
        vanished="a",
        duplicated="a",
        corrupted="a",
        acknowledged_elsewhere="a",
    ),
    case(
        "one that it was given where it stands has not, whatever others were given of it before or after",
        *("send a ok @1", "send b ok @2", "live a @1", "live a @1 r1", "final a @1", "final b @2", "end 0..3"),
    ),
    case(
        "nor one that it was given where one of two copies stands",
        *("send a ok @0", "live a @1", "final a @0", "final a @1", "end 0..2"),
        duplicated="a",
    ),
    case(
        "nor below the log's start, where it is a copy all the same",
        *("send a ok @5", "live a @0", "final a @5", "end 3..6"),
        duplicated="a",
    ),
    case(
        "nor where not all was read",
        *("send a ok @1", "send b ok @2", "live a @0", "final a @1", "end 0..3 read 2"),
        duplicated="a",
    ),
    case(
        "nor what only a replica has at another offset: nobody was given it",
        *("send a ok @1", "live a @1", "replica a @0", "final a @1", "end 0..2"),
        diverged="a",
    ),
    case(
        "what is damaged where it was acknowledged is there, and nowhere else",
        *("send a ok @0", "live a @0", "final a @0 damaged", "end 0..1"),
        *("send b ok @1 p1", "live b @0 p1", "final b @1 p1 damaged", "end 0..2 p1"),
        corrupted="a b",
        vanished="b",
        duplicated="b",
    ),
    case(
        "records of two partitions at two offsets are no copies",
        *("send a ok @0 p0", "send b ok @1 p1", "live a @0 p0", "live b @1 p1", "final a @0 p0", "final b @1 p1"),
        *("end 0..1 p0", "end 0..2 p1"),
    ),
    case(
        "an acknowledged record whose offset nobody reported may be what retention deleted",
        *("send a ok", "send b ok @4", "final b @4", "end 3..5"),
    ),
    case(
        "not where the log begins at 0, nor in another partition",
        *("send a ok p0", "send b ok @4 p1", "final b @4 p1", "end 0..0 p0", "end 3..5 p1"),
        lost="a",
    ),
    case(
        "nor where its offset is known, and above the start",
        *("send a ok @3", "send b ok @4", "final b @4", "end 3..5"),
        lost="a",
    ),
]
FOLLOWERS = [
    case(
        "an acknowledged record that a follower has nothing in place of, below what it has, is a hole of it",
        *("send a ok @0", "send b ok @1", "send c ok @2", "final a @0", "final b @1", "final c @2", "end 0..3"),
        *("replica a @0 r1", "replica c @2 r1"),
        diverged="b",
    ),
    case(
        "so is one below all that it has, and one far below",
        *("send a ok @0", "send b ok @1", "send c ok @200", "final a @0", "final b @1", "final c @200", "end 0..201"),
        "replica c @200 r1",
        diverged="a b",
    ),
    case(
        "another follower that has it fills no hole",
        *("send a ok @0", "send b ok @1", "send c ok @2", "final a @0", "final b @1", "final c @2", "end 0..3"),
        *("replica a @0 r1", "replica c @2 r1", "replica a @0 r2", "replica b @1 r2", "replica c @2 r2"),
        diverged="b",
    ),
    case(
        "nor does the same follower's log of another partition",
        *("send a ok @0", "send b ok @1", "final a @0", "final b @1", "end 0..2", "send c ok @0 p1", "final c @0 p1"),
        *("end 0..1 p1", "replica b @1 r1", "replica c @0 p1 r1"),
        diverged="a",
    ),
    case(
        "what stands behind all that it gave it may not have heard to be committed",
        *("send a ok @0", "send b ok @1", "final a @0", "final b @1", "end 0..2", "replica a @0 r1"),
    ),
    case(
        "what stands below something that it gave was committed, acknowledged or not",
        *("send a info", "send b info", "send c ok @2", "final a @0", "final b @1", "final c @2", "end 0..3"),
        "replica c @2 r1",
        diverged="a b",
    ),
    case(
        "nobody promised what was not acknowledged, behind all that it gave",
        *("send a ok @0", "send b info", "final a @0", "final b @1", "end 0..2", "replica a @0 r902"),
        "place r902 end-of-partition @2",
    ),
    case(
        "where retention deleted, it may have deleted more of its log; not in the middle of that",
        *("send a info", "send b info", "send c info", "send d ok @6"),
        *("final a @3", "final b @4", "final c @5", "final d @6", "end 3..7", "replica b @4 r1", "replica d @6 r1"),
        diverged="c",
    ),
    case(
        "where the final log has nothing it lacks nothing, and what is damaged there it has",
        *("send a ok @0", "send b ok @1", "send c ok @3", "final a @0", "final b @1", "final c @3", "end 0..4"),
        *("replica a @0 r1", "replica b @1 damaged r1", "replica c @3 r1"),
        corrupted="b",
    ),
]
EPOCHS = [
    case(
        "a record of an earlier leader epoch behind one of a later is where no leader puts it",
        *("send a ok @0", "send b ok @1", "send c ok @2", "final a @0 e1", "final b @1 e3", "final c @2 e2"),
        "end 0..3",
        epoch_fell="c",
    ),
    case(
        "so are all that follow until a later epoch, however far away",
        *("send a ok @0", "send b ok @1", "send c ok @90000", "send d ok @90001", "final a @0 e3", "final b @1 e2"),
        *("final c @90000 e2", "final d @90001 e3", "end 0..90002"),
        epoch_fell="b c",
    ),
    case(
        "in a follower's log, too",
        *("send a ok @0", "send b ok @1", "final a @0 e1", "final b @1 e1", "replica a @0 e1", "replica b @1 e0"),
        "end 0..2",
        epoch_fell="b",
    ),
    case(
        "epochs that grow, or stay, or are not reported fall nowhere",
        *("send a ok @0", "send b ok @1", "send c ok @2", "send d ok @3", "final a @0 e1", "final b @1 e1"),
        *("final c @2", "final d @3 e4", "end 0..4"),
    ),
    case(
        "what a consumer was given under an epoch of before is another log",
        *("send a ok @0", "send b ok @1", "live b @1 e1", "final a @0 e2", "final b @1 e2", "live a @0 e3 r1"),
        "end 0..2",
    ),
    case(
        "each partition has epochs of its own, and so has each follower",
        *("send a ok @0 p0", "send b ok @1 p1", "final a @0 p0 e5", "final b @1 p1 e1", "end 0..1 p0", "end 0..2 p1"),
        *("replica a @0 p0 e4 r1", "replica a @0 p0 e5 r2"),
    ),
]
LOG = [
    case(
        "an offset acknowledged for one record that names another in the end is rewritten",
        *("send a ok @0", "send b info", "final b @0", "end 0..1"),
        rewritten_offset="a",
        lost="a",
    ),
    case(
        "so is one that was read as one record and then as another",
        *("send a info", "send b info w1", "live a @0", "final b @0", "final a @1", "end 0..2"),
        rewritten_offset="a",
        vanished="a",
        duplicated="a",
    ),
    case(
        "and one whose first record was delivered twice",
        *("send a info", "send b ok @0 w1", "live a @0", "live a @0 r1", "final b @0", "final a @1", "end 0..2"),
        rewritten_offset="a",
        vanished="a",
        duplicated="a",
    ),
    case(
        "one that two acknowledgements name",
        *("send a ok @0", "send b ok @0", "final a @0", "end 0..1"),
        rewritten_offset="b",
        lost="b",
    ),
    case(
        "one that a replica has another record at",
        *("send a ok @0", "send b info", "final a @0", "replica b @0", "end 0..1"),
        rewritten_offset="b",
        diverged="b",
    ),
    case(
        "one that the final read itself gave twice",
        *("send a ok @0", "send b ok @0", "final a @0", "final b @0", "end 0..1"),
        rewritten_offset="b",
    ),
    case(
        "one that was read as something without an id",
        *("send a ok @0", "live ? @0", "final a @0", "end 0..1"),
        rewritten_offset="?",
        phantom="?",
    ),
    case(
        "a follower that has something without an id there has another record, too",
        *("send a ok @0", "final a @0", "replica ? @0", "end 0..1"),
        rewritten_offset="?",
        diverged="?",
        phantom="?",
    ),
    case(
        "a follower that has what its leader has, or a damaged record, or one where the final read got such, has not",
        *("send a ok @0", "send b info", "send c ok @2", "final a @0", "replica a @0", "replica b @1", "final c @2"),
        *("final b @1 damaged", "replica b @2 damaged", "end 0..3"),
        corrupted="b",
    ),
    case(
        "one that has a record where the final log has none has another log, but not behind its end",
        *("send a ok @0", "send b info", "send c ok @2", "send d info", "final a @0", "final c @2", "end 0..3"),
        *("replica a @0 r1", "replica b @1 r1", "replica c @2 r1", "replica d @3 r1"),
        diverged="b",
    ),
    case(
        "one offset of two partitions is two offsets",
        *("send a ok @0 p0", "send b ok @0 p1", "live a @0 p0", "final a @0 p0", "final b @0 p1"),
        *("end 0..1 p0", "end 0..1 p1"),
    ),
    case(
        "an offset whose record is gone, and that nothing else has, is not rewritten",
        *("send a ok @0", "send b ok @1", "live a @0", "final b @1", "end 0..2"),
        lost="a",
        vanished="a",
    ),
    case(
        "a damaged payload shows no other record",
        *("send a ok @0", "send b info", "live b @0 damaged", "final a @0", "end 0..1"),
        corrupted="b",
    ),
    case(
        "a record acknowledged at one offset and found at another is acknowledged elsewhere",
        *("send a ok @0", "final a @1", "end 0..2"),
        acknowledged_elsewhere="a",
    ),
    case(
        "a duplicate that is there where it was acknowledged is not",
        *("send a ok @1", "final a @0", "final a @1", "end 0..2"),
        duplicated="a",
    ),
    case(
        "one that is at two other offsets is",
        *("send a ok @2", "final a @0", "final a @1", "end 0..2"),
        duplicated="a",
        acknowledged_elsewhere="a",
    ),
    case(
        "a record acknowledged without an offset is wherever it is",
        *("send a ok", "send b info", "final a @1", "final b @3", "end 0..4"),
    ),
    case(
        "nothing is elsewhere where the final read is not complete",
        *("send a ok @1", "final a @0", "end 0..2 read 1"),
    ),
]
ORDER = [
    case(
        "a record that stands after what its producer sent later is reordered",
        *("send a ok @1 t0..9", "send b ok @0 t0..9", "final b @0", "final a @1", "end 0..2"),
        reordered="a",
    ),
    case(
        "one that was never acknowledged, too; and however far back the later one is",
        *("send a info", "send b ok @0 t0..9", "send c ok @1 t0..9", "final b @0", "final c @1", "final a @99999"),
        "end 0..100000",
        reordered="a",
    ),
    case(
        "records of two producers have no order between them",
        *("send a ok @1 t0..9 w0", "send b ok @0 t0..9 w1", "final b @0", "final a @1", "end 0..2"),
    ),
    case(
        "nor those of two incarnations of one",
        *("send a ok @1 t0..9 i0", "send b ok @0 t0..9 i1", "final b @0", "final a @1", "end 0..2"),
    ),
    case(
        "nor those of two partitions",
        *("send a ok @1 t0..9 p0", "send b ok @0 t0..9 p1", "final b @0 p1", "final a @1 p0", "end 0..2 p0"),
        "end 0..1 p1",
    ),
    case(
        "a later copy of a record is a duplicate, not reordered",
        *("send a ok @0 t0..9", "send b ok @1 t0..9", "final a @0", "final b @1", "final a @2", "end 0..3"),
        duplicated="a",
    ),
    case(
        "what is lost is overtaken by nothing, and overtakes nothing",
        *("send a ok @1 t0..9", "send b ok @0 t0..9", "final a @1", "end 0..2"),
        lost="b",
    ),
    case(
        "a record acknowledged before another was sent, and that stands after it, breaks real-time order",
        *("send a ok @1 t0..1 w0", "send b ok @0 t2..3 w1", "final b @0", "final a @1", "end 0..2"),
        real_time_order="a",
    ),
    case(
        "also where the other was never acknowledged, and far away",
        *("send a ok @70000 t0..1 w0", "send b info t2..3 w1", "send c ok @1 t0..9 w2", "final b @0", "final c @1"),
        *("final a @70000", "end 0..70001"),
        real_time_order="a",
    ),
    case(
        "a record sent while another was in flight may stand before it",
        *("send a ok @1 t0..2 w0", "send b ok @0 t1..3 w1", "final b @0", "final a @1", "end 0..2"),
    ),
    case(
        "one that was never acknowledged may stand anywhere",
        *("send a info t0..1 w0", "send b ok @0 t2..3 w1", "final b @0", "final a @1", "end 0..2"),
    ),
    case(
        "a copy after what was sent later breaks no order: its first stands before",
        *("send a ok @0 t0..1 w0", "send b ok @1 t2..3 w1", "final a @0", "final b @1", "final a @2", "end 0..3"),
        duplicated="a",
    ),
    case(
        "what is in the log twice, first before what was acknowledged long ago, breaks it there",
        *("send a ok @1 t0..1 w0", "send b ok @2 t2..3 w1", "final b @0", "final a @1", "final b @2", "end 0..3"),
        duplicated="b",
        real_time_order="a",
    ),
]
ABC = ("send a ok @0", "send b ok @1", "send c ok @2", "final a @0", "final b @1", "final c @2", "end 0..3")
READER = [
    case(
        "a record between two deliveries that a reader was not given was skipped",
        *(*ABC, "live a @0", "live c @2"),
        skipped="b",
    ),
    case(
        "so was one between the start of an assignment and its first delivery",
        *(*ABC, "place assign @0 t3", "live b @1", "live c @2"),
        skipped="a",
    ),
    case(
        "and what stands before the end that a reader came to",
        *(*ABC, "live a @0 t5", "place end-of-partition @3 t6"),
        skipped="b c",
    ),
    case(
        "across seconds, too",
        *(*ABC, "live a @0 t5", "live c @2 t9"),
        skipped="b",
    ),
    *(
        case(
            f"a {event} between two deliveries: nothing was skipped",
            *(*ABC, "live a @0 t5", f"place {event} t6", "live c @2 t7"),
        )
        for event in ("revoke", "lost")
    ),
    *(
        case(
            f"a reader without a group begins at the log start: {place}",
            *(*ABC, "live a @0 t5", f"place {place} t6", "live c @2 t7"),
            skipped="a b",
        )
        for place in ("seek", "seek @2", "assign", "assign @2")
    ),
    case(
        "one that was never placed is not known to",
        *(*ABC, "live c @2 t7"),
    ),
    case(
        "what the log no longer has at its start was not skipped, wherever the brokers said that it began",
        *("send a ok @0", "send b ok @1", "send c ok @2", "final c @2", "end 2..3", "place assign @2 t3"),
        *("live c @2 t5", "live c @2 r1 t5", "place assign r2 t3", "live b @1 r2 t5", "live c @2 r2 t6"),
    ),
    case(
        "two readers, and two incarnations of one, each start where they start",
        *(*ABC, "live a @0 r1 t5", "live c @2 r2 t6", "live b @1 r1 i1 t7"),
    ),
    case(
        "offsets that nothing has in the end are not skipped",
        *("send a ok @0", "send b info", "send c ok @2", "live a @0", "live c @2", "final a @0", "final c @2"),
        "end 0..3",
    ),
    case(
        "a reader that stops early skipped nothing",
        *(*ABC, "live a @0"),
    ),
    case(
        "a delivery behind an earlier one of the same assignment went back",
        *(*ABC, "live a @0 t5", "live b @1 t6", "live a @0 t7", "live b @1 t8", "live c @2 t9"),
        went_back="a b",
    ),
    case(
        "of what one poll gives, only what lies behind did",
        *(*ABC, "live a @0 t5", "live b @1 t5", "live b @1 t6", "live c @2 t6"),
        went_back="b",
    ),
    case(
        "what one poll passes over is skipped, and what it gives is not",
        *(*ABC, "live a @0 t5", "live c @2 t5"),
        skipped="b",
    ),
    case(
        "one delivery twice in a row did, too",
        *(*ABC, "live a @0 t5", "live a @0 t6"),
        went_back="a",
    ),
    case(
        "after a seek it did not",
        *(*ABC, "live a @0 t5", "live b @1 t6", "place seek t7", "live a @0 t8"),
    ),
    case(
        "nor after a seek at the time of a poll, which came first",
        *(*ABC, "place assign @0 t4", "live a @0 t5", "live b @1 t6", "place seek @0 t6", "live a @0 t7"),
        *("live b @1 t8", "live c @2 t9"),
    ),
    case(
        "a poll after the seek is compared with the place sought",
        *(*ABC, "place assign @0 t4", "live a @0 t5", "place seek @0 t6", "live b @1 t6.5", "live a @0 t7"),
        *("live b @1 t8", "live c @2 t9"),
        skipped="a",
        went_back="a b",
    ),
    case(
        "a poll at the time of an assignment is compared with its start",
        *(*ABC, "live a @0 t5", "live b @1 t5", "place assign @0 t6", "live c @2 t6"),
        skipped="a b",
    ),
    case(
        "nor where another partition's reader sought",
        *("send a ok @0 p0", "final a @0 p0", "live a @0 p0 t5", "place seek p1 t6", "live a @0 p0 t7"),
        *("end 0..1 p0", "end 0..0 p1"),
        went_back="a",
    ),
    case(
        "an end of the partition that was reported amid the records of a poll puts nobody back, nor forward",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "place end-of-partition r1 @1 t5", "live b @1 r1 t5"),
        *("live c @2 r1 t6",),
    ),
    case(
        "one that was reported with a poll, and lies behind what it gave, does",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "place end-of-partition r1 @2 t5", "live c @2 r1 t6"),
        skipped="b",
    ),
    case(
        "what one worker's reader has behind another's is its own affair",
        *(*ABC, "live a @0 r1 t5", "live b @1 r1 t6", "live a @0 r2 t7"),
    ),
]
CASES += PLACES + FOLLOWERS + EPOCHS + LOG + ORDER + READER

GROUPED = [
    case(
        "two members that deliver one partition by turns own it both",
        *(*ABC, "place assign r1 t1", "live a @0 r1 t5", "place assign r2 t6", "live a @0 r2 t7", "live b @1 r1 t8"),
        two_owners="a",
    ),
    case(
        "a member that gave the partition up is followed by another",
        *(*ABC, "live a @0 r1 t5", "place revoke r1 t6", "place assign r2 t7", "live b @1 r2 t8"),
    ),
    case(
        "one that died, too, though nobody reported it",
        *(*ABC, "place assign r1 t1", "live a @0 r1 t5", "place assign r2 t7", "live a @0 r2 t8", "live b @1 r2 t8"),
    ),
    case(
        "what the next owner passes over, for it begins behind all that was committed, was skipped",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "place committing r1 @1 t6", "place commit r1 @1 t6"),
        *("place revoke r1 t7", "place assign r2 @2 t8", "live c @2 r2 t9"),
        skipped="b",
    ),
    case(
        "so was what it passes over where nobody had asked to commit anything",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "place revoke r1 t6", "place assign r2 @2 t8"),
        *("live c @2 r2 t9",),
        skipped="b",
    ),
    case(
        "where it begins again at the log start it is given all, and so it is where it could not ask",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "place revoke r1 t6", "place assign r2 @0 t8"),
        *("live a @0 r2 t9", "live b @1 r2 t9", "place revoke r2 t10", "place assign r1 t11", "live c @2 r1 t12"),
    ),
    *(
        case(
            f"a member that lost its place seeks the log start, wherever brokers say that it is: {place}",
            *(*ABC, "place assign r1 t1", "live a @0 r1 t5", f"place {place} r1 t6", "live c @2 r1 t7"),
            skipped="a b",
        )
        for place in ("seek", "seek @2")
    ),
    case(
        "a member that did not learn where it begins, and came to the end at once",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "place committing r1 @1 t6", "place commit r1 @1 t6"),
        *("place revoke r1 t7", "place assign r2 t8", "place end-of-partition r2 @3 t9"),
        skipped="b c",
    ),
    case(
        "nor what was asked to be committed before a member began it knew not where",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "place committing r1 @2 t6"),
        *("place revoke r1 t7", "place assign r2 t8", "live c @2 r2 t9"),
    ),
    case(
        "not what was given to another before, nor what was asked to be committed, or was with an error",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "live b @1 r1 t5", "place commit r1 @1 t6"),
        *("place revoke r1 t7", "place assign r2 @2 t8", "live c @2 r2 t9"),
    ),
    case(
        "nor what was asked to be committed",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "place committing r1 @2 t6"),
        *("place revoke r1 t7", "place assign r2 @2 t8", "live c @2 r2 t9"),
    ),
    case(
        "nor what was committed with an error: who knows",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "place commit r1 @2 t6 failed"),
        *("place revoke r1 t7", "place assign r2 @2 t8", "live c @2 r2 t9"),
    ),
    case(
        "what it is given again is legal",
        *(*ABC, "place assign r1 @0 t1", "live a @0 r1 t5", "live b @1 r1 t5", "place commit r1 @1 t6"),
        *("place revoke r1 t7", "place assign r2 @1 t8", "live b @1 r2 t9", "live c @2 r2 t9"),
    ),
    case(
        "each partition is begun for itself, and what its first owner leaves out was skipped",
        *(*ABC, "send d ok @0 p1", "final d @0 p1", "end 0..1 p1", "place assign r1 @2 t1", "place assign r1 @0 p1 t1"),
        *("live c @2 r1 t5", "live d @0 p1 r1 t5"),
        skipped="a b",
    ),
    case(
        "what the log no longer has was not, wherever its first owner began",
        *("send a ok @0", "send b ok @1", "final b @1", "end 1..2", "place assign r1 @1 t1", "live b @1 r1 t5"),
    ),
    case(
        "two partitions have two owners",
        *("send a ok @0 p0", "send b ok @0 p1", "final a @0 p0", "final b @0 p1", "end 0..1 p0", "end 0..1 p1"),
        *("live a @0 p0 r1 t5", "live b @0 p1 r2 t4"),
    ),
]
#: Transactions have cases of their own.
OF_RECORDS = (*DELIVERY, *LOG_ORDER_READER)

PARTIAL = [
    case(
        "where a journal was cut off, what its worker sent after it is unrecorded, not a phantom",
        *("send a ok @0", "final a @0", "final w0#9 @1", "end 0..2"),
    ),
    case(
        "but a worker that does not exist sent nothing",
        *("send a ok @0", "final a @0", "final w0#9 @1", "final x @2", "final ? @3", "end 0..4"),
        phantom="x ?",
    ),
    case(
        "nor is it a phantom where a producer died before its journal reported anything",
        *("send a ok @0", "final a @0", "final w1#4 @1", "end 0..2"),
    ),
]
#: The second of the third case's workers: it was there, whatever it recorded.
SILENT = {"partial": True, "clients": {f"producer {2 * WORKERS_OF_A_HISTORY + 1}": {}}}


def hand_histories(cases: list[Case]) -> list[HandHistory]:
    return [HandHistory(f"case-{n}", n * WORKERS_OF_A_HISTORY).add(one.lines) for n, one in enumerate(cases)]


def found_in(run: Path, histories: list[HandHistory]) -> list[Sets]:
    """The names of the records in each anomaly, by history."""
    sets: list[Sets] = [{} for _ in histories]
    by_topic = {one.topic: n for n, one in enumerate(histories)}
    for kept in (run / ANOMALIES).glob("*"):
        for row in pq.read_table(kept).to_pylist():
            n = by_topic[row["topic"].removesuffix("-elsewhere")]
            sets[n].setdefault(kept.name, set()).add(histories[n].name_of(row["record_id"]))
    return sets


def by_case(run: Path, cases: list[Case]) -> dict[str, Sets]:
    """The anomalies of each case; all cases are judged as one run."""
    return dict(zip((one.says for one in cases), found_in(run, hand_histories(cases)), strict=True))


@pytest.fixture(scope="module")
def judged(of_corpus: Callable[[str], Judged]) -> dict[str, Sets]:
    """All cases judged as one run, each a topic of its own, and the partial ones as another."""
    return (
        by_case(of_corpus("by hand single records").run, CASES)
        | by_case(of_corpus("by hand partial").run, PARTIAL)
        | by_case(of_corpus("by hand read by a group").run, GROUPED)
    )


@pytest.mark.parametrize("one", [*CASES, *PARTIAL, *GROUPED], ids=lambda one: one.says)
def test_each_case_has_exactly_its_anomalies(one: Case, judged: dict[str, Sets]) -> None:
    assert judged[one.says] == one.found


#: Histories that only the anomaly itself makes suspicious: they are judged alone.
ALONE = [
    case(
        "a record that the final read found under another key",
        *("send a ok @0 k1", "send b ok @1 k1", "final a @0 k2", "final b @1", "end 0..2"),
        misplaced="a",
    ),
    case(
        "one that two consumers were given under another key, and nobody acknowledged",
        *("send a info k1", "send b ok @0 k2 w1", "live b @0", "live a @1 k2", "live a @1 k2 r1"),
        *("final b @0", "final a @1", "end 0..2"),
        misplaced="a",
    ),
    case(
        "records under their keys, one of them not acknowledged",
        *("send a info k1", "send b ok @0 k2 w1", "live b @0", "live a @1", "final b @0", "final a @1", "end 0..2"),
    ),
    case(
        "a copy at the offset that another was acknowledged at",
        *("send a ok @1 w0", "send b ok @1 w1", "final a @0", "final a @1", "final b @1", "end 0..2"),
        duplicated="a",
        rewritten_offset="b",
    ),
    case(
        "what two readers saw at the offset of another, beside a damaged one",
        *("send a info", "send b info", "send c ok @0 w1", "live a @0 r0", "live a @0 r1", "live b @1 damaged"),
        *("final c @0", "end 0..1"),
        vanished="a",
        corrupted="b",
        rewritten_offset="a",
    ),
    case(
        "two records at one offset, though one had no known outcome, and an offset below the log's start",
        *("send a info @2", "send b ok @7 w1", "final a @7", "final b @7", "end 5..8"),
        rewritten_offset="b",
    ),
]


@pytest.mark.parametrize("one", ALONE, ids=lambda one: one.says)
@pytest.mark.long
def test_each_case_judged_alone_has_exactly_its_anomalies(one: Case, of_corpus: Callable[[str], Judged]) -> None:
    run = of_corpus(f"by hand alone {ALONE.index(one)}").run
    assert found_in(run, hand_histories([one])) == [one.found]


@pytest.mark.parametrize("checker", OF_RECORDS, ids=lambda checker: checker.anomaly.name)
def test_every_checker_has_a_case_that_it_finds(checker) -> None:
    assert any(one.found.get(checker.anomaly.name) for one in [*CASES, *GROUPED])


@pytest.mark.parametrize(
    ("idempotence", "second", "which"),
    [
        (True, 0, "idempotent producer"),
        (False, 0, "same incarnation"),
        (False, 1, "across incarnations"),
    ],
)
def test_a_duplicate_says_which_it_is(
    idempotence: bool, second: int, which: str, spark: SparkSession, tmp_path: Path
) -> None:
    one = HandHistory().add(("send a info", f"send again ok @1 i{second}", "final a @0", "final a @1", "end 0..2"))
    one.rows["sends"][1]["record_id"] = one.ids["a"]
    write(tmp_path, [one], idempotence=idempotence)
    records(History.read(tmp_path, spark), [c for c in CHECKERS if c.anomaly.name == "duplicated"])
    [row] = pq.read_table(tmp_path / ANOMALIES / "duplicated").to_pylist()
    assert (row["which"], row["offset"], row["last_offset"], row["copies"]) == (which, 0, 1, 2)
    assert row["acknowledged_ns"] == one.rows["sends"][1]["completed_ns"]


def _misplaced(run: Path, spark: SparkSession) -> list[dict[str, Any]]:
    records(History.read(run, spark), [c for c in CHECKERS if c.anomaly.name == "misplaced"])
    kept = run / ANOMALIES / "misplaced"
    return pq.read_table(kept).to_pylist() if kept.exists() else []


#: If all sends share one key, and all reads do, the footers suffice.
@pytest.mark.parametrize(
    ("sent", "read", "found"),
    [("k1", "k2", True), ("k1", "keyless", True), ("", "k1", True), ("k1", "k1", False), ("", "", False)],
)
@pytest.mark.parametrize("also", ["", "live a @0"], ids=["found", "read"])
@pytest.mark.heavy
def test_a_key_that_all_reads_share_is_compared_with_the_key_of_the_sends(
    sent: str, read: str, found: bool, also: str, spark: SparkSession, tmp_path: Path
) -> None:
    reads = [f"{line} {read}" for line in ("final a @0", also) if line]
    write(tmp_path, [by_hand(f"send a ok @0 {sent}", *reads, "end 0..1")])
    assert History.read(tmp_path, spark).keyed is found
    assert [(row["sent_key"], row["key"]) for row in _misplaced(tmp_path, spark)] == [
        (sent or None, None if read == "keyless" else read) for _ in range(found)
    ]


@pytest.mark.heavy
def test_without_a_final_read_what_readers_were_given_is_asked_about_keys(spark: SparkSession, tmp_path: Path) -> None:
    lines = ("send a ok @0 k1", "send b ok @1 k1", "live a @0 k2", "live a @0 k2 r1", "live b @1", "live b @1 r1")
    write(tmp_path, [by_hand(*lines)], origin=Origin.JEPSEN)
    assert [row["record_id"] for row in _misplaced(tmp_path, spark)] == [0]


def test_a_record_that_was_sent_twice_may_be_under_any_of_its_keys(spark: SparkSession, tmp_path: Path) -> None:
    one = by_hand(
        "send a ok @0 k1", "send again ok @1 k1", "send other ok @2 k2", "final a @0", "final a @1", "end 0..3"
    )
    one.add(["final a @2 k2", "final a @3 k3"])
    for row in one.rows["sends"]:
        row["record_id"] = one.ids["a"]
    write(tmp_path, [one])
    assert {(row["offset"], row["key"]) for row in _misplaced(tmp_path, spark)} == {(3, "k3")}


def test_a_misplaced_record_says_where_it_belongs_and_under_which_key(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a info k1 p2", "final a @7 k2 p1", "live a @7 k2 p1 t9", "end 0..8 p1")])
    [row] = _misplaced(tmp_path, spark)
    assert (row["topic"], row["partition"], row["offset"], row["key"]) == ("trial", 1, 7, "k2")
    assert (row["sent_topic"], row["sent_partition"], row["sent_key"]) == ("trial", 2, "k1")
    assert row["read_ns"] == 9 * SECOND


@pytest.mark.heavy
def test_of_a_history_that_does_not_tell_the_keys_of_reads_no_key_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a ok @0 k1", "send b info k2 p1", "final a @0 k2", "final b @1 k3", "end 0..2")])
    assert {row["record_id"] for row in _misplaced(tmp_path, spark)} == {0, 1}
    without_keys(tmp_path)
    assert not History.read(tmp_path, spark).keyed
    [row] = _misplaced(tmp_path, spark)
    assert row["record_id"] == 1
    assert not row.keys() & {"key", "sent_key"}


@pytest.mark.heavy
def test_a_lost_record_says_in_which_epoch_a_consumer_read_it(spark: SparkSession, tmp_path: Path) -> None:
    """Only if it was read at its acknowledged offset, intact, and in one epoch only."""
    sends = [f"send {name} ok @{n}" for n, name in enumerate("abcdefg")]
    given = ["live a @0 e3", "live a @0 e3", "live c @7 e3", "live d @3", "live e @4 e3 damaged", "live f @5 e3"]
    given += ["live f @5 e4", "live g @6 e5 p1", "live f @9 e4"]
    write(tmp_path, [by_hand(*sends, *given, "end 0..7", "end 0..0 p1")])
    judge(tmp_path, spark)
    rows = pq.read_table(tmp_path / ANOMALIES / "lost").to_pylist()
    epochs = {row["record_id"]: row["read_epoch"] for row in rows}
    assert epochs == {0: 3} | dict.fromkeys(range(1, 7))


@pytest.mark.heavy
def test_a_damaged_record_survives_only_at_the_offset_of_its_acknowledgement(
    spark: SparkSession, tmp_path: Path
) -> None:
    damaged = ("send a ok @0", "final a @0 damaged", "send b ok @1", "final b @2 damaged", "send c info")
    write(tmp_path, [by_hand(*damaged, "final c @3 damaged", "send d ok @4", "final d @4", "end 0..5")])
    counts, found = records(History.read(tmp_path, spark))
    assert (counts["acknowledged"], counts["survivors"], counts["unacknowledged_present"]) == (3, 2, 0)
    assert {one.checker.anomaly.name: one.count for one in found} == {"lost": 1, "corrupted": 3}


#: Of a compacted log: records at another offset, and records that only the leader or only its follower still has.
ELSEWHERE = ("send a ok @0", "live a @0", "final a @1", "end 0..2")
ONE_HAS_IT = {
    "the follower": ("final a @0", "final c @2", "replica a @0 r1", "replica b @1 r1", "replica c @2 r1"),
    "the leader": ("final a @0", "final b @1", "final c @2", "replica a @0 r1", "replica c @2 r1"),
}
OTHERS_PLACE = ("final a @0", "final b @1", "final c @2", "replica a @0 r1", "replica c @1 r1", "replica c @2 r1")
POLICIES = pytest.mark.parametrize(
    ("policy", "compacted"), [("delete", False), ("compact", True), ("compact,delete", True)]
)


def of_policy(run: Path, spark: SparkSession, policy: str, *lines: str) -> History:
    write(run, [by_hand(*lines)], scenario={"topic": {"config": {"cleanup.policy": policy}}})
    return History.read(run, spark)


@POLICIES
@pytest.mark.heavy
def test_nothing_has_vanished_from_its_place_in_a_compacted_topic_that_is_elsewhere(
    policy: str, compacted: bool, spark: SparkSession, tmp_path: Path
) -> None:
    history = of_policy(tmp_path, spark, policy, *ELSEWHERE)
    _, found = records(history, [one for one in CHECKERS if one.anomaly == VANISHED])
    assert sum(one.count for one in found) == (0 if compacted else 1)


@POLICIES
@pytest.mark.parametrize("lines", ONE_HAS_IT.values(), ids=ONE_HAS_IT)
def test_each_replica_compacts_its_own_log(
    lines: tuple[str, ...], policy: str, compacted: bool, spark: SparkSession, tmp_path: Path
) -> None:
    history = of_policy(tmp_path, spark, policy, *ABC[:3], *lines, "end 0..3")
    assert [row["record_id"] for row in diverged(history).where(NOT_THE_LEADER_S).collect()] == (
        [] if compacted else [1]
    )


@POLICIES
def test_compaction_moves_no_record_to_another_s_place(
    policy: str, compacted: bool, spark: SparkSession, tmp_path: Path
) -> None:
    history = of_policy(tmp_path, spark, policy, *ABC[:3], *OTHERS_PLACE, "end 0..3")
    found = diverged(history).where(f"not lacks and ({NOT_THE_LEADER_S})").collect()
    assert [(row["record_id"], row["offset"]) for row in found] == [(2, 1)]


@pytest.mark.heavy
def test_a_precondition_counts_the_writes_that_retention_may_have_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """An acknowledged write without an offset is not in the log, whose start retention moved; its twin's is known."""
    for of, offset, says in (
        ("one", "", "2 acknowledged writes without an offset may have been deleted"),
        ("twin", "@1", ""),
    ):
        lines = (f"send a ok {offset}", f"send b ok {offset}", "send c ok @2", "final c @2", "end 2..3")
        write(tmp_path / of, [by_hand(*lines)])
        (held,) = (one for one in judge(tmp_path / of, spark).preconditions if one.name == "log retained")
        assert held.detail == ", ".join(filter(None, ["trial-0 begins at 2", says]))
