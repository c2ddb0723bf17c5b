"""The sentences of a record's trace, each from its facts."""

import pytest

from harness.core.trace import (
    Answer,
    Fate,
    FinalLog,
    InLog,
    InReads,
    Instead,
    InTransaction,
    Moment,
    MomentFacts,
    Place,
    PositionChange,
    Reading,
    Sending,
)
from harness.history.schema import Outcome, record_id
from harness.report.record_trace import ended, said

OF = ("trial", 0)
LOG = FinalLog(start=2, end=9, read_to=9, complete=True)
WHOLE = "the final log of trial-0 (from 2, ends before 9, read completely)"


def read(
    replica: str | None = None,
    epoch: int | None = None,
    key: str | None = None,
    other_key: bool = False,
    intact: bool = True,
) -> Reading:
    return Reading(3, 1, replica, epoch, key, other_key, intact)


def in_transaction(intent: str, outcome: Outcome, error: str | None = None) -> InTransaction:
    return InTransaction(1, 2, 7, intent, outcome, error)


@pytest.mark.parametrize(
    ("event", "facts", "offset", "sentence"),
    [
        ("sent", Sending(1, 2, None), None, "sent by worker 1 (incarnation 2) to trial-0"),
        ("sent", Sending(1, 2, "{k}"), None, "sent by worker 1 (incarnation 2) to trial-0 under the key {k}"),
        ("acknowledged", Answer(None), 5, "acknowledged at offset 5"),
        ("acknowledged", Answer(None), None, "acknowledged without an offset"),
        ("failed", Answer(None), None, "failed"),
        ("failed", Answer("{too} large"), None, "failed: {too} large"),
        ("unknown", Answer(""), None, "abandoned, outcome unknown"),
        ("unknown", Answer("timed out"), None, "abandoned, outcome unknown: timed out"),
        ("read live", read(), 5, "read live at trial-0:5 by reader 3 (incarnation 1)"),
        ("read live", read(key="k"), 5, "read live at trial-0:5 by reader 3 (incarnation 1)"),
        (
            "read final",
            read(epoch=4, key="k", other_key=True, intact=False),
            5,
            "found by the final read at trial-0:5 by reader 3 (incarnation 1, leader epoch 4), under the key k, "
            "its checksum wrong",
        ),
        (
            "read replica",
            read(replica="b2", other_key=True),
            5,
            "found in the log of b2 at trial-0:5 by reader 3 (incarnation 1), without a key",
        ),
        (
            "began",
            in_transaction("commit", Outcome.INFO),
            None,
            "transaction 7 of worker 1 (incarnation 2) began",
        ),
        (
            "ending",
            in_transaction("abort", Outcome.FAIL, "fenced"),
            None,
            "transaction 7 of worker 1 (incarnation 2): its abort was requested",
        ),
        (
            "ended",
            in_transaction("abort", Outcome.OK),
            None,
            "transaction 7 of worker 1 (incarnation 2): its abort succeeded",
        ),
        (
            "ended",
            in_transaction("commit", Outcome.FAIL, "fenced"),
            None,
            "transaction 7 of worker 1 (incarnation 2): its commit failed: fenced",
        ),
        (
            "ended",
            in_transaction("commit", Outcome.INFO),
            None,
            "transaction 7 of worker 1 (incarnation 2): its commit was abandoned, outcome unknown",
        ),
        (
            "assign",
            PositionChange(3, 1, Place.COMMITTED),
            None,
            "reader 3 (incarnation 1) was assigned trial-0 from where its group had committed, or the beginning",
        ),
        (
            "seek",
            PositionChange(3, 1, Place.BEGINNING),
            -2,
            "reader 3 (incarnation 1) went to the beginning of trial-0",
        ),
        (
            "seek",
            PositionChange(3, 1, Place.UNKNOWN),
            None,
            "reader 3 (incarnation 1) went to an unknown offset of trial-0",
        ),
        ("revoke", PositionChange(3, 1, Place.OFFSET), 5, "trial-0 was revoked from reader 3 (incarnation 1)"),
        ("lost", PositionChange(3, 1, Place.OFFSET), 5, "trial-0 was lost to reader 3 (incarnation 1)"),
        (
            "commit",
            PositionChange(3, 1, Place.OFFSET),
            5,
            "reader 3 (incarnation 1) committed trial-0 to offset 5: past it",
        ),
    ],
)
def test_an_event_is_said_with_its_facts(event: str, facts: MomentFacts, offset: int | None, sentence: str) -> None:
    assert said(Moment(0, event, facts, *OF, offset, views=[], faults=[])) == sentence


@pytest.mark.parametrize(
    ("fate", "sentence"),
    [
        (InLog(*OF, LOG, [5], None), f"in {WHOLE}, at offset 5"),
        (InLog(*OF, LOG, [5, 7], None), f"in {WHOLE}, at offset 5, 7, 2 times"),
        (InLog(*OF, LOG, [], None), f"not in {WHOLE}"),
        (InLog(*OF, LOG, [], Instead(5, None)), f"not in {WHOLE}; offset 5 has no record of ours"),
        (InLog(*OF, LOG, [], Instead(5, record_id(1, 8))), f"not in {WHOLE}; offset 5 has worker 1 #8"),
        (
            InLog(*OF, FinalLog(0, 9, 4, complete=False), [], None),
            "not in the final log of trial-0 (from 0, ends before 9, read to 4 only)",
        ),
        (
            InLog(*OF, FinalLog(0, None, 4, complete=False), [], None),
            "not in the final log of trial-0 (whose end is unknown)",
        ),
        (InLog(*OF, None, [], None), "not known to be in the final log of trial-0 (which was not read)"),
        (InLog(*OF, None, [5], None), "in the final log of trial-0 (which was not read), at offset 5"),
        (InReads(*OF, True, [5, 7]), "read in trial-0, at offset 5, 7 (no log was read to its end)"),
        (InReads(*OF, True, []), "read in trial-0, at an unknown offset (no log was read to its end)"),
        (InReads(*OF, False, []), "not read in trial-0 (no log was read to its end)"),
    ],
)
def test_a_fate_is_said_with_what_is_known_of_the_log(fate: Fate, sentence: str) -> None:
    assert ended(fate) == sentence
