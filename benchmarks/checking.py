"""How long judging takes, and in how much memory: ``python -m benchmarks.checking [--records N,N…] [--live]``.

A fresh process with a fixed driver memory judges each history: first cold, then warm; then only with the family
delivery; then only with that family's one pass over all records; then only with the part of the pass that counts the
lost records and those that nobody sent. Another process judges it cold with delivery and availability alone (first s).
DuckDB answers the same from the same Parquet: the whole family (delivery.sql), and the two counts by one join. Each of
these is the shortest of two measurements in a row; the two counts, on both sides, of six, because Java becomes faster
with each repetition. Prints one line for each history, with the ratio to the one before. CPU s are those of the Java
process of the cold judgement; they hardly depend on how busy the machine is.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import psutil

from benchmarks.histories import write_run
from benchmarks.machine import at_the_moment, peak_mib

#: How many records are lost, and how many nobody sent: as a query for DuckDB (``{run}`` stands for the run), and as
#: sums over the pass.
JOIN = """
    select count(*) filter (s.outcome = 'ok' and r.record_id is null), count(*) filter (s.record_id is null)
    from '{run}/history/sends/*.parquet' s
    full outer join (select record_id from '{run}/history/reads/*.parquet' where phase = 'final') r using (record_id)
"""
JOINED = {
    "lost": "bit_count(acknowledged & ~found)",
    "unsent": "bit_count(found & ~(acknowledged | failed | undecided))",
}
#: A query for the seven tables of the family delivery.
FAMILY = Path(__file__).with_name("delivery.sql").read_text()


Figures = dict[str, float]


def seconds(step: Callable[[], object]) -> float:
    """How long ``step`` takes."""
    began = time.monotonic()
    step()
    return time.monotonic() - began


def shortest(step: Callable[[], object], times: int = 2) -> float:
    """The shortest time of several runs of ``step`` in a row."""
    return min(seconds(step) for _ in range(times))


def measure(run: Path, memory: str) -> Figures:
    """The seconds of a cold judgement of ``run`` (wall, CPU), of a second one, of the family delivery alone, of its
    pass, and of JOINED; and the Java process's peak memory in MiB."""
    from checkers.catalogue import DELIVERY
    from checkers.history import History
    from checkers.judge import judge
    from checkers.scan.record_bits import record_bits
    from checkers.scans import Scan, count, count_record_bits
    from checkers.screening import records
    from checkers.spark.session import session
    from harness.history.stored_run import StoredRun

    began = time.monotonic()
    spark = session(conf={"spark.driver.memory": memory}, rows=[StoredRun.open(run).records])
    java = psutil.Process(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    judge(run, spark)
    figures = {"cold": time.monotonic() - began, "cpu": sum(java.cpu_times()[:2])}
    history = History.read(run, spark)
    sums = {checker.name: checker.sums[Scan.RECORD_BITS] for checker in DELIVERY}
    figures |= {
        "warm": seconds(lambda: judge(run, spark)),
        "delivery": shortest(lambda: records(history, DELIVERY)),
        "pass": shortest(lambda: count_record_bits(history, record_bits(history), sums)),
        "joined": shortest(lambda: count(record_bits(history), JOINED), times=6),
    }
    return figures | {"peak": peak_mib(java.pid)}


def measure_first(run: Path, memory: str) -> Figures:
    """The seconds of a cold judgement of ``run`` with only the families delivery and availability."""
    from checkers.availability import availability
    from checkers.catalogue import DELIVERY
    from checkers.history import History
    from checkers.screening import records
    from checkers.spark.session import session
    from harness.history.stored_run import StoredRun

    began = time.monotonic()
    history = History.read(run, session(conf={"spark.driver.memory": memory}, rows=[StoredRun.open(run).records]))
    records(history, DELIVERY)
    availability(history)
    return {"first": time.monotonic() - began}


def measure_duckdb(run: Path, memory: str) -> Figures:
    """The seconds that DuckDB takes for the family delivery, and for JOIN."""
    with duckdb.connect(config={"memory_limit": memory.upper() + "B"}) as connection:
        join = shortest(lambda: connection.execute(JOIN.format(run=run)).fetchall(), times=6)
        return {"duck_join": join, "duck": shortest(lambda: connection.execute(FAMILY.format(run=run)))}


#: The measurements. Each runs in a process of its own.
MEASURES = {"all": measure, "first": measure_first, "duckdb": measure_duckdb}

#: The printed columns, made from the figures.
COLUMNS: dict[str, Callable[[Figures], str]] = {
    "cold s": lambda figures: f"{figures['cold']:.1f}",
    "CPU s": lambda figures: f"{figures['cpu']:.0f}",
    "warm s": lambda figures: f"{figures['warm']:.1f}",
    "ratio": lambda figures: f"{figures['cold'] / figures['before']:.1f}" if "before" in figures else "",
    "peak MiB": lambda figures: f"{figures['peak']:.0f}",
    "first s": lambda figures: f"{figures['first']:.1f}",
    "delivery s": lambda figures: f"{figures['delivery']:.1f}",
    "DuckDB s": lambda figures: f"{figures['duck']:.2f}",
    "ratio of both": lambda figures: f"{figures['delivery'] / figures['duck']:.1f}",
    "pass s": lambda figures: f"{figures['pass']:.1f}",
    "joined s": lambda figures: f"{figures['joined']:.1f}",
    "join s": lambda figures: f"{figures['duck_join']:.2f}",
    "joined / join": lambda figures: f"{figures['joined'] / figures['duck_join']:.1f}",
}


def in_a_process(measured: str, run: Path, memory: str) -> Figures:
    """The figures of one of MEASURES, from a fresh process."""
    command = [sys.executable, "-m", "benchmarks.checking", "--measure", measured, str(run), "--memory", memory]
    figures: Figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return figures


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", default="100000,1000000,10000000", help="sizes: sends of each history")
    parser.add_argument("--memory", default="6g", help="heap of the Spark driver")
    parser.add_argument("--live", action="store_true", help="also with a reader of all partitions during the run")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measured, run_directory = asked.measure
        print(json.dumps(MEASURES[measured](Path(run_directory), asked.memory)))
        return
    print(at_the_moment())
    print(f"{'records':>12}", *COLUMNS, sep="  ", flush=True)
    before: Figures = {}
    for records in (int(text) for text in asked.records.split(",")):
        figures = before
        with tempfile.TemporaryDirectory(prefix="kafka-trial-bench-") as scratch:
            run = write_run(Path(scratch), records, live=asked.live)
            for measured in MEASURES:
                figures = figures | in_a_process(measured, run, asked.memory)
        before = {"before": figures["cold"]}
        cells = (f"{say(figures):>{len(name)}}" for name, say in COLUMNS.items())
        print(f"{records:>12}", *cells, sep="  ", flush=True)


if __name__ == "__main__":
    main()
