"""Losing a node's data."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from harness.core.errors import ClusterError
from harness.core.topology import Node
from nemesis.evidence import Effect, Evidence, Seen
from nemesis.fault import Aim, Fault, HalfWay, on_each, seen_on_each
from nemesis.shell import NodeShell, ProcessState
from nemesis.targets import Expression


class Wipe(Fault):
    """Delete all data of a node that was killed or stopped before. No heal brings it back."""

    destroys_data: ClassVar[bool] = True
    needs_exited: ClassVar[bool] = True
    lasting: ClassVar[bool] = False
    drawable: ClassVar[bool] = False

    target: Expression = Field(description="whose data; it must have been killed or stopped")

    def targets(self) -> Mapping[str, Expression]:
        return {"target": self.target}

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        states = on_each(aim.nodes, shell.process)
        alive = [node.name for node, state in states.items() if state is not ProcessState.EXITED]
        if alive:
            why = ClusterError(f"{aim.name}: {', '.join(alive)} has not exited: end its process before")
            raise HalfWay(why, {node: Seen(Effect.DOES_NOT_HOLD) for node in aim.nodes})

        def wipe(node: Node) -> Seen:
            deleted = shell.wipe(node)
            return Seen(Effect.HOLDS if deleted else Effect.DOES_NOT_HOLD, {"files_deleted": deleted})

        return seen_on_each(aim.nodes, wipe)

    @override
    def measure(self, shell: NodeShell, aim: Aim) -> Evidence:
        """Nothing: the files were counted when they were deleted."""
        return {}

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        """Do nothing: deleted data cannot be restored."""
