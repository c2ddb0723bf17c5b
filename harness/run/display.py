"""What a run tells whoever watches it. The command line shows it; a program may do as it likes, or nothing."""

from collections.abc import Sequence
from typing import Protocol


class Display(Protocol):
    """Called from the run's own thread, as often as there is something to tell."""

    def phase(self, name: str) -> None:
        """A phase of the run begins."""

    def step(self, text: str, seconds_left: float | None) -> None:
        """A step of the timeline is under way; it takes ``seconds_left`` at most, None where nobody can say."""

    def status(
        self, sent: int, acknowledged: int, failed: int, leader: str | None, isr: Sequence[str], faults: Sequence[str]
    ) -> None:
        """How things stand: records, who leads the watched partition, its ISR, and the names of the active faults."""

    def line(self, text: str) -> None:
        """Something worth a line of its own."""


class Silent:
    """Shows nothing."""

    def phase(self, name: str) -> None:
        """Not shown."""

    def step(self, text: str, seconds_left: float | None) -> None:
        """Not shown."""

    def status(
        self, sent: int, acknowledged: int, failed: int, leader: str | None, isr: Sequence[str], faults: Sequence[str]
    ) -> None:
        """Not shown."""

    def line(self, text: str) -> None:
        """Not shown."""
