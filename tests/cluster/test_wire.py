"""One broker asked, by way of a socket that answers what the test says."""

import socket
import threading

import pytest

from harness.cluster.wire import Wire
from harness.core.errors import ClusterError


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"", "closed the connection"),
        (b"\xff\xff\xff\xff", "its answer cannot be read"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x63", "its answer cannot be read"),
    ],
    ids=["nothing", "no length", "another's answer"],
)
def test_an_answer_that_is_none_is_the_clusters_error(answer: bytes, says: str) -> None:
    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        endpoint = f"127.0.0.1:{listening.getsockname()[1]}"
        with Wire(endpoint, timeout=20) as wire, pytest.raises(ClusterError, match=f"^{endpoint}: {says}"):
            wire.metadata(None)
        thread.join()
