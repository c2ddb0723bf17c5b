"""Whether this machine reaches containers by their addresses: Docker Desktop and rootless Docker keep them apart."""

import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from docker import DockerClient
from docker.errors import DockerException
from requests.exceptions import RequestException

from harness.core.errors import ClusterError, EnvironmentLacks, ScenarioError
from harness.core.waiting import wait_for
from harness.providers.docker.shell import labels_of_no_run

#: The environment variable that says how clients reach nodes.
CLIENTS = "KAFKA_TRIAL_CLIENTS"
_WAYS = ("direct", "published")

_PORT = 9092
_SECONDS = 5.0

#: Sends a word to every client that connects. It ends by itself if it is not removed.
_SERVER = (
    "import signal, socket, sys\n"
    "signal.alarm(30)\n"
    "with socket.create_server(('', int(sys.argv[2]))) as server:\n"
    "    while True:\n"
    "        connection, _ = server.accept()\n"
    "        with connection: connection.sendall(sys.argv[1].encode())\n"
)


def wanted_clients(own: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """How clients are to reach nodes: as a scenario says; where it says nothing, as the environment does; None where
    that is to be tried. Raises ScenarioError."""
    said = own or environment.get(CLIENTS) or None
    if said is not None and said not in _WAYS:
        raise ScenarioError(f"{CLIENTS} is {said}: set it to {' or '.join(_WAYS)}, or unset it")
    return said


def reaches_containers(client: DockerClient, toolbox: str) -> bool:
    """Whether a container of Docker's own network answers at its address. Raises EnvironmentLacks where none starts."""
    word = secrets.token_hex(16)
    try:
        with _serving(client, toolbox, word) as address:
            return answers(address, _PORT, word, _SECONDS)
    except (DockerException, RequestException) as exc:
        raise EnvironmentLacks(
            f"whether nodes can be reached cannot be tried ({exc}): set cluster.clients to direct or published"
        ) from exc


def answers(address: str, port: int, word: str, within: float) -> bool:
    """Whether a server sends this word, and so is ours: another network may use the same address."""

    def said() -> str:
        try:
            with socket.create_connection((address, port), timeout=1) as connection:
                return connection.makefile().read()
        except OSError as exc:
            return str(exc)

    try:
        wait_for(said, f"an answer of {address}", within, good=lambda text: text == word)
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
