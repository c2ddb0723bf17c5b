"""The session: one, quiet, tidy, and an error that says what to do."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from checkers.spark.refusal import reason, refusal
from checkers.spark.session import ARCHIVE, driver_memory, session, settings, surroundings
from checkers.spark.settings import PINNED
from harness.core.errors import ScenarioError


def test_there_is_one_session_for_all_threads(spark: SparkSession) -> None:
    with ThreadPoolExecutor(max_workers=4) as pool:
        sessions = list(pool.map(lambda _: session(), range(8)))
    assert {id(one.sparkContext) for one in sessions} == {id(spark.sparkContext)}


def test_the_callers_settings_win(tmp_path: Path) -> None:
    assert settings("local[2]", {"spark.driver.memory": "1g"}, tmp_path)["spark.driver.memory"] == "1g"


@pytest.mark.parametrize("key", [*PINNED, "spark.sql.legacy.allowHashOnMapType", "spark.sql.extensions"])
def test_a_caller_may_not_set_an_option_that_a_verdict_depends_on(key: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=f"^--conf {key}: a verdict might depend on it; of spark.sql, .*$"):
        settings("local[2]", {key: "true"}, tmp_path)


@pytest.mark.parametrize("key", ["spark.master", "spark.remote", "spark.api.mode"])
def test_only_the_master_option_says_where_spark_runs(key: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=f"^--conf {key}: say where Spark runs with --master$"):
        settings("local[2]", {key: "x"}, tmp_path)


@pytest.mark.parametrize(
    "key",
    [
        "spark.driver.host",
        "spark.executor.memory",
        "spark.hadoop.fs.s3a.endpoint",
        "spark.jars",
        "spark.sql.adaptive.enabled",
        "spark.sql.autoBroadcastJoinThreshold",
        "spark.sql.files.maxPartitionBytes",
        "spark.sql.shuffle.partitions",
    ],
)
@pytest.mark.parametrize("master", ["local[2]", "spark://there:7077"])
def test_how_work_is_laid_out_is_the_callers(key: str, master: str, tmp_path: Path) -> None:
    assert settings(master, {key: "7"}, tmp_path)[key] == "7"
    assert settings(master, {key: "7"}, tmp_path).items() >= PINNED.items()


def test_the_callers_java_options_are_added_to_ours(tmp_path: Path) -> None:
    java = settings("local[2]", {"spark.driver.extraJavaOptions": "-Dmine=1"}, tmp_path)[
        "spark.driver.extraJavaOptions"
    ]
    assert java.startswith("-XX:+UseParallelGC ")
    assert java.endswith(" -Dmine=1")


def test_another_machine_must_be_able_to_reach_the_driver(tmp_path: Path) -> None:
    assert settings("local[2]", {}, tmp_path)["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in settings("spark://there:7077", {}, tmp_path)


def test_only_long_jobs_get_the_optimising_compiler(tmp_path: Path) -> None:
    assert "TieredStopAtLevel=1" in settings("local", {}, tmp_path)["spark.driver.extraJavaOptions"]
    assert "TieredStopAtLevel" not in settings("local", {}, tmp_path, rows=[10**7])["spark.driver.extraJavaOptions"]


def test_many_small_runs_are_a_long_job_of_small_ones(tmp_path: Path) -> None:
    long, large = settings("local", {}, tmp_path, rows=[10**5] * 100), settings("local", {}, tmp_path, rows=[10**7])
    assert "TieredStopAtLevel" not in long["spark.driver.extraJavaOptions"]
    assert long["spark.sql.adaptive.enabled"] == "false"
    assert "spark.sql.adaptive.enabled" not in large
    huge = settings("local", {}, tmp_path, rows=[2 * 10**8])
    assert int(huge["spark.sql.shuffle.partitions"]) > int(large["spark.sql.shuffle.partitions"])
    assert "spark.buffer.pageSize" not in settings("spark://there:7077", {}, tmp_path, rows=[1])


def test_code_is_compiled_for_queries_where_it_pays_off(tmp_path: Path) -> None:
    codegen = "spark.sql.codegen.wholeStage"
    assert settings("local", {}, tmp_path, rows=[2_000, 4_000])[codegen] == "false"
    assert settings("local", {codegen: "true"}, tmp_path, rows=[2_000])[codegen] == "true"
    for rows in ([], [2_000, 50_000], [10**7]):
        assert codegen not in settings("local", {}, tmp_path, rows=rows)
    assert codegen not in settings("spark://there:7077", {}, tmp_path, rows=[2_000])


def test_driver_memory_is_at_most_6_gib() -> None:
    assert 0 < driver_memory() <= 6 << 30


_TRACE = """
\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1068)
\tat org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
"""


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("", "it said nothing"),
        ("starting\n\nno such class\n\n", "no such class"),
        ("line 71: /x/bin/java: No such file or directory\nCMD: bad subscript", "No such file or directory"),
        ("Invalid maximum heap size: -Xmxabc\nError: Could not create the Java Virtual Machine.", "-Xmxabc"),
        ("Error occurred during initialization of VM\nToo small maximum heap", "Too small maximum heap"),
        ('Exception in thread "main" org.apache.spark.SparkException: Master must be.' + _TRACE, "Master must be"),
        ("1:2 ERROR SparkContext: Error.\norg.apache.spark.SparkException: Bad URL: 'x'" + _TRACE, "Bad URL: 'x'"),
        (
            f"java.lang.IllegalArgumentException: Error while instantiating:{_TRACE}"
            f'Caused by: org.apache.spark.SparkException: [A.B] The value "x" is invalid. SQLSTATE: 22022{_TRACE}'
            f"\t... 19 more\norg.apache.spark.Another: Exception: later{_TRACE}",
            'The value "x" is invalid',
        ),
    ],
)
def test_the_reason_is_the_line_that_says_why(output: str, why: str) -> None:
    assert reason(output).endswith(why)


@pytest.mark.parametrize(
    ("output", "master", "conf", "says"),
    [
        ("org.apache.spark.SparkException: x" + _TRACE, "foo", {}, "(x): change --master, or see spark.log"),
        ("Invalid maximum heap size: -Xmx1", None, {"spark.driver.memory": "1"}, "-Xmx1): change --conf, or see"),
        ("Too small maximum heap", None, {}, "(Too small maximum heap): see spark.log"),
        ('A.AError: "spark.a" is', "local", {"spark.b": "1", "spark.a": "2"}, "change --conf spark.a, or see"),
        ("ERROR All masters are unresponsive!", "spark://x:1", {}, "no Spark master answers at spark://x:1: start"),
        (
            "Error occurred during initialization of boot layer\n"
            "java.lang.module.FindException: Module jdk.incubator.vector not found",
            None,
            {},
            "(Module jdk.incubator.vector not found); it needs Java 17 or later, with all modules, see spark.log",
        ),
        ("Error: UnsupportedClassVersionError", "local", {"spark.a": "1"}, "needs Java 17 or later, see spark.log"),
    ],
)
def test_a_refusal_names_what_to_change(output: str, master: str | None, conf: dict[str, str], says: str) -> None:
    line = refusal(output, master, conf, Path("spark.log"))
    assert says in line
    assert ("Java" in line) == ("Java" in says)
    assert "\n" not in line


_BEGIN = """
import sys
from checkers.spark.session import session
from harness.core.errors import EnvironmentLacks
try:
    session("local[1]", dict(setting.split("=") for setting in sys.argv[1:]))
except EnvironmentLacks as error:
    print(error)
"""


def begin(scratch: Path, *settings: str, **environment: str) -> str:
    """What a process of its own says as it begins a session."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment}
    command = [sys.executable, "-c", _BEGIN, *settings]
    output = subprocess.run(command, env=environment, cwd=scratch, capture_output=True, text=True, check=True)
    assert (output.stdout.count("\n"), output.stderr) == (1, "")
    return output.stdout


def test_without_java_it_says_so_in_one_line(tmp_path: Path) -> None:
    output = begin(tmp_path, JAVA_HOME=str(tmp_path))
    assert output.startswith("Spark did not start (")
    assert "Java 17" in output


@pytest.mark.long
def test_a_setting_that_spark_does_not_take_is_named_in_one_line(tmp_path: Path) -> None:
    output = begin(tmp_path, "spark.sql.shuffle.partitions=abc", TMPDIR=str(tmp_path))
    assert "The value 'abc'" in output
    assert "): change --conf spark.sql.shuffle.partitions, or see " in output


_READ = """
import sys
from checkers.spark.session import session
from checkers.spark.settings import PINNED
spark = session("local[1]")
assert session() is spark
print(spark.read.parquet(sys.argv[1]).count(), *(spark.conf.get(key) for key in PINNED), spark.conf.get("spark.x", "-"))
"""


@pytest.mark.long
def test_another_sparks_surroundings_are_not_ours(tmp_path: Path) -> None:
    of_another = tmp_path / "conf"
    of_another.mkdir()
    others = {key: "true" if value == "false" else "false" for key, value in PINNED.items()}
    others |= {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.jars.packages": "no.such:thing:1",
        "spark.x": "theirs",
    }
    (of_another / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in others.items()))
    (of_another / "spark-env.sh").write_text("exit 3\n")
    (tmp_path / "é").mkdir()
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "é" / "part.parquet")
    environment = {
        **dict.fromkeys(("SPARK_HOME", "SPARK_REMOTE", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS"), "no-such-thing"),
        **{"SPARK_API_MODE": "connect", "SPARK_CONNECT_MODE_ENABLED": "1", "PYSPARK_GATEWAY_PORT": "1"},
        **{"SPARK_CONF_DIR": str(of_another), "LC_ALL": "C", "PYTHONPATH": str(Path(__file__).parents[2])},
    }
    output = subprocess.run(
        [sys.executable, "-c", _READ, str(tmp_path / "é")],
        env={**os.environ, **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (output.stdout.split(), output.stderr) == (["2", *PINNED.values(), "-"], "")


@pytest.mark.parametrize("empty", [False, True])
def test_a_configuration_directory_with_anything_in_it_is_left_alone(empty: bool, tmp_path: Path) -> None:
    of_archive, scratch = tmp_path / "conf", tmp_path / "scratch"
    of_archive.mkdir()
    scratch.mkdir()
    if not empty:
        (of_archive / "spark-env.sh").write_text("exit 3\n")
    with surroundings(scratch, of_archive):
        used = Path(os.environ["SPARK_CONF_DIR"])
        assert not [*used.iterdir()]
    assert (used == of_archive) is empty


_USED = "from checkers.spark.class_archive import used; print(used())"


@pytest.mark.heavy
def test_the_archive_of_classes_is_used_by_the_java_that_made_it() -> None:
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    output = subprocess.run([java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=True)
    version = next(line.split(" = ")[1] for line in output.stderr.splitlines() if " java.vm.version = " in line)
    with ARCHIVE.open("rb") if ARCHIVE.exists() else BytesIO() as archive:
        made_by_it = version.encode() in archive.read(4096)
    done = subprocess.run([sys.executable, "-c", _USED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(made_by_it)]


_JUDGE = """
import sys
from pathlib import Path
from checkers.judge import judge
from checkers.spark.session import session
spark = session(master="local[1]", conf={"spark.sql.shuffle.partitions": "3"})
print(judge(Path(sys.argv[1]), spark).to_json())
"""


@pytest.mark.long
def test_another_master_in_another_process_judges_the_same_and_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path
) -> None:
    from checkers.judge import judge
    from tests.checkers.notation import by_hand, write

    lines = [f"send r{n} ok @{n} p{n % 2}" for n in range(60)] + [f"final r{n} @{n} p{n % 2}" for n in range(0, 60, 3)]
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    elsewhere.mkdir()
    write(run, [by_hand(*lines, "final x @99", "end 0..60", "end 0..60 p1", "saw b1 @1 leader=1 epoch=0 isr=1,2")])
    here = judge(run, spark).to_json()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", _JUDGE, str(run)]
    there = subprocess.run(command, env=environment, cwd=elsewhere, capture_output=True, text=True, check=True)
    assert there.stdout == here + "\n"
    assert there.stderr == ""
    assert list(elsewhere.iterdir()) == []
