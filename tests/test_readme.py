"""What the README and the other pages list is what there is, and their commands are commands."""

import os
import re
import shlex
import subprocess
from io import StringIO
from itertools import pairwise
from pathlib import Path
from random import Random

import click
import pytest
from rich.console import Console

from harness.cli import codes
from harness.cli.main import cli
from harness.core.verdict import Verdict
from harness.history.paths import VERDICT_FILE
from harness.history.run_file import RunFile
from harness.providers.ssh.inventory import Host, Inventory, read_inventory
from harness.report import show
from harness.scenario.loading import load
from harness.suite.model import load_suite
from harness.suite.plan import plan

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OF_DEVELOPERS = [ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", ROOT / "benchmarks/README.md"]


def first_words(heading: str) -> list[str]:
    """Of each row of the table that begins with this column, the first word."""
    rows = README.partition(f"\n| {heading} |")[2].split("\n\n")[0].splitlines()[2:]
    return [row.removeprefix("|").split()[0] for row in rows]


def test_its_table_of_exit_codes_is_that_of_the_program() -> None:
    every = {codes.MET, codes.NOT_MET, codes.UNKNOWN, *(code for _, code in codes.ERRORS)}
    assert {int(code) for code in first_words("code")} == every


def test_it_says_which_exit_code_is_the_worst() -> None:
    [order] = re.findall(r"^Of several runs the worst counts: (.*)\.$", README, re.MULTILINE)
    named = [int(code) for code in order.split(", ")]
    assert set(named) == {int(code) for code in first_words("code")} - {codes.OUTPUT_CLOSED}
    assert [codes.worst(pair) for pair in pairwise(named)] == named[:-1]


def test_it_is_read_in_five_minutes() -> None:
    assert len(README.splitlines()) <= 120


def test_every_page_that_it_names_is_there() -> None:
    pages = re.findall(r"\]\(([^)]+)\)", README)
    assert len(pages) >= 4
    assert [page for page in pages if not (ROOT / page).exists()] == []


def test_the_verdict_that_it_shows_is_the_one_that_is_printed() -> None:
    [shown] = re.findall(r"^```\n\$ kafka-trial check examples/ .*\n((?:.*\n)*?)```", README, re.MULTILINE)
    [file] = (ROOT / "examples").rglob(VERDICT_FILE)
    text = StringIO()
    verdict = Verdict.model_validate_json(file.read_text())
    show(verdict, Console(file=text, width=160), run=RunFile.read(file.parent))
    printed = " ".join(text.getvalue().split())
    parts = [" ".join(part.split()) for part in shown.split("\n…\n")]
    assert len(parts) > 1
    assert [part for part in parts if part not in printed] == []


def test_its_commands_are_found_as_it_says() -> None:
    [line] = re.findall(r"`(export PATH=[^`]+)`", README)
    version = ["bash", "-c", f"{line}; cd /; kafka-trial --version"]
    assert subprocess.run(version, cwd=ROOT, capture_output=True, text=True, check=True).stdout.startswith(
        "kafka-trial"
    )


def typed(page: Path) -> list[str]:
    """The lines of a page's blocks of code, without their comments, prompts, and where their output goes."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL)
    lines = (line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines())
    parts = (part for line in lines for part in line.partition(" #")[0].split(";"))
    return [re.sub(r"\[(.*?) ?…?\]", r"\1", part.partition(" > ")[0]).strip() for part in parts]


def named(page: Path) -> list[str]:
    """What a page has in backticks: in its sentences, and in the comments of its blocks of code."""
    return re.findall(r"(?<!`)`([^`\n]+)`", page.read_text())


def complaint(words: list[str]) -> str | None:
    """Why the program does not take a command line; None where it does."""
    command: click.Command = cli
    try:
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            _, found, words = command.resolve_command(click.Context(command), words)
            assert found is not None
            command = found
        command.parse_args(click.Context(command), words)
    except click.UsageError as exc:
        return exc.format_message()
    return None


def arguments(script: Path) -> set[str]:
    """What a script takes as its first argument, from the patterns of its ``case`` and its comparisons."""
    code = script.read_text()
    patterns = re.findall(r"^ *(\w+(?: \| \w+)*)\)", code, re.MULTILINE)
    return {word for pattern in patterns for word in pattern.split(" | ")} | set(
        re.findall(r'"\$\{1:-\}" ==? ([\w-]+)', code)
    )


def wrong_script(command: str) -> str | None:
    """What is wrong with a command line of a script: there is none, or it takes no such argument."""
    name, *given = command.split()
    script = ROOT / name
    if not os.access(script, os.X_OK):
        return f"no script {name}"
    unknown = [word for word in given[:1] if re.fullmatch(r"-*[a-z][a-z-]*", word) and word not in arguments(script)]
    return f"{name} takes no {unknown[0]}" if unknown else None


LINES = [line for page in PAGES for line in typed(page) if line.startswith("kafka-trial ")]
EVERYWHERE = [*PAGES, *OF_DEVELOPERS]
#: Commands within sentences, some without the program's name: `check --json`.
NAMED = [
    text.removeprefix("kafka-trial ")
    for page in EVERYWHERE
    for text in named(page)
    if text.startswith("kafka-trial ") or re.match(rf"({'|'.join(cli.commands)}) --", text)
]
OF_SCRIPTS = [
    found[1]
    for page in EVERYWHERE
    for line in [*typed(page), *named(page)]
    if (found := re.match(r"(?:[A-Z]+=\S+ )?(scripts/.*)", line))
]
#: What stands for a reader's own need not be there.
OWN = re.compile(r"'(DIR|RUN_DIR|OLD|NEW|mine.yaml|history.edn|[^']*<time>)' does not exist")


def test_readme_shows_the_commands_run_check_and_explain() -> None:
    assert {"run", "check", "explain"} <= {line.split()[1] for line in LINES}


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_that_is_shown_is_one_of_the_program(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    says = complaint(shlex.split(line)[1:])
    assert says is None or OWN.search(says), says


@pytest.mark.parametrize("command", sorted(set(NAMED)))
def test_every_command_in_a_sentence_is_one_of_the_program(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    says = complaint(shlex.split(command))
    # A sentence may name a command, or an option, without what comes after it.
    assert says is None or OWN.search(says) or re.match(r"Missing argument|Option '\S+' requires", says), says


@pytest.mark.parametrize("command", sorted(set(OF_SCRIPTS)))
def test_every_script_is_there_and_takes_its_argument(command: str) -> None:
    assert wrong_script(command) is None


def test_a_command_that_is_none_would_be_seen() -> None:
    assert complaint(["doctr"]) is not None
    assert complaint(["check", "examples/", "--jsn"]) is not None
    assert wrong_script("scripts/tests all") == "no script scripts/tests"
    assert wrong_script("scripts/test nightly") == "scripts/test takes no nightly"
    assert wrong_script("scripts/setup --image") == "scripts/setup takes no --image"


def test_every_module_that_a_page_runs_is_there() -> None:
    every = "\n".join(page.read_text() for page in EVERYWHERE)
    modules = set(re.findall(r"python -m ([\w.]+\w)", every))
    assert {"tests.mutants", "tests.golden"} <= modules
    paths = {name: ROOT / name.replace(".", "/") for name in modules}
    assert [n for n, at in paths.items() if not (at.with_suffix(".py").exists() or (at / "__main__.py").exists())] == []


# (The example of adding.md has a fault that is not in the catalogue yet: tests/test_adding.py plays it.)
@pytest.mark.parametrize("page", [p for p in PAGES if p.name != "adding.md"], ids=lambda page: page.name)
def test_every_scenario_suite_and_inventory_that_it_shows_loads(page: Path, tmp_path: Path) -> None:
    for number, text in enumerate(re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        if "\nhosts:\n" in text:
            assert read_inventory(file).hosts
        elif "\nruns:\n" in text:
            assert plan(load_suite([str(file)]), (), 1, Random(1))
        else:
            assert load(str(file)).name


def test_a_scenario_is_shown() -> None:
    assert "```yaml\n" in README


def test_every_key_of_an_inventory_is_explained() -> None:
    page = (ROOT / "docs/machines.md").read_text()
    shown = {key for line in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for key in re.findall(r"`(\w+)`", line)}
    shown |= set(re.findall(r"^(\w+): ", page, re.MULTILINE)) | {"hosts"}
    assert {*Host.model_fields, *Inventory.model_fields} <= shown
