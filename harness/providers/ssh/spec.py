"""What only machines by SSH know of a cluster's settings."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from harness.cluster.spec import HeldAlone, NamesFile, Part
from harness.core.errors import ScenarioError
from harness.providers.ssh.inventory import read_inventory


def _addresses(inventory: str) -> Iterable[str]:
    """A machine has one node at a time, whichever inventories have it."""
    try:
        return [host.address.lower() for host in read_inventory(Path(inventory)).hosts]
    except ScenarioError:
        return [inventory]  # It is refused where a cluster is to come up.


class SshSpec(Part):
    """Which machines the nodes run on."""

    machines: Annotated[str | None, NamesFile(), HeldAlone(_addresses)] = Field(
        None,
        description="an inventory of machines reached by SSH, to run the nodes on (docs/machines.md); found from where"
        " the scenario's file is",
    )
    accept_new: bool = Field(
        False,
        exclude=True,
        description="write the keys of hosts that are not in known_hosts there, once; a key that changed is refused",
    )
