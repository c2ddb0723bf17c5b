"""Imported histories judged: Jepsen's rule for lost and unseen, and each quirk of Jepsen's checker that is not ours.

Each key is a history of its own; all of them are one run.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.catalogue import WITHOUT_FINAL_READ
from checkers.judge import judge
from harness.core.verdict import Judgement, Standing, Verdict
from harness.history.paths import ANOMALIES, table_directory
from harness.history.run_file import RunFile
from harness.history.schema import TABLES
from harness.importing.jepsen import import_jepsen
from harness.report.sentences import with_sentences
from tests.importing.notation import polled, sent, write

pytestmark = pytest.mark.heavy

Sets = dict[str, set[str]]

#: How far the second key of a case is from the first.
_OTHER = 500


@dataclass(frozen=True)
class Case:
    """What is done to the key K, and to another, L, and the values in which each anomaly is to be found."""

    says: str
    lines: tuple[str, ...]
    found: Sets

    def of_key(self, key: int) -> tuple[str, ...]:
        return tuple(line.replace("K", str(key)).replace("L", str(key + _OTHER)) for line in self.lines)


def case(says: str, *lines: tuple[str, ...], **found: str) -> Case:
    flat = (line for pair in lines for line in pair)
    return Case(says, tuple(flat), {anomaly: set(values.split()) for anomaly, values in found.items()})


def send(value: int, reported: str | None = None, kind: str = "ok") -> tuple[str, ...]:
    return (f"0 invoke send [[:send K {value}]]", f"0 {kind} send [[:send K {reported or value}]]")


def poll(pairs: str, kind: str = "ok", process: int = 1) -> tuple[str, str]:
    return polled(f"K [{pairs}]", process, kind)


ASSIGN = ("1 invoke assign [K]", "1 ok assign [K]")
FROM_START = ("1 invoke assign [K]", "1 ok assign [K], :seek-to-beginning? true")
NO_KEY = ("1 invoke assign []", "1 ok assign []")
SUBSCRIBE = ("1 invoke subscribe [K]", "1 ok subscribe [K]")
FIVE = (*(send(n, f"[{n} {n}]") for n in range(1, 6)), poll("[1 1] [2 2] [3 3] [4 4] [5 5]", process=2))


def moved(*keys: str, says: tuple[str, str]) -> tuple[str, str]:
    """An operation while a group moved these keys."""
    invoked, completed = says
    return invoked, f"{completed}, :rebalance-log [{{:type :assigned, :keys [{' '.join(keys)}]}}]"


def polls(*batches: str, kind: str = "ok", process: int = 1) -> tuple[str, str]:
    """Several polls of one operation."""
    brought = " ".join(f"[:poll {{K [{pairs}]}}]" for pairs in batches)
    asked = " ".join("[:poll]" for _ in batches)
    return f"{process} invoke poll [{asked}]", f"{process} {kind} poll [{brought}]"


def txn(completed: str, kind: str = "ok", process: int = 1, polls: int = 0, sends: str = "") -> tuple[str, str]:
    """A transaction that sends and polls."""
    invoked = [*(f"[:send {one}]" for one in sends.split(";") if one), *["[:poll]"] * polls]
    return f"{process} invoke txn [{' '.join(invoked)}]", f"{process} {kind} txn [{completed}]"


#: An :info ends its process: it is done by another, each time.
CASES = [
    case("what was acknowledged and read is well", send(1, "[0 1]"), poll("[0 1]")),
    case(
        "an acknowledged record is lost where a later one was read",
        *(send(1, "[0 1]"), send(2, "[1 2]"), poll("[1 2]")),
        lost="1",
    ),
    case(
        "it is unseen where no later one was read",
        *(send(1, "[0 1]"), send(2, "[1 2]"), poll("[0 1]")),
        unseen="2",
    ),
    case("it is unseen where nothing of its key was read", send(1, "[0 1]"), unseen="1"),
    case(
        "it is unseen where the acknowledgement had no offset, whatever was read",
        *(send(1, "[nil 1]"), send(2, "[1 2]"), poll("[1 2]")),
        unseen="1",
    ),
    case(
        "it is unseen where what was read tells no offset",
        *(send(1, "[0 1]"), send(2), poll("[nil 2]")),
        unseen="1",
    ),
    case(
        "it is lost where another stands at its own offset",
        *(send(1, "[0 1]"), send(2, "[0 2]"), poll("[0 2]")),
        lost="1",
        rewritten_offset="1",
    ),
    case("what was read without an offset is neither", send(1), poll("[nil 1]")),
    case("a failed send that is absent is well", send(1, kind="fail"), send(2, "[1 2]"), poll("[1 2]")),
    case("a failed send that was read is there", send(1, kind="fail"), poll("[0 1]"), failed_but_present="1"),
    case("a gap in the offsets is no loss", send(1, "[0 1]"), send(2, "[5 2]"), poll("[0 1] [5 2]")),
    case("what no one sent is a phantom", send(1, "[0 1]"), poll("[0 1] [1 9]"), phantom="9"),
    case("a value read at two offsets is duplicated", send(1, "[0 1]"), poll("[0 1] [1 1]"), duplicated="1"),
    case("a value read at another offset than acknowledged is too", send(1, "[0 1]"), poll("[3 1]"), duplicated="1"),
    case("a value read twice at its offset is not", send(1, "[0 1]"), poll("[0 1]"), poll("[0 1]", process=2)),
    case("nor is one that was once read without an offset", send(1, "[0 1]"), poll("[nil 1]")),
    # What Jepsen calls :inconsistent-offsets, :poll-skip, :nonmonotonic-poll and :nonmonotonic-send.
    case(
        "two values that were read at one offset rewrote it",
        *(send(1, "[0 1]"), send(2, kind="fail"), poll("[0 1]"), poll("[0 2]")),
        rewritten_offset="1",
        failed_but_present="2",
        went_back="2",
    ),
    case(
        "a value that is acknowledged where another was read did too",
        *(send(1, "[0 1]"), send(2, "[0 2]"), send(3, "[1 3]"), poll("[0 1] [1 3]")),
        rewritten_offset="1",
        lost="2",
    ),
    case(
        "what another reader was given is skipped where a poll begins beyond it",
        *(ASSIGN, send(1, "[0 1]"), send(2, "[1 2]"), send(3, "[2 3]")),
        *(poll("[0 1]"), poll("[2 3]"), poll("[0 1] [1 2] [2 3]", process=2)),
        skipped="2",
    ),
    case(
        "not where the reader was assigned anew in between",
        *(ASSIGN, send(1, "[0 1]"), send(2, "[1 2]"), send(3, "[2 3]")),
        *(poll("[0 1]"), NO_KEY, ASSIGN, poll("[2 3]"), poll("[0 1] [1 2] [2 3]", process=2)),
    ),
    case(
        "nor where it was given without an offset",
        *(ASSIGN, send(1, "[0 1]"), send(2, "[1 2]"), send(3, "[2 3]")),
        *(poll("[0 1] [nil 2]"), poll("[2 3]"), poll("[0 1] [1 2] [2 3]", process=2)),
    ),
    case(
        "a poll behind the one before it went back",
        *(ASSIGN, send(1, "[0 1]"), send(2, "[1 2]"), poll("[0 1] [1 2]"), poll("[0 1]")),
        went_back="1",
    ),
    case(
        "one after a poll that failed did not: the consumer was rolled back",
        *(ASSIGN, send(1, "[0 1]"), send(2, "[1 2]"), poll("[0 1] [1 2]", kind="fail"), poll("[0 1]")),
    ),
    case(
        "nor is anything after one that failed, in whatever poll a key comes next",
        *(ASSIGN, send(1, "[0 1]"), send(2, "[1 2]"), poll("[0 1] [1 2]", kind="fail"), polled("", process=1)),
        poll("[0 1]"),
    ),
    # Groups: a partition that moved between two polls may begin anywhere.
    case(
        "in a group a poll beyond the one before it skips what others were given",
        *(*FIVE, SUBSCRIBE, moved("K", says=poll("[1 1]")), poll("[3 3]")),
        skipped="2",
    ),
    case(
        "and one behind it went back",
        *(*FIVE, SUBSCRIBE, moved("K", says=poll("[1 1] [2 2]")), poll("[1 1]")),
        went_back="1",
    ),
    case(
        "not where the group moved the key as it polled",
        *(*FIVE, SUBSCRIBE, moved("K", says=poll("[1 1]")), moved("K", says=poll("[3 3]"))),
    ),
    case(
        "nor where it had moved it as it polled before",
        *(*FIVE, SUBSCRIBE, moved("K", says=poll("[1 1]")), moved("K", says=polled("", 1)), poll("[3 3]")),
    ),
    case(
        "nor where it had moved it as it polled once more in vain",
        *(*FIVE, SUBSCRIBE, moved("K", says=polls("[1 1]", "")), poll("[3 3]")),
    ),
    case(
        "nor between two polls of one operation",
        *(*FIVE, SUBSCRIBE, moved("K", says=polls("[4 4]", "[1 1]", "[5 5]"))),
    ),
    case(
        "but where it moved another key",
        *(*FIVE, SUBSCRIBE, moved("K", says=poll("[1 1] [2 2]")), moved("999", says=polls("[4 4]", "[1 1]"))),
        skipped="3",
        went_back="1",
    ),
    case(
        "a move is over with the next poll",
        *(*FIVE, SUBSCRIBE, moved("K", says=poll("[1 1]")), moved("K", says=poll("[3 3]"))),
        *(poll("[4 4]"), poll("[1 1]")),
        went_back="1",
    ),
    case(
        "what the group moves is not moved amid what one poll brings",
        *(*FIVE, SUBSCRIBE, moved("K", says=poll("[3 3] [1 1]"))),
        went_back="1",
    ),
    case(
        "in a group that tells of no move a skip is one, too",
        *(*FIVE, SUBSCRIBE, poll("[1 1]"), poll("[3 3]")),
        skipped="2",
    ),
    # After a poll that failed a reader goes on, or back.
    case(
        "after a poll that failed a reader goes on",
        *(ASSIGN, *FIVE, poll("[1 1]"), poll("[2 2] [3 3]", kind="fail"), poll("[4 4] [5 5]")),
    ),
    case(
        "or goes back, and may do so again",
        *(ASSIGN, *FIVE, poll("[1 1]"), poll("[2 2] [3 3]", kind="fail"), poll("[2 2] [3 3]", kind="fail")),
        poll("[2 2] [3 3] [4 4]"),
    ),
    case(
        "but skips nothing",
        *(ASSIGN, *FIVE, poll("[1 1]"), poll("[2 2] [3 3]", kind="fail"), poll("[5 5]")),
        skipped="4",
    ),
    case(
        "and once it went on it does not go back",
        *(ASSIGN, *FIVE, poll("[1 1] [2 2]", kind="fail"), poll("[3 3]"), poll("[1 1]")),
        went_back="1",
    ),
    case(
        "a poll that failed skips nothing itself",
        *(ASSIGN, *FIVE, poll("[1 1]"), poll("[4 4]", kind="fail")),
        skipped="2 3",
    ),
    case(
        "what a poll that failed tells nothing of may have been brought",
        *(ASSIGN, *FIVE, poll("[1 1]"), ("1 invoke poll [[:poll]]", "1 fail poll nil"), poll("[3 3]")),
    ),
    case(
        "it may go back to where that poll began, even if a group has moved it since",
        *(SUBSCRIBE, *FIVE, moved("K", says=polls("[4 4]", "[1 1]", kind="fail")), poll("[4 4] [5 5]")),
    ),
    case(
        "also if it failed once more before it got anything",
        *(SUBSCRIBE, *FIVE, moved("K", says=polls("[4 4]", "[1 1]", kind="fail")), poll("", kind="fail")),
        poll("[4 4] [5 5]"),
    ),
    case(
        "but to no other place",
        *(SUBSCRIBE, *FIVE, moved("K", says=polls("[3 3]", "[1 1]", kind="fail")), poll("[5 5]")),
        skipped="2 3 4",
    ),
    case(
        "a poll that failed and brought nothing leaves a reader where it sought",
        *(*FIVE, FROM_START, poll("", kind="fail"), poll("[3 3]")),
        skipped="1 2",
    ),
    case(
        "nor may it go back to where it was before it sought",
        *(*FIVE, ASSIGN, poll("[1 1] [2 2] [3 3]", kind="fail"), FROM_START, poll("[2 2]")),
        skipped="1",
    ),
    case(
        "nor does it excuse it then that an earlier poll may have brought anything",
        *(*FIVE, ASSIGN, ("1 invoke poll [[:poll]]", "1 fail poll nil"), FROM_START, poll("[2 2]")),
        skipped="1",
    ),
    case(
        "a record at an unknown place does not hide where a failed poll came to",
        *(*FIVE, send(6, "[nil 6]"), ASSIGN, poll("[1 1]"), poll("[nil 6]", kind="fail"), poll("[5 5]")),
        skipped="2 3 4",
    ),
    case(
        "it may go back there",
        *(*FIVE, send(6, "[nil 6]"), ASSIGN, poll("[3 3] [nil 6]", kind="fail"), poll("[3 3]")),
    ),
    # The order within one operation.
    case("within one poll nothing steps back", *(ASSIGN, *FIVE, poll("[3 3] [1 1]")), went_back="1"),
    case("nor is anything there twice", *(ASSIGN, *FIVE, poll("[3 3] [3 3]")), went_back="3"),
    case("nor anything skipped", *(ASSIGN, *FIVE, poll("[1 1] [4 4]")), skipped="2 3"),
    case("between polls of one operation it is the same", *(ASSIGN, *FIVE, polls("[3 3]", "[1 1]")), went_back="1"),
    case("and a place given twice", *(ASSIGN, *FIVE, polls("[2 2] [3 3]", "[3 3]")), went_back="3"),
    case("and a skip", *(ASSIGN, *FIVE, polls("[1 1]", "[4 4]")), skipped="2 3"),
    case("what goes on is well", *(ASSIGN, *FIVE, polls("[1 1]", "[2 2] [3 3]", "[4 4]"))),
    # Partitions that were never seen assigned.
    case(
        "what was polled before anything was seen assigned keeps its place as it is",
        *(*FIVE, poll("[1 1]"), ASSIGN, poll("[3 3]")),
        skipped="2",
    ),
    case(
        "not where it was left out",
        *(*FIVE, poll("[1 1]"), NO_KEY, poll("[3 3]")),
    ),
    case(
        "what one producer sent stands in another order",
        ("0 invoke txn [[:send K 1] [:send K 2]]", "0 ok txn [[:send K [1 1]] [:send K [0 2]]]"),
        poll("[0 2] [1 1]"),
        reordered="1",
    ),
    case(
        "what was acknowledged stands after what was sent then",
        *(send(1, "[1 1]"), send(2, "[0 2]"), poll("[0 2] [1 1]")),
        reordered="1",
        real_time_order="1",
    ),
    case(
        "what nobody was given, nor skipped, stands where it was acknowledged",
        *(send(1, "[1 1]"), send(2, "[0 2]"), poll("[0 2]")),
        unseen="1",
        reordered="1",
        real_time_order="1",
    ),
    case(
        "sends that went back are seen by their acknowledgements alone",
        *(send(1, "[3 1]"), send(2, "[1 2]")),
        unseen="1 2",
        reordered="1",
        real_time_order="1",
    ),
    case(
        "those that went on did not",
        *(send(1, "[1 1]"), send(2, "[3 2]")),
        unseen="1 2",
    ),
    case(
        "what was skipped is lost, and has no place in an order",
        *(send(1, "[2 1]"), send(2, "[0 2]"), send(3, "[3 3]"), poll("[0 2] [3 3]")),
        lost="1",
    ),
    case(
        "nor does an unacknowledged place count",
        *(send(1, "[3 1]", kind="fail"), send(2, "[1 2]"), poll("[1 2]")),
    ),
    case(
        "a copy after what was sent when the first was acknowledged is a copy and no more",
        *(send(1, "[0 1]"), send(2, "[1 2]"), poll("[1 2] [2 1]")),
        duplicated="1",
    ),
    case(
        "what was acknowledged nowhere stands where it was read",
        *(send(1, "[nil 1]"), send(2, "[1 2]"), poll("[1 2] [2 1]")),
        reordered="1",
        real_time_order="1",
    ),
    # Quirk: values that only a poll that was not :ok brought count as unread.
    case("what a poll brought that failed was read", send(1, "[0 1]"), poll("[0 1]", kind="fail")),
    case(
        "and it proves that what stood before was skipped",
        *(send(1, "[0 1]"), send(2, "[1 2]"), poll("[1 2]", kind="fail")),
        lost="1",
    ),
]

#: Cases with processes that crash or never complete: each has keys and processes of its own.
CRASHED = [
    Case(
        "a read value whose send never completed is well (Jepsen's checker throws)",
        ("C invoke send [[:send K 1]]", *poll("[0 1]")),
        {},
    ),
    Case(
        "an undecided send that no one read is well",
        ("C invoke send [[:send K 1]]", "C info send [[:send K 1]]", *send(2, "[1 2]"), *poll("[1 2]")),
        {},
    ),
    Case(
        "a key that has undecided sends alone and is polled last is not unseen (Jepsen's checker says so)",
        ("C invoke send [[:send K 1]]", "C info send [[:send K 1]]", *poll("[0 1]")),
        {},
    ),
    Case(
        "what a poll brought that crashed was read",
        (*send(1, "[0 1]"), "C invoke poll [[:poll]]", "C info poll [[:poll {K [[0 1]]}]]"),
        {},
    ),
]


A_OF_1 = txn("[:send K [0 1]]", process=0, sends="K 1")
#: What a transaction that is open meanwhile is given of another: both begin before either ends.
INTO_EACH_OTHER = (
    ("0 invoke txn [[:send K 1] [:poll]]", "3 invoke txn [[:send L 2] [:poll]]"),
    ("0 ok txn [[:send K [0 1]] [:poll {L [[0 2]]}]]", "3 ok txn [[:send L [0 2]] [:poll {K [[0 1]]}]]"),
)
ONE_ABORTED = (INTO_EACH_OTHER[1][0].replace("ok", "fail"), INTO_EACH_OTHER[1][1])
ABORTED = (
    txn("[:send K [0 1]] [:send L 2]", kind="fail", process=0, sends="K 1;L 2"),
    poll("[0 1]"),
)
OWN = (txn("[:send K [0 1]] [:poll {K [[0 1]]}]", process=0, sends="K 1", polls=1),)
#: A poll brings what a transaction sent; what is sent after that poll, the transaction polls before it commits.
ACROSS = (
    ("0 invoke txn [[:send K 1] [:poll]]",),
    poll("[0 1]"),
    ("3 invoke send [[:send L 2]]", "3 ok send [[:send L [0 2]]]"),
    ("0 ok txn [[:send K [0 1]] [:poll {L [[0 2]]}]]",),
)

#: Transactions, read with read_uncommitted and with read_committed.
TRANSACTIONS = [
    (case("a record of a transaction that was aborted", *ABORTED), {"aborted_read": {"1"}}),
    (
        case("of an operation that failed with a place in the log", send(1, "[0 1]", kind="fail"), poll("[0 1]")),
        {"aborted_read": {"1"}},
    ),
    (
        case(
            "of one that tells that it was aborted",
            ("0 invoke send [[:send K 1]]", "0 fail send [[:send K 1]], :error {:type :abort, :abort-ok? true}"),
            poll("[0 1]"),
        ),
        {"aborted_read": {"1"}},
    ),
    (
        case("of an operation that failed after an acknowledgement", send(1, "[nil 1]", kind="fail"), poll("[0 1]")),
        {"aborted_read": {"1"}},
    ),
    (case("of one that was committed", A_OF_1, poll("[0 1]")), {}),
    (case("of the transaction that polls", *OWN), {"early_read": {"1"}}),
    (case("of two that poll each other's", *INTO_EACH_OTHER, read_cycle="1"), {"read_cycle": {"1"}}),
    (
        case("of two, of which one was aborted", INTO_EACH_OTHER[0], ONE_ABORTED),
        {"aborted_read": {"1"}, "read_cycle": {"1"}},
    ),
    (case("of one that polled what was sent after that", *ACROSS), {"early_read": {"1"}}),
    (
        case(
            "of one that polled what was sent before that was polled",
            ("0 invoke txn [[:send K 1] [:poll]]",),
            ("3 invoke send [[:send L 2]]", "1 invoke poll [[:poll]]"),
            ("1 ok poll [[:poll {K [[0 1]]}]]", "3 ok send [[:send L [0 2]]]"),
            ("0 ok txn [[:send K [0 1]] [:poll {L [[0 2]]}]]",),
        ),
        {},
    ),
]


def judge_cases(cases: list[Case], spark: SparkSession, directory: Path, **settings: str) -> list[Sets]:
    """The anomalies of each case; all cases are one run."""
    lines = [
        line.replace("C ", f"{100 + key} ", 1) if line.startswith("C ") else line
        for key, one in enumerate(cases)
        for line in one.of_key(key)
    ]
    run = directory / "run"
    file = import_jepsen(write(directory / "history.edn", *lines), run, settings)
    judge(run, spark)
    sends = pq.read_table(table_directory(run, "sends")).to_pylist()
    values = {row["record_id"]: row["key"] for row in sends}
    found: list[Sets] = [{} for _ in cases]
    for kept in (run / ANOMALIES).glob("*"):
        for row in pq.read_table(kept).to_pylist():
            value = values.get(row["record_id"]) or next(n for n in file.notes).split("value ")[1].split()[0]
            found[row["partition"] % _OTHER].setdefault(kept.name, set()).add(value)
    return found


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sets]:
    cases = [*CASES, *CRASHED, *(one for one, _ in TRANSACTIONS)]
    found = judge_cases(cases, spark, tmp_path_factory.mktemp("jepsen"))
    return {one.says: sets for one, sets in zip(cases, found, strict=True)}


@pytest.fixture(scope="module")
def committed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sets]:
    cases = [one for one, _ in TRANSACTIONS]
    found = judge_cases(cases, spark, tmp_path_factory.mktemp("jepsen"), isolation_level="read_committed")
    return {one.says: sets for one, sets in zip(cases, found, strict=True)}


@pytest.mark.parametrize("one", [*CASES, *CRASHED, *(one for one, _ in TRANSACTIONS)], ids=lambda one: one.says)
def test_each_case_has_exactly_its_anomalies(one: Case, judged: dict[str, Sets]) -> None:
    assert judged[one.says] == one.found


@pytest.mark.long
@pytest.mark.parametrize(("one", "found"), TRANSACTIONS, ids=lambda one: getattr(one, "says", ""))
def test_each_transaction_case_has_exactly_its_anomalies_with_read_committed(
    one: Case, found: Sets, committed: dict[str, Sets]
) -> None:
    assert committed[one.says] == found


@pytest.mark.parametrize("checker", WITHOUT_FINAL_READ, ids=lambda checker: checker.anomaly.name)
def test_every_question_of_its_own_has_a_case_that_it_finds(checker) -> None:
    assert any(one.found.get(checker.anomaly.name) for one in CASES)


@pytest.fixture
def verdict_of(spark: SparkSession, tmp_path: Path):
    def write_and_judge(*lines: str, **settings: str) -> Verdict:
        import_jepsen(write(tmp_path / "history.edn", *lines), tmp_path / "run", settings)
        return with_sentences(judge(tmp_path / "run", spark), RunFile.read(tmp_path / "run"))

    return write_and_judge


def test_a_history_that_was_read_whole_is_valid(verdict_of) -> None:
    verdict = verdict_of(*sent(1, 7, "[0 7]"), *polled("1 [[0 7]]"))
    assert (verdict.verdict, verdict.expected) == (Judgement.VALID, True)
    assert verdict.reasons == ["no anomaly: all 1 acknowledged writes were read"]
    assert (verdict.summary.survivors, verdict.summary.lost, verdict.summary.attempted) == (1, 0, 1)
    assert all(held.met for held in verdict.preconditions)


def test_an_unseen_record_makes_a_run_unknown_not_invalid(verdict_of) -> None:
    verdict = verdict_of(*sent(1, 7, "[0 7]"), *sent(1, 8, "[1 8]"), *polled("1 [[0 7]]"))
    assert (verdict.verdict, verdict.expected) == (Judgement.UNKNOWN, False)
    assert verdict.reasons[0] == (
        "unseen: 1 of 2 acknowledged writes were read by no one; permitted: "
        "no log was read to its end when all was over: those who read may not have come that far"
    )
    assert verdict.anomalies["unseen"].examples[0]["read_to"] == 0


def test_a_lost_record_makes_a_run_invalid_though_others_are_unseen(verdict_of) -> None:
    verdict = verdict_of(*sent(1, 7, "[0 7]"), *sent(1, 8, "[1 8]"), *sent(1, 9, "[2 9]"), *polled("1 [[1 8]]"))
    assert verdict.verdict is Judgement.INVALID
    assert {name: (a.count, a.standing) for name, a in verdict.anomalies.items()} == {
        "lost": (1, Standing.VIOLATION),
        "unseen": (1, Standing.PERMITTED),
    }
    assert verdict.reasons[0].startswith("lost: 1 of 3 acknowledged writes were skipped by their readers; violation")


def test_client_settings_given_to_the_import_count(verdict_of) -> None:
    verdict = verdict_of(*sent(1, 7, "[0 7]"), *polled("1 [[0 7] [1 7]]"), idempotence="false")
    assert verdict.anomalies["duplicated"].standing is Standing.PERMITTED
    assert verdict.summary.duplicated == 1


def test_nothing_acknowledged_is_unknown(verdict_of) -> None:
    verdict = verdict_of(*sent(1, 7, "7", kind="info"))
    assert verdict.verdict is Judgement.UNKNOWN
    assert verdict.reasons[0].startswith("unknown: enough acknowledged")


@pytest.mark.long
def test_every_table_can_be_judged(verdict_of, tmp_path: Path) -> None:
    verdict_of(*sent(1, 7, "[0 7]"), *polled("1 [[0 7]]"))
    assert {path.name for path in (tmp_path / "run" / "history").iterdir()} == set(TABLES)


IN_GROUP = tuple(line.replace("K", "0") for pair in (*FIVE, SUBSCRIBE) for line in pair)


def of_0(*pairs: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(line.replace("K", "0") for pair in pairs for line in pair)


@pytest.mark.parametrize(
    ("polled_then", "stands"),
    [
        ((poll("[1 1]"), poll("[3 3]")), Standing.UNDECIDED),
        ((moved("K", says=poll("[1 1]")), poll("[3 3]")), Standing.VIOLATION),
        ((poll("[1 1] [3 3]"),), Standing.VIOLATION),
        ((poll("[1 1]"), poll("[2 2] [4 4]")), Standing.VIOLATION),
    ],
    ids=["no move is recorded", "moves are recorded", "within a poll", "within a later poll"],
)
@pytest.mark.long
def test_a_skip_in_a_group_that_tells_no_moves_is_undecided(
    polled_then: tuple[tuple[str, ...], ...], stands: Standing, verdict_of
) -> None:
    verdict = verdict_of(*IN_GROUP, *of_0(*polled_then))
    assert verdict.verdict is Judgement.INVALID
    assert verdict.anomalies["skipped"].standing is stands


@pytest.mark.long
def test_a_step_back_in_a_group_that_tells_no_moves_is_undecided_but_not_within_a_poll(verdict_of) -> None:
    verdict = verdict_of(*IN_GROUP, *of_0(poll("[3 3]"), poll("[1 1]")))
    assert verdict.anomalies["went_back"].standing is Standing.UNDECIDED


def test_within_a_poll_a_step_back_is_a_violation_whatever_a_group_moves(verdict_of) -> None:
    verdict = verdict_of(*IN_GROUP, *of_0(poll("[3 3] [1 1]")))
    assert verdict.anomalies["went_back"].standing is Standing.VIOLATION


@pytest.mark.parametrize(
    ("level", "stands"), [("read_uncommitted", Standing.PERMITTED), ("read_committed", Standing.VIOLATION)]
)
@pytest.mark.long
def test_a_circle_of_reads_is_permitted_where_they_were_not_of_committed_records(
    level: str, stands: Standing, verdict_of
) -> None:
    lines = (line.replace("K", "0").replace("L", "1") for pair in INTO_EACH_OTHER for line in pair)
    verdict = verdict_of(*lines, isolation_level=level)
    assert verdict.anomalies["read_cycle"].standing is stands
