"""Whether this machine reaches containers by their addresses: with Docker Desktop and rootless Docker it cannot."""

import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from docker import DockerClient
from docker.errors import DockerException
from requests.exceptions import RequestException

from harness.core.errors import ClusterError, EnvironmentLacks, ScenarioError
from harness.core.topology import Ports
from harness.core.waiting import wait_for
from harness.providers.docker.shell import labels_of_no_run

#: The environment variable that says how clients reach nodes.
CLIENTS = "KAFKA_TRIAL_CLIENTS"
_WAYS = ("direct", "published")

#: The server listens where a broker would.
_PORT = Ports().client
#: Choices: seconds to start Python in a container, and to answer one connection; where no route leads to a container,
#: each try takes as long.
_ANSWERS_S, _CONNECTS_S = 5.0, 1.0

#: A server that sends a word to every client. It ends by itself, long after the last try, if nobody removes it.
_SERVER = (
    "import signal, socket, sys\n"
    "signal.alarm(30)\n"
    "with socket.create_server(('', int(sys.argv[2]))) as server:\n"
    "    while True:\n"
    "        connection, _ = server.accept()\n"
    "        with connection: connection.sendall(sys.argv[1].encode())\n"
)


def wanted_clients(own: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """How clients should reach nodes: as the scenario says, else as the environment says; None if neither does, so that
    it has to be tried. Raises ScenarioError."""
    wanted = own or environment.get(CLIENTS) or None
    if wanted is not None and wanted not in _WAYS:
        raise ScenarioError(f"{CLIENTS} is {wanted}: set it to {' or '.join(_WAYS)}, or unset it")
    return wanted


def reaches_containers(client: DockerClient, toolbox: str) -> bool:
    """Whether a container in the default network answers at its address. Raises EnvironmentLacks if none starts."""
    word = secrets.token_hex(16)
    try:
        with _serving(client, toolbox, word) as address:
            return answers(address, _PORT, word, _ANSWERS_S)
    except (DockerException, RequestException) as exc:
        raise EnvironmentLacks(
            f"cannot try whether nodes can be reached ({exc}): set cluster.clients to direct or published"
        ) from exc


def answers(address: str, port: int, word: str, within: float) -> bool:
    """Whether the server at an address sends this word, and is therefore ours: another network may use the address."""

    def heard() -> str:
        try:
            with socket.create_connection((address, port), timeout=_CONNECTS_S) as connection:
                return connection.makefile().read()
        except OSError as exc:
            return str(exc)

    try:
        wait_for(heard, f"an answer of {address}", within, good=lambda text: text == word)
    except ClusterError:
        return False
    return True


@contextmanager
def _serving(client: DockerClient, toolbox: str, word: str) -> Iterator[str]:
    with labels_of_no_run() as labels:
        container = client.containers.run(
            toolbox, ["python3", "-c", _SERVER, word, str(_PORT)], detach=True, labels=labels, network="bridge"
        )
        try:
            container.reload()
            yield container.attrs["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]
        finally:
            container.remove(force=True)
