"""What a broker answers late is no answer to the next question."""

import socket
import struct
import threading

import pytest
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest

from harness.cluster.wire import Wire
from harness.core.errors import ClusterError

_VERSIONS = ApiVersionsResponse[3]


def frame(request: bytes, known: list[int]) -> bytes:
    """The answer to a request for versions: these requests are known."""
    keys = [_VERSIONS.ApiVersion(api_key=key, min_version=0, max_version=9) for key in known]
    body = bytes(_VERSIONS(error_code=0, api_keys=keys, throttle_time_ms=0).encode(header=False, framed=False))
    answer = request[8:12] + body  # its correlation id first
    return struct.pack(">i", len(answer)) + answer


def test_an_answer_that_comes_late_is_none_to_the_next_question() -> None:
    gave_up = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            first = connection.recv(4096)
            assert gave_up.wait(30)
            second = connection.recv(4096)
            connection.sendall(frame(first, []) + frame(second, [MetadataRequest.API_KEY]))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        with Wire(f"127.0.0.1:{listening.getsockname()[1]}", timeout=1.0) as wire:
            with pytest.raises(ClusterError, match="no answer"):
                wire.features()
            gave_up.set()
            assert wire.features() == {}
        thread.join(30)
