"""A socket that answers as a broker does: with the answers that a test gives."""

import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka.protocol.admin import CreateTopicsResponse, DescribeConfigsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from harness.core.topology import Node, Role

_VERSIONS = ApiVersionsResponse[3]


class _Serves(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        answers = self.server.answers  # type: ignore[attr-defined]
        while size := self.rfile.read(4):
            request = self.rfile.read(struct.unpack(">i", size)[0])
            key, _, correlation = struct.unpack(">hhi", request[:8])
            if key not in answers:
                return
            answers[key].with_header(correlation_id=correlation)
            self.wfile.write(answers[key].encode(header=True, framed=True))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


@contextmanager
def broker(*answers: Any) -> Iterator[Node]:
    """A broker with the id 1 that knows the requests of these answers, each up to the answer's version; it closes the
    connection on any other."""
    with _Server(("127.0.0.1", 0), _Serves) as server:
        node = Node("b1", Role.BROKER, 1, "127.0.0.1", published=server.server_address[1])
        known = MetadataResponse[9](brokers=[_itself(node)], controller_id=node.id, topics=[])
        by_key = {one.API_KEY: one for one in (known, *answers)}
        keys = [_VERSIONS.ApiVersion(api_key=key, min_version=0, max_version=by_key[key].API_VERSION) for key in by_key]
        own = _VERSIONS(error_code=0, api_keys=keys, throttle_time_ms=0)
        server.answers = {own.API_KEY: own, **by_key}  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield node
        finally:
            server.shutdown()
            thread.join()


def configs(version: int, *listed: tuple[str, str | None, bool, int], error: int = 0) -> Any:
    """An answer to DescribeConfigs: the name, the value, whether it is secret, and the type of each setting."""
    answer = DescribeConfigsResponse[version]
    result = answer.DescribeConfigsResult
    return answer(
        throttle_time_ms=0,
        results=[
            result(
                error_code=error,
                error_message=None,
                resource_type=4,
                resource_name="1",
                configs=[
                    result.DescribeConfigsResourceResult(
                        name=name,
                        value=value,
                        read_only=False,
                        config_source=5,
                        is_sensitive=secret,
                        synonyms=[],
                        config_type=kind,
                        documentation=None,
                    )
                    for name, value, secret, kind in listed
                ],
            )
        ],
    )


def topic_refused(name: str, error: int, because: str) -> Any:
    """An answer to CreateTopics: this topic is not made."""
    answer = CreateTopicsResponse[4]
    refused = answer.CreatableTopicResult(name=name, error_code=error, error_message=because)
    return answer(throttle_time_ms=0, topics=[refused])


def _itself(node: Node) -> Any:
    return MetadataResponse[9].MetadataResponseBroker(node_id=node.id, host=node.address, port=node.published)
