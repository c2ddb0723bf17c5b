"""Makes the directory of a new run, and its run.json from the scenario."""

import os
import random
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

from harness.core.clock import SECOND_NS, Clock
from harness.core.errors import EnvironmentLacks
from harness.history.paths import JOURNALS, LOGS
from harness.history.run_file import RUN_FILE, RunFile
from harness.history.store import RunRecord
from harness.scenario.configuration import configuration
from harness.scenario.model import Scenario


def new_run(scenario: Scenario, seed: int, store: Path) -> RunRecord:
    """A new ``<store>/<scenario>/<UTC time>-<seed>``. Raises EnvironmentLacks if the store is not writable."""
    now = time.time_ns()
    moment = datetime.fromtimestamp(now / SECOND_NS, UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    name = f"{scenario.name}/{moment}Z-{seed}"
    directory = Path(os.path.realpath(store)) / name
    clock = Clock.start()
    file = RunFile(
        run=name,
        scenario_name=scenario.name,
        scenario=scenario.model_dump(mode="json", by_alias=True),
        configuration=configuration(scenario),
        expect=scenario.expect,
        requires=scenario.requires,
        limits=scenario.limits,
        watch_topic=scenario.watch_topic,
        watch_partition=scenario.watch_partition,
        seed=seed,
        origin_unix_ns=now,
    )
    try:
        for part in (JOURNALS, LOGS):
            (directory / part).mkdir(parents=True)
        record = RunRecord(directory, file, clock)
        try:
            record.save()
        except BaseException:
            record.release()
            raise
    except OSError as exc:
        if not (directory / RUN_FILE).exists():
            shutil.rmtree(directory, ignore_errors=True)
        raise EnvironmentLacks(f"{store}: runs cannot be kept there ({exc.strerror}): name another --store") from exc
    return record


def fresh_seed() -> int:
    """A random seed, if the user chose none. run.json stores it."""
    return random.SystemRandom().randrange(1 << 31)
