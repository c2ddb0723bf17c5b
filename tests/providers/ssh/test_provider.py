"""Clusters on machines: what is looked at before anything is started, and what a fresh process removes."""

import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.cluster.spec import ClusterSpec
from harness.core.errors import ClusterError, EnvironmentLacks, HistoryError, ScenarioError
from harness.core.topology import Node, Role, Topology
from harness.history.lock import RecordingLock
from harness.providers.catalogue import PROVIDERS, composed
from harness.providers.ssh import looking, text
from harness.providers.ssh.cleanup import cleaned
from harness.providers.ssh.fleet import connected
from harness.providers.ssh.inventory import Host, Inventory
from harness.providers.ssh.looking import MachineFacts, Owner, java_version
from harness.providers.ssh.machine import KnownHosts
from harness.providers.ssh.provider import Ssh, SshCluster, alone, claimed, keep_logs, topology
from harness.providers.ssh.shell import SshShell
from nemesis.catalogue import FAULTS
from nemesis.preflight import NEEDS, Kernel

from .server import Lab

HERE = "this-host"


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.2" 2022-01-18', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("no such thing", None),
    ],
)
def test_the_version_of_a_java_is_read(said: str, version: int | None) -> None:
    assert java_version(said) == version


def facts(**changed: object) -> MachineFacts:
    well = MachineFacts("10.0.0.254", 22, "Linux 6.1", (), 'openjdk version "17.0.2"', None, frozenset({22}))
    return MachineFacts(**{**vars(well), **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (facts(java=None), "m1: no Java at `java`: install one of 17 or later"),
        (facts(java='java version "1.8.0"'), 'm1: `java` is java version "1.8.0"; Java 17 or later is needed'),
        (facts(missing=("iptables",)), "m1: no iptables: install it (Debian: iptables)"),
        (facts(ports=frozenset({22, 9092})), "m1: port 9092 is taken: end what listens there"),
    ],
)
def test_a_lack_of_a_machine_is_one_line_that_says_what_to_change(found: MachineFacts, line: str) -> None:
    host = Host(address="10.0.0.1", name="m1")
    assert list(facts().lacks(host, Inventory(hosts=[host]).node_ports)) == []
    (said,) = found.lacks(host, Inventory(hosts=[host]).node_ports)
    assert said.startswith(line)


def test_facts_are_parsed_from_the_output_of_a_machine() -> None:
    lines = ("client=10.0.0.254", "control=2222", "kernel=Linux 6.1", "missing= tc ip", 'java=openjdk version "17"')
    said = "\n".join([*lines, "port=0016", "port=2384", "machine=2b41 net:[1]", ""])
    assert MachineFacts.read(said) == MachineFacts(
        "10.0.0.254",
        2222,
        "Linux 6.1",
        ("tc", "ip"),
        'openjdk version "17"',
        None,
        frozenset({22, 9092}),
        "2b41 net:[1]",
    )


QUEUES = {
    "mqprio 8001: dev eth1 root tc 2 map 0 0 1 1\nqueue=             queues:(0:1) (2:3)": {},
    "noqueue 0: dev lo root refcnt 2": {},
    "fq_codel 0: dev eth0 root refcnt 2 limit 10240p": {},
    "fq 8001: dev eth1 root refcnt 2": {},
    "htb 4b54: dev eth0 root refcnt 2 r2q 10": {},
    "netem 1a: dev eth0 parent 4b54:1a limit 100000": {},
    "fq 8001: dev eth0 root refcnt 2": {"htb": "root", "netem": "root", "tbf": "root"},
    "clsact ffff: dev eth0 parent ffff:fff1": {"ifb": "clsact"},
    "ingress ffff: dev eth0 parent ffff:fff1 ----------------": {"ifb": "ingress"},
}


@pytest.mark.parametrize("queue", QUEUES)
def test_a_foreign_queue_is_in_the_way_of_our_own(queue: str) -> None:
    found = MachineFacts.read(f"address=10.0.0.1 eth0\naddress=10.1.0.1 eth1\nqueue=qdisc {queue}\n")
    assert found.taken("10.0.0.1").keys() == QUEUES[queue].keys()
    for need, what in QUEUES[queue].items():
        assert found.taken("10.0.0.1")[need].startswith("eth0 has a queue that is not ours (")
        assert found.taken("10.0.0.1")[need].endswith(f"remove it (tc qdisc del dev eth0 {what})")
    ours = MachineFacts.read(f"address=10.0.0.1 eth0\nqueue=qdisc {queue}\nqueue=qdisc htb 4b54: dev kt-ifb root\n")
    assert "ifb" not in ours.taken("10.0.0.1"), "where our device is, what arrives goes there by our own queue"


@pytest.mark.parametrize(
    ("has", "taken"),
    [("htb netem iptables nfqueue", True), ("htb iptables nfqueue", False), ("iptables", False), ("htb netem", True)],
)
def test_a_queue_of_others_is_reported_where_the_kernel_would_use_it(has: str, taken: bool) -> None:
    def try_script(script: str) -> None:
        if not any(NEEDS[name].script == script for name in has.split()):
            raise ClusterError("failed: no")

    needs = FAULTS["slow"].model_validate({"target": "b1", "delay": "1s"}).needs
    queue = "qdisc fq 8001: dev eth0 root refcnt 2"
    found = facts(devices={"10.0.0.1": "eth0"}, queues=(queue,))
    said = looking.in_the_way(Kernel(try_script), found, "10.0.0.1", [needs])
    assert said == ["eth0 has a queue that is not ours (fq 8001:): remove it (tc qdisc del dev eth0 root)"] * taken


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("10.0.0.1", None),
        ("10.0.0.9", "it does not have the address 10.0.0.9 itself (it has 10.0.0.1, 10.1.0.1, 10.2.0.1), so no fault"),
        ("10.2.0.1", "its address 10.2.0.1 is on the loopback interface, where no fault acts"),
        ("127.0.1.1", None),
    ],
)
def test_faults_need_the_device_that_has_the_address(address: str, line: str | None) -> None:
    """Behind a router that translates addresses there is none; without such faults a run goes well there."""
    said = ("127.0.0.1 lo", "10.2.0.1 lo", "10.1.0.1 eth1", "10.0.0.1 eth0", "10.0.0.1 wg0")
    found, able = MachineFacts.read("".join(f"address={one}\n" for one in said)), Kernel(lambda script: None)
    assert found.devices["10.0.0.1"] == "eth0", "as for a fault: the first"
    lines = looking.in_the_way(able, found, address, [FAULTS["partition"].model_construct().needs])
    assert [one[: len(line or "")] for one in lines] == ([] if line is None else [line])
    assert looking.in_the_way(able, found, address, [FAULTS["kill"].model_construct().needs]) == []


def test_a_machine_tells_its_own_addresses_and_queues(lab: Lab) -> None:
    with connected({"b1": lab.host()}, KnownHosts(lab.known, False, print)) as machines:
        found = looking.look(machines["b1"])
    assert found.devices["127.0.0.1"] == "lo"
    assert any(" dev lo " in queue for queue in found.queues)


def test_nodes_have_the_machines_addresses_and_a_connection_that_no_fault_cuts() -> None:
    hosts = {"b1": Host(address="10.0.0.1"), "c1": Host(address="10.0.0.2")}
    spec = ClusterSpec(brokers=1)
    seen = {"b1": facts(control=2222), "c1": facts()}
    nodes = topology(spec, hosts, Inventory(hosts=list(hosts.values())), seen)
    assert [(node.name, node.address, node.control) for node in nodes.nodes] == [
        ("b1", "10.0.0.1", 2222),
        ("c1", "10.0.0.2", 22),
    ]
    assert nodes.clients.address == "10.0.0.254"
    two_ways = {"b1": facts(), "c1": facts(client="192.168.1.1")}
    with pytest.raises(EnvironmentLacks, match=r"at several addresses \(10.0.0.254, 192.168.1.1\): set `clients`"):
        topology(spec, hosts, Inventory(hosts=list(hosts.values())), two_ways)
    reported = Inventory(hosts=list(hosts.values()), clients="10.9.9.9")
    assert topology(spec, hosts, reported, two_ways).clients.address == "10.9.9.9"


def test_an_owner_is_read_back_as_it_was_written() -> None:
    owner = Owner("a/story", "/store/a \"b'", HERE)
    assert Owner.read(owner.line()) == owner
    assert "\n" not in owner.line()
    for broken in ("", "{}", "[1]", '{"run": "x", "rm": "-rf"}'):
        with pytest.raises(HistoryError):
            Owner.read(broken)


def spec_of(lab: Lab, more: str = "", ports: str = "") -> ClusterSpec:
    """A broker and a controller on two machines, which are this one twice."""
    path = lab.directory / "machines.yaml"
    path.write_text(
        f"known_hosts: known_hosts\nports: {{{ports}}}\ndefaults: {{port: {lab.server.port}, key: id{more}}}\nhosts:\n"
        f"  - {{name: m1, address: 127.0.0.1, data: {lab.directory}/m1, roles: [broker]}}\n"
        f"  - {{name: m2, address: localhost, data: {lab.directory}/m2, roles: [controller]}}\n"
    )
    return composed(PROVIDERS).model_validate({"brokers": 1, "machines": str(path)})


def claim(lab: Lab, machine: str, run: str, directory: Path, harness: str = HERE) -> Path:
    """A node of a run on a machine."""
    data = lab.directory / machine
    lab.machine().run(text.claim(str(data), Owner(run, str(directory), harness).line()), "claim")
    return data / "node"


FREE = "client: 19092, controller: 19093, replication: 19094, zookeeper: 12181, follow: 12888, elect: 13888"


def test_everything_that_machines_lack_is_reported_before_anything_is_started(lab: Lab) -> None:
    claim(lab, "m2", "a/story", lab.directory)
    with socket.create_server(("127.0.0.1", 19093)), pytest.raises(EnvironmentLacks) as raised:
        Ssh(here=HERE).check(spec_of(lab, ", java: /nowhere/java", FREE), [])
    said = str(raised.value)
    assert said.startswith("m1 and m2 are one machine: name it once, it has one node at a time; ")
    assert "m1: no Java at `/nowhere/java`" in said
    assert "m1: port 19093 is taken" in said
    assert "m2: localhost is 127.0.0.1, which is each machine itself: name it by an address of its network" in said
    assert "m2: a node of another run is there (a/story): wait for its end, or remove it with" in said
    assert "\n" not in said
    assert not (lab.directory / "m1").exists()


@contextmanager
def running(node: Path) -> Iterator[None]:
    """Some process of a node: all have its directory as their own."""
    with subprocess.Popen(["sleep", "60"], cwd=node) as process:
        try:
            yield
        finally:
            process.kill()


def test_a_run_in_another_directory_of_the_machine_is_named_while_its_node_runs(lab: Lab) -> None:
    beside = claim(lab, "m3 of others", "b/story", lab.directory)
    reported = f"m1: a node of another run is there (b/story, in {beside}): wait for its end"
    spec, ssh = spec_of(lab, ports=FREE), Ssh(here=HERE)
    with running(beside), pytest.raises(EnvironmentLacks, match=re.escape(reported)):
        ssh.check(spec, [])
    with (
        running(claim(lab, "m1", "a/story", lab.directory)),
        connected({"b1": lab.host(data=str(lab.directory / "m1"))}, KnownHosts(lab.known, False, print)) as machines,
    ):
        assert looking.look(machines["b1"]).other_nodes == (), "its own node, and one that does not run, do not count"
        alone(machines["b1"])
        with running(beside), pytest.raises(EnvironmentLacks, match=re.escape(reported)):
            alone(machines["b1"])


def test_machines_that_do_not_answer_are_named_all_at_once(lab: Lab) -> None:
    spec = spec_of(lab)
    lab.server.close()
    with pytest.raises(EnvironmentLacks, match=r"m1: no SSH at 127.0.0.1:\d+ .*; m2: no SSH at localhost:\d+ "):
        Ssh(here=HERE).check(spec, [])


def test_cleanup_removes_ended_runs_and_leaves_runs_in_progress(lab: Lab) -> None:
    spec, over, going = spec_of(lab), lab.directory / "over", lab.directory / "going"
    for directory in (over, going):
        directory.mkdir()
    first, second = claim(lab, "m1", "a/over", over), claim(lab, "m2", "a/going", going)
    (lab.directory / "m1/kafka/4.3.1-abc").mkdir(parents=True)
    lock, ssh = RecordingLock(going), Ssh(here=HERE)
    try:
        assert ssh.cleanup(spec, None, force=False, dry_run=True) == [
            "m1: would remove the node of a/over",
            "m2: left a/going alone: it is still going",
        ]
        with pytest.raises(ScenarioError, match="a/going is left alone: it is still going; --force"):
            ssh.cleanup(spec, "a/going", force=False, dry_run=False)
        assert ssh.cleanup(spec, "a/nothing", force=False, dry_run=False) == []
        assert first.exists()
        assert ssh.cleanup(spec, None, force=False, dry_run=False) == [
            "m1: removed the node's directory",
            "m1: removed Kafka's jars",
            "m2: left a/going alone: it is still going",
        ]
        assert not first.parent.exists()
        assert second.exists()
        ssh.cleanup(spec, "a/going", force=True, dry_run=False)
    finally:
        lock.release()
    assert not second.exists()


def test_a_run_of_another_host_is_left_to_it(lab: Lab) -> None:
    spec = spec_of(lab)
    node = claim(lab, "m1", "a/story", lab.directory, harness="another-host")
    assert Ssh(here=HERE).cleanup(spec, None, force=False, dry_run=False) == [
        "m1: left a/story alone: whether it is still going cannot be seen from here: it was started on another-host"
    ]
    assert node.exists()
    assert Ssh(here=HERE).cleanup(spec, None, force=True, dry_run=False) == ["m1: removed the node's directory"]


def test_a_run_in_a_directory_of_any_name_is_removed(lab: Lab) -> None:
    spec = spec_of(lab)
    node = claim(lab, "m1", "a/story", lab.directory / "new \\new \\c 'é'")
    assert Ssh(here=HERE).cleanup(spec, "a/story", force=False, dry_run=False) == ["m1: removed the node's directory"]
    assert not node.exists()


def test_the_jars_of_a_run_that_came_while_the_last_was_removed_stay(lab: Lab) -> None:
    (lab.directory / "m1/kafka/4.3.1-abc").mkdir(parents=True)
    (lab.directory / "m1" / text.MARK).touch()
    with connected({"m1": lab.host(data=str(lab.directory / "m1"))}, KnownHosts(lab.known, False, print)) as machines:
        seen = looking.look(machines["m1"])
        late = claim(lab, "m1", "a/late", lab.directory)
        assert cleaned(machines["m1"], seen, None, force=False, dry_run=False, here=HERE) == []
    assert late.is_dir()
    assert (lab.directory / "m1/kafka/4.3.1-abc").is_dir()


def test_a_claim_for_which_there_is_no_space_says_what_to_do(lab: Lab) -> None:
    data, logs = lab.directory / "m1", lab.directory / "logs"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=755,nr_inodes=4", "tmpfs", data], check=True)
    owner = Owner("a/story", str(lab.directory), HERE)
    try:
        with connected({"b1": lab.host(data=str(data))}, KnownHosts(lab.known, False, print)) as machines:
            with (
                pytest.raises(EnvironmentLacks, match=r"^m1: no space for a node in .*/m1: free some, or name another"),
                claimed(machines, owner, logs, print, keep=False),
            ):
                raise AssertionError("it has none")
            assert looking.look(machines["b1"]).owner is None
    finally:
        subprocess.run(["umount", data], check=True)


def test_removed_nodes_are_reported_even_if_one_machine_failed(lab: Lab) -> None:
    spec, ssh = spec_of(lab), Ssh(here=HERE)
    stuck, _ = claim(lab, "m1", "a/story", lab.directory), claim(lab, "m2", "a/story", lab.directory)
    (stuck / "switches" / "ab12.sh").write_text("echo no such rule >&2; exit 1\n")
    with pytest.raises(ClusterError, match="a fault is not undone") as raised:
        ssh.cleanup(spec, None, force=False, dry_run=False)
    assert raised.value.__notes__ == ["m2: removed the node's directory"]


def test_a_failed_cleanup_on_one_machine_does_not_stop_the_others(lab: Lab) -> None:
    spec = spec_of(lab)
    stuck, well = claim(lab, "m1", "a/story", lab.directory), claim(lab, "m2", "a/story", lab.directory)
    (stuck / "switches" / "ab12.sh").write_text("echo no such rule >&2; exit 1\n")
    with pytest.raises(ClusterError, match="m1: remove its node failed: a fault is not undone: no such rule"):
        Ssh(here=HERE).cleanup(spec, None, force=False, dry_run=False)
    assert stuck.exists()
    assert not well.exists()


def test_of_two_runs_that_come_at_once_one_names_the_other(lab: Lab) -> None:
    """Both had looked, and found nobody there."""
    logs, notes = lab.directory / "logs", list[str]()
    first, second = (Owner(run, str(lab.directory), HERE) for run in ("a/first", "a/second"))
    hosts = {name: lab.host(name=name, data=str(lab.directory / name)) for name in ("m1", "m2")}
    with connected(hosts, KnownHosts(lab.known, False, print)) as machines:
        with (
            claimed({"b1": machines["m1"]}, first, logs, notes.append, keep=False),
            pytest.raises(EnvironmentLacks, match=r"^m1: a node of another run is there \(a/first\): wait"),
            claimed({"b1": machines["m1"], "c1": machines["m2"]}, second, logs, notes.append, keep=False),
        ):
            raise AssertionError("it has one machine alone")
        assert not (lab.directory / "m2" / "node").exists(), "and leaves what it had to others"
        with claimed({"b1": machines["m1"]}, first, logs, notes.append, keep=True):
            pass
        with claimed({"b1": machines["m1"]}, first, logs, notes.append, keep=False):
            assert (lab.directory / "m1" / "node" / "owner").read_text() == f"{first.line()}\n"
    assert not (lab.directory / "m1" / "node").exists()


def test_nothing_of_another_runs_node_is_reported_or_kept_as_its_own(lab: Lab) -> None:
    """The one that was started there was removed meanwhile, and another run came."""
    spec_of(lab)
    node = claim(lab, "m1", "a/other", lab.directory)
    (node / "log").write_text("ERROR of the other\n")
    (node / "exit").write_text("1\n")
    logs = lab.directory / "logs"
    ours, theirs = Owner("a/story", str(lab.directory), HERE), Owner("a/other", str(lab.directory), HERE)
    with connected({"b1": lab.host(data=str(lab.directory / "m1"))}, KnownHosts(lab.known, False, print)) as machines:
        for owner in (ours, theirs):
            b1 = Node("b1", Role.BROKER, 1, "127.0.0.1")
            nodes = Topology((b1,), Node("clients", Role.CLIENTS, 0, "127.0.0.1"))
            shell = SshShell(nodes, machines, 1.0, owner.line())
            cluster = SshCluster(owner.run, owner.line(), nodes, shell, machines, "machines.yaml")
            notes: list[str] = []
            keep_logs(machines, owner, logs, notes.append)
            if owner is theirs:
                assert cluster.why_dead(b1) == "b1 exited with 1: ERROR of the other"
                assert notes == []
                assert (logs / "b1.log").read_text() == "ERROR of the other\n"
            else:
                with pytest.raises(ClusterError, match=r"its machine has the node of another run now$"):
                    cluster.why_dead(b1)
                (note,) = notes
                assert note.startswith("the log of b1 is not stored completely: ")
                assert note.endswith("its machine has the node of another run now")
                assert (logs / "b1.log").read_text() == ""


def test_doctor_tells_that_two_hosts_are_one_machine(lab: Lab) -> None:
    found = list(Ssh(here=HERE).doctor(spec_of(lab)))
    assert [one.detail for one in found if one.name == "machines"] == [
        "m1 and m2 are one machine: name it once, it has one node at a time"
    ]


def test_without_an_inventory_there_is_nothing_to_remove_or_look_at() -> None:
    spec = composed(PROVIDERS).model_validate({})
    assert Ssh(here=HERE).cleanup(spec, None, force=False, dry_run=False) == []
    assert list(Ssh(here=HERE).doctor(spec)) == []


def test_accepting_keys_of_no_machines_is_said_to_be_so() -> None:
    with pytest.raises(ScenarioError, match="name an inventory"):
        Ssh(here=HERE).check(composed(PROVIDERS).model_validate({"accept_new": True}), [])
