"""Nodes of clusters that are never brought up."""

from harness.cluster.spec import ClusterSpec
from harness.core.topology import Topology
from harness.providers.docker.subnets import Subnet, topology

SUBNET = Subnet("10.201.7.0/24")


def nodes_of(**fields: object) -> tuple[ClusterSpec, Topology]:
    """A cluster of these settings, and its nodes."""
    spec = ClusterSpec.model_validate(fields)
    return spec, topology(spec, SUBNET)
