"""The base of every step of a timeline, of the scenario's own and of workloads'."""

from pydantic import BaseModel, ConfigDict


class TimelineStep(BaseModel):
    """A mapping of one key, which is the name of its class."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    @property
    def key(self) -> str:
        """Its only key."""
        return type(self).__name__.lower()

    @property
    def longest(self) -> float:
        """The seconds that it may take at most; 0 for a step that only injects or heals."""
        return 0.0

    def __str__(self) -> str:
        return f"{self.key} {getattr(self, self.key)}"
