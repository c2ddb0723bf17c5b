"""Faults that live in network namespaces: scripts applied there, counted there, removed there."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from harness.core.errors import ClusterError
from harness.core.topology import Node, Topology
from nemesis.evidence import Effect, Evidence, Seen
from nemesis.fault import Aim, Fault, on_each
from nemesis.shell import NodeShell, ProcessState


@dataclass(frozen=True)
class Scripts:
    """The shell text that applies a fault in one node's namespace, lists its counters, and removes it."""

    apply: str
    count: str
    remove: str


class NetworkFault(Fault):
    """A fault made of rules or queues in the nodes' network namespaces.

    A namespace ends with its node's process, and the rules with it: they are applied again when the node was started. A
    node that has exited has nothing to apply to, count or remove.
    """

    lives_in_network: ClassVar[bool] = True

    @abstractmethod
    def scripts(self, aim: Aim, topology: Topology) -> Mapping[Node, Scripts]:
        """What to run in the namespace of each node concerned."""

    @abstractmethod
    def seen(self, aim: Aim, topology: Topology, listings: Mapping[Node, str]) -> Evidence:
        """What the listings of those nodes that have scripts, and run, tell of each node hit. Pure."""

    def told(self, text: str) -> object:
        """What a node's ``apply`` printed, as a fact."""
        return text.strip() or True

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        """Apply the scripts on all nodes at once. That it acts is for the counters to show, later."""
        return self.apply_again(shell, aim, self.scripts(aim, shell.topology))

    @override
    def apply_again(self, shell: NodeShell, aim: Aim, nodes: Iterable[Node]) -> Evidence:
        """Apply the scripts of those of ``nodes`` that have some."""
        concerned = set(nodes)
        scripts = {node: text for node, text in self.scripts(aim, shell.topology).items() if node in concerned}
        said = _in_networks(shell, scripts, lambda node: scripts[node].apply)
        return {node: Seen(Effect.NOT_KNOWN, {"applied": self.told(text)}) for node, text in said.items()}

    def measure(self, shell: NodeShell, aim: Aim) -> Evidence:
        """What the counters of all nodes tell."""
        scripts = self.scripts(aim, shell.topology)
        listings = _in_networks(shell, scripts, lambda node: scripts[node].count)
        try:
            return self.seen(aim, shell.topology, listings)
        except (ValueError, LookupError, TypeError) as exc:
            said = "; ".join(f"{node.name}: {text.strip()[:200]}" for node, text in listings.items())
            raise ClusterError(f"its counters cannot be read ({exc!r}): {said}") from exc

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        """Remove the scripts' work on all nodes at once, each of which checks that nothing is left."""
        scripts = self.scripts(aim, shell.topology)
        _in_networks(shell, scripts, lambda node: scripts[node].remove)


def _in_networks(shell: NodeShell, nodes: Iterable[Node], script: Callable[[Node], str]) -> dict[Node, str]:
    def run(node: Node) -> str | None:
        try:
            return shell.in_network_of(node, script(node))
        except ClusterError:
            if shell.process(node) is ProcessState.EXITED:
                return None
            raise

    return {node: said for node, said in on_each(nodes, run).items() if said is not None}
