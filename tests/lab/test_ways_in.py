"""A machine whose sshd, shell and sudo are set up otherwise than the lab's own: what works all the same, and what is
said where it cannot."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.core.errors import ClusterError
from harness.providers.ssh.inventory import read_inventory
from harness.providers.ssh.machine import KnownHosts, Machine

pytestmark = pytest.mark.lab


@contextmanager
def as_user(inventory: Path, **changed: str) -> Iterator[Machine]:
    """The last machine, on a connection of its own."""
    read = read_inventory(inventory)
    host = read.hosts[-1].model_copy(update={"user": "trial", "become": "sudo", **changed})
    machine = Machine(host, KnownHosts(Path(read.known_hosts), accept=False, report=print))
    try:
        yield machine
    finally:
        machine.close()


@contextmanager
def written(machine: Machine, path: str, content: str) -> Iterator[None]:
    """A file of the machine that is there meanwhile."""
    machine.write(path, [content.encode()], f"write {path}")
    try:
        yield
    finally:
        machine.run(f"rm -f {path}", f"remove {path}")


#: Newer sudos run what they are asked to on a terminal of its own, and write each session down.
@pytest.mark.parametrize("defaults", ["use_pty", "log_output", "!fqdn,env_reset,lecture=always"])
def test_a_sudo_that_is_set_up_otherwise_is_as_good(
    defaults: str, machines: dict[str, Machine], inventory: Path
) -> None:
    binary = bytes(range(256)) * 500
    with (
        written(machines["m4"], "/etc/sudoers.d/zz-trial", f"Defaults {defaults}\n"),
        as_user(inventory) as machine,
    ):
        assert machine.run("id -u; tty || true", "look") == "0\nnot a tty\n"
        machine.write("/root/written", [binary], "write")
        assert b"".join(machine.read("cat /root/written", "read")) == binary
        # (What is started there outlives the session that it was started in.)
        machine.run("setsid sh -c 'sleep 4321.75' </dev/null >/dev/null 2>&1 &", "start")
    left = machines["m4"].run("pgrep -f '^sleep 4321.75'; pkill -f '^sleep 4321.75'; rm -f /root/written", "look")
    assert left.strip().isdigit()


def test_a_sudo_that_wants_a_terminal_is_reported(machines: dict[str, Machine], inventory: Path) -> None:
    with (
        written(machines["m4"], "/etc/sudoers.d/zz-trial", "Defaults requiretty\n"),
        as_user(inventory) as machine,
        pytest.raises(ClusterError, match=r"^m4: user trial does not become root by sudo \(sudo: .*tty"),
    ):
        machine.run("id -u", "look")


def test_a_shell_that_greets_is_no_hindrance(machines: dict[str, Machine], inventory: Path) -> None:
    """bash reads .bashrc for a command of sshd's, too."""
    m4 = machines["m4"]
    with written(m4, "/home/trial/.bashrc", "echo Welcome to m4\n"):
        m4.run("usermod --shell /bin/bash trial", "change the shell")
        try:
            with as_user(inventory) as machine:
                assert machine.run("id -u", "look") == "0\n"
                assert b"".join(machine.read("echo a log", "read")) == b"a log\n"
            with (
                as_user(inventory, become="root") as machine,
                pytest.raises(ClusterError, match=r"^m4: user trial is not root: set `become: sudo`"),
            ):
                machine.run("id -u", "look")
        finally:
            m4.run("usermod --shell /bin/sh trial", "change the shell back")


def test_a_user_whom_sshd_lets_run_nothing_is_reported(machines: dict[str, Machine], inventory: Path) -> None:
    m4 = machines["m4"]
    m4.run("usermod --shell /usr/sbin/nologin trial", "change the shell")
    try:
        with as_user(inventory) as machine, pytest.raises(ClusterError, match=r"^m4: user trial does not become root"):
            machine.run("id -u", "look")
    finally:
        m4.run("usermod --shell /bin/sh trial", "change the shell back")
