"""A recorder is a process of its own; whatever becomes of it, the suite gets one last event."""

import errno
import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from queue import Queue

import pytest

from harness.core.errors import ClusterError, EnvironmentLacks, NoMeans, ScenarioError
from harness.scenario.loading import load
from harness.suite.following import Recorder
from harness.suite.plan import digest
from harness.suite.recorder import ENDS, Event, EventWriter, Order, record

NAME = "jepsen-2013/min-isr-2"


@pytest.fixture(autouse=True)
def _no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")


def order(store: Path, **changes: object) -> Order:
    asked = {"written": NAME, "overrides": [], "digest": digest(load(NAME)), "store": store, "seed": 1, **changes}
    return Order(**asked)  # type: ignore[arg-type]


def followed(order: Order, log: Path) -> list[Event]:
    """Every event of a recorder that ends by itself."""
    events: Queue[Event] = Queue()
    recorder = Recorder(order, log, events.put)
    recorder.wait()
    return [events.get() for _ in range(events.qsize())]


def test_a_lack_of_the_machine_is_reported_and_leaves_no_directory(tmp_path: Path) -> None:
    events = followed(order(tmp_path / "store"), tmp_path / "log")
    assert (events[-1].kind, events[-1].needed) == ("cannot run", True)
    assert "Docker" in events[-1].text
    assert not (tmp_path / "store").exists()
    assert (tmp_path / "log").read_text() == ""


def test_a_scenario_that_changed_since_is_not_recorded(tmp_path: Path) -> None:
    [event] = followed(order(tmp_path, digest="another"), tmp_path / "log")
    assert event == Event(kind="failed", text=f"{NAME} changed since the suite began: start the suite again")


def test_a_scenario_is_recorded_from_its_text_even_if_its_file_is_gone(tmp_path: Path) -> None:
    gone, text = str(tmp_path / "gone.yaml"), "cluster: {machines: inventory.yaml}\nworkload: {rate: 7}\n"
    asked = order(tmp_path / "store", written=gone, text=text, digest=digest(load(gone, text=text)))
    [event] = followed(asked, tmp_path / "log")
    assert event.text.startswith(f"{tmp_path}/inventory.yaml: the inventory cannot be read"), (
        "it stands beside the file"
    )


def test_a_scenario_that_is_wrong_is_a_line_and_its_users_to_mend(tmp_path: Path) -> None:
    [event] = followed(order(tmp_path, written="nobody/knows"), tmp_path / "log")
    assert (event.kind, event.needed) == ("cannot run", True)
    assert event.text.startswith("no scenario or file is called 'nobody/knows'")


def test_an_inventory_that_cannot_be_read_any_more_is_a_line_and_its_users_to_mend(tmp_path: Path) -> None:
    gone = f"cluster.machines={tmp_path}/gone.yaml"
    asked = order(tmp_path / "store", overrides=[gone], digest=digest(load(NAME, [gone])))
    [event] = followed(asked, tmp_path / "log")
    said = f"{tmp_path}/gone.yaml: the inventory cannot be read (No such file or directory): see docs/machines.md"
    assert event == Event(kind="cannot run", text=said, needed=True)
    assert (tmp_path / "log").read_text() == ""


@pytest.mark.parametrize("error", [ScenarioError, EnvironmentLacks, ClusterError, KeyboardInterrupt])
def test_the_note_of_an_error_is_in_its_line(error: type[BaseException], tmp_path: Path) -> None:
    exc = error("interrupted" if error is KeyboardInterrupt else "one\ntwo")
    exc.add_note("the recording stays in store/a/1")

    def breaks(*_: object, **__: object) -> Path:
        raise exc

    event = record(order(tmp_path), EventWriter(io.StringIO()), {}, breaks)
    first = "interrupted" if error is KeyboardInterrupt else "one; two"
    assert event.text == f"{first}; the recording stays in store/a/1"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "a.parquet"), "a.parquet: No space left on device"),
        (ZeroDivisionError("oops"), "defect: ZeroDivisionError: oops"),
    ],
)
def test_an_error_of_the_system_is_not_reported_as_a_defect(error: Exception, line: str, tmp_path: Path) -> None:
    def breaks(*_: object, **__: object) -> Path:
        raise error

    event = record(order(tmp_path), EventWriter(io.StringIO()), {}, breaks)
    assert (event.kind, event.text) == ("failed", line)


@pytest.mark.parametrize(
    ("error", "needed"),
    [(NoMeans("no sch_netem"), False), (EnvironmentLacks("Kafka 3.9.2 cannot be downloaded"), True)],
)
def test_a_suite_may_skip_only_runs_for_which_the_kernel_has_no_means(
    error: Exception, needed: bool, tmp_path: Path
) -> None:
    def breaks(*_: object, **__: object) -> Path:
        raise error

    event = record(order(tmp_path), EventWriter(io.StringIO()), {}, breaks)
    assert event == Event(kind="cannot run", text=str(error), needed=needed)


def test_one_that_is_killed_ends_too(tmp_path: Path) -> None:
    events: Queue[Event] = Queue()
    recorder = Recorder(order(tmp_path), tmp_path / "log", events.put)
    os.kill(recorder.pid, signal.SIGKILL)
    recorder.wait()
    [event] = [event for event in (events.get() for _ in range(events.qsize())) if event.kind in ENDS]
    assert event == Event(kind="failed", text="its process was killed by signal 9")


def test_the_recorder_imports_no_judge() -> None:
    """The imports of the judge would cost half a second of a core in every run."""
    script = (
        "import sys, harness.suite.recorder, harness.run.lifecycle, harness.suite.plan;"
        "import harness.providers.docker.provider;"
        "print([name for name in ('pandas', 'pyspark', 'checkers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
