"""``kafka-trial check``: which runs it finds, what it writes, and stored runs that cannot be judged."""

import errno
import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from shutil import copytree
from threading import Timer

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.judge import judge
from harness.cli import codes
from harness.cli.backends import Backends
from harness.cli.judging import RunToJudge, judged
from harness.core.errors import EnvironmentLacks, HistoryError
from harness.core.verdict import Judgement, Verdict
from harness.history.journal import Journal, journal_path
from harness.history.lock import judging_lock
from harness.history.run_file import RunFile, State
from harness.history.schema import FAULTS, SENDS, TABLES
from harness.history.seal import SEAL_FILE, write_sealed
from harness.history.stored_run import StoredRun
from tests.checkers.notation import by_hand
from tests.cli.conftest import judging
from tests.cli.test_commands import assert_one_line
from tests.command import Invoke
from tests.report.verdicts import verdict


def test_check_judges_a_stored_run_and_writes_beside_it(stored: Path, spark: SparkSession, kafka_trial: Invoke) -> None:
    real = Backends(judge=lambda master, conf, rows: lambda directory, results: judge(directory, spark, results))
    before = {path: path.read_bytes() for path in stored.rglob("*") if path.is_file()}
    done = kafka_trial("check", stored, backends=real)
    assert done.code == codes.NOT_MET
    assert done.out.startswith("INVALID, not as expected by-hand/1\n  lost: 1 of 2 acknowledged writes")
    kept = Verdict.model_validate(json.loads((stored / "verdict.json").read_text()))
    assert (kept.verdict, kept.summary.lost) == (Judgement.INVALID, 1)
    assert kept.judge == {name: version(name) for name in ("kafka-trial", "pyspark")}
    assert {"report.html", "junit.xml", "anomalies"} <= {path.name for path in stored.iterdir()}
    assert {path: path.read_bytes() for path in before} == before, "nothing that was recorded is written again"


def test_check_judges_a_run_on_a_read_only_store_and_writes_nothing(
    stored: Path, spark: SparkSession, kafka_trial: Invoke
) -> None:
    before = {path: path.stat().st_mtime_ns for path in stored.rglob("*")}
    real = Backends(
        judge=lambda master, conf, rows: lambda directory, results: judge(directory, spark, results),
        writable=lambda directory: False,
    )
    done = kafka_trial("check", stored, "--json", backends=real)
    assert done.code == codes.NOT_MET
    assert json.loads(done.out)["summary"]["lost"] == 1
    assert done.err == f"kafka-trial: {stored} is read-only: judged, but nothing is written\n"
    assert {path: path.stat().st_mtime_ns for path in stored.rglob("*")} == before


def test_check_finds_every_run_below_and_exits_with_the_worst(stored: Path, kafka_trial: Invoke) -> None:
    for name in ("2", "deeper/3"):
        shutil.copytree(stored, stored.parent / name)
    store = stored.parents[1]
    verdicts = [verdict(), verdict(Judgement.UNKNOWN, expected=False), verdict(Judgement.INVALID)]
    done = kafka_trial("check", store, stored, "--json", backends=judging(*verdicts))
    assert done.code == codes.UNKNOWN
    assert [json.loads(line)["verdict"] for line in done.out.splitlines()] == ["valid", "unknown", "invalid"]


@pytest.fixture
def store(stored: Path) -> Path:
    """A store of two runs, with what else may lie there."""
    shutil.copytree(stored, stored.parent / "2")
    (stored.parents[1] / "notes.txt").touch()
    (stored.parents[1] / "empty").mkdir()
    return stored.parents[1]


@pytest.mark.parametrize(
    "named",
    [
        # STORE/** and STORE/**/ as a shell with globstar expands them.
        lambda store: [store, *sorted(store.rglob("*"))],
        lambda store: [f"{store}/", *(f"{place}/" for place in sorted(store.rglob("*")) if place.is_dir())],
        lambda store: [f"{store}/**"],
        lambda store: [f"{store}/**/"],
        lambda store: [f"{store}/*"],
        lambda store: [f"{store}/by-hand/[12]", store],
    ],
)
def test_check_takes_a_glob_with_or_without_the_shell(named, store: Path, kafka_trial: Invoke) -> None:
    done = kafka_trial("check", *named(store), backends=judging())
    assert (done.code, done.err, done.out.count("VALID")) == (0, "", 2)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["{}", "{}/empty"], None),
        (["{}/by-hand/1", "{}/by-hand/1/history", "{}/notes.txt"], None),
        (["{}/by-hand/1", "{}/empty"], "{}/empty: no run here: no run.json at any depth"),
        (["{}/e*"], "{}/e*: no run here"),
        (["{}/by-hand/3*"], "'{}/by-hand/3*' does not exist"),
        (["{}/by-hand/1", "{}/by-hand/3"], "'{}/by-hand/3' does not exist"),
        (["{}/by-hand/1/history"], "{}/by-hand/1/history: no run here, but a part of one"),
        (["{}/notes.txt"], "{}/notes.txt: no run here"),
        ([""], "an argument is empty"),
    ],
)
def test_check_skips_folders_that_are_no_run_unless_there_is_no_run(
    names: list[str], says: str | None, store: Path, kafka_trial: Invoke
) -> None:
    done = kafka_trial("check", *(name.format(store) for name in names), backends=judging())
    if says is None:
        assert (done.code, done.err) == (0, "")
    else:
        assert_one_line(done, codes.BAD_INPUT, says.format(store))


@pytest.mark.parametrize("file", ["run.json/", "suite.json"])
def test_a_store_is_not_taken_for_a_run_because_of_a_stray_file(file: str, store: Path, kafka_trial: Invoke) -> None:
    if file.endswith("/"):
        (store / file).mkdir()
    else:
        copytree(store / "by-hand" / "1", store, dirs_exist_ok=True)
        (store / file).write_text('{"schema": 0}')
    done = kafka_trial("check", str(store), backends=judging())
    if file.endswith("/"):
        assert (done.code, done.err, done.out.count("VALID")) == (0, "", 2)
    else:
        assert (done.code, done.out.count("VALID"), "suite.json" in done.err) == (codes.BAD_INPUT, 0, True)


def test_check_tells_a_suite_of_another_version_and_judges_the_others(store: Path, kafka_trial: Invoke) -> None:
    for name in ("one", "two"):
        (store / f"suite-{name}-20250101T000000.000Z").mkdir()
        (store / f"suite-{name}-20250101T000000.000Z" / "suite.json").write_text('{"schema": 0}')
    suites = sorted(store.glob("suite-*"))
    for named in ([f"{store}/*"], [*map(str, suites), str(store / "by-hand")]):
        done = kafka_trial("check", *named, backends=judging())
        assert (done.code, done.out.count("VALID")) == (codes.BAD_INPUT, 2)
        assert [line.split(": ")[1] for line in done.err.splitlines()] == [f"{one}/suite.json" for one in suites]
    lines = map(json.loads, kafka_trial("check", f"{store}/*", "--json", backends=judging()).out.splitlines())
    reported = {line["directory"]: line.get("exit") for line in lines}
    assert [reported[str(one)] for one in suites] == [codes.BAD_INPUT] * 2
    assert len(reported) == 4
    assert_one_line(kafka_trial("check", str(suites[0]), backends=judging()), codes.BAD_INPUT, "not a suite file of")


def test_check_hands_settings_to_spark(stored: Path, kafka_trial: Invoke) -> None:
    asked: list[object] = []

    def court(master: str | None, conf: object, rows: object) -> object:
        asked.append((master, conf, rows))
        return lambda directory, results: verdict()

    arguments = ("--master", "local[2]", "--conf", "spark.driver.memory=1g", "--conf", "spark.x=a=b")
    assert kafka_trial("check", stored, *arguments, backends=judging(judge=court)).code == 0
    assert asked == [("local[2]", {"spark.driver.memory": "1g", "spark.x": "a=b"}, [3])]


def test_check_refuses_a_setting_without_a_value(stored: Path, kafka_trial: Invoke) -> None:
    done = kafka_trial("check", stored, "--conf", "spark.x", backends=judging())
    assert_one_line(done, codes.BAD_INPUT, "'spark.x' is not KEY=VALUE")


def test_check_refuses_a_folder_without_runs(tmp_path: Path, kafka_trial: Invoke) -> None:
    assert_one_line(kafka_trial("check", tmp_path, backends=judging()), codes.BAD_INPUT, f"{tmp_path}: no run here")


def test_check_refuses_a_run_with_a_missing_table(stored: Path, kafka_trial: Invoke) -> None:
    shutil.rmtree(stored / "history" / "sends")
    assert_one_line(kafka_trial("check", stored, backends=judging()), codes.BAD_INPUT, "history/sends")


def test_check_refuses_a_run_changed_after_its_seal(stored: Path, kafka_trial: Invoke) -> None:
    (stored / "history" / "reads" / "part.parquet").unlink()
    done = kafka_trial("check", stored, backends=judging())
    assert_one_line(done, codes.BAD_INPUT, "history/reads/part.parquet: missing: it was there when the run was sealed")


def test_check_says_that_a_run_has_no_seal_and_judges_it(stored: Path, kafka_trial: Invoke) -> None:
    (stored / SEAL_FILE).unlink()
    done = kafka_trial("check", stored, backends=judging())
    assert done.code == 0
    assert done.err == f"kafka-trial: {stored}: it has no seal: judged without knowing whether it is whole\n"


def test_check_refuses_parquet_of_another_schema(stored: Path, kafka_trial: Invoke) -> None:
    (stored / SEAL_FILE).unlink()
    pq.write_table(pa.table({"worker": [1]}), stored / "history" / "sends" / "other.parquet")
    assert_one_line(kafka_trial("check", stored, backends=judging()), codes.BAD_INPUT, "other.parquet: not the sends")


def test_check_refuses_a_file_that_is_no_parquet(stored: Path, kafka_trial: Invoke) -> None:
    (stored / SEAL_FILE).unlink()
    (stored / "history" / "reads" / "part.parquet").write_bytes(b"PAR1, so to speak")
    assert_one_line(kafka_trial("check", stored, backends=judging()), codes.BAD_INPUT, "not a whole Parquet file")


def test_check_refuses_a_run_file_of_another_version(stored: Path, kafka_trial: Invoke) -> None:
    (stored / "run.json").write_text('{"run": "x"}')
    done = kafka_trial("check", stored, backends=judging())
    assert_one_line(done, codes.BAD_INPUT, "run.json: not a run file of this version")


@pytest.mark.parametrize("state", [State.RUNNING, State.INTERRUPTED])
@pytest.mark.parametrize("begun", [True, False])
def test_check_skips_and_counts_runs_that_were_interrupted_before_anything_was_sent(
    state: State, begun: bool, store: Path, kafka_trial: Invoke
) -> None:
    run = store / "by-hand" / "2"
    shutil.rmtree(run / "history")
    (run / "seal.json").unlink()
    if begun:
        (run / "journals").mkdir()
        Journal(journal_path(run / "journals", "sends", "1"), SENDS).close()
        with Journal(journal_path(run / "journals", "observations", "observer"), TABLES["observations"]) as rows:
            rows.append_rows(by_hand("saw b1 @0 leader=1 epoch=0 isr=1,2,3").rows["observations"])
    RunFile.read(run).model_copy(update={"state": state}).write(run)
    done = kafka_trial("check", store, backends=judging())
    assert (done.code, done.out.count("VALID")) == (0, 1)
    assert done.err.splitlines() == [
        f"kafka-trial: {run}: skipped: it was interrupted before anything was sent",
        "kafka-trial: 1 of 2 runs skipped",
    ]
    skipped = {"schema": 1, "directory": str(run), "skipped": "it was interrupted before anything was sent"}
    reported = [json.loads(line) for line in kafka_trial("check", store, "--json", backends=judging()).out.splitlines()]
    assert (len(reported), skipped in reported) == (2, True)
    alone = kafka_trial("check", run, backends=judging())
    assert (alone.code, alone.out) == (codes.BAD_INPUT, "")
    assert alone.err.splitlines()[-1] == "kafka-trial: nothing was judged: there is no run that sent anything"
    alone = kafka_trial("check", run, "--json", backends=judging())
    assert (alone.code, json.loads(alone.out)) == (codes.BAD_INPUT, skipped)


@pytest.mark.parametrize(
    ("gone", "line"),
    [
        (["run.json"], "run.json"),
        (["history"], "missing: it was there when the run was sealed"),
        (["history", "seal.json"], "the run is crashed and recorded nothing"),
    ],
    ids=["its run file", "its history", "its history and its seal"],
)
def test_check_refuses_a_run_that_lost_recorded_rows(
    gone: list[str], line: str, store: Path, kafka_trial: Invoke
) -> None:
    run = store / "by-hand" / "2"
    write_sealed(run, RunFile.read(run).model_copy(update={"state": State.CRASHED}))
    for name in gone:
        (shutil.rmtree if (run / name).is_dir() else Path.unlink)(run / name)
    done = kafka_trial("check", store, backends=judging())
    assert (done.code, done.out.count("VALID")) == (codes.BAD_INPUT, 1)
    assert line in done.err


def test_check_skips_a_run_that_is_removed_after_it_was_found(store: Path, kafka_trial: Invoke) -> None:
    run = store / "by-hand" / "2"

    def judge(directory: Path, results: Path) -> Verdict:
        shutil.rmtree(run, ignore_errors=True)
        return verdict()

    done = kafka_trial("check", store, "--json", backends=judging(judge=lambda master, conf, rows: judge))
    assert done.code == 0
    assert [json.loads(line).get("skipped") for line in done.out.splitlines()] == [None, "it was removed meanwhile"]
    assert done.err == f"kafka-trial: {run}: skipped: it was removed meanwhile\n"


def test_check_waits_for_a_prune_and_leaves_nothing_in_place_of_the_run(store: Path, kafka_trial: Invoke) -> None:
    run = store / "by-hand" / "1"
    with ExitStack() as removing:
        removing.enter_context(judging_lock(run))

        def remove() -> None:
            shutil.rmtree(run)
            removing.close()

        Timer(0.2, remove).start()
        done = kafka_trial("check", store, backends=judging())
    assert (done.code, done.out.count("VALID")) == (0, 1)
    assert f"{run}: skipped: it was removed meanwhile" in done.err
    assert not run.exists()
    assert_one_line(kafka_trial("check", run, backends=judging()), codes.BAD_INPUT, "does not exist")


def test_check_does_not_skip_a_run_that_sent_something(stored: Path, kafka_trial: Invoke) -> None:
    shutil.rmtree(stored / "history")
    (stored / SEAL_FILE).unlink()
    RunFile.read(stored).model_copy(update={"state": State.CRASHED}).write(stored)
    (stored / "journals").mkdir()
    with Journal(journal_path(stored / "journals", "sends", "0"), SENDS) as rows:
        rows.append_rows(by_hand("send a ok @0").rows["sends"])
    assert kafka_trial("check", stored, backends=judging()).err == ""


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (KeyError("a defect"), codes.CRASHED, "KeyError: 'a defect'"),
        (OSError(errno.ENOSPC, "No space left on device", "/store"), codes.CANNOT_RUN, "/store: No space left"),
        (RuntimeError("SparkException\n java.io.IOException: No space left on device"), codes.CANNOT_RUN, "TMPDIR"),
        (HistoryError("history/sends: damaged"), codes.BAD_INPUT, "history/sends: damaged"),
        (EnvironmentLacks("no memory"), codes.CANNOT_RUN, "no memory"),
    ],
)
def test_check_judges_the_other_runs_where_one_fails(
    error: Exception, code: int, says: str, store: Path, kafka_trial: Invoke
) -> None:
    def judge(directory: Path, results: Path) -> Verdict:
        if directory.name == "1":
            raise error
        return verdict()

    done = kafka_trial("check", store, "--json", backends=judging(judge=lambda master, conf, rows: judge))
    assert done.code == code
    failed, other = (json.loads(line) for line in sorted(done.out.splitlines(), key=lambda line: '"error"' not in line))
    assert failed == {"schema": 1, "directory": str(store / "by-hand" / "1"), "error": failed["error"], "exit": code}
    assert failed["error"] == str(error)
    assert (other["verdict"], other["directory"]) == ("valid", str(store / "by-hand" / "2"))
    assert "directory" not in json.loads((store / "by-hand" / "2" / "verdict.json").read_text())
    assert says in done.err
    assert ("Traceback" in done.err) is (code == codes.CRASHED)


@pytest.mark.parametrize(
    "name",
    ["verdict.json", "report.html", "junit.xml", ".run.json", "run.json", "anomalies", "history/reads", "journals"],
)
@pytest.mark.parametrize("writable", [True, False])
def test_check_refuses_a_run_whose_part_is_a_link_and_writes_through_none(
    name: str, writable: bool, stored: Path, tmp_path: Path, kafka_trial: Invoke
) -> None:
    elsewhere = tmp_path / "elsewhere"
    here = stored / name
    if here.exists():
        here.rename(elsewhere)
    else:
        elsewhere.write_text("mine")
    before = elsewhere.read_bytes() if elsewhere.is_file() else sorted(elsewhere.iterdir())
    here.symlink_to(elsewhere)
    done = kafka_trial("check", stored, backends=judging(writable=lambda directory: writable))
    assert_one_line(done, codes.BAD_INPUT, f"{here}: a link")
    assert before == (elsewhere.read_bytes() if elsewhere.is_file() else sorted(elsewhere.iterdir()))


def test_check_follows_a_link_to_a_run(stored: Path, tmp_path: Path, kafka_trial: Invoke) -> None:
    (tmp_path / "latest").symlink_to(stored)
    assert kafka_trial("check", tmp_path / "latest" / ".", backends=judging()).code == 0


def test_check_waits_for_another_judgement_of_the_run(stored: Path, kafka_trial: Invoke) -> None:
    at_once = threading.Semaphore(1)

    def judge(directory: Path, results: Path) -> Verdict:
        assert at_once.acquire(blocking=False), "two judgements at once"
        (results / "anomalies" / "lost").mkdir(parents=True)
        (results / "anomalies" / "lost" / "part.parquet").touch()
        at_once.release()
        return verdict()

    one = RunToJudge(stored, stored, 0, None)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(judged, one, judge) for _ in range(20)]:
            done.result()
    assert [path.name for path in sorted((stored / "anomalies").rglob("*"))] == ["lost", "part.parquet"]
    assert not list(stored.glob(".*"))


def test_check_leaves_an_earlier_judgement_as_it_was_where_it_fails(stored: Path, kafka_trial: Invoke) -> None:
    assert kafka_trial("check", stored, backends=judging()).code == 0
    (stored / "anomalies" / "lost").mkdir(parents=True)
    before = {path: path.stat().st_mtime_ns for path in stored.rglob("*")}

    def judge(directory: Path, results: Path) -> Verdict:
        (results / "anomalies").mkdir()
        raise HistoryError("damaged")

    assert (
        kafka_trial("check", stored, backends=judging(judge=lambda master, conf, rows: judge)).code == codes.BAD_INPUT
    )
    assert {path: path.stat().st_mtime_ns for path in stored.rglob("*")} == before


def test_check_removes_leftovers_of_a_killed_check(stored: Path, kafka_trial: Invoke) -> None:
    (stored / ".beside-1" / "anomalies").mkdir(parents=True)
    assert kafka_trial("check", stored, backends=judging()).code == 0
    assert not (stored / ".beside-1").exists()


def test_check_names_the_results_it_cannot_replace(stored: Path, kafka_trial: Invoke) -> None:
    kept = stored / "anomalies" / "lost"
    kept.mkdir(parents=True)
    done = kafka_trial("check", stored, backends=judging(writable=lambda folder: folder != kept))
    assert done.code == 0
    assert done.err == (
        f"kafka-trial: {kept.parent} is not yours to replace (of user {os.getuid()}): judged, but nothing is written\n"
    )
    assert not (stored / "verdict.json").exists()


def test_check_judges_the_other_runs_where_one_cannot_be(stored: Path, kafka_trial: Invoke) -> None:
    broken = stored.parent / "0"
    shutil.copytree(stored, broken)
    shutil.rmtree(broken / "history" / "log_ends")
    done = kafka_trial("check", stored.parent, backends=judging())
    assert done.code == codes.BAD_INPUT
    assert done.out.startswith("VALID")
    assert done.err.count("\n") == 1
    assert "0/history/log_ends" in done.err


def test_check_of_several_ends_with_a_table_and_a_count(store: Path, kafka_trial: Invoke) -> None:
    for name in ("3", "4"):
        shutil.copytree(store / "by-hand" / "1", store / "by-hand" / name)
    (store / "by-hand" / "3" / "seal.json").unlink()
    RunFile.read(store / "by-hand" / "3").model_copy(update={"state": State.INTERRUPTED}).write(store / "by-hand" / "3")
    (store / "by-hand" / "4" / "run.json").write_text("{}")
    done = kafka_trial("check", store, backends=judging(verdict(), verdict(Judgement.INVALID, expected=False)))
    *_, count = done.out.splitlines()
    assert [row.split() for row in done.out.splitlines()[-5:-1]] == [
        [str(store / "by-hand" / "1"), "valid"],
        [str(store / "by-hand" / "2"), "invalid", "not", "as", "expected"],
        [str(store / "by-hand" / "3"), "none", "skipped"],
        [str(store / "by-hand" / "4"), "none", "could", "not", "be", "judged"],
    ]
    assert count == "1 of 4 runs as expected, 1 skipped, 1 could not be judged"


def test_check_tells_a_damaged_run_of_several_in_json(store: Path, kafka_trial: Invoke) -> None:
    damaged = store / "by-hand" / "2"
    shutil.rmtree(damaged / "history" / "log_ends")
    done = kafka_trial("check", store, "--json", backends=judging())
    lines = {line["directory"]: line for line in map(json.loads, done.out.splitlines())}
    assert lines.keys() == {str(store / "by-hand" / "1"), str(damaged)}
    assert lines[str(damaged)]["exit"] == done.code == codes.BAD_INPUT
    assert "history/log_ends" in lines[str(damaged)]["error"]


def test_check_tells_a_damaged_run_alone_in_json(stored: Path, kafka_trial: Invoke) -> None:
    shutil.rmtree(stored / "history" / "log_ends")
    done = kafka_trial("check", stored, "--json", backends=judging())
    reported = json.loads(done.out)
    assert (reported["directory"], reported["exit"], done.code) == (str(stored), codes.BAD_INPUT, codes.BAD_INPUT)
    assert "history/log_ends" in reported["error"]
    assert "history/log_ends" in done.err


def test_check_tells_every_run_in_json_where_spark_does_not_start(store: Path, kafka_trial: Invoke) -> None:
    def lacks(master: str | None, conf: object, rows: object) -> object:
        raise EnvironmentLacks("it needs Java 17")

    done = kafka_trial("check", store, "--json", backends=judging(judge=lacks))
    reported = [json.loads(line) for line in done.out.splitlines()]
    assert [(one["directory"], one["error"]) for one in reported] == [
        (str(store / "by-hand" / name), "it needs Java 17") for name in ("1", "2")
    ]
    assert (done.code, done.err) == (codes.CANNOT_RUN, "kafka-trial: it needs Java 17\n")


def test_check_tells_one_run_in_json_as_its_verdict_file(stored: Path, kafka_trial: Invoke) -> None:
    done = kafka_trial("check", stored, "--json", backends=judging())
    assert json.loads(done.out) == json.loads((stored / "verdict.json").read_text())


@pytest.mark.parametrize("writable", [True, False])
def test_check_judges_an_interrupted_run(writable: bool, stored: Path, kafka_trial: Invoke) -> None:
    shutil.rmtree(stored / "history")
    (stored / "seal.json").unlink()
    RunFile.read(stored).model_copy(update={"state": State.RUNNING}).write(stored)
    (stored / "journals").mkdir()
    journal = journal_path(stored / "journals", "sends", "0")
    with Journal(journal, SENDS) as rows:
        for name in ("send a ok @0", "send b ok @1"):
            rows.append_rows(by_hand(name).rows["sends"])
    journal.write_bytes(journal.read_bytes()[:-100])
    seen: list[RunFile] = []

    def look(directory: Path, results: Path) -> Verdict:
        seen.append(RunFile.read(directory))
        return verdict(Judgement.UNKNOWN, expected=False, partial=True)

    backends = judging(judge=lambda master, conf, rows: look, writable=lambda directory: writable)
    done = kafka_trial("check", stored, backends=backends)
    assert done.code == codes.UNKNOWN
    assert "UNKNOWN (of a partial history)" in done.out
    assert seen[0].partial
    assert "sends.0.arrows was cut off" in seen[0].notes[0]
    assert journal.exists() is not writable


@pytest.mark.parametrize("writable", [True, False])
def test_check_takes_a_history_that_is_whole_for_the_journals_that_are_left(
    writable: bool, stored: Path, kafka_trial: Invoke
) -> None:
    (stored / SEAL_FILE).unlink(missing_ok=True)
    (stored / "history" / ".whole").touch()
    RunFile.read(stored).model_copy(update={"state": State.RUNNING}).write(stored)
    whole = StoredRun.open(stored).count("sends")
    assert whole
    (stored / "journals").mkdir()
    with Journal(journal_path(stored / "journals", "faults", "0"), FAULTS):
        pass
    seen: list[int] = []

    def look(directory: Path, results: Path) -> Verdict:
        seen.append(StoredRun.open(directory).count("sends"))
        return verdict(Judgement.UNKNOWN, expected=False, partial=True)

    backends = judging(judge=lambda master, conf, rows: look, writable=lambda directory: writable)
    kafka_trial("check", stored, backends=backends)
    assert seen == [whole], "the other journals were removed when the run was killed"
