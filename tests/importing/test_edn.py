"""The EDN reader reads the output of Clojure, a piece at a time, and refuses other text with the number of its line."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.errors import HistoryError
from harness.importing.edn import EdnFile


def read(text: str, directory: Path) -> list[Any]:
    path = directory / "a.edn"
    path.write_text(text, newline="")
    return list(EdnFile(path))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{:a 1, :b -2}", {":a": 1, ":b": -2}),
        ("{}", {}),
        ("{1 [[0 7] [1 8]]}", {1: ((0, 7), (1, 8))}),
        ("{nil 1}", {None: 1}),
        ("{[1 2] :x}", {(1, 2): ":x"}),
        ("{{:a 1} 2}", ({":a": 1}, 2)),
        ("{:a [nil true false]}", {":a": (None, True, False)}),
        ("{:a (1 2)}", {":a": (1, 2)}),
        ("{:a #{1}}", {":a": (1,)}),
        ("{:a [1.5 -2e3 3M 4N 1/2 ##Inf +5]}", {":a": (1.5, -2000.0, 3.0, 4, "1/2", "##Inf", 5)}),
        (r'{:a "b \"c\" \\ \n é {:x"}', {":a": 'b "c" \\ \n é {:x'}),
        (r'{:a "é\t"}', {":a": "é\t"}),
        ('{:a ""}', {":a": ""}),
        (r"{:a [\a \space foo/bar -> - n1.x]}", {":a": (r"\a", r"\space", "foo/bar", "->", "-", "n1.x")}),
        ('{:a #inst "2026-01-01", :b #jepsen.history.Op{:f :send}}', {":a": "2026-01-01", ":b": {":f": ":send"}}),
        ("#jepsen.history.Op{:f :send}", {":f": ":send"}),
        ('{:a #object[foo.Bar 0x1f "x"], :b #\'foo/bar}', {":a": ("foo.Bar", "0x1f", "x"), ":b": "#'foo/bar"}),
        ('{:a 1 ; a comment } with "a quote\n}', {":a": 1}),
        ("{:a\n\n1}", {":a": 1}),
        ("{:a,,1,\t:b\r\n2}", {":a": 1, ":b": 2}),
    ],
)
def test_a_form_is_read(text: str, value: Any, tmp_path: Path) -> None:
    assert read(text, tmp_path) == [value]


def test_forms_follow_one_another(tmp_path: Path) -> None:
    assert read("{:a 1}\n{:a 2} {:a 3}\n\n; the end", tmp_path) == [{":a": 1}, {":a": 2}, {":a": 3}]
    assert read("", tmp_path) == []


@pytest.mark.parametrize("text", ["[{:a 1} {:a 2}]", "({:a 1}\n {:a 2})\n", "; said before\n[{:a 1}, {:a 2}]"])
def test_the_forms_of_one_vector_that_is_the_whole_file_are_its_forms(text: str, tmp_path: Path) -> None:
    assert read(text, tmp_path) == [{":a": 1}, {":a": 2}]


def test_every_form_knows_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.edn"
    path.write_text('{:a 1}\n{:a "two\nlines"}\n\n{:a\n 1}\nword\n{:a 1}')
    file = EdnFile(path)
    assert [file.line for _ in file] == [1, 2, 5, 7, 8]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{:a 1}\n{:a [1", ":2: the file is cut off in the middle"),
        ('{:a 1}\n{:a "b', ":2: the file is cut off in the middle of a string"),
        ('{:a 1}\n{:a "b\\"}', ":2: the file is cut off in the middle of a string"),
        ("[{:a 1}\n{:a 2}\n", ":3: the file is cut off: it ends without its ]"),
        ("{:a 1}\n}", ":2: } closes nothing"),
        ("{:a\n 1]", ":2: ] where } was awaited"),
        ("{:a 1 :b}", ":1: a map has a key without a value"),
        ("{:a #_1 2}", ":1: #_ is not read"),
    ],
)
def test_text_that_is_not_edn_is_refused_with_its_line(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"a\.edn") as raised:
        read(text, tmp_path)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.edn"
    path.write_bytes(b"\x1f\x8b\x08\x00\xff\xfe")
    with pytest.raises(HistoryError, match="not text"):
        list(EdnFile(path))
    with pytest.raises(HistoryError, match="No such file"):
        list(EdnFile(tmp_path / "none.edn"))


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64])
def test_pieces_cut_no_token_in_two(piece: int, tmp_path: Path) -> None:
    path = tmp_path / "a.edn"
    path.write_text("".join(f'{{:n {n}00, :text "a b, c; \\" d\ne" ; "{n} {{\n}} ' for n in range(100)))
    assert list(EdnFile(path, piece)) == [{":n": 100 * n, ":text": 'a b, c; " d\ne'} for n in range(100)]


def most_memory(path: Path, forms: int) -> int:
    path.write_text("[" + "{:index 1, :value [[:send 1 [2 3]]]} " * forms + "]")
    tracemalloc.start()
    try:
        assert sum(1 for _ in EdnFile(path, piece=1 << 14)) == forms
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_history_of_any_length_even_on_one_line_takes_the_same_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.edn"
    assert most_memory(path, 10_000) < 1.1 * most_memory(path, 2_000)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inside: st.lists(inside).map(tuple) | st.dictionaries(st.integers() | st.just(":k"), inside),
)


def printed(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{' '.join(map(printed, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{printed(key)} {printed(of)}' for key, of in value.items())}}}"
    if isinstance(value, str) and value != ":k":
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return {"None": "nil", "True": "true", "False": "false"}.get(str(value), str(value))


@given(values=st.lists(st.dictionaries(st.just(":k"), _VALUES)))
def test_printed_values_are_read_back(values: list[Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert read("\n".join(map(printed, values)), tmp_path_factory.getbasetemp()) == values
