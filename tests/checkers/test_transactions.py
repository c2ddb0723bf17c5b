"""Transactions by hand: each anomaly in the smallest history that has it, beside its twin. Reader 3 is read_committed,
reader 4 read_uncommitted; workers that read are read_committed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkers.anomalies import cycles, transactions
from checkers.anomalies.readers import IS_SKIPPED, skipped
from checkers.catalogue import TRANSACTIONS
from checkers.checker import Checker
from checkers.history import History
from checkers.judge import judge
from checkers.scan.polls import polls
from checkers.screening import records
from harness.core.anomalies import READ_CYCLE
from harness.core.verdict import Judgement, Standing
from harness.history.run_file import Origin
from tests.checkers.notation import SECOND, WORKERS_OF_A_HISTORY, by_hand, turned_round, write
from tests.checkers.test_delivery import Case, Sets, by_case, case, hand_histories
from tests.golden.sample import Judged

CLIENTS = {
    "consumer 103": {"isolation.level": "read_committed"},
    "consumer 104": {"isolation.level": "read_uncommitted"},
    **{
        f"polling {n}": {"isolation.level": "read_committed"}
        for n in range(60 * WORKERS_OF_A_HISTORY)
        if n not in (103, 104)
    },
}

#: The levels of readers 3, 4 and 6; nobody knows that of reader 5.
READERS = {
    **{3: {"isolation.level": "read_committed"}, 4: {"isolation.level": "read_uncommitted"}, 5: {}},
    6: {"isolation.level": "read_committed"},
}

COMMITTED = ("txn 1 commit ok 0..5..6",)
TWO = ("send a ok @0 x1 t1..2", "send b ok @0 p1 x1 t1..2")
BOTH_ENDS = ("end 0..2", "end 0..2 p1")

CASES = [
    case(
        "a committed transaction that is read whole",
        *(*COMMITTED, *TWO, "live a @0 r3 t7", "live b @0 p1 r3 t7", "final a @0", "final b @0 p1", *BOTH_ENDS),
    ),
    case(
        "records of an aborted transaction that are absent are neither lost nor, seen uncommitted, vanished",
        *("txn 1 abort ok 0..5..6", *TWO, "live a @0 r4 t2", "live b @0 p1 r4 t2", *BOTH_ENDS),
    ),
    case(
        "a record outside of every transaction that read_uncommitted delivers, and that is gone",
        *("txn 1 abort ok 0..5..6", "send a ok @0 x1 t1..2", "send p info t3..", "send q ok @2 t3..4"),
        *("live a @0 r4 t2", "live p @1 r4 t5", "live q @2 r4 t5", "final q @2", "end 0..3"),
        vanished="p",
    ),
    case(
        "the same where its partition was not read to its end, or retention deleted it",
        *("txn 1 abort ok 0..5..6", "send a ok @0 x1 t1..2", "send p info t3..", "send q info p1 t3.."),
        *("live a @0 r4 t2", "live p @1 r4 t5", "live q @1 p1 r4 t5", "end 0..3 read 1", "end 2..2 p1"),
    ),
    case(
        "a transaction that nobody was asked to end, seen uncommitted, is no plain record",
        *("txn 1 commit info 0..", "send a ok @0 x1 t1..2", "send b ok @1 x1 w1 t1..2", "txn 1 abort info 0..5.. w1"),
        *("live a @0 r4 t2", "live b @1 r4 t2", "end 0..2"),
    ),
    case(
        "a record of an aborted transaction that read_committed delivers; the final read hides it",
        *("txn 1 abort ok 0..5..6", *TWO, "live a @0 r3 t7", *BOTH_ENDS),
        aborted_read="a",
    ),
    case(
        "a record that read_committed delivers of a transaction that may be committed, and that is gone",
        *("txn 1 commit info 0..5..", *TWO, "live a @0 r3 t7", *BOTH_ENDS),
        vanished="a",
    ),
    case(
        "a committed transaction of which no offset was reported, in a log that retention cut",
        *("txn 1 commit ok 0..5..6", "send a ok x1 t1..2", "send b ok p1 x1 t1..2", "end 3..3", "end 3..3 p1"),
    ),
    case(
        "the same in the final read",
        *("txn 1 abort ok 0..5..6", *TWO, "final b @0 p1", *BOTH_ENDS),
        aborted_read="b",
    ),
    case(
        "the same in the log of a follower: the final read hides it",
        *("txn 1 abort ok 0..5..6", *TWO, "send c ok @2 t1..2", "final c @2"),
        *("replica a @0 r902", "replica c @2 r902", "end 0..3", "end 0..2 p1"),
        aborted_read="a",
    ),
    case(
        "a follower that hides it, too, and shows what was committed",
        *("txn 1 abort ok 0..5..6", *TWO, "txn 2 commit ok 6..7..8", "send c ok @2 x2 t6..7", "final c @2"),
        *("replica c @2 r902", "end 0..4", "end 0..2 p1"),
    ),
    *(
        case(
            f"what a follower shows of {what}, where the final log has nothing, is not in its leader's log",
            *(*more, "send a ok @0 t0..1", "send c ok @3 t10..11", "final a @0", "final c @3"),
            *("replica a @0 r902", "replica x @1 r902", "replica c @3 r902", "end 0..4"),
            **found,
        )
        for what, more, found in (
            (
                "a transaction that may be committed",
                ("txn 1 commit info 0..5..", "send x ok @1 x1 t2..3"),
                {"diverged": "x"},
            ),
            (
                "no transaction",
                ("txn 1 abort ok 0..5..6", "send z ok @1 x1 t2..3", "send x info w1 t1..9"),
                {"diverged": "x"},
            ),
            (
                "one that was aborted, and of a later one",
                (
                    *("txn 1 abort ok 0..3..4", "send x ok @7 x1 t1..2", "txn 2 commit info 4..6.. i1"),
                    "send x ok @1 x2 i1 again t5..6",
                ),
                {"diverged": "x"},
            ),
        )
    ),
    case(
        "behind the end of the final log it may have come later",
        *("txn 1 commit info 0..5..", "send a ok @0 t0..1", "send x ok @1 x1 t2..3", "final a @0"),
        *("replica a @0 r902", "replica x @1 r902", "end 0..1"),
    ),
    case(
        "where both hide what was aborted, and markers, neither has anything",
        *("txn 1 abort ok 0..5..6", "send a ok @0 t0..1", "send z ok @1 x1 t2..3", "send c ok @3 t10..11"),
        *("final a @0", "final c @3", "replica a @0 r902", "replica c @3 r902", "end 0..4"),
    ),
    case(
        "an abort that nobody answered is an abort all the same",
        *("txn 1 abort info 0..5..", *TWO, "final b @0 p1", *BOTH_ENDS),
        aborted_read="b",
    ),
    case(
        "what was to be committed and never was asked to be is never read",
        *("txn 1 commit fail 0..5..6", *TWO, "final a @0", "txn 2 commit info 0..", "send c ok @1 x2", "final c @1"),
        *BOTH_ENDS,
        aborted_read="a c",
    ),
    *(
        case(
            f"nor was its commit asked for if a record was known to have {failed}",
            *("txn 1 commit info 0..5..", "send a ok @0 x1 t1..2", f"send b {record}", "live a @0 r3 t8", "final a @0"),
            *("end 0..2", "end 0..2 p1"),
            aborted_read="a",
        )
        for failed, record in (
            ("failed", "fail p1 x1 t1..3"),
            ("been given up", "info p1 x1 t1..3"),
            ("been given up just then", "info p1 x1 t1..5"),
        )
    ),
    *(
        case(
            f"it may have been asked for if a record {without}",
            *("txn 1 commit info 0..5..", "send a ok @0 x1 t1..2", f"send b {record}", "live a @0 r3 t8", "final a @0"),
            *("end 0..2", "end 0..2 p1"),
            fractured="b",
        )
        for without, record in (
            ("was given up only later", "info p1 x1 t1..5.1"),
            ("has no report", "info p1 x1 t1.."),
        )
    ),
    case(
        "one that failed in another transaction of that number is no matter",
        *("txn 1 commit info 0..5..", "send a ok @0 x1 t1..2", "send b fail p1 x1 w1 t1..3", "live a @0 r3 t8"),
        *("txn 1 abort ok 0..5..6 w1", "final a @0", "end 0..2", "end 0..2 p1"),
    ),
    case(
        "what was not asked for and is gone was aborted, and has not vanished",
        *("txn 1 commit info 0..5..", "send a ok @0 x1 t1..2", "send b fail p1 x1 t1..3", "live a @0 r3 t8"),
        *("end 0..2", "end 0..2 p1"),
        aborted_read="a",
    ),
    case(
        "what the next incarnation sent again, and committed, is not the aborted record",
        *("txn 1 abort ok 0..3..4", "send a ok @0 x1 t1..2", "txn 2 commit ok 10..13..14 i1"),
        *("send a ok @2 x2 i1 again t11..12", "live a @2 r3 t15", "final a @2", "end 0..4"),
    ),
    case(
        "it is where it was acknowledged before",
        *("txn 1 abort ok 0..3..4", "send a ok @0 x1 t1..2", "txn 2 commit ok 10..13..14 i1"),
        *("send a ok @2 x2 i1 again t11..12", "live a @0 r3 t7", "final a @2", "end 0..4"),
        aborted_read="a",
        duplicated="a",
    ),
    case(
        "nor is it if nobody knows which of both was sent in vain, or one was sent outside of transactions",
        *("txn 1 abort info 0..3", "send a info x1 t1..", "txn 2 commit info 10..13 i1"),
        *("send a info x2 i1 again t11..", "live a @2 r3 t15", "final a @2", "send b info x1 t1.."),
        *("send b ok @3 i1 again t15..16", "live b @3 r3 t17", "final b @3", "end 0..4"),
    ),
    case(
        "what was sent again is no part of the transaction before, of which nothing is there",
        *("txn 1 commit info 0..3", "send a ok @0 x1 t1..2", "send b ok @1 x1 t1..2"),
        *("txn 2 commit ok 10..13..14 i1", "send a ok @3 x2 i1 again t11..12", "live a @3 r3 t15", "final a @3"),
        "end 0..5",
    ),
    case(
        "where that is there, it is a part",
        *("txn 1 commit info 0..3", "send a ok @0 x1 t1..2", "send b ok @1 x1 t1..2"),
        *("txn 2 abort ok 10..13..14 i1", "send a ok @3 x2 i1 again t11..12", "final a @0", "end 0..5"),
        fractured="b",
    ),
    case(
        "a producer that was killed in the middle left nothing to read, and nothing is lost",
        *("txn 1 commit info 0..", *TWO, "live a @0 r4 t2", *BOTH_ENDS),
    ),
    case(
        "a record that is read before its commit is asked for",
        *(*COMMITTED, *TWO, "live a @0 r3 t4", "live b @0 p1 r3 t5", "final a @0", "final b @0 p1", *BOTH_ENDS),
        early_read="a",
    ),
    case(
        "read_uncommitted may read it then",
        *(*COMMITTED, *TWO, "live a @0 r4 t4", "final a @0", "final b @0 p1", *BOTH_ENDS),
    ),
    case(
        "a record that its own transaction reads",
        *(*COMMITTED, *TWO, "live b @0 p1 w0 x1 t5", "final a @0", "final b @0 p1", *BOTH_ENDS),
        early_read="b",
    ),
    case(
        "one that the next transaction of the same worker reads",
        *(*COMMITTED, *TWO, "txn 2 commit ok 7..9..9", "live b @0 p1 w0 x2 t8", "final a @0", "final b @0 p1"),
        *BOTH_ENDS,
    ),
    case(
        "a transaction of the same number of another worker",
        *(*COMMITTED, *TWO, "txn 1 commit ok 7..9..9 w1", "live b @0 p1 w1 x1 t8", "final a @0", "final b @0 p1"),
        *BOTH_ENDS,
    ),
    case(
        "two transactions that are given each other's records",
        *("txn 1 commit ok 0..5..6", "txn 2 commit ok 1..5..6 w1", "send a ok @0 x1 t1..2"),
        *("send b ok @0 p1 x2 w1 t1..2", "live b @0 p1 w0 x1 t5", "live a @0 w1 x2 t5"),
        *("final a @0", "final b @0 p1", "end 0..1", "end 0..1 p1"),
        read_cycle="a",
    ),
    case(
        "one that is given the other's alone",
        *("txn 1 commit ok 0..5..6", "txn 2 commit ok 1..5..6 w1", "send a ok @0 x1 t1..2"),
        *("send b ok @0 p1 x2 w1 t1..2", "live b @0 p1 w0 x1 t5"),
        *("final a @0", "final b @0 p1", "end 0..1", "end 0..1 p1"),
    ),
    case(
        "two that are given it outside of transactions",
        *("txn 1 commit ok 0..5..6", "txn 2 commit ok 1..5..6 w1", "send a ok @0 x1 t1..2"),
        *("send b ok @0 p1 x2 w1 t1..2", "live b @0 p1 w0 t5", "live a @0 w1 t5"),
        *("final a @0", "final b @0 p1", "end 0..1", "end 0..1 p1"),
    ),
    case(
        "three in a circle",
        *("txn 1 commit ok 0..5..6", "txn 2 commit ok 1..5..6 w1", "txn 3 commit info 2..5.. w2"),
        *("send a ok @0 x1 t1..2", "send b ok @1 x2 w1 t2..3", "send c ok @2 x3 w2 t3..4"),
        *("live a @0 w1 x2 t5", "live b @1 w2 x3 t5", "live c @2 w0 x1 t5"),
        *("final a @0", "final b @1", "final c @2", "end 0..3"),
        read_cycle="b",
    ),
    case(
        "three in a row",
        *("txn 1 commit ok 0..5..6", "txn 2 commit ok 1..5..6 w1", "txn 3 commit ok 2..5..6 w2"),
        *("send a ok @0 x1 t1..2", "send b ok @1 x2 w1 t2..3", "send c ok @2 x3 w2 t3..4"),
        *("live a @0 w1 x2 t5", "live b @1 w2 x3 t5", "live a @0 w2 x3 t5"),
        *("final a @0", "final b @1", "final c @2", "end 0..3"),
    ),
    case(
        "writes that stand in two orders are no circle",
        *("txn 1 commit ok 0..5..6", "txn 2 commit ok 1..5..6 w1", "send a ok @0 x1 t1..2"),
        *("send b ok @1 p1 x1 t1..2", "send c ok @1 x2 w1 t1..2", "send d ok @0 p1 x2 w1 t1..2"),
        *("final a @0", "final c @1", "final d @0 p1", "final b @1 p1", "end 0..2", "end 0..2 p1"),
    ),
    case(
        "a committed transaction of which a part is missing",
        *(*COMMITTED, *TWO, "final a @0", *BOTH_ENDS),
        fractured="b",
        lost="b",
    ),
    case(
        "a committed transaction of which all but one are missing",
        *(*COMMITTED, *TWO, "send c ok @1 x1 t2..3", "final a @0", *BOTH_ENDS),
        fractured="b c",
        lost="b c",
    ),
    case(
        "an unknown commit of which a part is missing: fractured, but nothing is lost",
        *("txn 1 commit info 0..5..6", *TWO, "final a @0", *BOTH_ENDS),
        fractured="b",
    ),
    *(
        case(
            f"a part without a delivery report of a transaction that is there, its commit {answer}, was delivered, too",
            *(f"txn 1 commit {answer}", "send a ok @0 x1 t1..2", "send b info p1 x1 t1..", "final a @0", *BOTH_ENDS),
            fractured="b",
        )
        for answer in ("ok 0..5..6", "info 0..5..6")
    ),
    case(
        "an answered commit of which no report and no record is there",
        *("txn 1 commit ok 0..5..6", "send a info x1 t1..", "send b info p1 x1 t1..", *BOTH_ENDS),
        committed_lost="a b",
    ),
    case(
        "a part that failed is none; nor is a part without a report of a transaction that is absent, or not asked for",
        *(*COMMITTED, "send a ok @0 x1 t1..2", "send b fail p1 x1 t1..2", "final a @0"),
        *("txn 2 commit info 0..5..6", "send c ok @1 x2 t1..2", "send d info p1 x2 t1.."),
        *("txn 3 commit info 0..", "send e ok @2 x3 t1..2", "send f info p1 x3 t1..", "end 0..4", "end 0..2 p1"),
    ),
    case(
        "of a part without a report in a log that retention cut, or that was not read to its end, nobody knows",
        *(*COMMITTED, "send a ok @0 x1 t1..2", "send b info p1 x1 t1..", "send c info p2 x1 t1..", "final a @0"),
        *("end 0..2", "end 1..2 p1", "end 0..2 p2 read 0"),
    ),
    case(
        "what is missing in a partition that was not read to its end is not known to be",
        *(*COMMITTED, *TWO, "final a @0", "end 0..2", "end 0..2 p1 read 0"),
    ),
    case(
        "what retention deleted is not missing",
        *(*COMMITTED, *TWO, "final a @0", "end 0..2", "end 1..2 p1"),
    ),
    case(
        "a committed transaction that is absent",
        *(*COMMITTED, *TWO, *BOTH_ENDS),
        committed_lost="a b",
        lost="a b",
    ),
    case(
        "damaged bytes where a record of it was acknowledged are a part of it",
        *(*COMMITTED, *TWO, "final a @0", "final b @0 p1 damaged", *BOTH_ENDS),
        corrupted="b",
    ),
    case(
        "damaged bytes that show its id elsewhere are none",
        *(*COMMITTED, *TWO, "final a @0", "final b @1 p1 damaged", *BOTH_ENDS),
        fractured="b",
        lost="b",
        corrupted="b",
    ),
    case(
        "nor is the transaction there for them",
        *(*COMMITTED, *TWO, "final a @1 damaged", "final b @1 p1 damaged", *BOTH_ENDS),
        committed_lost="a b",
        lost="a b",
        corrupted="a b",
    ),
    case(
        "an unknown one that is absent, or whole, has only been resolved",
        *("txn 1 commit info 0..5..6", *TWO, "txn 2 commit info 0..5..", "send c ok @1 x2", "final c @1", *BOTH_ENDS),
    ),
    case(
        "transactions of the same number of other workers are told apart",
        *(*COMMITTED, *TWO, "final a @0", "final b @0 p1"),
        *("txn 1 abort ok 0..5..6 w1", "send c ok @1 x1 w1", *BOTH_ENDS),
    ),
    case(
        "a record outside of every transaction is lost as ever",
        *(*COMMITTED, *TWO, "final a @0", "final b @0 p1", "send c ok @1", *BOTH_ENDS),
        lost="c",
    ),
    case(
        "of what stands behind a transaction that hangs a final read tells nothing",
        *("txn 1 commit info 0..", "send a ok @0 x1", "txn 1 commit ok 0..5..6 w1", "send b ok @1 x1 w1"),
        *("end 0..0", "stable @0 high=3"),
        hanging_transaction="?",
    ),
    case(
        "nor is it one that hung before the partition was asked again",
        *("txn 1 commit info 0..", "send a ok @0 x1", "txn 1 commit ok 0..5..6 w1", "send b ok @1 x1 w1"),
        *("end 0..0", "stable @0 high=3", "stable @3 high=3"),
        committed_lost="b",
        lost="b",
    ),
    case(
        "a last stable offset below the high watermark is a transaction that hangs",
        *("txn 1 commit info 0..", "send a ok @0 x1", "end 0..0", "stable @0 high=1"),
        hanging_transaction="?",
    ),
    case(
        "a log that is stable to its end has none; the last word counts",
        *("txn 1 abort ok 0..5..6", "send a ok @0 x1", "end 0..2", "stable @0 high=2", "stable @2 high=2"),
    ),
]

UNCOMMITTED = [
    case(
        "a read_uncommitted final read has aborted records, and so have followers, and none is missing",
        *("txn 1 abort ok 0..5..6", *TWO, "final a @0", "final b @0 p1", "replica a @0 r902", *BOTH_ENDS),
    ),
    case(
        "an acknowledged record that is not even there uncommitted is lost, aborted or not",
        *("txn 1 abort ok 0..5..6", *TWO, "final a @0", *BOTH_ENDS),
        lost="b",
    ),
]


def settings(level: str) -> dict:
    return {"isolation_level": level, "clients": CLIENTS}


@pytest.fixture(scope="module")
def judged(of_corpus: Callable[[str], Judged]) -> dict[str, Sets]:
    committed = by_case(of_corpus("by hand transactions, read_committed").run, CASES)
    return committed | by_case(of_corpus("by hand transactions, read_uncommitted").run, UNCOMMITTED)


@pytest.mark.parametrize("one", [*CASES, *UNCOMMITTED], ids=lambda one: one.says)
def test_each_case_has_exactly_its_anomalies(one: Case, judged: dict[str, Sets]) -> None:
    assert judged[one.says] == one.found


@pytest.mark.parametrize("checker", TRANSACTIONS, ids=lambda checker: checker.anomaly.name)
def test_every_checker_has_a_case_that_it_finds(checker) -> None:
    assert any(one.found.get(checker.anomaly.name) for one in CASES)


#: A transaction that reads a record outside of any, and sends one that another transaction reads.
READS_ALONE = (
    *("send a ok @0 w2 t1..2", "txn 1 commit ok 5..8..9 w1", "live a @0 w1 x1 t7", "send r ok @1 x1 w1 t6..7"),
    *("live r @1 r3 t10", "final a @0", "final r @1", "end 0..4"),
)


@pytest.mark.parametrize(
    ("again", "early"),
    [
        (("send a ok @3 w2 i1 again t100..101",), set()),
        (("send a ok @3 w2 i1 again t7..8",), set()),
        (("send s ok @3 w2 t9..9.5", "live s @3 w1 x1 t9.6"), set()),
        (("send s ok @3 w2 t12..13", "live s @3 w1 x1 t14"), {"r"}),
    ],
)
def test_a_record_that_was_read_is_of_no_later_send(
    again: tuple[str, ...], early: set[str], spark: SparkSession, tmp_path: Path
) -> None:
    hand = by_hand(*READS_ALONE, *again)
    write(tmp_path, [hand], **settings("read_committed"))
    rows = transactions.early_read(History.read(tmp_path, spark)).collect()
    assert {hand.name_of(row["record_id"]) for row in rows} == early


@pytest.mark.parametrize(("sent", "cycle"), [("t1..2", {"a"}), ("t5..6", {"a"}), ("t6..7", set())])
def test_a_cycle_needs_records_that_were_sent_before_they_were_read(
    sent: str, cycle: set[str], spark: SparkSession, tmp_path: Path
) -> None:
    lines = (
        *("txn 1 commit ok 0..8..9", "txn 2 commit ok 1..8..9 w1", "send a ok @0 x1 t1..2"),
        *(f"send b ok @0 p1 x2 w1 {sent}", "live b @0 p1 w0 x1 t5", "live a @0 w1 x2 t5"),
    )
    hand = by_hand(*lines)
    write(tmp_path, [hand], **settings("read_committed"))
    rows = cycles.read_cycle(History.read(tmp_path, spark)).collect()
    assert {hand.name_of(row["record_id"]) for row in rows} == cycle


#: Two records of the first transaction, and one of another behind them.
THREE = (
    *("send a ok @0 x1 t1..2", "send b ok @1 x1 t1..2", "txn 2 commit ok 5..8..9", "send c ok @3 x2 t6..7"),
    *("final a @0", "final b @1", "final c @3", "end 0..5"),
)
ABORTED, OPEN, DONE = "txn 1 abort ok 0..3..4", "txn 1 commit info 0..3", "txn 1 commit ok 0..3..4"


def passing_by(reader: int, *found: int) -> tuple[str, ...]:
    """A reader of the log start on that is given some of them, and c."""
    given = (f"live {'ab'[at]} @{at} r{reader} t5" for at in found)
    return f"place assign r{reader} t0", *given, f"live c @3 r{reader} t9"


#: The first record, sent again in a transaction that was aborted.
_AGAIN = ("txn 3 abort ok 20..23..24 i1", "send a ok @7 x3 i1 again t21..22")


def _at(epoch: str, lines: tuple[str, ...]) -> tuple[str, ...]:
    """The same deliveries under a leader epoch."""
    return tuple(f"{line} {epoch}" if line.startswith("live") else line for line in lines)


#: The record at which the reader passed is gone, and b took its place.
_SENT_LATER = tuple("send b ok @1 x1 t20..21" if line.startswith("send b") else line for line in THREE)

#: The final log has neither a nor b.
_HIDDEN = tuple(line for line in THREE if line not in ("final a @0", "final b @1"))
#: Another leader wrote b.
_LATER = (*(line for line in THREE if line != "final b @1"), "final b @1 e1")


def watched(times: str = "@0..60") -> tuple[str, ...]:
    """Three brokers report one leader."""
    return tuple(f"saw b{n} {times} leader=1 epoch=0 isr=1,2,3" for n in (1, 2, 3))


SKIPPED: dict[str, list[tuple[tuple[str, ...], str]]] = {
    "read_uncommitted": [
        ((DONE, *_SENT_LATER, *passing_by(4, 0)), ""),
        *(((first, *THREE, *passing_by(4, 0)), "b") for first in (ABORTED, OPEN, DONE)),
        *(((first, *THREE, *passing_by(4, 0, 1)), "") for first in (ABORTED, OPEN, DONE)),
        # Read_committed readers, and readers with an unknown level:
        *(((ABORTED, *THREE, *passing_by(n, 0)), "") for n in (3, 5)),
        *(((DONE, *THREE, *passing_by(n, 0)), "b") for n in (3, 5)),
        ((ABORTED, *THREE, *passing_by(4), *passing_by(3)), "a b"),
        # It was committed if a read_committed reader got a record of it, and its commit was asked for:
        ((OPEN, *THREE, *passing_by(3, 0)), "b"),
        ((OPEN, *THREE, *passing_by(3, 0, 1), *passing_by(6)), "a b"),
        ((OPEN, *THREE, *passing_by(3)), ""),
        ((OPEN, *THREE, *passing_by(4, 0, 1), *passing_by(3)), ""),
        ((OPEN, *THREE, *passing_by(5, 0)), ""),
        (("txn 1 commit info 0..", *THREE, *passing_by(3, 0)), ""),
        ((OPEN, *THREE, "send f fail x1 t1..2 p1", *passing_by(3, 0)), ""),
        ((OPEN, *THREE, *(line.replace("live a @0", "live a @0 damaged") for line in passing_by(3, 0))), ""),
        # Nobody knows of which transaction a record is that another sent again, and that is found elsewhere:
        ((OPEN, *THREE, *_AGAIN, *passing_by(3), "live a @7 r3 t25"), ""),
        ((OPEN, *THREE, *_AGAIN, *passing_by(3, 0)), "b"),
        *(((OPEN, *THREE, *_at(epoch, passing_by(3, 0))), "b") for epoch in ("", "e0", "e1")),
    ],
    "read_committed": [
        ((DONE, *_SENT_LATER, *passing_by(4, 0)), ""),
        *(((first, *THREE, *passing_by(n, 0)), "b") for n in (3, 4, 5) for first in (OPEN, DONE)),
        *(((first, *THREE, *passing_by(n, 0, 1)), "") for n in (3, 4, 5) for first in (OPEN, DONE)),
        # A record that the log does not show was perhaps aborted:
        *(((OPEN, *(line for line in THREE if line != "final b @1"), *passing_by(n, 0)), "") for n in (3, 4, 5)),
        # But a read_uncommitted reader must get an acknowledged record, unless an election may have taken it:
        *(
            ((first, *_HIDDEN, *watched(), *passing_by(4, 0)), "b")
            for first in (ABORTED, OPEN, "txn 1 commit info 0..")
        ),
        *(((ABORTED, *_HIDDEN, *watched(), *passing_by(n, 0)), "") for n in (3, 5)),
        ((ABORTED, *_HIDDEN, *watched(), *passing_by(4, 0, 1)), ""),
        ((ABORTED, *_HIDDEN, *watched(), *_at("e0", passing_by(4, 0))), "b"),
        ((ABORTED, *_HIDDEN, *watched(), *_at("e1", passing_by(4, 0))), ""),
        ((DONE, *_HIDDEN, *watched(), *passing_by(4, 0)), ""),
        ((ABORTED, *THREE, *watched(), *passing_by(4, 0)), "b"),
        ((OPEN, *THREE, *watched(), *passing_by(4, 0)), "b"),
        ((ABORTED, *_HIDDEN, *watched(), "saw b1 @40 leader=2 epoch=1 isr=2", *passing_by(4, 0)), ""),
        ((ABORTED, *_HIDDEN, *watched(), "saw b1 @40 p1 leader=2 epoch=1 isr=2", *passing_by(4, 0)), "b"),
        *(((ABORTED, *_HIDDEN, *watched(times), *passing_by(4, 0)), "") for times in ("@0..8", "@2..60")),
        ((ABORTED, *_HIDDEN, "saw b1 @0..60 leader=1 epoch=0 isr=1", *watched("@0..8")[1:], *passing_by(4, 0)), ""),
        ((ABORTED, *_HIDDEN, *watched("@0..60")[1:], "saw b1 @0..8 leader=1 epoch=0 isr=1", *passing_by(4, 0)), "b"),
        ((ABORTED, *(line.replace("b ok @1", "b info") for line in _HIDDEN), *watched(), *passing_by(4, 0)), ""),
        ((ABORTED, *(line.replace("b ok @1", "b ok") for line in _HIDDEN), *watched(), *passing_by(4, 0)), ""),
        ((ABORTED, *(line.replace("end 0", "end 2") for line in _HIDDEN), *watched(), *passing_by(4, 0)), ""),
        # The old leader's log, of which the reader got c, had none of what the new one wrote:
        *(
            ((DONE, *_LATER, *_at(epoch, passing_by(3, 0))), found)
            for epoch, found in (("e0", ""), ("e1", "b"), ("", "b"))
        ),
        ((DONE, *_LATER, "place assign r3 t0", "live a @0 r3 t5 e0", "place end-of-partition @3 r3 t9"), "b"),
        ((DONE, *_LATER, "place assign r3 t0", "live a @0 r3 t9 e0", "live c @3 r3 t9 e0"), ""),
        ((DONE, *_LATER, "place assign r3 t0", "live a @0 r3 t9 e0", "live c @3 r3 t9 e1"), "b"),
        ((DONE, *_LATER[:-1], "final b @1", *_at("e0", passing_by(3, 0))), "b"),
    ],
}


@pytest.mark.parametrize("level", SKIPPED)
def test_readers_may_skip_only_the_records_that_their_isolation_level_hides(
    level: str, spark: SparkSession, tmp_path: Path
) -> None:
    histories, wanted = zip(*SKIPPED[level], strict=True)
    cases = [case(str(n), *lines) for n, lines in enumerate(histories)]
    listed = hand_histories(cases)
    readers = {f"consumer {listed[0].first_reader + n}": of for n, of in READERS.items()}
    write(tmp_path, listed, isolation_level=level, clients=readers)
    history = History.read(tmp_path, spark)
    rows = skipped(history, polls(history)).where(IS_SKIPPED).collect()
    found = [{one.name_of(row["record_id"]) for row in rows if row["topic"] == one.topic} for one in listed]
    assert found == [{*names.split()} for names in wanted]


#: A transaction whose end is asked for after 20 s; another record behind it.
FIRST = ("txn 1 abort ok 0..20..21", "send a ok @0 x1 t1..2")
BEHIND = ("txn 2 commit ok 3..5..6 w1", "send c ok @1 x2 w1 t3..4")
ENDS = ("end 0..4", *watched("@0..80"))
READ = "live c @1 r3 t10"


def _but(lines: tuple[str, ...], **changed: str) -> tuple[str, ...]:
    """``lines``, in each of which the words of a text (with _ for spaces) become another text."""
    for text, other in changed.items():
        lines = tuple(line.replace(text.replace("_", " "), other) for line in lines)
    return lines


PAST_OPEN: dict[str, tuple[tuple[str, ...], str]] = {
    "past an aborted one": ((*FIRST, *BEHIND, READ, *ENDS), "c"),
    "past one that is committed later": ((*_but(FIRST, abort="commit"), *BEHIND, READ, *ENDS), "c"),
    "past one whose end nobody answered": ((*_but(FIRST, ok_0="info 0"), *BEHIND, READ, *ENDS), ""),
    "past one that goes on, whose end nobody answered": (
        (*_but(FIRST, ok_0="info 0"), "send e ok @2 x1 t15..16", *BEHIND, READ, *ENDS),
        "c",
    ),
    "a record outside of any": ((*FIRST, "send c ok @1 w1 t3..4", READ, *ENDS), "c"),
    "its own record": ((*FIRST, "send c ok @1 x1 t3..4", READ, *ENDS), "c"),
    "its own record, its commit asked for": (
        ("txn 1 commit ok 0..20..21", FIRST[1], "send c ok @1 x1 t3..4", READ, *ENDS),
        "c",
    ),
    "the last one before": ((*FIRST, *BEHIND, "send d ok @2 w1 t4..5", READ, "live d @2 r3 t10", *ENDS), "c d"),
    "as its end is asked for": ((*FIRST, *BEHIND, "live c @1 r3 t20", *ENDS), ""),
    "by a read_uncommitted reader": ((*FIRST, *BEHIND, "live c @1 r4 t10", *ENDS), ""),
    "by a reader of whom nobody knows": ((*FIRST, *BEHIND, "live c @1 r5 t10", *ENDS), ""),
    "in the same poll": ((*FIRST, *BEHIND, "live c @1 r4 t10", "live c @1 r3 t30", *ENDS), ""),
    "in front of it": ((*_but(FIRST, a_ok_="a ok @1 "), *BEHIND, "live c @0 r3 t10", *ENDS), ""),
    "in another partition": ((*FIRST, "send c ok @1 p1 w1 t3..4", "live c @1 p1 r3 t10", *ENDS), ""),
    "a damaged record": ((*FIRST, *BEHIND, f"{READ} damaged", *ENDS), ""),
    "past a record without an acknowledgement": ((*_but(FIRST, a_ok_="a info "), *BEHIND, READ, *ENDS), ""),
    "past one of unknown offset": ((FIRST[0], "send a ok x1 t1..2", *BEHIND, READ, *ENDS), ""),
    "past one outside of any": ((FIRST[0], "send a ok @0 t1..2", *BEHIND, READ, *ENDS), ""),
    "past one that retention deleted": ((*FIRST, *BEHIND, READ, "end 1..4", *ENDS[1:]), ""),
    "past one of which nobody asked the end": (("txn 1 commit info 0..", FIRST[1], *BEHIND, READ, *ENDS), ""),
    "past one that went on to send": (
        ("txn 1 commit info 0..", FIRST[1], "send z ok p1 x1 t12..13", *BEHIND, READ, *ENDS),
        "c",
    ),
    "past one that went on to send until then": (
        ("txn 1 commit info 0..", FIRST[1], "send z ok p1 x1 t10..13", *BEHIND, READ, *ENDS),
        "",
    ),
    "before its timeout": ((*_but(FIRST, **{"0..20..21": "0..70..71"}), *BEHIND, "live c @1 r3 t59", *ENDS), "c"),
    "after its timeout": ((*_but(FIRST, **{"0..20..21": "0..70..71"}), *BEHIND, "live c @1 r3 t60", *ENDS), ""),
    "before a configured timeout": ((*FIRST, "send c ok @1 t3..4", "live c @1 r3 t4.9", *ENDS), "c"),
    "its producer replaced before": ((*FIRST, *BEHIND, "txn 3 commit ok 12..13..14 i1", READ, *ENDS), ""),
    "its producer replaced after": ((*FIRST, *BEHIND, "txn 3 commit ok 20..23..24 i1", READ, *ENDS), "c"),
    "an earlier one of its producer": ((*FIRST, *BEHIND, "txn 0 commit ok 0..1..1.5 i0", READ, *ENDS), "c"),
    "given up": ((*_but(FIRST, abort_ok="commit fail"), *BEHIND, READ, *ENDS), ""),
    "one of its records failed": ((*FIRST, "send b fail p1 x1 t2..3", *BEHIND, READ, *ENDS), ""),
    "one of its records was given up": ((*FIRST, "send b info p1 x1 t2..3", *BEHIND, READ, *ENDS), ""),
    "one of its records is in flight": ((*FIRST, "send b info p1 x1 t2..", *BEHIND, READ, *ENDS), "c"),
    "another leader": ((*FIRST, *BEHIND, READ, *ENDS, "saw b1 @40 leader=2 epoch=1 isr=2"), ""),
    "another epoch of its leader": ((*FIRST, *BEHIND, READ, *ENDS, "saw b1 @40 leader=1 epoch=1 isr=1"), ""),
    "no leader for a time": ((*FIRST, *BEHIND, READ, *ENDS, "saw b1 @40 leader=-1 epoch=0 isr=1"), ""),
    "another leader elsewhere": ((*FIRST, *BEHIND, READ, *ENDS, "saw b1 @40 p1 leader=2 epoch=1 isr=2"), "c"),
    "nobody reports": ((*FIRST, *BEHIND, READ, "end 0..4"), ""),
    "reports without epochs": ((*FIRST, *BEHIND, READ, "end 0..4", "saw b1 @0..80 leader=1 isr=1"), ""),
    "most fell silent": ((*FIRST, *BEHIND, READ, ENDS[0], ENDS[1], *watched("@0..9")[1:]), ""),
    "one fell silent": ((*FIRST, *BEHIND, READ, *ENDS[:3], *watched("@0..9")[2:]), "c"),
    "first reported later": ((*FIRST, *BEHIND, READ, ENDS[0], *watched("@2..80")), ""),
    "given under that epoch": ((*FIRST, *BEHIND, f"{READ} e0", *ENDS), "c"),
    "given under another": ((*FIRST, *BEHIND, f"{READ} e1", *ENDS), ""),
    "more than one before it": (
        (
            *(*FIRST, *BEHIND, "txn 3 commit ok 4..8..9 w2", "send d ok @2 x3 w2 t4..5"),
            *("send e ok @3 w3 t6..7", "live e @3 r3 t10", *ENDS),
        ),
        "e",
    ),
}


@pytest.mark.parametrize("one_task", [True, False])
def test_nothing_is_read_past_an_open_transaction(one_task: bool, spark: SparkSession, tmp_path: Path) -> None:
    listed = hand_histories([case(says, *lines) for says, (lines, _) in PAST_OPEN.items()])
    readers = {f"consumer {100 + n}": of for n, of in READERS.items()}
    short = {f"producer {one.first_worker}": {} for one in listed}
    short[f"producer {listed[[*PAST_OPEN].index('before a configured timeout')].first_worker}"] = {
        "transaction.timeout.ms": 5000
    }
    write(tmp_path, listed, isolation_level="read_committed", clients=readers | short)
    rows = transactions.early_read(History.read(tmp_path, spark, one_task=one_task)).collect()
    found = {
        says: sorted(one.name_of(row["record_id"]) for row in rows if row["topic"] == one.topic)
        for says, one in zip(PAST_OPEN, listed, strict=True)
    }
    assert found == {says: names.split() for says, (_, names) in PAST_OPEN.items()}
    [row] = [row for row in rows if row["topic"] == "case-0"]
    assert (row["offset"], row["transaction"], row["by_itself"]) == (1, 1, False)
    assert [row[name] // SECOND for name in ("sent_ns", "acknowledged_ns", "read_ns", "ending_ns")] == [3, 4, 10, 20]


#: Its producer asked for the end of another transaction before.
EARLIER = ("txn 1 commit ok 0..20..21 i1", "txn 0 commit ok -9..-5..-4 i1", FIRST[1] + " i1", *BEHIND, READ, *ENDS)


@pytest.mark.parametrize(
    ("lines", "uncleanly", "wanted"),
    [
        ((*FIRST, *BEHIND, READ, *ENDS), True, {"c"}),
        ((*FIRST, *BEHIND, READ, *ENDS, "fault f b1 2..3"), True, set()),
        ((*FIRST, *BEHIND, READ, *ENDS, "fault f b1 2..3 missed"), True, {"c"}),
        ((*FIRST, *BEHIND, READ, *ENDS, "fault f b1 21..23"), True, {"c"}),
        ((*FIRST, *BEHIND, READ, *ENDS, "fault f b1 2..3"), False, {"c"}),
        ((*FIRST, *BEHIND, READ, *ENDS, "fault f b1 2..3 kind=wipe"), False, set()),
        (EARLIER, False, {"c"}),
        ((*EARLIER, "fault f b1 -5..1"), False, set()),
        ((*EARLIER, "fault f b1 -5..1 unknown"), False, set()),
        ((*EARLIER, "fault f b1 -5..1 missed"), False, {"c"}),
        ((*EARLIER, "fault f b1 -30..-15"), False, set()),
        ((*EARLIER, "fault f b1 -30..-16"), False, {"c"}),
        ((*EARLIER, "fault f b1 -3.."), False, {"c"}),
        ((*EARLIER, "fault f b1 -4.."), False, set()),
        ((*(line.replace("-5..-4", "-5..") for line in EARLIER), "fault f b1 30..31"), False, set()),
        ((EARLIER[0], EARLIER[1].replace("i1", "i0"), *EARLIER[2:], "fault f b1 -5..1"), False, {"c"}),
        (("txn 9 commit ok 20..21..22 i1", *EARLIER[:1], *EARLIER[2:], "fault f b1 21..23"), False, {"c"}),
    ],
)
def test_a_transaction_that_a_fault_may_have_ended_is_not_known_to_be_open(
    lines: tuple[str, ...], uncleanly: bool, wanted: set[str], spark: SparkSession, tmp_path: Path
) -> None:
    hand = by_hand(*lines)
    write(tmp_path, [hand], unclean_election=uncleanly, **settings("read_committed"))
    rows = transactions.early_read(History.read(tmp_path, spark)).collect()
    assert {hand.name_of(row["record_id"]) for row in rows} == wanted


@pytest.mark.parametrize(
    ("fault", "policy", "wanted"),
    [
        ("fault f b1 5..6 kind=wipe", "delete", set()),
        ("fault f b1 5..6 kind=pause", "delete", {"b"}),
        ("fault f b1 5..6", "compact", set()),
    ],
)
def test_readers_may_skip_records_that_a_wipe_or_compaction_may_have_removed(
    fault: str, policy: str, wanted: set[str], spark: SparkSession, tmp_path: Path
) -> None:
    hand = by_hand(ABORTED, *_HIDDEN, *watched(), *passing_by(4, 0), fault)
    scenario = {"topic": {"config": {"cleanup.policy": policy}}}
    write(tmp_path, [hand], scenario=scenario, **settings("read_committed"))
    history = History.read(tmp_path, spark)
    rows = skipped(history, polls(history)).where(IS_SKIPPED).collect()
    assert {hand.name_of(row["record_id"]) for row in rows} == wanted


@pytest.mark.parametrize(("origin", "found"), [(Origin.KAFKA_TRIAL, {"aborted_read"}), (Origin.JEPSEN, set())])
def test_only_our_own_producers_ask_for_an_abort_when_a_record_failed(
    origin: Origin, found: set[str], spark: SparkSession, tmp_path: Path
) -> None:
    """An imported operation without an answer has one time for all that it did."""
    lines = ("txn 1 commit info 5..5", "send a info x1 t5..5", "place assign r3 t6", "live a @0 r3 t8", "final a @0")
    readers = {"consumer 3": {"isolation.level": "read_committed"}}
    write(tmp_path, [by_hand(*lines, "end 0..1")], origin=origin, isolation_level="read_committed", clients=readers)
    checkers = [checker for checker in TRANSACTIONS if checker.name == "aborted_read"]
    assert judge(tmp_path, spark, checkers=checkers).anomalies.keys() == found


def test_without_transactions_nothing_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, [by_hand("send a ok @0", "final a @0", "end 0..1")], **settings("read_committed"))
    history = History.read(tmp_path, spark)
    asked = [replace(checker, find=lambda *_: pytest.fail("it was asked")) for checker in TRANSACTIONS]
    assert records(history, asked)[1] == []
    assert transactions.report(history) == {}


@pytest.mark.heavy
def test_the_verdict_counts_how_transactions_ended_and_how_the_unknown_were_resolved(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [
        *("txn 1 commit ok 0..5..6", "send a ok @0 x1", "final a @0"),
        *("txn 2 commit info 0..5..6", "send b ok @1 x2", "final b @1"),
        *("txn 3 commit info 0..5..6", "send c ok @2 x3"),
        *("txn 4 commit info 0..", "txn 5 abort ok 0..5..6", "txn 6 abort info 0..5..6", "txn 7 commit fail 0..5..6"),
        *("end 0..4", "saw b1 @0 leader=1 epoch=0 isr=1,2,3"),
    ]
    without_consumers = {name: own for name, own in CLIENTS.items() if not name.startswith("consumer")}
    write(tmp_path, [by_hand(*lines)], isolation_level="read_committed", clients=without_consumers)
    verdict = judge(tmp_path, spark)
    assert verdict.verdict is Judgement.VALID, verdict.preconditions
    assert verdict.transactions == {
        "committed": 1,
        "aborted": 1,
        "failed": 1,
        "abort_unknown": 1,
        "never_ended": 1,
        "unknown": 2,
        "unknown_resolved": {"whole": 1, "absent": 1},
    }
    assert (verdict.summary.acknowledged, verdict.summary.survivors) == (1, 2)


@pytest.mark.parametrize(("verified", "stands"), [(True, Standing.VIOLATION), (False, Standing.PERMITTED)])
@pytest.mark.heavy
def test_a_transaction_that_hangs_is_permitted_where_leaders_verify_none_and_the_log_was_not_read_to_its_end(
    verified: bool, stands: Standing, spark: SparkSession, tmp_path: Path
) -> None:
    lines = ("txn 1 abort ok 0..5..6", "send a ok @1 x1 t1..2", "send b info x1 t2..5")
    lines += ("txn 2 commit ok 0..5..6 w1", "send c ok @0 x2 w1 t1..2", "final c @0", "end 0..4", "stable @4 high=7")
    write(tmp_path, [by_hand(*lines, *watched())], partition_verification=verified, **settings("read_committed"))
    verdict = judge(tmp_path, spark)
    assert {name: found.standing for name, found in verdict.anomalies.items()} == {"hanging_transaction": stands}
    unmet = {held.name: held.detail for held in verdict.preconditions if not held.met}
    assert unmet == {"final read complete": "trial-0 read to 4 of 7"}


UNCLEAN = {"unclean_election": True, "min_insync_replicas": 1, **settings("read_committed")}
#: An election took r1 of p0; r2 of p1, where nothing was elected, is gone without a reason.
TAKEN_IN_PART = (
    *("txn 1 commit info 3..6", "send r0 ok @0 p2 x1 t3..3.5", "send r1 ok @0 x1 t4..5", "send r2 ok @0 p1 x1 t4..5"),
    *("send f ok @0 w1 t13..14", "send g ok @1 p1 w1 t13..14", "send h ok @1 p2 w1 t13..14"),
    *("final r0 @0 p2 e0", "final f @0 e1", "final g @1 p1 e0", "final h @1 p2 e0", "end 0..1"),
    *("end 0..2 p1", "end 0..2 p2", "fault cut b1 3..12 kind=isolate clients=kept"),
    *(f"saw {broker} @0..3 leader=1 epoch=0 isr=1,2,3" for broker in ("b1", "b2")),
    *(f"saw {broker} @4..7 leader=1 epoch=0 isr=1" for broker in ("b1", "b2")),
    *("saw b2 @8..60 leader=2 epoch=1 isr=2", "saw b1 @14..60 leader=2 epoch=1 isr=2"),
    *(f"saw {broker} @0..60 p{p} leader=1 epoch=0 isr=1,2,3" for broker in ("b1", "b2") for p in (1, 2)),
)


@pytest.mark.parametrize(
    ("without", "stands", "rows"),
    [("", Standing.UNDECIDED, 2), ("r2", Standing.PERMITTED, 1), ("r1", Standing.UNDECIDED, 1)],
)
@pytest.mark.heavy
def test_a_transaction_stands_as_the_worst_of_its_missing_records(
    without: str, stands: Standing, rows: int, spark: SparkSession, tmp_path: Path
) -> None:
    lines = [line for line in TAKEN_IN_PART if not without or f"send {without} " not in line]
    write(tmp_path, [by_hand(*lines)], **UNCLEAN)
    verdict = judge(tmp_path, spark)
    found = verdict.anomalies["fractured"]
    assert (found.count, len(found.examples), found.standing) == (1, 1, stands)
    assert [(one.anomalies, one.standing) for one in verdict.findings] == [({"fractured": 1}, stands)]
    assert History.read(tmp_path, spark).spark.read.parquet(str(tmp_path / "anomalies" / "fractured")).count() == rows


@pytest.mark.heavy
def test_a_fractured_transaction_counts_once_however_many_records_are_missing(
    spark: SparkSession, tmp_path: Path
) -> None:
    of_the_election = ("txn 2 commit info 3..6 w2", "send s0 ok @2 p2 x2 w2 t3..4", "send s1 ok @1 x2 w2 t4..5")
    more = ("send s2 ok @2 x2 w2 t4..5", "final s0 @2 p2 e0")
    lines = [line for line in TAKEN_IN_PART if line != "end 0..2 p2"]
    write(tmp_path, [by_hand(*lines, *of_the_election, *more, "end 0..3 p2")], **UNCLEAN)
    verdict = judge(tmp_path, spark)
    assert (verdict.anomalies["fractured"].count, len(verdict.anomalies["fractured"].examples)) == (2, 2)
    assert sorted((one.standing, one.anomalies["fractured"]) for one in verdict.findings) == [
        (Standing.PERMITTED, 1),
        (Standing.UNDECIDED, 1),
    ]


#: Each condition turned round, as text of checkers/anomalies/transactions.py: tests/planted/test_mutants.py kills them.
INVERSIONS = {
    "aborted_read": ('where("not asked")', 'where("asked")'),
    "early_read": ("read_ns < ending_ns", "read_ns >= ending_ns"),
    "read_cycle": ("reader < writer", "reader > writer"),
    "fractured": ("0 < found and found < records", "found = 0"),
    "committed_lost": ("outcome = 'ok' and found = 0", "outcome != 'ok' and found = 0"),
    "hanging_transaction": ("if ends.hang", "if not ends.hang"),
}


def inverted(checker: Checker) -> Checker:
    """The checker as it would be with its condition inverted."""
    module = cycles if checker.anomaly is READ_CYCLE else transactions
    return turned_round(checker, module, *INVERSIONS[checker.anomaly.name])
