"""Whether who answers at an address is the container that was started."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.core.errors import ScenarioError
from harness.providers.docker.reaching import CLIENTS, answers, wanted_clients


def test_a_scenario_says_how_nodes_are_reached_before_the_environment_does() -> None:
    assert wanted_clients("direct", {CLIENTS: "published"}) == "direct"
    assert wanted_clients(None, {CLIENTS: "published"}) == "published"
    assert wanted_clients(None, {CLIENTS: ""}) is None


def test_a_wrong_way_in_the_environment_is_refused_in_a_line() -> None:
    with pytest.raises(ScenarioError, match=f"^{CLIENTS} is host: set it to direct or published, or unset it$"):
        wanted_clients(None, {CLIENTS: "host"})


@contextmanager
def saying(word: str) -> Iterator[int]:
    """A server on loopback that sends a word to whoever connects."""

    def serve() -> None:
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(word.encode())
            if stopped.is_set():
                return

    stopped = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield port
        finally:
            stopped.set()
            socket.create_connection(("127.0.0.1", port)).close()
            thread.join()


def test_a_server_that_sends_the_word_counts_as_reached() -> None:
    with saying("word") as port:
        assert answers("127.0.0.1", port, "word", within=10)


def test_a_server_that_sends_another_word_does_not_count_as_reached() -> None:
    with saying("another") as port:
        assert not answers("127.0.0.1", port, "word", within=0)


def test_a_port_without_a_listener_does_not_count_as_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert not answers("127.0.0.1", port, "word", within=0)
