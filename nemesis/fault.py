"""What every fault is: parameters from a scenario, and how it is injected, measured, and healed."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict

from harness.core.errors import ClusterError, ScenarioError
from harness.core.topology import Node, Plane, Role, Topology
from nemesis.evidence import Evidence, Seen
from nemesis.shell import NodeShell, ProcessState
from nemesis.targets import Expression

T = TypeVar("T")

#: Alternatives, each a set of keys of ``nemesis.preflight.NEEDS``: a kernel must have all of one. Without any, nothing.
Needs = tuple[frozenset[str], ...]

#: A packet waits in one queue only.
_ONE_QUEUE = "the same traffic{of} is shaped by {other} already: heal that before, or give each a plane of its own"
#: Kernels of 2025 refuse it otherwise, such as 6.1.176 and 6.18: sch_netem.c, check_netem_in_tree.
_ALONE = "a netem that duplicates is alone on its node, and traffic{of} is shaped by {other} already: heal that before"


@dataclass(frozen=True)
class Aim:
    """One injection: its name in the run, and the nodes that the fault's expressions resolved to, by parameter."""

    name: str
    parties: Mapping[str, tuple[Node, ...]]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that are hit, each once. The clients' machine is a party, never a node that is hit."""
        named = (node for party in self.parties.values() for node in party)
        return tuple(dict.fromkeys(node for node in named if node.role is not Role.CLIENTS))

    @property
    def tag(self) -> str:
        """Eight hex digits that name what this injection leaves in a network namespace."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:8]

    def on(self, nodes: Iterable[Node]) -> "Aim":
        """The same injection, narrowed to some of its nodes."""
        kept = set(nodes)
        return Aim(self.name, {k: tuple(n for n in party if n in kept) for k, party in self.parties.items()})


class Fault(BaseModel, ABC):
    """One fault with its parameters, as a scenario writes it. A catalogue entry is one subclass."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    #: It lasts until it is healed. The others are done when they are injected.
    lasting: ClassVar[bool] = True
    #: Random mode may choose it: it needs no earlier fault.
    drawable: ClassVar[bool] = True
    #: It is made of what ends with a node's network namespace: ``apply_again`` when that is renewed.
    lives_in_network: ClassVar[bool] = False
    #: It hits only nodes whose process has exited.
    needs_exited: ClassVar[bool] = False
    #: It ends the process of a node, or halts it, or deletes a node's data.
    ends_process: ClassVar[bool] = False
    halts_process: ClassVar[bool] = False
    destroys_data: ClassVar[bool] = False
    #: It keeps nodes from hearing each other, or lets them hear late.
    cuts: ClassVar[bool] = False
    delays: ClassVar[bool] = False
    #: It ends or renews the network namespaces of the nodes that it hits.
    renews_network: ClassVar[bool] = False
    #: The state in which it keeps the processes of the nodes that it hits, as long as it lasts.
    keeps: ClassVar[ProcessState | None] = None
    #: What it needs of the kernel in other forms than its simplest one, by what is said of each.
    forms: ClassVar[Mapping[str, Needs]] = {}
    #: It sends packets twice.
    doubles: ClassVar[bool] = False
    #: States in which no process that it hits is kept any longer: it ends the faults that kept it so.
    releases: ClassVar[frozenset[ProcessState]] = frozenset()

    @property
    def takes(self) -> float:
        """Seconds that its injection waits at most, where that is more than a moment."""
        return 0.0

    @property
    def heals_within(self) -> float:
        """Seconds that its heal takes at most: nodes are asked a few things."""
        return 10.0

    @property
    def needs(self) -> Needs:
        """What the kernel must have for it."""
        return ()

    @abstractmethod
    def targets(self) -> Mapping[str, Expression]:
        """The expressions to resolve before it can be injected, by parameter."""

    def check(self, aim: Aim, topology: Topology) -> None:  # noqa: ARG002 - for those who override it
        """Raise a KafkaTrialError, before anything is done, where this cannot hit what it is aimed at."""
        if not aim.nodes:
            raise ScenarioError(f"{aim.name}: there is no node to hit: the clients' machine is not a node")

    @property
    def shapes(self) -> Plane | None:
        """The traffic whose queue it replaces, if it does."""
        return None

    @property
    def by_netem(self) -> bool:
        """Whether it may be a queue of netem."""
        return False

    def clashes(self, other: "Fault") -> str | None:
        """Why one node cannot be hit by both at a time, with places for ``other`` and for whose traffic it is (``of``);
        None where it can."""
        mine, theirs = self.shapes, other.shapes
        if mine is None or theirs is None:
            return None
        if Plane.ALL in (mine, theirs) or mine is theirs:
            return _ONE_QUEUE
        alone = (self.doubles and other.by_netem) or (other.doubles and self.by_netem)
        return _ALONE if alone else None

    @abstractmethod
    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        """Make it so; what it changed itself is evidence. What is there already stays so. Raises ClusterError."""

    def apply_again(self, shell: NodeShell, aim: Aim, nodes: Iterable[Node]) -> Evidence:  # noqa: ARG002
        """Apply to those of ``nodes``, started again, what ended with their networks. Raises ClusterError."""
        return {}

    @abstractmethod
    def measure(self, shell: NodeShell, aim: Aim) -> Evidence:
        """What can be seen of it while it lasts, on the nodes of ``aim``. Raises ClusterError."""

    def probe(self, shell: NodeShell, aim: Aim) -> Evidence:  # noqa: ARG002 - for those who override it
        """Facts that only traffic of our own shows. Asked once, before it is healed, where it is known to act on all
        its nodes: counters would take that traffic for the nodes' own. Raises ClusterError."""
        return {}

    @abstractmethod
    def heal(self, shell: NodeShell, aim: Aim) -> None:
        """Undo it and see that nothing is left. Healing what is healed changes nothing. Raises ClusterError."""


class HalfWay(ClusterError):  # noqa: N818 - reads as the sentence it is
    """A fault failed on some of its nodes: ``evidence`` is of the others."""

    def __init__(self, why: ClusterError, evidence: Evidence) -> None:
        super().__init__(str(why))
        self.evidence = evidence


def seen_on_each(nodes: Iterable[Node], act: Callable[[Node], Seen]) -> Evidence:
    """``on_each``, where what was done to one node is known though another failed: raises HalfWay."""

    def attempt(node: Node) -> Seen | ClusterError:
        try:
            return act(node)
        except ClusterError as exc:
            return exc

    tried = on_each(nodes, attempt)
    evidence = {node: found for node, found in tried.items() if isinstance(found, Seen)}
    for found in tried.values():
        if isinstance(found, ClusterError):
            raise HalfWay(found, evidence) from found
    return evidence


def on_each(nodes: Iterable[Node], act: Callable[[Node], T]) -> dict[Node, T]:
    """Call ``act`` for all nodes at once; return what each returned. Raises the first error when all have ended."""
    listed = tuple(nodes)
    if not listed:
        return {}
    with ThreadPoolExecutor(len(listed)) as pool:
        return dict(zip(listed, pool.map(act, listed), strict=True))
