"""The settings of a cluster that only the Docker provider knows."""

import ipaddress
import re
from collections.abc import Iterable
from typing import Literal, get_args

from pydantic import Field, field_validator

from harness.cluster.spec import ClusterSpec, CommandOption, Part, own_spec

#: Private addresses (RFC 1918): no public machine has one, and they do not mean this machine itself.
_PRIVATE = tuple(map(ipaddress.IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))

#: The value of ``cluster.image`` for the image that the Kafka project publishes.
OFFICIAL = "official"

#: A digest, or a tag other than ``latest``, which moves. Docker reads a missing tag as ``latest``.
_PINNED = re.compile(r"@sha256:[0-9a-f]{64}$|^[^@]+:(?!latest$)[\w.\-]+$", re.ASCII)

_Images = Literal["registry", "build"]


class DockerSpec(Part):
    """Which image the nodes run, their addresses, and how clients reach them."""

    image: str | None = Field(
        None,
        min_length=1,
        description="instead of ours: official (apache/kafka), or an image with the layout of that or of"
        " confluentinc/cp-kafka",
    )
    images: _Images | None = Field(
        None,
        description="what ours are built from: registry: a Debian base of a registry; build: one that mmdebstrap makes"
        " (default: $KAFKA_TRIAL_IMAGES, else registry where one answers)",
    )
    subnet: str | None = Field(None, description="an IPv4 /24 for the nodes (default: a free one)")
    clients: Literal["direct", "published"] | None = Field(
        None,
        description="direct: by the nodes' addresses; published: by loopback ports, for Docker Desktop and rootless"
        " Docker (default: $KAFKA_TRIAL_CLIENTS, else direct where an address can be reached)",
    )

    @field_validator("image")
    @classmethod
    def _pinned(cls, value: str | None) -> str | None:
        if value is None or value == OFFICIAL or _PINNED.search(value):
            return value
        raise ValueError(f"{value} may be another image tomorrow: pin it by digest or version, never latest")

    @field_validator("subnet")
    @classmethod
    def _a_subnet(cls, value: str | None) -> str | None:
        try:
            subnet = None if value is None else ipaddress.IPv4Network(value)
        except ValueError:
            raise ValueError(f"{value!r} is no IPv4 /24 such as 10.210.7.0/24") from None
        if subnet is not None and subnet.prefixlen != 24:
            raise ValueError(f"{value!r} is no IPv4 /24 such as 10.210.7.0/24")
        if subnet is not None and not any(subnet.subnet_of(private) for private in _PRIVATE):
            raise ValueError(f"{value!r} is not private: take one of {', '.join(map(str, _PRIVATE))}")
        return value


#: The settings that are options, too.
DOCKER_OPTIONS = (
    CommandOption(
        "images",
        "Build images from a registry's Debian, or from one made here by mmdebstrap."
        " [default: $KAFKA_TRIAL_IMAGES, else the images there are, else registry where one answers]",
        choices=get_args(_Images),
    ),
)


def subnet_of(cluster: ClusterSpec) -> Iterable[str]:
    """The name of the subnet that a cluster must have alone; none if it takes a free one."""
    subnet = own_spec(cluster, DockerSpec).subnet
    return () if subnet is None else (f"subnet {ipaddress.IPv4Network(subnet)}",)
