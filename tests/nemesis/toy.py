"""A fault of a test's own: it lulls the process of a node to sleep, and wakes it when it is healed."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from harness.core.quantities import Duration
from nemesis.evidence import Effect, Evidence, Seen
from nemesis.fault import Aim, Fault, on_each
from nemesis.shell import NodeShell, ProcessState
from nemesis.targets import Expression


class Lull(Fault):
    """Sing a node to sleep."""

    halts_process: ClassVar[bool] = True
    keeps: ClassVar[ProcessState | None] = ProcessState.STOPPED

    target: Expression = Field(description="who is sung to")
    song: Duration = Field(1.0, gt=0, description="how long the song is")

    def targets(self) -> Mapping[str, Expression]:
        return {"target": self.target}

    def inject(self, shell: NodeShell, aim: Aim) -> Evidence:
        on_each(aim.nodes, lambda node: shell.signal(node, "STOP"))
        return self.measure(shell, aim)

    def measure(self, shell: NodeShell, aim: Aim) -> Evidence:
        states = on_each(aim.nodes, shell.process)
        return {
            node: Seen(Effect.HOLDS if state is self.keeps else Effect.DOES_NOT_HOLD, {"process": str(state)})
            for node, state in states.items()
        }

    def heal(self, shell: NodeShell, aim: Aim) -> None:
        on_each(aim.nodes, lambda node: shell.signal(node, "CONT"))
