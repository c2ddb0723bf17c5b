"""An SSH server on loopback that runs what it is asked to, as a machine would."""

import os
import shlex
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko

from harness.providers.ssh.inventory import Host
from harness.providers.ssh.machine import KnownHosts, Machine


def new_key() -> paramiko.ECDSAKey:
    return paramiko.ECDSAKey.generate()


class Server:
    """Lets in who has one of ``keys``. Connections and commands are counted; ``drop`` breaks all connections.

    While ``hangs`` it begins no program, and tells of none how it ended. Instead of each of the next ``breaks``
    programs its connection breaks; so it does after ``limit`` bytes. A connection has ``sessions`` at a time, at most
    (sshd's MaxSessions). ``greeting``: what a shell prints first, as one does whose .bashrc says something.
    """

    def __init__(self, host_key: paramiko.PKey, keys: list[paramiko.PKey], port: int = 0) -> None:
        self.host_key = host_key
        self.keys = keys
        self.connections = 0
        self.commands = 0
        self.path = "/usr/sbin:/usr/bin:/sbin:/bin"
        self.limit: int | None = None
        self.breaks = 0
        self.hangs = False
        self.sessions = 10
        self.greeting = ""
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._transports: list[paramiko.Transport] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self) -> None:
        # (While one is closed its client connects again: that connection stays.)
        for transport in [*self._transports]:
            self._transports.remove(transport)
            transport.close()

    def close(self) -> None:
        # (A thread that waits for a connection is not woken by a close alone.)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._closing.set()
        self.drop()

    def hang(self) -> None:
        """Return at once, or when it is closed."""
        if self.hangs:
            self._closing.wait()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            transport = paramiko.Transport(connection)
            transport.add_server_key(self.host_key)
            self._transports.append(transport)
            with suppress(paramiko.SSHException, EOFError, OSError):
                transport.start_server(server=_Interface(self))


class _Interface(paramiko.ServerInterface):
    def __init__(self, server: Server) -> None:
        self._server = server
        self._begun = 0
        self._ended = 0

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        known = any(key.get_base64() == mine.get_base64() for mine in self._server.keys)
        return paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        if self._begun - self._ended >= self._server.sessions:
            # (As sshd does.)
            return paramiko.OPEN_FAILED_CONNECT_FAILED
        self._begun += 1
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._server.commands += 1
        self._server.hang()
        if self._server.breaks:
            self._server.breaks -= 1
            channel.get_transport().close()
            return False
        threading.Thread(target=self._run, args=(channel, command.decode()), daemon=True).start()
        return True

    def _run(self, channel: paramiko.Channel, command: str) -> None:
        environment = {"SSH_CONNECTION": "127.0.0.1 40000 127.0.0.1 22", "PATH": self._server.path}
        with subprocess.Popen(
            ["sh", "-c", f"printf %s {shlex.quote(self._server.greeting)}\n{command}"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert process.stdin
            assert process.stdout
            assert process.stderr
            threads = [
                threading.Thread(target=self._feed, args=(channel, process), daemon=True),
                threading.Thread(target=_hand_on, args=(process.stdout.fileno(), channel.sendall)),
                threading.Thread(target=_hand_on, args=(process.stderr.fileno(), channel.sendall_stderr)),
            ]
            for thread in threads:
                thread.start()
            for thread in threads[1:]:
                thread.join()
            status = process.wait()
            self._ended += 1
            with suppress(OSError, EOFError):
                channel.shutdown_write()
                self._server.hang()
                channel.send_exit_status(status if status >= 0 else 128 - status)
                channel.close()
            threads[0].join(10)

    def _feed(self, channel: paramiko.Channel, process: "subprocess.Popen[bytes]") -> None:
        """Hand on what arrives."""
        assert process.stdin
        fed = 0
        with suppress(OSError, EOFError):
            while chunk := channel.recv(4096):
                process.stdin.write(chunk)
                process.stdin.flush()
                fed += len(chunk)
                if self._server.limit is not None and fed > self._server.limit:
                    self._server.limit = None
                    self._server.drop()
        with suppress(OSError):
            process.stdin.close()


def _hand_on(source: int, send: object) -> None:
    assert callable(send)
    with suppress(OSError, EOFError):
        while chunk := os.read(source, 4096):
            send(chunk)


class Lab:
    """A server, a client's key, and a file of known hosts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.key = new_key()
        self.key_file = directory / "id"
        self.key.write_private_key_file(str(self.key_file))
        self.known = directory / "known_hosts"
        self.lines: list[str] = []
        self.server = Server(new_key(), [self.key])

    def knows(self, key: paramiko.PKey | None = None) -> None:
        """Write the server's key, or another, to the file."""
        key = key or self.server.host_key
        self.known.write_text(f"[127.0.0.1]:{self.server.port} {key.get_name()} {key.get_base64()}\n")

    def host(self, **written: object) -> Host:
        return Host.model_validate(
            {
                "name": "m1",
                "address": "127.0.0.1",
                "port": self.server.port,
                "key": str(self.key_file),
                "data": str(self.directory / "data"),
                **written,
            }
        )

    def machine(
        self, kind: type[Machine] = Machine, accept: bool = False, patience: float = 10.0, **written: object
    ) -> Machine:
        return kind(self.host(**written), KnownHosts(self.known, accept, self.lines.append), patience)


@contextmanager
def lab_at(directory: Path) -> Iterator[Lab]:
    lab = Lab(directory)
    try:
        yield lab
    finally:
        lab.server.close()
