"""Which losses excuse a record's other copies, and which copies no loss excuses."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from checkers.evidence.copies import ruled_as_loss, sent_again_for_loss, without_late_copies
from checkers.evidence.decision import Decision
from checkers.evidence.late import LATE
from checkers.evidence.losses import Losses
from checkers.evidence.standing import possible_faults
from checkers.evidence.store import AnomalyStore
from harness.core.anomalies import ACKNOWLEDGED_ELSEWHERE, DUPLICATED, REAL_TIME_ORDER, VANISHED, Anomaly
from harness.core.guarantees import Ruling
from harness.core.verdict import Standing
from harness.history.stored_run import StoredRun
from tests.checkers.notation import SECOND, by_hand, write
from tests.checkers.ranges import record_range
from tests.checkers.test_holders import evidence
from tests.checkers.test_judge import COPIES, rows_in
from tests.checkers.test_reach import MOVED, MOVED_BACK, NO_IDEMPOTENCE, NOT_PERMITTED, SLOW, WRITTEN_TWICE, history

UNCLEAN = {"unclean_election": True, "min_insync_replicas": 1}
_GONE = {name: COPIES[name] for name in ("topic", "partition", "record_id", "offset")}


def _ruled(standing: Standing, first: int = 1, last: int = 1) -> Any:
    return record_range(first, last, decision=Decision(Ruling(standing, "why", "source")))


def _standing(
    run: Path,
    anomaly: Anomaly,
    lines: Sequence[str],
    *ranges: Any,
    settings: dict[str, Any] | None = None,
    moved_to: int = 2,
    again: bool = False,
) -> list[Standing | None]:
    """The standings of ranges of the record r, which is not where it was acknowledged, but at ``moved_to``. ``again``:
    another incarnation of its producer handed it over again."""
    recorded = by_hand(*lines)
    send = next(row for row in recorded.rows["sends"] if row["record_id"] == recorded.ids["r"])
    row = {name: send[name] for name in ("topic", "partition", "record_id", "offset", "worker")}
    row |= {"sent_ns": send["invoked_ns"], "acknowledged_ns": send["completed_ns"], "read_offset": moved_to}
    configuration = {**UNCLEAN, **(settings or {})}
    known, found = history(run, [row], *lines, **configuration)
    if again:
        recorded.rows["sends"].append(send | {"incarnation": 1})
        write(run, [recorded], **configuration)
        known = replace(known, stored=StoredRun.open(run))
    after = without_late_copies(known, anomaly, found, ranges, evidence(recorded, **configuration))
    return [one.standing for one in after]


def _acknowledged_at_27(lines: Sequence[str]) -> list[str]:
    return [line.replace("t10..11", "t10..27") for line in lines]


@pytest.mark.parametrize(
    ("lines", "elsewhere", "behind"),
    [
        *NOT_PERMITTED,
        ((*MOVED_BACK, "fault s b1 12..15 kind=slow plane=all"), Standing.VIOLATION, Standing.VIOLATION),
        ((*MOVED_BACK, f"{SLOW} unknown=b1"), Standing.UNDECIDED, Standing.UNDECIDED),
        (_acknowledged_at_27(MOVED), Standing.PERMITTED, Standing.VIOLATION),
    ],
    ids=[
        *("late", "of one that nobody knew", "nothing held it back", "held back", "slow after it", "held back perhaps"),
        "acknowledged after the election",
    ],
)
def test_a_loss_excuses_no_copy_that_came_when_another_had_been_acknowledged(
    lines: Sequence[str], elsewhere: Standing, behind: Standing, tmp_path: Path
) -> None:
    permitted = _ruled(Standing.PERMITTED)
    got = [
        _standing(tmp_path / anomaly.name, anomaly, lines, permitted)
        for anomaly in (ACKNOWLEDGED_ELSEWHERE, REAL_TIME_ORDER)
    ]
    assert got == [[elsewhere], [behind]]


def test_it_may_excuse_what_another_incarnation_handed_over_again(tmp_path: Path) -> None:
    permitted = _ruled(Standing.PERMITTED)
    assert _standing(tmp_path / "once", REAL_TIME_ORDER, MOVED, permitted) == [Standing.VIOLATION]
    assert _standing(tmp_path / "twice", REAL_TIME_ORDER, MOVED, permitted, again=True) == [Standing.PERMITTED]


@pytest.mark.parametrize(
    ("first", "last", "standing"),
    [(1, 1, Standing.VIOLATION), (0, 1, Standing.VIOLATION), (0, 0, Standing.PERMITTED), (2, 9, Standing.PERMITTED)],
)
def test_only_the_range_that_has_a_late_copy_is_not_excused(
    first: int, last: int, standing: Standing, tmp_path: Path
) -> None:
    assert _standing(tmp_path, ACKNOWLEDGED_ELSEWHERE, MOVED, _ruled(Standing.PERMITTED, first, last)) == [standing]


def test_an_undecided_range_stays_undecided_beside_one_with_a_late_copy(tmp_path: Path) -> None:
    ranges = _ruled(Standing.PERMITTED), _ruled(Standing.UNDECIDED)
    found = _standing(tmp_path, ACKNOWLEDGED_ELSEWHERE, MOVED, *ranges)
    assert found == [Standing.VIOLATION, Standing.UNDECIDED]


@pytest.mark.parametrize(
    ("lines", "settings", "standing"),
    [
        (WRITTEN_TWICE, {}, Standing.VIOLATION),
        ((*WRITTEN_TWICE, SLOW), NO_IDEMPOTENCE, Standing.PERMITTED),
        ((*WRITTEN_TWICE, f"{SLOW} unknown=b1,b2"), NO_IDEMPOTENCE, Standing.UNDECIDED),
        (WRITTEN_TWICE, NO_IDEMPOTENCE, Standing.VIOLATION),
        ((*WRITTEN_TWICE, SLOW), {"idempotence": False, "retries": 0}, Standing.VIOLATION),
        ((*WRITTEN_TWICE, SLOW), {}, Standing.VIOLATION),
        ((*WRITTEN_TWICE, "send x info t5..10.5"), {}, Standing.PERMITTED),
        ((*WRITTEN_TWICE, "send x info t5..9"), {}, Standing.VIOLATION),
        ((*WRITTEN_TWICE, "send x info t5..10.5"), {"idempotence": False, "retries": 0}, Standing.VIOLATION),
        (_acknowledged_at_27(WRITTEN_TWICE), {}, Standing.PERMITTED),
    ],
    ids=[
        *("idempotent", "sent again", "sent again perhaps", "no reason to send it again", "no retries"),
        "idempotent, slow",
        *("one beside it given up", "one given up before it", "not idempotent, one given up"),
        "perhaps of the next leader",
    ],
)
def test_a_loss_excuses_no_copy_that_one_leader_wrote_twice(
    lines: Sequence[str], settings: dict[str, Any], standing: Standing, tmp_path: Path
) -> None:
    permitted = _ruled(Standing.PERMITTED, 9, 9)
    got = _standing(tmp_path, ACKNOWLEDGED_ELSEWHERE, lines, permitted, settings=settings, moved_to=1)
    assert got == [standing]


@pytest.mark.parametrize(
    ("fault", "standing"),
    [
        ((), Standing.PERMITTED),
        (("fault p b1 20..59 kind=pause",), Standing.VIOLATION),
        (("fault p b1 20..59 kind=pause unknown=b1",), Standing.UNDECIDED),
        (("fault p b1 20..59 kind=pause without=b1",), Standing.PERMITTED),
        (("fault p b1 20..59 kind=kill unknown=b1",), Standing.UNDECIDED),
        (("fault p b1 20..59 kind=isolate plane=all clients=cut",), Standing.VIOLATION),
        (("fault p b1 20..59 kind=isolate plane=all clients=cut unknown=b1",), Standing.UNDECIDED),
    ],
    ids=["up", "paused", "paused perhaps", "not paused", "killed perhaps", "cut off", "cut off perhaps"],
)
def test_a_second_copy_of_one_leader_is_excused_only_if_a_deposed_one_may_have_acknowledged_the_first(
    fault: tuple[str, ...], standing: Standing, tmp_path: Path
) -> None:
    lines = (
        *("send a ok @0 t1..2 w1", "final a @0 e0", "send r ok @9 t30..31", "send y ok @2 t40..41 w2", "final r @1 e1"),
        *("final y @2 e1", "send z ok @3 t50..51 w1", "final z @3 e1", "end 0..4"),
        *(f"saw b{n} @0..20 leader=1 epoch=0 isr=1,2,3" for n in (1, 2, 3)),
        *(f"saw b{n} @21..60 leader=2 epoch=1 isr=2,3" for n in (2, 3)),
    )
    permitted = _ruled(Standing.PERMITTED, 9, 9)
    assert _standing(tmp_path, ACKNOWLEDGED_ELSEWHERE, [*lines, *fault], permitted, moved_to=1) == [standing]


_IN_TIME: list[dict[str, Any]] = []
_LATE = [{"topic": "trial", "partition": 0, "sent_ns": 10 * SECOND, "acknowledged_ns": 11 * SECOND, "addressed": True}]


@pytest.mark.parametrize(
    ("vanished", "late", "faults", "loss", "standing"),
    [
        (True, _IN_TIME, (), Standing.PERMITTED, Standing.PERMITTED),
        (True, _IN_TIME, (), Standing.VIOLATION, Standing.VIOLATION),
        (True, _IN_TIME, (), Standing.UNDECIDED, Standing.UNDECIDED),
        (True, _IN_TIME, (), None, None),
        (None, _IN_TIME, (), Standing.PERMITTED, Standing.UNDECIDED),
        (None, _IN_TIME, (), Standing.VIOLATION, Standing.VIOLATION),
        (True, _LATE, (), Standing.PERMITTED, None),
        (True, _LATE, (SLOW,), Standing.PERMITTED, Standing.UNDECIDED),
        (True, _LATE, (f"{SLOW} unknown=b1,b2",), Standing.PERMITTED, Standing.UNDECIDED),
        (True, _LATE, (SLOW,), Standing.VIOLATION, Standing.VIOLATION),
    ],
    ids=[
        *("of a permitted loss", "of a violation", "of a loss of which nobody knows", "of none"),
        *("perhaps", "perhaps, of a violation", "late", "held back", "held back perhaps", "held back, of a violation"),
    ],
)
def test_a_record_that_was_sent_again_because_it_was_lost_is_ruled_as_the_loss(
    vanished: bool | None,
    late: list[dict[str, Any]],
    faults: Sequence[str],
    loss: Standing | None,
    standing: Standing | None,
    tmp_path: Path,
) -> None:
    known, _ = history(tmp_path, [_GONE], *MOVED, *faults)
    lost = [] if loss is None else [_ruled(loss)]
    tables = [pa.Table.from_pylist(late, LATE)] * len(possible_faults(known.faults))
    ruling = ruled_as_loss(known, lost, tables, vanished)
    assert (ruling and ruling.standing) is standing


def test_a_copy_that_came_late_only_if_a_fault_in_doubt_did_not_act_leaves_its_ruling_open(tmp_path: Path) -> None:
    known, _ = history(tmp_path, [_GONE], *MOVED, "fault c c1 5..30 kind=pause unknown=c1")
    late = [pa.Table.from_pylist(rows, LATE) for rows in (_LATE, _IN_TIME)]
    ruling = ruled_as_loss(known, [_ruled(Standing.PERMITTED)], late, vanished=True)
    assert ruling is not None
    assert ruling.standing is Standing.UNDECIDED


@pytest.mark.parametrize(
    ("found", "losses"),
    [(COPIES, None), (COPIES | {"epochs": [1, 1]}, cast(Losses, object()))],
    ids=["no loss is known", "two copies of one term"],
)
def test_a_loss_that_cannot_have_been_the_reason_rules_no_copies(
    found: dict[str, Any], losses: Losses | None, tmp_path: Path
) -> None:
    duplicated = rows_in(tmp_path / "duplicated", found)
    found_rows = AnomalyStore({DUPLICATED.name: duplicated, VANISHED.name: rows_in(tmp_path / "vanished", _GONE)})
    known, _ = history(tmp_path / "run", [_GONE], *MOVED)
    assert sent_again_for_loss(known, found_rows, losses) is None
