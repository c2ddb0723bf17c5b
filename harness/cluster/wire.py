"""Asks one broker, and only that one, in Kafka's own protocol.

A client library asks any broker it likes. To learn who leads *as this broker reports it*, we need our own socket.
kafka-python encodes the messages.
"""

import socket
from collections.abc import Iterable, Mapping
from typing import Any, Self

from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest, DescribeQuorumRequest, DescribeTopicPartitionsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.parser import KafkaProtocol

from harness.core.errors import ClusterError

LATEST = -1
EARLIEST = -2
#: The replica id of a client that is not a replica.
CONSUMER = -1
#: The types of what has a coordinator.
_OF_GROUPS, _OF_TRANSACTIONS = 0, 1
#: The resource type of DescribeConfigs: brokers.
_OF_BROKERS = 4
#: The version of DescribeConfigs from which on an answer has the types of the settings (KIP-569). (Where it has none,
#: kafka-python says 0, the type of an unknown setting.)
_TYPES_SETTINGS = 3


class Wire:
    """A connection to one broker. A call waits ``timeout`` seconds for an answer, and raises ClusterError."""

    def __init__(self, endpoint: str, timeout: float = 1.0) -> None:
        self._endpoint = endpoint
        host, port = endpoint.rsplit(":", 1)
        try:
            self._socket = socket.create_connection((host, int(port)), timeout=timeout)
        except OSError as exc:
            raise ClusterError(f"{endpoint}: no connection ({exc})") from exc
        self._protocol = KafkaProtocol(client_id="kafka-trial-observer")
        self._versions: dict[int, int] = {}
        self._features: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def ask(self, request: Any, most: int, **fields: Any) -> Any:
        """The answer to a request of kafka-python's, in the newest version that both sides know, up to ``most``."""
        version = min(self._agreed(request), most)
        return self._exchange(request[version](**fields))

    def metadata(self, topics: list[str] | None) -> Any:
        """MetadataResponse for ``topics``; None: all of them."""
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        return self.ask(MetadataRequest, most=9, topics=wanted, allow_auto_topic_creation=False)

    def offsets(
        self,
        partitions: Mapping[str, Iterable[int]],
        at: int = LATEST,
        *,
        replica: int = CONSUMER,
        committed: bool = False,
        epochs: Mapping[tuple[str, int], int | None] | None = None,
    ) -> dict[tuple[str, int], tuple[int, int | None]]:
        """For each partition that this broker leads: an offset, and the leader epoch that the broker reports with it
        (None before 2.1), by (topic, partition). Other partitions are left out.

        ``at``: LATEST or EARLIEST. LATEST is for a consumer the high watermark, or with ``committed`` the last stable
        offset; for a ``replica``, given by its broker id, the end of the log (Kafka, ReplicaManager.fetchOffset: -1
        is a client). ``epochs``: the expected leader epochs; a broker with another epoch answers with an error
        (KIP-320, from 2.1 on).
        """
        topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
        meant = {tp: epoch for tp, epoch in (epochs or {}).items() if epoch is not None}
        response = self.ask(
            ListOffsetsRequest,
            most=5,
            replica_id=replica,
            isolation_level=int(committed),
            topics=[
                topic(
                    name=name,
                    partitions=[
                        partition(partition_index=p, current_leader_epoch=meant.get((name, p), -1), timestamp=at)
                        for p in numbers
                    ],
                )
                for name, numbers in partitions.items()
            ],
        )
        return {
            (t.name, p.partition_index): (p.offset, _epoch(p))
            for t in response.topics
            for p in t.partitions
            if p.error_code == 0
        }

    def eligible(self, topics: Iterable[str]) -> dict[tuple[str, int], tuple[int, frozenset[int], frozenset[int]]]:
        """The leader epoch, ISR and eligible leader replicas (KIP-966) of each partition, by (topic, partition); empty
        if the broker's version reports none (before 3.7, and with ZooKeeper)."""
        self._agreed(MetadataRequest)
        if DescribeTopicPartitionsRequest.API_KEY not in self._versions:
            return {}
        wanted = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in topics]
        response = self.ask(DescribeTopicPartitionsRequest, most=0, topics=wanted, cursor=None)
        return {
            (topic.name, p.partition_index): (
                p.leader_epoch,
                frozenset(p.isr_nodes),
                frozenset(p.eligible_leader_replicas),
            )
            for topic in response.topics
            for p in topic.partitions
            if p.eligible_leader_replicas is not None
        }

    def active_controller(self) -> int | None:
        """The node id of the active KRaft controller; None while there is none (KIP-595, DescribeQuorum)."""
        topic = DescribeQuorumRequest.TopicData
        response = self.ask(
            DescribeQuorumRequest,
            most=0,
            topics=[topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])],
        )
        leaders = [p.leader_id for t in response.topics for p in t.partitions if p.error_code == 0]
        return next((leader for leader in leaders if leader >= 0), None)

    def coordinator(self, transactional_id: str) -> int | None:
        """The node id of the coordinator of a transactional.id, None while there is none (KIP-98, FindCoordinator)."""
        response = self.ask(FindCoordinatorRequest, most=3, key=transactional_id, key_type=_OF_TRANSACTIONS)
        return int(response.node_id) if response.error_code == 0 else None

    def group_coordinator(self, group: str) -> int | None:
        """The node id of the coordinator of a consumer group, None while there is none (FindCoordinator)."""
        fields = {"key_type": _OF_GROUPS} if self._agreed(FindCoordinatorRequest) else {}
        response = self.ask(FindCoordinatorRequest, most=3, key=group, **fields)
        return int(response.node_id) if response.error_code == 0 else None

    def settings(self, broker: int) -> list[tuple[str, str | None, bool, int | None]]:
        """The settings of the broker with this id: the name and value of each, whether it is secret, and its type
        (DescribeConfigs; None before 2.6, KIP-569). Empty before 0.11, which cannot list them."""
        self._agreed(MetadataRequest)
        if DescribeConfigsRequest.API_KEY not in self._versions:
            return []
        resource = DescribeConfigsRequest.DescribeConfigsResource
        response = self.ask(
            DescribeConfigsRequest,
            most=3,
            resources=[resource(resource_type=_OF_BROKERS, resource_name=str(broker), configuration_keys=None)],
            include_synonyms=False,
            include_documentation=False,
        )
        typed = response.API_VERSION >= _TYPES_SETTINGS
        return [
            (one.name, one.value, bool(one.is_sensitive), one.config_type if typed else None)
            for result in response.results
            for one in result.configs or ()
        ]

    def features(self) -> dict[str, int]:
        """The finalized feature levels (KIP-584): empty before 2.7."""
        self._agreed(MetadataRequest)
        return self._features

    def _agreed(self, request: Any) -> int:
        """The newest version of a request that both sides know (KIP-35)."""
        if not self._versions:
            response = self._exchange(
                ApiVersionsRequest[3](client_software_name="kafka-trial", client_software_version="1")
            )
            if response.error_code:
                response = self._exchange(ApiVersionsRequest[0]())
            self._versions = {api.api_key: api.max_version for api in response.api_keys}
            finalized = getattr(response, "finalized_features", None) or []
            self._features = {feature.name: feature.max_version_level for feature in finalized}
        if request.API_KEY not in self._versions:
            raise ClusterError(f"{self._endpoint}: this version knows no {request.name}")
        newest: int = min(self._versions[request.API_KEY], request.max_version)
        return newest

    def _exchange(self, request: Any) -> Any:
        try:
            asked = self._protocol.send_request(request)
            self._socket.sendall(self._protocol.send_bytes())
            while True:
                received = self._socket.recv(65536)
                if not received:
                    raise ClusterError(f"{self._endpoint}: closed the connection")
                for answered, response in self._protocol.receive_bytes(received):
                    # (The answer may be to an earlier request that was given up.)
                    if answered == asked:
                        return response
        except OSError as exc:
            raise ClusterError(f"{self._endpoint}: no answer ({exc})") from exc
        except KafkaError as exc:
            raise ClusterError(f"{self._endpoint}: its answer cannot be read ({exc})") from exc


def _epoch(partition: Any) -> int | None:
    epoch = getattr(partition, "leader_epoch", None)
    return None if epoch is None or epoch < 0 else int(epoch)
