"""Every history of the corpus is judged as it was when its text was kept, and the text has all of the verdict."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.golden import rendering
from tests.golden.corpus import samples
from tests.golden.golden import KEPT, changes, file_of, kept
from tests.golden.sample import Judged, Sample

_SAMPLES = list(samples())
#: Planted histories belong to the proof; its core finds what is planted in others (tests/planted).
_MARKED = [
    pytest.param(
        sample, id=sample.name, marks=pytest.mark.proof if sample.planted else pytest.mark.long if sample.long else ()
    )
    for sample in _SAMPLES
]


@pytest.mark.parametrize("sample", _MARKED)
def test_it_is_judged_as_it_was(sample: Sample, of_corpus: Callable[[str], Judged]) -> None:
    differ = changes(kept(sample), of_corpus(sample.name).text())
    assert not differ, "\n".join(
        [*differ[:40], f"{len(differ)} lines differ: `python -m tests.golden --write` keeps them"]
    )


def test_each_history_has_one_text_and_each_text_one_history() -> None:
    assert sorted(map(file_of, _SAMPLES)) == sorted(KEPT.iterdir())


VERDICT = (
    '{"schema":1,"reasons":["one","two"],"found":{"lost":{"count":2,"rows":[{"a":1,"b":[]},{"a":2,"b":[3]}]}},"x":[]}'
)


def test_a_verdict_has_a_line_for_each_value() -> None:
    assert [*rendering.of_verdict(VERDICT)] == [
        "schema = 1",
        'reasons "one"',
        'reasons "two"',
        "found.lost.count = 2",
        "found.lost.rows: a b",
        "found.lost.rows [1,[]]",
        "found.lost.rows [2,[3]]",
        "x = []",
    ]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"schema":1', '"schema":1.0'),
        ('"one","two"', '"two","one"'),
        ('["one","two"]', '["one"]'),
        ('{"a":1,"b":[]}', '{"b":[],"a":1}'),
        ('"a":2', '"a":null'),
        ('"x":[]', '"x":{}'),
        (',"x":[]', ""),
        ("two", "zwölf"),
    ],
)
def test_whatever_differs_in_a_verdict_differs_in_its_lines(right: str, wrong: str) -> None:
    assert right in VERDICT
    assert [*rendering.of_verdict(VERDICT.replace(right, wrong))] != [*rendering.of_verdict(VERDICT)]


@pytest.mark.parametrize("text", [json.dumps({"a": 1}), '{"a":"\\u00e4"}', '{"a":1e3}', '{"a":1,"a":2}'])
def test_a_verdict_whose_bytes_the_lines_would_not_tell_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not written as compact JSON"):
        list(rendering.of_verdict(text))


def _stored(directory: Path, offsets: list[int | None], of: pa.DataType | None = None, parts: int = 1) -> list[str]:
    directory.mkdir()
    for n in range(parts):
        pq.write_table(pa.table({"offset": pa.array(offsets[n::parts], of or pa.int64())}), directory / f"{n}.parquet")
    return [*rendering.of_rows(directory, shown=2)]


def test_rows_are_sorted_and_the_digest_tells_of_those_that_are_not_shown(tmp_path: Path) -> None:
    lines = _stored(tmp_path / "1", [3, None, 2])
    assert [line.removeprefix("rows 1")[:10] for line in lines[1:]] == [": offset:i", " [null]", " [2]"]
    again = _stored(tmp_path / "2", [None, 2, 3], parts=3)
    assert [line.removeprefix("rows 2") for line in again] == [line.removeprefix("rows 1") for line in lines]
    other = _stored(tmp_path / "3", [4, None, 2])
    assert [line.removeprefix("rows 3") for line in other[1:]] == [line.removeprefix("rows 1") for line in lines[1:]]
    assert other[0].split()[2:] != lines[0].split()[2:]
    assert _stored(tmp_path / "4", [3, None, 2], pa.int32())[1] == "rows 4: offset:int32"


def test_changes_are_shown_line_by_line() -> None:
    assert changes("a\nb\nc\n", "a\nB\nc\nd\n") == ["-b", "+B", "+d"]
    assert changes("a\n", "a\n") == []
