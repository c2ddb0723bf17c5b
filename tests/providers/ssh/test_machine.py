"""One machine over SSH: whom it trusts, whom it tells what is wrong, and one connection that is kept."""

import hashlib
import os
import shlex
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import paramiko
import pytest

from harness.core.errors import ClusterError, EnvironmentLacks
from harness.core.waiting import wait_for
from harness.providers.ssh.bundle import Bundle, copy
from harness.providers.ssh.inventory import Host
from harness.providers.ssh.machine import Machine

from .server import Lab, Server, lab_at, new_key

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="what is run on a machine is run as root")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with lab_at(tmp_path) as running:
        yield running


@pytest.fixture
def machine(lab: Lab) -> Iterator[Machine]:
    lab.knows()
    one = lab.machine()
    yield one
    one.close()


def test_a_script_prints_and_fails_as_one_in_a_container_does(machine: Machine) -> None:
    assert machine.run("echo 'one; two'\nprintf 'no newline'", "try") == "one; two\nno newline"
    with pytest.raises(ClusterError, match=r"^m1: b1: wipe failed: no such luck$"):
        machine.run("echo first >&2; echo no such luck >&2; exit 3", "b1: wipe")
    with pytest.raises(ClusterError, match="exited with 4 without a message"):
        machine.run("exit 4", "try")
    with pytest.raises(ClusterError, match=r"unbound|not set"):
        machine.run('echo "$nothing_of_the_kind"', "try")
    with pytest.raises(ClusterError, match=r"[Ss]yntax"):
        machine.run("if; 'unfinished", "try")
    assert machine.run("echo it goes on", "try") == "it goes on\n"


def test_quotes_and_commands_in_a_script_do_not_reach_the_outer_shell(machine: Machine, tmp_path: Path) -> None:
    """Neither quotes nor the mark that ends an answer reach the shell that reads the script."""
    said = machine.run("cat <<'END'\n'; touch " + str(tmp_path / "pwned") + "; '\n$(id) `id` \\ \"\nEND\n", "try")
    assert said == f"'; touch {tmp_path / 'pwned'}; '\n$(id) `id` \\ \"\n"
    assert not (tmp_path / "pwned").exists()


def test_one_connection_is_kept_and_one_shell_for_scripts_one_after_the_other(machine: Machine, lab: Lab) -> None:
    for _ in range(5):
        machine.run(":", "try")
    assert (lab.server.connections, lab.server.commands) == (1, 1)


def test_scripts_at_once_share_the_connection(machine: Machine, lab: Lab) -> None:
    """Each of the six scripts waits until all have started: one after the other they would wait for ever."""
    machine.run(":", "try")
    meet = f"cd {lab.directory}\nmkdir -p met\n: >met/$$.$1\nuntil [ $(ls met | wc -l) = 6 ]; do sleep 0.02; done\n"
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda number: machine.run(f"set -- {number}\n{meet}echo met", "try"), range(6))) == (
            ["met\n"] * 6
        )
    assert lab.server.connections == 1


def test_a_broken_connection_is_made_anew(machine: Machine, lab: Lab) -> None:
    assert machine.run("echo one", "try") == "one\n"
    lab.server.drop()
    assert machine.run("echo two", "try") == "two\n"
    assert lab.server.connections == 2


def test_a_broken_connection_is_renewed_only_for_scripts_that_may_run_twice(machine: Machine, lab: Lab) -> None:
    count = lab.directory / "count"

    def drop_when(written: str) -> threading.Thread:
        """Break all connections as soon as a script has come so far."""

        def drop() -> None:
            wait_for(
                lambda: count.exists() and count.read_text(), "the script", 30, lambda now: now == written, every=0.01
            )
            lab.server.drop()

        thread = threading.Thread(target=drop)
        thread.start()
        return thread

    def script(letter: str, times: int) -> str:
        """Goes on when it was begun so often."""
        return (
            f"echo {letter} >>{count}; until [ $(grep -c {letter} {count}) = {times} ]; do sleep 0.02; done; echo done"
        )

    breaking = drop_when("x\n")
    assert machine.run(script("x", 2), "try") == "done\n"
    breaking.join()
    breaking = drop_when("x\nx\ny\n")
    with pytest.raises(ClusterError, match="b1: SIGKILL: the connection broke"):
        machine.run(script("y", 2), "b1: SIGKILL", again=False)
    breaking.join()
    assert count.read_text() == "x\nx\ny\n"
    count.write_text("y\ny\n")  # the script that nobody awaits ends, too


def test_a_greeting_of_the_users_shell_is_not_read_as_an_answer(machine: Machine, lab: Lab) -> None:
    """A .bashrc that greets also when sshd runs only one command."""
    lab.server.greeting = "Welcome to m1\n0\nrunning"
    assert machine.run("echo one", "try") == "one\n"
    assert b"".join(machine.read("echo a log", "read its log")) == b"a log\n"
    machine.write(str(lab.directory / "written"), [b"one", b"two"], "write")
    assert (lab.directory / "written").read_bytes() == b"onetwo"


def test_an_sshd_of_few_sessions_is_reported(machine: Machine, lab: Lab) -> None:
    lab.server.sessions = 0
    with pytest.raises(ClusterError, match=r"^m1: its sshd allows no more sessions .*MaxSessions 10"):
        machine.run("echo one", "try")


def test_shells_that_are_kept_leave_room_for_files(machine: Machine, lab: Lab) -> None:
    """Eight scripts at once leave eight shells; sshd lets ten sessions share a connection."""
    meet = f"mkdir -p {lab.directory}/met\n: >{lab.directory}/met/$1\n"
    wait = f"until [ $(ls {lab.directory}/met | wc -l) = 8 ]; do sleep 0.02; done\n"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: machine.run(f"set -- {number}\n{meet}{wait}", "try"), range(8)))
        assert lab.server.commands == 8
        whole = threading.Barrier(8)

        def chunks() -> Iterator[bytes]:
            whole.wait(30)
            yield b"x"

        list(pool.map(lambda number: machine.write(f"{lab.directory}/{number}", chunks(), "write"), range(8)))
    assert all((lab.directory / str(number)).read_bytes() == b"x" for number in range(8))


def test_a_script_without_an_end_is_given_up(machine: Machine) -> None:
    with pytest.raises(ClusterError, match=r"^m1: try: no answer within 0.5 s$"):
        machine.run("sleep 5", "try", within=0.5)
    assert machine.run("echo on", "try") == "on\n"


def test_an_sshd_that_begins_no_program_is_given_up(machine: Machine, lab: Lab) -> None:
    machine.write(str(lab.directory / "file"), [b"x"], "connect")
    machine.patience = 0.5
    lab.server.hangs = True
    hanging = r"^m1: its sshd began no program within 0.5 s: does it hang\?$"
    with pytest.raises(ClusterError, match=hanging):
        machine.run(":", "try")
    with pytest.raises(ClusterError, match=hanging):
        machine.write(str(lab.directory / "file"), [b"x"], "try")


def test_a_program_of_which_nobody_tells_how_it_ended_is_given_up(machine: Machine, lab: Lab) -> None:
    on = lab.directory / "on"
    reading = machine.read(f"echo all; until [ -e {on} ]; do sleep 0.02; done", "read it")
    assert next(reading) == b"all\n"
    machine.patience = 0.5
    lab.server.hangs = True
    on.touch()
    with pytest.raises(ClusterError, match=r"^m1: read it: the connection broke$"):
        next(reading)


def test_a_connection_that_breaks_while_a_shell_is_begun_is_made_anew(lab: Lab) -> None:
    lab.knows()
    lab.server.breaks = 1
    machine = lab.machine()
    assert machine.run("echo in", "try", again=True) == "in\n"
    assert lab.server.connections == 2


def test_an_unknown_host_key_is_refused_and_not_written(lab: Lab) -> None:
    with pytest.raises(ClusterError, match=r"m1: its ecdsa\S+ key SHA256:\S+ is not in .*known_hosts.* --accept-new"):
        lab.machine().run(":", "try")
    assert not lab.known.exists()


def test_it_is_accepted_once_and_said_aloud(lab: Lab) -> None:
    lab.machine(accept=True).run(":", "try")
    (line,) = lab.lines
    assert line.startswith("m1: ecdsa-sha2-nistp256 key SHA256:")
    assert str(lab.known) in line
    lab.machine(accept=True).run(":", "try")
    lab.machine().run(":", "try")
    assert len(lab.lines) == 1
    assert lab.known.read_text().count("\n") == 1


@pytest.mark.parametrize("accept", [False, True])
def test_a_host_key_that_changed_is_refused_whatever_is_accepted(accept: bool, lab: Lab) -> None:
    lab.knows(new_key())
    before = lab.known.read_text()
    with pytest.raises(ClusterError, match=r"m1: its host key has CHANGED to SHA256:"):
        lab.machine(accept=accept).run(":", "try")
    assert lab.known.read_text() == before


def test_lines_of_authorities_and_of_other_revoked_keys_are_no_hindrance(lab: Lab) -> None:
    lab.knows()
    line, other = lab.known.read_text(), new_key().get_base64()
    lab.known.write_text(f"@cert-authority *.org ssh-ed25519 {other}\n@revoked * ssh-ed25519 {other}\n{line}")
    assert lab.machine().run("echo in", "try") == "in\n"


@pytest.mark.parametrize("known", [False, True])
def test_a_key_that_is_revoked_is_refused_though_it_is_known_or_accepted(known: bool, lab: Lab) -> None:
    lab.knows()
    line = lab.known.read_text()
    content = f"\n@revoked * {line.partition(' ')[2]}{line if known else ''}"
    lab.known.write_text(content)
    with pytest.raises(ClusterError, match=r"^m1: its key SHA256:\S+ is revoked in .*known_hosts"):
        lab.machine(accept=True).run(":", "try")
    assert lab.known.read_text() == content


def test_a_line_without_an_end_stays_the_line_that_it_was(lab: Lab) -> None:
    lab.known.write_text("other ssh-ed25519 AAAA of mine")
    lab.machine(accept=True).run(":", "try")
    first, second = lab.known.read_text().splitlines()
    assert first == "other ssh-ed25519 AAAA of mine"
    assert second.startswith(f"[127.0.0.1]:{lab.server.port} ecdsa-sha2-nistp256 ")
    lab.machine().run(":", "try")


@pytest.mark.parametrize("content", [b"other ssh-ed25519 A\n", b"caf\xe9 ssh-ed25519 AAAA\n"])
def test_a_file_of_host_keys_that_cannot_be_read_is_said_so(content: bytes, lab: Lab) -> None:
    lab.known.write_bytes(content)
    with pytest.raises(ClusterError, match=rf"^m1: {lab.known} has a line that is no host's key"):
        lab.machine(accept=True).run(":", "try")
    assert lab.known.read_bytes() == content


def test_a_user_without_a_key_to_offer_gets_an_error_that_says_so(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.knows()
    monkeypatch.setenv("HOME", str(lab.directory))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(ClusterError, match=r"^m1: it refuses the agent's keys and those in ~/\.ssh for user root"):
        lab.machine(key=None).run(":", "try")


def test_a_key_that_is_refused_is_named_and_nothing_of_it_is_shown(lab: Lab) -> None:
    lab.knows()
    lab.server.keys.clear()
    refused = rf"^m1: it refuses key {lab.key_file} for user root: .*authorized_keys"
    with pytest.raises(ClusterError, match=refused) as raised:
        lab.machine().run(":", "try")
    secret = lab.key_file.read_text().splitlines()[1]
    assert secret not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_key_that_is_of_no_use_is_said_so(lab: Lab) -> None:
    lab.knows()
    locked, text = lab.directory / "locked", lab.directory / "text"
    lab.key.write_private_key_file(str(locked), password="secret")
    text.write_text("no key\n")
    for key, why in ((lab.directory / "nowhere", "No such file"), (text, "is no private key"), (locked, "passphrase")):
        with pytest.raises(ClusterError, match=rf"^m1: .*{key}.*{why}") as raised:
            lab.machine(key=str(key)).run(":", "try")
        assert "secret" not in str(raised.value)


def test_a_host_that_does_not_answer_is_said_so(lab: Lab) -> None:
    lab.knows()
    lab.server.close()
    with pytest.raises(ClusterError, match=rf"^m1: no SSH at 127.0.0.1:{lab.server.port} \(Connection refused\)"):
        lab.machine().run(":", "try")


class Slow(Machine):
    """Goes on only when what it began has ended."""

    def begun(self, transport: paramiko.Transport, command: str) -> paramiko.Channel:
        channel = super().begun(transport, command)
        wait_for(lambda: channel.closed, "the program to end", 10)
        return channel


@pytest.mark.parametrize("kind", [Machine, Slow], ids=["the shell is told to begin", "sudo ends before that"])
def test_a_user_who_cannot_become_root_is_reported(lab: Lab, kind: type[Machine]) -> None:
    lab.knows()
    shells = lab.directory / "bin"
    shells.mkdir()
    (shells / "sudo").write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    (shells / "sudo").chmod(0o755)
    lab.server.path = f"{shells}:{lab.server.path}"
    machine = lab.machine(kind, become="sudo", user="trial")
    required = r"user trial does not become root by sudo \(sudo: a password is required\): let that user use sudo"
    with pytest.raises(ClusterError, match=required):
        machine.run(":", "try")


def bundle_of(path: Path, size: int) -> Bundle:
    content = path.parent / "jar"
    content.write_bytes(os.urandom(size))
    with tarfile.open(path, "w") as tar:
        tar.add(content, "libs/one.jar")
    return Bundle(path, "4.3.1", hashlib.sha256(path.read_bytes()).hexdigest())


def test_kafka_is_copied_once_and_a_broken_copy_continues(machine: Machine, lab: Lab) -> None:
    bundle = bundle_of(lab.directory / "kafka.tar", 3_000_000)
    reported: list[str] = []
    lab.server.limit = 1_000_000
    home = copy(bundle, machine, reported.append)
    assert home == f"{lab.directory}/data/kafka/{bundle.name}"
    assert (Path(home) / "libs/one.jar").read_bytes() == (lab.directory / "jar").read_bytes()
    assert any("MB on" in line or "from 0 MB" in line for line in reported) or lab.server.connections == 2
    assert sorted(path.name for path in Path(home).parent.iterdir()) == [bundle.name]
    connections = lab.server.connections
    reported.clear()
    assert copy(bundle, machine, reported.append) == home
    assert (reported, lab.server.connections) == ([], connections)


class Noting:
    """A machine that has nothing, and notes what it is asked to run."""

    def __init__(self, host: Host) -> None:
        self.host, self.called = host, host.called
        self.ran: list[str] = []

    def run(self, script: str, doing: str, within: float = 0.0, again: bool = True) -> str:
        self.ran.append(script)
        return "0\n"

    def write(self, path: str, chunks: Iterable[bytes], doing: str, append: bool = False) -> None:
        for _ in chunks:
            pass


def test_a_copy_is_on_disk_before_it_counts_as_whole(lab: Lab) -> None:
    """A machine that loses its power afterwards would have empty jars for ever."""
    noting = Noting(lab.host())
    copy(bundle_of(lab.directory / "kafka.tar", 1000), cast(Machine, noting), lambda _: None)
    lines = noting.ran[-1].splitlines()
    (named,) = [number for number, line in enumerate(lines) if line.startswith("mv ")]
    assert lines[named - 1] == "sync"
    assert lines[named - 2].startswith("tar ")


def test_a_copy_of_other_content_is_not_taken(machine: Machine, lab: Lab) -> None:
    bundle = bundle_of(lab.directory / "kafka.tar", 100_000)
    part = lab.directory / "data/kafka" / f"{bundle.name}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 50_000)
    with pytest.raises(ClusterError, match="what arrived is not what was sent"):
        copy(bundle, machine, lambda _: None)
    assert (Path(copy(bundle, machine, lambda _: None)) / "libs/one.jar").is_file()


def test_a_disk_that_is_full_is_said_so(machine: Machine, lab: Lab) -> None:
    bundle = bundle_of(lab.directory / "kafka.tar", 2_000_000)
    data = lab.directory / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", data], check=True)
    try:
        with pytest.raises(EnvironmentLacks, match=r"^m1: no space for Kafka 4.3.1 \(1 MB, .*free some, or name"):
            copy(bundle, machine, lambda _: None)
    finally:
        subprocess.run(["umount", data], check=True)


def test_another_server_of_the_same_name_is_another_machine(lab: Lab) -> None:
    """The port is part of what a key is known for."""
    lab.knows()
    other = Server(new_key(), [lab.key])
    try:
        with pytest.raises(ClusterError, match="is not in"):
            lab.machine(port=other.port).run(":", "try")
    finally:
        other.close()


def test_a_machine_of_two_addresses_is_reached_by_the_one_that_faults_act_on(lab: Lab) -> None:
    """Rules are of IPv4: by IPv6 the machine would report an address of this one that none of them can have."""
    hosts = lab.directory / "hosts"
    hosts.write_text("::1 both\n127.0.0.1 both\n")
    connect = f"""
import socket
from pathlib import Path
from harness.core.errors import ClusterError
from harness.providers.ssh.inventory import Host
from harness.providers.ssh.machine import KnownHosts, Machine
with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
    host = Host(name="m1", address="both", port=other.getsockname()[1], key={str(lab.key_file)!r})
    try:
        Machine(host, KnownHosts(Path({str(lab.known)!r}), False, print)).run(":", "try")
    except ClusterError as exc:
        print(exc)
"""
    script = f"mount --bind {hosts} /etc/hosts && exec {sys.executable} -c {shlex.quote(connect)}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=True)
    assert "no SSH at both" in done.stdout
    assert "Connection refused" in done.stdout
