"""How long judging takes, and in how much memory: ``python -m benchmarks.checking [--records N,N…] [--live]``.

Each history is judged in a fresh process under a set driver memory, once more when that is warm, then by the family
delivery alone, by no more than its one pass over all records, and by what of that pass tells how many are lost and how
many nobody sent; in another process, cold, by delivery and availability (first s). Beside it DuckDB answers the same
from the same Parquet: the family (delivery.sql), and by one join those two numbers. These five are the shortest of two
times in a row, those two numbers, on both sides, of six: a Java process compiles the longer the more it is asked.
Prints one line for each history, with the ratio to the one before; CPU s are those of the Java process of the cold
judgement, and hold for slower hours too.
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
from benchmarks.machine import at_the_moment

#: How many are lost, and how many nobody sent: asked of DuckDB (of the run in place of ``{run}``), and of the pass.
JOIN = """
    select count(*) filter (s.outcome = 'ok' and r.record_id is null), count(*) filter (s.record_id is null)
    from '{run}/history/sends/*.parquet' s
    full outer join (select record_id from '{run}/history/reads/*.parquet' where phase = 'final') r using (record_id)
"""
JOINED = {
    "lost": "bit_count(acknowledged & ~found)",
    "unsent": "bit_count(found & ~(acknowledged | failed | undecided))",
}
#: The seven tables of the family delivery, of such a run.
FAMILY = Path(__file__).with_name("delivery.sql").read_text()


Told = dict[str, float]


def seconds(step: Callable[[], object]) -> float:
    """How long ``step`` takes."""
    began = time.monotonic()
    step()
    return time.monotonic() - began


def shortest(step: Callable[[], object], times: int = 2) -> float:
    """The same, of some times in a row: the shortest, as both sides of a ratio are told."""
    return min(seconds(step) for _ in range(times))


def measure(run: Path, memory: str) -> Told:
    """Seconds of a cold judgement of ``run`` (wall, CPU), of its second one, then of the family delivery alone, of its
    pass, and of JOINED; and the Java process's peak in MiB."""
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
    told = {"cold": time.monotonic() - began, "cpu": sum(java.cpu_times()[:2])}
    history = History.read(run, spark)
    sums = {checker.name: checker.sums[Scan.RECORD_BITS] for checker in DELIVERY}
    told |= {
        "warm": seconds(lambda: judge(run, spark)),
        "delivery": shortest(lambda: records(history, DELIVERY)),
        "pass": shortest(lambda: count_record_bits(history, record_bits(history), sums)),
        "joined": shortest(lambda: count(record_bits(history), JOINED), times=6),
    }
    peak = next(line for line in Path(f"/proc/{java.pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return told | {"peak": int(peak.split()[1]) / 1024}


def measure_first(run: Path, memory: str) -> Told:
    """Seconds until ``run`` was judged, cold, by the families delivery and availability alone."""
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


def measure_duckdb(run: Path, memory: str) -> Told:
    """Seconds that DuckDB takes for the family delivery, and for JOIN."""
    with duckdb.connect(config={"memory_limit": memory.upper() + "B"}) as connection:
        join = shortest(lambda: connection.execute(JOIN.format(run=run)).fetchall(), times=6)
        return {"duck_join": join, "duck": shortest(lambda: connection.execute(FAMILY.format(run=run)))}


#: What is measured, each in a process of its own.
MEASURES = {"all": measure, "first": measure_first, "duckdb": measure_duckdb}

#: What is printed, by heading: from what was told.
COLUMNS: dict[str, Callable[[Told], str]] = {
    "cold s": lambda told: f"{told['cold']:.1f}",
    "CPU s": lambda told: f"{told['cpu']:.0f}",
    "warm s": lambda told: f"{told['warm']:.1f}",
    "ratio": lambda told: f"{told['cold'] / told['before']:.1f}" if "before" in told else "",
    "peak MiB": lambda told: f"{told['peak']:.0f}",
    "first s": lambda told: f"{told['first']:.1f}",
    "delivery s": lambda told: f"{told['delivery']:.1f}",
    "DuckDB s": lambda told: f"{told['duck']:.2f}",
    "ratio of both": lambda told: f"{told['delivery'] / told['duck']:.1f}",
    "pass s": lambda told: f"{told['pass']:.1f}",
    "joined s": lambda told: f"{told['joined']:.1f}",
    "join s": lambda told: f"{told['duck_join']:.2f}",
    "joined / join": lambda told: f"{told['joined'] / told['duck_join']:.1f}",
}


def in_a_process(measured: str, run: Path, memory: str) -> Told:
    """What one of MEASURES says, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.checking", "--measure", measured, str(run), "--memory", memory]
    told: Told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return told


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", default="100000,1000000,10000000", help="sizes: sends of each history")
    parser.add_argument("--memory", default="6g", help="heap of the Spark driver")
    parser.add_argument("--live", action="store_true", help="with a reader of all partitions during the run, too")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measured, place = asked.measure
        print(json.dumps(MEASURES[measured](Path(place), asked.memory)))
        return
    print(at_the_moment())
    print(f"{'records':>12}", *COLUMNS, sep="  ", flush=True)
    before: Told = {}
    for records in (int(text) for text in asked.records.split(",")):
        told = before
        with tempfile.TemporaryDirectory(prefix="kafka-trial-bench-") as scratch:
            run = write_run(Path(scratch), records, live=asked.live)
            for measured in MEASURES:
                told = told | in_a_process(measured, run, asked.memory)
        before = {"before": told["cold"]}
        cells = (f"{say(told):>{len(name)}}" for name, say in COLUMNS.items())
        print(f"{records:>12}", *cells, sep="  ", flush=True)


if __name__ == "__main__":
    main()
