"""The operations of a history as rows, by hand; a file that is no such history is refused in one line."""

from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from harness.core.errors import HistoryError, KafkaTrialError, ScenarioError
from harness.history.paths import table_directory
from harness.history.run_file import Origin, RunFile, State
from harness.history.schema import LATER, UNKNOWN_OFFSET, worker_of
from harness.history.stored_run import StoredRun
from harness.importing.jepsen import import_jepsen
from harness.importing.naming import NOBODY
from harness.importing.tables import LEFT_OUT
from tests.importing.notation import MS, edn, polled, sent, write


class Imported:
    """A history by hand, imported."""

    def __init__(self, directory: Path, *lines: str, **settings: str) -> None:
        self.out = directory / "store" / "run"
        self.file = import_jepsen(write(directory / "history.edn", *lines), self.out, settings)

    def rows(self, table: str, *columns: str) -> list[Any]:
        """The rows of a table: as dicts, or the values of some columns."""
        rows = pq.read_table(table_directory(self.out, table)).to_pylist()
        return [tuple(row[name] for name in columns) for row in rows] if columns else rows


def test_a_send_is_a_row(tmp_path: Path) -> None:
    assert Imported(tmp_path, *sent(1, 7, "[3 7]", process=2)).rows("sends") == [
        {
            **{"worker": 2, "incarnation": 0, "sequence": 0, "topic": "jepsen", "partition": 1, "record_id": 2 << 40},
            **{"key": "7", "invoked_ns": MS, "completed_ns": 2 * MS, "outcome": "ok", "error": None, "offset": 3},
            "transaction": None,
        }
    ]


@pytest.mark.parametrize(
    ("reported", "kind", "outcome", "offset"),
    [
        ("[3 7]", "ok", "ok", 3),
        ("[nil 7]", "ok", "ok", None),
        ("7", "ok", "ok", None),
        ("7", "info", "info", None),
        ("[3 7]", "info", "info", 3),
        ("7", "fail", "fail", None),
        ("[-1 7]", "ok", "ok", None),
        ("[9223372036854775806 7]", "ok", "ok", (1 << 63) - 2),
    ],
)
def test_a_send_is_imported_with_its_outcome_and_offset(
    reported: str, kind: str, outcome: str, offset: int | None, tmp_path: Path
) -> None:
    done = Imported(tmp_path, *sent(1, 7, reported, kind=kind))
    assert done.rows("sends", "outcome", "offset", "completed_ns") == [(outcome, offset, 2 * MS)]


def test_a_send_that_never_completed_is_undecided(tmp_path: Path) -> None:
    done = Imported(tmp_path, "0 invoke send [[:send 1 7]]")
    assert done.rows("sends", "outcome", "completed_ns") == [("info", None)]


def test_a_crashed_operation_may_tell_nothing_but_its_error(tmp_path: Path) -> None:
    done = Imported(tmp_path, "0 invoke send [[:send 1 7]]", "0 info send nil, :error [:timeout {:a 1}]")
    assert done.rows("sends", "outcome", "error") == [("info", "[:timeout {:a 1}]")]


def test_the_records_of_a_poll_are_imported_as_reads(tmp_path: Path) -> None:
    done = Imported(tmp_path, *sent(1, 7, "[3 7]"), *polled("1 [[3 7]]", process=5))
    assert done.rows("reads") == [
        {
            **{"reader": 5, "incarnation": 0, "phase": "live", "topic": "jepsen", "partition": 1},
            **{
                "offset": 3,
                "leader_epoch": None,
                "record_id": 0,
                "intact": True,
                "read_ns": 4 * MS,
                "poll": 1,
                "transaction": None,
            },
        }
    ]


def test_columns_that_the_import_omits_are_optional(tmp_path: Path) -> None:
    done = Imported(tmp_path, *sent(1, 7, "[3 7]"), *polled("1 [[3 7]]"))
    assert LEFT_OUT["reads"] <= LATER["reads"]
    assert not StoredRun.open(done.out).has_column("reads", "key")


@pytest.mark.parametrize("kind", ["ok", "info", "fail"])
def test_a_polled_record_was_delivered_however_the_poll_ended(kind: str, tmp_path: Path) -> None:
    done = Imported(tmp_path, *sent(1, 7, "[3 7]"), *polled("1 [[3 7]]", kind=kind))
    assert done.rows("reads", "record_id") == [(0,)]


@pytest.mark.parametrize("value", ["[[:poll]]", "[[:poll {}]]", "[[:poll nil]]", "[[:poll {1 []}]]", "[]", "nil"])
def test_a_poll_may_bring_nothing(value: str, tmp_path: Path) -> None:
    done = Imported(tmp_path, "0 invoke poll [[:poll]]", f"0 ok poll {value}")
    assert done.rows("reads") == []


@pytest.mark.parametrize("none", ["nil", "-1"])
def test_a_read_without_an_offset_has_an_unknown_offset(none: str, tmp_path: Path) -> None:
    assert Imported(tmp_path, *sent(1, 7, "7"), *polled(f"1 [[{none} 7]]")).rows("reads", "offset") == [
        (UNKNOWN_OFFSET,)
    ]


@pytest.mark.parametrize(
    ("value", "reported", "kind", "offset"),
    [
        ("[1 2]", "[1 2]", "info", None),
        ("[1 2]", "[1 2]", "ok", None),
        ("[1 2]", "[5 [1 2]]", "ok", 5),
        ("[nil 2]", "[nil 2]", "fail", None),
        ("[nil 2]", "[nil [nil 2]]", "ok", None),
        ("[[1 2] 3]", "[0 [[1 2] 3]]", "ok", 0),
        ('"\\ud83d\\ude00"', '[5 "\\ud83d\\ude00"]', "ok", 5),
    ],
)
def test_a_value_may_be_a_vector_or_any_text(
    value: str, reported: str, kind: str, offset: int | None, tmp_path: Path
) -> None:
    done = Imported(
        tmp_path,
        f"0 invoke send [[:send 1 {value}]]",
        f"0 {kind} send [[:send 1 {reported}]]",
        *polled(f"1 [[5 {value}]]"),
    )
    assert done.rows("sends", "outcome", "offset") == [(kind, offset)]
    assert done.rows("reads", "record_id") == [(0,)]


def test_true_and_1_are_two_values_and_two_keys(tmp_path: Path) -> None:
    done = Imported(tmp_path, *sent(1, 1, "[0 1]"), *sent(1, "true", "[1 true]"), *polled("1 [[0 1] [1 true]]"))
    assert done.rows("reads", "offset", "record_id") == [(0, 0), (1, 1)]


def test_a_txn_sends_and_polls(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        "0 invoke txn [[:send 1 7] [:poll] [:send 2 8] [:poll]]",
        "0 ok txn [[:send 1 [0 7]] [:poll {2 [[0 8]]}] [:send 2 [0 8]] [:poll {1 [[0 7]]}]]",
    )
    assert done.rows("sends", "sequence", "partition", "offset") == [(0, 1, 0), (1, 2, 0)]
    assert done.rows("reads", "partition", "record_id") == [(2, 1), (1, 0)]


def test_the_same_value_of_two_keys_is_two_records(tmp_path: Path) -> None:
    done = Imported(tmp_path, *sent(1, 7, "[0 7]"), *sent(2, 7, "[0 7]"), *polled("1 [[0 7]], 2 [[0 7]]"))
    assert done.rows("reads", "partition", "record_id") == [(1, 0), (2, 1)]


def test_a_value_that_no_one_sent_gets_an_id_and_a_note(tmp_path: Path) -> None:
    done = Imported(tmp_path, *sent(1, 7, "[0 7]"), *polled("1 [[0 7] [1 99]]"), *polled("1 [[1 99] [2 98]]"))
    workers = [worker_of(record) for (record,) in done.rows("reads", "record_id")]
    assert workers == [0, NOBODY, NOBODY, NOBODY]
    assert len(set(done.rows("reads", "record_id"))) == 3
    assert done.file.notes == [
        "jepsen-1 at 1: no one sent the value 99 (line 4)",
        "jepsen-1 at 2: no one sent the value 98 (line 6)",
    ]


def test_a_crashed_process_goes_on_as_the_next_incarnation_and_its_sequence_goes_on(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        *sent(0, 1, "[0 1]", process=0),
        *sent(0, 2, "[1 2]", process=1),
        *("0 invoke crash nil", "0 info crash nil"),
        *sent(0, 3, "[2 3]", process=2),
        *sent(0, 4, "4", process=2, kind="info"),
        *sent(0, 5, "[4 5]", process=4),
        *sent(0, 6, "[5 6]", process=1),
    )
    placed = [(0, 0, 0), (1, 0, 0), (0, 1, 1), (0, 1, 2), (0, 2, 3), (1, 0, 1)]
    assert done.rows("sends", "worker", "incarnation", "sequence") == placed
    assert done.file.scenario["concurrency"] == 2


def test_a_process_that_ends_itself_goes_on_as_another_too(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        *sent(0, 1, "[0 1]", process=0),
        *("0 invoke send [[:send 0 2]]", "0 fail send [[:send 0 2]], :error :producer-fenced, :end-process? true"),
        *sent(0, 3, "[1 3]", process=1),
    )
    assert done.rows("sends", "worker", "incarnation") == [(0, 0), (0, 0), (0, 1)]


def test_the_nemesis_is_none_of_it(tmp_path: Path) -> None:
    done = Imported(tmp_path, "nemesis info start {:grudge {}}", *sent(1, 7, "7"), "nemesis info stop nil")
    assert done.file.scenario["operations"] == 2


def test_a_new_choice_of_keys_moves_the_reader(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        *("0 invoke assign [1 2]", "0 ok assign [1 2]"),
        *("0 invoke assign [2 3]", "0 fail assign [2 3]"),
        *("0 invoke assign [2 3]", "0 ok assign [2 3], :seek-to-beginning? true"),
    )
    assert done.rows("positions", "at_ns", "event", "partition", "offset") == [
        (2 * MS, "assign", 1, None),
        (2 * MS, "assign", 2, None),
        (6 * MS, "revoke", 1, None),
        (6 * MS, "assign", 3, None),
        (6 * MS, "seek", 2, 0),
        (6 * MS, "seek", 3, 0),
    ]


SUBSCRIBED = ("0 invoke subscribe [1 2]", "0 ok subscribe [1 2]")


def in_group(batches: str, *keys: int, process: int = 0) -> tuple[str, str]:
    """A poll while a group moved these keys."""
    invoked, completed = polled(batches, process)
    return invoked, f"{completed}, :rebalance-log [{{:type :assigned, :keys [{' '.join(map(str, keys))}]}}]"


def test_of_a_group_that_tells_no_rebalance_any_poll_may_come_after_one(tmp_path: Path) -> None:
    done = Imported(tmp_path, *SUBSCRIBED, *sent(1, 7, "[0 7]"), *polled("1 [[0 7]]", process=0))
    assert done.rows("positions", "at_ns", "event", "partition", "poll") == [(6 * MS, "may-have-moved", 1, 1)]


def test_only_partitions_that_a_group_moved_are_assigned_again(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        *SUBSCRIBED,
        *(*sent(1, 7, "[0 7]"), *sent(2, 8, "[0 8]")),
        *in_group("1 [[0 7]], 2 [[0 8]]", 1, 2),
        *in_group("1 [[0 7]], 2 [[0 8]]", 1),
        *(*polled("1 [[0 7]], 2 [[0 8]]", process=0), *polled("1 [[0 7]], 2 [[0 8]]", process=0)),
    )
    assert done.rows("positions", "event", "partition", "poll") == [
        *(("assign", 1, 1), ("assign", 2, 1)),
        ("assign", 1, 2),
    ]


def test_a_rebalance_that_names_no_keys_may_be_of_any(tmp_path: Path) -> None:
    invoked, completed = polled("", process=0)
    done = Imported(
        tmp_path,
        *(*SUBSCRIBED, *sent(1, 7, "[0 7]"), *in_group("1 [[0 7]]", 1)),
        *(invoked, f"{completed}, :rebalance-log [{{:type :revoked}}]"),
        *(*polled("1 [[0 7]]", process=0), *polled("1 [[0 7]]", process=0)),
    )
    assert done.rows("positions", "event", "partition", "poll") == [("assign", 1, 1), ("assign", 1, 3)]


def test_of_a_process_that_tells_rebalances_those_of_another_are_not_known(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        *(*SUBSCRIBED, "5 invoke subscribe [1]", "5 ok subscribe [1]", *sent(1, 7, "[0 7]")),
        *(*in_group("1 [[0 7]]", 1), *polled("1 [[0 7]]", process=5)),
    )
    assert done.rows("positions", "reader", "event") == [(0, "assign"), (5, "may-have-moved")]


@pytest.mark.parametrize("log", ["5", "[5]", "{:keys [1]}"])
def test_a_rebalance_log_that_is_none_is_refused(log: str, tmp_path: Path) -> None:
    invoked, completed = polled("", process=0)
    with pytest.raises(HistoryError, match=r":2: .* is no :rebalance-log"):
        Imported(tmp_path, invoked, f"{completed}, :rebalance-log {log}")


def test_polls_are_numbered_in_order_also_within_one_operation(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        "0 invoke poll [[:poll] [:poll]]",
        "0 ok poll [[:poll {1 [[3 7] [nil 6] [1 8] [2 9]]}] [:poll {1 [[2 9]]}]]",
    )
    assert done.rows("reads", "offset", "poll") == [(3, 1), (-1, 1), (1, 2), (2, 2), (2, 3)]


def test_a_partition_never_seen_assigned_keeps_its_place_while_it_stays_assigned(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        *(*sent(1, 7, "[0 7]"), *sent(2, 8, "[0 8]"), *polled("1 [[0 7]], 2 [[0 8]]", process=0)),
        *("0 invoke assign [2 3]", "0 ok assign [2 3]"),
    )
    assert done.rows("positions", "event", "partition") == [("revoke", 1), ("assign", 3)]


def test_a_reader_that_leaves_its_group_for_keys_of_its_own_begins_anew(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        *(*SUBSCRIBED, *sent(1, 7, "[0 7]"), *in_group("1 [[0 7]]", 1)),
        *("0 invoke assign [1]", "0 ok assign [1]"),
    )
    assert done.rows("positions", "event", "partition") == [("assign", 1), ("revoke", 1), ("assign", 1)]


def test_going_back_after_a_failed_poll_is_imported_as_a_seek(tmp_path: Path) -> None:
    done = Imported(
        tmp_path, *sent(1, 7, "[0 7]"), *polled("1 [[0 7]]", kind="fail"), *polled("1 [[0 7]]"), *polled("1 [[0 7]]")
    )
    assert done.rows("positions", "at_ns", "event", "partition", "offset") == [(6 * MS, "seek", 1, 0)]


def test_going_on_or_jumping_ahead_after_a_failed_poll_is_no_seek(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        *(*sent(1, 7, "[0 7]"), *sent(1, 8, "[1 8]"), *sent(1, 9, "[5 9]")),
        *(*polled("1 [[0 7]]", kind="fail"), *polled("1 [[1 8]]", kind="fail"), *polled("1 [[5 9]]")),
    )
    assert done.rows("positions") == []


def test_a_process_that_goes_on_after_a_crash_has_another_client(tmp_path: Path) -> None:
    done = Imported(
        tmp_path, *sent(1, 7, "[0 7]"), *polled("1 [[0 7]]", kind="info"), *polled("1 [[0 7]]"), *polled("1 [[0 7]]")
    )
    assert done.rows("positions", "event", "partition", "offset") == [("seek", 1, None)]


#: How a poll that failed is completed: it may have been rolled back, whatever its completion says.
FAILED = ["[[:poll {1 [[0 7]]}]]", "[[:poll {}]]", "[[:poll]]", "[]", "nil"]


@pytest.mark.parametrize("completed", FAILED)
@pytest.mark.parametrize("function", ["poll", "txn"])
def test_a_poll_that_failed_may_be_rolled_back_whatever_its_completion_tells(
    function: str, completed: str, tmp_path: Path
) -> None:
    failed = (f"9 invoke {function} [[:poll]]", f"9 fail {function} {completed}")
    done = Imported(tmp_path, *sent(1, 7, "[0 7]"), *polled("1 [[0 7]]"), *failed, *polled("1 [[0 7]]"))
    assert done.rows("positions", "at_ns", "event", "partition") == [(8 * MS, "seek", 1)]


@pytest.mark.parametrize(("completed", "excused"), [("[[:poll]]", 1), ("nil", 1), ("[[:poll {}]]", 0)])
def test_records_that_a_failed_poll_may_have_read_are_not_skipped(completed: str, excused: int, tmp_path: Path) -> None:
    failed = ("9 invoke txn [[:poll]]", f"9 fail txn {completed}")
    writes = (*sent(1, 7, "[0 7]"), *sent(1, 8, "[1 8]"), *sent(1, 9, "[2 9]"))
    done = Imported(tmp_path, *writes, *polled("1 [[0 7]]"), *failed, *polled("1 [[2 9]]"))
    assert len(done.rows("positions", "event", "offset")) == excused


def test_a_send_that_failed_rolls_no_reader_back(tmp_path: Path) -> None:
    failed = sent(1, 8, "8", process=9, kind="fail")
    done = Imported(tmp_path, *sent(1, 7, "[0 7]"), *polled("1 [[0 7]]"), *failed, *polled("1 [[0 7]]"))
    assert done.rows("positions") == []


def test_keys_that_are_no_numbers_are_named_in_the_run_file(tmp_path: Path) -> None:
    done = Imported(tmp_path, "0 invoke send [[:send :y 1] [:send :x 1]]")
    assert done.rows("sends", "partition") == [(0,), (1,)]
    assert done.file.scenario["keys"] == {":y": 0, ":x": 1}


def test_debugging_its_partitions_changes_nothing(tmp_path: Path) -> None:
    done = Imported(
        tmp_path,
        "0 invoke debug-topic-partitions [1]",
        '0 ok debug-topic-partitions {:node "n1", :partitions {1 {:leader 1}}}',
        *sent(1, 7, "[0 7]"),
    )
    assert len(done.rows("sends")) == 1


def test_a_run_is_whole_and_says_where_it_is_from(tmp_path: Path) -> None:
    done = Imported(tmp_path, *sent(1, 7, "[3 7]"), acks="1", idempotence="false")
    file = RunFile.read(done.out)
    assert (file.origin, file.final_read, file.state) == (Origin.JEPSEN, False, State.RECORDED)
    assert (file.run, file.scenario_name, file.partial) == ("store/run", "jepsen", False)
    assert (file.configuration.acks, file.configuration.idempotence) == ("1", False)
    stored = StoredRun.open(done.out)
    assert (stored.sealed, stored.records) == (True, 1)
    assert [path.name for path in done.out.parent.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (edn(*sent(1, 7, "[3 7]"))[:-9], "history.edn:2: the file is cut off"),
        (edn("0 ok send [[:send 1 [3 7]]]"), ":1: process 0 completes a :send that it did not invoke"),
        (edn("0 invoke poll [[:poll]]", "0 ok send []"), ":2: process 0 completes a :send"),
        (edn("0 invoke poll [[:poll]]", "0 invoke poll [[:poll]]"), ":2: process 0 invokes"),
        (edn("0 invoke read nil"), ":1: :f :read is another workload's"),
        (edn("0 invoke txn [[:r 1 nil]]"), ":1: [:r 1 nil] is neither a [:send k v] nor a [:poll …]"),
        (edn("0 invoke send 7"), ":1: the :value of a :send must be a vector"),
        (edn("0 invoke send [[:send 1]]"), ":1: [:send 1] is no [:send k v]"),
        (edn("0 invoke send [[:send :a 1] [:send 1 1]]"), ":1: 1 is not a key"),
        (edn(*sent(1, 7, "[3 8]")), ":2: an operation completes other sends than it invoked"),
        (edn(*sent(1, 7, "[3 7]"), *sent(1, 7, "[4 7]")), ":3: value 7 is sent to partition 1 twice"),
        (edn(*polled("1 [7]")), ":2: 7, polled of key 1, is no [offset v]"),
        (edn("0 invoke poll [[:poll]]", "0 ok poll [[:poll [1]]]"), ":2: [:poll [1]] is no [:poll {k"),
        (edn("0 invoke assign 1", "0 ok assign 1"), ":2: the :value of an :assign must be keys"),
        (edn("0 began poll [[:poll]]"), ":1: :type :began is none of :invoke"),
        ("{:process 0, :type :invoke, :f :poll, :value [[:poll]]}", ":1: an operation without a :time"),
        ("{:process 8388607, :time 1, :type :invoke, :f :poll, :value [[:poll]]}", ":1: process 8388607: there cannot"),
        ("{:process 0, :time 9223372036854775808, :type :invoke, :f :poll}", ":1: :time 9223372036854775808 is beyond"),
        ("{:process 0, :time true, :type :invoke, :f :poll}", ":1: an operation without a :time"),
        (edn(*sent(1, 7, "[9223372036854775807 7]")), ":2: [9223372036854775807 7], completed of 7, is no [offset v]"),
        (edn(*sent(1, 7, "[true 7]")), ":2: [true 7], completed of 7, is no [offset v]"),
        (edn(*sent(1, 7, "[-2 7]")), ":2: [-2 7], completed of 7, is no [offset v]"),
        (edn(*sent(1, 7, "[:a 7]")), ":2: [:a 7], completed of 7, is no [offset v]"),
        (edn(*polled("1 [[true 7]]")), ":2: [true 7], polled of key 1, is no [offset v]"),
        (edn(*polled("1 [[18446744073709551616 7]]")), ":2: [18446744073709551616 7], polled of key 1, is no"),
        (edn(*polled("1 5")), ":2: 5, polled of key 1, is no [[offset v] …]"),
        (edn(*polled("1 false")), ":2: false, polled of key 1, is no [[offset v] …]"),
        ("{:process 0, :time 1, :type :invoke, :f {:a 1}}", ":1: :f {:a 1} is another workload's"),
        ("{:process 0, :time 1, :type {:a 1}, :f :poll}", ":1: :type {:a 1} is none of :invoke"),
        (edn(*polled("1 [[-7 7]]")), ":2: [-7 7], polled of key 1, is no [offset v]"),
        (edn(f"0 invoke send [[:send 1 {'9' * 5000}]]"), ":1: a number of 5000 digits"),
        (edn(f"0 invoke send [[:send 1 {'[' * 501}{']' * 501}]]"), ":1: forms within forms"),
        (edn(r'0 invoke send [[:send 1 "\ud83d"]]'), ":1: a string with half of a surrogate pair"),
        (edn(r'0 invoke send [[:send 1 "\ude00\ud83d"]]'), ":1: a string with half of a surrogate pair"),
        (
            edn("0 invoke poll [[:poll]]", "0 info poll nil", "1 invoke poll [[:poll]]", "4294967296 invoke poll nil"),
            ":4: process 4294967296: there cannot be so many",
        ),
        ("hello world", ":1: not an operation of a Jepsen history"),
        ('{:name "test.edn"}', ":1: not an operation of a Jepsen history"),
        (edn("nemesis info start nil"), "history.edn: no operation of jepsen.tests.kafka in it"),
        ("", "history.edn: no operation of jepsen.tests.kafka in it"),
    ],
)
def test_another_file_is_refused_in_one_line_and_leaves_nothing(text: str, says: str, tmp_path: Path) -> None:
    source = tmp_path / "history.edn"
    source.write_text(text)
    with pytest.raises(HistoryError) as raised:
        import_jepsen(source, tmp_path / "store" / "run")
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
    assert list((tmp_path / "store").iterdir()) == []


def test_an_import_overwrites_no_existing_run(tmp_path: Path) -> None:
    done = Imported(tmp_path, *sent(1, 7, "[3 7]"))
    with pytest.raises(HistoryError, match="exists already"):
        import_jepsen(tmp_path / "history.edn", done.out)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert import_jepsen(tmp_path / "history.edn", empty) == RunFile.read(empty)
    with pytest.raises(HistoryError, match="cannot be written"):
        import_jepsen(tmp_path / "history.edn", tmp_path / "history.edn" / "run")


@pytest.mark.parametrize(("name", "value"), [("colour", "red"), ("replication", "many")])
def test_an_unknown_setting_is_refused(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=f"--set {name}") as raised:
        Imported(tmp_path, *sent(1, 7, "[3 7]"), **{name: value})
    assert isinstance(raised.value, KafkaTrialError)


def generated(path: Path, operations: int) -> Path:
    """Ten processes that send to eight keys and poll them to the end."""
    with path.open("w") as file:
        for n in range(operations // 4):
            key, value, at = n % 8, n // 8, 4 * n
            for line in (
                *sent(key, value, f"[{value} {value}]", process=n % 10),
                *polled(f"{key} [[{value} {value}]]", process=n % 10),
            ):
                file.write(edn(line).replace(":index 0, :time 1000000", f":index {at}, :time {at}"))
                at += 1
    return path


def test_a_long_history_takes_little_memory(tmp_path: Path) -> None:
    source = generated(tmp_path / "history.edn", 100_000)
    import_jepsen(generated(tmp_path / "short.edn", 1_000), tmp_path / "short")  # what is loaded once is loaded
    before = psutil.Process().memory_info().rss
    import_jepsen(source, tmp_path / "run")
    grown = psutil.Process().memory_info().rss - before
    rows = {name: pq.read_table(table_directory(tmp_path / "run", name)).num_rows for name in ("sends", "reads")}
    assert rows == {"sends": 25_000, "reads": 25_000}
    assert grown < 100 << 20
