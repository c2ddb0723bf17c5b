"""``kafka-trial import jepsen``: a run directory on stdout, or one line on stderr."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harness.cli import codes
from harness.cli.main import invoke
from harness.history.run_file import RunFile
from tests.importing.notation import polled, sent, write


def test_import_without_a_tool_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["import"]) == codes.BAD_INPUT
    assert "jepsen" in capsys.readouterr().err


@pytest.mark.heavy
def test_import_jepsen_prints_the_run_that_check_judges(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = write(tmp_path / "history.edn", *sent(1, 7, "[0 7]"), *sent(1, 8, "[1 8]"), *polled("1 [[1 8]]"))
    out = tmp_path / "run"
    assert invoke(["import", "jepsen", str(history), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert invoke(["check", "--json", str(out)]) == codes.NOT_MET
    verdict = json.loads(capsys.readouterr().out)
    assert (verdict["verdict"], verdict["anomalies"]["lost"]["count"]) == ("invalid", 1)
    assert invoke(["check", str(out)]) == codes.NOT_MET
    assert "skipped by their readers" in capsys.readouterr().out


def test_import_jepsen_makes_a_run_in_the_store_where_no_place_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    history = write(tmp_path / "history.edn", *sent(1, 7, "[0 7]"), *polled("1 [[0 7] [1 9]]"))
    assert invoke(["import", "jepsen", str(history), "--set", "acks=1"]) == 0
    said = capsys.readouterr()
    run = Path(said.out.strip())
    assert run.parts[:2] == ("store", "jepsen")
    assert RunFile.read(run).configuration.acks == "1"
    assert said.err == "kafka-trial: jepsen-1 at 1: no one sent the value 9 (line 4)\n"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ([], "history.edn:2: the file is cut off in the middle of what begins here\n"),
        (["--set", "acks"], "'acks' is not NAME=VALUE"),
        (["--set", "colour=red"], "--set colour: "),
        (["--set", "acks=7"], "--set acks: "),
    ],
)
def test_import_jepsen_reports_an_error_in_one_line(
    more: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = write(tmp_path / "history.edn", *sent(1, 7, "[0 7]"))
    history.write_text(history.read_text()[:-9])
    assert invoke(["import", "jepsen", str(history), "--out", str(tmp_path / "run"), *more]) == codes.BAD_INPUT
    said = capsys.readouterr()
    assert said.out == ""
    assert line in said.err
    assert said.err.startswith("kafka-trial: ")
    assert said.err.count("\n") == 1
