"""A scenario that is whole, and small changes to it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import ScenarioError
from harness.scenario.loading import validated
from harness.scenario.model import Scenario
from harness.scenario.overrides import override
from harness.scenario.written import parse

GOOD = """\
cluster: {version: 4.3.1, metadata: kraft, brokers: 3, controllers: 1}
topic: {partitions: 1, replication: 3, min.insync.replicas: 1, unclean.leader.election.enable: true}
workload: {kind: queue, acks: all}
timeline:
  - inject: {fault: kill, target: leader, as: dead, pin: {old_leader: leader}}
  - until: {leader: changed, within: 20s}
  - inject: {fault: wipe, target: old_leader}
  - heal: all
expect: {verdict: invalid, anomalies: [lost], standing: permitted}
"""

Made = Callable[..., Scenario]
Refused = Callable[..., list[str]]


def made_with(*changes: str) -> Scenario:
    written = parse(GOOD, "good.yaml")
    for change in changes:
        override(written, change)
    return validated(written)


@pytest.fixture
def made() -> Made:
    """The good scenario with some ``path=value`` put in."""
    return made_with


@pytest.fixture
def refused() -> Refused:
    """The lines that the good scenario is refused with after some ``path=value``."""

    def lines(*changes: str) -> list[str]:
        with pytest.raises(ScenarioError) as caught:
            made_with(*changes)
        return str(caught.value).splitlines()

    return lines


@pytest.fixture
def written_to(tmp_path: Path) -> Callable[[str], Path]:
    """A file with this text, called mine.yaml."""

    def write(text: str) -> Path:
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return path

    return write
