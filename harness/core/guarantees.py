"""What Kafka promises under a configuration, as data with sources."""

from pydantic import BaseModel, ConfigDict


class Configuration(BaseModel):
    """The settings of a run that promises depend on, as run.json keeps them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str
    metadata: str = "kraft"
    brokers: int = 3
    replication: int = 3
    min_insync_replicas: int = 1
    unclean_election: bool = False
    acks: str = "all"
    idempotence: bool = True
    retries: int = 2147483647
    max_in_flight: int = 5
    isolation_level: str = "read_uncommitted"
    grouped: bool = False
