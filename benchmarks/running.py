"""Measures a run's time besides its timeline, and how fast a fault acts: ``python -m benchmarks.running``.

One real run of a scenario (images cached) as a whole process: wall time, the time of each phase, wall time minus the
length of its timeline (goal: at most 45 s), and for each fault the time from the decision until it was applied (goal
for a partition: 0.5 s).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.machine import at_the_moment

SECOND = 1e9


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", nargs="?", default="jepsen-2013/unclean-election")
    scenario = parser.parse_args().scenario
    print(at_the_moment(), flush=True)
    with tempfile.TemporaryDirectory(prefix="kafka-trial-bench-") as store:
        command = [str(Path(sys.executable).with_name("kafka-trial")), "run", scenario, "--store", store, "--json"]
        started = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        wall = time.monotonic() - started
        print(f"{scenario}: {wall:.1f} s, exit code {done.returncode}")
        run = Path(store, json.loads(done.stdout)["run"])
        report(json.loads((run / "run.json").read_text()), wall)
        for row in pq.read_table(run / "history" / "faults").to_pylist():
            print(f"  {row['fault']} takes effect after {(row['injected_ns'] - row['injecting_ns']) / SECOND:.2f} s")


def report(run_file: dict[str, Any], wall: float) -> None:
    """Print the phases of a run, and its time besides the timeline."""
    phases = run_file["phases"]
    ends = [phase["at_ns"] for phase in phases[1:]]
    for phase, end in zip(phases, [*ends, wall * SECOND], strict=True):
        print(f"  {phase['phase']:<14} {(end - phase['at_ns']) / SECOND:6.1f} s")
    times = {phase["phase"]: phase["at_ns"] for phase in phases}
    print(f"  besides the timeline: {wall - (times['heal'] - times['timeline']) / SECOND:.1f} s (goal: 45)")


if __name__ == "__main__":
    main()
