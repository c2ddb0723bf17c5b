"""Which of several brokers' words counts, on plain data; and what is kept of a broker that stops answering."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cluster.observer import Observer, Sight, prevailing
from harness.cluster.wire import Wire
from harness.core.clock import Clock
from harness.core.errors import ClusterError
from harness.core.topology import Node, Role, Topology
from harness.core.waiting import wait_for
from harness.history.journal import Journal, read_journal
from harness.history.schema import OBSERVATIONS

SECOND = 1_000_000_000


def sight(observer: str, leader: int, epoch: int | None, isr: tuple[int, ...] = (1, 2, 3), at: int = 0) -> Sight:
    return Sight(observer, at * SECOND, "trial", 0, leader, epoch, (1, 2, 3), isr)


def test_without_reports_nothing_prevails() -> None:
    assert prevailing([], 0) is None


def test_the_newest_epoch_counts_however_few_know_it() -> None:
    reported = [sight("b1", 1, 4), sight("b2", 1, 4), sight("b3", 2, 5)]
    assert prevailing(reported, 0) == reported[2]


def test_among_equal_epochs_the_majority_counts() -> None:
    reported = [sight("b1", 1, 4, isr=(1, 2, 3)), sight("b2", 1, 4, isr=(1,)), sight("b3", 1, 4, isr=(1,))]
    found = prevailing(reported, 0)
    assert found is not None
    assert found.isr == (1,)


def test_a_broker_that_went_silent_counts_only_where_no_other_tells() -> None:
    reported = [sight("b1", 1, 9, at=0), sight("b2", 2, 5, at=10)]
    assert prevailing(reported, 10 * SECOND) == reported[1]
    assert prevailing(reported[:1], 10 * SECOND) == reported[0]


def test_before_epochs_the_majority_decides() -> None:
    reported = [sight("b1", 1, None), sight("b2", 2, None), sight("b3", 2, None)]
    found = prevailing(reported, 0)
    assert found is not None
    assert found.leader == 2


B1 = Node("b1", Role.BROKER, 1, "10.0.0.1")
CONTROLLERS = tuple(Node(f"c{i}", Role.CONTROLLER, 100 + i, f"10.0.0.{100 + i}") for i in (1, 2, 3))
TOPOLOGY = Topology((B1, *CONTROLLERS), Node("clients", Role.CLIENTS, 0, "10.0.0.254"))
TOPIC = "trial"


@dataclass
class Leads:
    """What a broker leads a partition with, as it stands."""

    epoch: int = 3
    isr: tuple[int, ...] = (1,)
    high: int = 41
    elr: tuple[int, ...] = (3,)
    coordinator: int | None = 2


class FakeWire:
    """A broker that leads a partition. It answers no question of ``silent``, and errs at those of ``errs``;
    ``before`` is called with how it stands before it answers a question."""

    def __init__(self, silent: set[str], errs: set[str], before: Callable[[str, Leads], None], leads: Leads) -> None:
        self.silent = silent
        self.errs = errs
        self.before = before
        self.leads = leads

    def __enter__(self) -> "FakeWire":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def _answers(self, question: str) -> None:
        if question in self.silent:
            raise ClusterError("b1: no answer (timed out)")
        if question in self.errs:
            raise RuntimeError("a defect")
        self.before(question, self.leads)

    def metadata(self, topics: list[str]) -> Any:
        self._answers("metadata")
        partition = SimpleNamespace(
            partition_index=0,
            leader_id=1,
            leader_epoch=self.leads.epoch,
            replica_nodes=[1, 2, 3],
            isr_nodes=list(self.leads.isr),
        )
        return SimpleNamespace(topics=[SimpleNamespace(name=TOPIC, partitions=[partition])], controller_id=2)

    def offsets(
        self, led: dict[str, list[int]], *, epochs: dict[tuple[str, int], int | None]
    ) -> dict[tuple[str, int], tuple[int, int | None]]:
        self._answers("offsets")
        assert led == {TOPIC: [0]}
        return {(TOPIC, 0): (self.leads.high, self.leads.epoch)} if epochs[TOPIC, 0] == self.leads.epoch else {}

    def eligible(self, topics: list[str]) -> dict[tuple[str, int], tuple[int, frozenset[int], frozenset[int]]]:
        self._answers("eligible")
        return {(TOPIC, 0): (self.leads.epoch, frozenset(self.leads.isr), frozenset(self.leads.elr))}

    def active_controller(self) -> int | None:
        self._answers("controller")
        return 102

    def coordinator(self, transactional_id: str) -> int | None:
        self._answers("coordinator")
        return 1

    def group_coordinator(self, group: str) -> int | None:
        self._answers("group coordinator")
        return self.leads.coordinator


@pytest.fixture
def observe(tmp_path: Path) -> Callable[..., tuple[Observer, list[dict[str, Any]]]]:
    """Watch one such broker until ``enough``; what was journalled."""

    def watch(
        enough: Callable[[Observer], object],
        silent: set[str] = frozenset(),
        errs: set[str] = frozenset(),
        before: Callable[[str, Leads], None] = lambda question, leads: None,
        topology: Topology = TOPOLOGY,
        group: str | None = "group-1",
    ) -> tuple[Observer, list[dict[str, Any]]]:
        leads = Leads()

        def connect(_endpoint: str) -> Wire:
            return cast(Wire, FakeWire(silent, errs, before, leads))

        observer = Observer(topology, [TOPIC], (TOPIC, 0), Clock.start(), "id-1", group, connect)
        with Journal(tmp_path / "observations.observer.arrows", OBSERVATIONS) as journal:
            threads = [
                threading.Thread(target=observer.ask, args=(B1,)),
                threading.Thread(target=observer.write, args=(journal,)),
            ]
            for thread in threads:
                thread.start()
            try:
                wait_for(lambda: enough(observer), "enough seen", within=20)
            finally:
                observer.end()
                for thread in threads:
                    thread.join()
        table, _ = read_journal(tmp_path / "observations.observer.arrows", OBSERVATIONS)
        return observer, table.to_pylist()

    return watch


def test_all_that_a_broker_says_is_kept(observe: Callable[..., Any]) -> None:
    observer, rows = observe(reports_high(41))
    names = ("leader", "leader_epoch", "isr", "high", "high_epoch", "elr", "coordinator")
    assert [tuple(row[name] for name in names) for row in rows[:2]] == [
        (1, 3, [1], None, None, [3], None),
        (1, 3, [1], 41, 3, [3], 2),
    ]
    assert observer.view().leader == B1
    assert observer.view().controller == CONTROLLERS[1]
    assert observer.view().coordinator == B1
    assert observer.defects == []


@pytest.mark.parametrize(
    ("others", "controller"), [(CONTROLLERS, None), ((Node("z1", Role.ZOOKEEPER, 1, "10.0.0.9"),), 2)]
)
def test_with_zookeeper_the_controller_is_kept_too(
    others: tuple[Node, ...], controller: int | None, observe: Callable[..., Any]
) -> None:
    """(A KRaft broker names any broker.)"""
    _, rows = observe(reports_high(41), topology=Topology((B1, *others), TOPOLOGY.clients))
    assert {row["controller"] for row in rows} == {controller}


@pytest.mark.parametrize(
    ("silent", "high", "coordinator"),
    [("offsets", None, B1), ("eligible", None, B1), ("coordinator", 41, None), ("controller", 41, B1)],
)
def test_earlier_answers_are_kept_if_a_broker_does_not_answer_the_next_question(
    silent: str, high: int | None, coordinator: Node | None, observe: Callable[..., Any]
) -> None:
    asked = iter(range(40))
    observer, rows = observe(reports_high(41) if high else lambda observer: next(asked) == 20, silent={silent})
    assert observer.view().leader == B1
    assert observer.view().controller == (CONTROLLERS[1] if silent in {"offsets", "eligible"} else None)
    assert observer.view().coordinator == coordinator
    assert {(row["observer"], row["leader"], row["leader_epoch"]) for row in rows} == {("b1", 1, 3)}
    assert {row["high"] for row in rows} == {None, high}
    assert observer.defects == []


def test_no_coordinator_is_kept_that_a_broker_named_before_it_was_silent(observe: Callable[..., Any]) -> None:
    silent: set[str] = set()

    def falls_silent(question: str, leads: Leads) -> None:
        leads.high += question == "metadata"
        if question == "controller":
            silent.add("group coordinator")

    _, rows = observe(reports_high(44), silent=silent, before=falls_silent)
    assert [row["coordinator"] for row in rows[:3]] == [None, 2, None]


def test_without_a_group_no_coordinator_of_one_is_asked_for(observe: Callable[..., Any]) -> None:
    _, rows = observe(reports_high(41), errs={"group coordinator"}, group=None)
    assert {row["coordinator"] for row in rows} == {None}


def test_no_high_watermark_is_recorded_with_an_isr_of_before_it(observe: Callable[..., Any]) -> None:
    """What the leader alone has committed, its followers of a moment ago need not have."""

    def shrinks(question: str, leads: Leads) -> None:
        if question == "offsets":
            leads.isr, leads.high = (1,), 99
        elif leads.high == 41:
            leads.isr = (1, 2, 3)

    _, rows = observe(reports_high(99), before=shrinks)
    assert {(*row["isr"], row["high"]) for row in rows} == {(1, 2, 3, None), (1, 99)}


def test_no_high_watermark_is_recorded_for_another_epoch(observe: Callable[..., Any]) -> None:
    def deposed(question: str, leads: Leads) -> None:
        if question == "metadata":
            leads.epoch = min(leads.epoch + 1, 7)

    _, rows = observe(reports_high(41), before=deposed)
    assert {row["leader_epoch"] for row in rows if row["high"] is not None} == {7}


def test_no_eligible_leader_replica_is_recorded_with_another_isr(observe: Callable[..., Any]) -> None:
    def shrinks(question: str, leads: Leads) -> None:
        if question == "metadata":
            leads.isr = (1,) if leads.isr == (1, 2) else (1, 2)

    _, rows = observe(reports_high(41), before=shrinks)
    assert {row["elr"] for row in rows} == {None}


def reports_high(high: int) -> Callable[[Observer], bool]:
    return lambda observer: any(sight.high == high for sight in observer.sights(TOPIC, 0))


def test_a_broker_that_answers_nothing_is_nothing_heard_and_no_defect(observe: Callable[..., Any]) -> None:
    asked = iter(range(3))
    observer, rows = observe(lambda observer: next(asked) == 2, silent={"metadata"})
    assert rows == []
    assert observer.defects == []


@pytest.mark.parametrize(
    "question", ["metadata", "offsets", "eligible", "coordinator", "group coordinator", "controller"]
)
def test_a_thread_that_ends_by_an_error_is_reported(question: str, observe: Callable[..., Any]) -> None:
    observer, rows = observe(lambda observer: observer.defects, errs={question})
    [(doing, error)] = observer.defects
    assert (doing, str(error)) == ("asking b1", "a defect")
    assert bool(rows) == (question not in {"metadata", "eligible"}), "what it said before is kept"


def test_a_journal_that_takes_nothing_more_is_reported() -> None:
    class Full:
        def append_rows(self, rows: object) -> None:
            raise OSError(28, "No space left on device")

    observer = Observer(TOPOLOGY, [TOPIC], (TOPIC, 0), Clock.start())
    observer.end()
    observer.write(cast(Journal, Full()))
    [(doing, error)] = observer.defects
    assert doing == "journalling"
    assert "No space left" in str(error)
