"""What two commits' figures, measured in pairs, say."""

import pytest

from benchmarks.compare import Pair, compared, table


def pair(a: float, b: float) -> Pair:
    return {side: {"cold": value, "cpu": value, "warm": value, "peak": value} for side, value in (("A", a), ("B", b))}


@pytest.mark.parametrize(
    ("pairs", "follows"),
    [
        ([pair(10, 11), pair(20, 23), pair(10, 12)], "slower"),
        ([pair(10, 9), pair(20, 19)], "faster"),
        # A slow minute hits both of a pair; where the pairs disagree, it is noise.
        ([pair(10, 11), pair(30, 29)], "same"),
        ([pair(10, 10)], "same"),
    ],
)
def test_it_is_slower_only_where_all_pairs_agree(pairs: list[Pair], follows: str) -> None:
    assert compared(pairs, "cold")["B is"] == follows


def test_the_table_has_a_line_for_each_size_and_figure() -> None:
    lines = table({"30000": [pair(10, 12), pair(10, 14)], "1000000": [pair(1, 1)]}).splitlines()
    assert len(lines) == 1 + 2 * 4
    assert lines[1].split() == ["30000", "cold", "s", "10.0", "13.0", "1.30", "1.20–1.40", "slower"]
