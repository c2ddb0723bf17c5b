"""The settings of a cluster that only the SSH provider knows."""

from typing import Annotated

from pydantic import Field

from harness.cluster.spec import CommandOption, NamesFile, Part
from harness.core.quantities import Flag


class SshSpec(Part):
    """Which machines the nodes run on."""

    machines: Annotated[str | None, NamesFile()] = Field(
        None,
        description="run the nodes on the machines of this inventory, by SSH (docs/machines.md); relative to the"
        " scenario's file",
    )
    accept_new: Flag = Field(
        False,
        exclude=True,
        description="add the keys of hosts that are not yet in known_hosts to it; a changed key is refused",
    )


#: The settings that are options, too.
SSH_OPTIONS = (
    CommandOption(
        "machines",
        "Use the machines that this file lists, by SSH (docs/machines.md).",
        file="INVENTORY",
        locates=True,
    ),
    CommandOption("accept_new", "Add keys of machines that known_hosts lacks to it.", flag=True, locates=True),
)
