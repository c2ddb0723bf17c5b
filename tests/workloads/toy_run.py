"""Adds a line to the catalogue, loads a scenario of that workload, and runs it.

``python -m tests.workloads.toy_run SCENARIO BOOTSTRAP TOPIC JOURNALS`` prints what came of it as JSON.
"""

import json
import sys
from pathlib import Path

from harness.core.clock import Clock
from harness.core.waiting import wait_for
from tests.workloads.begun import begun
from tests.workloads.toy import Toy
from workloads.catalogue import WORKLOADS
from workloads.processes import Workers
from workloads.workload import Surroundings, WorkloadStep

ENOUGH = 5


def go_on(workers: Workers) -> None:
    """Wait until some more was acknowledged."""
    enough = workers.counts().acknowledged + ENOUGH
    wait_for(workers.counts, "records acknowledged", 60, good=lambda counts: counts.acknowledged >= enough)


def main() -> None:
    """The program: see above."""
    WORKLOADS["toy"] = Toy
    # Those that read the catalogue read it when they are imported.
    from harness.scenario.loading import load

    scenario, bootstrap, topic, journals = sys.argv[1:]
    loaded = load(Path(scenario))
    surroundings = Surroundings(bootstrap, {topic: 1}, Path(journals), Clock.start(), seed=1)
    done = []
    with begun(loaded.workload, surroundings) as workers:
        for step in loaded.timeline:
            assert isinstance(step, WorkloadStep)
            go_on(workers)
            done.append(step.play(workers))
        go_on(workers)
        notes = workers.finish(within=30)
    print(json.dumps({"clients": sorted(workers.clients), "writes": workers.writes, "done": done, "notes": notes}))


if __name__ == "__main__":
    main()
