"""The tests on machines leave the lab as they found it: up, or gone."""

import re

import pytest

from .conftest import LAB, brought_up


class FakeLab:
    """``scripts/lab``, which says what it is asked, and has machines or none."""

    def __init__(self, status: str, fails: bool = False) -> None:
        self._status, self._fails = status, fails
        self.done: list[str] = []

    def __call__(self, *command: str) -> str:
        self.done.append(" ".join(command))
        assert not (self._fails and command[0] == "up")
        return self._status if command == ("status",) else ""


#: As the script says it.
[NONE] = re.findall(r'echo "(no machines; .*)"', LAB.read_text(encoding="utf-8"))
SOME = "m1   10.99.0.11   up\nm2   10.99.0.12   down\n"


def test_a_lab_that_was_not_there_is_gone_afterwards() -> None:
    with brought_up(lab := FakeLab(f"{NONE}\n")):
        assert lab.done == ["status", "up 4"]
    assert lab.done[2:] == ["down"]


@pytest.mark.parametrize(
    ("status", "most"),
    [
        (SOME, 4),
        (SOME.replace("up", "down"), 4),
        (SOME.replace("up", "up, silent"), 4),
        (f"{SOME}m12  10.99.0.22   up\n", 12),
    ],
)
def test_a_lab_that_was_there_stays(status: str, most: int) -> None:
    with brought_up(lab := FakeLab(status)):
        pass
    assert lab.done == ["status", f"up {most}"]


def test_a_lab_that_came_up_in_part_is_gone_afterwards() -> None:
    with pytest.raises(AssertionError), brought_up(lab := FakeLab(f"{NONE}\n", fails=True)):
        pass
    assert lab.done == ["status", "up 4", "down"]
