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
from harness.history.schema import TABLES
from harness.importing.jepsen import import_jepsen
from tests.importing.notation import polled, sent, write

Sets = dict[str, set[str]]


@dataclass(frozen=True)
class Case:
    """What is done to the key 0 (another, when it is run), and the values in which each anomaly is to be found."""

    says: str
    lines: tuple[str, ...]
    found: Sets

    def of_key(self, key: int) -> tuple[str, ...]:
        return tuple(line.replace("K", str(key)) for line in self.lines)


def case(says: str, *lines: tuple[str, str], **found: str) -> Case:
    flat = (line for pair in lines for line in pair)
    return Case(says, tuple(flat), {anomaly: set(values.split()) for anomaly, values in found.items()})


def send(value: int, told: str | None = None, kind: str = "ok") -> tuple[str, str]:
    return (f"0 invoke send [[:send K {value}]]", f"0 {kind} send [[:send K {told or value}]]")


def poll(pairs: str, kind: str = "ok", process: int = 1) -> tuple[str, str]:
    return polled(f"K [{pairs}]", process, kind)


ASSIGN = ("1 invoke assign [K]", "1 ok assign [K]")
NO_KEY = ("1 invoke assign []", "1 ok assign []")

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
        "it is unseen where the acknowledgement told no offset, whatever was read",
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
        "what nobody was given has no place in an order",
        *(send(1, "[1 1]"), send(2, "[0 2]"), poll("[0 2]")),
        unseen="1",
    ),
    # Quirk: values that only a poll that was not :ok brought count as unread.
    case("what a poll brought that failed was read", send(1, "[0 1]"), poll("[0 1]", kind="fail")),
    case(
        "and it proves that what stood before was passed over",
        *(send(1, "[0 1]"), send(2, "[1 2]"), poll("[1 2]", kind="fail")),
        lost="1",
    ),
]

#: What needs processes that crash or never complete: each has keys and processes of its own.
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


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(0, id="of a large history", marks=[pytest.mark.proof, pytest.mark.core]),
        pytest.param(1 << 60, id="of a small one"),
    ],
)
def judged(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, Sets]:
    directory = tmp_path_factory.mktemp("jepsen")
    cases = [*CASES, *CRASHED]
    lines = [
        line.replace("C ", f"{100 + key} ", 1) if line.startswith("C ") else line
        for key, one in enumerate(cases)
        for line in one.of_key(key)
    ]
    run = directory / "run"
    file = import_jepsen(write(directory / "history.edn", *lines), run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("checkers.history.OF_ONE_TASK", request.param)
        judge(run, spark)
    sends = pq.read_table(table_directory(run, "sends")).to_pylist()
    values = {row["record_id"]: row["key"] for row in sends}
    found: list[Sets] = [{} for _ in cases]
    for kept in (run / ANOMALIES).glob("*"):
        for row in pq.read_table(kept).to_pylist():
            value = values.get(row["record_id"]) or next(n for n in file.notes).split("value ")[1].split()[0]
            found[row["partition"]].setdefault(kept.name, set()).add(value)
    return {one.says: sets for one, sets in zip(cases, found, strict=True)}


@pytest.mark.parametrize("one", [*CASES, *CRASHED], ids=lambda one: one.says)
def test_what_is_found(one: Case, judged: dict[str, Sets]) -> None:
    assert judged[one.says] == one.found


@pytest.mark.parametrize("checker", WITHOUT_FINAL_READ, ids=lambda checker: checker.anomaly.name)
def test_every_question_of_its_own_has_a_case_that_it_finds(checker) -> None:
    assert any(one.found.get(checker.anomaly.name) for one in CASES)


@pytest.fixture
def verdict_of(spark: SparkSession, tmp_path: Path):
    def write_and_judge(*lines: str, **settings: str) -> Verdict:
        import_jepsen(write(tmp_path / "history.edn", *lines), tmp_path / "run", settings)
        return judge(tmp_path / "run", spark)

    return write_and_judge


def test_a_history_that_was_read_whole_is_valid(verdict_of) -> None:
    verdict = verdict_of(*sent(1, 7, "[0 7]"), *polled("1 [[0 7]]"))
    assert (verdict.verdict, verdict.expected) == (Judgement.VALID, True)
    assert verdict.reasons == ["no anomaly: all 1 acknowledged writes were read"]
    assert (verdict.summary.survivors, verdict.summary.lost, verdict.summary.attempted) == (1, 0, 1)
    assert all(held.met for held in verdict.preconditions)


def test_what_is_unseen_makes_it_unknown_not_invalid(verdict_of) -> None:
    verdict = verdict_of(*sent(1, 7, "[0 7]"), *sent(1, 8, "[1 8]"), *polled("1 [[0 7]]"))
    assert (verdict.verdict, verdict.expected) == (Judgement.UNKNOWN, False)
    assert verdict.reasons[0] == (
        "unseen: 1 of 2 acknowledged writes were read by no one; permitted: "
        "no log was read to its end when all was over: those who read may not have come that far"
    )
    assert verdict.anomalies["unseen"].examples[0]["read_to"] == 0


def test_what_is_lost_makes_it_invalid_whatever_is_unseen(verdict_of) -> None:
    verdict = verdict_of(*sent(1, 7, "[0 7]"), *sent(1, 8, "[1 8]"), *sent(1, 9, "[2 9]"), *polled("1 [[1 8]]"))
    assert verdict.verdict is Judgement.INVALID
    assert {name: (a.count, a.standing) for name, a in verdict.anomalies.items()} == {
        "lost": (1, Standing.VIOLATION),
        "unseen": (1, Standing.PERMITTED),
    }
    assert verdict.reasons[0].startswith(
        "lost: 1 of 3 acknowledged writes were passed over by those who read; violation"
    )


def test_what_the_history_does_not_tell_of_the_clients_counts(verdict_of) -> None:
    verdict = verdict_of(*sent(1, 7, "[0 7]"), *polled("1 [[0 7] [1 7]]"), idempotence="false")
    assert verdict.anomalies["duplicated"].standing is Standing.PERMITTED
    assert verdict.summary.duplicated == 1


def test_nothing_acknowledged_is_unknown(verdict_of) -> None:
    verdict = verdict_of(*sent(1, 7, "7", kind="info"))
    assert verdict.verdict is Judgement.UNKNOWN
    assert verdict.reasons[0].startswith("unknown: enough acknowledged")


def test_every_table_can_be_judged(verdict_of, tmp_path: Path) -> None:
    verdict_of(*sent(1, 7, "[0 7]"), *polled("1 [[0 7]]"))
    assert {path.name for path in (tmp_path / "run" / "history").iterdir()} == set(TABLES)
