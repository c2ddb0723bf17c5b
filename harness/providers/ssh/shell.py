"""Acts on nodes that are processes on machines reached by SSH."""

import copy
from collections.abc import Mapping
from typing import ClassVar

from harness.core.errors import ClusterError
from harness.core.topology import Node, Topology
from harness.providers.ssh import text
from harness.providers.ssh.machine import Machine
from harness.providers.ssh.text import MachinePaths
from nemesis.shell import ProcessState, Signal, Switch

#: The switch that undoes what was done to a node's process. A node has one at a time.
_PROCESS = text.PROCESS_SWITCH


class SshShell:
    """A ``nemesis.shell.NodeShell`` for nodes that are processes on machines.

    Takes the machine of each node by the node's name; the seconds after a timeline's last deadline until the machine
    itself undoes a change; and the owner's line of the run's nodes: nodes of other runs are left alone. A node's
    network is its machine's network: what a fault puts there outlives the node's process, and is put there once.
    """

    network_ends_with_process: ClassVar[bool] = False

    def __init__(
        self, topology: Topology, machines: Mapping[str, Machine], heals_after: float, owner: str | None = None
    ) -> None:
        self.topology = topology
        self._machines = dict(machines)
        self._heals_after = heals_after
        self._owner = owner
        self._armed_for: float | None = None

    def lasting(self, seconds: float) -> "SshShell":
        """The same shell, but it arms a switch on the machine before each change."""
        shell = copy.copy(self)
        shell._armed_for = seconds + self._heals_after
        return shell

    def in_network_of(self, node: Node, script: str, arm: Switch | None = None, disarm: str | None = None) -> str:
        """Run a script as root of the node's machine."""
        paths = self._paths(node)
        steps = [script]
        if arm is not None:
            steps.insert(0, self._arming(node, arm.name, arm.undo + text.stop_helper(paths, arm.name)))
        if disarm is not None:
            steps.append(text.disarm(paths, disarm))
        return self._run(node, "network script", "".join(steps))

    def start_helper(self, node: Node, name: str, script: str) -> None:
        """Run a script in its own process group on the node's machine, until it is stopped."""
        self._run(node, f"start helper {name}", text.start_helper(self._paths(node), name, script))

    def helper_runs(self, node: Node, name: str) -> bool:
        """Whether the first process of that group runs."""
        said = self._run(node, f"look at helper {name}", text.helper(self._paths(node), name))
        return ProcessState(said.strip()) is not ProcessState.EXITED

    def stop_helper(self, node: Node, name: str) -> None:
        """End that process group."""
        self._run(node, f"stop helper {name}", text.stop_helper(self._paths(node), name))

    def signal(self, node: Node, signal: Signal) -> None:
        """Send a signal to the node's process group."""
        paths = self._paths(node)
        script = text.signal(paths, signal)
        if signal == "CONT":
            script += text.disarm(paths, _PROCESS)
        else:
            undo = text.go_on(paths) if signal == "STOP" else text.start(paths, held=False)
            script = self._arming(node, _PROCESS, undo) + script
        self._run(node, f"SIG{signal}", script, again=False)

    def start(self, node: Node) -> None:
        """Start the node's process, which then waits for ``release``. A running process is left alone."""
        self._run(node, "start", text.start(self._paths(node), held=True))

    def release(self, node: Node) -> None:
        """Let the node's process continue."""
        paths = self._paths(node)
        self._run(node, "release it", text.release(paths) + text.disarm(paths, _PROCESS))

    def stop(self, node: Node, grace: float) -> None:
        """Send SIGTERM; after ``grace`` seconds SIGKILL to what has not exited."""
        paths = self._paths(node)
        undo = self._arming(node, _PROCESS, text.start(paths, held=False))
        self._run(node, "stop", undo + text.stop(paths, grace), within=grace + 60.0)

    def process(self, node: Node) -> ProcessState:
        """The present state of the node's process. After a reboot of the machine it has exited."""
        return ProcessState(self._run(node, "look at its process", text.process(self._paths(node))).strip())

    def exit_code(self, node: Node) -> int:
        """The exit code of the node's process."""
        code = self._run(node, "look at its process", text.exit_code(self._paths(node))).strip()
        if not code:
            raise ClusterError(f"{node.name}: the exit code of its process is unknown: its machine was down")
        return int(code)

    def wipe(self, node: Node) -> int:
        """Delete the data of a node that has exited. Returns the number of files."""
        if self.process(node) is not ProcessState.EXITED:
            raise ClusterError(f"{node.name}: its data cannot be wiped while it runs")
        return int(self._run(node, "delete its data", text.wipe(self._paths(node)), again=False))

    def _arming(self, node: Node, name: str, undo: str) -> str:
        return "" if self._armed_for is None else text.arm(self._paths(node), name, undo, self._armed_for)

    def _paths(self, node: Node) -> MachinePaths:
        return MachinePaths(self._machines[node.name].host.data, self._owner)

    def _run(self, node: Node, doing: str, script: str, within: float = 90.0, again: bool = True) -> str:
        try:
            machine = self._machines[node.name]
        except KeyError:
            raise ClusterError(f"{node.name}: it has no machine") from None
        return machine.run(script, f"{node.name}: {doing}", within, again)
