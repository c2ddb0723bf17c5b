"""Every fault of the catalogue on machines with kernels of their own: it takes effect, says so, and leaves nothing."""

import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from harness.core.errors import ClusterError
from harness.core.topology import Plane
from harness.core.waiting import wait_for
from harness.history.journal import Journal
from harness.history.schema import FAULTS as SCHEMA
from harness.providers.ssh.machine import Machine
from nemesis.catalogue import FAULTS
from nemesis.preflight import lacking
from nemesis.shell import ProcessState
from tests.cluster.test_faults import TRIALS
from tests.nemesis.conftest import again_and_again, nemesis_on, rows_by_name
from tests.nemesis.test_control import WORST

from .conftest import CountingShell, OnMachines, connects, lab, traces

pytestmark = pytest.mark.lab

#: The others take as long, and hit the same traffic by the same queues.
CORE = ("partition", "isolate", "slow")


#: Scripts that an injection sends to a machine at most, where it is not one: a process is looked at before and after,
#: and until it has ended. (What waits for a node's own start or end sends as many as that takes.)
SCRIPTS = {"kill": 6, "pause": 4, "resume": 4, "wipe": 4, **dict.fromkeys(("start", "stop", "restart"), 40)}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "faults.nemesis.arrows", SCHEMA) as journal:
        yield journal


@pytest.mark.core
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_takes_effect_and_heals_to_nothing(kind: str, plain: OnMachines, journal: Journal) -> None:
    trial = TRIALS[kind]
    fault = FAULTS[kind].model_validate(trial.fault)
    assert lacking([fault.needs], plain.try_script) == [], "a machine of the lab can have every fault"
    clean = plain.traces()
    # (What netem lets overtake is seen only while its queue is looked at.)
    pinging = again_and_again(lambda: plain.pinged("b1", "b2", count=100))
    with pinging if kind == "reorder" else nullcontext(), nemesis_on(plain.shell, journal) as nemesis:
        nemesis.within = 60.0
        for earlier, parameters in trial.before:
            nemesis.inject(FAULTS[earlier].model_validate(parameters))
        sent = cast(CountingShell, plain.shell).sent
        before = Counter(sent)
        name = nemesis.inject(fault)
        scripts = sent - before
        assert trial.shows(plain)
    assert max(scripts.values()) <= SCRIPTS.get(kind, 1), "each costs a small machine a tenth of a second"
    rows = rows_by_name(journal)
    assert all(row["effective"] and row["healed_ns"] >= row["healing_ns"] for row in rows.values()), rows
    assert rows[name]["nodes"] == (["b1", "b2"] if kind == "partition" else ["b1"])
    assert set(plain.states().values()) == {ProcessState.RUNNING}
    assert plain.traces() == clean


@pytest.mark.core
def test_everybody_hears_everybody_afterwards(plain: OnMachines) -> None:
    assert all(plain.answered(count=5).values())


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.core if kind in CORE else ()) for kind in WORST])
def test_the_harness_still_talks_to_every_machine(kind: str, plain: OnMachines, journal: Journal) -> None:
    """At its worst, on all nodes, for longer than a silent connection would be taken for alive."""
    clean = plain.traces()
    with nemesis_on(plain.shell, journal) as nemesis:
        nemesis.inject(FAULTS[kind].model_validate(WORST[kind]), "it")
        over = time.monotonic() + 3
        while time.monotonic() < over:
            assert set(plain.states().values()) == {ProcessState.RUNNING}
        assert nemesis.active
    assert plain.traces() == clean


#: Injects faults as a run does, and waits to be killed.
ABANDON = """
import json, sys, time
from pathlib import Path
from random import Random
from harness.core.clock import Clock
from harness.core.topology import View
from harness.history.journal import Journal
from harness.history.schema import FAULTS as SCHEMA
from harness.providers.ssh.fleet import connected
from harness.providers.ssh.inventory import read_inventory
from harness.providers.ssh.machine import KnownHosts
from harness.providers.ssh.shell import SshShell
from nemesis.catalogue import FAULTS
from nemesis.nemesis import Nemesis
from tests.lab.conftest import topology_of

inventory, scratch, within, faults = sys.argv[1:]
read = read_inventory(Path(inventory))
hosts = {host.called: host for host in read.hosts[:3]}
with connected(hosts, KnownHosts(Path(read.known_hosts), False, print)) as machines:
    topology = topology_of(machines, read)
    by_node = dict(zip((node.name for node in topology.nodes), machines.values()))
    shell = SshShell(topology, by_node, heals_after=2.0)
    b1, b2, b3 = topology.nodes
    view = View(leader=b1, replicas=(b1, b2, b3), isr=(b1, b2, b3), controller=b3)
    with Journal(Path(scratch), SCHEMA) as journal:
        nemesis = Nemesis(shell, lambda: view, journal, Clock.start(), Random(0))
        nemesis.within = float(within)
        for kind, written in json.loads(faults):
            nemesis.inject(FAULTS[kind].model_validate(written))
        print("injected", flush=True)
        time.sleep(600)
"""


Written = list[tuple[str, dict[str, Any]]]


@contextmanager
def injecting(inventory: Path, scratch: Path, within: float, faults: Written) -> Iterator[subprocess.Popen[str]]:
    """A harness that has injected faults and sits there; killed in the end."""
    journal = scratch / "faults.nemesis.arrows"
    command = [sys.executable, "-c", ABANDON, str(inventory), str(journal), str(within), json.dumps(faults)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as harness:
        try:
            assert harness.stdout is not None
            assert harness.stdout.readline() == "injected\n"
            yield harness
        finally:
            harness.kill()


def abandoned(inventory: Path, scratch: Path, within: float, faults: Written) -> None:
    """Faults whose harness is gone: it was killed by SIGKILL."""
    with injecting(inventory, scratch, within, faults):
        pass


@pytest.mark.core
def test_machines_whose_harness_was_killed_heal_themselves(
    plain: OnMachines, machines: dict[str, Machine], inventory: Path, tmp_path: Path
) -> None:
    clean, running = traces(machines), plain.states()
    faults: Written = [
        ("partition", {"from": "b1", "to": ["b2", "clients"]}),
        ("slow", {"target": "b2", "delay": "100ms"}),
        ("pause", {"target": "b2"}),
        ("kill", {"target": "b3"}),
    ]
    abandoned(inventory, tmp_path, within=8.0, faults=faults)
    assert plain.states() == {"b1": ProcessState.RUNNING, "b2": ProcessState.STOPPED, "b3": ProcessState.EXITED}
    assert "KT-" in traces(machines)["m1"]
    wait_for(lambda: traces(machines), "nothing of it to be left", 60, good=lambda now: now == clean, every=0.5)
    assert plain.states() == running
    assert all(plain.answered(count=5).values())


def test_machines_whose_harness_is_cut_off_heal_themselves(
    plain: OnMachines, machines: dict[str, Machine], inventory: Path, tmp_path: Path
) -> None:
    """It lives, and reaches none of them: nothing of what they do is its doing."""
    clean, running = traces(machines), plain.states()
    faults: Written = [
        ("partition", {"from": "b1", "to": ["b2", "clients"]}),
        ("pause", {"target": "b2"}),
        ("kill", {"target": "b3"}),
    ]
    with injecting(inventory, tmp_path, 10.0, faults) as harness:
        with cut_off(machines):
            assert not answers(machines["m1"]), "the fault holds"
            wait_for(lambda: answers(machines["m1"]), "the first machine to heal itself", 60, every=0.5)
        assert harness.poll() is None
        wait_for(lambda: traces(machines), "nothing of it to be left", 30, good=lambda now: now == clean, every=0.5)
        assert plain.states() == running


@contextmanager
def cut_off(machines: dict[str, Machine]) -> Iterator[None]:
    """Nothing goes from this host to the machines' sshd, whoever sends it."""
    rules = [["OUTPUT", "-d", it.host.address, "-p", "tcp", "--dport", "22", "-j", "DROP"] for it in machines.values()]
    for rule in rules:
        subprocess.run(["iptables", "-w", "-I", *rule], check=True)
    try:
        yield
    finally:
        for rule in rules:
            subprocess.run(["iptables", "-w", "-D", *rule], check=True)


def answers(machine: Machine) -> bool:
    """Whether a port of a machine, on which nothing listens, says so to this host."""
    try:
        socket.create_connection((machine.host.address, 9), timeout=1).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    raise AssertionError("something listens there")


#: Each kind that netem has, no two of them in one queue, and the one that duplicates on a node of its own.
BY_NETEM: Written = [
    ("slow", {"target": "b1", "delay": "300ms", "plane": "replication"}),
    ("flaky", {"target": "b1", "loss": "20%", "correlation": "50%", "plane": "client"}),
    ("reorder", {"target": "b1", "share": "25%", "plane": "controller"}),
    ("corrupt", {"target": "b2", "share": "20%", "plane": "client"}),
    ("duplicate", {"target": "b3", "share": "20%", "plane": "replication"}),
]


def queues(plain: OnMachines) -> dict[str, list[str]]:
    """What netem does on each machine that has a node, as tc says it."""
    said = {node.name: plain.shell.in_network_of(node, "tc qdisc show") for node in plain.shell.topology.nodes}
    return {name: [line for line in text.splitlines() if " netem " in line] for name, text in said.items()}


def test_a_kernel_has_a_netem_that_duplicates_beside_no_other(plain: OnMachines) -> None:
    """So that a scenario is refused before it begins (``Fault.clashes``). One day kernels may allow it again."""
    add = "tc qdisc add dev lo root handle 1: prio; tc qdisc add dev lo parent 1:1 netem"
    for one, other in (("delay 1ms", "duplicate 5%"), ("duplicate 5%", "delay 1ms"), ("duplicate 5%", "duplicate 5%")):
        with pytest.raises(ClusterError, match="cannot mix duplicating netems with other netems in tree"):
            plain.try_script(f"{add} {one}; tc qdisc add dev lo parent 1:2 netem {other}")
    plain.try_script(f"{add} duplicate 5%; tc qdisc add dev lo parent 1:2 tbf rate 1mbit burst 3028 limit 9000")


def test_netem_faults_survive_a_restart_and_end_with_their_heal(plain: OnMachines, journal: Journal) -> None:
    clean = plain.traces()
    with nemesis_on(plain.shell, journal) as nemesis:
        for kind, written in BY_NETEM:
            nemesis.inject(FAULTS[kind].model_validate(written), kind)
        before = queues(plain)
        assert {name: len(lines) for name, lines in before.items()} == {"b1": 3, "b2": 1, "b3": 1}
        for node in ("b1", "b2", "b3"):
            nemesis.inject(FAULTS["restart"].model_validate({"target": node}))
        assert queues(plain) == before
        assert connects(plain, Plane.REPLICATION) >= 300
        assert set(plain.states().values()) == {ProcessState.RUNNING}
        for kind, _ in reversed(BY_NETEM):
            nemesis.heal(kind)
            nemesis.inject(FAULTS["restart"].model_validate({"target": "b1"}))
        assert queues(plain) == {"b1": [], "b2": [], "b3": []}, "a restart brings nothing back"
    assert plain.traces() == clean
    rows = rows_by_name(journal)
    evidence = {kind: json.loads(rows[kind]["evidence"])["healing"] for kind, _ in BY_NETEM}
    assert {facts["by"] for seen in evidence.values() for facts in seen.values()} == {"netem"}


def test_a_machine_that_is_booted_anew_under_a_fault_is_healed_and_its_node_started(
    plain: OnMachines, machines: dict[str, Machine], journal: Journal
) -> None:
    """Its rules and queues went with its kernel, and so did the processes of its switches."""
    clean = plain.traces()
    machines["m3"].run("sync", "keep what was written")
    with nemesis_on(plain.shell, journal) as nemesis:
        nemesis.within = 60.0
        for kind, written in (
            ("isolate", {"target": "b3", "clients": False}),
            ("slow", {"target": "b3", "delay": "50ms"}),
            ("kill", {"target": "b3"}),
        ):
            nemesis.inject(FAULTS[kind].model_validate(written), kind)
        lab("kill", "3")
        lab("up", "4")
        assert plain.states()["b3"] is ProcessState.EXITED
        nemesis.heal_all()
        assert nemesis.active == ()
        assert plain.states()["b3"] is ProcessState.RUNNING
    assert plain.traces() == clean
    assert "switches/" not in traces(machines)["m3"]
    assert all(plain.answered(count=5).values())
