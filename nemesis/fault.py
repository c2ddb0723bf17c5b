"""The base class of faults: parameters from a scenario, and how a fault is injected, measured, and healed."""

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

#: Alternatives, each a set of keys of ``nemesis.preflight.NEEDS``: a kernel must have everything in one of them. An
#: empty tuple needs nothing.
Needs = tuple[frozenset[str], ...]

#: A packet can wait in one queue only.
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
        """The nodes that are hit, each once. The clients' machine can be a party, but is never hit."""
        named = (node for party in self.parties.values() for node in party)
        return tuple(dict.fromkeys(node for node in named if node.role is not Role.CLIENTS))

    @property
    def tag(self) -> str:
        """Eight hex digits that name what this injection leaves in a network namespace."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:8]

    def on(self, nodes: Iterable[Node]) -> "Aim":
        """The same injection, limited to some of its nodes."""
        kept = set(nodes)
        return Aim(self.name, {k: tuple(n for n in party if n in kept) for k, party in self.parties.items()})


class Fault(BaseModel, ABC):
    """One fault with its parameters, as a scenario writes it. A catalogue entry is one subclass."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    #: It lasts until it is healed. A fault that does not last is over once it is injected.
    lasting: ClassVar[bool] = True
    #: Random mode may choose it: it needs no earlier fault.
    drawable: ClassVar[bool] = True
    #: It lives in a node's network namespace and ends with it: ``apply_again`` is called when the namespace is renewed.
    lives_in_network: ClassVar[bool] = False
    #: It can only hit nodes whose process has exited.
    needs_exited: ClassVar[bool] = False
    #: It ends the process of a node, halts it, or deletes the node's data.
    ends_process: ClassVar[bool] = False
    halts_process: ClassVar[bool] = False
    destroys_data: ClassVar[bool] = False
    #: It stops traffic between nodes, or delays it.
    cuts: ClassVar[bool] = False
    delays: ClassVar[bool] = False
    #: It ends or renews the network namespaces of the nodes that it hits.
    renews_network: ClassVar[bool] = False
    #: The state in which it keeps the processes of the nodes that it hits while it lasts.
    keeps: ClassVar[ProcessState | None] = None
    #: What the fault's other forms need of the kernel, by the words that name the form. ``needs`` is for its simplest
    #: form.
    forms: ClassVar[Mapping[str, Needs]] = {}
    #: It sends packets twice.
    doubles: ClassVar[bool] = False
    #: It takes the processes that it hits out of these states, and so ends the faults that kept them there.
    releases: ClassVar[frozenset[ProcessState]] = frozenset()

    @property
    def takes(self) -> float:
        """The longest time that its injection waits, in seconds; 0 if it does not wait."""
        return 0.0

    @property
    def heals_within(self) -> float:
        """The longest time that its heal takes, in seconds: by default enough for a few commands on the nodes."""
        return 10.0

    @property
    def needs(self) -> Needs:
        """What the kernel must have for this fault."""
        return ()

    @abstractmethod
    def targets(self) -> Mapping[str, Expression]:
        """The expressions to resolve before the injection, by parameter."""

    def check(self, aim: Aim, topology: Topology) -> None:  # noqa: ARG002 - for subclasses
        """Raise a KafkaTrialError if the fault cannot hit these nodes. Nothing has been done yet."""
        if not aim.nodes:
            raise ScenarioError(f"{aim.name}: there is no node to hit: the clients' machine is not a node")

    @property
    def traffic_plane(self) -> Plane | None:
        """The traffic that it acts on; None if it acts on no traffic."""
        return None

    @property
    def cuts_both_ways(self) -> bool | None:
        """Whether both sides of a cut hear nothing of the other, or only one; None if it has no sides."""
        return None

    @property
    def cuts_clients(self) -> bool | None:
        """Whether it cuts nodes from the clients, too; None if its targets say that."""
        return None

    @property
    def shapes(self) -> Plane | None:
        """The traffic that it puts into a queue of its own; None if it uses no queue."""
        return None

    @property
    def by_netem(self) -> bool:
        """Whether it may use a queue of netem."""
        return False

    def clashes(self, other: "Fault") -> str | None:
        """Why both faults cannot hit one node at the same time; None if they can. The text is a format: ``other`` is
        the other fault's name, ``of`` says whose traffic it is."""
        mine, theirs = self.shapes, other.shapes
        if mine is None or theirs is None:
            return None
        if Plane.ALL in (mine, theirs) or mine is theirs:
            return _ONE_QUEUE
        alone = (self.doubles and other.by_netem) or (other.doubles and self.by_netem)
        return _ALONE if alone else None

    @abstractmethod
    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        """Inject the fault; return evidence of what it changed. A part that is already in place stays. Raises
        ClusterError."""

    def apply_again(self, shell: NodeShell, aim: Aim, nodes: Iterable[Node]) -> Evidence:  # noqa: ARG002
        """Apply the fault again on ``nodes``, which were started again: it ended with their networks. Raises
        ClusterError."""
        return {}

    @abstractmethod
    def measure(self, shell: NodeShell, aim: Aim) -> Evidence:
        """Measure the fault on the nodes of ``aim`` while it lasts. Raises ClusterError."""

    def probe(self, shell: NodeShell, aim: Aim) -> Evidence:  # noqa: ARG002 - for subclasses
        """Facts that only our own test traffic shows. Called once, before the heal, and only if the fault is known to
        act on all its nodes: counters would count our traffic as the nodes'. Raises ClusterError."""
        return {}

    @abstractmethod
    def heal(self, shell: NodeShell, aim: Aim) -> None:
        """Undo the fault and check that nothing is left. A second heal changes nothing. Raises ClusterError."""


class HalfWay(ClusterError):  # noqa: N818 - reads as the sentence it is
    """A fault failed on some of its nodes: ``evidence`` is about the others."""

    def __init__(self, why: ClusterError, evidence: Evidence) -> None:
        super().__init__(str(why))
        self.evidence = evidence


def seen_on_each(nodes: Iterable[Node], act: Callable[[Node], Seen]) -> Evidence:
    """Like ``on_each``, but if some nodes fail it raises HalfWay, with the evidence of the others."""

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
    """Call ``act`` for all nodes at once; return the result of each. Raises the first error after all calls have
    ended."""
    listed = tuple(nodes)
    if not listed:
        return {}
    with ThreadPoolExecutor(len(listed)) as pool:
        return dict(zip(listed, pool.map(act, listed), strict=True))
