"""Runs that overlap, of a harness on paper: never two are measured at once, and none is left where nobody waits."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import ClusterError
from harness.core.verdict import Verdict
from harness.history.run_file import DRAIN
from harness.run.display import Display
from harness.scenario.model import Scenario
from tests.cluster.ahead import GivenUp, played
from tests.report.verdicts import verdict

NAMES = ("one", "two", "three")
SCENARIOS = [Scenario(name=name) for name in NAMES]
WITHIN = 20.0


class Harness:
    """Runs that are measured until they drain. ``during`` is done in the middle of each, by name."""

    def __init__(self, **during: Callable[[Display], object]) -> None:
        self.during = during
        self.log: list[str] = []
        self.measured = 0
        self.draining = {name: threading.Event() for name in NAMES}
        self.judged = {name: threading.Event() for name in NAMES}

    def run(self, scenario: Scenario, store: Path, seed: int, display: Display) -> tuple[Path, Verdict]:
        name = scenario.name
        self.measured += 1
        assert self.measured == 1
        self.log.append(f"{name} begins")
        try:
            display.phase("timeline")
            self.during.get(name, lambda _: None)(display)
            display.status(1, 1, 0, "b1", ["b1"], [])
        finally:
            self.measured -= 1
            self.log.append(f"{name} ends")
        display.phase(DRAIN)
        self.draining[name].set()
        assert self.judged[name].wait(WITHIN)
        return store / name, verdict()


def test_the_next_cluster_comes_up_while_the_last_run_is_read_and_judged(tmp_path: Path) -> None:
    harness = Harness()
    with played(harness.run, SCENARIOS, tmp_path, 1) as runs:
        assert harness.draining["one"].wait(WITHIN)
        assert harness.draining["two"].wait(WITHIN), "while the first is read and judged"
        assert not runs["one"].done()
        assert "three begins" not in harness.log, "one run is measured at most, and another is judged"
        harness.judged["one"].set()
        assert runs["one"].result(WITHIN)[0] == tmp_path / "one"
        assert harness.draining["three"].wait(WITHIN)
        for name in NAMES:
            harness.judged[name].set()
        assert [runs[name].result(WITHIN)[0].name for name in NAMES] == list(NAMES)
    assert harness.log == [f"{name} {moment}" for name in NAMES for moment in ("begins", "ends")]


def test_a_run_that_fails_hands_its_turn_on_and_says_how_far_it_came(tmp_path: Path) -> None:
    def fail(_: Display) -> None:
        raise ClusterError("b1 exited")

    harness = Harness(one=fail)
    for name in NAMES:
        harness.judged[name].set()
    with played(harness.run, SCENARIOS, tmp_path, 1) as runs:
        with pytest.raises(ClusterError, match="b1 exited") as failed:
            runs["one"].result(WITHIN)
        assert "== timeline" in failed.value.__notes__[0]
        assert runs["three"].result(WITHIN)[0].name == "three"


def test_a_run_that_nobody_waits_for_is_broken_off_and_the_next_never_begins(tmp_path: Path) -> None:
    going, on = threading.Event(), threading.Event()

    def wait(display: Display) -> None:
        going.set()
        while True:
            on.wait(0.01)
            display.step("a step", 1)

    harness = Harness(one=wait)
    with played(harness.run, SCENARIOS, tmp_path, 1) as runs:
        assert going.wait(WITHIN)
    assert harness.log == ["one begins", "one ends"]
    with pytest.raises(GivenUp):
        runs["one"].result(WITHIN)
    assert runs["two"].cancelled() or isinstance(runs["two"].exception(WITHIN), GivenUp)
    assert runs["three"].cancelled()
