"""What a run does between a cluster that is up and the first write: its settings are checked, and kept."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cluster.provider import Cluster
from harness.core.errors import ScenarioError
from harness.core.topology import Node, Topology
from harness.history.paths import SETTINGS_FILE
from harness.history.run_file import RunFile
from harness.providers.catalogue import ProviderRow
from harness.run.display import PlainDisplay
from harness.run.lifecycle import record_run
from harness.scenario.model import Scenario
from tests.cluster.answering import broker, configs, topic_refused
from tests.providers.toy import Toy, ToySpec

INT, NO_TYPE = 3, 0
CONFIG = "num.io.threads"


POLICY_VIOLATION = 44


def begin(b1: Node, setting: str, store: Path) -> None:
    """Begin a run with a cluster of this broker and one setting. The broker makes no topic."""
    cluster: Any = SimpleNamespace(topology=Topology((b1,), b1), versions={}, clocks=dict, why_dead=lambda node: None)
    row = ProviderRow(ToySpec, lambda: Toy(cluster=cast(Cluster, cluster)))
    scenario = Scenario(name="story", cluster={"brokers": 1, "config": {setting: "8"}}, topic={"replication": 1})
    record_run(scenario, store, 1, PlainDisplay(io.StringIO()), providers={"toy": row})


def only_run(store: Path) -> Path:
    """The directory of the only run."""
    return next(store.rglob("run.json")).parent


def test_a_setting_that_the_brokers_do_not_know_is_refused_before_a_topic_is_made(tmp_path: Path) -> None:
    listed = [(CONFIG, "8", False, INT), (f"{CONFIG}s", None, True, NO_TYPE)]
    refused = rf"^cluster.config: Kafka ignores '{CONFIG}s', a name it does not know; did you mean '{CONFIG}'\?"
    with broker(configs(3, *listed)) as b1, pytest.raises(ScenarioError, match=refused):
        begin(b1, f"{CONFIG}s", tmp_path)
    assert [one.phase for one in RunFile.read(only_run(tmp_path)).phases] == ["cluster up"], "no timeline begun"


def test_broker_settings_are_kept_even_if_the_brokers_refuse_the_topic(tmp_path: Path) -> None:
    listed = [(CONFIG, "8", False, INT), ("ssl.key.password", "secret", True, INT)]
    refused = topic_refused("trial", POLICY_VIOLATION, "not here")
    error = r"^topic trial: Kafka refuses it \(not here\): see the scenario's topic"
    with broker(configs(3, *listed), refused) as b1, pytest.raises(ScenarioError, match=error):
        begin(b1, CONFIG, tmp_path)
    settings = json.loads((only_run(tmp_path) / SETTINGS_FILE).read_text())
    assert settings == {"b1": {CONFIG: "8", "ssl.key.password": None}}
