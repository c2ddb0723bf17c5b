from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history.schema import record_id
from workloads.clients.payload import HEADER_SIZE, Encoder, decode

IDS = st.integers(0, 900).flatmap(lambda worker: st.integers(0, 2**40 - 2000).map(lambda n: record_id(worker, n)))


@given(size=st.integers(HEADER_SIZE, 300), first=IDS, count=st.integers(1, 50))
def test_a_payload_carries_its_id_in_the_configured_size(size: int, first: int, count: int) -> None:
    encode = Encoder(size)
    payloads = encode(first, count)
    assert [decode(payload) for payload in payloads] == [(first + index, True) for index in range(count)]
    assert {len(payload) for payload in payloads} == {size}
    assert encode.ids(payloads).tolist() == list(range(first, first + count))
    assert all(int.from_bytes(payload[4:8], "big") == crc32(payload[8:]) for payload in payloads)


@given(size=st.integers(HEADER_SIZE, 100), first=IDS, data=st.data())
def test_any_flipped_bit_is_noticed(size: int, first: int, data: st.DataObject) -> None:
    payload = bytearray(Encoder(size)(first, 1)[0])
    payload[data.draw(st.integers(0, size - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert decode(bytes(payload))[1] is False


def test_a_damaged_payload_of_ours_keeps_the_id_that_can_be_read() -> None:
    payload = Encoder(64)(record_id(3, 9), 1)[0]
    assert decode(payload[:-1] + b"!") == (record_id(3, 9), False)
    assert decode(payload[:-10]) == (record_id(3, 9), False)


@pytest.mark.parametrize("payload", [None, b"", b"kt01", b"hello, this is nobody's record at all"])
def test_a_foreign_payload_has_no_id(payload: bytes | None) -> None:
    assert decode(payload) == (None, False)
