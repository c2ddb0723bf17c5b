"""What only machines by SSH know of a cluster's settings."""

from pydantic import Field

from harness.cluster.spec import Part


class SshSpec(Part):
    """Which machines the nodes run on."""

    machines: str | None = Field(
        None, description="an inventory of machines reached by SSH, to run the nodes on (docs/machines.md)"
    )
    accept_new: bool = Field(
        False,
        exclude=True,
        description="write the keys of hosts that are not in known_hosts there, once; a key that changed is refused",
    )
