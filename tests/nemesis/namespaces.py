"""Nodes that are processes in network namespaces of this machine: what faults do to them, in a moment and without
Docker. They need root, as the nodes' containers give it to the toolbox."""

import os
import shutil
import signal as signals
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.core.errors import ClusterError
from harness.core.topology import Node, Role, Topology
from harness.core.waiting import wait_for
from nemesis.mechanisms import netem
from nemesis.shell import ProcessState, Signal, Switch

PORTS = (9092, 9093, 9094)
ADDRESSES = tuple(f"10.251.77.{i}" for i in (1, 2, 3))

#: Greets everybody as it starts; then it takes what it is sent, on every port of a node, and says nothing.
MAIN = f"""
import contextlib, selectors, socket
for address in {list(ADDRESSES)}:
    with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as greeting:
        greeting.sendto(bytes(9), (address, 9))
ready = selectors.DefaultSelector()
for port in {PORTS}:
    ready.register(socket.create_server(("0.0.0.0", port)), selectors.EVENT_READ, None)
while True:
    for key, _ in ready.select():
        if key.data is None:
            ready.register(key.fileobj.accept()[0], selectors.EVENT_READ, key.fileobj)
        elif not key.fileobj.recv(1 << 20):
            ready.unregister(key.fileobj)
            key.fileobj.close()
"""


class NamespaceShell:
    """A ``NodeShell`` whose nodes are processes, each in a network namespace that ends with it, on one bridge.

    ``sh``: what scripts are run by. ``speak`` has a node send bytes to another one's port. ``control`` is the port over
    which the harness would reach the nodes' machines.
    """

    network_ends_with_process = True

    def __init__(self, directory: Path, control: int | None = None) -> None:
        self.sh = ["sh"]
        self._hub = f"kt-{uuid.uuid4().hex[:6]}"
        self._directory = directory
        nodes = tuple(Node(f"b{i}", Role.BROKER, i, address, control=control) for i, address in enumerate(ADDRESSES, 1))
        self.topology = Topology(nodes, Node("clients", Role.CLIENTS, 0, "10.251.77.254"))
        self._processes: dict[Node, subprocess.Popen[bytes]] = {}
        self._helpers: dict[tuple[Node, str], subprocess.Popen[bytes]] = {}

    def up(self) -> None:
        """Create the bridge, which stands for the clients' machine, and start all nodes."""
        _run(f"ip netns add {self._hub}")
        _run(
            f"ip -n {self._hub} link add hub0 type bridge; ip -n {self._hub} link set hub0 up;"
            f" ip -n {self._hub} addr add {self.topology.clients.address}/24 dev hub0"
        )
        for node in self.topology.nodes:
            self._data(node).mkdir()
            self.start(node)
            self.release(node)
        for node in self.topology.nodes:
            self.listens(node)

    def down(self) -> None:
        """End every process and namespace."""
        for node in self._processes:
            self.signal(node, "KILL")
            self._ended(node)
        _run(f"ip netns del {self._hub}")

    def lasting(self, seconds: float) -> "NamespaceShell":
        return self

    def in_network_of(self, node: Node, script: str, arm: Switch | None = None, disarm: str | None = None) -> str:
        if self.process(node) is ProcessState.EXITED:
            raise ClusterError(f"{node.name}: network script failed: no such namespace")
        command = ["ip", "netns", "exec", self._namespace(node), *self.sh, "-euc", script]
        return _said(command, f"{node.name}: network script")

    def start_helper(self, node: Node, name: str, script: str) -> None:
        self.stop_helper(node, name)
        command = ["ip", "netns", "exec", self._namespace(node), *self.sh, "-euc", script]
        self._helpers[node, name] = subprocess.Popen(command)

    def helper_runs(self, node: Node, name: str) -> bool:
        helper = self._helpers.get((node, name))
        return helper is not None and helper.poll() is None

    def helper(self, node: Node, name: str) -> subprocess.Popen[bytes]:
        """The process of a helper."""
        return self._helpers[node, name]

    def stop_helper(self, node: Node, name: str) -> None:
        helper = self._helpers.pop((node, name), None)
        if helper is not None:
            helper.kill()
            helper.wait(10)

    def signal(self, node: Node, signal: Signal) -> None:
        self._processes[node].send_signal(getattr(signals, f"SIG{signal}"))

    def start(self, node: Node) -> None:
        if node in self._processes and self.process(node) is not ProcessState.EXITED:
            return
        name, hub = self._namespace(node), self._hub
        _run(
            f"ip netns add {name}; ip -n {name} link add eth0 type veth peer name {node.name} netns {hub};"
            f" ip -n {name} link set lo up; ip -n {name} addr add {node.address}/24 dev eth0;"
            f" ip -n {name} link set eth0 up; ip -n {hub} link set {node.name} master hub0 up"
        )
        self._held(node).touch()
        (self._data(node) / "log").write_text("data")
        main = f'while [ -e {self._held(node)} ]; do sleep 0.01; done; exec python3 -S -c "$0"'
        self._processes[node] = subprocess.Popen(["ip", "netns", "exec", name, "sh", "-c", main, MAIN])

    def release(self, node: Node) -> None:
        self._held(node).unlink(missing_ok=True)

    def stop(self, node: Node, grace: float) -> None:
        self._processes[node].send_signal(signals.SIGTERM)
        try:
            self._processes[node].wait(grace)
        except subprocess.TimeoutExpired:
            self._processes[node].kill()
        self._ended(node)

    def exit_code(self, node: Node) -> int:
        code = self._processes[node].returncode
        return code if code >= 0 else 128 - code

    def process(self, node: Node) -> ProcessState:
        running = self._processes[node]
        if running.poll() is not None:
            self._ended(node)
            return ProcessState.EXITED
        state = Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return ProcessState.STOPPED if state == "T" else ProcessState.RUNNING

    def wipe(self, node: Node) -> int:
        files = [path for path in self._data(node).iterdir() if path.is_file()]
        for path in files:
            path.unlink()
        return len(files)

    def scratch(self, script: str) -> str:
        """Run a script in a network namespace that is thrown away."""
        return _said(["unshare", "--net", "sh", "-euc", script], "trial")

    def speak(self, sender: Node, receiver: Node, size: int, port: int = 9094, seconds: float = 1.0) -> bool:
        """Have ``sender`` send ``size`` bytes to a port of ``receiver``, or as many of them as so many seconds let.

        Returns whether it sent them all.
        """
        send = f"timeout {seconds} bash -c 'head -c {size} /dev/zero >/dev/tcp/{receiver.address}/{port}'"
        name = self._hub if sender.role is Role.CLIENTS else self._namespace(sender)
        return _in(name, f"{send} && echo sent || true", f"{sender.name} speaks").strip() == "sent"

    def traces(self) -> dict[str, str]:
        """All that a fault could leave in the nodes' network namespaces."""
        look = "iptables-save | grep KT || true; tc qdisc show; ip -o link | cut -d: -f2 | cut -d@ -f1"
        return {node.name: self.in_network_of(node, look) for node in self.topology.nodes}

    def listens(self, node: Node) -> None:
        """Wait until a node's process has come so far."""
        script = "ss -Hltn | grep -c ':909[234] ' || true"
        wait_for(
            lambda: _in(self._namespace(node), script, "ss").strip() == "3", f"{node.name} to listen", 10, every=0.02
        )

    def _ended(self, node: Node) -> None:
        """Remove the namespace of a process that has ended. (Its link would outlive the namespace for a moment.)"""
        self._processes[node].wait(10)
        name = self._namespace(node)
        _run(f"ip -n {self._hub} link del {node.name} 2>/dev/null || true; ip netns del {name} 2>/dev/null || true")

    def _namespace(self, node: Node) -> str:
        return f"{self._hub}-{node.name}"

    def _held(self, node: Node) -> Path:
        return self._directory / f"{node.name}.held"

    def _data(self, node: Node) -> Path:
        return self._directory / node.name


@contextmanager
def namespaces(control: int | None = None) -> Iterator[NamespaceShell]:
    """Three nodes that run, and nothing of them afterwards."""
    directory = Path(tempfile.mkdtemp())
    shell = NamespaceShell(directory, control)
    try:
        shell.up()
        yield shell
    finally:
        shell.down()
        shutil.rmtree(directory)


def possible() -> bool:
    """Whether this process may make network namespaces."""
    return os.geteuid() == 0 and all(shutil.which(tool) for tool in ("ip", "tc", "iptables", "ss", "unshare"))


def has_netem() -> bool:
    """Whether this machine's kernel has it."""
    tried = ["unshare", "--net", "sh", "-c", netem.Delay(1.0).probe]
    return possible() and subprocess.run(tried, capture_output=True, check=False).returncode == 0


def _run(script: str) -> str:
    return _said(["sh", "-euc", script], "namespaces")


def _in(namespace: str, script: str, doing: str) -> str:
    return _said(["ip", "netns", "exec", namespace, "sh", "-euc", script], doing)


def _said(command: list[str], doing: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"{doing} failed: {(done.stderr.strip().splitlines() or ['it said nothing'])[-1]}")
    return done.stdout
