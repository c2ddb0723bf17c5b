"""What only machines by SSH know of a cluster's settings."""

from typing import Annotated

from pydantic import Field

from harness.cluster.spec import NamesFile, Part


class SshSpec(Part):
    """Which machines the nodes run on."""

    machines: Annotated[str | None, NamesFile()] = Field(
        None,
        description="an inventory of machines reached by SSH, to run the nodes on (docs/machines.md); found from where"
        " the scenario's file is",
    )
    accept_new: bool = Field(
        False,
        exclude=True,
        description="write the keys of hosts that are not in known_hosts there, once; a key that changed is refused",
    )
