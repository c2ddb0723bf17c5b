"""What the README lists is what there is."""

import re
from pathlib import Path

from harness.cli import codes
from harness.cli.main import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def first_words(heading: str) -> list[str]:
    """Of each row of the table that begins with this column, the first word."""
    rows = README.partition(f"\n| {heading} |")[2].split("\n\n")[0].splitlines()[2:]
    return [row.removeprefix("|").split()[0] for row in rows]


def test_its_table_of_exit_codes_is_that_of_the_program() -> None:
    every = {codes.MET, codes.NOT_MET, codes.UNKNOWN, *(code for _, code in codes.ERRORS)}
    assert {int(code) for code in first_words("code")} == every


def test_it_is_read_in_five_minutes() -> None:
    assert len(README.splitlines()) <= 120


def test_every_page_that_it_names_is_there() -> None:
    pages = re.findall(r"\]\(([^)]+)\)", README)
    assert len(pages) >= 4
    assert [page for page in pages if not (ROOT / page).exists()] == []


def test_every_command_that_it_names_is_one_of_the_program() -> None:
    named = set(re.findall(r"^kafka-trial (\w+)", README, re.MULTILINE))
    assert {"run", "check", "explain"} <= named
    assert named <= set(cli.commands)
