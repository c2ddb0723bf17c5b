"""What only Docker knows of a cluster's settings."""

import ipaddress
from typing import Literal

from pydantic import Field, field_validator

from harness.cluster.spec import Part


class DockerSpec(Part):
    """Which image the nodes run, their addresses, and how clients reach them."""

    image: str | None = Field(
        None, description="an image to use instead of the one built here: jars in /opt/kafka/libs"
    )
    subnet: str | None = Field(None, description="an IPv4 /24 for the nodes (default: a free one)")
    clients: Literal["direct", "published"] = Field(
        "direct", description="direct: by the nodes' addresses (Linux); published: by loopback ports (Docker Desktop)"
    )

    @field_validator("subnet")
    @classmethod
    def _a_subnet(cls, value: str | None) -> str | None:
        try:
            fits = value is None or ipaddress.IPv4Network(value).prefixlen == 24
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"{value!r} is no IPv4 /24 such as 10.210.7.0/24")
        return value
