"""The checkers and a judge of another make agree, set by set, on random histories: all of them judged in one run."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from checkers import asking, tables
from checkers.asking import records
from checkers.catalogue import CHECKERS, GROUPS
from checkers.tables import History
from harness.core.layout import ANOMALIES
from tests.checkers.notation import WORKERS_OF_A_HISTORY, Told, write
from tests.planted.oracle import Sets, judged

_HISTORIES = 2_000

_small = st.integers(0, 3)
_names = st.sampled_from("abcd")
_key = st.sampled_from(["", "k1", "k2"])
_at = st.one_of(st.just(""), st.integers(0, 4).map("@{}".format))


def _sent(name: str) -> st.SearchStrategy[str]:
    outcome = st.sampled_from(["ok", "ok", "ok", "info", "fail"])
    span = st.tuples(_small, st.integers(1, 3)).map(lambda t: f"t{t[0]}..{t[0] + t[1]}")
    return st.builds(
        "send {} {} {} {} w{} p{} {}".format, st.just(name), outcome, _at, span, st.integers(0, 1), st.just(0), _key
    )


_reads = st.builds(
    "{} {} @{} r{} t{} {} {}".format,
    st.sampled_from(["final", "final", "live", "live", "replica"]),
    st.sampled_from("aabbccddx?"),
    st.integers(0, 4),
    st.integers(0, 1),
    st.integers(5, 9),
    st.sampled_from(["", "", "", "", "", "", "damaged", "p1"]),
    st.sampled_from(["", "", "", "", "", "", "k1", "keyless"]),
)
_places = st.builds(
    "place {} r{} t{}.5 {}".format,
    st.sampled_from(["seek", "assign", "revoke", "end-of-partition"]),
    st.integers(0, 1),
    st.integers(4, 9),
    _at,
)
_ends = st.sampled_from(["end 0..5", "end 0..5", "end 0..5", "end 0..5 read 3", "end 1..5"])
_history = st.builds(
    lambda sends, rest, end: (*sends, *rest, end, "end 0..5 p1"),
    st.tuples(*(_sent(name) for name in "abcd")),
    st.lists(st.one_of(_reads, _reads, _reads, _places), min_size=2, max_size=12),
    _ends,
)


@settings(
    max_examples=_HISTORIES,
    database=None,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(drawn=st.data())
def _draw(drawn: st.DataObject) -> None:
    _drawn.append(drawn.draw(_history))


_drawn: list[tuple[str, ...]] = []


def _commits(random: Random) -> list[str]:
    """What readers committed besides, some of it in vain."""
    said = "place commit r{} t{}.5 @{} {}"
    return [
        said.format(random.randrange(2), random.randint(4, 9), random.randint(0, 5), random.choice(["", "", "failed"]))
        for _ in range(random.randrange(3))
    ]


@pytest.fixture(scope="module")
def drawn() -> list[list[str]]:
    _drawn.clear()
    _draw()
    assert len(_drawn) >= _HISTORIES // 2
    return [[*lines, *_commits(Random(n))] for n, lines in enumerate(_drawn)]


#: Which of the histories are asked as a large one is, and which as a small one: from how many rows on one is large.
_ASKED = {"as a large one": (slice(0, _HISTORIES // 4), 0), "as a small one": (slice(_HISTORIES // 4, None), 1 << 60)}


@pytest.mark.parametrize("how", _ASKED)
def test_both_find_the_same(
    how: str, drawn: list[list[str]], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, rows = _ASKED[how]
    lines = drawn[some]
    histories = [Told(f"h-{n}", n * WORKERS_OF_A_HISTORY).tell(said) for n, said in enumerate(lines)]
    for told in histories:
        for n, row in enumerate(told.rows["positions"]):
            row["at_ns"] += n  # no two at once: their order would be anybody's
    write(tmp_path, histories)
    # These readers are no group, but what they committed is asked of them as if they were one.
    asked = [replace(checker, when=lambda _: True) if checker in GROUPS else checker for checker in CHECKERS]
    monkeypatch.setattr(asking, "_NEAR", 1)
    monkeypatch.setattr(tables, "OF_ONE_TASK", rows)
    records(History.read(tmp_path, spark), asked)
    found: list[Sets] = [{} for _ in histories]
    for kept in (tmp_path / ANOMALIES).glob("*"):
        for row in pq.read_table(kept).to_pylist():
            found[int(row["topic"].removeprefix("h-"))].setdefault(kept.name, set()).add(row["record_id"])
    expected = [judged(told.rows) for told in histories]
    differ = [n for n, sets in enumerate(found) if sets != expected[n]]
    assert not differ, "\n".join(["", *lines[differ[0]], str(found[differ[0]]), str(expected[differ[0]]), str(differ)])
