"""Whole runs on machines, as a user runs them: the same scenarios, and the same verdicts as on containers."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import ClusterError
from harness.core.waiting import wait_for
from harness.history.run_file import RunFile
from harness.providers.ssh.machine import Machine
from tests.cluster.test_scenarios import keeps, loses

from .conftest import LAB, lab, traces

pytestmark = pytest.mark.lab

ROOT = LAB.parents[1]


def kafka_trial(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    run = "import sys; from harness.cli.main import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", run, *map(str, arguments)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == code, done.stderr[-3000:] + done.stdout[-1000:]
    return done


def played(scenario: str, inventory: Path, store: Path, *more: object, code: int = 0) -> dict[str, Any]:
    """The verdict of a scenario that was run on machines."""
    where = ("--machines", inventory, "--store", store, "--seed", "1", "--json")
    verdict: dict[str, Any] = json.loads(kafka_trial("run", scenario, *where, *more, code=code).stdout)
    return verdict


def run_of(store: Path) -> RunFile:
    (file,) = store.rglob("run.json")
    return RunFile.read(file.parent)


@pytest.mark.core
def test_the_scenario_of_2013_loses_as_it_does_on_containers(
    inventory: Path, machines: dict[str, Machine], tmp_path: Path
) -> None:
    clean = traces(machines)
    verdict = played("jepsen-2013/unclean-election", inventory, tmp_path)
    loses(verdict)
    assert all(fault["effective"] for fault in verdict["faults"])
    file = run_of(tmp_path)
    assert file.notes == []
    assert {node.address for node in file.nodes if node.role == "broker"} <= {m.host.address for m in machines.values()}
    assert {clock.node for clock in file.clocks} == {"b1", "b2", "b3", "c1"}
    assert all(clock.error_s < 1 for clock in file.clocks)
    (directory,) = (path.parent for path in tmp_path.rglob("run.json"))
    assert {path.name for path in (directory / "logs").glob("?1.log")} == {"b1.log", "c1.log"}
    assert "Kafka Server started" in (directory / "logs" / "b1.log").read_text()
    secret = (inventory.parent / "id").read_bytes().splitlines()[1]
    assert all(secret not in path.read_bytes() for path in directory.rglob("*") if path.is_file())
    assert traces(machines) == clean


def test_its_remedy_keeps_everything(inventory: Path, machines: dict[str, Machine], tmp_path: Path) -> None:
    clean = traces(machines)
    keeps(played("jepsen-2013/min-isr-2", inventory, tmp_path))
    assert traces(machines) == clean


def test_with_zookeeper_and_an_older_version_too(inventory: Path, machines: dict[str, Machine], tmp_path: Path) -> None:
    clean = traces(machines)
    changes = ("cluster.version=2.8.2", "cluster.metadata=zookeeper", "cluster.controllers=null")
    older = [word for change in changes for word in ("--set", change)]
    verdict = played("lose-messages/leader-isolated-acks-all", inventory, tmp_path, *older)
    keeps(verdict)
    assert verdict["faults"][0]["effective"]
    assert {node.name for node in run_of(tmp_path).nodes} == {"b1", "b2", "b3", "z1", "clients"}
    assert traces(machines) == clean


@pytest.mark.core
def test_doctor_finds_every_machine_and_every_fault(inventory: Path) -> None:
    said = kafka_trial("doctor", "--machines", inventory).stdout.splitlines()
    assert all(line.startswith("ok ") for line in said), said
    assert re.search(r"^ok +m1 +Linux 6\S+, openjdk version \"17.*, clock [+-]\d+ ms ± \d+ ms$", said[1])


@pytest.mark.core
def test_a_host_key_that_changed_is_refused(inventory: Path, tmp_path: Path) -> None:
    for name in ("lab.yaml", "id", "known_hosts"):
        shutil.copy(inventory.parent / name, tmp_path)
    known = (tmp_path / "known_hosts").read_text().splitlines()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    other = (tmp_path / "other.pub").read_text().split()[1]
    known[1] = " ".join([*known[1].split()[:2], other])
    (tmp_path / "known_hosts").write_text("".join(f"{line}\n" for line in known))
    where = ("--machines", tmp_path / "lab.yaml", "--store", tmp_path / "store", "--accept-new")
    done = kafka_trial("run", "jepsen-2013/min-isr-2", *where, code=3)
    assert re.search(r"^kafka-trial: m2: its host key has CHANGED to SHA256:", done.stderr, re.MULTILINE)
    assert not (tmp_path / "store").exists()


def test_a_user_who_becomes_root_by_sudo_can_do_the_same(
    inventory: Path, machines: dict[str, Machine], tmp_path: Path
) -> None:
    clean = traces(machines)
    for name in ("id", "known_hosts"):
        shutil.copy(inventory.parent / name, tmp_path)
    text = inventory.read_text().replace("{user: root, key: id}", "{user: trial, key: id, become: sudo}")
    (tmp_path / "lab.yaml").write_text(text)
    keeps(played("jepsen-2013/min-isr-2", tmp_path / "lab.yaml", tmp_path / "store"))
    assert traces(machines) == clean


#: A broker's machine goes for good while another broker is cut off.
GONE = """
name: gone
timeline:
  - inject: {fault: isolate, target: b1, as: alone}
  - inject: {fault: slow, target: b2, delay: 50ms, as: late}
  - wait: 12s
  - heal: all
"""


def test_a_machine_that_is_gone_in_the_middle_makes_it_unknown_and_all_else_is_healed(
    inventory: Path, machines: dict[str, Machine], tmp_path: Path
) -> None:
    clean = traces(machines)
    scenario = tmp_path / "gone.yaml"
    scenario.write_text(GONE)
    cut = threading.Thread(target=_cut_power_when, args=(machines, "KT-", "3"))
    cut.start()
    try:
        verdict = played(str(scenario), inventory, tmp_path / "store", code=2)
    finally:
        cut.join()
        lab("up", "4")
    assert verdict["verdict"] == "unknown"
    assert any("b3" in reason or "ISR" in reason for reason in verdict["reasons"]), verdict["reasons"]
    assert any("m3" in note for note in run_of(tmp_path / "store").notes)
    assert {name: now for name, now in traces(machines).items() if name != "m3"} == {
        name: before for name, before in clean.items() if name != "m3"
    }
    kafka_trial("cleanup", "--machines", inventory)
    assert traces(machines) == clean


def _cut_power_when(machines: dict[str, Machine], there: str, number: str) -> None:
    """Cut the power of a machine as soon as there are rules of a fault on the first."""
    wait_for(
        lambda: machines["m1"].run("iptables-save || true", "look"), "the fault", 200, good=lambda now: there in now
    )
    lab("kill", number)


#: All lasts long: nobody heals it in time.
LONG = """
name: abandoned
timeline:
  - inject: {fault: isolate, target: b1, as: alone}
  - inject: {fault: pause, target: b2, as: asleep}
  - wait: 10s
  - heal: all
"""


def test_a_run_that_was_killed_leaves_machines_that_heal_themselves_and_cleanup_removes_the_rest(
    inventory: Path, machines: dict[str, Machine], tmp_path: Path
) -> None:
    clean = traces(machines)
    for name in ("id", "known_hosts"):
        shutil.copy(inventory.parent / name, tmp_path)
    own = tmp_path / "lab.yaml"
    own.write_text(f"heals_after: 30s\n{inventory.read_text()}")
    scenario = tmp_path / "abandoned.yaml"
    scenario.write_text(LONG)
    run = "import sys; from harness.cli.main import main; main(sys.argv[1:])"
    asked = [sys.executable, "-c", run, "run", scenario, "--machines", own, "--store", tmp_path / "store"]
    with subprocess.Popen(
        [*map(str, asked)], cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as harness:
        wait_for(lambda: _state_of(machines["m2"]), "the pause", 200, good=lambda state: state == "T")
        harness.send_signal(signal.SIGKILL)
    assert "KT-" in traces(machines)["m1"]
    wait_for(lambda: _state_of(machines["m2"]), "the pause to end", 150, good=lambda state: state not in {"T", ""})
    wait_for(lambda: "KT-" not in traces(machines)["m1"], "the rules to go", 40)
    assert "kafka.Kafka" in traces(machines)["m1"]
    kafka_trial("run", "jepsen-2013/min-isr-2", "--machines", inventory, "--store", tmp_path / "other", code=3)
    kafka_trial("cleanup", "--machines", inventory)
    assert traces(machines) == clean
    assert _state_of(machines["m2"]) == ""


def _state_of(machine: Machine) -> str:
    """That of Kafka's process; nothing where there is none."""
    try:
        said = machine.run("read -r pid rest </var/lib/kafka-trial/node/pid && cat /proc/$pid/stat", "look")
    except ClusterError:
        return ""
    return said.rpartition(")")[2].split()[0]
