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

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from checkers.spark.refusal import refusal
from checkers.spark.settings import PINNED, check
from harness.core.errors import EnvironmentLacks

#: The archive of Spark's classes, mapped when the Java process starts (checkers/spark/class_archive.py makes it).
ARCHIVE = Path(sys.prefix, "share", "kafka-trial", "spark.jsa").resolve()

#: The empty directory that is Spark's configuration directory. It is on the class path of the Java process, and Java
#: only maps an archive that was made with the same class path.
NO_CONF = ARCHIVE.with_name("conf")

_JAVA = "spark.driver.extraJavaOptions"
_GIB = 1 << 30
#: A choice: 10^7 records need less, and `spark.driver.memory` asks for more.
_MOST_DRIVER_MEMORY = 6 * _GIB

#: For a short job the optimising compiler does not pay off: without it a small run is judged 3 s faster on two cores,
#: but 10^7 records 7 s slower. The code cache is larger than C1's default of 48 MiB: some hundred queries would fill
#: that, and the JVM would then compile no more.
_SHORT_JAVA = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]

#: A long job gets it, but only for methods that are called ten times as often as by default: those that process data,
#: not those that plan.
_LONG_JAVA = [
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
]

#: With this many rows or more a session's job is long, and a run is large.
_LARGE = 2_000_000

#: The Java process's own messages (for example about the archive of another Java) must not go to stdout, where the
#: verdict is.
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

#: Settings of every session. The caller's ``conf`` wins, except against those in PINNED.
_EVERYWHERE = {
    **PINNED,
    "spark.app.name": "kafka-trial",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    # A judgement has more queries than the default of 100 whose compiled code is kept, and the next judgement reuses
    # them.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Spark describes each changed plan to its UI, which nobody looks at: the simple description is the cheapest.
    "spark.sql.ui.explainMode": "simple",
    # Rows that one task reads stay in one task: Spark estimates the size of a join as the product of both sides, and
    # would shuffle a few rows because of that.
    "spark.sql.maxSinglePartitionBytes": f"{1 << 40}b",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}

#: A local session only talks to itself. Its shuffle data hardly leaves the machine's memory: to compress it takes
#: longer than to write it (a twelfth of the time for 10^7 records). Tasks are never retried, so checksums that compare
#: two tries of a task are useless.
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.shuffle.compress": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
}

_CORES = os.cpu_count() or 1
#: A small run costs the planning of a hundred queries and has hardly any data. It is judged in a quarter less time
#: without adaptive plans, with as many partitions as cores, and with small pages (the default is 64 MiB).
_OF_SMALL_RUNS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": str(_CORES),
    "spark.buffer.pageSize": "2m",
}
#: Compiled code does not pay off for fewer rows: without it 2,000 records are judged in 6 s instead of 8 by a new
#: process, and 10,000 in 8 s either way.
_TINY = 20_000
_WITHOUT_COMPILED_CODE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
#: The most rows that one task can sort within its share of 6 GiB.
_MOST_OF_A_TASK = 2_500_000


_lock = threading.Lock()

#: Set if the caller of a session was interrupted, perhaps before there was a Java process to end.
_abandoned = threading.Event()

#: How often work is tried if Spark's Java process ends during it.
_TRIES = 2

#: Static methods that PySpark calls for each column of a query, by their class as PySpark names it.
_OFTEN_CALLED = {
    "functions": ("col", "broadcast"),
    "org.apache.spark.sql.functions": ("expr",),
    "PythonUtils": ("toSeq",),
}

T = TypeVar("T")


def session(master: str | None = None, conf: Mapping[str, str] | None = None, rows: Sequence[int] = ()) -> SparkSession:
    """The process's Spark session. The first caller's ``master`` (default ``local[*]``) and ``conf`` apply to all
    callers. If the Java process ended, or its context stopped, a new one is started.

    ``rows``: the number of rows of each run that it will judge (``harness.history.stored_run.rows``); empty: small
    runs. Safe to call from several threads: one starts it, the others wait. Raises EnvironmentLacks if Spark's Java
    process does not start, refuses a setting, or finds no master; ScenarioError for a setting of ``conf`` that is not
    allowed (``checkers.spark.settings``).

    The variables SPARK_* and PYSPARK_* of this process are removed: they belong to another Spark.
    """
    with _lock:
        if ended():
            _forget()
        if SparkContext._active_spark_context is None:
            _start(master, conf or {}, rows)
        return SparkSession.builder.getOrCreate()


def interruptibly(work: Callable[[], T]) -> T:
    """Do ``work``, which uses Spark, and return its result.

    If the caller is interrupted (Ctrl-C), Spark's Java process is ended, and so is everything that waits for its
    answers. The work runs in its own thread: Spark would handle the SIGINT of the main thread itself.
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
    """End Spark's Java process, and so everything that waits for its answers. This process starts no other one."""
    _abandoned.set()
    _end(SparkContext._gateway)


def lasting(
    work: Callable[[SparkSession], T],
    report: Callable[[str], None],
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    rows: Sequence[int] = (),
) -> T:
    """Do ``work`` with the session, interruptibly. If Spark's Java process ends during the work (killed, or out of
    memory), ``report`` it, and do the work once more with a new process.

    Results of a process that ended do not count: a checker without an answer looks like a failed one. Raises
    EnvironmentLacks if the second process ends, too, and whatever ``session`` raises.
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
    """Whether the session's Java process is gone, or its context stopped."""
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
    """Forget the session, so that the next caller starts a new one."""
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    _end(gateway)
    if context is not None:
        context._jsc = None  # (Otherwise stop() would call the Java process.)
        context.stop()
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _end(gateway: Any) -> None:
    """End the Java process of a gateway, if there is one."""
    if gateway is not None and gateway.proc is not None:
        gateway.proc.kill()


def _worth_logging(record: logging.LogRecord) -> bool:
    """A log filter without py4j: it logs a trace of each call that its Java process does not answer, but also raises an
    error."""
    return "py4j" not in Path(record.pathname).parts


def _start(master: str | None, conf: Mapping[str, str], rows: Sequence[int]) -> None:
    logging.getLogger().addFilter(_worth_logging)
    scratch = Path(tempfile.mkdtemp(prefix="kafka-trial-spark-"))
    log = scratch / "spark.log"
    where = master or "local[*]"
    wanted = settings(where, conf, scratch, rows)
    spark_conf = SparkConf(loadDefaults=False).setMaster(where).setAll(list(wanted.items()))
    try:
        # The Java process prints warnings before its logging is set up; they go to the log, too.
        with log.open("wb") as said, surroundings(scratch):
            gateway = launch_gateway(spark_conf, popen_kwargs={"stdout": said, "stderr": said})  # type: ignore[no-untyped-call]
        if _abandoned.is_set():
            _end(gateway)
        SparkContext(conf=spark_conf, gateway=gateway)
        _remember_names(gateway.jvm)
        # If the master did not answer, the context exists but is stopped; and SQL settings are only checked at their
        # first use.
        SparkSession.builder.getOrCreate().conf.get("spark.app.name")
    except Exception as exc:
        logged = log.read_text(encoding="utf-8", errors="replace")
        raise EnvironmentLacks(refusal(f"{exc}\n{logged}", master, conf, log)) from exc
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)


def _remember_names(jvm: Any) -> None:
    """Look up what is called often once. PySpark asks the Java process for each column anew, a thousand times per
    judgement, and Java then looks into each of its two hundred archives for a class of that short name."""
    for name, methods in _OFTEN_CALLED.items():
        known = getattr(jvm, name)
        setattr(jvm, name, known)
        for method in methods:
            setattr(known, method, getattr(known, method))


@contextmanager
def surroundings(scratch: Path, no_conf: Path = NO_CONF) -> Iterator[None]:
    """An environment in which Spark's Java process starts with our settings only, and with file names in UTF-8.

    It uses no spark-defaults.conf, spark-env.sh or SPARK_HOME of another Spark; HADOOP_CONF_DIR stays. The variables
    are not restored: PySpark looks for another Spark each time its session is requested. ``no_conf``: Spark's
    configuration directory, unless anything is in it.
    """
    for name in [name for name in os.environ if name.startswith(("SPARK_", "PYSPARK_"))]:
        del os.environ[name]
    empty = no_conf.is_dir() and not any(no_conf.iterdir())
    conf = no_conf if empty else Path(tempfile.mkdtemp(dir=scratch))
    home = Path(pyspark.__file__).resolve().parent
    ours = {"SPARK_CONF_DIR": str(conf), "SPARK_HOME": str(home), "LC_ALL": "C.UTF-8"}
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

    The settings of ``conf`` win; its Java options are added to ours. Raises ScenarioError for a setting that is not
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
    if 0 < rows < _TINY:
        return {**_OF_SMALL_RUNS, **_WITHOUT_COMPILED_CODE}
    if rows < _LARGE:
        return _OF_SMALL_RUNS
    return {"spark.sql.shuffle.partitions": str(max(4 * _CORES, rows // _MOST_OF_A_TASK))}


def driver_memory() -> int:
    """Bytes of heap for the driver: half of the machine's memory, at most 6 GiB."""
    return min(_MOST_DRIVER_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
