"""The situations that Jepsen's own tests of ``jepsen.tests.kafka`` are about, as histories of ours: its answer beside
ours, and where they differ why (docs/jepsen.md has the same table).
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.importing.test_judging import Case, Sets, judge_cases

pytestmark = pytest.mark.heavy

PAGE = Path(__file__).parents[2] / "docs" / "jepsen.md"

#: Processes of one situation: no two situations share any.
_PROCESSES = 10


@dataclass(frozen=True)
class Situation:
    """What happens to the keys K and L; what Jepsen calls it, as its test has it; in which values we find what; and of
    what we answer otherwise, why. ``committed``: what we find with isolation.level=read_committed, where that is other.
    """

    test: str
    says: str
    lines: tuple[str, ...]
    jepsen: str
    ours: Sets
    because: str = ""
    committed: Sets | None = None

    @property
    def name(self) -> str:
        return f"{self.test}: {self.says}"

    def apart(self, number: int) -> Case:
        lines = (line.split(" ", 1) for line in self.lines)
        return Case(self.name, tuple(f"{number * _PROCESSES + int(of)} {rest}" for of, rest in lines), self.ours)


def op(process: int, function: str, invoked: str, completed: str | None = None, kind: str = "ok") -> tuple[str, ...]:
    """An operation that completes before the next begins."""
    return f"{process} invoke {function} [{invoked}]", f"{process} {kind} {function} [{completed or invoked}]"


def send(process: int, *values: tuple[str, int, int | None], kind: str = "ok") -> tuple[str, ...]:
    """Sends of (key, value, acknowledged offset)."""
    invoked = " ".join(f"[:send {key} {value}]" for key, value, _ in values)
    reported = (f"{value}" if at is None else f"[{at} {value}]" for _, value, at in values)
    completed = " ".join(f"[:send {key} {one}]" for (key, _, _), one in zip(values, reported, strict=True))
    return op(process, "send", invoked, completed, kind)


def poll(process: int, *batches: str, kind: str = "ok", function: str = "poll") -> tuple[str, ...]:
    return op(
        process, function, " ".join("[:poll]" for _ in batches), " ".join(f"[:poll {{{b}}}]" for b in batches), kind
    )


def chosen(process: int, function: str, keys: str, kind: str = "ok") -> tuple[str, ...]:
    return op(process, function, keys, kind=kind)


def found(**values: str) -> Sets:
    return {anomaly: set(each.split()) for anomaly, each in values.items()}


FILL = send(3, *(("K", value, None) for value in (1, 2, 3, 4, 7)), kind="info")
#: Process 0 is given 1 and 2, then 4, then 7; process 1 is given 3, and 6 is acknowledged.
SKIPPING = (
    poll(0, "K [[1 1] [2 2]]"),
    poll(1, "K [[3 3]]"),
    poll(0, "K [[4 4]]"),
    send(2, ("K", 6, 6)),
    poll(0, "K [[7 7]]"),
)


def skipping(first: tuple[str, ...] = (), second: tuple[str, ...] = ()) -> tuple[str, ...]:
    return (*FILL, *SKIPPING[0], *SKIPPING[1], *first, *SKIPPING[2], *second, *SKIPPING[3], *SKIPPING[4])


SIX = send(0, *(("K", n, n) for n in range(6)))
ALL_READ = poll(4, "K [[0 0] [1 1] [2 2] [3 3] [4 4] [5 5]]")
GOING_BACK = (send(0, *(("K", n, None) for n in (1, 2, 3, 4))), poll(0, "K [[1 1] [2 2] [3 3]]"))
AGAIN = poll(0, "K [[2 2] [3 3] [4 4]]")
C_D_THEN_A_B = (send(0, ("K", 3, 3), ("K", 4, 4)), send(0, ("K", 1, 1), ("K", 2, 2)))
MIXED = (*send(0, ("K", 1, 0), ("L", 1, None), kind="info"), *send(1, ("K", 2, 0)))
ATOMIC = (*send(0, ("K", 1, None), ("L", 2, 0), kind="info"), *send(1, ("L", 3, None), kind="info"))

SITUATIONS = [
    Situation(
        "version-orders",
        "one value is read at an offset that an info send got for another value",
        (
            *(*send(2, ("K", 1, 0)), *send(0, ("K", 3, 1), ("K", 2, 3), ("K", 4, 4), kind="info")),
            *poll(1, "K [[0 1] [1 2]]"),
        ),
        ":inconsistent-offsets",
        {},
        "an operation that did not succeed proves no offset; with read_committed it is `fractured`",
        found(fractured="3"),
    ),
    Situation(
        "version-orders",
        "two sends are acknowledged at one offset",
        (*send(0, ("K", 1, 537)), *send(1, ("K", 2, 537))),
        ":inconsistent-offsets",
        found(rewritten_offset="1", unseen="1 2"),
    ),
    Situation(
        "inconsistent-offsets", "an info send gets the offset of an ok send", MIXED, "nothing", found(unseen="2")
    ),
    Situation(
        "inconsistent-offsets",
        "and another value of that info send is read",
        (*MIXED, *poll(2, "L [[5 1]]")),
        ":inconsistent-offsets",
        found(unseen="2"),
        "as above: that it was committed does not make its first offset its last",
    ),
    Situation(
        "g1a",
        "a value of a send that failed is read",
        (*send(0, ("K", 2, None), ("L", 3, None), kind="fail"), *poll(1, "K [[0 2]]")),
        ":G1a",
        found(failed_but_present="2"),
    ),
    Situation(
        "lost-write",
        "a reader skips two values and gets a third",
        (
            *(*send(0, ("K", 1, 0)), *send(0, ("K", 2, 1), ("K", 4, 3)), *send(1, ("K", 3, None), kind="info")),
            *poll(0, "K [[2 3]]"),
        ),
        ":lost-write of the two",
        found(lost="1 2", unseen="4", real_time_order="4"),
        "the fourth was acknowledged at a higher offset than the third, which was sent later",
    ),
    Situation(
        "lost-write",
        "one is overwritten",
        (*send(0, ("K", 1, 0)), *send(0, ("K", 2, 0), ("K", 3, 2)), *poll(0, "K [[0 2] [2 3]]")),
        ":lost-write, :inconsistent-offsets",
        found(lost="1", rewritten_offset="1"),
    ),
    Situation(
        "lost-write",
        "a reader skips a value of an info transaction",
        (*ATOMIC, *poll(3, "L [[1 3]]")),
        "nothing",
        {},
    ),
    Situation(
        "lost-write",
        "and gets the other value",
        (*ATOMIC, *poll(2, "K [[0 1]]"), *poll(3, "L [[1 3]]")),
        ":lost-write of the first",
        {},
        "with read_uncommitted an aborted transaction may be read in part; with read_committed it is `fractured`",
        found(fractured="2"),
    ),
    Situation(
        "poll-skip",
        "a reader skips what another reader gets, and what is acknowledged",
        skipping(),
        ":poll-skip of both",
        found(skipped="3", lost="6"),
        "what is acknowledged and nobody read is `lost`",
    ),
    Situation(
        "poll-skip",
        "having subscribed to other keys, and assigned them",
        skipping(chosen(0, "subscribe", "L"), chosen(0, "assign", "L", "info")),
        "nothing",
        found(lost="6"),
    ),
    Situation(
        "poll-skip",
        "having assigned the same keys, and more",
        skipping(chosen(0, "assign", "K L"), chosen(0, "assign", "K L")),
        ":poll-skip of both",
        found(skipped="3", lost="6"),
    ),
    Situation(
        "poll-skip",
        "having subscribed to them",
        skipping(chosen(0, "subscribe", "K L")),
        ":poll-skip of both, allowed with :subscribe",
        found(skipped="3", lost="6"),
        "a history with a :rebalance-log says when a group moved the key; without one this is undecided",
    ),
    Situation(
        "poll-skip",
        "transactions that poll are aborted, and poll the same again",
        (
            *send(0, ("K", 0, 0), ("K", 1, 1), ("K", 2, 2)),
            *poll(1, "K [[0 0]]", function="txn"),
            *poll(1, "K [[1 1] [2 2]]", function="txn", kind="fail"),
            *poll(1, "K [[1 1] [2 2]]", function="txn", kind="info"),
            *poll(1, "K [[1 1] [2 2]]", function="txn"),
        ),
        "nothing",
        {},
    ),
    Situation(
        "poll-skip",
        "or continue where those ended",
        (
            *(*SIX, *poll(1, "K [[0 0]]", function="txn"), *poll(1, "K [[1 1] [2 2]]", function="txn", kind="fail")),
            *(*poll(1, "K [[3 3] [4 4]]", function="txn", kind="fail"), *poll(1, "K [[5 5]]", function="txn")),
        ),
        ":poll-skip, twice",
        {},
        "whether to go back is the client's choice, not Kafka's promise; it had got all that it skipped",
    ),
    Situation(
        "poll-skip",
        "or skip what they never got",
        (
            *(*SIX, *ALL_READ, *poll(1, "K [[0 0]]", function="txn")),
            *(*poll(1, "K [[1 1] [2 2]]", function="txn", kind="fail"), *poll(1, "K [[4 4] [5 5]]", function="txn")),
        ),
        ":poll-skip",
        found(skipped="3"),
    ),
    Situation(
        "nonmonotonic-poll",
        "a reader goes back",
        (*GOING_BACK[0], *GOING_BACK[1], *AGAIN),
        ":nonmonotonic-poll",
        found(went_back="2 3"),
    ),
    Situation(
        "nonmonotonic-poll",
        "having assigned other keys",
        (*GOING_BACK[0], *GOING_BACK[1], *chosen(0, "assign", "L"), *AGAIN),
        "nothing",
        {},
    ),
    Situation(
        "nonmonotonic-poll",
        "having subscribed to others",
        (*GOING_BACK[0], *GOING_BACK[1], *chosen(0, "subscribe", "L"), *AGAIN),
        "nothing",
        {},
    ),
    Situation(
        "nonmonotonic-poll",
        "having assigned the same, and more",
        (*GOING_BACK[0], *GOING_BACK[1], *chosen(0, "assign", "K L"), *AGAIN),
        ":nonmonotonic-poll",
        found(went_back="2 3"),
    ),
    Situation(
        "nonmonotonic-send",
        "a process sends two, and then two that get lower offsets",
        (*C_D_THEN_A_B[0], *C_D_THEN_A_B[1]),
        ":nonmonotonic-send",
        found(reordered="3 4", real_time_order="3 4", unseen="1 2 3 4"),
    ),
    Situation(
        "nonmonotonic-send",
        "having subscribed to other keys in between",
        (*C_D_THEN_A_B[0], *chosen(0, "subscribe", "L"), *C_D_THEN_A_B[1]),
        "nothing",
        found(reordered="3 4", real_time_order="3 4", unseen="1 2 3 4"),
        "what a process reads does not change its producer",
    ),
    Situation(
        "int-poll-skip",
        "one poll, and two polls of one operation, skip what another operation gets",
        (
            *send(1, ("K", 1, None), ("K", 2, None), ("K", 4, None), kind="info"),
            *(*poll(0, "K [[1 1] [4 4]]"), *poll(5, "K [[1 1]]", "K [[4 4]]"), *poll(6, "K [[2 2]]")),
        ),
        ":int-poll-skip, twice",
        found(skipped="2"),
    ),
    Situation(
        "int-send-skip",
        "another producer's record is between two of one transaction",
        (
            *(*send(0, ("K", 1, 1), ("K", 3, None)), *send(1, ("K", 2, None), kind="info")),
            *poll(2, "K [[1 1] [2 2] [3 3]]"),
        ),
        ":int-send-skip, always allowed",
        found(real_time_order="3"),
        "no promise: transactions are interleaved in a log; but here the other was sent after all was acknowledged",
    ),
    Situation(
        "int-nonmonotonic-poll",
        "a poll steps back",
        (*send(1, ("K", 1, None), ("K", 3, None), kind="info"), *poll(0, "K [[3 3] [1 1]]")),
        ":int-nonmonotonic-poll",
        found(went_back="1"),
    ),
    Situation(
        "int-nonmonotonic-poll",
        "the second poll of an operation returns the last record of the first again",
        (*send(1, ("K", 2, None), ("K", 3, None), kind="info"), *poll(0, "K [[2 2] [3 3]]", "K [[3 3]]")),
        ":int-nonmonotonic-poll",
        found(went_back="3"),
    ),
    Situation(
        "int-nonmonotonic-send",
        "the second send of an operation gets a lower offset than its first",
        send(0, ("K", 3, 3), ("K", 1, 1)),
        ":int-nonmonotonic-send",
        found(reordered="3", unseen="1 3"),
    ),
    Situation(
        "int-nonmonotonic-send",
        "or a poll returns them in that order",
        (
            *(*send(0, ("K", 4, None), ("K", 2, None), kind="info"), *send(1, ("K", 3, None), kind="info")),
            *poll(2, "K [[2 2] [3 3] [4 4]]"),
        ),
        ":int-nonmonotonic-send",
        found(reordered="4"),
    ),
    Situation(
        "duplicate",
        "a value is read at another offset than it was acknowledged at",
        (*send(0, ("K", 1, 1)), *send(1, ("K", 2, None), kind="info"), *poll(2, "K [[2 2] [3 1]]")),
        ":duplicate",
        found(duplicated="1"),
    ),
    Situation(
        "duplicate",
        "a transaction that polls is aborted, and so is a send whose record it got",
        (
            *(*send(0, ("K", 0, 1)), *send(0, ("K", 1, 2), kind="fail")),
            *poll(1, "K [[11 0] [12 1]]", kind="fail"),
        ),
        ":duplicate of what was not aborted",
        found(duplicated="0"),
        committed=found(duplicated="0", aborted_read="1"),
    ),
    Situation(
        "unseen",
        "all is read in the end",
        (*poll(0, ""), *send(0, ("K", 1, 0), ("K", 2, 1)), *poll(0, "K [[0 1]]"), *poll(0, "K [[1 2]]")),
        "nothing",
        {},
    ),
    Situation(
        "g0",
        "the logs of two keys have two transactions in different orders",
        (
            "0 invoke send [[:send K 1] [:send L 1]]",
            "1 invoke send [[:send K 2] [:send L 2]]",
            "0 ok send [[:send K [0 1]] [:send L [1 1]]]",
            "1 ok send [[:send K [1 2]] [:send L [0 2]]]",
        ),
        ":G0, always allowed",
        found(unseen="1 2"),
        "no promise: transactions are interleaved in a log",
    ),
    Situation(
        "g1c-pure-wr",
        "two transactions get each other's records",
        (
            "0 invoke txn [[:send K 1] [:poll]]",
            "1 invoke txn [[:send L 2] [:poll]]",
            "0 ok txn [[:send K [0 1]] [:poll {L [[0 2]]}]]",
            "1 ok txn [[:send L [0 2]] [:poll {K [[0 1]]}]]",
        ),
        ":G1c",
        found(read_cycle="1"),
        "*permitted* with read_uncommitted, a *violation* with read_committed",
        committed=found(read_cycle="1"),
    ),
    Situation(
        "g1c-ww-wr",
        "one gets the other's record, and is before it in another log",
        (
            "0 invoke txn [[:send K 1] [:send L 3]]",
            "1 invoke txn [[:poll] [:send L 2]]",
            "0 ok txn [[:send K [0 1]] [:send L [2 3]]]",
            "1 ok txn [[:poll {K [[0 1]]}] [:send L [1 2]]]",
        ),
        ":G1c, allowed where writes make dependencies",
        found(unseen="2 3"),
        "no promise: transactions are interleaved in a log",
    ),
    Situation(
        "precommitted-read",
        "a transaction gets its own record",
        op(0, "txn", "[:send K 1] [:poll]", "[:send K [0 1]] [:poll {K [[0 1]]}]"),
        ":precommitted-read",
        {},
        "read_uncommitted permits it; with read_committed it is `early_read`",
        found(early_read="1"),
    ),
]


def _judged(situations: list[Situation], spark: SparkSession, directory: Path, **settings: str) -> dict[str, Sets]:
    cases = [one.apart(number) for number, one in enumerate(situations)]
    answers = judge_cases(cases, spark, directory, **settings)
    return {one.name: answer for one, answer in zip(situations, answers, strict=True)}


@pytest.fixture(scope="module")
def uncommitted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sets]:
    return _judged(SITUATIONS, spark, tmp_path_factory.mktemp("jepsen"))


@pytest.fixture(scope="module")
def committed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sets]:
    return _judged(SITUATIONS, spark, tmp_path_factory.mktemp("jepsen"), isolation_level="read_committed")


@pytest.mark.parametrize("one", SITUATIONS, ids=lambda one: one.name)
def test_our_answer(one: Situation, uncommitted: dict[str, Sets]) -> None:
    assert uncommitted[one.name] == one.ours


@pytest.mark.long
@pytest.mark.parametrize("one", SITUATIONS, ids=lambda one: one.name)
def test_our_answer_with_read_committed(one: Situation, committed: dict[str, Sets]) -> None:
    assert committed[one.name] == (one.ours if one.committed is None else one.committed)


def row(one: Situation) -> str:
    """The situation as a line of the page's table."""
    ours = ", ".join(f"`{anomaly}`" for anomaly in one.ours) or "nothing"
    return f"| {one.test} | {one.says} | {one.jepsen} | {ours} | {one.because} |"


def test_the_page_has_each_situation() -> None:
    page = PAGE.read_text()
    assert [row(one) for one in SITUATIONS if row(one) not in page] == []
