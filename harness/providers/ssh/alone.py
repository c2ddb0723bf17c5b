"""The machines that a cluster must have alone, by the same names in all clusters of a suite.

The catalogue imports this whenever a scenario is read, so functions import what they need when they are called.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.cluster.spec import ClusterSpec, own_spec
from harness.core.errors import ScenarioError
from harness.providers.ssh.spec import SshSpec


def machines_of(cluster: ClusterSpec) -> Iterable[str]:
    """The names of a cluster's machines. A machine has one node at a time, even if several inventories list it."""
    from harness.providers.ssh.inventory import read_inventory

    inventory = own_spec(cluster, SshSpec).machines
    if inventory is None:
        return ()
    try:
        return [f"machine {host.address.lower()}" for host in read_inventory(Path(inventory)).hosts]
    except ScenarioError:
        return (f"machines of {inventory}",)  # Such an inventory is refused before any cluster starts.


def check_machines(clusters: Sequence[ClusterSpec]) -> None:
    """Check that a machine has the same address in all inventories. Raises ScenarioError."""
    named = [own for cluster in clusters if (own := own_spec(cluster, SshSpec)).machines is not None]
    if named:
        from harness.providers.ssh.apart import check_addresses
        from harness.providers.ssh.provider import say

        check_addresses(named, say)
