"""How many offsets writes may have taken of which nobody knows that they did."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from checkers.evidence.spare_offsets import COLUMNS, spare_offsets, unacknowledged
from harness.core.guarantees import Configuration
from harness.history.schema import SENDS
from tests.checkers.notation import by_hand

ONE, OTHER = ("trial", 0), ("trial", 1)


def writes(*partitions: int | None) -> list[pa.Table]:
    return [pa.Table.from_pylist([{"topic": "trial", "partition": one}], COLUMNS) for one in partitions]


@pytest.mark.parametrize(
    ("silent", "elsewhere", "found"),
    [((), (), [0, 0]), ((0, 0, 1), (), [2, 1]), ((0,), (0, 1), [2, 1]), ((None, 1), (), [1, 2])],
    ids=["none", "nobody acknowledged them", "elsewhere, too", "of any partition"],
)
def test_a_write_that_is_not_known_takes_an_offset(
    silent: Sequence[int | None], elsewhere: Sequence[int | None], found: list[int]
) -> None:
    told = spare_offsets(writes(*silent), writes(*elsewhere), [ONE, OTHER], Configuration(version="4.3.1"))
    assert [told[ONE], told[OTHER]] == found


def test_without_idempotence_it_may_have_been_appended_more_than_once_and_what_is_known_too() -> None:
    plain = Configuration(version="4.3.1", idempotence=False)
    nothing, one = (spare_offsets(writes(*of), [], [ONE], plain)[ONE] for of in ((), (0,)))
    assert nothing >= 1000
    assert one - nothing > 1


def test_unacknowledged_is_what_has_no_answer_or_no_offset() -> None:
    told = by_hand("send a ok @5 t1..2", "send b ok t1..2", "send c info t1..2", "send d fail t1..2")
    sends = pa.Table.from_pylist(told.rows["sends"], SENDS)
    left = sends.filter(unacknowledged())["record_id"].to_pylist()
    assert left == [told.ids[name] for name in ("b", "c", "d")]
