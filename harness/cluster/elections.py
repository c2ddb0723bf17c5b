"""Elections that a scenario asks for by hand. Each is a row of the table ``faults``, so that checkers see it."""

import json
from collections.abc import Callable, Mapping

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from harness.core.clock import Clock
from harness.core.errors import ClusterError
from harness.core.faults import ELECTION
from harness.core.guarantees import UNCLEAN
from harness.history.journal import Journal

#: A choice: for one request, and twice as long for its answer. A controller that can elect does it in much less.
_MILLISECONDS = 15_000

#: Errors after which an election may have happened: the broker asks the controller, and waits for the result only so
#: long (DelayedElectLeader).
_NOT_KNOWN = frozenset(
    {KafkaError.REQUEST_TIMED_OUT, KafkaError.NETWORK_EXCEPTION, KafkaError.UNKNOWN, KafkaError._TIMED_OUT}
)

#: Asks for an unclean election of a partition's leader: None if a leader was elected, else why not. Raises
#: ClusterError.
Elect = Callable[[str, int], str | None]


class ElectionsByHand:
    """Asks for elections, and journals each before and after. An election hits no node, and ends at once.

    If nobody knows whether it happened, its row has no ``injected_ns``.
    """

    def __init__(self, elect: Elect, journal: Journal, clock: Clock) -> None:
        self._elect = elect
        self._journal = journal
        self._clock = clock
        self._asked = 0

    def unclean(self, topic: str, partition: int) -> str | None:
        """Have a leader elected though no replica of the ISR is alive. None if one was elected, else why not."""
        self._asked += 1
        evidence = {"election": UNCLEAN, "topic": topic, "partition": partition}
        asking_ns = self._clock.now()
        name = f"{ELECTION}-{self._asked}"
        row = {"fault": name, "injection": name, "kind": ELECTION, "nodes": [], "injecting_ns": asking_ns}
        self._journal.append_rows([{**row, "effective": False, "evidence": json.dumps(evidence)}])
        known = True
        try:
            refused = self._elect(topic, partition)
        except ClusterError as exc:
            refused, known = str(exc), False
        over_ns = self._clock.now()
        # If nobody knows, ``injected_ns`` is null, as if the harness had ended before the answer.
        times = {"injected_ns": over_ns if known else None, "healing_ns": over_ns, "healed_ns": over_ns}
        answer = json.dumps({**evidence, "refused": refused})
        self._journal.append_rows([{**row, **times, "effective": refused is None, "evidence": answer}])
        return refused


def elect_uncleanly(bootstrap: str, topic: str, partition: int) -> str | None:
    """AdminClient.electLeaders of type UNCLEAN: None if a leader was elected, else the broker's reason."""
    # The timeout is set on the client: with one in the call, confluent-kafka 2.16 raises SystemError.
    try:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": _MILLISECONDS})
        asked = admin.elect_leaders(ElectionType.UNCLEAN, [TopicPartition(topic, partition)])
        answers = asked.result(timeout=2 * _MILLISECONDS / 1e3)
    except KafkaException as exc:
        raise ClusterError(f"no election of {topic}-{partition}: {exc.args[0].str()}") from exc
    except TimeoutError as exc:
        raise ClusterError(f"no election of {topic}-{partition} within {2 * _MILLISECONDS / 1e3:g} s") from exc
    return refusal(answers, TopicPartition(topic, partition))


def refusal(answers: Mapping[TopicPartition, KafkaError | None], of: TopicPartition) -> str | None:
    """Why there was no election of a partition, by the broker's answers; None if there was one. Raises ClusterError if
    that is not known: no answer is about this partition, or the election came too late for the broker to see it."""
    name = f"{of.topic}-{of.partition}"
    if of not in answers:
        raise ClusterError(f"nobody knows whether {name} had an election: the broker did not answer for it")
    error = answers[of]
    if error is not None and error.code() in _NOT_KNOWN:
        raise ClusterError(f"nobody knows whether {name} had an election: {error.str()}")
    return None if error is None else f"no election of {name}: {error.str()}"
