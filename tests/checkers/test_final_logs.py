"""The final logs as they were read: what they show of missing records, to the offset."""

from dataclasses import replace

import numpy as np
import pytest

from checkers.evidence.final_logs import NO_EPOCH, Log

#: Epoch 0 stands from 2 to 5, epoch 2 from 6 to 9.
LOG = Log(*np.array([[0, 2, 5], [2, 6, 9]], np.int64).T, end=10)
#: The same, where markers may stand between them.
SPARSE = replace(LOG, last=np.array([4, 8]), sparse=True)
NOTHING = Log(*np.empty((3, 0), np.int64), end=10)


@pytest.mark.parametrize(
    ("log", "epoch", "offset", "cut"),
    [
        (LOG, 0, 4, (False, None)),
        (LOG, 0, 5, (False, None)),
        (LOG, 0, 6, (True, 2)),
        (LOG, 0, 20, (True, 2)),
        (LOG, 1, 5, (True, 2)),
        (LOG, 1, 6, (True, 2)),
        (LOG, 2, 9, (False, None)),
        (LOG, 2, 10, (True, None)),
        (LOG, 3, 9, (True, None)),
        (LOG, 3, 10, (True, None)),
        (LOG, None, 4, (True, None)),
        (LOG, 0, None, (True, None)),
        (NOTHING, 0, 4, (True, None)),
        (SPARSE, 0, 4, (False, None)),
        (SPARSE, 0, 5, (True, None)),
        (SPARSE, 2, 8, (False, None)),
        (SPARSE, 2, 9, (True, None)),
        (SPARSE, 2, 10, (True, None)),
        (replace(LOG, last=np.array([3, 9])), 0, 4, (False, None)),
    ],
    ids=[
        *("it goes on", "another of that epoch stands there", "a later one does", "and ends below"),
        *("an older one stands there, and a later one above", "a later one there", "its last", "at the end"),
        *(
            "older ones alone",
            "and it ends",
            "no epoch",
            "no offset",
            "nothing is left",
            "one of that epoch and markers",
        ),
        *("a marker perhaps", "the last of the log", "a marker behind it", "at the end of both", "a gap"),
    ],
)
def test_an_election_may_have_cut_a_log_where_later_epochs_stand_or_it_ends(
    log: Log, epoch: int | None, offset: int | None, cut: tuple[bool, int | None]
) -> None:
    assert log.cut(epoch, offset) == cut


@pytest.mark.parametrize(
    ("log", "epoch", "offset", "tells"),
    [
        (LOG, 0, 4, True),
        (LOG, 0, None, False),
        (SPARSE, None, 4, True),
        (SPARSE, 0, 5, False),
        (SPARSE, 0, 6, True),
        (SPARSE, 0, 10, True),
        (SPARSE, 2, 10, True),
        (SPARSE, 2, 9, False),
        (SPARSE, 2, 4, True),
        (SPARSE, 2, 5, False),
        (replace(SPARSE, epochs=np.array([1, 2])), 0, 9, True),
    ],
    ids=[
        *("without markers", "no offset", "no epoch", "before a later one", "where a later one begins", "at the end"),
        *("at the end of its own", "behind its own", "where an older one goes on", "behind that", "later ones alone"),
    ],
)
def test_a_log_shows_no_cut_where_a_transaction_marker_may_stand(
    log: Log, epoch: int | None, offset: int | None, tells: bool
) -> None:
    assert log.shows_cut(epoch, offset) is tells


def test_a_log_reaches_as_far_as_it_has_records_of_an_epoch() -> None:
    assert [LOG.reaches(0, offset) for offset in (4, 5, 6)] == [True, True, False]
    assert [LOG.reaches(epoch, 4) for epoch in (1, 2, None)] == [False, True, False]
    assert not LOG.reaches(0, None)


def test_at_each_offset_one_epoch_stands_or_none_is_known() -> None:
    asked = np.array([0, 1, 2, 5, 6, 9, 10])
    assert LOG.epochs_at(asked).tolist() == [NO_EPOCH, NO_EPOCH, 0, 0, 2, 2, NO_EPOCH]
    assert SPARSE.epochs_at(np.array([4, 5, 6, 8, 9])).tolist() == [0, NO_EPOCH, 2, 2, NO_EPOCH]
    assert NOTHING.epochs_at(asked[:2]).tolist() == [NO_EPOCH, NO_EPOCH]


def test_if_epochs_fall_along_a_log_only_unambiguous_offsets_have_an_epoch() -> None:
    asked = np.array([1, 2, 5, 6, 9, 10])
    for falls, known in (
        (replace(LOG, first=np.array([2, 5])), [0, NO_EPOCH, 2, 2]),
        (replace(LOG, last=np.array([6, 9])), [0, 0, NO_EPOCH, 2]),
        (replace(LOG, last=np.array([9, 6])), [0, 0, NO_EPOCH, 0]),
        (replace(LOG, first=np.array([6, 2]), last=np.array([9, 5])), [2, 2, 0, 0]),
        (replace(LOG, first=np.array([2, 2]), last=np.array([9, 9])), [NO_EPOCH] * 4),
    ):
        assert falls.epochs_at(asked).tolist() == [NO_EPOCH, *known, NO_EPOCH]


@pytest.mark.parametrize(
    ("log", "start", "goes_on"),
    [(LOG, 2, False), (LOG, 1, True), (NOTHING, 9, True), (NOTHING, 10, False), (replace(LOG, sparse=True), 1, False)],
    ids=["from its start", "above it", "nothing above it", "nothing", "a marker perhaps"],
)
def test_a_log_goes_on_where_it_begins_above_its_start(log: Log, start: int, goes_on: bool) -> None:
    assert replace(log, start=start).starts_later is goes_on


def test_an_epoch_begins_no_later_than_what_was_delivered_of_it() -> None:
    given: list[tuple[dict[int, int], list[int]]] = [({2: 4}, [2, 4]), ({2: 8}, [2, 6]), ({1: 0}, [2, 6]), ({}, [2, 6])]
    assert [LOG.begun_at(delivered).first.tolist() for delivered, _ in given] == [first for _, first in given]
