"""Elections that a scenario asks for by hand: each is a row of the table ``faults``, so that checkers know of it."""

import json
from collections.abc import Callable, Mapping

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from harness.core.clock import Clock
from harness.core.errors import ClusterError
from harness.core.guarantees import UNCLEAN
from harness.history.journal import Journal

_MILLISECONDS = 15_000

#: Asks for an unclean election of a partition's leader: None where one came, else why not. Raises ClusterError.
Elect = Callable[[str, int], str | None]


class Elections:
    """Asks for elections, and journals each before and after. It hits no node, and is over at once."""

    def __init__(self, elect: Elect, journal: Journal, clock: Clock) -> None:
        self._elect = elect
        self._journal = journal
        self._clock = clock
        self._asked = 0

    def unclean(self, topic: str, partition: int) -> str | None:
        """Have a leader elected though no replica of the ISR is alive. None where one was, else why not."""
        self._asked += 1
        evidence = {"election": UNCLEAN, "topic": topic, "partition": partition}
        asking_ns = self._clock.now()
        row = {"fault": f"elect-{self._asked}", "kind": "elect", "nodes": [], "injecting_ns": asking_ns}
        self._journal.append_rows([{**row, "effective": False, "evidence": json.dumps(evidence)}])
        try:
            refused = self._elect(topic, partition)
        except ClusterError as exc:
            refused = str(exc)
        over_ns = self._clock.now()
        times = dict.fromkeys(("injected_ns", "healing_ns", "healed_ns"), over_ns)
        said = json.dumps({**evidence, "refused": refused})
        self._journal.append_rows([{**row, **times, "effective": refused is None, "evidence": said}])
        return refused


def elect_uncleanly(bootstrap: str, topic: str, partition: int) -> str | None:
    """AdminClient.electLeaders of type UNCLEAN: None where a leader was elected, else the broker's word why not."""
    # Its limit is the client's: confluent-kafka 2.16 raises SystemError where the call is given one.
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, "socket.timeout.ms": _MILLISECONDS})
    try:
        asked = admin.elect_leaders(ElectionType.UNCLEAN, [TopicPartition(topic, partition)])
        answers = asked.result(timeout=2 * _MILLISECONDS / 1e3)
    except KafkaException as exc:
        raise ClusterError(f"no election of {topic}-{partition}: {exc.args[0].str()}") from exc
    except TimeoutError as exc:
        raise ClusterError(f"no election of {topic}-{partition} within {2 * _MILLISECONDS / 1e3:g} s") from exc
    return refusal(answers, TopicPartition(topic, partition))


def refusal(answers: Mapping[TopicPartition, KafkaError | None], of: TopicPartition) -> str | None:
    """Why there was no election of a partition, by the broker's answers; None where there was one. Raises ClusterError
    where none of them is of it: whether there was one is not known."""
    if of not in answers:
        raise ClusterError(f"no election of {of.topic}-{of.partition} is known of: the broker did not answer for it")
    error = answers[of]
    return None if error is None else f"no election of {of.topic}-{of.partition}: {error.str()}"
