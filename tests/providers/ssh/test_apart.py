"""Machines that the inventories of a suite name: each by one address, or nobody could tell that two runs need it."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import codes
from harness.cli.backends import Backends
from harness.core.errors import ScenarioError
from harness.providers.catalogue import PROVIDERS, composed, told_apart
from harness.providers.ssh.apart import two_addresses
from harness.providers.ssh.looking import Facts
from tests.cli.test_commands import assert_one_line
from tests.command import Invoke
from tests.suite.fakes import World

from .server import Lab, lab_at

PLAIN = Facts("10.0.0.1", 22, "Linux", (), "17", None, frozenset())


def facts(**machines: str) -> dict[str, Facts]:
    return {name: replace(PLAIN, machine=machine) for name, machine in machines.items()}


def test_machines_are_told_apart_by_boot_and_network_and_none_by_what_it_does_not_tell() -> None:
    assert two_addresses(facts(a="boot1 net:[1]", b="boot1 net:[2]", c="boot2 net:[1]", d="", e="")) == []
    assert two_addresses(facts(a="boot1 net:[1]", b="boot2 net:[1]", c="boot1 net:[1]")) == [
        "a and c are one machine: name it by one address in all inventories of a suite"
    ]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if os.geteuid() != 0:
        pytest.skip("what is run on a machine is run as root")
    with lab_at(tmp_path) as running:
        running.knows()
        known = running.known.read_text()
        running.known.write_text(known + known.replace("127.0.0.1", "localhost"))
        yield running


def write(lab: Lab, name: str, address: str, port: int | None = None) -> str:
    """An inventory of one host, which is this machine."""
    path = lab.directory / f"{name}.yaml"
    host = f"{{name: {name}, address: {address}, port: {port or lab.server.port}, key: id}}"
    path.write_text(f"known_hosts: known_hosts\nhosts: [{host}]\n")
    return str(path)


def look(*inventories: str) -> None:
    told_apart([composed(PROVIDERS).model_validate({"machines": one}) for one in inventories])


def test_a_machine_that_two_inventories_name_by_two_addresses_is_refused(lab: Lab) -> None:
    left, right = write(lab, "left", "127.0.0.1"), write(lab, "right", "localhost")
    said = f"127.0.0.1 (left) of {left} and localhost (right) of {right} are one machine: name it by one address in all"
    with pytest.raises(ScenarioError, match=rf"^{re.escape(said)} inventories of a suite$"):
        look(left, right, left)


def test_by_one_address_it_is_one_whatever_it_is_called(lab: Lab) -> None:
    look(write(lab, "left", "127.0.0.1"), write(lab, "right", "127.0.0.1"))
    look(write(lab, "left", "localhost"), write(lab, "right", "LocalHost"))


def test_one_inventory_is_looked_at_by_the_runs_that_have_it_and_nobody_connects(lab: Lab) -> None:
    lab.server.close()
    look(write(lab, "left", "127.0.0.1"))


def test_what_does_not_answer_is_told_by_the_runs_that_need_it(lab: Lab) -> None:
    look(write(lab, "left", "127.0.0.1"), write(lab, "right", "localhost", port=1))


def test_a_name_by_which_one_inventory_cannot_log_in_is_asked_by_the_next(lab: Lab) -> None:
    first, left = write(lab, "first", "127.0.0.1", port=1), write(lab, "left", "127.0.0.1")
    with pytest.raises(ScenarioError, match="are one machine"):
        look(first, left, write(lab, "right", "localhost"))


def test_every_inventory_that_cannot_be_read_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("hosts: [")
    with pytest.raises(ScenarioError, match=r"^\S+/a.yaml: the inventory cannot be read .*\n\S+/b.yaml:\d+: no YAML"):
        look(f"{tmp_path}/a.yaml", f"{tmp_path}/b.yaml")


def test_a_suite_with_such_inventories_is_refused_before_anything_is_started(
    lab: Lab, tmp_path: Path, kafka_trial: Invoke
) -> None:
    store, world = tmp_path / "store", World(tmp_path)
    for name, address in (("left", "127.0.0.1"), ("right", "localhost")):
        write(lab, name, address)
        (tmp_path / f"{name}-story.yaml").write_text(f"cluster: {{machines: {name}.yaml}}\n")
    backends = Backends(recorder=world.actions().start, look=lambda: None)
    done = kafka_trial("suite", tmp_path / "*-story.yaml", "--store", store, backends=backends)
    assert_one_line(done, codes.BAD_INPUT, "are one machine: name it by one address")
    assert (world.log, store.exists()) == ([], False)
