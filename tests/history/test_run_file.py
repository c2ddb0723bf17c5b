"""run.json: written at once, read back the same, and refused in one line where it is not one."""

import json
from pathlib import Path

import pytest

from harness.cluster.kafka_config import QUICK_KRAFT, QUICK_ZOOKEEPER
from harness.core.clock import SECOND_NS
from harness.core.errors import HistoryError
from harness.core.guarantees import Configuration
from harness.history.run_file import (
    HEARTBEAT_MS,
    QUICK_SILENCE_NS,
    RUN_FILE,
    SESSION_MS,
    Limits,
    NodeAddress,
    RunFile,
    State,
    StepReport,
)


def run_file(**more: object) -> RunFile:
    return RunFile(
        run="s/1", scenario_name="s", scenario={"a": 1}, configuration=Configuration(version="4.3.1"), **more
    )


def test_a_run_file_is_read_back_as_written(tmp_path: Path) -> None:
    file = run_file(
        seed=7,
        state=State.RECORDED,
        nodes=[NodeAddress(name="b1", role="broker", id=1, address="10.0.0.1")],
        timeline=[StepReport(step="wait: 5s", at_ns=0, ended_ns=5, met=False, detail="nothing")],
    )
    file.write(tmp_path)
    assert RunFile.read(tmp_path) == file
    assert [path.name for path in tmp_path.iterdir()] == [RUN_FILE]


def test_limits_of_an_earlier_run_need_no_unit(tmp_path: Path) -> None:
    run_file().write(tmp_path)
    stored = json.loads((tmp_path / RUN_FILE).read_text()) | {"limits": {"unavailable": 20, "recovery": "10500ms"}}
    (tmp_path / RUN_FILE).write_text(json.dumps(stored))
    assert RunFile.read(tmp_path).limits == Limits(unavailable=20.0, recovery=10.5)


def test_a_run_file_is_replaced(tmp_path: Path) -> None:
    run_file().write(tmp_path)
    run_file(state=State.JUDGED).write(tmp_path)
    assert RunFile.read(tmp_path).state is State.JUDGED


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "whole file"),
        ("{", "whole file"),
        ('{"run": "s/1"}', "scenario_name"),
        (
            '{"run": "s/1", "scenario_name": "s", "scenario": {}, "configuration": {"version": "4", "x": 1}}',
            "configuration.x",
        ),
    ],
)
def test_another_file_is_refused_in_one_line_that_says_where(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / RUN_FILE).write_text(text)
    with pytest.raises(HistoryError, match=why) as raised:
        RunFile.read(tmp_path)
    assert str(tmp_path / RUN_FILE) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / RUN_FILE).write_bytes(b'{"run": "\xff\xfe"}')
    with pytest.raises(HistoryError, match=r"run\.json: not a run file of this version"):
        RunFile.read(tmp_path)


def test_a_directory_without_a_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="no run here"):
        RunFile.read(tmp_path)


def step(says: str, detail: str = "", met: bool = True) -> StepReport:
    return StepReport(step=says, at_ns=0, ended_ns=1, met=met, detail=detail)


#: Two members, workers 3 and 4, and the steps of a run that does not record which members it killed.
STEPS = [
    step("kill member 2", "killed process 7, in the middle of a poll"),
    step("join member 2", "started process 8"),
    step("kill member 1", "member 1 is not in the group", met=False),
    step("leave member 1", "process 6 left"),
    step("kill member 9", "killed process 9"),
    step("inject kill b2"),
    step("kill member 2", "killed process 8, not in the middle of a poll"),
]


def test_whom_an_earlier_run_killed_its_steps_tell(tmp_path: Path) -> None:
    clients = {"producer 1": {}, "consumer 4": {}, "consumer 3": {}}
    reported = run_file(timeline=STEPS, clients=clients)
    assert [(one.worker, one.incarnation) for one in reported.killed] == [(4, 0), (4, 1)]
    assert run_file(timeline=STEPS, clients=clients, killed=[]).killed == []


def test_a_key_of_an_earlier_run_that_nothing_reads_is_ignored(tmp_path: Path) -> None:
    run_file().write(tmp_path)
    path = tmp_path / RUN_FILE
    path.write_text(path.read_text().replace('"seed":', '"origin_monotonic_ns": 5, "seed":'))
    assert RunFile.read(tmp_path) == run_file()


def test_run_json_says_who_writes_each_table_and_roles_say_it_for_the_others() -> None:
    clients: dict[str, dict[str, object]] = {
        "ticker 1": {},
        "transactor 2": {"acks": "all"},
        "consumer 3": {},
        "admin 0": {},
    }
    reported = run_file(clients=clients, writes={"ticker 1": ("sends",)})
    assert reported.workers("sends") == {1: {}, 2: {"acks": "all"}}
    assert [*reported.workers("positions")] == [3]
    assert [*reported.workers()] == [1, 2, 3, 0]


@pytest.mark.parametrize(
    ("metadata", "config", "seconds"),
    [
        ("kraft", None, 5),
        ("kraft", {"broker.session.timeout.ms": 9000, "broker.heartbeat.interval.ms": "2000"}, 7),
        ("kraft", {"zookeeper.session.timeout.ms": 9000}, 5),
        ("kraft", {"broker.session.timeout.ms": 500}, 0),
        ("zookeeper", None, 4),
        ("zookeeper", {"zookeeper.session.timeout.ms": "18000", "broker.session.timeout.ms": 9000}, 12),
    ],
)
def test_a_broker_is_held_for_dead_when_its_session_may_be_over(
    metadata: str, config: dict[str, object] | None, seconds: int
) -> None:
    scenario = {"cluster": {"config": config} if config else {}}
    configuration = Configuration(version="3.9.1", metadata=metadata)
    run = RunFile(run="s/1", scenario_name="s", scenario=scenario, configuration=configuration)
    assert run.silence_ns == seconds * SECOND_NS


def test_sessions_are_those_of_the_clusters_that_the_harness_brings_up() -> None:
    kraft = (int(QUICK_KRAFT[f"broker.{key}.ms"]) for key in ("session.timeout", "heartbeat.interval"))
    assert (*kraft, int(QUICK_ZOOKEEPER["zookeeper.session.timeout.ms"])) == (SESSION_MS, HEARTBEAT_MS, SESSION_MS)
    assert run_file().silence_ns == QUICK_SILENCE_NS
