"""Why faults of a timeline cannot act: no such plane, targets without a node, queues that clash. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.cluster.spec import ClusterSpec
from harness.core.topology import Plane
from harness.core.version import CONTROL_PLANE_LISTENER_SINCE, NAMED_LISTENERS_SINCE, parse_version
from harness.core.written import KeyPath
from harness.scenario.problems import Problem
from harness.scenario.steps import Condition, Injection
from harness.scenario.timeline_names import groups_of
from nemesis.targets import Expression, bare, parts

#: Roles that a single node has.
_ALONE = {"leader", "controller", "coordinator"}
#: Roles that only brokers have, in either mode.
_OF_BROKERS = {"leader", "followers", "coordinator"}


def cannot_act(fault: Injection, cluster: ClusterSpec, where: KeyPath) -> Iterator[Problem]:
    """Why a fault can never act as written, whatever happens in the run."""
    if says := _no_plane(fault.traffic_plane or Plane.ALL, cluster):
        yield Problem((*where, "plane"), says)
    sides = fault.targets()
    named = {bare(part) for expression in sides.values() for part in parts(expression)}
    if named == {"clients"}:
        yield Problem(where, f"`{fault.fault}` of the clients hits no node: name one")
    elif len(sides) > 1 and len(named) == 1 and named <= {*_ALONE, *cluster.node_names}:
        yield Problem(where, f"{' and '.join(sides)} are the same node, {named.pop()}: there is nothing between them")


def never_comes(condition: Condition, cluster: ClusterSpec, replication: int, where: KeyPath) -> Iterator[Problem]:
    """Why the condition of an ``until`` can never hold, whichever nodes have the roles then."""
    groups = groups_of(cluster)

    def certain(expression: Expression) -> frozenset[str]:
        return frozenset().union(*(groups.get(part, frozenset({part})) for part in parts(expression)))

    def no_brokers(expression: Expression) -> list[str]:
        return sorted(certain(expression) & ({*cluster.node_names, "clients"} - groups["brokers"]))

    if condition.isr is not None:
        if outside := no_brokers(condition.isr):
            yield Problem((*where, "isr"), f"{', '.join(outside)}: not a broker, so never in an ISR: name only brokers")
        elif len(named := certain(condition.isr) & groups["brokers"]) > replication:
            yield Problem(
                (*where, "isr"),
                f"{len(named)} brokers are named, and with replication {replication} no ISR has so many",
            )
    elif condition.leader is not None:
        leads = [part for part in parts(condition.leader) if bare(part) != "followers"]
        if all(certain(part) <= {*no_brokers(part)} for part in leads):
            yield Problem(
                (*where, "leader"), f"{', '.join(parts(condition.leader))}: none of them can lead: name brokers"
            )


def _no_plane(plane: Plane, cluster: ClusterSpec) -> str | None:
    """Why this version does not have the plane; None if it does."""
    version = parse_version(cluster.version)
    if plane is Plane.ALL or cluster.metadata == "kraft":
        return None
    if version < NAMED_LISTENERS_SINCE:
        return f"Kafka {cluster.version} has one listener for all (KIP-103 came with 0.10.2): remove plane"
    if version < CONTROL_PLANE_LISTENER_SINCE and plane is not Plane.CLIENT:
        return (
            f"in Kafka {cluster.version} controller and replication share a listener (KIP-291 came with 2.2): "
            "remove plane, or use 2.2 or later"
        )
    return None


@dataclass
class ShapedTraffic:
    """The lasting faults that shape traffic, and the nodes that two of them certainly hit."""

    cluster: ClusterSpec
    lasting: list[Injection] = field(default_factory=list)

    def clashing(self, fault: Injection, where: KeyPath) -> Iterator[Problem]:
        """A problem if a lasting fault certainly shapes the same traffic of some node."""
        for other in self.lasting:
            if (why := fault.clashes(other)) is not None and self._meet(fault, other):
                yield Problem(where, why.format(of="", other=other.name or f"`{other.fault}`"))
                return

    def remember(self, fault: Injection) -> None:
        """Note that the fault lasts from now on."""
        if fault.shapes is not None:
            self.lasting.append(fault)

    def healed(self, name: str) -> None:
        """Note that the fault of that name, or every fault, has ended."""
        self.lasting = [other for other in self.lasting if name not in {"all", other.name}]

    def _meet(self, one: Injection, other: Injection) -> bool:
        """Whether both certainly hit a common node, whichever nodes have the roles then."""
        (mine, my_roles), (theirs, their_roles) = self._hit(one), self._hit(other)
        brokers = groups_of(self.cluster)["brokers"]
        return bool(mine & theirs) or (brokers <= mine and bool(their_roles)) or (brokers <= theirs and bool(my_roles))

    def _hit(self, fault: Injection) -> tuple[frozenset[str], set[str]]:
        """The nodes that the fault certainly hits, and its roles and choices that mean some broker."""
        named = [part for expression in fault.targets().values() for part in parts(expression)]
        members = groups_of(self.cluster)
        fixed = frozenset().union(*(members.get(part, frozenset({part})) for part in named))
        return fixed & {*self.cluster.node_names}, {part for part in named if bare(part) in {*_OF_BROKERS, "brokers"}}
