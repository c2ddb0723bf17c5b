"""Silence: when a partition was written to, and the last word of any broker was more than 3 s old."""

import pyarrow as pa
import pytest

from checkers.evidence.silence import Silence, silences

SECOND = 1_000_000_000


def reports_at(*words: float, partition: int = 0) -> pa.Table:
    return pa.table(
        {
            "topic": ["t"] * len(words),
            "partition": pa.array([partition] * len(words), pa.int32()),
            "at_ns": pa.array([int(at * SECOND) for at in words], pa.int64()),
            "observer": ["b1"] * len(words),
        }
    )


def silent(observations: pa.Table, since: float, until: float) -> list[tuple[float, float]]:
    found = silences(observations, {("t", 0): (int(since * SECOND), int(until * SECOND))})
    return [(one.from_ns / SECOND, one.to_ns / SECOND) for one in found]


@pytest.mark.parametrize(
    ("words", "since", "until", "gaps"),
    [
        ((1, 2, 5, 8), 1, 9, []),
        ((8, 2, 1, 5), 1, 9, []),
        ((1, 2, 5.5, 8), 1, 9, [(5, 5.5)]),
        ((1,), 1, 9, [(4, 9)]),
        ((5,), 1, 7, [(1, 5)]),
        ((), 1, 7, [(1, 7)]),
        ((1, 20), 1, 3, []),
        ((1, 20), 19, 21, [(19, 20)]),
        ((0, 20), 20, 21, []),
        ((-2.5,), 0, 1, [(0.5, 1)]),
        ((7,), 7, 7, []),
        ((), 7, 7, []),
    ],
)
def test_silences_are_where_the_last_word_is_too_old_while_it_is_written_to(
    words: tuple[float, ...], since: float, until: float, gaps: list[tuple[float, float]]
) -> None:
    assert silent(reports_at(*words), since, until) == gaps


def test_each_partition_is_reported_for_itself() -> None:
    both = pa.concat_tables([reports_at(1, 2), reports_at(4, 7, partition=1)])
    written = {("t", partition): (1 * SECOND, 8 * SECOND) for partition in (0, 1)}
    assert silences(both, written) == [
        Silence("t", 0, 5 * SECOND, 8 * SECOND),
        Silence("t", 1, 1 * SECOND, 4 * SECOND),
    ]
    assert silences(both, {}) == []


def test_a_silence_tells_from_when_until_when() -> None:
    assert Silence("t", 0, 5 * SECOND, 9_500_000_000).when == "from 5.0 s to 9.5 s"
