"""Machines that the inventories of a suite name: each by one address, or nobody could tell that two runs need it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import codes
from harness.cli.backends import Backends
from harness.core.errors import ScenarioError
from harness.providers.catalogue import PROVIDERS, check_names, composed
from harness.providers.ssh.apart import two_addresses
from harness.providers.ssh.inventory import Inventory
from harness.providers.ssh.looking import MachineFacts
from tests.cli.test_commands import assert_one_line
from tests.command import Invoke
from tests.suite.fakes import World

from .server import Lab

PLAIN = MachineFacts("10.0.0.1", 22, "Linux", (), "17", None, frozenset())


def said(inventories: Mapping[str, str], **machines: str) -> list[str]:
    """Of inventories, the addresses of whose hosts are letters; by address, what its machine tells."""
    read = {
        path: Inventory.model_validate({"hosts": [{"address": address} for address in addresses]})
        for path, addresses in inventories.items()
    }
    return list(two_addresses(read, {name: replace(PLAIN, machine=machine) for name, machine in machines.items()}))


def test_boot_and_network_distinguish_machines_and_unknown_facts_do_not() -> None:
    each = {"1": "a", "2": "b", "3": "c", "4": "d", "5": "e"}
    assert said(each, a="boot1 net:[1]", b="boot1 net:[2]", c="boot2 net:[1]", d="", e="") == []
    assert said(each, a="boot1 net:[1]", b="boot2 net:[1]", c="boot1 net:[1]") == [
        "a of 1 and c of 3 are one machine: name it by one address in all inventories of a suite"
    ]


@pytest.mark.parametrize(
    ("inventories", "apart"),
    [
        ({"1": "ab", "2": "c"}, []),  # Two hosts of one inventory: no other run needs that machine.
        ({"1": "ab", "2": "b"}, []),
        ({"1": "Ab", "2": "aB"}, []),
        ({"1": "ab", "2": "a", "3": "b"}, ["a of 2 and b of 3"]),
        ({"1": "abc", "2": "c"}, []),
        ({"1": "a", "2": "bc"}, ["a of 1 and b of 2"]),
    ],
)
def test_two_addresses_are_refused_of_two_inventories_that_have_neither_in_common(
    inventories: Mapping[str, str], apart: list[str]
) -> None:
    lines = said(inventories, a="boot1 net:[1]", b="boot1 net:[1]", c="boot2 net:[1]")
    assert [line.partition(" are one machine")[0] for line in lines] == apart


def write(lab: Lab, name: str, address: str, port: int | None = None) -> str:
    """An inventory of one host, which is this machine."""
    path = lab.directory / f"{name}.yaml"
    host = f"{{name: {name}, address: {address}, port: {port or lab.server.port}, key: id}}"
    path.write_text(f"known_hosts: known_hosts\nhosts: [{host}]\n")
    return str(path)


def look(*inventories: str) -> None:
    check_names([composed(PROVIDERS).model_validate({"machines": one}) for one in inventories])


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


def test_a_machine_that_one_inventory_names_twice_is_no_matter_of_the_suite(lab: Lab) -> None:
    spare = f"{{name: spare, address: localhost, port: {lab.server.port}, key: id}}"
    both = Path(write(lab, "both", "127.0.0.1"))
    both.write_text(both.read_text().replace("]", f", {spare}]"))
    look(str(both), write(lab, "other", "127.0.0.2", port=1))
    look(str(both), write(lab, "right", "localhost"))


def test_a_new_key_is_accepted_where_one_of_the_runs_of_its_inventory_says_so(lab: Lab) -> None:
    lab.known.write_text("")
    left, right = write(lab, "left", "127.0.0.1"), write(lab, "right", "localhost")
    look(left, right)
    assert lab.known.read_text() == "", "nobody said so: it does not answer"
    named = [{"machines": left}, {"machines": left, "accept_new": True}, {"machines": right, "accept_new": True}]
    with pytest.raises(ScenarioError, match="are one machine"):
        check_names([composed(PROVIDERS).model_validate(own) for own in named])
    assert len(lab.known.read_text().splitlines()) == 2


def test_the_runs_that_need_a_silent_machine_report_it(lab: Lab) -> None:
    look(write(lab, "left", "127.0.0.1"), write(lab, "right", "localhost", port=1))


def test_a_name_by_which_one_inventory_cannot_log_in_is_asked_by_the_next(lab: Lab) -> None:
    first, left = write(lab, "first", "127.0.0.1", port=1), write(lab, "left", "127.0.0.1")
    with pytest.raises(ScenarioError, match="are one machine"):
        look(first, left, write(lab, "right", "localhost"))


def test_every_inventory_that_cannot_be_read_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("hosts: [")
    with pytest.raises(ScenarioError, match=r"^\S+/a.yaml: the inventory cannot be .*\n\S+/b.yaml:\d+: no valid YAML"):
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
