"""One lazy, quiet Spark session for a process: started at the first call, shared by every thread after it."""

import atexit
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from checkers.spark.refusal import refusal
from checkers.spark.settings import PINNED, check
from harness.core.errors import EnvironmentLacks

#: Spark's classes, to be mapped as the Java process starts (checkers/spark/class_archive.py makes it).
ARCHIVE = Path(sys.prefix, "share", "kafka-trial", "spark.jsa")

_JAVA = "spark.driver.extraJavaOptions"
_GIB = 1 << 30
_MOST_DRIVER_MEMORY = 6 * _GIB

#: A job of seconds is over before the optimising compiler pays: without it a small run is judged 3 s sooner on two
#: cores, 10^7 records 7 s later.
#: C1 alone would get 48 MiB for compiled code, which some hundred queries fill: the JVM then compiles no more.
_SHORT_JAVA = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]

#: A longer one gets it for what is called ten times as often as usual: that is the data's path, not the planner's.
_LONG_JAVA = [
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
]

#: So many rows make a long job of a session, and a large run of a run.
_LARGE = 2_000_000

#: What the Java process itself has to say (an archive that is another Java's, say) is no part of a verdict on stdout.
_QUIET = ["-Xlog:disable", "-Xlog:all=warning:stderr"]

_LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n
"""

#: What every session gets, wherever it runs. ``conf`` of the caller wins but for what is PINNED.
_EVERYWHERE = {
    **PINNED,
    "spark.app.name": "kafka-trial",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    # A judgement has more queries than the 100 whose compiled code is kept otherwise: the next one needs them again.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Nobody looks at the plans that Spark describes to its own UI, each time that it has changed one.
    "spark.sql.ui.explainMode": "simple",
    # What one task reads stays one task's: Spark takes the size of a join to be the product of both sides, and would
    # shuffle a few rows for it.
    "spark.sql.maxSinglePartitionBytes": f"{1 << 40}b",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}

#: A session in this process talks to nobody but itself. What it shuffles hardly leaves the machine's memory: to
#: compress it takes longer than to write it (a twelfth of the time of 10^7 records). No task of it is tried again, so
#: that sums by which to compare two tries of one are in vain.
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.shuffle.compress": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
}

_CORES = os.cpu_count() or 1
#: What a small run takes is a hundred queries' planning and hardly any data: it is judged in a quarter less without
#: plans made again after each stage, parts for more than the cores there are, and pages of 64 MiB.
_OF_SMALL_RUNS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": str(_CORES),
    "spark.buffer.pageSize": "2m",
}
#: So many rows are sorted by one task within its share of 6 GiB.
_MOST_OF_A_TASK = 2_500_000


_lock = threading.Lock()

#: Whether who asked for a session was interrupted, perhaps before there was a Java process to end.
_abandoned = threading.Event()

#: How often a work is begun where Spark's Java process ends in it.
_TRIES = 2

T = TypeVar("T")


def session(master: str | None = None, conf: Mapping[str, str] | None = None, rows: Sequence[int] = ()) -> SparkSession:
    """The process's Spark session; the first caller's ``master`` (default ``local[*]``) and ``conf`` hold for all.
    Where its Java process ended, or stopped its context, a new one is started.

    ``rows``: how many rows each run has that it is going to judge (``harness.history.stored_run.rows``); none: small
    ones.
    Safe to call from several threads: one starts it, the others wait. Raises EnvironmentLacks where Spark's Java
    process does not start, does not take a setting, or finds no master; ScenarioError for a setting of ``conf`` that
    is not allowed (``checkers.spark.settings``).

    The variables SPARK_* and PYSPARK_* of this process are taken away: they are another Spark's.
    """
    with _lock:
        if ended():
            _forget()
        if SparkContext._active_spark_context is None:
            _start(master, conf or {}, rows)
        return SparkSession.builder.getOrCreate()


def interruptibly(work: Callable[[], T]) -> T:
    """Do ``work``, which asks Spark, and return what it returns.

    Where the caller is interrupted meanwhile (Ctrl-C), Spark's Java process is ended, and with it all that waits for
    its answers. In a thread of its own: Spark would take the main thread's SIGINT for itself.
    """
    with ThreadPoolExecutor(1, "spark") as pool:
        doing = pool.submit(work)
        try:
            return doing.result()
        except BaseException:
            if not doing.done():
                abandon()
            raise


def abandon() -> None:
    """End Spark's Java process, and with it all that waits for its answers; this process starts no other."""
    _abandoned.set()
    _end(SparkContext._gateway)


def lasting(
    work: Callable[[SparkSession], T],
    report: Callable[[str], None],
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    rows: Sequence[int] = (),
) -> T:
    """Do ``work`` with the session, interruptibly. Where Spark's Java process ends meanwhile, killed or out of memory,
    ``report`` it, and do the work once more with a new one.

    What was asked of a process that ended counts for nothing: a checker that it did not answer looks like one that
    failed. Raises EnvironmentLacks where the second ends, too, and what ``session`` raises.
    """
    for _ in range(_TRIES):
        try:
            done = interruptibly(lambda: work(session(master, conf, rows)))
        except Exception:
            if _abandoned.is_set() or not ended():
                raise
        else:
            if not ended():
                return done
        report("Spark's Java process ended as it judged")
    raise EnvironmentLacks(
        f"Spark's Java process ended {_TRIES} times as this was judged, killed or out of memory: judge it with less"
        " beside it, or with more memory (check --conf spark.driver.memory=8g)"
    )


def ended() -> bool:
    """Whether the Java process of this process's session is gone, or its context stopped."""
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if gateway is not None and gateway.proc.poll() is not None:
        return True
    if context is None or context._jsc is None:
        return False
    try:
        return bool(context._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return True


def _forget() -> None:
    """Let the next caller start a session as if there had been none."""
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    _end(gateway)
    if context is not None:
        context._jsc = None  # (Asked to stop, it would ask the Java process.)
        context.stop()
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _end(gateway: Any) -> None:
    """End the Java process of a gateway, if there is one."""
    if gateway is not None and gateway.proc is not None:
        gateway.proc.kill()


def _worth_logging(record: logging.LogRecord) -> bool:
    """py4j logs a trace of each call that its Java process does not answer any more, and also raises an error."""
    return "py4j" not in Path(record.pathname).parts


def _start(master: str | None, conf: Mapping[str, str], rows: Sequence[int]) -> None:
    logging.getLogger().addFilter(_worth_logging)
    scratch = Path(tempfile.mkdtemp(prefix="kafka-trial-spark-"))
    log = scratch / "spark.log"
    where = master or "local[*]"
    wanted = settings(where, conf, scratch, rows)
    spark_conf = SparkConf(loadDefaults=False).setMaster(where).setAll(list(wanted.items()))
    try:
        # The Java process prints warnings of its own before any logging is set up; they go where they can be looked up.
        with log.open("wb") as said, _surroundings(scratch):
            gateway = launch_gateway(spark_conf, popen_kwargs={"stdout": said, "stderr": said})  # type: ignore[no-untyped-call]
        if _abandoned.is_set():
            _end(gateway)
        SparkContext(conf=spark_conf, gateway=gateway)
        # A context whose master did not answer is there, and stopped; settings of SQL are read as they are first used.
        SparkSession.builder.getOrCreate().conf.get("spark.app.name")
    except Exception as exc:
        logged = log.read_text(encoding="utf-8", errors="replace")
        raise EnvironmentLacks(refusal(f"{exc}\n{logged}", master, conf, log)) from exc
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)


@contextmanager
def _surroundings(scratch: Path) -> Iterator[None]:
    """Spark's Java process starts with settings of ours alone, and with names of files in UTF-8.

    No spark-defaults.conf, spark-env.sh or SPARK_HOME of another Spark; HADOOP_CONF_DIR stays. The variables are gone
    for good: PySpark looks for another Spark whenever it is asked for its session.
    """
    for name in [name for name in os.environ if name.startswith(("SPARK_", "PYSPARK_"))]:
        del os.environ[name]
    ours = {"SPARK_CONF_DIR": str(scratch / "conf"), "LC_ALL": "C.UTF-8"}
    (scratch / "conf").mkdir()
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def settings(master: str, conf: Mapping[str, str], scratch: Path, rows: Sequence[int] = ()) -> dict[str, str]:
    """Every Spark setting of a session on ``master``, with its temporary files under ``scratch``.

    Those of ``conf`` win; Java options of its own are added to ours. Raises ScenarioError for one that is not
    allowed.
    """
    check(conf)
    log_settings = scratch / "log4j2.properties"
    log_settings.write_text(_LOGGING.format(level="error"), encoding="utf-8")
    java = [
        "-XX:+UseParallelGC",
        *_QUIET,
        f"-Dlog4j2.configurationFile={log_settings.as_uri()}",
        *(_SHORT_JAVA if sum(rows) < _LARGE else _LONG_JAVA),
    ]
    java += [f"-XX:SharedArchiveFile={ARCHIVE}"] if ARCHIVE.exists() else []
    java += [conf[_JAVA]] if _JAVA in conf else []
    ours = {
        **_EVERYWHERE,
        **({**_LOCAL, **_shape(max(rows, default=0))} if master.startswith("local") else {}),
        "spark.driver.memory": f"{driver_memory() >> 20}m",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
    }
    return {**ours, **conf, _JAVA: " ".join(java)}


def _shape(rows: int) -> dict[str, str]:
    if rows < _LARGE:
        return _OF_SMALL_RUNS
    return {"spark.sql.shuffle.partitions": str(max(4 * _CORES, rows // _MOST_OF_A_TASK))}


def driver_memory() -> int:
    """Bytes of heap for the driver: half of the machine's memory, 6 GiB at most."""
    return min(_MOST_DRIVER_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
