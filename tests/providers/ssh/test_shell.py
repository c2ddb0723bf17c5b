"""What the shell of machines has them do: which changes arm a switch, and what takes it back."""

from typing import cast

import pytest

from harness.core.errors import ClusterError
from harness.core.topology import Node, Role, Topology
from harness.providers.ssh import text
from harness.providers.ssh.inventory import Host
from harness.providers.ssh.machine import Machine
from harness.providers.ssh.shell import SshShell
from harness.providers.ssh.text import MachinePaths
from nemesis.shell import Switch

B1 = Node("b1", Role.BROKER, 1, "10.0.0.1")
TOPOLOGY = Topology((B1,), Node("clients", Role.CLIENTS, 0, "10.0.0.254"))
PATHS = MachinePaths("/var/lib/kafka-trial")
MARGIN, TIMELINE = 60.0, 30.0


class Recorder:
    """A machine that notes what it is asked to run."""

    def __init__(self) -> None:
        self.host = Host(address="10.0.0.1")
        self.ran: list[str] = []
        self.said = ""

    def run(self, script: str, doing: str, within: float = 0.0, again: bool = True) -> str:
        self.ran.append(script)
        return self.said


@pytest.fixture
def machine() -> Recorder:
    return Recorder()


@pytest.fixture
def shell(machine: Recorder) -> SshShell:
    return SshShell(TOPOLOGY, {"b1": cast(Machine, machine)}, MARGIN)


def arming(name: str, undo: str) -> str:
    return text.arm(PATHS, name, undo, TIMELINE + MARGIN)


def test_a_network_script_arms_its_undoing_before_it_acts(shell: SshShell, machine: Recorder) -> None:
    shell.lasting(TIMELINE).in_network_of(B1, "cut\n", arm=Switch("ab12", "mend\n"))
    assert machine.ran == [arming("ab12", "mend\n" + text.stop_helper(PATHS, "ab12")) + "cut\n"]


def test_its_removal_disarms_it_afterwards(shell: SshShell, machine: Recorder) -> None:
    shell.in_network_of(B1, "mend\n", disarm="ab12")
    assert machine.ran == ["mend\n" + text.disarm(PATHS, "ab12")]


def test_a_shell_that_is_not_lasting_arms_no_switch(shell: SshShell, machine: Recorder) -> None:
    shell.in_network_of(B1, "look\n", arm=Switch("ab12", "mend\n"))
    shell.signal(B1, "STOP")
    assert len(machine.ran) == 2
    assert not any("switches" in script for script in machine.ran)


def test_switches_continue_a_stopped_process_and_start_an_ended_one(shell: SshShell, machine: Recorder) -> None:
    lasting = shell.lasting(TIMELINE)
    lasting.signal(B1, "STOP")
    lasting.signal(B1, "KILL")
    lasting.stop(B1, 10.0)
    go_on, start = text.go_on(PATHS), text.start(PATHS, held=False)
    assert [
        script.startswith(arming(text.PROCESS_SWITCH, undo))
        for script, undo in zip(machine.ran, (go_on, start, start), strict=True)
    ] == [True] * 3
    machine.ran.clear()
    shell.signal(B1, "CONT")
    shell.start(B1)
    shell.release(B1)
    disarmed = text.disarm(PATHS, text.PROCESS_SWITCH)
    # (Between start and release it waits: the switch would let it go on.)
    assert [disarmed in script for script in machine.ran] == [True, False, True]


def test_a_process_whose_end_nobody_saw_has_no_exit_code(shell: SshShell) -> None:
    with pytest.raises(ClusterError, match="b1: the exit code of its process is unknown: its machine was down"):
        shell.exit_code(B1)


@pytest.mark.parametrize(("said", "runs"), [("running\n", True), ("stopped\n", True), ("exited\n", False)])
def test_a_helper_runs_until_it_has_exited(said: str, runs: bool, shell: SshShell, machine: Recorder) -> None:
    machine.said = said
    assert shell.helper_runs(B1, "ab12") is runs
    assert machine.ran == [text.helper(PATHS, "ab12")]
