"""Mechanisms that act as long as a helper runs: one that died takes back what was said before."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import pytest
from typing_extensions import override

from harness.core.clock import Clock
from harness.core.topology import Node, Topology
from nemesis.catalogue import FAULTS
from nemesis.fault import Aim
from nemesis.faults.traffic import Slow
from nemesis.mechanisms import iptables, tc
from nemesis.mechanisms.mechanism import Either, Mechanism
from nemesis.nemesis import Nemesis

from .conftest import B1, VIEW, FakeShell, Rows


@dataclass(frozen=True)
class Helped(tc.Delay):
    """A delay by a program of our own."""

    helper = "exec late"  # type: ignore[misc]


class Late(Slow):
    """Asks for it."""

    @override
    def mechanisms(self, aim: Aim, topology: Topology) -> Mapping[Node, Mechanism]:
        return dict.fromkeys(aim.nodes, Helped(self.delay))


LATE = Late.model_validate({"target": "leader", "delay": "1s"})

RESTART = FAULTS["restart"].model_validate({"target": "b1"})


@pytest.fixture
def nemesis(shell: FakeShell, rows: Rows) -> Nemesis:
    return Nemesis(shell, lambda: VIEW, rows.journal, Clock.start(), Random(1))


def test_a_helper_runs_before_what_it_helps_and_until_the_heal(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(LATE, "late")
    assert shell.done == ["b1 helper", "b1 network"]
    assert set(shell.helpers.values()) == {"exec late"}
    nemesis.heal("late")
    assert shell.helpers == {}
    assert rows.last("late")["effective"]


def test_a_helper_that_died_takes_back_what_was_said_before(nemesis: Nemesis, shell: FakeShell, rows: Rows) -> None:
    nemesis.inject(LATE, "late")
    nemesis.inject(LATE.model_copy(update={"target": "b2"}), "other")
    nemesis.inject(Slow.model_validate({"target": "c1", "delay": "1s"}), "without")
    nemesis.inject(RESTART, "again")
    assert rows.last("late")["effective"]
    shell.helpers = {key: script for key, script in shell.helpers.items() if key[0] != B1}
    nemesis.heal_all()
    assert [rows.last(name)["effective"] for name in ("late", "other", "without")] == [False, True, True]


def test_a_node_that_was_started_again_has_its_helper_again(nemesis: Nemesis, shell: FakeShell) -> None:
    nemesis.inject(LATE, "late")
    shell.helpers.clear()
    nemesis.inject(RESTART)
    assert set(shell.helpers.values()) == {"exec late"}


def test_of_two_mechanisms_the_helper_is_that_of_the_one_that_is_there() -> None:
    assert Either(tc.Lose(0.5), iptables.Lose(0.5)).helper is None
    script = Either(tc.Delay(1.0), Helped(1.0)).helper
    assert script is not None
    assert script.index("exec sleep infinity\nelse\nexec late") > script.index("if { tc qdisc add dev lo root netem")
