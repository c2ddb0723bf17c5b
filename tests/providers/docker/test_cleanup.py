"""What is removed: what a run started, by its labels, and that is not still going."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.core.errors import ScenarioError
from harness.history.lock import RecordingLock
from harness.providers.docker.cleanup import cleanup, still_going
from harness.providers.docker.compose import LABEL, PROJECT_LABEL, is_ours, labels_of
from harness.providers.docker.shell import labels_of_no_run


def test_a_run_is_going_while_its_recorder_lives(tmp_path: Path) -> None:
    lock = RecordingLock(tmp_path)
    assert still_going([labels_of("s/1", tmp_path)]) == {"s/1": "it is still going"}
    lock.release()
    assert still_going([labels_of("s/1", tmp_path)]) == {}


def test_a_run_whose_directory_is_gone_or_unknown_is_not(tmp_path: Path) -> None:
    assert still_going([labels_of("s/1", tmp_path / "gone"), {"kafka-trial.run": "s/2"}]) == {}


def test_a_run_whose_lock_cannot_be_seen_is_left_alone_and_the_others_are_named(tmp_path: Path) -> None:
    (tmp_path / ".recording").symlink_to("elsewhere")
    places = {"s/1": tmp_path, "s/2": tmp_path / ("x" * 300), "s/3": tmp_path / "gone"}
    reported = still_going(labels_of(run, place) for run, place in places.items())
    assert list(reported) == ["s/1", "s/2"]
    assert all("cannot be seen" in why for why in reported.values())


def test_ours_bears_the_project_of_its_run_too(tmp_path: Path) -> None:
    ours = labels_of("s/1", tmp_path)
    assert is_ours(ours)
    assert not is_ours({"kafka-trial.run": "s/1"})
    assert not is_ours({**ours, "kafka-trial.run": "s/2"})
    assert not is_ours({PROJECT_LABEL: ours[PROJECT_LABEL]})


@dataclass
class Left:
    """A container, network or volume of an engine."""

    name: str
    labels: Mapping[str, str]
    removed: list[str]

    @property
    def attrs(self) -> dict[str, Any]:
        return {"Labels": self.labels}

    def remove(self, **how: object) -> None:
        self.removed.append(self.name)


@dataclass
class Engine:
    """What is left on a machine; ``removed`` is what went."""

    removed: list[str] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)

    def add(self, name: str, labels: Mapping[str, str]) -> None:
        self.left.append(Left(name, labels, self.removed))

    def list(self, filters: Mapping[str, str], **how: object) -> "list[Left]":
        key, _, value = filters["label"].partition("=")
        return [thing for thing in self.left if key in thing.labels and value in {"", thing.labels[key]}]

    @property
    def containers(self) -> "Engine":
        return self

    @property
    def networks(self) -> "Engine":
        return Engine()

    volumes = networks


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A run that is going, one that is over, and something of the user's with a label of ours."""
    lock = RecordingLock(tmp_path)
    made = Engine()
    made.add("kt-a-b1", labels_of("going/1", tmp_path))
    made.add("kt-b-b1", labels_of("over/1", tmp_path / "gone"))
    made.add("precious", {"kafka-trial.run": "over/1"})
    yield made
    lock.release()


def test_all_that_is_over_is_removed_and_nothing_else(engine: Engine) -> None:
    reported = cleanup(client=engine)  # type: ignore[arg-type]
    assert engine.removed == ["kt-b-b1"]
    assert reported == [
        "removed container kt-b-b1",
        "left container precious alone: it is labelled kafka-trial.run, but no run started it",
        "left going/1 alone: it is still going",
    ]


def test_a_run_still_in_progress_is_removed_only_with_force(engine: Engine) -> None:
    with pytest.raises(ScenarioError, match="still going; --force"):
        cleanup("going/1", engine)  # type: ignore[arg-type]
    assert engine.removed == []
    cleanup("going/1", engine, force=True)  # type: ignore[arg-type]
    assert engine.removed == ["kt-a-b1"]


def test_force_does_not_remove_containers_of_others(engine: Engine) -> None:
    cleanup("over/1", engine, force=True)  # type: ignore[arg-type]
    assert engine.removed == ["kt-b-b1"]


def test_a_dry_run_removes_nothing(engine: Engine) -> None:
    reported = cleanup(client=engine, dry_run=True)  # type: ignore[arg-type]
    assert engine.removed == []
    assert reported[0] == "would remove container kt-b-b1 of over/1"


def test_containers_of_no_run_are_left_alone_while_they_are_needed_and_no_longer() -> None:
    with labels_of_no_run() as one, labels_of_no_run() as other:
        assert one[LABEL] != other[LABEL]
        assert still_going([one, other]).keys() == {one[LABEL], other[LABEL]}
    assert still_going([one, other]) == {}


@pytest.mark.parametrize("other_first", [True, False])
def test_a_run_that_is_going_is_left_alone_beside_one_of_its_name_in_another_store(
    other_first: bool, tmp_path: Path
) -> None:
    engine = Engine()
    places = [tmp_path / "gone", tmp_path] if other_first else [tmp_path, tmp_path / "gone"]
    for place in places:
        engine.add(f"kt-{place.name}", labels_of("s/1", place))
    lock = RecordingLock(tmp_path)
    try:
        assert cleanup(client=engine) == ["left s/1 alone: it is still going"]  # type: ignore[arg-type]
    finally:
        lock.release()
    assert engine.removed == []
