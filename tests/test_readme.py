"""What the README lists is what there is."""

from pathlib import Path

from checkers.catalogue import CHECKERS, WITHOUT_FINAL_READ
from harness.cli import codes

README = (Path(__file__).parent.parent / "README.md").read_text()


def first_words(heading: str) -> list[str]:
    """Of each row of the table that begins with this column, the first word."""
    rows = README.partition(f"\n| {heading} |")[2].split("\n\n")[0].splitlines()[2:]
    return [row.removeprefix("|").split()[0] for row in rows]


def test_its_table_of_anomalies_is_the_catalogue() -> None:
    told = first_words("anomaly")
    assert len(told) == len(set(told))
    assert set(told) == {checker.anomaly.name for checker in (*CHECKERS, *WITHOUT_FINAL_READ)}


def test_its_table_of_exit_codes_is_that_of_the_program() -> None:
    every = {codes.MET, codes.NOT_MET, codes.UNKNOWN, *(code for _, code in codes.ERRORS)}
    assert {int(code) for code in first_words("code")} == every
