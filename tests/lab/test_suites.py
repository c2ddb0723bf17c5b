"""A suite on machines: a standby run looks at other machines meanwhile, and one machine has one node at a time."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from harness.cli import codes
from harness.cli.backends import Backends
from harness.history.run_file import RunFile
from harness.providers.ssh.machine import Machine
from harness.suite.recorder import Event, Order
from harness.suite.results import JUDGED, RunOutcome, SuiteFile, stored_suites
from harness.suite.suite import Recording
from tests.cli.test_commands import assert_one_line
from tests.command import Invoke

from .conftest import lab, traces

pytestmark = pytest.mark.lab

SCENARIO = """
name: {name}
cluster: {{brokers: {brokers}, controllers: 1, machines: {name}-machines.yaml}}
topic: {{replication: {brokers}, min.insync.replicas: 1}}
workload: {{producers: 1, consumers: 1, rate: 300, acks: all}}
timeline:
  - inject: {{fault: slow, target: b1, delay: 20ms}}
  - wait: {lasts}s
  - heal: all
expect: {{verdict: valid}}
"""

#: An address of the lab's network that no machine has.
SECOND = "10.99.0.201"

SUITE = "name: on-machines\nruns: ['*-story.yaml']\n"


def write_story(name: str, machines: list[str], lasts: int, inventory: Path, folder: Path) -> None:
    """A scenario of a cluster that has these machines of the lab: all but the last have brokers."""
    read = yaml.safe_load(inventory.read_text())
    hosts = {host["name"]: host for host in read["hosts"]}
    last = machines[-1]
    chosen = [hosts[one] | {"roles": ["controller" if one == last else "broker"]} for one in machines]
    for file in ("id", "known_hosts"):
        shutil.copy(inventory.parent / file, folder)
    (folder / f"{name}-machines.yaml").write_text(yaml.safe_dump(read | {"hosts": chosen}))
    scenario = SCENARIO.format(name=name, brokers=len(machines) - 1, lasts=lasts)
    (folder / f"{name}-story.yaml").write_text(scenario)


def heard(backends: Backends, log: list[str]) -> Backends:
    """Backends with real recorders; the log has the start and the events of each."""

    def recorder(order: Order, file: Path, report: Callable[[Event], None]) -> Recording:
        name = Path(order.written).stem.removesuffix("-story")

        def hear(event: Event) -> None:
            log.append(f"{name} {event.text if event.kind == 'phase' else event.kind}")
            report(event)

        log.append(f"{name} looks")
        return backends.recorder(order, file, hear)

    return replace(backends, recorder=recorder)


def ended(file: RunFile) -> float:
    return file.origin_unix_ns / 1e9 + file.lasted


def test_a_suite_on_machines_judges_every_run_and_those_that_share_a_machine_come_one_after_the_other(
    inventory: Path, machines: dict[str, Machine], tmp_path: Path, spark: SparkSession, kafka_trial: Invoke
) -> None:
    clean = traces(machines)
    write_story("whole", ["m1", "m2", "m3", "m4"], 8, inventory, tmp_path)
    write_story("left", ["m1", "m2"], 6, inventory, tmp_path)
    write_story("right", ["m3", "m4"], 5, inventory, tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE)
    store, log = tmp_path / "store", list[str]()
    done = kafka_trial("suite", tmp_path / "suite.yaml", "--store", store, backends=heard(Backends(), log))
    (directory,) = stored_suites(store)
    runs = SuiteFile.read(directory).runs
    # (One broker alone on a busy host may be silent for so long that nobody can tell: that is a verdict, too.)
    assert sorted(run.name for run in runs if run.outcome in JUDGED) == ["left", "right", "whole"], done.err[-3000:]
    assert [run.anomalies for run in runs] == [{}] * 3
    assert next(run for run in runs if run.name == "whole").verdict == "valid"
    assert done.code in {codes.MET, codes.UNKNOWN}
    files = {run.name: RunFile.read(store / str(run.directory)) for run in runs}
    # (The longest is the first; the cluster of the last comes up while that of the second is read to its end.)
    assert log.index("left looks") > log.index("whole recorded")
    assert (
        log.index("left looks") < log.index("right looks") < log.index("right stands by") < log.index("left timeline")
    )
    assert log.index("left timeline") < log.index("right cluster up") < log.index("left recorded")
    assert ended(files["whole"]) < min(files[name].origin_unix_ns / 1e9 for name in ("left", "right"))
    assert all(file.notes == [] for file in files.values())
    assert traces(machines) == clean


def test_a_suite_that_names_a_machine_by_two_addresses_is_refused_before_it_begins(
    inventory: Path, machines: dict[str, Machine], tmp_path: Path, kafka_trial: Invoke
) -> None:
    write_story("left", ["m1", "m2"], 6, inventory, tmp_path)
    write_story("right", ["m1", "m3"], 5, inventory, tmp_path)
    right, known, address = tmp_path / "right-machines.yaml", tmp_path / "known_hosts", machines["m1"].host.address
    right.write_text(right.read_text().replace(address, SECOND))
    known.write_text(known.read_text() + known.read_text().replace(f"{address} ", f"{SECOND} "))
    machines["m1"].run(f"ip addr add {SECOND}/24 dev eth0", "give it a second address")
    try:
        done = kafka_trial("suite", tmp_path / "*-story.yaml", "--store", tmp_path / "store")
    finally:
        machines["m1"].run(f"ip addr del {SECOND}/24 dev eth0", "take it away")
    said = (
        f"{address} (m1) of {tmp_path}/left-machines.yaml and {SECOND} (m1) of {right} are one machine: name it by one"
    )
    assert_one_line(done, codes.BAD_INPUT, said)
    assert not (tmp_path / "store").exists()


def test_resume_runs_a_scenario_once_its_missing_machine_is_back(
    inventory: Path, machines: dict[str, Machine], tmp_path: Path, spark: SparkSession, kafka_trial: Invoke
) -> None:
    clean = traces(machines)
    write_story("left", ["m1", "m4"], 5, inventory, tmp_path)
    arguments = ("suite", tmp_path / "left-story.yaml", "--store", tmp_path / "store")
    lab("kill", "4")
    try:
        done = kafka_trial(*arguments)
    finally:
        lab("up", "4")
    (directory,) = stored_suites(tmp_path / "store")
    (run,) = SuiteFile.read(directory).runs
    assert (done.code, run.outcome, run.directory) == (codes.CANNOT_RUN, RunOutcome.CANNOT_RUN, None)
    assert run.why.startswith("m4: ")
    again = kafka_trial(*arguments, "--resume")
    (run,) = SuiteFile.read(directory).runs
    assert run.outcome in JUDGED, again.err[-3000:]
    assert again.code in {codes.MET, codes.UNKNOWN}
    assert traces(machines) == clean
