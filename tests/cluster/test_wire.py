"""One broker asked, by way of a socket that answers what the test says. Needs no cluster."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest

from harness.cluster.wire import Wire
from harness.core.errors import ClusterError

_VERSIONS = ApiVersionsResponse[3]


@contextmanager
def broker(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """The endpoint of a broker that serves one connection."""

    def accept() -> None:
        connection, _ = listening.accept()
        with connection:
            serve(connection)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        thread.join(30)


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
    def serve(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(answer)

    with broker(serve) as endpoint, Wire(endpoint, timeout=20) as wire, pytest.raises(ClusterError) as refused:
        wire.metadata(None)
    assert str(refused.value).startswith(f"{endpoint}: {says}")


def frame(request: bytes, known: list[int]) -> bytes:
    """The answer to a request for versions: these requests are known."""
    keys = [_VERSIONS.ApiVersion(api_key=key, min_version=0, max_version=9) for key in known]
    body = bytes(_VERSIONS(error_code=0, api_keys=keys, throttle_time_ms=0).encode(header=False, framed=False))
    answer = request[8:12] + body  # its correlation id first
    return struct.pack(">i", len(answer)) + answer


def test_an_answer_that_comes_late_is_none_to_the_next_question() -> None:
    gave_up = threading.Event()

    def serve(connection: socket.socket) -> None:
        first = connection.recv(4096)
        assert gave_up.wait(30)
        second = connection.recv(4096)
        connection.sendall(frame(first, []) + frame(second, [MetadataRequest.API_KEY]))

    with broker(serve) as endpoint, Wire(endpoint, timeout=1.0) as wire:
        with pytest.raises(ClusterError, match="no answer"):
            wire.features()
        gave_up.set()
        assert wire.features() == {}
