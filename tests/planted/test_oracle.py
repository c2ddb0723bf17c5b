"""The checkers and a judge of another make agree, set by set, on random histories: all of a kind judged in one run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from checkers.catalogue import CHECKERS, TRANSACTIONS, checkers_of
from checkers.checker import Checker
from checkers.history import History
from checkers.screening import records
from harness.history.paths import ANOMALIES
from harness.history.run_file import Origin, RunFile
from tests.checkers.notation import WORKERS_OF_A_HISTORY, HandHistory, write
from tests.planted.oracle import Row, Sets, judged, judged_without_final_read

_either = st.integers(0, 1)
_small = st.integers(0, 3)
_key = st.sampled_from(["", "k1", "k2"])
_at = st.one_of(st.just(""), st.integers(0, 4).map("@{}".format))

#: Who reads with read_committed, where there are transactions; and where these poll: the workers, too.
_COMMITTED = 100
_POLLING = {_COMMITTED, *(n * WORKERS_OF_A_HISTORY + worker for n in range(600) for worker in (0, 1))}
_GIVEN_OUT = frozenset({"aborted_read", "early_read", "read_cycle"})


def _sends(transactions: tuple[str, ...] = ("",), longest: int = 3) -> st.SearchStrategy[tuple[str, ...]]:
    outcome = st.sampled_from(["ok", "ok", "ok", "info", "fail"])
    span = st.tuples(_small, st.integers(1, longest)).map(lambda t: f"t{t[0]}..{t[0] + t[1]}")
    within = st.sampled_from(transactions)
    return st.tuples(
        *(
            st.builds("send {} {} {} {} w{} {} {}".format, st.just(name), outcome, _at, span, _either, _key, within)
            for name in "abcd"
        )
    )


def _reads(*phases: str, first: int = 0) -> st.SearchStrategy[str]:
    return st.builds(
        "{} {} @{} r{} t{} {} {} {}".format,
        st.sampled_from(phases),
        st.sampled_from("aabbccddx?"),
        st.integers(first, 4),
        _either,
        st.integers(5, 9),
        st.sampled_from(["", "", "", "", "", "", "damaged", "p1"]),
        st.sampled_from(["", "", "", "", "", "", "k1", "keyless"]),
        st.sampled_from(["", "", "", "e1", "e2"]),
    )


_places = st.builds(
    "place {} r{} t{}.5 {}".format,
    st.sampled_from(["seek", "assign", "revoke", "end-of-partition"]),
    _either,
    st.integers(4, 9),
    _at,
)
_ends = st.sampled_from(["end 0..5", "end 0..5", "end 0..5", "end 0..5 read 3", "end 1..5"]).map(
    lambda end: (end, "end 0..5 p1")
)
_transactions = st.tuples(
    *(
        st.one_of(
            st.just(""),
            st.builds(
                "txn {} {} {} 0..{} {}".format,
                st.just(number),
                st.sampled_from(["commit", "commit", "commit", "abort"]),
                st.sampled_from(["ok", "ok", "info", "fail"]),
                st.sampled_from(["", "6", "6..7", "7..8", "9..9"]),
                st.just(f"w{worker}"),
            ),
        )
        for worker in (0, 1)
        for number in (0, 1)
    )
)
_stable = st.lists(st.builds("stable @{} high={} {}".format, _small, _small, st.sampled_from(["", "p1"])), max_size=2)


def _some(*lines: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.one_of(*lines), min_size=2, max_size=12)


@dataclass(frozen=True, eq=False)
class Kind:
    """Histories that are judged under one ``run``.json, ``number`` of them, and who judges them besides. What ``lacks``
    can be in none of them."""

    number: int
    parts: tuple[st.SearchStrategy[Any], ...]
    judge: Callable[[dict[str, list[Row]]], Sets]
    lacks: frozenset[str]
    run: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def lines(self) -> list[list[str]]:
        """The histories, the same each time."""
        drawn: list[list[str]] = []

        @settings(
            max_examples=self.number,
            database=None,
            derandomize=True,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.tuples(*self.parts))
        def note(parts: tuple[list[str], ...]) -> None:
            drawn.append([line for part in parts for line in part if line])

        note()
        assert len(drawn) >= self.number // 2
        return [[*lines, *_commits(Random(n))] for n, lines in enumerate(drawn)]

    @cached_property
    def histories(self) -> list[HandHistory]:
        """Their rows."""
        made = [HandHistory(f"h-{n}", n * WORKERS_OF_A_HISTORY).add(said) for n, said in enumerate(self.lines)]
        for one in made:
            for n, row in enumerate(one.rows["positions"]):
                row["at_ns"] += n  # no two at once: their order would be anybody's
        return made

    @cached_property
    def expected(self) -> list[Sets]:
        """The findings of the other judge in each history."""
        return [self.judge(history.rows) for history in self.histories]

    def asked(self, run: RunFile) -> list[Checker]:
        """The questions; those, too, that only a group is asked, though these readers are none."""
        every = [replace(c, applies=lambda _: True) if c.anomaly.name in _OF_GROUPS else c for c in checkers_of(run)]
        return [checker for checker in every if checker.anomaly.name not in self.lacks]


def _commits(random: Random) -> list[str]:
    """What readers committed besides, some of it in vain."""
    said = "place commit r{} t{}.5 @{} {}"
    return [
        said.format(random.randrange(2), random.randint(4, 9), random.randint(0, 5), random.choice(["", "", "failed"]))
        for _ in range(random.randrange(3))
    ]


def _given_out(rows: dict[str, list[Row]]) -> Sets:
    """What is found of transactions by what was given out of them alone."""
    return {anomaly: ids for anomaly, ids in judged(rows, _POLLING).items() if anomaly in _GIVEN_OUT}


_read = _reads("final", "final", "live", "live", "replica")
#: Workers, whichever transaction of theirs they poll in.
_polled = st.builds(
    "live {} @{} w{} {} t{}".format,
    st.sampled_from("aabbccdd"),
    _small,
    _either,
    st.sampled_from(["x0", "x1"]),
    st.integers(2, 9),
)
_given = _reads("live", first=-1)
_OF_GROUPS = {"missed", "two_owners"}
KINDS = {
    "single records": Kind(
        2_000,
        (_sends(), _some(_read, _read, _read, _places), _ends),
        judged,
        lacks=frozenset(checker.anomaly.name for checker in TRANSACTIONS),
    ),
    "transactions": Kind(
        1_200,
        (_sends(("x0", "x0", "x1", ""), longest=1), _transactions, _some(_read, _read, _read, _places), _stable, _ends),
        lambda rows: judged(rows, {_COMMITTED}),
        lacks=frozenset({"read_cycle"}),
        run={
            "isolation_level": "read_committed",
            "clients": {f"consumer {_COMMITTED}": {"isolation.level": "read_committed"}},
        },
    ),
    "transactions that poll": Kind(
        600,
        (_sends(("x0", "x0", "x1", "")), _transactions, _some(_polled, _polled, _polled, _read)),
        _given_out,
        lacks=frozenset(checker.anomaly.name for checker in CHECKERS) - _GIVEN_OUT,
        run={
            "isolation_level": "read_committed",
            "clients": {f"consumer {n}": {"isolation.level": "read_committed"} for n in _POLLING},
        },
    ),
    "no final read": Kind(
        800,
        (_sends(), _some(_given, _given, _given, _places)),
        judged_without_final_read,
        lacks=frozenset({"vanished", "acknowledged_elsewhere", "diverged", "epoch_fell", "two_owners"})
        | {checker.anomaly.name for checker in TRANSACTIONS},
        run={"origin": Origin.JEPSEN},
    ),
}


@pytest.mark.parametrize("one_task", [True, False], ids=["in one task", "in many tasks"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_both_find_the_same(kind: Kind, one_task: bool, spark: SparkSession, tmp_path: Path) -> None:
    # Three in four histories are judged in one task.
    chosen = {n: one for n, one in enumerate(kind.histories) if (n % 4 > 0) is one_task}
    file = write(tmp_path, chosen.values(), **kind.run)
    records(History.read(tmp_path, spark, one_task=one_task), kind.asked(file))
    found: dict[int, Sets] = {n: {} for n in chosen}
    for kept in (tmp_path / ANOMALIES).glob("*"):
        for row in pq.read_table(kept).to_pylist():
            found[int(row["topic"].removeprefix("h-"))].setdefault(kept.name, set()).add(row["record_id"])
    differ = [n for n, sets in found.items() if sets != kind.expected[n]]
    assert not differ, "\n".join(
        ["", *kind.lines[differ[0]], str(found[differ[0]]), str(kind.expected[differ[0]]), str(differ)]
    )


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_each_anomaly_comes_about(kind: Kind, tmp_path: Path) -> None:
    asked = {checker.anomaly.name for checker in kind.asked(write(tmp_path, [], **kind.run))}
    assert {anomaly for sets in kind.expected for anomaly in sets} == asked
