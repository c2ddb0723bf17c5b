"""Every command has help, a place in the README, and tests; and errors have codes."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.cli import codes
from harness.cli.backends import Backends
from harness.cli.main import cli
from harness.core import errors
from harness.core.errors import KafkaTrialError
from harness.core.verdict import Judgement
from tests.command import Done, Invoke
from tests.report.verdicts import verdict

HERE = Path(__file__).parent
REPO = HERE.parents[1]


def commands(group: click.Group = cli, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_tests(name: str) -> None:
    begun = f"def test_{name.replace(' ', '_')}_"
    assert any(begun in file.read_text() for file in HERE.glob("test_*.py")), f"no test is called {begun}…"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_every_option_has_help(name: str, kafka_trial: Invoke) -> None:
    command = COMMANDS[name]
    parameters = command.get_params(click.Context(command, obj=Backends()))
    options = [parameter for parameter in parameters if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []
    shown = kafka_trial(*name.split(), "--help")
    assert (shown.code, shown.err) == (0, "")
    assert all(max(option.opts, key=len) in shown.out for option in options)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme(name: str) -> None:
    assert f"kafka-trial {name}" in (REPO / "README.md").read_text()


def test_every_error_class_has_an_exit_code_that_the_readme_explains() -> None:
    # What is one of these in particular has its code.
    kinds = {k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, KafkaTrialError)}
    assert {kind for kind, _ in codes.ERRORS} == kinds & {KafkaTrialError, *KafkaTrialError.__subclasses__()}
    readme = (REPO / "README.md").read_text()
    reported = {int(code) for code in re.findall(r"^\| (\d+) +\|", readme, re.MULTILINE)}
    assert reported == {codes.MET, codes.NOT_MET, codes.UNKNOWN, *(code for _, code in codes.ERRORS)}


@pytest.mark.parametrize(
    ("judged", "expected", "code"),
    [
        (Judgement.VALID, True, 0),
        (Judgement.INVALID, True, 0),
        (Judgement.UNKNOWN, True, 0),
        (Judgement.VALID, False, 1),
        (Judgement.INVALID, False, 1),
        (Judgement.UNKNOWN, False, 2),
    ],
)
def test_a_verdict_is_an_exit_code(judged: Judgement, expected: bool, code: int) -> None:
    assert codes.of_verdict(verdict(judged, expected=expected)) == code


@pytest.mark.parametrize(
    ("some", "worst"), [([], 0), ([0, 2], 2), ([2, 1, 0], 1), ([0, 0], 0), ([1, 3], 1), ([2, 3], 3)]
)
def test_the_worst_of_some_runs_counts(some: list[int], worst: int) -> None:
    assert codes.worst(some) == worst


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["fly"], "kafka-trial: No such command 'fly'; see kafka-trial --help\n"),
        (["run"], "kafka-trial: Missing argument 'NAME|FILE'; see kafka-trial run --help\n"),
        (["check"], "kafka-trial: Missing argument 'RUN_DIR…'; see kafka-trial check --help\n"),
        (["run", "x", "--seed", "-1"], "--seed"),
        (["run", "x", "--fast"], "No such option"),
        (["check", "/no/such/run"], "'/no/such/run' does not exist"),
        (["run", "x", "--store", __file__], "is a file"),
    ],
)
def test_bad_arguments_are_reported_in_one_line(arguments: list[str], line: str, kafka_trial: Invoke) -> None:
    assert_one_line(kafka_trial(*arguments), codes.BAD_INPUT, line)


def test_no_arguments_are_answered_with_help(kafka_trial: Invoke) -> None:
    done = kafka_trial()
    assert (done.code, done.out) == (codes.BAD_INPUT, "")
    assert "Usage: kafka-trial" in done.err


def test_listing_scenarios_loads_nothing_heavy() -> None:
    script = (
        "import sys; from harness.cli.main import invoke; assert invoke(['scenarios']) == 0;"
        "print(*({'pyspark', 'docker', 'pyarrow', 'confluent_kafka', 'jinja2'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "\n")


def assert_one_line(done: Done, code: int, says: str) -> None:
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert done.err.startswith("kafka-trial: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["prune", "", "--days", "0"], ["runs", ""], ["suite", "quick", "--baseline", ""], ["runs", "--x="]]
)
def test_an_empty_argument_is_refused_and_is_not_the_current_directory(
    arguments: list[str], kafka_trial: Invoke
) -> None:
    assert_one_line(kafka_trial(*arguments), codes.BAD_INPUT, "perhaps a variable is not set")
