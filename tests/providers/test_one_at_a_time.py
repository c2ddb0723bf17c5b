"""What runs on one machine do one after the other."""

from pathlib import Path
from threading import Thread

import pytest

from harness.cluster.one_at_a_time import one_at_a_time
from harness.core.errors import EnvironmentLacks


def test_one_waits_for_the_other(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with one_at_a_time("addresses", tmp_path / "cache"):
            order.append("second")

    with one_at_a_time("addresses", tmp_path / "cache"):
        waiting = Thread(target=second)
        waiting.start()
        with one_at_a_time("images", tmp_path / "cache"):
            waiting.join(0.2)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def test_a_home_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with (
        pytest.raises(EnvironmentLacks, match=r"home/cache: cannot be written \(Not a directory\): set HOME"),
        one_at_a_time("addresses", tmp_path / "home" / "cache"),
    ):
        raise AssertionError("it went on")
