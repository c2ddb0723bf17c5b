"""Who can bring up a cluster: one line per provider."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import create_model

from harness.cluster.provider import Provider
from harness.cluster.spec import ClusterSpec, CommandOption, Part
from harness.core.errors import ScenarioError
from harness.providers.docker.spec import DOCKER_OPTIONS, DockerSpec, subnet_of
from harness.providers.ssh.alone import check_machines, machines_of
from harness.providers.ssh.spec import SSH_OPTIONS, SshSpec


@dataclass(frozen=True)
class ProviderRow:
    """A provider: its own settings of a scenario's ``cluster``, and how to get it (which may import much).

    ``alone``: names of what a cluster shares with no other at the same time; equal names mean the same thing.
    ``check_names`` checks that several clusters use one name for one thing. It raises ScenarioError if they do not, or
    if it cannot read them. ``options``: the settings that are options of commands, too.
    """

    spec: type[Part]
    get: Callable[[], Provider]
    alone: Callable[[ClusterSpec], Iterable[str]] = lambda _: ()
    check_names: Callable[[Sequence[ClusterSpec]], None] = lambda _: None
    options: Sequence[CommandOption] = ()


def _docker() -> Provider:
    from harness.providers.docker.provider import Docker

    return Docker()


def _ssh() -> Provider:
    from harness.providers.ssh.provider import Ssh

    return Ssh()


#: By name. The first is for clusters that have no settings of any provider.
PROVIDERS: Mapping[str, ProviderRow] = {
    "docker": ProviderRow(DockerSpec, _docker, subnet_of, options=DOCKER_OPTIONS),
    "ssh": ProviderRow(SshSpec, _ssh, machines_of, check_machines, options=SSH_OPTIONS),
}


def composed(providers: Mapping[str, ProviderRow]) -> type[ClusterSpec]:
    """The model of a scenario's ``cluster``: what any cluster has, and each provider's own settings."""
    bases: tuple[type[Part], ...] = (*dict.fromkeys(row.spec for row in providers.values()), ClusterSpec)
    return cast(type[ClusterSpec], create_model("ClusterSpec", __base__=bases, __doc__=ClusterSpec.__doc__))


def provider_of(cluster: ClusterSpec, providers: Mapping[str, ProviderRow] = PROVIDERS) -> Provider:
    """The provider whose own settings a cluster has; the first provider if it has none.

    Raises ScenarioError if it has settings of several providers.
    """
    claims = {name: keys for name, row in providers.items() if (keys := _set_keys(cluster, row.spec))}
    if len(claims) > 1:
        claimed = ", ".join(f"cluster.{keys[0]} is for {name}" for name, keys in claims.items())
        raise ScenarioError(f"{claimed}: a cluster has one provider; leave out what is for others")
    return providers[next(iter(claims or providers))].get()


def held_alone(cluster: ClusterSpec, providers: Mapping[str, ProviderRow] = PROVIDERS) -> list[str]:
    """What a cluster shares with no other at the same time: another cluster that needs any of it must wait."""
    return sorted({name for row in providers.values() for name in row.alone(cluster)})


def check_names(clusters: Sequence[ClusterSpec], providers: Mapping[str, ProviderRow] = PROVIDERS) -> None:
    """Check that ``held_alone`` gives one thing the same name in all these clusters. Raises ScenarioError if something
    has two names, or cannot be read."""
    for row in providers.values():
        row.check_names(clusters)


def _set_keys(cluster: ClusterSpec, spec: type[Part]) -> list[str]:
    """The settings of a provider that differ from their defaults."""
    default = {key: field.get_default(call_default_factory=True) for key, field in spec.model_fields.items()}
    return [key for key, otherwise in default.items() if getattr(cluster, key, otherwise) != otherwise]
