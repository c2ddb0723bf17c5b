"""Records that may have been delivered to a group again, by the extents of its assignments alone."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from checkers.anomalies.readers import delivered_again


def _extent(number: int, least: int, most: int, party: str = "0") -> dict[str, object]:
    place = {"reader": number, "incarnation": 0, "topic": "t", "partition": 0, "assignment": 1}
    return {**place, "party": party, "least": least, "most": most}


def test_it_is_the_end_of_one_stay_and_the_beginning_of_the_next() -> None:
    again = delivered_again([_extent(0, 0, 99), _extent(1, 95, 199), _extent(2, 200, 300)])
    assert [(row["reader"], row["from"], row["to"]) for row in again] == [(0, 95, 99), (1, 95, 99)]


def test_other_parties_share_nothing() -> None:
    assert delivered_again([_extent(0, 0, 9, "0"), _extent(1, 0, 9, "1")]) == []


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=8))
def test_all_that_two_share_is_in_it_once_and_nothing_that_none_has(spans: list[tuple[int, int]]) -> None:
    extents = [_extent(number, least, least + size) for number, (least, size) in enumerate(spans)]
    again = delivered_again(extents)
    found = [(row["reader"], offset) for row in again for offset in range(row["from"], row["to"] + 1)]
    delivered_to = [set(range(least, least + size + 1)) for least, size in spans]
    shared = {
        (number, offset)
        for pair in combinations(range(len(spans)), 2)
        for offset in delivered_to[pair[0]] & delivered_to[pair[1]]
        for number in pair
    }
    assert len(found) == len(set(found))
    assert shared <= set(found) <= {(number, offset) for number, own in enumerate(delivered_to) for offset in own}
