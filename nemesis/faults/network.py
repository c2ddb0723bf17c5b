"""Faults that live in network namespaces: they apply mechanisms there, read their counters, and remove them."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, TypeVar

from typing_extensions import override

from harness.core.errors import ClusterError
from harness.core.topology import Node, Topology
from nemesis.evidence import Effect, Evidence, Seen
from nemesis.fault import Aim, Fault, on_each
from nemesis.mechanisms.mechanism import Counted, Mechanism
from nemesis.shell import NodeShell, ProcessState, Switch

T = TypeVar("T")


class NetworkFault(Fault):
    """A fault made of mechanisms in the nodes' network namespaces.

    It is applied again after a node was started. If a namespace ends with its node's process, the mechanism ends, too:
    an exited node has nothing to apply to, count or remove.
    """

    lives_in_network: ClassVar[bool] = True

    @abstractmethod
    def mechanisms(self, aim: Aim, topology: Topology) -> Mapping[Node, Mechanism]:
        """The mechanism in the namespace of each node concerned."""

    def seen(self, aim: Aim, topology: Topology, counted: Mapping[Node, Counted | None]) -> Evidence:  # noqa: ARG002
        """The evidence of each node hit, by the counters of the nodes concerned. None: the mechanism is gone."""
        return {node: judged(count) for node, count in counted.items()}

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        """Apply the mechanisms on all nodes at once. Counters show later whether they act."""
        return self.apply_again(shell, aim, self.mechanisms(aim, shell.topology))

    @override
    def apply_again(self, shell: NodeShell, aim: Aim, nodes: Iterable[Node]) -> Evidence:
        concerned = set(nodes)
        chosen = {
            node: mechanism for node, mechanism in self.mechanisms(aim, shell.topology).items() if node in concerned
        }

        def apply(node: Node) -> None:
            undoing = Switch(aim.tag, chosen[node].remove(node, aim.tag))
            said = shell.in_network_of(node, chosen[node].apply(node, aim.tag), arm=undoing)
            if (helper := chosen[node].helper(node, aim.tag, said)) is not None:
                shell.start_helper(node, aim.tag, helper.script)
                shell.in_network_of(node, helper.ready)

        applied = where_a_network_is(shell, chosen, apply)
        return {node: Seen(Effect.NOT_KNOWN, {"applied": chosen[node].name}) for node in applied}

    def measure(self, shell: NodeShell, aim: Aim) -> Evidence:
        """Read the counters of all nodes at once."""
        mechanisms = self.mechanisms(aim, shell.topology)

        def count(node: Node) -> Counted | None:
            mechanism = mechanisms[node]
            counted = _read(mechanism, node, aim.tag, shell.in_network_of(node, mechanism.count(aim.tag)))
            if counted is None or not counted.silent:
                return counted
            return replace(counted, wrong=f"{counted.wrong}: {_state_of_helper(shell, node, aim.tag)}")

        counted = where_a_network_is(shell, mechanisms, count)
        return self.seen(aim, shell.topology, counted)

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        """Remove the mechanisms on all nodes at once; each removal checks that nothing is left."""
        mechanisms = self.mechanisms(aim, shell.topology)

        def remove(node: Node) -> None:
            try:
                shell.in_network_of(node, mechanisms[node].remove(node, aim.tag), disarm=aim.tag)
            finally:
                if mechanisms[node].helped:
                    shell.stop_helper(node, aim.tag)

        where_a_network_is(shell, mechanisms, remove)


def _state_of_helper(shell: NodeShell, node: Node, tag: str) -> str:
    try:
        return "it runs" if shell.helper_runs(node, tag) else "it has ended"
    except ClusterError as exc:
        # (That it did not answer is known all the same, and so are the counters of other nodes.)
        return f"nobody knows whether it runs ({exc})"


def judged(counted: Counted | None) -> Seen:
    """The evidence in counters: a fault held in part if its mechanism is gone or did something wrong; with a count of
    zero it is not known."""
    if counted is None:
        return Seen(Effect.IN_PART, {"mechanism": "gone"})
    if counted.wrong is not None:
        return Seen(Effect.IN_PART, {**counted.facts, "wrong": counted.wrong})
    return Seen(Effect.HOLDS if counted.packets else Effect.NOT_KNOWN, counted.facts)


def _read(mechanism: Mechanism, node: Node, tag: str, listing: str) -> Counted | None:
    try:
        return mechanism.read(node, tag, listing)
    except (ValueError, LookupError, TypeError) as exc:
        raise ClusterError(f"{node.name}: its counters cannot be read ({exc!r}): {listing.strip()[:200]}") from exc


def where_a_network_is(shell: NodeShell, nodes: Iterable[Node], act: Callable[[Node], T]) -> dict[Node, T]:
    """Act in the namespaces of all nodes at once; return the results of the nodes that still have one."""

    def run(node: Node) -> tuple[T] | None:
        try:
            return (act(node),)
        except ClusterError:
            if shell.network_ends_with_process and shell.process(node) is ProcessState.EXITED:
                return None
            raise

    return {node: done[0] for node, done in on_each(nodes, run).items() if done is not None}
