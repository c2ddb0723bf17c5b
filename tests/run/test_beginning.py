"""What a run does between a cluster that is up and the first write: its settings are checked, and kept."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cluster.known_settings import SETTINGS_FILE
from harness.cluster.provider import Cluster
from harness.core.errors import ScenarioError
from harness.core.topology import Node, Topology
from harness.history.run_file import RunFile
from harness.providers.catalogue import Row
from harness.run import lifecycle
from harness.run.display import PlainDisplay
from harness.run.lifecycle import record_run
from harness.scenario.model import Scenario
from tests.cluster.answering import broker, configs
from tests.providers.toy import Toy, ToySpec

INT, NO_TYPE = 3, 0
CONFIG = "num.io.threads"


class TopicsAreMadeError(Exception):
    """The run would now make its topics."""


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Node, str], Path]:
    """Begins a run with a cluster of this broker and one setting. Gives its directory when the topics are made."""

    def make_topics(*_: object) -> None:
        raise TopicsAreMadeError

    def begin(b1: Node, setting: str) -> Path:
        cluster: Any = SimpleNamespace(
            topology=Topology((b1,), b1), versions={}, clocks=dict, why_dead=lambda node: None
        )
        row = Row(ToySpec, lambda: Toy(cluster=cast(Cluster, cluster)))
        scenario = Scenario(name="story", cluster={"brokers": 1, "config": {setting: "8"}}, topic={"replication": 1})
        with pytest.raises(TopicsAreMadeError):
            record_run(scenario, tmp_path, 1, PlainDisplay(io.StringIO()), providers={"toy": row})
        return next(tmp_path.rglob("run.json")).parent

    monkeypatch.setattr(lifecycle, "create_topics", make_topics)
    return begin


def test_a_setting_that_the_brokers_do_not_know_is_refused_before_a_topic_is_made(
    begun: Callable[[Node, str], Path], tmp_path: Path
) -> None:
    listed = [(CONFIG, "8", False, INT), (f"{CONFIG}s", None, True, NO_TYPE)]
    refused = rf"^cluster.config: Kafka ignores '{CONFIG}s', a name it does not know; did you mean '{CONFIG}'\?"
    with broker(configs(3, *listed)) as b1, pytest.raises(ScenarioError, match=refused):
        begun(b1, f"{CONFIG}s")
    file = RunFile.read(next(tmp_path.rglob("run.json")).parent)
    assert [one.phase for one in file.phases] == ["cluster up"], "no timeline begun"


def test_what_the_brokers_run_with_is_kept_beside_the_run(begun: Callable[[Node, str], Path]) -> None:
    listed = [(CONFIG, "8", False, INT), ("ssl.key.password", "secret", True, INT)]
    with broker(configs(3, *listed)) as b1:
        directory = begun(b1, CONFIG)
    assert json.loads((directory / SETTINGS_FILE).read_text()) == {"b1": {CONFIG: "8", "ssl.key.password": None}}
