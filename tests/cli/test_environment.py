"""What keeps kafka-trial from working where it is started: one line each."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness.cli import codes
from harness.cli.environment import look_at_spark
from harness.core.errors import EnvironmentLacks
from harness.scenario.json_schema import json_schema
from harness.scenario.loading import named
from tests.cli.test_commands import assert_one_line
from tests.command import Done, Invoke

ROOT = Path(__file__).parents[2]
PROGRAM = "import sys; from harness.cli.main import main; main(sys.argv[1:])"


def program(*arguments: object, cwd: Path = ROOT, script: str = PROGRAM, **environment: str) -> Done:
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, *map(str, arguments)],
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_deleted_current_directory_is_reported(tmp_path: Path) -> None:
    script = "import os, sys; os.rmdir(os.getcwd()); " + PROGRAM
    done = program("check", "store", cwd=tmp_path, script=script)
    assert_one_line(done, codes.CANNOT_RUN, "the current directory cannot be used")


@pytest.mark.parametrize("command", [["check"], ["explain"], ["cleanup"], ["run"], ["scenarios", "show"]])
def test_a_path_that_is_too_long_is_reported(command: list[str], kafka_trial: Invoke) -> None:
    done = kafka_trial(*command, "x" * 300)
    assert (done.code, done.err.count("\n")) != (codes.CRASHED, 1)
    assert "Traceback" not in done.err


def test_another_pyspark_is_refused_by_its_place(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks, match=f"pyspark would be imported from {tmp_path}, but .*PYTHONPATH"):
        look_at_spark(imported=tmp_path)
    look_at_spark()


def test_another_pyspark_on_the_path_is_reported_before_it_is_imported(stored: Path, tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("raise SystemExit('imported')")
    done = program("check", stored, PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert_one_line(done, codes.CANNOT_RUN, "remove the former from PYTHONPATH")


def test_a_user_without_a_name_is_reported() -> None:
    with pytest.raises(EnvironmentLacks, match="user 4000000000 has no name on this machine"):
        look_at_spark(user=4_000_000_000)


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1", "POSIX"])
def test_whatever_the_locale_a_line_can_be_written(locale: str) -> None:
    done = program("check", "/no/such/→", LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.code == codes.BAD_INPUT
    assert "Traceback" not in done.err


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1", "C.UTF-8"])
@pytest.mark.heavy
def test_output_for_programs_is_the_same_in_every_locale(locale: str, tmp_path: Path) -> None:
    in_it = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert json.loads(program("schema", **in_it).out) == json_schema()
    mine = tmp_path / "mine.yaml"
    mine.write_text("claim: été → 冬\n", encoding="utf-8")
    shown = program("scenarios", "show", mine, **in_it).out
    assert yaml.safe_load(shown)["claim"] == "été → 冬"
    listed = program("scenarios", "--json", **in_it).out
    assert [json.loads(line)["name"] for line in listed.splitlines()] == list(named())


def test_terminal_control_codes_are_printed_as_escapes(kafka_trial: Invoke) -> None:
    done = kafka_trial("check", "\x1b[2J")
    assert_one_line(done, codes.BAD_INPUT, "\\x1b[2J")
