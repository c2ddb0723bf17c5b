from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Message

from harness.core.topology import Partition
from harness.history.journal import Journal, read_journal
from harness.history.schema import READS, SENDS, Phase, record_id
from workloads.clients.outcomes import SENT_ONCE_WITHIN_NS
from workloads.clients.payload import Encoder
from workloads.clients.recorder import ReadRecorder
from workloads.clients.send_recorder import SendRecorder

SLOTS: list[Partition] = [("t", 0), ("t", 1), ("u", 5)]


class Sends:
    """A recorder and what its journal says."""

    def __init__(self, path: Path, acks: str = "all", keys: tuple[str, ...] = ()) -> None:
        self.path = path / "sends.3.arrows"
        self.journal = Journal(self.path, SENDS)
        self.recorder = SendRecorder(self.journal, 3, acks, SLOTS, keys)  # type: ignore[arg-type]

    def invoked(self, first: int, *partitions: int, at_ns: int = 10, keys: tuple[int, ...] | None = None) -> None:
        self.recorder.invoked(first, np.array(partitions), None if keys is None else np.array(keys), at_ns, 0)

    def flushed(self) -> list[dict[str, object]]:
        """The rows that one flush adds."""
        before = read_journal(self.path, SENDS)[0].num_rows
        self.recorder.flush()
        return read_journal(self.path, SENDS)[0].to_pylist()[before:]


@pytest.fixture
def sends(tmp_path: Path) -> Sends:
    return Sends(tmp_path)


def test_a_send_is_written_while_in_flight_and_again_when_completed(sends: Sends) -> None:
    sends.invoked(0, 2)
    row = {
        "worker": 3,
        "incarnation": 0,
        "sequence": 0,
        "topic": "u",
        "partition": 5,
        "record_id": record_id(3, 0),
        "key": None,
        "invoked_ns": 10,
        "completed_ns": None,
        "outcome": "info",
        "error": None,
        "offset": None,
        "transaction": None,
    }
    assert sends.flushed() == [row]
    assert sends.recorder.still_open() == 1
    assert sends.flushed() == []
    sends.recorder.delivered(np.array([0]), [77], at_ns=20)
    assert sends.flushed() == [row | {"completed_ns": 20, "outcome": "ok", "offset": 77}]
    assert sends.recorder.still_open() == 0
    assert sends.flushed() == []


def test_a_send_that_completes_before_the_flush_is_written_once(sends: Sends) -> None:
    sends.invoked(0, 0, 1)
    sends.recorder.delivered(np.array([1]), [None], at_ns=20)
    assert [(r["sequence"], r["outcome"], r["completed_ns"], r["offset"]) for r in sends.flushed()] == [
        (0, "info", None, None),
        (1, "ok", 20, None),
    ]


def test_completions_out_of_order_find_their_sends(sends: Sends) -> None:
    sends.invoked(0, 0, 1, 2, at_ns=10)
    sends.recorder.delivered(np.array([1]), [100], at_ns=20)
    sends.flushed()
    sends.invoked(3, 0, 1, at_ns=30)
    sends.recorder.delivered(np.array([4, 0]), [104, 105], at_ns=40)
    rows = [(row["sequence"], row["invoked_ns"], row["completed_ns"], row["offset"]) for row in sends.flushed()]
    assert rows == [(0, 10, 40, 105), (3, 30, None, None), (4, 30, 40, 104)]
    assert sends.recorder.still_open() == 2


def test_errors_are_recorded_by_name_and_judged_by_the_table(sends: Sends) -> None:
    sends.invoked(0, 0, 0, 0, 0, at_ns=10)
    sends.recorder.failed(0, "MSG_SIZE_TOO_LARGE", 10, at_ns=20)
    sends.recorder.failed(1, "MSG_SIZE_TOO_LARGE", 10, at_ns=10 + SENT_ONCE_WITHIN_NS)
    sends.recorder.failed(2, "_MSG_TIMED_OUT", -192, at_ns=20)
    sends.recorder.failed(3, "_UNKNOWN_PARTITION", None, at_ns=10**12)
    assert [(row["outcome"], row["error"]) for row in sends.flushed()] == [
        ("fail", "MSG_SIZE_TOO_LARGE"),
        ("info", "MSG_SIZE_TOO_LARGE"),
        ("info", "_MSG_TIMED_OUT"),
        ("fail", "_UNKNOWN_PARTITION"),
    ]
    tally = sends.recorder.tally
    assert (tally.sent, tally.acknowledged, tally.failed, tally.indeterminate) == (4, 0, 2, 2)


def test_with_acks_0_a_send_is_never_acknowledged(tmp_path: Path) -> None:
    sends = Sends(tmp_path, acks="0")
    sends.invoked(0, 0)
    sends.recorder.delivered(np.array([0]), [None], at_ns=20)
    assert [(row["outcome"], row["completed_ns"]) for row in sends.flushed()] == [("info", 20)]
    assert sends.recorder.tally.last_ack_ns is None


def test_keys_are_recorded_by_name(tmp_path: Path) -> None:
    sends = Sends(tmp_path, keys=("k0", "k1"))
    sends.invoked(0, 0, 1, keys=(1, 0))
    assert [row["key"] for row in sends.flushed()] == ["k1", "k0"]


def test_the_tally_counts_flushed_rows(sends: Sends) -> None:
    sends.invoked(0, 0, 0)
    sends.recorder.delivered(np.array([0]), [5], at_ns=20)
    assert (sends.recorder.tally.sent, sends.recorder.tally.last_ack_ns) == (0, None)
    sends.recorder.flush()
    assert (sends.recorder.tally.sent, sends.recorder.tally.acknowledged) == (2, 1)
    assert sends.recorder.tally.last_ack_ns == 20


def test_of_each_partition_that_was_written_to_the_last_acknowledgement_is_counted(tmp_path: Path) -> None:
    sends = Sends(tmp_path)
    sends.invoked(0, 0, 1)
    sends.recorder.delivered(np.array([0]), [5], at_ns=20)
    sends.recorder.flush()
    assert sends.recorder.tally.last_acks == {0: 20, 1: -1}
    sends.recorder.delivered(np.array([1]), [5], at_ns=30)
    sends.recorder.flush()
    assert sends.recorder.tally.last_acks == {0: 20, 1: 30}


@pytest.mark.parametrize(
    ("key", "reported"),
    [(None, None), (b"", ""), (b"key-1", "key-1"), ("schlüssel".encode(), "schlüssel"), (b"\xffa\n", "\\xffa\n")],
)
def test_the_key_of_a_read_record_is_recorded_even_if_it_is_no_text(
    key: bytes | None, reported: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "reads.1.arrows"
    [value] = Encoder(64)(record_id(3, 7), 1)
    with Journal(path, READS) as journal:
        recorder = ReadRecorder(journal, 1, Phase.LIVE)
        recorder.delivered([Message(topic="t", partition=2, offset=5, key=key, value=value)], at_ns=20)
        recorder.flush()
    [row] = read_journal(path, READS)[0].to_pylist()
    assert (row["record_id"], row["intact"], row["key"]) == (record_id(3, 7), True, reported)


def test_nothing_read_is_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "reads.1.arrows"
    with Journal(path, READS) as journal:
        recorder = ReadRecorder(journal, 1, Phase.LIVE)
        recorder.flush()
        assert recorder.read == 0
    assert read_journal(path, READS)[0].num_rows == 0
