"""What it costs to decide many losses: ``python -m benchmarks.losing [--records N,N…] [--partitions N] [--terms N]``.

Nearly all of the acknowledged records are lost, and brokers reported many elections. A fresh process judges each
history once, cold. Prints one line for each: seconds, CPU seconds and peak memory of the Java process and of Python,
which decides, and how many losses have which standing.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from benchmarks.histories import write_run
from benchmarks.machine import at_the_moment, peak_mib
from harness.core.anomalies import LOST


def measure(run: Path, memory: str) -> str:
    """Judge a run, and return the line about it."""
    from checkers.judge import judge
    from checkers.spark.session import session
    from harness.history.stored_run import StoredRun

    began = time.monotonic()
    spark = session(conf={"spark.driver.memory": memory}, rows=[StoredRun.open(run).records])
    java = psutil.Process(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    verdict = judge(run, spark)
    took = time.monotonic() - began
    python = resource.getrusage(resource.RUSAGE_SELF)
    standings = Counter[str]()
    for finding in verdict.findings:
        if count := finding.anomalies.get(LOST.name):
            standings[str(finding.standing)] += count
    cpu = (sum(java.cpu_times()[:2]), python.ru_utime + python.ru_stime)
    return (
        f"{verdict.anomalies[LOST.name].count:,} lost: {took:.0f} s; Java {cpu[0]:.0f} CPU s, "
        f"{peak_mib(java.pid):,.0f} MiB; Python {cpu[1]:.0f} CPU s, {python.ru_maxrss >> 10:,} MiB; "
        + ", ".join(f"{count:,} {standing}" for standing, count in standings.most_common())
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", default="100000,1000000,10000000", help="sizes: sends of each history")
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--terms", type=int, default=10, help="leaders of each partition, one after the other")
    parser.add_argument("--memory", default="6g", help="of Spark's driver")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        print(measure(asked.measure, asked.memory))
        return
    print(at_the_moment())
    for records in map(int, asked.records.split(",")):
        with tempfile.TemporaryDirectory(prefix="kafka-trial-benchmark-") as run:
            shape = {"partitions": asked.partitions, "samples": 100, "terms": asked.terms}
            write_run(Path(run), records, lost=0.99, **shape)
            command = [sys.executable, "-m", "benchmarks.losing", "--measure", run, "--memory", asked.memory]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
