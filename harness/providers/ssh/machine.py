"""One machine, reached through one SSH connection. The connection stays open, and is made again if it breaks."""

import logging
import secrets
import shlex
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import paramiko
from paramiko.hostkeys import InvalidHostKey
from paramiko.pkey import UnknownKeyType

from harness.core.errors import ClusterError
from harness.providers.ssh.inventory import Host
from harness.providers.ssh.text import priority

# paramiko also raises what it logs, and we report that in one line.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

#: Seconds to connect, to log in, to open a session, to begin and to end a program. A choice: a busy
#: machine needs less, and one that is gone is not waited for longer.
_CONNECT_S = 10.0

#: Seconds without a confirmation from the machine after which the kernel takes the connection for broken; and the
#: seconds between two keepalive messages.
_SILENT_S = 8.0
_ALIVE_S = 2

#: Sessions on one connection. sshd allows ten by default (MaxSessions).
_SESSIONS = 8

#: Seconds that a script may take by default. A choice: it is to suffice on a machine under load, too.
_WITHIN_S = 90.0

#: Bytes that are received at once. A choice: two of SSH's packets, which have 32 KiB at most.
_CHUNK = 1 << 16

#: The commands that start a shell of root. If sudo wants a password it fails, because nobody could type one.
_ROOT_SHELL = {
    "root": "exec sh",
    "sudo": "exec sudo -n sh -c 'SSH_CONNECTION=$0; export SSH_CONNECTION; exec sh' \"$SSH_CONNECTION\"",
}
#: The prefix that runs a command as root.
_AS_ROOT = {"root": "", "sudo": "sudo -n "}

#: paramiko's message if there is no key to log in with.
_NOTHING_OFFERED = "No authentication methods available"

#: paramiko's exit status for a program whose exit status never arrived.
_NO_STATUS = -1

#: Seconds to wait for the exit status of a program that takes no more input.
_GIVEN_UP_S = 2.0

#: The priority of the harness's scripts on a machine: a fault must not wait for a busy node.
_AHEAD = -10

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Broken(ClusterError):  # noqa: N818 - reads as the sentence it is
    """The connection to a machine broke: says what was being done there."""


class KnownHosts:
    """The file of host keys.

    A key that is not in it is refused; with ``accept`` it is added, and ``report`` gets a line about it.
    """

    def __init__(self, path: Path, accept: bool, report: Callable[[str], None]) -> None:
        self.path = path
        self.accept = accept
        self._report = report
        self._lock = threading.Lock()

    def policy(self, called: str) -> paramiko.MissingHostKeyPolicy:
        """What to do with a key that is not in the file."""
        return _Missing(self, called)

    def load(self, called: str, client: paramiko.SSHClient) -> None:
        """Load the keys of the file into a client. Raises ClusterError if the file cannot be read."""
        try:
            # (paramiko takes a line with a marker, @revoked or @cert-authority, for a broken line.)
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
            with tempfile.NamedTemporaryFile("w", prefix="kafka-trial-", encoding="utf-8") as plain:
                plain.writelines(line for line in lines if not line.lstrip().startswith("@"))
                plain.flush()
                client.load_host_keys(plain.name)
        except FileNotFoundError:
            return
        except OSError as exc:
            raise ClusterError(f"{called}: {self.path} cannot be read ({exc.strerror})") from exc
        except (InvalidHostKey, ValueError) as exc:
            raise ClusterError(f"{called}: {self.path} has a line that is no host's key: {_why(exc)}") from exc

    def check(self, called: str, key: paramiko.PKey) -> None:
        """Raises ClusterError if the file revokes a key (sshd(8), @revoked)."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        if any(words[0] == "@revoked" and key.get_base64() in words for line in lines if (words := line.split())):
            raise ClusterError(f"{called}: its key {fingerprint(key)} is revoked in {self.path}: give it another one")

    def add(self, called: str, host: str, key: paramiko.PKey) -> None:
        """Add a key to the file."""
        line = f"{host} {key.get_name()} {key.get_base64()}\n"
        with self._lock:
            try:
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with self.path.open("a+b") as file:
                    # (Without this, the key would be appended to a last line that has no newline.)
                    file.seek(max(file.tell() - 1, 0))
                    file.write((line if file.read() in {b"", b"\n"} else f"\n{line}").encode())
            except OSError as exc:
                raise ClusterError(f"{called}: its key cannot be written to {self.path}: {exc.strerror}") from exc
            self._report(f"{called}: {key.get_name()} key {fingerprint(key)} is accepted, and written to {self.path}")


class _Missing(paramiko.MissingHostKeyPolicy):
    def __init__(self, known: KnownHosts, called: str) -> None:
        self._known = known
        self._called = called

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        self._known.check(self._called, key)
        if not self._known.accept:
            raise ClusterError(
                f"{self._called}: its {key.get_name()} key {fingerprint(key)} is not in {self._known.path}: compare it"
                " with the machine's own (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub), then use --accept-new once"
            )
        self._known.add(self._called, hostname, key)


def fingerprint(key: paramiko.PKey) -> str:
    """A key's fingerprint as ssh shows it."""
    return str(key.fingerprint)


class Machine:
    """A host of an inventory. Several threads may use it. All programs on it run as root.

    ``patience``: seconds for each of these steps of its sshd: connect, log in, open a session, begin and end a program.
    """

    def __init__(self, host: Host, known: KnownHosts, patience: float = _CONNECT_S) -> None:
        self.host = host
        self.called = host.called
        self._known = known
        self.patience = patience
        self._lock = threading.Lock()
        self._client: paramiko.SSHClient | None = None
        self._idle: list[_Session] = []
        self._sessions = threading.Semaphore(_SESSIONS)

    def run(self, script: str, doing: str, within: float = _WITHIN_S, again: bool = True) -> str:
        """Run ``sh -euc script``; return its standard output.

        If the connection breaks meanwhile, the script is run once more, unless ``again`` is false. Raises ClusterError
        with ``doing`` and, if the script failed, the last line of its standard error.
        """
        with self._sessions:
            for last in (not again, True):
                session: _Session | None = None
                try:
                    session = self._session()
                    status, output, complained = session.run(script, within)
                except TimeoutError as exc:
                    if session is not None:
                        session.close()
                    raise ClusterError(f"{self.called}: {doing}: no answer within {within:g} s") from exc
                except (OSError, EOFError, paramiko.SSHException) as exc:
                    if session is not None:
                        session.close()
                    if last:
                        raise Broken(f"{self.called}: {doing}: the connection broke") from exc
                else:
                    with self._lock:
                        self._idle.append(session)
                    break
        if status != 0:
            raise ClusterError(f"{self.called}: {doing} failed: {_last_line(complained, status)}")
        return output

    def write(self, path: str, chunks: Iterable[bytes], doing: str, append: bool = False) -> None:
        """Replace a file on the machine, or append to it. Raises ClusterError."""
        command = f"exec cat {'>>' if append else '>'}{shlex.quote(path)}"
        with self._channel(command, doing) as channel:
            for chunk in chunks:
                channel.sendall(chunk)
            channel.shutdown_write()

    def read(self, script: str, doing: str) -> Iterator[bytes]:
        """What a script prints, in pieces. Raises ClusterError."""
        mark = secrets.token_hex(16)
        with self._channel(f"printf {mark}\n{script}", doing) as channel:
            # (Skip what the user's .bashrc prints before.)
            heard = b""
            while mark.encode() not in heard and (chunk := channel.recv(_CHUNK)):
                heard += chunk
            if begun := heard.partition(mark.encode())[2]:
                yield begun
            while chunk := channel.recv(_CHUNK):
                yield chunk

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            client, self._client = self._client, None
            self._idle.clear()
        if client is not None:
            client.close()

    @contextmanager
    def _channel(self, script: str, doing: str) -> Iterator[paramiko.Channel]:
        """A session that runs one script. Raises ClusterError if the script fails."""
        with self._sessions:
            channel: paramiko.Channel | None = None
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is not None:
                idle.end(self.patience)
            try:
                command = f"exec {_AS_ROOT[self.host.become]}sh -euc {shlex.quote(script)}"
                channel = self.begun(self._transport(), command)
                channel.settimeout(_WITHIN_S)
                yield channel
                self._ended(channel, doing)
            except (OSError, EOFError, paramiko.SSHException) as exc:
                # A program that failed (a full disk) also stops reading: report its own error if it has one.
                if channel is not None and channel.status_event.wait(_GIVEN_UP_S):
                    self._ended(channel, doing)
                raise Broken(f"{self.called}: {doing}: the connection broke") from exc
            finally:
                if channel is not None:
                    _close(channel)

    def _ended(self, channel: paramiko.Channel, doing: str) -> None:
        """Wait until the program of a channel ends. Raises ClusterError if it failed."""
        complained = b""
        while chunk := channel.recv_stderr(_CHUNK):
            complained += chunk
        ended = channel.status_event.wait(self.patience)
        if not ended or (status := channel.recv_exit_status()) == _NO_STATUS:
            raise Broken(f"{self.called}: {doing}: the connection broke")
        if status != 0:
            why = _last_line(complained.decode(errors="replace"), status)
            raise ClusterError(f"{self.called}: {doing} failed: {why}")

    def begun(self, transport: paramiko.Transport, command: str) -> paramiko.Channel:
        """Start a command in a new session. Raises OSError, EOFError and SSHException, and ClusterError if sshd
        hangs."""
        began = time.monotonic()
        try:
            channel = transport.open_session(timeout=self.patience)
            # (paramiko waits for the answer without a timeout. Closing the channel ends that wait.)
            giving_up = threading.Timer(self.patience, _close, [channel])
            giving_up.daemon = True
            giving_up.start()
            try:
                channel.exec_command(command)
            finally:
                giving_up.cancel()
        except paramiko.ChannelException as exc:
            raise ClusterError(
                f"{self.called}: its sshd allows no more sessions on one connection ({exc.text}): set MaxSessions 10,"
                " the default, in its sshd_config"
            ) from exc
        except paramiko.SSHException as exc:
            if time.monotonic() - began < self.patience:
                raise
            raise ClusterError(
                f"{self.called}: its sshd began no program within {self.patience:g} s: does it hang?"
            ) from exc
        return channel

    def _session(self) -> "_Session":
        transport = self._transport()
        with self._lock:
            while self._idle:
                session = self._idle.pop()
                if session.usable:
                    return session
        return _Session(self, transport)

    def _transport(self) -> paramiko.Transport:
        """The transport of the connection. Makes a new connection if there is none, or it is broken."""
        with self._lock:
            if self._client is not None:
                transport = self._client.get_transport()
                if transport is not None and transport.is_active():
                    return transport
                self._client.close()
                self._idle.clear()
                self._client = None
            self._client = self._connected()
            transport = cast(paramiko.Transport, self._client.get_transport())
            transport.set_keepalive(_ALIVE_S)
            return transport

    def _connected(self) -> paramiko.SSHClient:
        """A new connection. Raises ClusterError with what to change."""
        host, called = self.host, self.called
        key = None if host.key is None else _private_key(called, Path(host.key))
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(self._known.policy(called))
        self._known.load(called, client)
        try:
            client.connect(
                host.address,
                host.port,
                host.user,
                pkey=key,
                allow_agent=host.key is None,
                look_for_keys=host.key is None,
                sock=self._socket(),
                timeout=self.patience,
                banner_timeout=self.patience,
                auth_timeout=self.patience,
            )
        except paramiko.BadHostKeyException as exc:
            raise ClusterError(
                f"{called}: its host key has CHANGED to {fingerprint(exc.key)}: another machine answers at"
                f" {host.address}, or it was set up again; if so remove its line from {self._known.path}"
            ) from exc
        except paramiko.AuthenticationException as exc:
            if "timeout" in str(exc).lower():
                raise ClusterError(
                    f"{called}: its sshd did not log us in within {self.patience:g} s: does it hang?"
                ) from exc
            raise self._refused() from exc
        except (paramiko.SSHException, OSError, EOFError) as exc:
            if str(exc) == _NOTHING_OFFERED:
                raise self._refused() from exc
            raise ClusterError(
                f"{called}: no SSH at {host.address}:{host.port} ({_why(exc)}): is it up, is that its sshd's port, does"
                " a firewall let this machine in?"
            ) from exc
        try:
            self._known.check(called, cast(paramiko.Transport, client.get_transport()).get_remote_server_key())
        except ClusterError:
            client.close()
            raise
        return client

    def _refused(self) -> ClusterError:
        host = self.host
        offered = f"key {host.key}" if host.key else "the agent's keys and those in ~/.ssh"
        return ClusterError(
            f"{self.called}: it refuses {offered} for user {host.user}: put the public key into that user's"
            " ~/.ssh/authorized_keys, or name another `key` or `user`"
        )

    def _socket(self) -> socket.socket:
        """A connection whose break is noticed within seconds, even if the machine vanishes silently."""
        # (IPv4, as for nodes: with IPv6 the machine would see this one at an address that no rule can have.)
        found = socket.getaddrinfo(self.host.address, None, socket.AF_INET, socket.SOCK_STREAM)
        connection = socket.create_connection((str(found[0][4][0]), self.host.port), timeout=self.patience)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(_SILENT_S * 1e3))
        return connection


class _Session:
    """A shell of root that runs one script after the other.

    For a machine that is far cheaper than a new command of sshd for each script. Raises OSError, EOFError and
    SSHException.
    """

    def __init__(self, machine: Machine, transport: paramiko.Transport) -> None:
        self._mark = secrets.token_hex(16)
        self._channel = machine.begun(transport, _ROOT_SHELL[machine.host.become])
        try:
            begin = f"export LC_ALL=C PATH={_PATH}:$PATH\numask 022\ncd /\n{priority(_AHEAD)}"
            self._channel.sendall(begin.encode())
            # (The mark ends what the user's .bashrc prints.)
            status, output, _ = self.run(f"echo {self._mark}; id -u", machine.patience)
            user_id = output.rpartition(f"{self._mark}\n")[2].strip()
        except (OSError, EOFError, paramiko.SSHException) as exc:
            if not transport.is_active():
                raise
            raise ClusterError(self._no_root(machine, exc)) from exc
        if status != 0 or user_id != "0":
            raise ClusterError(
                f"{machine.called}: user {machine.host.user} is not root: set `become: sudo`, or another `user`"
            )

    @property
    def usable(self) -> bool:
        """Whether its channel is open."""
        return not self._channel.closed and self._channel.get_transport().is_active()

    def run(self, script: str, within: float) -> tuple[int, str, str]:
        """Run a script. Returns its exit code, standard output and standard error. Raises TimeoutError."""
        # (In a subshell: to start another process would cost a small machine twice as much. Not in a list of && or ||:
        # there `set -e` would do nothing.)
        command = (
            f"{{ e=$(set -eu; eval {shlex.quote(script)} 2>&1 >&3 </dev/null); s=$?; }} 3>&1\n"
            f"printf '\\n{self._mark} %d\\n%s\\n{self._mark}.\\n' $s \"$e\"\n"
        )
        self._channel.settimeout(within)
        self._channel.sendall(command.encode())
        begin, end = f"\n{self._mark} ".encode(), f"\n{self._mark}.\n".encode()
        deadline, heard = time.monotonic() + within, b""
        while not heard.endswith(end):
            self._channel.settimeout(max(deadline - time.monotonic(), 0.001))
            chunk = self._channel.recv(_CHUNK)
            if not chunk:
                raise EOFError("the shell ended")
            heard += chunk
        output, _, rest = heard.removesuffix(end).partition(begin)
        status, _, complained = rest.partition(b"\n")
        return int(status), output.decode(errors="replace"), complained.decode(errors="replace")

    def close(self) -> None:
        """End the shell."""
        _close(self._channel)

    def end(self, within: float) -> None:
        """Make the shell end, and wait for its end: then sshd has one more session for others."""
        with suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.shutdown_write()
            self._channel.status_event.wait(within)
        _close(self._channel)

    def _no_root(self, machine: Machine, exc: Exception) -> str:
        host = machine.host
        if host.become != "sudo" or isinstance(exc, TimeoutError):
            return f"{machine.called}: no shell for user {host.user} ({_why(exc)})"
        lines = self._channel.recv_stderr(_CHUNK).decode(errors="replace").strip().splitlines()
        return (
            f"{machine.called}: user {host.user} does not become root by sudo ({(lines or ['no message'])[-1]}):"
            f" let that user use sudo without a password ({host.user} ALL=(ALL) NOPASSWD: ALL), or log in as root"
        )


def _close(channel: paramiko.Channel) -> None:
    """Close a channel, whatever the state of its connection."""
    with suppress(OSError, EOFError, paramiko.SSHException):
        channel.close()


def _private_key(called: str, path: Path) -> paramiko.PKey:
    """The private key in a file. Raises ClusterError."""
    try:
        return paramiko.PKey.from_path(path)
    except (paramiko.PasswordRequiredException, TypeError) as exc:
        raise ClusterError(f"{called}: key {path} has a passphrase: add it to an agent, and leave `key` out") from exc
    except OSError as exc:
        raise ClusterError(f"{called}: key {path} cannot be read ({exc.strerror})") from exc
    except (paramiko.SSHException, UnknownKeyType, ValueError) as exc:
        raise ClusterError(f"{called}: {path} is no private key that can be used (OpenSSH's ed25519, say)") from exc


def _last_line(text: str, status: int) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else f"it exited with {status} without a message"


def _why(exc: Exception) -> str:
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    return " ".join(str(exc).split()) or type(exc).__name__
