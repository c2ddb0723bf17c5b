"""A real Spark cluster judges as one process does, to the byte; also where a worker dies in the middle."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from benchmarks.histories import write_run
from checkers.history import ROWS_OF_ONE_TASK
from harness.core.waiting import wait_for
from tests.cluster.command import begin, kafka_trial

pytestmark = pytest.mark.cluster

[RECORDED] = Path(__file__).parents[2].glob("examples/jepsen-2013/unclean-election/*")

_SPARK_CLASS = Path(str(pyspark.__file__)).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True)
class Worker:
    """A Spark worker and, in its process group, its executors. ``scratch`` is where those keep what they shuffle."""

    process: subprocess.Popen[bytes]
    scratch: Path

    def kill(self) -> None:
        _end(self.process)

    def has_shuffled(self) -> bool:
        return any(self.scratch.rglob("shuffle_*.data"))


@dataclass(frozen=True)
class SparkCluster:
    master: str
    workers: list[Worker]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    """A master and two workers of the installed PySpark, on loopback."""
    log = tmp_path / "master.log"
    master = _started(tmp_path / "master", log, "master.Master", "--port", "0")
    started = [master]
    try:
        [url] = wait_for(lambda: re.findall(r"Starting Spark master at (\S+)", log.read_text()), "a Spark master", 60)
        workers = []
        for name in ("one", "two"):
            scratch = tmp_path / name
            options = ("--cores", "1", "--memory", "2g", "--work-dir", str(scratch / "work"))
            started.append(_started(scratch, tmp_path / f"{name}.log", "worker.Worker", *options, url))
            workers.append(Worker(started[-1], scratch))
        wait_for(lambda: log.read_text().count("Registering worker"), "two Spark workers", 60, good=lambda n: n == 2)
        yield SparkCluster(url, workers)
    finally:
        for process in started:
            if process.poll() is None:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _started(scratch: Path, log: Path, what: str, *arguments: str) -> subprocess.Popen[bytes]:
    scratch.mkdir()
    with log.open("wb") as out:
        return subprocess.Popen(
            [_SPARK_CLASS, f"{_DEPLOY}.{what}", "--host", "127.0.0.1", "--webui-port", "0", *arguments],
            env={**os.environ, "SPARK_LOCAL_DIRS": str(scratch), "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def checking(run: Path, cluster: SparkCluster) -> subprocess.Popen[str]:
    conf = ("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.sql.shuffle.partitions=4")
    return begin("check", run, "--json", "--master", cluster.master, *conf)


def copied(run: Path, to: Path) -> Path:
    """A copy of a run that was judged, without its verdict."""
    shutil.copytree(run, to)
    (to / "verdict.json").unlink()
    return to


def assert_judged(run: Path, check: subprocess.Popen[str], like: Path) -> None:
    out, _ = check.communicate(timeout=300)
    assert (run / "verdict.json").exists(), out
    assert (run / "verdict.json").read_bytes() == (like / "verdict.json").read_bytes()


def test_a_spark_cluster_judges_as_one_process_does(cluster: SparkCluster, tmp_path: Path) -> None:
    run = copied(RECORDED, tmp_path / "run")
    assert_judged(run, checking(run, cluster), like=RECORDED)
    assert [len(list(worker.scratch.glob("work/app-*/*"))) for worker in cluster.workers] == [1, 1]


def test_a_spark_cluster_judges_the_same_where_a_worker_dies_in_the_middle(
    cluster: SparkCluster, tmp_path: Path
) -> None:
    judged = write_run(tmp_path / "judged", ROWS_OF_ONE_TASK)
    assert kafka_trial("check", judged).code == 1
    run = copied(judged, tmp_path / "run")
    check = checking(run, cluster)
    wait_for(lambda: [worker.has_shuffled() for worker in cluster.workers], "both workers at work", 120, good=all)
    assert check.poll() is None
    cluster.workers[0].kill()
    assert_judged(run, check, like=judged)
