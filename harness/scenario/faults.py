"""What is known of a timeline's faults before it is played: planes that are none, targets that hit nobody, queues that
clash. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.core.topology import Plane
from harness.core.version import CONTROL_PLANE_LISTENER_SINCE, NAMED_LISTENERS_SINCE, parse_version
from harness.scenario.problems import Place, Problem
from harness.scenario.steps import Heal, Inject, Injection, Random
from harness.scenario.timeline_names import bare, groups_of
from nemesis.targets import parts

if TYPE_CHECKING:
    from harness.cluster.spec import ClusterSpec
    from harness.scenario.model import Scenario

#: Roles that a single node has.
_ALONE = {"leader", "controller", "coordinator"}
#: Roles that only brokers have, in either mode.
_OF_BROKERS = {"leader", "followers", "coordinator"}


def faults_of_the_timeline(scenario: "Scenario") -> Iterator[Problem]:
    """A problem for each fault that cannot act as it says, whatever happens in the run."""
    shaped = _Shaped(scenario.cluster)
    for index, step in enumerate(scenario.timeline):
        where: Place = ("timeline", index)
        match step:
            case Inject(inject=injection):
                yield from _alone(injection, scenario.cluster, (*where, "inject"))
                yield from shaped.clashing(injection, (*where, "inject"))
                shaped.remember(injection)
            case Random(random=draw):
                for number, fault in enumerate(draw.faults):
                    place = (*where, "random", "faults", number)
                    yield from _alone(fault, scenario.cluster, place)
                    yield from shaped.clashing(fault, place)
            case Heal(heal=name):
                shaped.healed(name)


def _alone(fault: Injection, cluster: "ClusterSpec", where: Place) -> Iterator[Problem]:
    if says := _no_plane(getattr(fault, "plane", Plane.ALL), cluster):
        yield Problem((*where, "plane"), says)
    sides = fault.targets()
    named = {bare(part) for expression in sides.values() for part in parts(expression)}
    if named == {"clients"}:
        yield Problem(where, f"`{fault.fault}` of the clients hits no node: name one")
    elif len(sides) > 1 and len(named) == 1 and named <= {*_ALONE, *cluster.node_names}:
        yield Problem(where, f"{' and '.join(sides)} are the same node, {named.pop()}: there is nothing between them")


def _no_plane(plane: Plane, cluster: "ClusterSpec") -> str | None:
    """Why this version has no such plane; None where it has."""
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
class _Shaped:
    """The faults that shape traffic and last, and which nodes they certainly have in common."""

    cluster: "ClusterSpec"
    lasting: list[Injection] = field(default_factory=list)

    def clashing(self, fault: Injection, where: Place) -> Iterator[Problem]:
        other = next((other for other in self.lasting if fault.clashes(other) and self._meet(fault, other)), None)
        if other is not None:
            yield Problem(
                where,
                f"the same traffic is shaped by {other.name or f'`{other.fault}`'} already: heal that before, or give "
                "each a plane of its own",
            )

    def remember(self, fault: Injection) -> None:
        if fault.shapes is not None:
            self.lasting.append(fault)

    def healed(self, name: str) -> None:
        self.lasting = [other for other in self.lasting if name not in {"all", other.name}]

    def _meet(self, one: Injection, other: Injection) -> bool:
        """Whether some node is hit by both, whoever has which role by then."""
        (mine, my_roles), (theirs, their_roles) = self._hit(one), self._hit(other)
        brokers = groups_of(self.cluster)["brokers"]
        return bool(mine & theirs) or (brokers <= mine and bool(their_roles)) or (brokers <= theirs and bool(my_roles))

    def _hit(self, fault: Injection) -> tuple[frozenset[str], set[str]]:
        """The nodes that are hit for certain, and the roles and choices that are of some broker."""
        named = [part for expression in fault.targets().values() for part in parts(expression)]
        members = groups_of(self.cluster)
        fixed = frozenset().union(*(members.get(part, frozenset({part})) for part in named))
        return fixed & {*self.cluster.node_names}, {part for part in named if bare(part) in {*_OF_BROKERS, "brokers"}}
