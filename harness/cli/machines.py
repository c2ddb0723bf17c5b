"""``--machines``, ``--accept-new`` and ``--images``: where nodes run, and where images come from."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from harness.cluster.spec import ClusterSpec
    from harness.providers.catalogue import ProviderRow

Command = TypeVar("Command", bound=Callable[..., Any])


def machine_options(command: Command) -> Command:
    """Add ``--machines`` and ``--accept-new`` to a command."""
    machines = click.option(
        "--machines",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="INVENTORY",
        help="Use the machines that this file lists, by SSH (docs/machines.md).",
    )
    accept = click.option(
        "--accept-new",
        is_flag=True,
        help="Add keys of machines that known_hosts lacks to it.",
    )
    return machines(accept(command))


def images_option(command: Command) -> Command:
    """Add ``--images`` to a command that may build images."""
    return click.option(
        "--images",
        type=click.Choice(["registry", "build"]),
        help="Build images from a registry's Debian, or from one made here by mmdebstrap."
        " [default: $KAFKA_TRIAL_IMAGES, else the images there are, else registry where one answers]",
    )(command)


def settings(machines: Path | None, accept_new: bool, images: str | None = None) -> dict[str, object]:
    """The cluster settings that the options give."""
    given: dict[str, object] = {} if machines is None else {"machines": str(machines.absolute())}
    given |= {"accept_new": True} if accept_new else {}
    return given | ({} if images is None else {"images": images})


def overrides(given: Mapping[str, object]) -> Sequence[str]:
    """The same settings in the form of ``--set``."""
    from harness.scenario.files import as_yaml

    return [f"cluster.{key}={as_yaml(value)}" for key, value in given.items()]


def cluster(providers: "Mapping[str, ProviderRow]", given: Mapping[str, object]) -> "ClusterSpec":
    """A cluster with these settings of providers, and defaults otherwise. Raises ScenarioError."""
    from pydantic import ValidationError

    from harness.core.complaints import complaints
    from harness.core.errors import ScenarioError
    from harness.core.written import Written
    from harness.providers.catalogue import composed

    known = {key for row in providers.values() for key in row.spec.model_fields}
    chosen = {key: value for key, value in given.items() if key in known}
    try:
        return composed(providers).model_validate(chosen)
    except ValidationError as exc:
        errors = ({**error, "loc": ("cluster", *error["loc"])} for error in exc.errors(include_url=False))
        lines = complaints(errors, Written({"cluster": chosen}, "the given settings"), lambda _: None)
        raise ScenarioError("\n".join(lines)) from exc
