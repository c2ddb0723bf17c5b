"""The ranges of numbers that the processes and clients of a producer have."""

from pathlib import Path

import pytest

from harness.core.errors import ClusterError
from harness.history.schema import FINAL_READER, SEQUENCE_BITS
from workloads.catalogue import WORKLOADS
from workloads.clients.specs import TransactorSpec


def process(number: int) -> TransactorSpec:
    return TransactorSpec(
        worker=3,
        config={},
        partitions=[],
        journals=Path(),
        origin_ns=0,
        process=number,
        rate=None,
        record_size=64,
        seed=1,
        records=10,
        aborted=0.0,
    )


def test_a_client_has_a_number_of_its_own_process() -> None:
    numbers = [process(1).first_incarnation]
    for _ in range(99):
        numbers.append(process(1).incarnation_after(numbers[-1]))
    assert numbers == list(range(100, 200))
    with pytest.raises(ClusterError, match=r"^transactor 3 replaced 99 dead clients: it may have no more$"):
        process(1).incarnation_after(numbers[-1])


def test_a_process_has_sequences_of_its_own_worker() -> None:
    last = process(254).successor()
    assert last.first < 1 << SEQUENCE_BITS
    with pytest.raises(ClusterError, match=r"^transactor 3 was replaced 255 times: it may be no more often$"):
        last.successor()
    assert last.model_copy(update={"process": last.process + 1}).first == 1 << SEQUENCE_BITS


@pytest.mark.parametrize("kind", WORKLOADS)
def test_no_worker_has_the_number_of_a_reader_of_the_end(kind: str) -> None:
    most = WORKLOADS[kind].model_json_schema(by_alias=False)["properties"]
    consumers = most["members" if "members" in most else "consumers"]["maximum"]
    levels = 2 if kind == "transactions" else 1
    assert most["producers"]["maximum"] + levels * consumers < FINAL_READER
